"""A cluster on a table: nodes, queues and gangs in one line each, and cycles of the planner over them.

`Board` keeps a view and a clock of its own. `cycle()` plans, writes the plan into the view as the cluster would show it
and returns it; `starts()` lets bound pods run, `leaves()` lets evicted ones go.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from shoal.kube.messages import Message
from shoal.kube.objects import Key
from shoal.scheduler.messages import text
from shoal.scheduler.planner.cluster_view import ClusterView
from shoal.scheduler.planner.gang_types import PlannerSettings, PodGroup, PodGroupPhase, Queue
from shoal.scheduler.planner.node_and_pod_types import Node, Pod, PodState
from shoal.scheduler.planner.plan_types import GroupResult, Plan
from shoal.scheduler.planner.planner import plan

GPU = "nvidia.com/gpu"
RACK = "topology.shoal.dev/rack"
SPINE = "topology.shoal.dev/spine"
HOST = "kubernetes.io/hostname"
NS = "team"


def key(name: str) -> Key:
    return Key(NS, name)


def cores(**amounts: int) -> dict[str, int]:
    """`cores(cpu=4, gpu=2)` in thousandths."""
    names = {"gpu": GPU}
    return {names.get(name, name): amount * 1000 for name, amount in amounts.items()}


class Board:
    def __init__(self, **settings: Any) -> None:
        self.view = ClusterView(PlannerSettings(**settings))
        self.now = 1000.0

    def node(self, name: str, *, cpu: int = 1, gpu: int = 0, memory: int = 1000, pods: int = 110, **more: Any) -> None:
        amounts = {"cpu": cpu * 1000, "memory": memory * 1000, "pods": pods * 1000}
        self.view.set_node(Node(name, amounts | ({GPU: gpu * 1000} if gpu else {}), **more))

    def nodes(self, count: int, **more: Any) -> None:
        for number in range(count):
            self.node(f"n{number}", **more)

    def queue(self, name: str, **more: Any) -> None:
        self.view.set_queue(Queue(name, **more))

    def group(self, name: str, pods: int = 0, *, cpu: int = 1, gpu: int = 0, memory: int = 0, **more: Any) -> None:
        """A gang and its waiting pods; by default all of them are its minimum."""
        pod_fields = {field: more.pop(field) for field in list(more) if field in POD_FIELDS}
        more.setdefault("min_member", pods)
        more.setdefault("phase", PodGroupPhase.INQUEUE)
        more.setdefault("created", self.now)
        more.setdefault("uid", name)
        self.view.set_group(PodGroup(key(name), **more))
        self.pods(name, range(pods), cpu=cpu, gpu=gpu, memory=memory, **pod_fields)

    def pods(
        self, group: str, numbers: Iterable[int], *, cpu: int = 1, gpu: int = 0, memory: int = 0, **more: Any
    ) -> None:
        asked = cores(cpu=cpu, gpu=gpu, memory=memory, pods=1)
        asked = {name: amount for name, amount in asked.items() if amount}
        role = more.get("role", "")
        for number in numbers:
            name = f"{group}-{role}-{number}" if role else f"{group}-{number}"
            self.view.set_pod(Pod(key(name), f"uid-{name}", asked, group=key(group), index=number, **more))

    def running(self, name: str, pods: int, nodes: Iterable[str], **more: Any) -> None:
        """A gang whose pods sit on these nodes, one each in turn."""
        since = more.pop("since", self.now)
        self.group(name, pods, phase=PodGroupPhase.RUNNING, ran=True, **more)
        places = list(nodes)
        for number, pod in enumerate(list(self.view.groups[key(name)].waiting.values())):
            place = places[number % len(places)]
            self.view.set_pod(replace(pod, node=place, state=PodState.RUNNING, since=since))

    def cycle(self, *, later: float = 0.0) -> Plan:
        self.now += later
        made = plan(self.view, self.now)
        assert plan(self.view, self.now) == made, "planning changed what was planned from"
        self.view.assume(made, self.now)
        return made

    def starts(self) -> None:
        for pod in list(self.view.pods.values()):
            if pod.state is PodState.BOUND:
                self.view.set_pod(replace(pod, state=PodState.RUNNING))

    def leaves(self) -> None:
        for pod in list(self.view.pods.values()):
            if pod.state is PodState.RELEASING:
                self.view.remove_pod(pod.key)

    def finishes(self, group: str) -> None:
        for pod in [pod for pod in self.view.pods.values() if pod.group == key(group)]:
            self.view.remove_pod(pod.key)
        self.view.remove_group(key(group))

    def removes(self, pod: str) -> None:
        self.view.remove_pod(key(pod))

    def on_nodes(self, group: str) -> dict[str, str]:
        """Pod to node, of those that have one and stay."""
        gang = self.view.groups.get(key(group))
        return {} if gang is None else {pod.key.name: pod.node for pod in gang.placed.values()}


POD_FIELDS = {field for field in Pod.__dataclass_fields__ if field not in PodGroup.__dataclass_fields__} | {"labels"}


def binds(made: Plan) -> dict[str, str]:
    return {bind.pod.name: bind.node for bind in made.binds}


def evicted(made: Plan) -> list[str]:
    return sorted(eviction.pod.name for eviction in made.evictions)


def shrunk(made: Plan) -> list[str]:
    return sorted(eviction.pod.name for shrink in made.shrinks for eviction in shrink.evictions)


def verdict(made: Plan, group: str) -> GroupResult:
    return next(found for found in made.groups if found.group == key(group))


def message(code: str, /, **parameters: Any) -> Message:
    return Message(code, parameters)


def causes(made: Plan, group: str) -> list[Message]:
    """Why the group waits: the cause of its message, or the parts of it."""
    cause = verdict(made, group).message.parameters["cause"]
    return list(cause.parameters["parts"]) if cause.code == "All" else [cause]


def said(made: Plan, group: str) -> str:
    return text(verdict(made, group).message)
