"""Plugin hcclrank: the rank of a pod for Ascend's collective library, as an annotation."""

from __future__ import annotations

from typing import Any

from shoal.dialects.volcano.plugins.pods import PluginPod, containers
from shoal.kube.objects import Obj

FLAGS: dict[str, Any] = {"master": "master", "worker": "worker"}
RANK = "hccl/rankIndex"


def configure_pod(pod: Obj, place: PluginPod, flags: dict[str, Any]) -> None:
    """A RANK set by the user or another plugin wins; this plugin runs last for that reason."""
    given = [env for each in containers(pod, init=False) for env in each.get("env") or () if env.get("name") == "RANK"]
    if given and given[-1].get("value"):
        rank = given[-1]["value"]
    elif place.task.name == flags["master"]:
        rank = str(place.index)
    elif place.task.name == flags["worker"]:
        master = place.scene.spec.task(flags["master"])
        rank = str(place.index + (master.replicas if master is not None else 0))
    else:
        return
    metadata = pod["metadata"]
    metadata["annotations"] = {**(metadata.get("annotations") or {}), RANK: rank}
