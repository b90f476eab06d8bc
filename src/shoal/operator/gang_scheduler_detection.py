"""Which gang schedulers a cluster has, and which of them gangs are handed to: decided once, at the start.

The evidence is what the cluster serves. Volcano is identified by its NodeInfo API, because Shoal brings PodGroups and
Queues of Volcano's itself where no other program did. For all others their own API group is the sign; whether the
scheduler behind it runs, the cluster does not report.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shoal.controller_runtime.crd_installer import CrdUnusable, DiscoveryCluster
from shoal.dialects import gang_backends
from shoal.dialects.dialect import Dialect
from shoal.dialects.gang_backends import coscheduling, kueue, native
from shoal.dialects.gang_backends.backend import Backend
from shoal.dialects.gang_backends.delegate import has_gangs, with_backend
from shoal.logs import Logger
from shoal.scheduler.volcano_detection import VOLCANO_API

log = Logger(__name__)

AUTO = "auto"
CHOICES = (AUTO, *gang_backends.NAMES)

# In the order in which they are preferred where a cluster has several.
_APIS: dict[str, tuple[tuple[str, str], ...]] = {
    "volcano": (VOLCANO_API,),
    "kueue": tuple((kueue.workload(version).api_version, "Workload") for version in kueue.VERSIONS),
    "coscheduling": ((coscheduling.POD_GROUP.api_version, "PodGroup"),),
    "native": tuple((native.pod_group(version).api_version, "PodGroup") for version in native.VERSIONS),
}
_TITLES = {
    "shoal": "Shoal's own scheduler",
    "volcano": "Volcano's scheduler",
    "kueue": "Kueue",
    "coscheduling": "the coscheduling plugin",
    "native": "the cluster's own scheduler, which knows PodGroups",
    "none": "none: pods are placed one by one",
}


@dataclass(frozen=True, slots=True)
class ChosenBackend:
    """The backend gangs are handed to, and the message with the reason."""

    backend: Backend
    why: str


async def choose(cluster: DiscoveryCluster, choice: str = AUTO, *, scheduler: str = "") -> ChosenBackend:
    """The requested backend, or else the one that is served. Raises Unserved where the requested one is not served."""
    if choice != AUTO:
        served = await _served(cluster, choice) if choice in _APIS else ""
        # Shoal's own scheduler serves PodGroups of Volcano's too, so Volcano needs no proof.
        if not served and choice in _APIS and choice != "volcano":
            wanted = " or ".join(api for api, _ in _APIS[choice])
            raise CrdUnusable(
                f"gangs cannot go to {_TITLES[choice]}: this cluster does not serve {wanted}. "
                f"Install it, or choose another with --gang-scheduler"
            )
        why = f"gangs go to {_TITLES[choice]}, because of --gang-scheduler"
        return ChosenBackend(_backend(choice, served, scheduler), why)
    found = {name: served for name in _APIS if (served := await _served(cluster, name))}
    if not found:
        none = "this cluster serves the API of no other gang scheduler; `shoal scheduler` has to run"
        return ChosenBackend(
            gang_backends.backend("shoal", scheduler=scheduler), f"gangs go to {_TITLES['shoal']}: {none}"
        )
    name, *others = found
    why = f"gangs go to {_TITLES[name]}: this cluster serves {found[name]}"
    if others:
        rest = ", ".join(f"{found[other]} ({other})" for other in others)
        why += f". It serves {rest} too, and --gang-scheduler chooses"
    return ChosenBackend(_backend(name, found[name], scheduler), why)


async def _served(cluster: DiscoveryCluster, name: str) -> str:
    """The newest version of its API that is there; '' where none is."""
    for api_version, kind in _APIS[name]:
        if await cluster.find_kind(api_version, kind) is not None:
            return api_version
    return ""


def _backend(name: str, api_version: str, scheduler: str) -> Backend:
    return gang_backends.backend(name, scheduler=scheduler, version=api_version.rpartition("/")[2])


async def with_gang_scheduler(
    cluster: DiscoveryCluster, dialects: Mapping[str, Dialect], choice: str = AUTO, *, scheduler: str = ""
) -> Mapping[str, Dialect]:
    """The dialects, with gangs in the form the detected scheduler expects. No detection where no dialect has gangs."""
    if not any(has_gangs(dialect) for dialect in dialects.values()):
        return dialects
    chosen = await choose(cluster, choice, scheduler=scheduler)
    log.info("gang scheduler", name=chosen.backend.name, why=chosen.why)
    return {name: with_backend(dialect, chosen.backend) for name, dialect in dialects.items()}
