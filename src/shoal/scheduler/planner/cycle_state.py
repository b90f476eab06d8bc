"""The state of one cycle: what was decided so far, and which groups nothing could be done for and why.

`planner.plan` is the sequence; the steps (`enqueue`, `allocate`, `reservation`, `preemption`) write their decisions
here, and `results` turns them into messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from shoal.kube.messages import Message
from shoal.kube.objects import Key
from shoal.kube.quantity_format import Amounts
from shoal.scheduler.planner.cluster_view import ClusterView
from shoal.scheduler.planner.disruption_budgets import BudgetAllowance, DisruptionBudgets
from shoal.scheduler.planner.fair_share import FairShares, ShareExceeded
from shoal.scheduler.planner.gang import Gang, in_line
from shoal.scheduler.planner.gang_placement import GangPlacer
from shoal.scheduler.planner.gang_types import PodGroupPhase
from shoal.scheduler.planner.node_and_pod_types import RELEASING, Pod
from shoal.scheduler.planner.placement import NodeFilter, Placement
from shoal.scheduler.planner.plan_types import Evict, ShrinkRequest
from shoal.scheduler.planner.resource_vectors import Mask, Vector

if TYPE_CHECKING:
    from shoal.scheduler.planner.preemption_candidates import EvictionStep

Asked = tuple[tuple[str, int], ...]
Obstacle = Literal["capacity", "quota", "queue", "pods", "order", "leaving", "backoff", "claims"]


@dataclass(frozen=True, slots=True)
class BlockReason:
    """Why a gang got nothing: the kind of obstacle, and what the message needs."""

    obstacle: Obstacle
    refusal: ShareExceeded | None = None
    cause: Message | None = None  # where the obstacle and the figures do not say it
    reason: str = ""
    quota: Key | None = None  # of the namespace: the refusal is its, not a queue's
    over_cluster: bool = False  # the refusal is the cluster's, not a queue's
    leaving: int = 0  # how many pods were requested to leave for it
    kept: Message | None = None  # by which budgets, where those would have given way


@dataclass(slots=True)
class GroupRecord:
    """What the plan means to remember of a group."""

    phase: PodGroupPhase
    inqueue_since: float | None
    not_before: float
    timeouts: int


class CycleState:
    def __init__(self, view: ClusterView, now: float) -> None:
        self.view = view
        self.now = now
        self.settings = view.settings
        self.resources = view.resources
        self.shares = FairShares(view)
        self.gangs = GangPlacer(view)
        self.records: dict[Key, GroupRecord] = {}
        self.bound: dict[Key, list[Placement]] = {}
        self.promised: dict[Key, list[Placement]] = {}
        self.blocked: dict[Key, BlockReason] = {}
        self.lines: dict[str, list[Gang]] = {}  # per queue those that could not start, in their order
        self.evictions: list[Evict] = []
        self.shrinks: list[ShrinkRequest] = []
        # Rejections per queue, by the request: what a queue rejects once it rejects for the whole plan.
        self.refused: dict[str, dict[Asked, BlockReason]] = {}
        self.refused_claimants: dict[str, dict[Asked, BlockReason]] = {}  # for which others' claims do not count
        self.unplaceable: set[object] = set()  # kinds of gangs for which there was no room, and there only gets less
        self.claimants: set[Key] = set()
        self.undone: set[Key] = set()
        self.searches = 0
        self.ways: list[str] = []  # by which room was made, for one group each
        self.allowance = BudgetAllowance(view.budgets)
        self.given_up: set[Key] = set()  # pods that leave by this plan
        self.steps: dict[Key, tuple[EvictionStep, ...]] = {}  # by which each group could be evicted, on demand
        self.queue_steps: dict[str, list[EvictionStep]] = {}  # the same of whole queues, in their order
        self._without_budgets: tuple[
            BudgetAllowance, dict[Key, tuple[EvictionStep, ...]], dict[str, list[EvictionStep]]
        ]
        self._without_budgets = (BudgetAllowance(DisruptionBudgets()), {}, {})
        self.devices: dict[Vector, float] = {}  # how many a pod with such a request loses time on
        self.reservations: dict[Key, tuple[str, ...]] = {}
        self.closed: Mask | None = None  # nodes kept for a group that waited too long
        self.reserved_start: float | None = None
        self.wake_at: float | None = None

    def record(self, gang: Gang) -> GroupRecord:
        found = self.records.get(gang.key)
        if found is None:
            group = gang.group
            found = GroupRecord(group.phase, group.inqueue_since, group.not_before, group.timeouts)
            self.records[gang.key] = found
        return found

    def phase(self, gang: Gang) -> PodGroupPhase:
        if not self.records:
            return gang.group.phase
        found = self.records.get(gang.key)
        return gang.group.phase if found is None else found.phase

    def wake(self, at: float) -> None:
        """Plan again then; `at` may be infinite, for what never happens."""
        if self.now < at < float("inf") and (self.wake_at is None or at < self.wake_at):
            self.wake_at = at

    def deadline(self, gang: Gang) -> float:
        """When the group's promised waiting time ends; never, where none was promised."""
        seconds = gang.group.sla_seconds
        if seconds is None:
            seconds = self.settings.sla_seconds
        return float("inf") if seconds is None else gang.group.created + seconds

    def is_starving(self, gang: Gang) -> bool:
        """Whether it has waited longer than any group should."""
        until = self._starves_at(gang)
        self.wake(until)
        return self.now >= until

    def _starves_at(self, gang: Gang) -> float:
        until = gang.starves_at
        if until is None:
            since = gang.group.created
            if gang.group.ran:  # it waits for a replacement: since the last pod found a place
                since = max((pod.since for pod in gang.placed.values()), default=since)
            until = gang.starves_at = min(since + self.settings.starving_seconds, self.deadline(gang))
        return until

    def respects_claims(self, gang: Gang) -> bool:
        """Whether others' claims count as held for it: not for claimants, nor for gangs that lost a pod.

        The latter hold nodes themselves and end only if they are completed; the claims may be waiting for those nodes.
        """
        return gang.key not in self.claimants and not gang.is_broken

    def refusal(self, gang: Gang, asked: Mapping[str, int], *, beyond_deserved: bool = False) -> ShareExceeded | None:
        """Which queue of its line has no more to give; None for pods that count against no queue."""
        if not gang.group.is_charged:
            return None
        claims, queue = self.respects_claims(gang), gang.group.queue
        return self.shares.refusal(queue, asked, beyond_deserved=beyond_deserved, claims=claims)

    def order(self, gang: Gang) -> tuple[object, ...]:
        """Sort key, smallest first.
        Of equal priority those that have waited too long precede all others, by age: promised waiting times and shares
        would place newer ones before them without an end."""
        placed = self.bound.get(gang.key) if self.bound else None
        if not (placed or gang.placed or gang.finished):
            if self.now >= self._starves_at(gang):
                return in_line(gang.group, ready=False, broken=False, deadline=float("-inf"), share=0.0)
            return gang.place_in_line or gang.queue_order(self.deadline(gang))
        deadline = self.deadline(gang)
        ready, broken = bool(placed) or gang.is_whole, gang.is_broken
        allocated = dict(gang.allocated)
        add_requests(allocated, placed or (), self.view)
        share = self.shares.dominant(allocated)
        return in_line(gang.group, ready=ready, broken=broken, deadline=deadline, share=share)

    def node_filter(self, gang: Gang, *, later: bool = False) -> NodeFilter:
        """Nodes kept for another group are closed, except to guests and to those that end in time.

        And to gangs that lost a pod: they hold nodes themselves, and end only if they are completed.
        """
        group = gang.group
        if self.closed is None or group.preemptible_guest or gang.key in self.reservations or gang.is_broken:
            return NodeFilter(None, later)
        start, lasts = self.reserved_start, group.estimate_seconds
        if start is not None and lasts is not None and self.now + lasts <= start:
            return NodeFilter(None, later)
        return NodeFilter(~self.closed, later)

    def bind(self, gang: Gang, placed: list[Placement], asked: Amounts | None = None) -> None:
        """`asked` is what the placed pods request, if already computed."""
        self.bound.setdefault(gang.key, []).extend(placed)
        self._charge(gang, placed, asked)

    def nominate(self, gang: Gang, placed: list[Placement]) -> None:
        self.promised[gang.key] = placed
        self._charge(gang, placed)

    @contextmanager
    def without_budgets(self) -> Iterator[None]:
        """As if no budget kept any pod, to see whether that is what a group waits for."""
        kept = self.allowance, self.steps, self.queue_steps
        self.allowance, self.steps, self.queue_steps = self._without_budgets
        try:
            yield
        finally:
            self.allowance, self.steps, self.queue_steps = kept

    def clear_steps(self, gang: Gang) -> None:
        """It gave way: what else it could do is worked out again."""
        _, steps, queue_steps = self._without_budgets
        for table in (self.steps, steps):
            table.pop(gang.key, None)
        for lines in (self.queue_steps, queue_steps):
            lines.pop(gang.group.queue, None)

    def assume_evicted(self, pod: Pod) -> None:
        """Suppose that a pod on a node leaves, until the node resources are rolled back."""
        row = self.resources.rows.get(pod.node)
        if row is not None and pod.state is not RELEASING:
            self._suppose(pod, row, self.view.devices.seats(pod))

    def assume_finished(self, placed: Placement) -> None:
        """Suppose that a pod placed by this plan has run and gone."""
        self._suppose(placed.pod, placed.row, placed.devices)

    def _suppose(self, pod: Pod, row: int, seats: tuple[int, ...]) -> None:
        neighbours, devices = self.view.affinity, self.view.devices
        self.resources.assume_evicted(row, self.view.vector_of(pod))
        neighbours.add(pod, row, -1)
        self.resources.note(lambda: neighbours.add(pod, row, 1))
        if seats:
            devices.assume_evicted(row, seats, pod.gpu_milli)
            self.resources.note(lambda: devices.assume_evicted(row, seats, pod.gpu_milli, -1))

    def _charge(self, gang: Gang, placed: list[Placement], asked: Amounts | None = None) -> None:
        if not gang.group.is_charged:
            return
        if asked is None:
            asked = {}
            add_requests(asked, placed, self.view)
        self.shares.charge(gang.group.queue, asked.items())


def add_requests(amounts: Amounts, placed: Iterable[Placement], view: ClusterView) -> None:
    for one in placed:
        for name, amount in view.vector_of(one.pod).counted:
            amounts[name] = amounts.get(name, 0) + amount


def asked_at_least(gang: Gang, view: ClusterView) -> Amounts:
    """What the minimum requests: the units' first pods, then as many others as are missing."""
    minimum = gang.minimum()
    if minimum.asked is None:
        asked: Amounts = {}
        for pod in minimum.least():
            for name, amount in view.vector_of(pod).counted:
                asked[name] = asked.get(name, 0) + amount
        minimum.asked, minimum.alike = asked, tuple(sorted(asked.items()))
    return minimum.asked
