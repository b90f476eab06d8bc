"""Plugin pytorch: the variables torch.distributed starts with, and a worker that may wait for its master."""

from __future__ import annotations

from typing import Any

from shoal.dialects.volcano.plugins.pods import PluginPod, add_env, open_port, plain
from shoal.kube.objects import Obj

FLAGS: dict[str, Any] = {
    "master": "master",
    "worker": "worker",
    "port": 23456,
    "wait-master-enabled": False,
    "wait-master-timeout": 300,
    "wait-master-image": "busybox:1.36.1",
}
PORT = "pytorchjob-port"


def configure_pod(pod: Obj, place: PluginPod, flags: dict[str, Any]) -> None:
    spec, name = place.scene.spec, place.task.name
    if name not in (flags["master"], flags["worker"]):
        return
    sizes = {task.name: task.replicas for task in spec.tasks}
    is_master = name == flags["master"]
    master = spec.task(flags["master"])
    hosts = place.scene.hosts(master) if master is not None else []
    address = hosts[0] if hosts else f"{place.scene.job}-{flags['master']}-0.{place.scene.job}"
    world = sum(sizes.get(each, 0) for each in {flags["master"], flags["worker"]})
    rank = place.index if is_master else place.index + sizes.get(flags["master"], 0)
    open_port(pod, PORT, flags["port"])
    if flags["wait-master-enabled"] and not is_master:
        # Probe the master's port until it is open, as often as there are seconds to wait.
        knock = f"nc -z -w 1 {address} {flags['port']}"
        script = f"for try in $(seq {flags['wait-master-timeout']}); do {knock} && exit 0; sleep 1; done; exit 1"
        wait = {"name": "wait-for-master", "image": flags["wait-master-image"], "command": ["sh", "-c", script]}
        pod["spec"]["initContainers"] = [wait, *(pod["spec"].get("initContainers") or ())]
    values = plain(MASTER_ADDR=address, MASTER_PORT=flags["port"], WORLD_SIZE=world, RANK=rank)
    add_env(pod, values, init=False)
