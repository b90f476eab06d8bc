"""Plugin env: the pod's index within its task."""

from __future__ import annotations

from typing import Any

from shoal.dialects.volcano.plugins.pods import Place, add_env, plain
from shoal.kube.objects import Obj

FLAGS: dict[str, Any] = {}


def dress(pod: Obj, place: Place, _: dict[str, Any]) -> None:
    add_env(pod, plain(VC_TASK_INDEX=place.index, VK_TASK_INDEX=place.index))
