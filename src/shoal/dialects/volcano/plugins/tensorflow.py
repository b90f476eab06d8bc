"""Plugin tensorflow: TF_CONFIG, the description of the cluster that TensorFlow's strategies read."""

from __future__ import annotations

import json
from typing import Any

from shoal.dialects.volcano.plugins.pods import PluginPod, add_env, open_port, plain
from shoal.kube.objects import Obj

FLAGS: dict[str, Any] = {
    "ps": "ps",
    "worker": "worker",
    "chief": "chief",
    "evaluator": "evaluator",
    "port": 2222,
}
ROLES = ("ps", "worker", "chief", "evaluator")


def configure_pod(pod: Obj, place: PluginPod, flags: dict[str, Any]) -> None:
    tasks = place.scene.spec.tasks
    if len(tasks) == 1 and tasks[0].replicas == 1:
        return  # no peers to connect to
    role_of = {flags[role]: role for role in ROLES}
    cluster: dict[str, list[str]] = {}
    for task in tasks:
        if task.name in role_of:
            cluster[role_of[task.name]] = [f"{host}:{flags['port']}" for host in place.scene.hosts(task)]
    role = role_of.get(place.task.name)
    if role is None:
        return
    config = {"cluster": cluster, "task": {"type": role, "index": place.index}}
    open_port(pod, "tfjob-port", flags["port"])
    add_env(pod, plain(TF_CONFIG=json.dumps(config, separators=(",", ":"))), init=False)
