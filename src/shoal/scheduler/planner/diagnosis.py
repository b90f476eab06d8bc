"""Explains in one message why something waits: what it needs, how much exists, and where the most is left.

The figures are those at the end of the plan, when every pod that could be placed has been. A cause is computed once per
equivalence class, however many pods share it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from shoal.kube.objects import Key
from shoal.kube.quantity_format import shown
from shoal.scheduler.planner.cycle_state import BlockReason, CycleState, asked_at_least
from shoal.scheduler.planner.equivalence_classes import EquivalenceClass
from shoal.scheduler.planner.fair_share import FairShares, ShareExceeded
from shoal.scheduler.planner.feasibility import could_ever_run, is_too_large, wanted
from shoal.scheduler.planner.gang import Gang, PlacementUnit
from shoal.scheduler.planner.gang_types import TopologyConstraint
from shoal.scheduler.planner.node_resources import NodeResources
from shoal.scheduler.planner.placement import NodeFilter
from shoal.scheduler.planner.resource_vectors import Ints, Mask
from shoal.scheduler.planner.scoring import COMMON
from shoal.scheduler.planner.snapshot_types import Node, Pod
from shoal.scheduler.planner.topology import Tier

MORE_NODES = "make it smaller or add nodes"
NEVER_FITS = f"even with nobody else there it would not fit, so {MORE_NODES}"
NO_PLACE = "the places that are left do not suit all of them together"
NO_NODE_TAKES_IT = "a smaller one would find no node either, so {}"
# What helps where nodes are out whatever is free on them, by the prefix of `EquivalenceClass.objections`.
REMEDIES = {
    "does not match the pod's node selector": "label a node or change the node selector",
    "does not match the pod's node affinity": "label a node or change the node affinity",
    "has the taint": "tolerate a taint or remove it",
    "does not reach the pod's volumes": "use volumes that a node reaches",
    "is cordoned": "uncordon a node",
    "is not ready": "bring a node back",
}


class Diagnosis(NamedTuple):
    """Why something waits, and whether nothing but other nodes would help."""

    message: str
    too_large: bool


class Diagnoser:
    def __init__(self, cycle: CycleState) -> None:
        self._cycle = cycle
        self._shortages: dict[int, str] = {}
        self._totals: dict[int, tuple[str, int, str]] = {}
        self._hopeless: dict[tuple[object, ...], bool] = {}
        self._known: dict[object, Diagnosis] = {}  # causes that many groups share
        self._places = {id(m): place for line in cycle.lines.values() for place, m in enumerate(line)}

    def diagnose(self, gang: Gang, still: BlockReason) -> Diagnosis:
        shared = id(still) if still.obstacle == "quota" else self._shared(gang, still)
        found = None if shared is None else self._known.get(shared)
        if found is None:
            cause = self._cause(gang, still)
            if still.obstacle == "capacity" and not gang.lone:
                cause = "; ".join([cause, *self._ways_out(gang)])
            found = Diagnosis(cause, self._is_too_large(gang, still))
            if shared is not None:
                self._known[shared] = found
        cause = f"{found.message}; {still.kept}" if still.kept else found.message
        ahead = self._places.get(id(gang), 0)
        if ahead and not gang.lone:
            cause += f"; {ahead} {'job' if ahead == 1 else 'jobs'} ahead in queue {gang.group.queue}"
        return Diagnosis(f"waiting: {cause}", found.too_large)

    def _is_too_large(self, gang: Gang, still: BlockReason) -> bool:
        resources, refusal = self._cycle.resources, still.refusal
        if refusal is not None and (still.over_cluster or self._is_held_back_by_nodes(still, refusal)):
            return bool(resources.rows) and refusal.need > int(
                resources.whole[resources.column(refusal.resource)].sum()
            )
        if still.obstacle not in ("capacity", "backoff") or gang.missing() is not None:
            return False
        if any(pod.blocked for pod in gang.minimum().pods):
            return False
        # Who could run one day is not too large, and that is mostly known already.
        return (gang.lone or self._is_hopeless(gang)) and is_too_large(self._cycle, gang)

    def _is_held_back_by_nodes(self, still: BlockReason, refusal: ShareExceeded) -> bool:
        """Whether its queue would be allowed as much, if there were so much."""
        return not still.detail and not refusal.guaranteed and _queue_remedy(refusal, self._cycle.shares) == MORE_NODES

    def _shared(self, gang: Gang, still: BlockReason) -> object:
        """Groups that say the same here wait for the same; None where a group is not like any other."""
        if still.obstacle != "capacity" or gang.key in self._cycle.bound:
            return None
        kind = self._cycle.gangs.kind(gang)
        return None if kind is None else (kind, gang.lone)

    def _is_hopeless(self, gang: Gang) -> bool:
        minimum = gang.minimum()
        if any(pod.blocked for pod in minimum.pods):
            return False
        alike = (tuple(id(eq_class) for eq_class in minimum.eq_classes or ()), minimum.total, gang.group.closeness)
        if minimum.eq_classes is None or len(minimum.eq_classes) > 1 or alike not in self._hopeless:
            self._hopeless[alike] = not could_ever_run(self._cycle, gang)
        return self._hopeless[alike]

    def _cause(self, gang: Gang, still: BlockReason) -> str:
        match still.obstacle:
            case "quota":
                assert still.refusal is not None, "a quota has its figures"
                return _quota(still, still.refusal, self._cycle.shares)
            case "leaving":
                left = "1 pod has left" if still.detail == "1" else f"{still.detail or 'the'} pods have left"
                return f"its place is being freed; it starts when {left}"
            case "capacity":
                return self._capacity(gang)
            case "backoff":
                return "; ".join([*self._what_keeps(gang), still.detail])
        return still.detail

    def _what_keeps(self, gang: Gang) -> list[str]:
        """Why a group would find no place if it were let in; nothing where it would, or where pods are missing."""
        cycle = self._cycle
        if gang.missing() is not None or not gang.minimum():
            return []
        asked_at_least(gang, cycle.view)
        mark = cycle.resources.mark()
        is_placed = cycle.gangs.place_minimum(gang, cycle.node_filter(gang)) is not None
        cycle.resources.rollback(mark)
        if is_placed:
            return []
        return [self._capacity(gang), *self._ways_out(gang)]

    def _ways_out(self, gang: Gang) -> list[str]:
        """What helps a group that could not run in an otherwise empty cluster; nothing where it could."""
        if not self._is_hopeless(gang):
            return []
        shut = next((s for s, _ in wanted(self._cycle, gang.minimum().least()) if not _is_open(s)), None)
        if shut is None:
            return [NEVER_FITS]
        ways = _remedies(shut)
        return [NEVER_FITS, ways] if is_too_large(self._cycle, gang) else [ways]

    def _capacity(self, gang: Gang) -> str:
        minimum = gang.minimum()
        pods = minimum.pods
        if gang.key in self._cycle.bound:
            done = {one.pod.key for one in self._cycle.bound[gang.key]}
            pods = tuple(pod for pod in pods if pod.key not in done)
        if blocked := next((pod.blocked for pod in pods if pod.blocked), ""):
            return blocked
        closeness = gang.group.closeness
        subgroups = ((part.closeness, part.must) for unit in minimum.units for part in unit.parts)
        for wanted_near, count in ((closeness, max(minimum.total, 1)), *subgroups):
            if no_domain := self._no_domain(wanted_near, _pods(count)):
                return no_domain
        tier = self._cycle.view.topology.widest(closeness)
        if tier is not None and (minimum or gang.placed):
            return self._hole(gang, tier)
        if minimum.total <= 1 and not minimum.units:
            return self._of_one(pods[0], self._cycle.node_filter(gang))
        # First those that no node takes: that is what the way out is about.
        for unit in sorted(minimum.units, key=lambda unit: all(map(_is_open, self._cycle.gangs.eq_classes(unit.pods)))):
            if not unit.parts and (cause := self._lacking(unit.pods, unit.must, f" of {unit.name}")):
                return cause
        return self._lacking(pods, minimum.total) or self._together(gang)

    def _lacking(self, pods: Sequence[Pod], must: int, of: str = "") -> str:
        eq_classes = self._cycle.gangs.eq_classes(pods)
        fits = sum(eq_class.sync().fits for eq_class in eq_classes)
        if fits >= must:
            return ""
        worst = min(eq_classes, key=lambda eq_class: (eq_class.fits, _is_open(eq_class)))
        why = self._short_in_all(worst, must) if worst.fits else self.shortage(worst)
        return f"needs {_pods(must)}{of} at once, {fits} would fit, {must - fits} missing: {why}"

    def _short_in_all(self, eq_class: EquivalenceClass, must: int) -> str:
        """`needs 4 cpu, 3 of 6 are free, the most on one node is 1 on node a`."""
        found = self._totals.get(id(eq_class))
        if found is None:
            found = self._totals[id(eq_class)] = _in_all(eq_class)
        name, amount, left = found
        return f"needs {shown(name, must * amount)} {name}, {left}"

    def _of_one(self, pod: Pod, where: NodeFilter) -> str:
        """Why one pod finds no place: for want of resources, else for rules about other pods or a reservation."""
        eq_class = self._cycle.view.eq_class_of(pod)
        return self.shortage(eq_class) if not eq_class.sync().fits else self._closed(eq_class, pod, where)

    def _together(self, gang: Gang, domain: Mask | None = None) -> str:
        """What the first pod lacks for which no place is left, in the domain, once the pods before it have theirs."""
        resources, minimum, where = self._cycle.resources, gang.minimum(), self._cycle.node_filter(gang)
        used: set[Key] = set()
        mark = resources.mark()
        try:
            wants = [(unit.pods, unit.must, f" of {unit.name}") for unit in minimum.units if not unit.parts]
            for pods, must, of in [*wants, (minimum.pods, minimum.total, "")]:
                free = [pod for pod in pods if pod.key not in used]
                had = len(pods) - len(free)
                used |= {one.pod.key for one in self._cycle.gangs.place_some(free, must - had, where.within(domain))}
                fits = sum(pod.key in used for pod in pods)
                for first in (pod for pod in free if fits < must and pod.key not in used):
                    eq_class = self._cycle.view.eq_class_of(first).sync()
                    why = self._closed(eq_class, first, where, domain) if eq_class.fits else _shortage(eq_class)
                    return f"needs {_pods(must)}{of} at once, {fits} would fit, {must - fits} missing: {why}"
        finally:
            resources.rollback(mark)
        return self._apart(minimum.units, minimum.total)

    def _closed(self, eq_class: EquivalenceClass, pod: Pod, where: NodeFilter, domain: Mask | None = None) -> str:
        """`host port 8080 is taken on all 3 nodes`, of a pod for which nodes have enough resources."""
        inside = np.ones_like(eq_class.eligible) if domain is None else domain
        able = (eq_class.slots > 0) & inside
        rules = self._cycle.view.affinity.closed(pod, eq_class.eligible, able)
        parts = [(rule.detail, int(np.count_nonzero(rule.nodes))) for rule in rules]
        if where.mask is not None:
            kept = int(np.count_nonzero(able & ~where.mask))
            parts += [("a group that has waited longer reserves {}", kept)] if kept else []
        full = int(np.count_nonzero(eq_class.eligible & inside & ~able))
        parts += [("too little is free on {}", full)] if full else []
        barred = _barred(eq_class)
        return "; ".join([*(detail.format(self._nodes(count)) for detail, count in parts), *barred]) or NO_PLACE

    def _nodes(self, count: int) -> str:
        if count == 1:
            return "the only node" if len(self._cycle.resources.rows) == 1 else "1 node"
        return f"{'all ' if count == len(self._cycle.resources.rows) else ''}{count} nodes"

    def _apart(self, units: Sequence[PlacementUnit], total: int) -> str:
        for unit in units:
            if unit.parts and unit.must == 1:
                return f"needs 1 whole subgroup of {unit.name}, and none fits"
            if unit.parts:
                return f"needs {unit.must} whole subgroups of {unit.name} at once, and so many do not fit"
        return f"needs {_pods(total)} at once, and {NO_PLACE}"

    def _no_domain(self, closeness: TopologyConstraint | None, pods: str) -> str:
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
            return f"needs {pods} in one {tier.label}, and no node is in any {tier.label}"
        return ""

    def _hole(self, gang: Gang, tier: Tier) -> str:
        """`needs 8 nvidia.com/gpu in one rack, the largest free hole is 6 in rack r2`."""
        minimum = gang.minimum()
        total = max(minimum.total, 1)  # pods beyond the minimum are placed one by one
        eq_classes = self._cycle.gangs.eq_classes(minimum.pods)
        sums = sum(
            (tier.sums(eq_class.sync().slots) for eq_class in eq_classes), np.zeros(len(tier.names), dtype=np.int64)
        )
        sitting = {pod.node for pod in gang.placed.values()} & self._cycle.resources.rows.keys()
        if sitting:
            return self._grown(tier, sitting, total)
        there = sorted(set(tier.domain.tolist()) - {0})  # names of domains outlive their nodes
        best = min(there, key=lambda domain: (-int(sums[domain]), tier.names[domain]), default=0)
        if minimum and sums[best] >= minimum.total:
            return f"in {tier.label} {tier.names[best]}, the roomiest, {self._together(gang, tier.mask(best))}"
        name, amount = _scarce(eq_classes[0])
        need, hole = shown(name, amount * total), shown(name, amount * int(sums[best]))
        where = f"{tier.label} {tier.names[best]}"
        return f"needs {need} {name} in one {tier.label}, the largest free hole is {hole} in {where}"

    def _grown(self, tier: Tier, sitting: set[str], total: int) -> str:
        domain = int(tier.domain[self._cycle.resources.rows[min(sitting)]])
        where = f"{tier.label} {tier.names[domain]}"
        return f"needs {_pods(total, 'more ')} in {where}, where its others run, and it is full"

    def shortage(self, eq_class: EquivalenceClass) -> str:
        found = self._shortages.get(id(eq_class))
        if found is None:
            found = self._shortages[id(eq_class)] = _shortage(eq_class.sync())
        return found


def _quota(still: BlockReason, refusal: ShareExceeded, shares: FairShares) -> str:
    name = refusal.resource
    need, used, limit = (shown(name, int(amount)) for amount in (refusal.need, refusal.used, refusal.limit))
    if still.over_cluster and refusal.need > refusal.limit:
        return f"needs {need} {name}, and the cluster lets in {limit} at once, so {MORE_NODES}"
    if still.over_cluster:
        return f"needs {need} {name}; the cluster lets in {limit} at once, and groups before it already ask for {used}"
    if refusal.guaranteed:
        return f"needs {need} {name}, and of the {used} that are free {limit} are guaranteed to queue {refusal.queue}"
    if still.detail and refusal.need > refusal.limit:
        return f"needs {need} {name}, and {still.detail} allows {limit} in all, so make it smaller or have that raised"
    if still.detail:
        return f"needs {need} {name}, and {still.detail} allows {limit}, of which {used} are taken"
    if way_out := _queue_remedy(refusal, shares):
        most = shown(name, int(shares.standings[refusal.queue].ceiling[name]))
        return f"needs {need} {name}, and queue {refusal.queue} may hold {most} in all, so {way_out}"
    if refusal.by_weight:
        share = f"by weight queue {refusal.queue} has a share of {limit} now, of which {used} are taken"
        return f"needs {need} {name}; {share}; it gets more when other queues need less, or with more weight"
    return f"needs {need} {name}, and queue {refusal.queue} may hold {limit} and already counts {used}"


def _queue_remedy(refusal: ShareExceeded, shares: FairShares) -> str:
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


def _scarce(eq_class: EquivalenceClass) -> tuple[str, int]:
    counted = eq_class.vector.counted or (("pods", 1000),)
    return min(counted, key=lambda pair: (pair[0] in COMMON, pair[0]))


def _shortage(eq_class: EquivalenceClass) -> str:
    """`needs 8 nvidia.com/gpu, the most free is 3 of 4 on node a; 1 node is cordoned`."""
    resources = eq_class.resources
    if not resources.rows:
        return "the cluster has no node yet"
    rows = np.flatnonzero(eq_class.eligible)
    short = {
        name: rows[np.maximum(resources.free[column, rows], 0) < amount]
        for name, column, amount in eq_class.vector.pairs
    }
    worst = sorted((name for name in short if len(short[name])), key=lambda name: (-len(short[name]), name))
    parts = [_short_of(eq_class, name, short[name]) for name in worst]
    if not parts and eq_class.gpu_milli and not eq_class.fits:
        parts.append(f"needs {eq_class.gpu_milli}m of one device, and no device has so much left")
    return "; ".join([*parts, *_barred(eq_class)]) or NO_PLACE


def _barred(eq_class: EquivalenceClass) -> list[str]:
    """Nodes that are out whatever is free on them, those of the most frequent reason first."""
    barred: Counter[str] = eq_class.objections()
    return [
        f"{count} node{'s' if count > 1 else ''} {_plural(why, count)}"
        for why, count in sorted(barred.items(), key=lambda item: (-item[1], item[0]))
    ]


def _is_open(eq_class: EquivalenceClass) -> bool:
    """Whether some node takes such pods, when it has room."""
    return bool(eq_class.sync().eligible.any())


def _remedies(eq_class: EquivalenceClass) -> str:
    barred = eq_class.objections()
    ways = [way for begin, way in REMEDIES.items() if any(why.startswith(begin) for why in barred)]
    return NO_NODE_TAKES_IT.format(", or ".join(ways) or "add nodes")


def _in_all(eq_class: EquivalenceClass) -> tuple[str, int, str]:
    """The resource that is shortest in all, how much of it one pod needs, and how much there is."""
    resources, able = eq_class.resources, eq_class.eligible
    free = {name: int(np.maximum(resources.free[column], 0) @ able) for name, column, _ in eq_class.vector.pairs}
    name, column, amount = min(eq_class.vector.pairs, key=lambda pair: (free[pair[0]] / pair[2], pair[0]))
    best, node = _freest(resources, column, np.flatnonzero(able))
    shares = f"{shown(name, free[name])} of {shown(name, int(resources.whole[column] @ able))} are free"
    most = f"the most on one node is {shown(name, max(int(resources.free[column, best]), 0))} on node {node.name}"
    return name, amount, f"{shares}, {most}"


def _freest(resources: NodeResources, column: int, rows: Ints) -> tuple[int, Node]:
    """The row with the most left, the first by name of several."""
    free = resources.free[column].take(rows)
    most = rows[free == free.max()]
    best = int(most[np.argmin(resources.rank[most])])
    node = resources.nodes[best]
    assert node is not None, "an eligible row has a node"
    return best, node


def _short_of(eq_class: EquivalenceClass, name: str, rows: Ints) -> str:
    resources = eq_class.resources
    column = resources.column(name)
    best, node = _freest(resources, column, rows)
    whole, free = int(resources.whole[column, best]), max(int(resources.free[column, best]), 0)
    need = shown(name, next(amount for other, _, amount in eq_class.vector.pairs if other == name))
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
