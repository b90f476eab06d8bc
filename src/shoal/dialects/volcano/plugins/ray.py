"""Plugin ray: a Ray cluster. The commands of its containers become `ray start`, and a Service leads to the head."""

from __future__ import annotations

from typing import Any

from shoal.dialects.volcano import names
from shoal.dialects.volcano.plugins.pods import PluginJob, PluginPod, containers, open_port
from shoal.kube.objects import Obj

FLAGS: dict[str, Any] = {
    "head": "head",
    "worker": "worker",
    "headContainer": "head",
    "workerContainer": "worker",
    "port": 6379,
    "dashboardPort": 8265,
    "clientPort": 10001,
}
_PORTS = {"gcs": "port", "dashboard": "dashboardPort", "client-server": "clientPort"}


def service_name(job: str) -> str:
    return f"{job}-head-svc"


def configure_pod(pod: Obj, place: PluginPod, flags: dict[str, Any]) -> None:
    if place.task.name == flags["head"]:
        words = [
            f"ray start --head --block --port={flags['port']} --dashboard-host=0.0.0.0",
            f"--dashboard-port={flags['dashboardPort']} --ray-client-server-port={flags['clientPort']}",
        ]
        for name, flag in _PORTS.items():
            open_port(pod, name, flags[flag])
        _command(pod, flags["headContainer"], " ".join(words))
    elif place.task.name == flags["worker"]:
        head = place.scene.spec.task(flags["head"])
        hosts = place.scene.hosts(head) if head is not None else []
        address = hosts[0] if hosts else names.pod_name(place.scene.job, flags["head"], 0)
        _command(pod, flags["workerContainer"], f"ray start --block --address={address}:{flags['port']}")


def _command(pod: Obj, name: str, words: str) -> None:
    for container in containers(pod, init=False):
        if container.get("name") == name:
            container["command"], container["args"] = ["sh", "-c", words], []


def service(scene: PluginJob, flags: dict[str, Any]) -> Obj:
    ports = [{"name": name, "port": flags[flag], "protocol": "TCP"} for name, flag in _PORTS.items()]
    selector = {names.JOB_NAME: scene.job, names.JOB_NAMESPACE: scene.namespace, names.TASK_SPEC: flags["head"]}
    return {"spec": {"selector": selector, "ports": ports}}
