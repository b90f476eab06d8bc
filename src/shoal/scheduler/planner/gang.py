"""A gang with its pods: which wait, which are on nodes, and what is still missing for it to start.

A pod without a group is a gang of one. The counts follow the terms of the PodGroup API: *ready* are the pods that are
on a node and stay, and those that succeeded; *scheduled* are besides them the failed and the leaving ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from shoal.kube.messages import Message
from shoal.kube.objects import Key
from shoal.kube.quantity_format import Amounts
from shoal.kube.times import parse
from shoal.scheduler.planner.gang_types import (
    COMPLETED,
    INQUEUE,
    PENDING,
    RUNNING,
    UNKNOWN,
    PodGroup,
    PodGroupPhase,
    SubgroupPolicy,
    TopologyConstraint,
)
from shoal.scheduler.planner.node_and_pod_types import OVER, RELEASING, SUCCEEDED, Pod
from shoal.scheduler.planner.resource_vectors import RequestTally

if TYPE_CHECKING:
    from shoal.scheduler.planner.equivalence_classes import EquivalenceClass


@dataclass(frozen=True, slots=True)
class PlacementUnit:
    """Pods of which `must` have to be placed together; or `parts`, of which `must` have to be placed whole."""

    pods: tuple[Pod, ...]
    must: int
    name: str = ""
    closeness: TopologyConstraint | None = None
    parts: tuple[PlacementUnit, ...] = ()


@dataclass(slots=True)
class Minimum:
    """What has to be placed at once before the gang may start: every unit, and `total` pods in all."""

    units: tuple[PlacementUnit, ...]
    total: int
    pods: tuple[Pod, ...]  # all that could be used
    asked: Amounts | None = None  # what the least of them request; worked out when first needed
    alike: tuple[tuple[str, int], ...] = ()  # the same as a key: equal requests have equal results
    eq_classes: list[EquivalenceClass] | None = None  # of all of them, likewise
    kind: object = None  # see `Gangs.kind`; False where there is none

    def __bool__(self) -> bool:
        return bool(self.units) or self.total > 0

    def least(self) -> Sequence[Pod]:
        """The pods of the smallest start: the units' first ones, then as many others as are missing."""
        if not self.units:
            return self.pods[: self.total]
        parts = [part for unit in self.units for part in (unit.parts[: unit.must] or (unit,))]
        chosen = {pod.key: pod for part in parts for pod in part.pods[: part.must]}
        for pod in self.pods:
            if len(chosen) >= self.total:
                break
            chosen.setdefault(pod.key, pod)
        return list(chosen.values())


class Gang:
    def __init__(self, group: PodGroup, *, known: bool, lone: bool = False) -> None:
        self.key = group.key
        self.group = group
        self.known = known  # whether the PodGroup itself was seen
        self.lone = lone
        self.waiting: dict[Key, Pod] = {}
        self.gated: dict[Key, Pod] = {}
        self.placed: dict[Key, Pod] = {}
        self.terminating: dict[Key, Pod] = {}
        self.finished: dict[Key, Pod] = {}
        self.held = RequestTally()  # by the pods that sit and stay
        self.wanted = RequestTally()  # by those that wait
        self.nominated: dict[Key, str] = {}
        self.deleted_pods = 0  # pods that sat on a node and are gone, since the gang was last whole
        self._minimum: Minimum | None = None
        self._first: Pod | None = None
        # Among groups that have no pod on a node yet: this changes only with the group.
        self.place_in_line: tuple[object, ...] | None = None
        self.starves_at: float | None = None  # when it will have waited too long; `Cycle.is_starving` works it out
        self._lack: tuple[str, Message] | Literal["unasked"] | None = "unasked"
        self._has_stayers: bool | None = None

    @property
    def allocated(self) -> Amounts:
        return self.held.amounts

    @property
    def name(self) -> str:
        """As messages name it."""
        return self.group.title or self.group.key.name.removeprefix(LONE)

    def pods_in_state(self, pod: Pod) -> dict[Key, Pod]:
        """The place among the five where a pod in this state is kept."""
        state = pod.state
        if state in OVER:
            return self.finished
        if pod.node:
            return self.terminating if state is RELEASING else self.placed
        return self.gated if pod.gated or state is RELEASING else self.waiting

    def changed(self) -> None:
        if self.deleted_pods and self.ready >= self.group.min_member:
            self.deleted_pods = 0
        self._minimum = None
        self._first = None
        self.place_in_line = None
        self.starves_at = None
        self._lack = "unasked"
        self._has_stayers = None

    def queue_order(self, deadline: float) -> tuple[object, ...]:
        self.place_in_line = in_line(self.group, ready=False, broken=False, deadline=deadline, share=0.0)
        return self.place_in_line

    def first_sitting(self) -> Pod:
        """The first by name of the pods on nodes: one that represents all."""
        if self._first is None:
            self._first = self.placed[min(self.placed)]
        return self._first

    @property
    def has_unevictable(self) -> bool:
        """Whether one of its pods may not be sent away, whatever budgets say."""
        if self._has_stayers is None:
            self._has_stayers = not all(self.may_evict(pod) for pod in self.placed.values())
        return self._has_stayers

    def may_evict(self, pod: Pod) -> bool:
        """Whether a pod of this group may be taken for others, whatever budgets say.

        A pod that no controller recreates is lost with its eviction, so it needs a word of its own or of its group.
        """
        if pod.stays:
            return False
        return pod.recreated or pod.preemptable is True or self.group.preemptible_guest or self.group.elastic

    @property
    def is_reclaimable(self) -> bool:
        """Whether other queues may take its pods: of those without a group only the ones declared preemptable."""
        return not self.lone or self.group.preemptible_guest

    def is_empty(self) -> bool:
        return not (self.waiting or self.gated or self.placed or self.terminating or self.finished)

    @property
    def succeeded(self) -> int:
        return sum(pod.state is SUCCEEDED for pod in self.finished.values())

    @property
    def ready(self) -> int:
        return len(self.placed) + self.succeeded if self.finished else len(self.placed)

    @property
    def scheduled(self) -> int:
        return len(self.placed) + len(self.terminating) + len(self.finished)

    @property
    def lost(self) -> int:
        """Pods that are being deleted, but not by the controller of their job."""
        return sum(not pod.evicted_by_controller for pod in self.terminating.values())

    @property
    def is_incomplete(self) -> bool:
        """Ran, and runs with fewer pods than its minimum because it lost some, not because the minimum was raised."""
        if not (self.group.ran and self.placed):
            return False
        lost = self.lost
        return bool(lost or self.deleted_pods) and self.scheduled - lost < self.group.min_member

    def candidates(self) -> list[Pod]:
        """Waiting pods in pod order. One made by a newer state of the job than the cached group waits for it."""
        known = self.group.generation
        found = [pod for pod in self.waiting.values() if pod.generation <= known]
        return sorted(found, key=pod_order)

    @property
    def is_whole(self) -> bool:
        """Ready in every sense: the minimum, each role's, each subgroup policy's."""
        return self.ready >= self.group.min_member and not self.minimum()

    @property
    def is_broken(self) -> bool:
        """Ran whole once and has lost a pod since."""
        return self.group.ran and not self.is_whole and bool(self.placed)

    def minimum(self) -> Minimum:
        if self._minimum is None:
            pods = tuple(self.candidates())
            units = tuple(unit for unit in self._units(pods) if unit.must > 0)
            self._minimum = Minimum(units, max(self.group.min_member - self.ready, 0), pods)
        return self._minimum

    def surplus(self) -> tuple[Pod, ...]:
        """Waiting pods beyond the minimum, once that is reached."""
        return self.minimum().pods

    def _units(self, pods: tuple[Pod, ...]) -> Iterable[PlacementUnit]:
        for policy in self.group.subgroups:
            yield self._subgroups(policy, pods)
        roles = self.counted_roles()
        sitting = self._ready_roles() if roles else Counter()
        for role, least in roles.items():
            yield PlacementUnit(tuple(pod for pod in pods if pod.role == role), least - sitting[role], role)

    def counted_roles(self) -> dict[str, int]:
        """The minimum per role; roles do not count where they require more than the whole group's minimum."""
        roles = self.group.min_roles
        return dict(sorted(roles.items())) if roles and sum(roles.values()) <= self.group.min_member else {}

    def _ready_roles(self) -> Counter[str]:
        counted = Counter(pod.role for pod in self.placed.values())
        counted.update(pod.role for pod in self.finished.values() if pod.state is SUCCEEDED)
        return counted

    def _subgroups(self, policy: SubgroupPolicy, pods: tuple[Pod, ...]) -> PlacementUnit:
        """The subgroups that could be made whole, those already begun first."""
        sitting = Counter(subgroup_of(policy, pod) for pod in self.placed.values())
        whole = sum(number >= policy.size for value, number in sitting.items() if value is not None)
        waiting: dict[tuple[str, ...], list[Pod]] = {}
        for pod in pods:
            found = subgroup_of(policy, pod)
            if found is not None:
                waiting.setdefault(found, []).append(pod)
        parts = []
        for value in sorted(waiting, key=lambda value: (sitting[value] == 0, value)):
            must = policy.size - sitting[value]
            if 0 < must <= len(waiting[value]):
                parts.append(PlacementUnit(tuple(waiting[value]), must, policy.name, policy.closeness))
        must = policy.minimum - whole
        if not policy.minimum and policy.closeness is not None:
            must = self._subgroups_within_minimum(parts)
        return PlacementUnit((), must, policy.name, parts=tuple(parts))

    def _subgroups_within_minimum(self, parts: Sequence[PlacementUnit]) -> int:
        """How many subgroups the missing pods of the minimum make whole, where the policy states no number."""
        least, ready = self.counted_roles(), self._ready_roles()
        missing = self.group.min_member - self.ready
        if least and parts:
            roles = {pod.role for part in parts for pod in part.pods}
            missing = sum(max(least.get(role, 0) - ready[role], 0) for role in roles)
        for count, part in enumerate(parts):
            missing -= part.must
            if missing < 0:
                return count
        return len(parts)

    def missing(self) -> tuple[str, Message] | None:
        """The reason and the message where too few pods exist for the minimum, whatever is free."""
        if self._lack == "unasked":
            self._lack = self._find_missing()
        return self._lack

    def _find_missing(self) -> tuple[str, Message] | None:
        group = self.group
        # Counted before they are sorted: the pods of a large gang arrive one by one, and this runs for each.
        exist = sum(pod.generation <= group.generation for pod in self.waiting.values()) + self.ready
        gated = [pod for pod in self.gated.values() if pod.gated]
        if exist < group.min_member:
            return "NotEnoughTasks", _too_few(exist, group.min_member, gated=len(gated))
        pods = self.minimum().pods
        roles = self.counted_roles()
        counted = self._ready_roles() if roles else Counter()
        counted.update(pod.role for pod in pods if roles)
        for role, least in roles.items():
            if counted[role] < least:
                held = sum(pod.role == role for pod in gated)
                return "NotEnoughPodsOfTask", _too_few(counted[role], least, role=role, gated=held)
        for unit in self.minimum().units:
            if max(len(unit.pods), len(unit.parts)) < unit.must:
                return "NotEnoughPodsOfTask", Message("Members.Subgroups", {"unit": unit.name})
        return None

    def phase(self, *, unplaced: bool) -> PodGroupPhase:
        """The phase by the pods as they are; `unplaced`: a plan could not place enough of the rest."""
        group = self.group
        if self.is_incomplete:
            return UNKNOWN
        if self.scheduled >= group.min_member and self.scheduled:
            over = not self.placed and not self.terminating and not self.waiting
            return COMPLETED if over else RUNNING
        if unplaced and self.placed:
            return UNKNOWN
        if group.phase is INQUEUE or (group.phase is UNKNOWN and self.placed):
            return group.phase
        return INQUEUE if self.placed else PENDING


def in_line(group: PodGroup, *, ready: bool, broken: bool, deadline: float, share: float) -> tuple[object, ...]:
    """Sort key, smallest first."""
    return -group.priority, ready, not broken, deadline, share, group.created, group.uid, group.key


def _too_few(exist: int, least: int, *, role: str = "", gated: int) -> Message:
    """Of the gang or one task: that pods do not exist or, where there are enough, that some have scheduling gates."""
    count = {"exist": exist, "least": least}
    members = Message("Members.CountOfRole", {**count, "role": role}) if role else Message("Members.Count", count)
    if exist + gated < least:
        return Message("Members.Missing", {"members": members})
    if gated == 1:
        return Message("Members.OneGated", {"members": members})
    return Message("Members.Gated", {"members": members, "gated": gated})


LONE = "pod:"  # no group can have such a name


@lru_cache(maxsize=256)  # in whole seconds, so pods created together share theirs
def _moment(text: str) -> float:
    return parse(text).timestamp() if text else 0.0


def lone_group(pod: Pod) -> PodGroup:
    return PodGroup(
        Key(pod.key.namespace, f"{LONE}{pod.key.name}"),
        uid=pod.uid,
        created=_moment(pod.created),
        queue=pod.queue or "default",
        priority=pod.priority,
        phase=INQUEUE,
        preemptible_guest=pod.preemptable is True,
        is_charged=bool(pod.queue) or pod.preemptable is True,
        generation=pod.generation,
    )


def pod_order(pod: Pod) -> tuple[int, int, str, Key]:
    return -pod.priority, pod.index, pod.created, pod.key


def subgroup_of(policy: SubgroupPolicy, pod: Pod) -> tuple[str, ...] | None:
    """The label values that name the pod's subgroup; None where the policy is not about it."""
    if not policy.selector.matches(pod.labels):
        return None
    return tuple(pod.labels.get(key, "") for key in policy.label_keys)
