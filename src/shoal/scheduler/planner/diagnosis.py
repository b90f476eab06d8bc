"""Says in one sentence why something waits: what is needed, how much of it there is, and where the most is left.

The figures are those at the end of the plan, when everybody who could be placed has been. A cause is worked out
once per shape, however many pods share it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from shoal.kube.objects import Key
from shoal.kube.quantity_format import shown
from shoal.scheduler.planner.cycle_state import Cycle, Standstill, asked_at_least
from shoal.scheduler.planner.equivalence_classes import Shape
from shoal.scheduler.planner.fair_share import Refusal, Shares
from shoal.scheduler.planner.feasibility import could_ever_run, is_too_large, wanted
from shoal.scheduler.planner.gang import Members, Unit
from shoal.scheduler.planner.gang_types import Closeness
from shoal.scheduler.planner.node_resources import Room
from shoal.scheduler.planner.placement import Where
from shoal.scheduler.planner.resource_vectors import Ints, Mask
from shoal.scheduler.planner.scoring import COMMON
from shoal.scheduler.planner.snapshot_types import Node, Pod
from shoal.scheduler.planner.topology import Tier

MORE_NODES = "make it smaller or add nodes"
NEVER_FITS = f"even with nobody else there it would not fit, so {MORE_NODES}"
NO_PLACE = "the places that are left do not suit all of them together"
NO_NODE_TAKES_IT = "a smaller one would find no node either, so {}"
# What helps where nodes are out whatever is free on them, by the first words of `Shape.objections`.
WAYS_IN = {
    "does not match the pod's node selector": "label a node or change the node selector",
    "does not match the pod's node affinity": "label a node or change the node affinity",
    "has the taint": "tolerate a taint or remove it",
    "does not reach the pod's volumes": "use volumes that a node reaches",
    "is cordoned": "uncordon a node",
    "is not ready": "bring a node back",
}


class Finding(NamedTuple):
    """Why something waits, and whether nothing but other nodes would help."""

    sentence: str
    too_large: bool


class Explainer:
    def __init__(self, cycle: Cycle) -> None:
        self._cycle = cycle
        self._shortages: dict[int, str] = {}
        self._totals: dict[int, tuple[str, int, str]] = {}
        self._hopeless: dict[tuple[object, ...], bool] = {}
        self._known: dict[object, Finding] = {}  # causes that many groups share
        self._places = {id(m): place for line in cycle.lines.values() for place, m in enumerate(line)}

    def finding(self, members: Members, still: Standstill) -> Finding:
        shared = id(still) if still.obstacle == "quota" else self._shared(members, still)
        found = None if shared is None else self._known.get(shared)
        if found is None:
            cause = self._cause(members, still)
            if still.obstacle == "capacity" and not members.lone:
                cause = "; ".join([cause, *self._ways_out(members)])
            found = Finding(cause, self._is_too_large(members, still))
            if shared is not None:
                self._known[shared] = found
        cause = f"{found.sentence}; {still.kept}" if still.kept else found.sentence
        ahead = self._places.get(id(members), 0)
        if ahead and not members.lone:
            cause += f"; {ahead} {'job' if ahead == 1 else 'jobs'} ahead in queue {members.group.queue}"
        return Finding(f"waiting: {cause}", found.too_large)

    def _is_too_large(self, members: Members, still: Standstill) -> bool:
        room, refusal = self._cycle.room, still.refusal
        if refusal is not None and (still.over_cluster or self._is_held_back_by_nodes(still, refusal)):
            return bool(room.rows) and refusal.need > int(room.whole[room.column(refusal.resource)].sum())
        if still.obstacle not in ("capacity", "backoff") or members.lack() is not None:
            return False
        if any(pod.blocked for pod in members.minimum().pods):
            return False
        # Who could run one day is not too large, and that is mostly known already.
        return (members.lone or self._is_hopeless(members)) and is_too_large(self._cycle, members)

    def _is_held_back_by_nodes(self, still: Standstill, refusal: Refusal) -> bool:
        """Whether its queue would be allowed as much, if there were so much."""
        return not still.words and not refusal.guaranteed and _way_past_queue(refusal, self._cycle.shares) == MORE_NODES

    def _shared(self, members: Members, still: Standstill) -> object:
        """Groups that say the same here wait for the same; None where a group is not like any other."""
        if still.obstacle != "capacity" or members.key in self._cycle.bound:
            return None
        kind = self._cycle.gangs.kind(members)
        return None if kind is None else (kind, members.lone)

    def _is_hopeless(self, members: Members) -> bool:
        minimum = members.minimum()
        if any(pod.blocked for pod in minimum.pods):
            return False
        alike = (tuple(id(shape) for shape in minimum.shapes or ()), minimum.total, members.group.closeness)
        if minimum.shapes is None or len(minimum.shapes) > 1 or alike not in self._hopeless:
            self._hopeless[alike] = not could_ever_run(self._cycle, members)
        return self._hopeless[alike]

    def _cause(self, members: Members, still: Standstill) -> str:
        match still.obstacle:
            case "quota":
                assert still.refusal is not None, "a quota has its figures"
                return _quota(still, still.refusal, self._cycle.shares)
            case "leaving":
                left = "1 pod has left" if still.words == "1" else f"{still.words or 'the'} pods have left"
                return f"its place is being freed; it starts when {left}"
            case "capacity":
                return self._capacity(members)
            case "backoff":
                return "; ".join([*self._what_keeps(members), still.words])
        return still.words

    def _what_keeps(self, members: Members) -> list[str]:
        """Why a group would find no place if it were let in; nothing where it would, or where pods are missing."""
        cycle = self._cycle
        if members.lack() is not None or not members.minimum():
            return []
        asked_at_least(members, cycle.view)
        mark = cycle.room.mark()
        is_placed = cycle.gangs.place_minimum(members, cycle.where(members)) is not None
        cycle.room.rollback(mark)
        if is_placed:
            return []
        return [self._capacity(members), *self._ways_out(members)]

    def _ways_out(self, members: Members) -> list[str]:
        """What helps a group that could not run if everybody else were gone; nothing where it could."""
        if not self._is_hopeless(members):
            return []
        shut = next((s for s, _ in wanted(self._cycle, members.minimum().least()) if not _is_open(s)), None)
        if shut is None:
            return [NEVER_FITS]
        ways = _ways_in(shut)
        return [NEVER_FITS, ways] if is_too_large(self._cycle, members) else [ways]

    def _capacity(self, members: Members) -> str:
        minimum = members.minimum()
        pods = minimum.pods
        if members.key in self._cycle.bound:
            done = {one.pod.key for one in self._cycle.bound[members.key]}
            pods = tuple(pod for pod in pods if pod.key not in done)
        if blocked := next((pod.blocked for pod in pods if pod.blocked), ""):
            return blocked
        closeness = members.group.closeness
        subgroups = ((part.closeness, part.must) for unit in minimum.units for part in unit.parts)
        for wanted_near, count in ((closeness, max(minimum.total, 1)), *subgroups):
            if no_domain := self._no_domain(wanted_near, _pods(count)):
                return no_domain
        tier = self._cycle.view.topology.widest(closeness)
        if tier is not None and (minimum or members.sitting):
            return self._hole(members, tier)
        if minimum.total <= 1 and not minimum.units:
            return self._of_one(pods[0], self._cycle.where(members))
        # First those that no node takes: that is what the way out is about.
        for unit in sorted(minimum.units, key=lambda unit: all(map(_is_open, self._cycle.gangs.shapes(unit.pods)))):
            if not unit.parts and (cause := self._lacking(unit.pods, unit.must, f" of {unit.name}")):
                return cause
        return self._lacking(pods, minimum.total) or self._together(members)

    def _lacking(self, pods: Sequence[Pod], must: int, of: str = "") -> str:
        shapes = self._cycle.gangs.shapes(pods)
        fits = sum(shape.sync().fits for shape in shapes)
        if fits >= must:
            return ""
        worst = min(shapes, key=lambda shape: (shape.fits, _is_open(shape)))
        why = self._short_in_all(worst, must) if worst.fits else self.shortage(worst)
        return f"needs {_pods(must)}{of} at once, {fits} would fit, {must - fits} missing: {why}"

    def _short_in_all(self, shape: Shape, must: int) -> str:
        """`needs 4 cpu, 3 of 6 are free, the most on one node is 1 on node a`."""
        found = self._totals.get(id(shape))
        if found is None:
            found = self._totals[id(shape)] = _in_all(shape)
        name, amount, left = found
        return f"needs {shown(name, must * amount)} {name}, {left}"

    def _of_one(self, pod: Pod, where: Where) -> str:
        """Why one pod finds no place: for want of resources, else for rules about other pods or a reservation."""
        shape = self._cycle.view.shape_of(pod)
        return self.shortage(shape) if not shape.sync().fits else self._closed(shape, pod, where)

    def _together(self, members: Members, domain: Mask | None = None) -> str:
        """What the first pod lacks for which no place is left, in the domain, once the pods before it have theirs."""
        room, minimum, where = self._cycle.room, members.minimum(), self._cycle.where(members)
        used: set[Key] = set()
        mark = room.mark()
        try:
            wants = [(unit.pods, unit.must, f" of {unit.name}") for unit in minimum.units if not unit.parts]
            for pods, must, of in [*wants, (minimum.pods, minimum.total, "")]:
                free = [pod for pod in pods if pod.key not in used]
                had = len(pods) - len(free)
                used |= {one.pod.key for one in self._cycle.gangs.place_some(free, must - had, where.within(domain))}
                fits = sum(pod.key in used for pod in pods)
                for first in (pod for pod in free if fits < must and pod.key not in used):
                    shape = self._cycle.view.shape_of(first).sync()
                    why = self._closed(shape, first, where, domain) if shape.fits else _shortage(shape)
                    return f"needs {_pods(must)}{of} at once, {fits} would fit, {must - fits} missing: {why}"
        finally:
            room.rollback(mark)
        return self._apart(minimum.units, minimum.total)

    def _closed(self, shape: Shape, pod: Pod, where: Where, domain: Mask | None = None) -> str:
        """`host port 8080 is taken on all 3 nodes`, of a pod for which nodes have enough resources."""
        inside = np.ones_like(shape.eligible) if domain is None else domain
        able = (shape.slots > 0) & inside
        rules = self._cycle.view.neighbours.closed(pod, shape.eligible, able)
        parts = [(rule.words, int(np.count_nonzero(rule.nodes))) for rule in rules]
        if where.mask is not None:
            kept = int(np.count_nonzero(able & ~where.mask))
            parts += [("a group that has waited longer reserves {}", kept)] if kept else []
        full = int(np.count_nonzero(shape.eligible & inside & ~able))
        parts += [("too little is free on {}", full)] if full else []
        barred = _barred(shape)
        return "; ".join([*(words.format(self._nodes(count)) for words, count in parts), *barred]) or NO_PLACE

    def _nodes(self, count: int) -> str:
        if count == 1:
            return "the only node" if len(self._cycle.room.rows) == 1 else "1 node"
        return f"{'all ' if count == len(self._cycle.room.rows) else ''}{count} nodes"

    def _apart(self, units: Sequence[Unit], total: int) -> str:
        for unit in units:
            if unit.parts and unit.must == 1:
                return f"needs 1 whole subgroup of {unit.name}, and none fits"
            if unit.parts:
                return f"needs {unit.must} whole subgroups of {unit.name} at once, and so many do not fit"
        return f"needs {_pods(total)} at once, and {NO_PLACE}"

    def _no_domain(self, closeness: Closeness | None, pods: str) -> str:
        """Why no nodes are near enough to each other, whatever is free; '' where some are."""
        topology = self._cycle.view.topology
        if closeness is None or not closeness.hard:
            return ""
        if not topology.tiers:
            unknown = "no topology of the cluster is known: create HyperNodes or set tiers"
            return f"needs {pods} near each other, and {unknown}"
        if not topology.reach(closeness):
            unknown = f"no tier of the topology is named {closeness.tier_name}"
            return f"needs {pods} near each other, and {unknown}: set tierName of HyperNodes to it or name another tier"
        tier = topology.widest(closeness)
        if tier is not None and not tier.domain.any():
            return f"needs {pods} in one {tier.word}, and no node is in any {tier.word}"
        return ""

    def _hole(self, members: Members, tier: Tier) -> str:
        """`needs 8 nvidia.com/gpu in one rack, the largest free hole is 6 in rack r2`."""
        minimum = members.minimum()
        total = max(minimum.total, 1)  # pods beyond the minimum are placed one by one
        shapes = self._cycle.gangs.shapes(minimum.pods)
        sums = sum((tier.sums(shape.sync().slots) for shape in shapes), np.zeros(len(tier.names), dtype=np.int64))
        sitting = {pod.node for pod in members.sitting.values()} & self._cycle.room.rows.keys()
        if sitting:
            return self._grown(tier, sitting, total)
        there = sorted(set(tier.domain.tolist()) - {0})  # names of domains outlive their nodes
        best = min(there, key=lambda domain: (-int(sums[domain]), tier.names[domain]), default=0)
        if minimum and sums[best] >= minimum.total:
            return f"in {tier.word} {tier.names[best]}, the roomiest, {self._together(members, tier.mask(best))}"
        name, amount = _scarce(shapes[0])
        need, hole = shown(name, amount * total), shown(name, amount * int(sums[best]))
        return (
            f"needs {need} {name} in one {tier.word}, the largest free hole is {hole} in {tier.word} {tier.names[best]}"
        )

    def _grown(self, tier: Tier, sitting: set[str], total: int) -> str:
        domain = int(tier.domain[self._cycle.room.rows[min(sitting)]])
        where = f"{tier.word} {tier.names[domain]}"
        return f"needs {_pods(total, 'more ')} in {where}, where its others run, and it is full"

    def shortage(self, shape: Shape) -> str:
        found = self._shortages.get(id(shape))
        if found is None:
            found = self._shortages[id(shape)] = _shortage(shape.sync())
        return found


def _quota(still: Standstill, refusal: Refusal, shares: Shares) -> str:
    name = refusal.resource
    need, used, limit = (shown(name, int(amount)) for amount in (refusal.need, refusal.used, refusal.limit))
    if still.over_cluster and refusal.need > refusal.limit:
        return f"needs {need} {name}, and the cluster lets in {limit} at once, so {MORE_NODES}"
    if still.over_cluster:
        return f"needs {need} {name}; the cluster lets in {limit} at once, and groups before it already ask for {used}"
    if refusal.guaranteed:
        return f"needs {need} {name}, and of the {used} that are free {limit} are guaranteed to queue {refusal.queue}"
    if still.words and refusal.need > refusal.limit:
        return f"needs {need} {name}, and {still.words} allows {limit} in all, so make it smaller or have that raised"
    if still.words:
        return f"needs {need} {name}, and {still.words} allows {limit}, of which {used} are taken"
    if way_out := _way_past_queue(refusal, shares):
        most = shown(name, int(shares.standings[refusal.queue].ceiling[name]))
        return f"needs {need} {name}, and queue {refusal.queue} may hold {most} in all, so {way_out}"
    if refusal.by_weight:
        share = f"by weight queue {refusal.queue} has a share of {limit} now, of which {used} are taken"
        return f"needs {need} {name}; {share}; it gets more when other queues need less, or with more weight"
    return f"needs {need} {name}, and queue {refusal.queue} may hold {limit} and already counts {used}"


def _way_past_queue(refusal: Refusal, shares: Shares) -> str:
    """What helps a group that asks for more than its queue may ever hold; '' where it asks for less."""
    name, line = refusal.resource, shares.standings[refusal.queue].line
    if refusal.need <= line[0].ceiling.get(name, float("inf")):
        return ""
    tight = [above for above in line if refusal.need > above.queue.capability.get(name, float("inf"))]
    if not tight and refusal.need > shares.total.get(name, 0):
        return MORE_NODES
    if not tight:
        change = "lower what is guaranteed to others"
    elif tight[0] is line[0]:
        change = "raise its capability"
    else:
        change = f"raise the capability of queue {tight[0].queue.name} above it"
    return f"{change}, ask for less, or name another queue"


def _scarce(shape: Shape) -> tuple[str, int]:
    counted = shape.vector.counted or (("pods", 1000),)
    return min(counted, key=lambda pair: (pair[0] in COMMON, pair[0]))


def _shortage(shape: Shape) -> str:
    """`needs 8 nvidia.com/gpu, the most free is 3 of 4 on node a; 1 node is cordoned`."""
    room = shape.room
    if not room.rows:
        return "the cluster has no node yet"
    rows = np.flatnonzero(shape.eligible)
    short = {name: rows[np.maximum(room.free[column, rows], 0) < amount] for name, column, amount in shape.vector.pairs}
    worst = sorted((name for name in short if len(short[name])), key=lambda name: (-len(short[name]), name))
    parts = [_short_of(shape, name, short[name]) for name in worst]
    if not parts and shape.gpu_milli and not shape.fits:
        parts.append(f"needs {shape.gpu_milli}m of one device, and no device has so much left")
    return "; ".join([*parts, *_barred(shape)]) or NO_PLACE


def _barred(shape: Shape) -> list[str]:
    """Nodes that are out whatever is free on them, those of the most frequent reason first."""
    barred: Counter[str] = shape.objections()
    return [
        f"{count} node{'s' if count > 1 else ''} {_plural(why, count)}"
        for why, count in sorted(barred.items(), key=lambda item: (-item[1], item[0]))
    ]


def _is_open(shape: Shape) -> bool:
    """Whether some node takes such pods, when it has room."""
    return bool(shape.sync().eligible.any())


def _ways_in(shape: Shape) -> str:
    barred = shape.objections()
    ways = [way for begin, way in WAYS_IN.items() if any(why.startswith(begin) for why in barred)]
    return NO_NODE_TAKES_IT.format(", or ".join(ways) or "add nodes")


def _in_all(shape: Shape) -> tuple[str, int, str]:
    """The resource that is shortest in all, how much of it one pod needs, and how much there is."""
    room, able = shape.room, shape.eligible
    free = {name: int(np.maximum(room.free[column], 0) @ able) for name, column, _ in shape.vector.pairs}
    name, column, amount = min(shape.vector.pairs, key=lambda pair: (free[pair[0]] / pair[2], pair[0]))
    best, node = _freest(room, column, np.flatnonzero(able))
    shares = f"{shown(name, free[name])} of {shown(name, int(room.whole[column] @ able))} are free"
    most = f"the most on one node is {shown(name, max(int(room.free[column, best]), 0))} on node {node.name}"
    return name, amount, f"{shares}, {most}"


def _freest(room: Room, column: int, rows: Ints) -> tuple[int, Node]:
    """The row with the most left, the first by name of several."""
    free = room.free[column].take(rows)
    most = rows[free == free.max()]
    best = int(most[np.argmin(room.rank[most])])
    node = room.nodes[best]
    assert node is not None, "an eligible row has a node"
    return best, node


def _short_of(shape: Shape, name: str, rows: Ints) -> str:
    room = shape.room
    column = room.column(name)
    best, node = _freest(room, column, rows)
    whole, free = int(room.whole[column, best]), max(int(room.free[column, best]), 0)
    need = shown(name, next(amount for other, _, amount in shape.vector.pairs if other == name))
    if not whole:
        return f"needs {need} {name}, and no node that could take it has any"
    if name == "pods":
        return f"node {node.name} already runs as many pods as it may ({shown(name, whole)})"
    return f"needs {need} {name}, the most free is {shown(name, free)} of {shown(name, whole)} on node {node.name}"


def _pods(count: int, which: str = "") -> str:
    return f"{count} {which}{'pod' if count == 1 else 'pods'}"


def _plural(why: str, count: int) -> str:
    if count == 1:
        return why
    verb, _, rest = why.partition(" ")
    return f"{ {'is': 'are', 'has': 'have', 'does': 'do'}[verb] } {rest}"
