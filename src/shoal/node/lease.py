"""The Lease of a node: who holds it, and whether it is alive. Pure.

A kubelet writes the node's name as the holder, because its credentials are the only ones for that name. A node of ours
adds an id of the agent: two agents with one name would run every pod twice, so the second is rejected.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from shoal.kube.kinds import LEASE
from shoal.kube.messages import Message
from shoal.kube.objects import Obj, at_path
from shoal.kube.times import parse, rfc3339_micro

NAMESPACE = "kube-node-lease"


def other_holder(lease: Obj, holder: str, now: datetime) -> str:
    """The other holder of the Lease that has renewed it in time; '' where there is none."""
    known = at_path(lease, "spec", "holderIdentity") or ""
    renewed, lasts = at_path(lease, "spec", "renewTime"), at_path(lease, "spec", "leaseDurationSeconds")
    is_alive = bool(renewed) and now < parse(renewed) + timedelta(seconds=lasts or 0)
    return str(known) if is_alive and known != holder else ""


def held_message(node: str, other: str) -> Message:
    return Message("NodeRefused.Held", {"node": node, "holder": other})


def renewal(holder: str, seconds: int, now: datetime) -> Obj:
    return {"holderIdentity": holder, "leaseDurationSeconds": seconds, "renewTime": rfc3339_micro(now)}


def new_lease(node: str, spec: Obj) -> Obj:
    metadata = {"name": node, "namespace": NAMESPACE}
    return {"apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": metadata, "spec": spec}
