"""The node as an API object: what this machine has, and what is declared for trying things out.

`detect_machine` looks at the machine; the rest is pure. With several nodes on one machine each has its share of the
cores, the memory and the GPUs; the shares add up to the whole.
"""

from __future__ import annotations

import os
import platform
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

import shoal
from shoal.kube.messages import Message
from shoal.kube.objects import Obj
from shoal.kube.quantity import Quantity
from shoal.node import gpus as gpu_devices
from shoal.node.environment import CUDA_DEVICES
from shoal.node.messages import CATALOG

PODS = 110
HOSTNAME_LABEL = "kubernetes.io/hostname"


@dataclass(frozen=True, slots=True)
class Machine:
    """What was found here."""

    cores: float
    memory_bytes: int
    disk_bytes: int
    gpus: tuple[int, ...] = ()
    gpu_name: str = ""
    host_ip: str = "127.0.0.1"
    hostname: str = ""
    info: Mapping[str, str] = field(default_factory=dict)


def detect_machine(data: Path, host_ip: str = "127.0.0.1") -> Machine:
    found = gpu_devices.visible(gpu_devices.installed(), os.environ.get(CUDA_DEVICES))
    release = platform.freedesktop_os_release() if Path("/etc/os-release").exists() else {}
    info = {
        "architecture": architecture(),
        "bootID": _line("/proc/sys/kernel/random/boot_id"),
        "containerRuntimeVersion": f"shoal://{shoal.__version__}",
        "kernelVersion": platform.release(),
        "kubeProxyVersion": f"shoal-{shoal.__version__}",
        "kubeletVersion": f"shoal-{shoal.__version__}",
        "machineID": _line("/etc/machine-id"),
        "operatingSystem": "linux",
        "osImage": release.get("PRETTY_NAME", "Linux"),
        "systemUUID": _line("/etc/machine-id"),
    }
    return Machine(
        cores=len(os.sched_getaffinity(0)),
        memory_bytes=psutil.virtual_memory().total,
        disk_bytes=psutil.disk_usage(str(data)).total,
        gpus=tuple(gpu.index for gpu in found),
        gpu_name=found[0].name if found else "",
        host_ip=host_ip,
        hostname=socket.gethostname(),
        info=info,
    )


def architecture() -> str:
    """The name other nodes use for this processor."""
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())


def _line(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def share_of(machine: Machine, index: int, count: int) -> Machine:
    """Node `index` of `count` on one machine: an equal share, the remainder to the first ones.
    Cores are cut only where there are fewer than nodes."""
    return Machine(
        cores=_share(int(machine.cores), index, count) if machine.cores >= count else machine.cores / count,
        memory_bytes=_share(machine.memory_bytes >> 20, index, count) << 20,
        disk_bytes=_share(machine.disk_bytes >> 20, index, count) << 20,
        gpus=machine.gpus[index::count],
        gpu_name=machine.gpu_name,
        host_ip=machine.host_ip,
        hostname=machine.hostname,
        info=machine.info,
    )


def _share(whole: int, index: int, count: int) -> int:
    return whole // count + (1 if index < whole % count else 0)


def capacity_of(machine: Machine, declared: Mapping[str, str]) -> dict[str, str]:
    """What the node offers; what was declared replaces what was found."""
    found = {
        "cpu": str(Quantity.of_milli(int(machine.cores * 1000))),
        "memory": f"{machine.memory_bytes >> 10}Ki",
        "ephemeral-storage": f"{machine.disk_bytes >> 10}Ki",
        "pods": str(PODS),
    }
    if machine.gpus:
        found[gpu_devices.RESOURCE] = str(len(machine.gpus))
    return {**found, **{name: str(Quantity.parse(amount)) for name, amount in declared.items()}}


def devices_of(machine: Machine, declared: Mapping[str, str], node_index: int = 0) -> tuple[int, ...] | None:
    """The device indices the node hands out: those found, or as many as were declared; None: no GPUs at all."""
    if gpu_devices.RESOURCE in declared:
        count = Quantity.parse(declared[gpu_devices.RESOURCE]).value()
        first = node_index * count
        return machine.gpus[:count] if count <= len(machine.gpus) else tuple(range(first, first + count))
    return machine.gpus or None


def node_object(
    name: str, machine: Machine, labels: Mapping[str, str], pod_cidr: str, taints: Sequence[Obj] = ()
) -> Obj:
    """The Node to create; its status is written separately. `pod_cidr` '' leaves it to the cluster's allocator."""
    fixed = {
        HOSTNAME_LABEL: name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": architecture(),
        "beta.kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": architecture(),
    }
    if machine.gpu_name:
        fixed["nvidia.com/gpu.product"] = re.sub(r"[^A-Za-z0-9._-]+", "-", machine.gpu_name)[:63].strip("-._")
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**fixed, **labels}},
        "spec": {
            **({"podCIDR": pod_cidr, "podCIDRs": [pod_cidr]} if pod_cidr else {}),
            **({"taints": list(taints)} if taints else {}),
        },
    }


def node_status(
    name: str, machine: Machine, capacity: Mapping[str, str], *, now: str, known: Obj | None, kubelet_port: int = 0
) -> Obj:
    """The node's status: everything on it may be given away, and the agent that writes this is alive."""
    before = {c["type"]: c for c in ((known or {}).get("status") or {}).get("conditions") or ()}
    addresses, served = [{"type": "InternalIP", "address": machine.host_ip}], {}
    if kubelet_port:
        # The second line says that the API server may pass websockets through.
        served = {
            "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet_port}},
            "declaredFeatures": ["ExtendWebSocketsToKubelet"],
        }
    else:  # an API server prefers the name to the address where both are given, and may not resolve this machine's
        addresses.append({"type": "Hostname", "address": name})
    return {
        "capacity": dict(capacity),
        "allocatable": dict(capacity),
        "addresses": addresses,
        "conditions": [_condition(before.get(claim[0]), claim, now) for claim in _CONDITIONS],
        "nodeInfo": dict(machine.info),
        **served,
    }


_CONDITIONS = (
    ("MemoryPressure", "False", Message("NodeHasSufficientMemory")),
    ("DiskPressure", "False", Message("NodeHasNoDiskPressure")),
    ("PIDPressure", "False", Message("NodeHasSufficientPID")),
    ("Ready", "True", Message("NodeReady")),
)


def stopped_condition(now: str) -> Obj:
    """The condition of a node whose agent leaves."""
    return _condition(None, ("Ready", "False", Message("NodeStopped")), now)


def _condition(before: Obj | None, claim: tuple[str, str, Message], now: str) -> Obj:
    kind, status, why = claim
    since = (before or {}).get("lastTransitionTime") if (before or {}).get("status") == status else None
    return {
        "type": kind,
        "status": status,
        "reason": why.reason,
        "message": CATALOG.text(why),
        "lastHeartbeatTime": now,
        "lastTransitionTime": since or now,
    }
