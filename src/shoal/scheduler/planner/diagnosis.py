"""Explains in one message why something waits: what it needs, how much exists, and where the most is left.

The figures are those at the end of the plan, when every pod that could be placed has been. A cause is computed once per
equivalence class, however many pods share it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from shoal.kube.messages import Message
from shoal.kube.objects import Key
from shoal.kube.quantity_format import shown
from shoal.scheduler.planner.cycle_state import BlockReason, CycleState, asked_at_least
from shoal.scheduler.planner.equivalence_classes import EquivalenceClass, Objection, ObjectionKind
from shoal.scheduler.planner.fair_share import FairShares, ShareExceeded
from shoal.scheduler.planner.feasibility import could_ever_run, is_too_large, wanted
from shoal.scheduler.planner.gang import Gang
from shoal.scheduler.planner.gang_types import TopologyConstraint
from shoal.scheduler.planner.message_parts import NO_PLACE, all_of, pods, waiting
from shoal.scheduler.planner.node_and_pod_types import Node, Pod
from shoal.scheduler.planner.node_resources import NodeResources
from shoal.scheduler.planner.placement import NodeFilter
from shoal.scheduler.planner.resource_vectors import Ints, Mask
from shoal.scheduler.planner.scoring import COMMON
from shoal.scheduler.planner.topology import Tier

MORE_NODES = Message("Remedy.MoreNodes")
NEVER_FITS = Message("Remedy.NeverFits")
# What helps where nodes are out whatever is free on them.
REMEDIES = {
    ObjectionKind.NODE_SELECTOR: Message("Remedy.NodeSelector"),
    ObjectionKind.NODE_AFFINITY: Message("Remedy.NodeAffinity"),
    ObjectionKind.TAINT: Message("Remedy.Taint"),
    ObjectionKind.VOLUMES: Message("Remedy.Volumes"),
    ObjectionKind.CORDONED: Message("Remedy.Cordoned"),
    ObjectionKind.NOT_READY: Message("Remedy.NotReady"),
}


class Diagnosis(NamedTuple):
    """Why something waits, and whether nothing but other nodes would help."""

    message: Message
    too_large: bool


class Diagnoser:
    def __init__(self, cycle: CycleState) -> None:
        self._cycle = cycle
        self._shortages: dict[int, Message] = {}
        self._totals: dict[int, tuple[str, int, dict[str, str]]] = {}
        self._hopeless: dict[tuple[object, ...], bool] = {}
        self._known: dict[object, tuple[Message, Diagnosis]] = {}  # causes that many groups share
        self._places = {id(m): place for line in cycle.lines.values() for place, m in enumerate(line)}

    def diagnose(self, gang: Gang, still: BlockReason) -> Diagnosis:
        shared: object = id(still) if still.obstacle == "quota" else None
        if still.obstacle == "capacity" and gang.key not in self._cycle.bound:
            kind = self._cycle.gangs.kind(gang)
            shared = None if kind is None else (kind, gang.lone)
        found = None if shared is None else self._known.get(shared)
        if found is None:
            cause = self._cause(gang, still)
            if still.obstacle == "capacity" and not gang.lone:
                cause = all_of([cause, *self._ways_out(gang)])
            found = cause, Diagnosis(waiting(cause), self._is_too_large(gang, still))
            if shared is not None:
                self._known[shared] = found
        cause, diagnosis = found
        ahead = 0 if gang.lone else self._places.get(id(gang), 0)
        if still.kept is None and not ahead:
            return diagnosis
        parts = [cause]
        if still.kept is not None:
            parts.append(still.kept)
        if ahead == 1:
            parts.append(Message("Turn.JobAhead", {"queue": gang.group.queue}))
        elif ahead:
            parts.append(Message("Turn.JobsAhead", {"count": ahead, "queue": gang.group.queue}))
        return Diagnosis(waiting(all_of(parts)), diagnosis.too_large)

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
        return (
            still.quota is None and not refusal.guaranteed and _queue_remedy(refusal, self._cycle.shares) is MORE_NODES
        )

    def _is_hopeless(self, gang: Gang) -> bool:
        minimum = gang.minimum()
        if any(pod.blocked for pod in minimum.pods):
            return False
        alike = (tuple(id(eq_class) for eq_class in minimum.eq_classes or ()), minimum.total, gang.group.closeness)
        if minimum.eq_classes is None or len(minimum.eq_classes) > 1 or alike not in self._hopeless:
            self._hopeless[alike] = not could_ever_run(self._cycle, gang)
        return self._hopeless[alike]

    def _cause(self, gang: Gang, still: BlockReason) -> Message:
        match still.obstacle:
            case "quota":
                assert still.refusal is not None, "a quota has its figures"
                return _quota(still, still.refusal, self._cycle.shares)
            case "leaving":
                if still.leaving > 1:
                    return Message("Resources.LeavingPods", {"count": still.leaving})
                # 0 where no pods were requested to leave for it: its place is freed all the same.
                return Message("Resources.LeavingPod" if still.leaving else "Resources.Leaving")
            case "capacity":
                return self._capacity(gang)
        assert still.cause is not None, "who decided that said why"
        return all_of([*self._what_keeps(gang), still.cause]) if still.obstacle == "backoff" else still.cause

    def _what_keeps(self, gang: Gang) -> list[Message]:
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

    def _ways_out(self, gang: Gang) -> list[Message]:
        """What helps a group that could not run in an otherwise empty cluster; nothing where it could."""
        if not self._is_hopeless(gang):
            return []
        shut = next((s for s, _ in wanted(self._cycle, gang.minimum().least()) if not _is_open(s)), None)
        if shut is None:
            return [NEVER_FITS]
        ways = _remedies(shut)
        return [NEVER_FITS, ways] if is_too_large(self._cycle, gang) else [ways]

    def _capacity(self, gang: Gang) -> Message:
        minimum = gang.minimum()
        left = minimum.pods
        if gang.key in self._cycle.bound:
            done = {one.pod.key for one in self._cycle.bound[gang.key]}
            left = tuple(pod for pod in left if pod.key not in done)
        if blocked := next((pod.blocked for pod in left if pod.blocked), None):
            return blocked
        closeness = gang.group.closeness
        subgroups = ((part.closeness, part.must) for unit in minimum.units for part in unit.parts)
        for wanted_near, count in ((closeness, max(minimum.total, 1)), *subgroups):
            if no_domain := self._no_domain(wanted_near, pods(count)):
                return no_domain
        tier = self._cycle.view.topology.widest(closeness)
        if tier is not None and (minimum or gang.placed):
            return self._hole(gang, tier)
        if minimum.total <= 1 and not minimum.units:
            eq_class = self._cycle.view.eq_class_of(left[0])
            if not eq_class.sync().fits:
                return self.shortage(eq_class)
            return self._closed(eq_class, left[0], self._cycle.node_filter(gang))
        # First those that no node takes: that is what the way out is about.
        for unit in sorted(minimum.units, key=lambda unit: all(map(_is_open, self._cycle.gangs.eq_classes(unit.pods)))):
            if not unit.parts and (cause := self._lacking(unit.pods, unit.must, unit.name)):
                return cause
        return self._lacking(left, minimum.total) or self._together(gang)

    def _lacking(self, wanted_pods: Sequence[Pod], must: int, unit: str = "") -> Message | None:
        eq_classes = self._cycle.gangs.eq_classes(wanted_pods)
        fits = sum(eq_class.sync().fits for eq_class in eq_classes)
        if fits >= must:
            return None
        worst = min(eq_classes, key=lambda eq_class: (eq_class.fits, _is_open(eq_class)))
        why = self._short_in_all(worst, must) if worst.fits else self.shortage(worst)
        return _too_few(must, unit, fits, why)

    def _short_in_all(self, eq_class: EquivalenceClass, must: int) -> Message:
        """`needs 4 cpu, 3 of 6 are free, the most on one node is 1 on node a`."""
        found = self._totals.get(id(eq_class))
        if found is None:
            found = self._totals[id(eq_class)] = _in_all(eq_class)
        name, amount, left = found
        return Message("Resources.InAll", {"need": shown(name, must * amount), "resource": name, **left})

    def _together(self, gang: Gang, domain: Mask | None = None) -> Message:
        """What the first pod lacks for which no place is left, in the domain, once the pods before it have theirs."""
        resources, minimum, where = self._cycle.resources, gang.minimum(), self._cycle.node_filter(gang)
        used: set[Key] = set()
        mark = resources.mark()
        try:
            wants = [(unit.pods, unit.must, unit.name) for unit in minimum.units if not unit.parts]
            for members, must, unit_name in [*wants, (minimum.pods, minimum.total, "")]:
                free = [pod for pod in members if pod.key not in used]
                had = len(members) - len(free)
                used |= {one.pod.key for one in self._cycle.gangs.place_some(free, must - had, where.within(domain))}
                fits = sum(pod.key in used for pod in members)
                for first in (pod for pod in free if fits < must and pod.key not in used):
                    eq_class = self._cycle.view.eq_class_of(first).sync()
                    why = self._closed(eq_class, first, where, domain) if eq_class.fits else _shortage(eq_class)
                    return _too_few(must, unit_name, fits, why)
        finally:
            resources.rollback(mark)
        for unit in minimum.units:
            if unit.parts and unit.must == 1:
                return Message("Gang.Subgroup", {"unit": unit.name})
            if unit.parts:
                return Message("Gang.Subgroups", {"count": unit.must, "unit": unit.name})
        return Message("Gang.Apart", {"pods": pods(minimum.total)})

    def _closed(self, eq_class: EquivalenceClass, pod: Pod, where: NodeFilter, domain: Mask | None = None) -> Message:
        """`host port 8080 is taken on all 3 nodes`, of a pod for which nodes have enough resources."""
        inside = np.ones_like(eq_class.eligible) if domain is None else domain
        able = (eq_class.slots > 0) & inside
        rules = self._cycle.view.affinity.closed(pod, eq_class.eligible, able)
        parts = [(rule.why, int(np.count_nonzero(rule.nodes))) for rule in rules]
        if where.mask is not None:
            kept = int(np.count_nonzero(able & ~where.mask))
            parts += [(Message("Closed.Reservation"), kept)] if kept else []
        full = int(np.count_nonzero(eq_class.eligible & inside & ~able))
        parts += [(Message("Closed.Full"), full)] if full else []
        closed = [Message(why.code, {**why.parameters, "nodes": self._nodes(count)}) for why, count in parts]
        return all_of([*closed, *_barred(eq_class)] or [NO_PLACE])

    def _nodes(self, count: int) -> Message:
        whole = len(self._cycle.resources.rows)
        if count == 1:
            return Message("Nodes.Only" if whole == 1 else "Nodes.One")
        return Message("Nodes.All" if count == whole else "Nodes", {"count": count})

    def _no_domain(self, closeness: TopologyConstraint | None, together: Message) -> Message | None:
        """Why no nodes are near enough to each other, whatever is free; None where some are."""
        topology = self._cycle.view.topology
        if closeness is None or not closeness.hard:
            return None
        if not topology.tiers:
            return Message("Topology.Unknown", {"pods": together})
        if not topology.reach(closeness):
            return Message("Topology.NoSuchTier", {"pods": together, "tier": closeness.tier_name})
        tier = topology.widest(closeness)
        if tier is not None and not tier.domain.any():
            return Message("Topology.NoDomain", {"pods": together, "tier": tier.label})
        return None

    def _hole(self, gang: Gang, tier: Tier) -> Message:
        """`needs 8 nvidia.com/gpu in one rack, the most free is 6 in rack r2`."""
        minimum = gang.minimum()
        total = max(minimum.total, 1)  # pods beyond the minimum are placed one by one
        eq_classes = self._cycle.gangs.eq_classes(minimum.pods)
        sums = sum(
            (tier.sums(eq_class.sync().slots) for eq_class in eq_classes), np.zeros(len(tier.names), dtype=np.int64)
        )
        sitting = {pod.node for pod in gang.placed.values()} & self._cycle.resources.rows.keys()
        if sitting:
            domain = int(tier.domain[self._cycle.resources.rows[min(sitting)]])
            more = Message("Pods.OneMore") if total == 1 else Message("Pods.More", {"count": total})
            return Message("Topology.Full", {"pods": more, "tier": tier.label, "domain": tier.names[domain]})
        there = sorted(set(tier.domain.tolist()) - {0})  # names of domains outlive their nodes
        best = min(there, key=lambda domain: (-int(sums[domain]), tier.names[domain]), default=0)
        if minimum and sums[best] >= minimum.total:
            cause = self._together(gang, tier.mask(best))
            return Message("Topology.Roomiest", {"tier": tier.label, "domain": tier.names[best], "cause": cause})
        # The figures are about what is scarce: an accelerator before cpu and memory.
        counted = eq_classes[0].vector.counted or (("pods", 1000),)
        name, amount = min(counted, key=lambda pair: (pair[0] in COMMON, pair[0]))
        need, free = shown(name, amount * total), shown(name, amount * int(sums[best]))
        where = {"tier": tier.label, "domain": tier.names[best]}
        return Message("Topology.Hole", {"need": need, "resource": name, "free": free, **where})

    def shortage(self, eq_class: EquivalenceClass) -> Message:
        found = self._shortages.get(id(eq_class))
        if found is None:
            found = self._shortages[id(eq_class)] = _shortage(eq_class.sync())
        return found


def _too_few(must: int, unit: str, fits: int, cause: Message) -> Message:
    """Too few of so many pods fit, of the gang or of a unit of it."""
    parameters = {"pods": pods(must), "fits": fits, "missing": must - fits, "cause": cause}
    return Message("Gang.TooFewOfUnit", {**parameters, "unit": unit}) if unit else Message("Gang.TooFew", parameters)


def _quota(still: BlockReason, refusal: ShareExceeded, shares: FairShares) -> Message:
    name = refusal.resource
    need, used, limit = (shown(name, int(amount)) for amount in (refusal.need, refusal.used, refusal.limit))
    asked = {"need": need, "resource": name}
    if still.over_cluster and refusal.need > refusal.limit:
        return Message("Quota.OverCluster", {**asked, "limit": limit, "remedy": MORE_NODES})
    if still.over_cluster:
        return Message("Quota.Cluster", {**asked, "limit": limit, "used": used})
    if refusal.guaranteed:
        return Message("Quota.Guaranteed", {**asked, "limit": limit, "used": used, "queue": refusal.queue})
    if still.quota is not None:
        where = {"quota": still.quota.name, "namespace": still.quota.namespace}
        if refusal.need > refusal.limit:
            return Message("Quota.OverNamespace", {**asked, "limit": limit, **where})
        return Message("Quota.Namespace", {**asked, "limit": limit, "used": used, **where})
    if remedy := _queue_remedy(refusal, shares):
        most = shown(name, int(shares.standings[refusal.queue].ceiling[name]))
        return Message("Quota.OverQueue", {**asked, "limit": most, "queue": refusal.queue, "remedy": remedy})
    code = "Quota.Weight" if refusal.by_weight else "Quota.Queue"
    return Message(code, {**asked, "limit": limit, "used": used, "queue": refusal.queue})


def _queue_remedy(refusal: ShareExceeded, shares: FairShares) -> Message | None:
    """The remedy for a group that requests more than its queue may ever hold; None if it requests less."""
    name, line = refusal.resource, shares.standings[refusal.queue].line
    if refusal.need <= line[0].ceiling.get(name, float("inf")):
        return None
    tight = [above for above in line if refusal.need > above.queue.capability.get(name, float("inf"))]
    if not tight and refusal.need > shares.total.get(name, 0):
        return MORE_NODES
    if not tight:
        return Message("Remedy.Guarantees")
    if tight[0] is line[0]:
        return Message("Remedy.Capability")
    return Message("Remedy.CapabilityAbove", {"queue": tight[0].queue.name})


def _shortage(eq_class: EquivalenceClass) -> Message:
    """`needs 8 nvidia.com/gpu, the most free is 3 of 4 on node a; 1 node is cordoned`."""
    resources = eq_class.resources
    if not resources.rows:
        return Message("Resources.NoNode")
    rows = np.flatnonzero(eq_class.eligible)
    short = {
        name: rows[np.maximum(resources.free[column, rows], 0) < amount]
        for name, column, amount in eq_class.vector.pairs
    }
    worst = sorted((name for name in short if len(short[name])), key=lambda name: (-len(short[name]), name))
    parts = [_short_of(eq_class, name, short[name]) for name in worst]
    if not parts and eq_class.gpu_milli and not eq_class.fits:
        parts.append(Message("Resources.Device", {"need": f"{eq_class.gpu_milli}m"}))
    return all_of([*parts, *_barred(eq_class)] or [NO_PLACE])


def _barred(eq_class: EquivalenceClass) -> list[Message]:
    """Nodes that are out whatever is free on them, those of the most frequent reason first."""
    barred: Counter[Objection] = eq_class.objections()
    found = []
    for objection, count in sorted(barred.items(), key=lambda item: (-item[1], item[0].kind.rank, item[0].taint)):
        code = f"Barred.{objection.kind}"
        parameters: dict[str, str | int] = {"taint": objection.taint} if objection.taint else {}
        found.append(
            Message(f"{code}.One", parameters) if count == 1 else Message(code, {**parameters, "count": count})
        )
    return found


def _is_open(eq_class: EquivalenceClass) -> bool:
    """Whether some node takes such pods, when it has room."""
    return bool(eq_class.sync().eligible.any())


def _remedies(eq_class: EquivalenceClass) -> Message:
    kinds = {objection.kind for objection in eq_class.objections()}
    ways = [way for kind, way in REMEDIES.items() if kind in kinds]
    return Message("Remedy.NoNodeTakesIt", {"ways": ways or [Message("Remedy.AddNodes")]})


def _in_all(eq_class: EquivalenceClass) -> tuple[str, int, dict[str, str]]:
    """The resource that is shortest in all, how much of it one pod needs, and how much there is."""
    resources, able = eq_class.resources, eq_class.eligible
    free = {name: int(np.maximum(resources.free[column], 0) @ able) for name, column, _ in eq_class.vector.pairs}
    name, column, amount = min(eq_class.vector.pairs, key=lambda pair: (free[pair[0]] / pair[2], pair[0]))
    best, node = _freest(resources, column, np.flatnonzero(able))
    left = {
        "free": shown(name, free[name]),
        "whole": shown(name, int(resources.whole[column] @ able)),
        "most": shown(name, max(int(resources.free[column, best]), 0)),
        "node": node.name,
    }
    return name, amount, left


def _freest(resources: NodeResources, column: int, rows: Ints) -> tuple[int, Node]:
    """The row with the most left, the first by name of several."""
    free = resources.free[column].take(rows)
    most = rows[free == free.max()]
    best = int(most[np.argmin(resources.rank[most])])
    node = resources.nodes[best]
    assert node is not None, "an eligible row has a node"
    return best, node


def _short_of(eq_class: EquivalenceClass, name: str, rows: Ints) -> Message:
    resources = eq_class.resources
    column = resources.column(name)
    best, node = _freest(resources, column, rows)
    whole, free = int(resources.whole[column, best]), max(int(resources.free[column, best]), 0)
    need = shown(name, next(amount for other, _, amount in eq_class.vector.pairs if other == name))
    if not whole:
        return Message("Resources.OnNoNode", {"need": need, "resource": name})
    if name == "pods":
        return Message("Resources.Pods", {"node": node.name, "whole": shown(name, whole)})
    left = {"free": shown(name, free), "whole": shown(name, whole), "node": node.name}
    return Message("Resources.Short", {"need": need, "resource": name, **left})
