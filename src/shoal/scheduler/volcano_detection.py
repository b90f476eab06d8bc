"""Whether a cluster runs Volcano's own scheduler.

Its NodeInfo API is the sign: Shoal installs PodGroups and Queues of Volcano's itself where a cluster lacks them.
"""

from __future__ import annotations

from shoal.controller_runtime.crd_installer import DiscoveryCluster

VOLCANO_API = ("nodeinfo.volcano.sh/v1alpha1", "Numatopology")


async def has_volcano(cluster: DiscoveryCluster) -> bool:
    return await cluster.find_kind(*VOLCANO_API) is not None
