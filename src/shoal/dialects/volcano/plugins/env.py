"""Plugin env: the pod's index within its task."""

from __future__ import annotations

from typing import Any

from shoal.dialects.volcano.plugins.pods import PluginPod, add_env, plain
from shoal.kube.objects import Obj

FLAGS: dict[str, Any] = {}


def configure_pod(pod: Obj, place: PluginPod, _: dict[str, Any]) -> None:
    add_env(pod, plain(VC_TASK_INDEX=place.index, VK_TASK_INDEX=place.index))
