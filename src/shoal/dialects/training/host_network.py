"""Pods on the network of their node. Each gets a port of its own: several may run on one node.

The port follows from the uid of the job, the role and the index, so that it is known before there is a pod, and again
after the pod was replaced.
"""

from __future__ import annotations

from hashlib import blake2b

from shoal.engine import TaskRef
from shoal.kube.objects import Obj

LOWEST, HIGHEST = 20_000, 30_000


def host_port(uid: str, ref: TaskRef) -> int:
    drawn = int.from_bytes(blake2b(f"{uid}/{ref}".encode(), digest_size=4).digest())
    return LOWEST + drawn % (HIGHEST - LOWEST)


def use_host_network(spec: Obj, container: Obj, port_name: str, number: int) -> None:
    """The container's port of that name becomes a port of the node."""
    spec["hostNetwork"] = True
    spec["dnsPolicy"] = "ClusterFirstWithHostNet"
    for port in container.get("ports") or ():
        if port.get("name") == port_name:
            port["containerPort"] = port["hostPort"] = number
