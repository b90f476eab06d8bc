"""The plan of one pass: which waiting pod goes where, and for each that must wait, the sentence that says why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from shoal.kube.objects import Key
from shoal.scheduling.fitting import Barred, Short, objection, take
from shoal.scheduling.groups import Group, Phase
from shoal.scheduling.requests import Amounts, shown
from shoal.scheduling.snapshot import Node, Pod, Snapshot


@dataclass(frozen=True, slots=True)
class Bind:
    pod: Key
    uid: str
    node: str
    devices: tuple[int, ...] = ()  # where they are shared


@dataclass(frozen=True, slots=True)
class Wait:
    pod: Key
    uid: str
    sentence: str
    reason: str = "Unschedulable"  # or Schedulable: it would fit once its gang does; or Queued: its queue's turn


@dataclass(frozen=True, slots=True)
class Evict:
    pod: Key
    uid: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Shrink:
    """An elastic job is asked to give these pods back."""

    group: Key
    pods: tuple[Key, ...]
    sentence: str


@dataclass(frozen=True, slots=True)
class Nominate:
    """The node that is kept for a pod until the pods that leave on its behalf are gone."""

    pod: Key
    node: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one gang, and what is to be remembered of it. `blocked` says what it waits for, '' if nothing."""

    group: Key
    phase: Phase
    reason: str
    sentence: str
    blocked: Literal["", "capacity", "quota", "queue", "pods", "order"] = ""
    inqueue_since: float | None = None
    not_before: float = 0.0
    timeouts: int = 0
    ran: bool = False

    def changes(self, group: Group) -> bool:
        """Whether something is to be remembered that the group does not say yet."""
        return (
            self.phase is not group.phase
            or self.inqueue_since != group.inqueue_since
            or self.not_before != group.not_before
            or self.timeouts != group.timeouts
            or self.ran != group.ran
        )

    def applied_to(self, group: Group) -> Group:
        return replace(
            group,
            phase=self.phase,
            inqueue_since=self.inqueue_since,
            not_before=self.not_before,
            timeouts=self.timeouts,
            ran=self.ran,
        )


@dataclass(frozen=True, slots=True)
class Plan:
    binds: tuple[Bind, ...]
    waits: tuple[Wait, ...]
    evictions: tuple[Evict, ...] = ()
    shrinks: tuple[Shrink, ...] = ()
    nominations: tuple[Nominate, ...] = ()
    groups: tuple[Verdict, ...] = ()
    reservations: tuple[tuple[Key, tuple[str, ...]], ...] = ()  # nodes kept for a gang that waited too long
    warnings: tuple[str, ...] = ()
    wake_at: float | None = None  # plan again then, even if nothing happens


Room = dict[str, Amounts]


def plan(snapshot: Snapshot) -> Plan:
    """A pod that cannot be placed does not hold back those behind it; ties fall to the first node by name."""
    room = free_room(snapshot)  # 1. what is left on each node
    binds: list[Bind] = []
    left: list[Pod] = []
    for pod in order(snapshot.waiting):  # 2. who is next
        fitting = [
            node for node in snapshot.nodes if objection(pod, node, room[node.name]) is None
        ]  # 3. where it could go
        if fitting:
            node = tightest(pod, fitting, room)  # 4. where it leaves the larger holes whole
            take(room[node.name], pod.requests)
            binds.append(Bind(pod.key, pod.uid, node.name))
        else:
            left.append(pod)
    # 5. why the others wait, told of the room that is left when everybody has been placed
    return Plan(tuple(binds), tuple(Wait(pod.key, pod.uid, sentence(pod, snapshot.nodes, room)) for pod in left))


def free_room(snapshot: Snapshot) -> Room:
    room = {node.name: dict(node.allocatable) for node in snapshot.nodes}
    for node, held in snapshot.placed:
        if node in room:
            take(room[node], held)
    return room


def order(waiting: Iterable[Pod]) -> list[Pod]:
    return sorted(waiting, key=lambda pod: (-pod.priority, pod.created, pod.key))


def tightest(pod: Pod, nodes: Iterable[Node], room: Room) -> Node:
    """Best fit: the node with the least left of what the pod asks for, the scarcest kind of resource first."""
    asked = sorted((name for name, need in pod.requests.items() if need and name != "pods"), key=_common)

    def left(node: Node) -> tuple[tuple[float, ...], str]:
        free = room[node.name]
        shares = ((free[name] - pod.requests[name]) / max(node.allocatable[name], 1) for name in asked)
        return tuple(shares), node.name

    return min(nodes, key=left)


def _common(resource: str) -> bool:
    return resource in ("cpu", "memory", "ephemeral-storage")


def sentence(pod: Pod, nodes: tuple[Node, ...], room: Room) -> str:
    """`waiting: needs 8 nvidia.com/gpu, the most free is 3 of 4 on node a; 1 node is cordoned`."""
    if not nodes:
        return "waiting: the cluster has no node yet"
    objections = {node.name: objection(pod, node, room[node.name]) for node in nodes}
    short = {name: found.resources for name, found in objections.items() if isinstance(found, Short)}
    parts = [_shortage(pod, resource, short, nodes, room) for resource in _worst_first(short)]
    barred = Counter(found.why for found in objections.values() if isinstance(found, Barred))
    parts += [
        f"{count} node{'s' if count > 1 else ''} {_plural(why, count)}"
        for why, count in sorted(barred.items(), key=_most_nodes_first)
    ]
    return "waiting: " + "; ".join(parts)


def _worst_first(short: Mapping[str, tuple[str, ...]]) -> list[str]:
    counts = Counter(resource for resources in short.values() for resource in resources)
    return sorted(counts, key=lambda resource: (-counts[resource], resource))


def _shortage(pod: Pod, resource: str, short: Mapping[str, tuple[str, ...]], nodes: Iterable[Node], room: Room) -> str:
    candidates = [node for node in nodes if resource in short.get(node.name, ())]
    best = max(candidates, key=lambda node: room[node.name].get(resource, 0))
    whole, free = best.allocatable.get(resource, 0), max(room[best.name].get(resource, 0), 0)
    if not whole:
        return f"needs {shown(resource, pod.requests[resource])} {resource}, and no node that could take it has any"
    if resource == "pods":
        return f"node {best.name} already runs as many pods as it may ({shown(resource, whole)})"
    need, most = shown(resource, pod.requests[resource]), f"{shown(resource, free)} of {shown(resource, whole)}"
    return f"needs {need} {resource}, the most free is {most} on node {best.name}"


def _most_nodes_first(counted: tuple[str, int]) -> tuple[int, str]:
    return -counted[1], counted[0]


def _plural(why: str, count: int) -> str:
    if count == 1:
        return why
    verb, _, rest = why.partition(" ")
    return f"{ {'is': 'are', 'has': 'have', 'does': 'do'}[verb] } {rest}"
