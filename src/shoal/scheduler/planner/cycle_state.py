"""The state of one plan on its way: what was decided so far, and for whom nothing could be done and why.

`planner.plan` tells the story; the steps (`enqueueing`, `allocating`, `reserving`, `evicting`) write their decisions
here, and `verdicts` puts them into words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from shoal.kube.objects import Key
from shoal.kube.quantity_format import Amounts
from shoal.scheduler.planner.cache import ClusterView
from shoal.scheduler.planner.disruption_budgets import Allowance, Budgets
from shoal.scheduler.planner.fair_share import Refusal, Shares
from shoal.scheduler.planner.gang import Members, in_line
from shoal.scheduler.planner.gang_placement import Gangs
from shoal.scheduler.planner.gang_types import Phase
from shoal.scheduler.planner.placement import Placed, Where
from shoal.scheduler.planner.plan_types import Evict, Shrink
from shoal.scheduler.planner.resource_vectors import Mask, Vector
from shoal.scheduler.planner.snapshot_types import RELEASING, Pod

if TYPE_CHECKING:
    from shoal.scheduler.planner.preemption_candidates import Step

Asked = tuple[tuple[str, int], ...]
Obstacle = Literal["capacity", "quota", "queue", "pods", "order", "leaving", "backoff", "claims"]


@dataclass(frozen=True, slots=True)
class Standstill:
    """Why a gang got nothing: the kind of obstacle, and what the sentence needs."""

    obstacle: Obstacle
    refusal: Refusal | None = None
    words: str = ""
    reason: str = ""
    over_cluster: bool = False  # the refusal is the cluster's, not a queue's
    kept: str = ""  # by which budgets, where those would have given way


@dataclass(slots=True)
class Record:
    """What the plan means to remember of a group."""

    phase: Phase
    inqueue_since: float | None
    not_before: float
    timeouts: int


class Cycle:
    def __init__(self, view: ClusterView, now: float) -> None:
        self.view = view
        self.now = now
        self.settings = view.settings
        self.room = view.room
        self.shares = Shares(view)
        self.gangs = Gangs(view)
        self.records: dict[Key, Record] = {}
        self.bound: dict[Key, list[Placed]] = {}
        self.promised: dict[Key, list[Placed]] = {}
        self.still: dict[Key, Standstill] = {}
        self.lines: dict[str, list[Members]] = {}  # per queue those that could not start, in their order
        self.evictions: list[Evict] = []
        self.shrinks: list[Shrink] = []
        # What a queue refused once it refuses until the plan is made: per queue, by what was asked for.
        self.refused: dict[str, dict[Asked, Standstill]] = {}
        self.refused_claimants: dict[str, dict[Asked, Standstill]] = {}  # to whom what others claim does not count
        self.unplaceable: set[object] = set()  # kinds of gangs for which there was no room, and there only gets less
        self.claimants: set[Key] = set()
        self.undone: set[Key] = set()
        self.searches = 0
        self.ways: list[str] = []  # by which room was made, for one group each
        self.allowance = Allowance(view.budgets)
        self.given_up: set[Key] = set()  # pods that leave by this plan
        self.steps: dict[Key, tuple[Step, ...]] = {}  # by which each group could give way, as far as asked
        self.queue_steps: dict[str, list[Step]] = {}  # the same of whole queues, in their order
        self._without_budgets: tuple[Allowance, dict[Key, tuple[Step, ...]], dict[str, list[Step]]]
        self._without_budgets = (Allowance(Budgets()), {}, {})
        self.devices: dict[Vector, float] = {}  # how many a pod with such a request loses time on
        self.reservations: dict[Key, tuple[str, ...]] = {}
        self.closed: Mask | None = None  # nodes kept for somebody who waited too long
        self.reserved_start: float | None = None
        self.wake_at: float | None = None

    def record(self, members: Members) -> Record:
        found = self.records.get(members.key)
        if found is None:
            group = members.group
            found = Record(group.phase, group.inqueue_since, group.not_before, group.timeouts)
            self.records[members.key] = found
        return found

    def phase(self, members: Members) -> Phase:
        if not self.records:
            return members.group.phase
        found = self.records.get(members.key)
        return members.group.phase if found is None else found.phase

    def wake(self, at: float) -> None:
        """Plan again then; `at` may be infinite, for what never comes."""
        if self.now < at < float("inf") and (self.wake_at is None or at < self.wake_at):
            self.wake_at = at

    def deadline(self, members: Members) -> float:
        """When the group's promised waiting time ends; never, where none was promised."""
        seconds = members.group.sla_seconds
        if seconds is None:
            seconds = self.settings.sla_seconds
        return float("inf") if seconds is None else members.group.created + seconds

    def is_starving(self, members: Members) -> bool:
        """Waited longer than anybody should."""
        until = self._starves_at(members)
        self.wake(until)
        return self.now >= until

    def _starves_at(self, members: Members) -> float:
        until = members.starves_at
        if until is None:
            since = members.group.created
            if members.group.ran:  # it waits for a replacement: since the last pod found a place
                since = max((pod.since for pod in members.sitting.values()), default=since)
            until = members.starves_at = min(since + self.settings.starving_seconds, self.deadline(members))
        return until

    def heeds_claims(self, members: Members) -> bool:
        """Whether what others claim counts as held to it: not to those who claim, nor to those who lost somebody.

        The latter hold nodes themselves and end only if they are completed; the claims may be waiting for those nodes.
        """
        return members.key not in self.claimants and not members.is_broken

    def refusal(self, members: Members, asked: Mapping[str, int], *, beyond_deserved: bool = False) -> Refusal | None:
        """Which queue of its line has no more to give; None for pods that count against no queue."""
        if not members.group.is_charged:
            return None
        claims, queue = self.heeds_claims(members), members.group.queue
        return self.shares.refusal(queue, asked, beyond_deserved=beyond_deserved, claims=claims)

    def order(self, members: Members) -> tuple[object, ...]:
        """Smaller goes first. Of equal priority those that have waited too long come before all others, by age:
        promised waiting times and shares would let newer ones pass them without an end."""
        placed = self.bound.get(members.key) if self.bound else None
        if not (placed or members.sitting or members.finished):
            if self.now >= self._starves_at(members):
                return in_line(members.group, ready=False, broken=False, deadline=float("-inf"), share=0.0)
            return members.place_in_line or members.stand_in_line(self.deadline(members))
        deadline = self.deadline(members)
        ready, broken = bool(placed) or members.is_whole, members.is_broken
        allocated = dict(members.allocated)
        add_requests(allocated, placed or (), self.view)
        share = self.shares.dominant(allocated)
        return in_line(members.group, ready=ready, broken=broken, deadline=deadline, share=share)

    def where(self, members: Members, *, later: bool = False) -> Where:
        """Nodes kept for somebody else are closed, except to guests and to those that end in time.

        And to gangs that lost somebody: they hold nodes themselves, and end only if they are completed.
        """
        group = members.group
        if self.closed is None or group.guest or members.key in self.reservations or members.is_broken:
            return Where(None, later)
        start, lasts = self.reserved_start, group.estimate_seconds
        if start is not None and lasts is not None and self.now + lasts <= start:
            return Where(None, later)
        return Where(~self.closed, later)

    def bind(self, members: Members, placed: list[Placed], asked: Amounts | None = None) -> None:
        """`asked` is what the placed pods request, where that is known."""
        self.bound.setdefault(members.key, []).extend(placed)
        self._charge(members, placed, asked)

    def promise(self, members: Members, placed: list[Placed]) -> None:
        self.promised[members.key] = placed
        self._charge(members, placed)

    @contextmanager
    def without_budgets(self) -> Iterator[None]:
        """As if no budget kept anybody, to see whether that is what somebody waits for."""
        kept = self.allowance, self.steps, self.queue_steps
        self.allowance, self.steps, self.queue_steps = self._without_budgets
        try:
            yield
        finally:
            self.allowance, self.steps, self.queue_steps = kept

    def forget_steps(self, members: Members) -> None:
        """It gave way: what else it could do is worked out again."""
        _, steps, queue_steps = self._without_budgets
        for table in (self.steps, steps):
            table.pop(members.key, None)
        for lines in (self.queue_steps, queue_steps):
            lines.pop(members.group.queue, None)

    def suppose_gone(self, pod: Pod) -> None:
        """Suppose that a pod on a node goes, until the room is rolled back."""
        row = self.room.rows.get(pod.node)
        if row is not None and pod.state is not RELEASING:
            self._suppose(pod, row, self.view.devices.seats(pod))

    def suppose_over(self, placed: Placed) -> None:
        """Suppose that a pod placed by this plan has run and gone."""
        self._suppose(placed.pod, placed.row, placed.devices)

    def _suppose(self, pod: Pod, row: int, seats: tuple[int, ...]) -> None:
        neighbours, devices = self.view.neighbours, self.view.devices
        self.room.expect(row, self.view.vector_of(pod))
        neighbours.add(pod, row, -1)
        self.room.note(lambda: neighbours.add(pod, row, 1))
        if seats:
            devices.expect(row, seats, pod.gpu_milli)
            self.room.note(lambda: devices.expect(row, seats, pod.gpu_milli, -1))

    def _charge(self, members: Members, placed: list[Placed], asked: Amounts | None = None) -> None:
        if not members.group.is_charged:
            return
        if asked is None:
            asked = {}
            add_requests(asked, placed, self.view)
        self.shares.charge(members.group.queue, asked.items())


def add_requests(amounts: Amounts, placed: Iterable[Placed], view: ClusterView) -> None:
    for one in placed:
        for name, amount in view.vector_of(one.pod).counted:
            amounts[name] = amounts.get(name, 0) + amount


def asked_at_least(members: Members, view: ClusterView) -> Amounts:
    """What the minimum requests: the units' first pods, then as many others as are missing."""
    minimum = members.minimum()
    if minimum.asked is None:
        asked: Amounts = {}
        for pod in minimum.least():
            for name, amount in view.vector_of(pod).counted:
                asked[name] = asked.get(name, 0) + amount
        minimum.asked, minimum.alike = asked, tuple(sorted(asked.items()))
    return minimum.asked
