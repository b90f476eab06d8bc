"""What is assumed of pods until a watch shows it: that they are bound to a node, or that they terminate."""

from __future__ import annotations

from dataclasses import dataclass, replace

from shoal.kube.objects import Key
from shoal.scheduler.planner.node_and_pod_types import Pod, PodState
from shoal.scheduler.planner.plan_types import Bind, Plan


@dataclass(frozen=True, slots=True)
class AssumedBind:
    uid: str
    node: str
    since: float
    devices: tuple[int, ...]


class AssumedPods:
    def __init__(self) -> None:
        self.binds: dict[Key, AssumedBind] = {}
        self._evictions: dict[Key, str] = {}  # uids of pods that are being evicted, or reclaimed

    def assume(self, made: Plan, now: float) -> None:
        for bind in made.binds:
            self.binds[bind.pod] = AssumedBind(bind.uid, bind.node, now, bind.devices)
        for eviction in made.evictions:
            self._evictions[eviction.pod] = eviction.uid
        for shrink in made.shrinks:
            for eviction in shrink.evictions:
                self._evictions[eviction.pod] = eviction.uid

    def bound(self, pod: Pod) -> Pod:
        """The pod on its node; an event that shows the node, or another pod of that name, ends the assumption."""
        bind = self.binds.get(pod.key)
        if bind is None:
            return pod
        if pod.node or pod.state is not PodState.PENDING or bind.uid != pod.uid:
            del self.binds[pod.key]
            return pod
        return pod.moved(node=bind.node, state=PodState.BOUND, since=bind.since, devices=bind.devices)

    def releasing(self, pod: Pod) -> Pod:
        """The pod as terminating, if its eviction was decided."""
        if self._evictions.get(pod.key) == pod.uid and pod.state in (PodState.BOUND, PodState.RUNNING):
            return replace(pod, state=PodState.RELEASING)
        return pod

    def cancel_bind(self, bind: Bind) -> bool:
        """Returns whether it was assumed."""
        assumed = self.binds.get(bind.pod)
        if assumed is None or assumed.uid != bind.uid:
            return False
        del self.binds[bind.pod]
        return True

    def cancel_eviction(self, pod: Key, uid: str) -> bool:
        """Returns whether it was assumed."""
        if self._evictions.get(pod) != uid:
            return False
        del self._evictions[pod]
        return True

    def forget(self, pod: Key) -> None:
        self.binds.pop(pod, None)
        self._evictions.pop(pod, None)
