"""Plugin mpi: the master has its workers' addresses in MPI_HOST, and every pod has its ssh port open."""

from __future__ import annotations

from typing import Any

from shoal.dialects.volcano.plugins.pods import PluginPod, add_env, open_port, plain
from shoal.kube.objects import Obj

FLAGS: dict[str, Any] = {"master": "master", "worker": "worker", "port": 22}


def configure_pod(pod: Obj, place: PluginPod, flags: dict[str, Any]) -> None:
    open_port(pod, "mpijob-port", flags["port"])
    if place.task.name == flags["master"]:
        worker = place.scene.spec.task(flags["worker"])
        hosts = place.scene.hosts(worker) if worker is not None else []
        add_env(pod, plain(MPI_HOST=",".join(hosts)))
