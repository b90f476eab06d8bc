"""The order of the queues and how much each may hold: deserved shares, ceilings, guarantees, hierarchy.

Two ways to share, never both: *proportion* divides the cluster by weight among the queues that have groups, and gives
what one does not request to the others; *capacity* uses each queue's declared share, with parents above it.
The accounts are copies for one plan; a trial is rolled back with the node resources (`charge` is recorded there).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shoal.kube.quantity_format import Amounts
from shoal.scheduler.planner.gang_types import Queue
from shoal.scheduler.planner.node_and_pod_types import PodState

if TYPE_CHECKING:
    from shoal.scheduler.planner.cluster_view import ClusterView

ROOT = "root"
DEPTH = 16  # more parents than any queue has; a cycle ends here
SLACK = 0.5  # half a thousandth: fractions of shares are not differences

Asked = Iterable[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class ShareExceeded:
    """A queue has no more of a resource to give: `limit` is all it may hold, `used` what it does."""

    queue: str
    resource: str
    need: int
    used: int
    limit: float
    by_weight: bool = False  # it may hold more when others need less
    guaranteed: bool = False  # to that queue: `used` is what is free and `limit` what of it is kept


@dataclass(slots=True)
class QueueShare:
    """One queue within one plan; a parent's amounts are the sums of all queues below it."""

    queue: Queue
    allocated: Amounts = field(default_factory=dict)
    kept: Amounts = field(default_factory=dict)  # what of it is never reclaimed
    asked: Amounts = field(default_factory=dict)
    claimed: Amounts = field(default_factory=dict)  # by groups that waited too long for the ceiling to have room
    ceiling: dict[str, float] = field(default_factory=dict)  # absent: none
    deserved: dict[str, float] = field(default_factory=dict)
    limits: dict[str, float] = field(default_factory=dict)  # what `refusal` compares with; absent: none
    hard_limits: dict[str, float] = field(default_factory=dict)
    line: tuple[QueueShare, ...] = ()  # itself and its ancestors, the nearest first


class FairShares:
    def __init__(self, view: ClusterView) -> None:
        self.total = {name: amount for name, amount in _total(view).items() if amount and name != "pods"}
        uncharged = view.uncharged.allocated
        self.shared = {name: max(amount - uncharged.get(name, 0), 0) for name, amount in self.total.items()}
        self.by_weight = view.settings.sharing == "proportion"
        self._room = view.resources
        self.standings = {name: QueueShare(queue) for name, queue in view.queues.items()}
        for standing in self.standings.values():
            standing.line = tuple(self._line(standing))
        for name, account in view.accounts.items():
            if name in self.standings:
                for above in self.standings[name].line:
                    _add(above.allocated, account.allocated.items())
                    _add(above.kept, account.kept.amounts.items())
                    _add(above.asked, account.asked.items())
        self._cluster = QueueShare(Queue(""), ceiling={name: float(amount) for name, amount in self.total.items()})
        self._guaranteed = [standing for standing in self.standings.values() if standing.queue.guarantee]
        if self._guaranteed:
            for account in view.accounts.values():
                _add(self._cluster.allocated, account.allocated.items())
        self._holders = [s for n, s in self.standings.items() if n in view.accounts]
        active = [s for s in self._holders if view.accounts[s.queue.name].charged]
        self._weights = sum(standing.queue.weight for standing in active)
        self._set_ceilings()
        if self.by_weight:
            self._divide(active)
        else:
            for standing in self.standings.values():
                queue = standing.queue
                for name in {*queue.deserved, *queue.guarantee}:
                    wanted = min(float(queue.deserved.get(name, 0)), standing.ceiling.get(name, float("inf")))
                    standing.deserved[name] = max(float(queue.guarantee.get(name, 0)), wanted)
        for standing in self.standings.values():
            self._set_limits(standing)

    def _line(self, standing: QueueShare) -> Iterable[QueueShare]:
        current: QueueShare | None = standing
        for _ in range(DEPTH):
            if current is None:
                return
            yield current
            parent = current.queue.parent
            if self.by_weight or parent == current.queue.name:
                return
            current = self.standings.get(parent)

    def _set_ceilings(self) -> None:
        """A queue may hold what it is allowed to, less what is kept for its siblings."""
        kept: dict[str, Amounts] = {}
        for standing in self.standings.values():
            _add(kept.setdefault(_above(standing), {}), standing.queue.guarantee.items())
        for standing in sorted(self.standings.values(), key=lambda s: len(s.line)):
            whole: Mapping[str, float] = self.total if len(standing.line) < 2 else standing.line[1].ceiling
            own, family = standing.queue, kept[_above(standing)]
            for name in {*whole, *own.capability}:
                others = family.get(name, 0) - own.guarantee.get(name, 0)
                left = whole[name] - others if name in whole else float("inf")
                standing.ceiling[name] = max(min(float(own.capability.get(name, float("inf"))), left), 0.0)

    def _divide(self, active: list[QueueShare]) -> None:
        remaining = {name: float(amount) for name, amount in self.shared.items()}
        unmet = sorted(active, key=lambda s: s.queue.name)
        while unmet and any(amount > SLACK for amount in remaining.values()):
            weights = sum(standing.queue.weight for standing in unmet)
            given: dict[str, float] = {}
            met = []
            for standing in unmet:
                before = dict(standing.deserved)
                for name, amount in remaining.items():
                    part = before.get(name, 0.0) + amount * standing.queue.weight / weights
                    wanted = standing.allocated.get(name, 0) + standing.asked.get(name, 0)
                    part = min(part, standing.ceiling.get(name, float("inf")), wanted)
                    standing.deserved[name] = max(part, float(standing.queue.guarantee.get(name, 0)))
                    given[name] = given.get(name, 0.0) + standing.deserved[name] - before.get(name, 0.0)
                asked = {r: standing.allocated.get(r, 0) + standing.asked.get(r, 0) for r in standing.deserved}
                has_all = all(asked[r] <= d + SLACK for r, d in standing.deserved.items())
                if has_all or all(abs(d - before.get(r, 0.0)) <= SLACK for r, d in standing.deserved.items()):
                    met.append(standing)
            for name, amount in given.items():
                remaining[name] = max(remaining[name] - amount, 0.0)
            unmet = [standing for standing in unmet if standing not in met]
            if not any(amount > SLACK for amount in given.values()):
                return

    # Used in planning

    def order(self, name: str) -> tuple[object, ...]:
        """Sort key, smallest first: priority, then shares from the top of the hierarchy down, then age and name."""
        standing = self.standings[name]
        path = tuple(self._share(above) for above in reversed(standing.line))
        return -standing.queue.priority, path, standing.queue.created, name

    def share(self, name: str) -> float:
        return self._share(self.standings[name])[0]

    def _share(self, standing: QueueShare) -> tuple[float, bool]:
        if not self.by_weight and not standing.deserved:
            return 1.0, True  # entitled to nothing: after those who are
        most = 0.0
        for name, deserved in standing.deserved.items():
            held = standing.allocated.get(name, 0)
            most = max(most, held / deserved if deserved else float(held > 0))
        return most, False

    def part(self, name: str) -> Mapping[str, float]:
        """What the queue deserves if it requests enough: by weight its share among the queues with work."""
        standing = self.standings[name]
        if not self.by_weight:
            return standing.deserved
        whole = standing.queue.weight / max(self._weights, standing.queue.weight)
        return {r: min(total * whole, standing.ceiling.get(r, float("inf"))) for r, total in self.shared.items()}

    def is_overused(self, name: str) -> bool:
        """Holds all it deserves already, or more. One that deserves nothing is not called so."""
        standing = self.standings[name]
        deserved = {r: d for r, d in standing.deserved.items() if d > SLACK}
        return bool(deserved) and all(standing.allocated.get(r, 0) >= d - SLACK for r, d in deserved.items())

    def borrowed(
        self,
        by_others_than: str,
        within: QueueShare | None = None,
        could_give: Callable[[str], Mapping[str, int]] | None = None,
    ) -> Mapping[str, float]:
        """Upper bound of what queues below that one, or all, hold beyond their shares and may have to return.

        `could_give`: what the groups of a queue would lose if they all yielded.
        """
        found: dict[str, float] = {}
        for standing in self._holders:
            queue = standing.queue
            if queue.name == by_others_than or not queue.reclaimable or (within and within not in standing.line):
                continue
            part = self.part(queue.name)
            beyond = {
                r: held - standing.kept.get(r, 0) - max(part.get(r, 0.0), queue.guarantee.get(r, 0))
                for r, held in standing.allocated.items()
            }
            if any(beyond[r] > SLACK for r in [r for r in beyond if r in part] or beyond):
                most = could_give(queue.name) if could_give is not None else beyond
                for r, amount in beyond.items():
                    found[r] = found.get(r, 0.0) + max(min(amount, most.get(r, 0)), 0.0)
        return found

    def refusal(
        self,
        name: str,
        asked: Mapping[str, int],
        *,
        beyond_deserved: bool = False,
        claims: bool = True,
        reclaims: bool = False,
    ) -> ShareExceeded | None:
        """Which queue of the line has no more to give. What it deserves is a soft limit, the ceiling a hard one.

        What others claim counts as held, except for claimants themselves (`claims` false); what others below the same
        parent hold beyond their shares counts as free for those that would reclaim it (`reclaims`).
        """
        for standing in self.standings[name].line:
            limits = standing.hard_limits if beyond_deserved else standing.limits
            held = standing.allocated
            if standing.claimed and claims:
                held = dict(held)
                _add(held, standing.claimed.items())
            for resource, need in asked.items():
                limit = limits.get(resource)
                if limit is None or held.get(resource, 0) + need <= limit:
                    continue
                spare = self.borrowed(name, standing).get(resource, 0.0) if reclaims else 0.0
                if held.get(resource, 0) - spare + need <= limit:
                    continue
                if need > self.total.get(resource, 0):  # never mind the share: the cluster itself is too small
                    limit = standing.hard_limits.get(resource, float("inf"))
                if need and held.get(resource, 0) + need > limit:
                    by_weight = self.by_weight and limit < standing.hard_limits.get(resource, float("inf"))
                    return ShareExceeded(standing.queue.name, resource, need, held.get(resource, 0), limit, by_weight)
        return None if reclaims or not self._guaranteed else self._kept_for_others(name, asked)

    def _kept_for_others(self, name: str, asked: Mapping[str, int]) -> ShareExceeded | None:
        """Whether so much is free only because other queues do not use what is guaranteed to them."""
        line = self.standings[name].line
        for standing, above in zip(line, (*line[1:], self._cluster), strict=True):
            siblings = [s for s in self._guaranteed if s is not standing and _above(s) == _above(standing)]
            for resource, need in asked.items():
                free = above.ceiling.get(resource, float("inf")) - above.allocated.get(resource, 0)
                unused = {
                    s.queue.name: s.queue.guarantee.get(resource, 0) - s.allocated.get(resource, 0) for s in siblings
                }
                kept = sum(amount for amount in unused.values() if amount > 0)
                if need and free - kept + SLACK < need <= free + SLACK:
                    most = max(unused, key=lambda other: (unused[other], other))
                    return ShareExceeded(most, resource, need, int(free), kept, guaranteed=True)
        return None

    def _set_limits(self, standing: QueueShare) -> None:
        """No limit where the queue could have everything: then the cluster is too small, and not the queue's share."""
        for resource, ceiling in standing.ceiling.items():
            total = whole = self.total.get(resource, 0)
            soft = ceiling
            if self.by_weight:
                soft, whole = min(ceiling, standing.deserved.get(resource, 0.0)), self.shared.get(resource, 0)
            bounds = ((standing.hard_limits, ceiling, total), (standing.limits, soft, whole))
            for limits, limit, everything in bounds:
                if limit < everything - SLACK or resource in standing.queue.capability:
                    limits[resource] = limit + SLACK

    def may_reclaim(self, name: str, asked: Mapping[str, int], *, claims: bool = True) -> bool:
        """Whether the queue would still be within what it deserves, in every requested resource.

        In every one, not just in some: otherwise two queues, each below its share of one resource and above that
        of another, would take the same pods from each other for ever.
        """
        if self.refusal(name, asked, claims=claims, reclaims=True) is not None:
            return False
        if self.by_weight:
            return True
        standing = self.standings[name]
        named = [r for r, need in asked.items() if need and r in standing.deserved]
        return bool(named) and all(
            standing.allocated.get(r, 0) + asked[r] <= standing.deserved[r] + SLACK for r in named
        )

    def can_lose(self, name: str, used: Mapping[str, int], wanted: Collection[str] | None = None) -> bool:
        """Whether others that need such resources may reclaim this much from the queue in its current state.

        It must hold more than it deserves of something that the victim has and that they need. What it lost for that
        reason it could request again only by holding too much once more, so nothing oscillates.
        """
        standing = self.standings.get(name)
        if standing is None or not standing.queue.reclaimable:
            return False
        # Pods that are never reclaimed are no debt of the others in their queue.
        held, deserved = standing.allocated, standing.deserved
        if standing.kept:
            held = {r: amount - standing.kept.get(r, 0) for r, amount in held.items()}
        if any(
            amount and standing.allocated.get(r, 0) - amount < standing.queue.guarantee.get(r, 0)
            for r, amount in used.items()
        ):
            return False
        has = [r for r, amount in used.items() if amount]
        named = [r for r in has if r in deserved]
        return any(held.get(r, 0) > deserved.get(r, 0.0) + SLACK for r in named or has if wanted is None or r in wanted)

    def claim(self, name: str, asked: Asked) -> None:
        """Keep what the queue's ceilings will have free next: no other group of the queue gets any of it before."""
        pairs = tuple(asked)
        for standing in self.standings[name].line:
            _add(standing.claimed, pairs)

    def charge(self, name: str, asked: Asked, sign: int = 1) -> None:
        """Counted as held by the queue and all queues above it, until the node resources are rolled back."""
        pairs = tuple(asked)
        line = self.standings[name].line if name in self.standings else ()
        if line and self._guaranteed:
            line = (*line, self._cluster)
        for standing in line:
            _add(standing.allocated, pairs, sign)
        if line:

            def refund() -> None:
                for standing in line:
                    _add(standing.allocated, pairs, -sign)

            self._room.note(refund)

    def dominant(self, allocated: Mapping[str, int]) -> float:
        """A group's largest share of anything in the cluster."""
        if not allocated:
            return 0.0
        return max((held / self.total[r] for r, held in allocated.items() if self.total.get(r)), default=0.0)


def _total(view: ClusterView) -> Mapping[str, int]:
    """Of the nodes that take pods, and what is still held on those that do not: it counts as held by its queue, and
    would otherwise count against room that is free elsewhere."""
    if not view.resources.shut:
        return view.resources.total
    found = dict(view.resources.total)
    for node in view.resources.shut:
        for pod in view.pods_on(node):
            if pod.state is not PodState.RELEASING:
                _add(found, view.vector_of(pod).counted)
    return found


def _above(standing: QueueShare) -> str:
    return standing.line[1].queue.name if len(standing.line) > 1 else ""


def _add(amounts: Amounts, more: Asked, sign: int = 1) -> None:
    for name, amount in more:
        amounts[name] = amounts.get(name, 0) + sign * amount
