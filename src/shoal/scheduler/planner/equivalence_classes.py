"""Equivalence classes: pods with equal requests; a class holds how many of itself every node can still take.

`gpu_sharing` is how many fit now, `later` how many once the leaving pods have left (the same array where none leaves),
`key` how good each node is (score, then name; `NOWHERE` where none fits). All three follow the log of the node
resources: bringing a class up to date costs the nodes that changed, so a gang that cannot fit is rejected by one
comparison. Rules about neighbours are not in here; they are checked pod by pod (`pod_affinity`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from shoal.scheduler.planner.fragmentation import TypicalWorkload
from shoal.scheduler.planner.gang_types import PlannerSettings, WorkloadKind
from shoal.scheduler.planner.gpu_sharing import SharedDevices
from shoal.scheduler.planner.node_and_pod_types import Node, Pod
from shoal.scheduler.planner.node_resources import NodeResources
from shoal.scheduler.planner.pod_affinity import chooses
from shoal.scheduler.planner.resource_vectors import ALL, Ints, Mask, Rows, Vector, at
from shoal.scheduler.planner.scoring import COMMON, Score, SingleScore, score
from shoal.scheduler.planner.taints import shown_taint, tolerates, untolerated

NO_LIMIT = 1 << 20
ONE_BY_ONE = 12  # rows: so few are worked out without arrays
FEW = 64  # rows: so many are worked out without asking which of them matter
RANKS = 1 << 24  # more nodes than there will be
AT_ONCE = 1 << 52
MOST_WORTH = 1 << 28  # whose product with RANKS is below AT_ONCE
NOWHERE = np.iinfo(np.int64).min
CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


class EquivalenceClass:
    def __init__(
        self,
        resources: NodeResources,
        pod: Pod,
        settings: PlannerSettings,
        devices: SharedDevices,
        workload: TypicalWorkload,
    ) -> None:
        self.pod = pod  # any one of them
        self.workload = workload
        self.workload_kind = workload_kind(pod, settings.accelerators)
        self.resources = resources
        self.devices = devices
        self.vector = resources.vector(pod.requests)
        self._amounts = self.vector.amounts[:, None]
        # The resources that matter to it, requested ones first: all it reads of the nodes.
        self.columns = list(
            dict.fromkeys([*self.vector.columns.tolist(), *(resources.column(name) for name in COMMON)])
        )
        self._across = np.array(self.columns, dtype=np.intp)[:, None]
        self.gpu = next((name for name, _ in self.vector.counted if name in settings.accelerators), None)
        self.gpu_count = 0 if self.gpu is None else max(pod.requests[self.gpu] // 1000, 1)
        self.gpu_milli = pod.gpu_milli
        self.packs = settings.profile == "pack" or (settings.profile == "auto" and self.gpu is not None)
        self.weights = dict.fromkeys(settings.accelerators, settings.accelerator_weight) | {"cpu": 1, "memory": 1}
        used = [resources.column(n) for n in settings.accelerators if n in resources.resources.index]
        self.shunned = used if self.gpu is None and settings.profile == "auto" else []
        self.preferred = pod.preferred_nodes
        self.soft_taints = False
        self.is_careful = bool(pod.ports or pod.together or pod.apart or pod.spreads or pod.gpu_milli)
        self.is_solitary = bool(pod.ports) or any(chooses(rule, pod) for rule in pod.apart)  # never two on one node
        self.slots: Ints = np.zeros(0, dtype=np.int64)
        self.later: Ints = self.slots
        self.key: Ints = self.slots
        self.later_key: Ints = self.slots
        self.device: Ints = self.slots  # where devices are shared: the best one on each node
        self.eligible: Mask = np.zeros(0, dtype=np.bool_)
        self.fits = 0  # the sum of slots
        self.fits_later = 0
        self._worth: Score
        self._worth_of_one: SingleScore | None = None
        self._is_choosy = True  # there are nodes that have something and are not for it
        self._tie: Ints = self.slots
        self._empty: Ints | None = None
        self._stamp = (-1, 0, False)
        self._position = 0

    def sync(self) -> EquivalenceClass:
        resources = self.resources
        if self._stamp != (resources.epoch, self.workload.version, resources.is_leaving):
            self._start_over()
        elif self._position < len(resources.log):
            rows = resources.log[self._position :]
            self._position = resources.read_to = len(resources.log)
            if len(rows) > ONE_BY_ONE or not self._count_singly(rows):
                self._count(np.frombuffer(rows, dtype=np.int64))
        return self

    def _start_over(self) -> None:
        resources = self.resources
        self._stamp = (resources.epoch, self.workload.version, resources.is_leaving)
        self._position = resources.read_to = len(resources.log)
        self.soft_taints = any(
            t.get("effect") == "PreferNoSchedule" for kind in resources.kinds if kind is not None for t in kind.taints
        )
        self.eligible = self._by_kind()[resources.kind] & self._selected() & self._reached()
        self._is_choosy = not self._amounts.size or bool((resources.whole.any(axis=0) & ~self.eligible).any())
        self._tie = RANKS - 1 - resources.rank
        arrays = [np.zeros(len(resources), dtype=np.int64) for _ in range(5)]
        self.slots, self.key, self.device = arrays[:3]
        self.later, self.later_key = arrays[3:] if resources.is_leaving else arrays[:2]
        self._worth, self._worth_of_one = score(self, resources)
        self._empty = None
        self._count(ALL)

    def _count(self, rows: Rows) -> None:
        resources = self.resources
        free = self._of(resources.free, rows)
        slots = self._room_for(free, rows, later=False)
        self.slots[rows] = slots
        if not isinstance(rows, slice) and len(rows) > FEW and not resources.is_leaving and not self.devices.are_shared:
            self.key[rows] = NOWHERE
            able = slots.nonzero()[0]  # few in a full cluster, and the others are worth nothing
            best = rows.take(able)
            self.key[best] = self._points(free.take(able, axis=1), best)
        else:
            points = self._points(free, rows)
            self.key[rows] = np.where(slots > 0, points, NOWHERE)
        self.fits = self.fits_later = int(np.add.reduce(self.slots))
        if resources.is_leaving:
            later = self._room_for(free + self._of(resources.coming, rows), rows, later=True)
            self.later[rows] = later
            # A node that can take the pod at once is better than any that must be waited for.
            self.later_key[rows] = np.where(later > 0, points + (slots > 0) * AT_ONCE, NOWHERE)
            self.fits_later = int(self.later.sum())

    def _count_singly(self, rows: Iterable[int]) -> bool:
        """The same for a few rows: arrays of a few numbers cost more than the numbers. False: that cannot be."""
        worth_of, cells, asked = self._worth_of_one, self.resources.cells, self.vector.cells
        if worth_of is None or not asked or self.resources.is_leaving:
            return False
        for row in rows:
            slots = min([cells[column][row] // amount for column, amount in asked])
            if slots < 0 or (self._is_choosy and not self.eligible[row]):
                slots = 0
            points = worth_of(row) if slots else 0
            if not -MOST_WORTH < points < MOST_WORTH:
                return False
            self.fits += slots - int(self.slots[row])
            self.slots[row] = slots
            self.key[row] = points * RANKS + int(self._tie[row]) if slots else NOWHERE
        self.fits_later = self.fits
        return True

    def _points(self, free: Ints, rows: Rows) -> Ints:
        """The worth of each row, and its name where that is equal."""
        points = self._worth(free, rows)
        points *= RANKS
        points += at(self._tie, rows)
        return points

    def slots_when_empty(self) -> Ints:
        """How many fit on each node with only pods on it that never leave; computed once for these nodes."""
        whole, fixed = self.resources.whole, self.resources.fixed
        if self._empty is None:
            self._empty = np.full(len(self.resources), NO_LIMIT, dtype=np.int64)
            for _, column, amount in self.vector.pairs:
                np.minimum(self._empty, (whole[column] - fixed[column]) // amount, out=self._empty)
            np.maximum(self._empty, 0, out=self._empty)
            self._empty *= self.eligible
        return self._empty

    def slots_on_whole(self) -> Ints:
        """How many the nodes it chooses by their labels would hold, were they empty, ready and open to all. Where it
        chooses none, all nodes count: what is wrong then are labels and not sizes."""
        resources = self.resources
        there = resources.kind > 0
        chosen = there & self._selected() & self._near()
        slots = np.full(len(resources), NO_LIMIT, dtype=np.int64)
        for _, column, amount in self.vector.pairs:
            np.minimum(slots, resources.whole[column] // amount, out=slots)
        slots *= chosen if chosen.any() else there
        return slots

    def fits_with(self, more: Ints) -> int:
        """How many would fit in all if so much more were free."""
        free = self._of(self.resources.later() + more, ALL)
        return int(np.add.reduce(self._room_for(free, ALL, later=True)))

    def score(self, rows: Ints, pods: int) -> Ints:
        """For the last of so many pods placed on each row."""
        return self._worth(self._of(self.resources.free, rows), rows, pods=pods)

    def _of(self, amounts: Ints, rows: Rows) -> Ints:
        """Its own columns, in their order, of one of the room's arrays."""
        found: Ints = amounts[self.columns] if isinstance(rows, slice) else amounts[self._across, rows]
        return found

    def _room_for(self, free: Ints, rows: Rows, *, later: bool) -> Ints:
        asked = len(self._amounts)
        if asked:
            count: Ints = np.minimum.reduce(free[:asked] // self._amounts, axis=0)
        else:
            count = np.full(free.shape[1], NO_LIMIT, dtype=np.int64)
        if self.gpu is not None and self.devices.are_shared:
            np.minimum(count, self.devices.slots(rows, self.gpu_count, self.gpu_milli, later=later), out=count)
        np.maximum(count, 0, out=count)
        if self._is_choosy:
            count *= self.eligible[rows]
        return count

    def _by_kind(self) -> Mask:
        return np.array([barred(self.pod, kind) is None for kind in self.resources.kinds])

    def _selected(self) -> Mask:
        ok = np.ones(len(self.resources), dtype=np.bool_)
        for key, value in self.pod.node_selector.items():
            column = self.resources.label(key)
            ok &= column.codes == column.index.get(value, -1)
        return ok

    def _near(self) -> Mask:
        """Where required node affinity holds."""
        terms = self.pod.node_terms
        return np.ones(len(self.resources), dtype=np.bool_) if terms is None else self._any_of(terms)

    def _reached(self) -> Mask:
        """Where, besides, every volume can be mounted."""
        ok = self._near()
        for terms in self.pod.volume_terms:
            ok &= self._any_of(terms)
        return ok

    def _any_of(self, terms: Iterable[Mapping[str, Any]]) -> Mask:
        found = np.zeros(len(self.resources), dtype=np.bool_)
        for term in terms:
            found |= self.resources.matching(term, ALL)
        return found

    def objections(self) -> Counter[Objection]:
        """Why nodes are out whatever is free on them, and how many."""
        resources, counted = self.resources, Counter[Objection]()
        left = (resources.kind > 0) & ~self.eligible
        by_kind = self._by_kind()
        for kind, nodes in zip(
            *np.unique(resources.kind[left & ~by_kind[resources.kind]], return_counts=True), strict=True
        ):
            objection = barred(self.pod, resources.kinds[kind])
            assert objection is not None, "such nodes take no pod like this one"
            counted[objection] += int(nodes)
        left &= by_kind[resources.kind]
        for why, ok in (
            (ObjectionKind.NODE_SELECTOR, self._selected()),
            (ObjectionKind.NODE_AFFINITY, self._near()),
        ):
            counted[Objection(why)] += int(np.count_nonzero(left & ~ok))
            left &= ok
        counted[Objection(ObjectionKind.VOLUMES)] += int(np.count_nonzero(left))
        return +counted


class ObjectionKind(StrEnum):
    """Why a node takes no pod like this one, whatever is free on it, in the order of messages about as many nodes."""

    NODE_AFFINITY = "NodeAffinity"
    NODE_SELECTOR = "NodeSelector"
    VOLUMES = "Volumes"
    TAINT = "Taint"
    CORDONED = "Cordoned"
    GONE = "Gone"
    NOT_READY = "NotReady"

    @property
    def rank(self) -> int:
        return list(ObjectionKind).index(self)


class Objection(NamedTuple):
    kind: ObjectionKind
    taint: str = ""  # which one the pod does not tolerate


def barred(pod: Pod, node: Node | None) -> Objection | None:
    """Why a node of this kind takes no pod like this one; None where it may."""
    if node is None:
        return Objection(ObjectionKind.GONE)
    if not node.ready:
        return Objection(ObjectionKind.NOT_READY)
    if node.unschedulable and not tolerates(pod, CORDON):
        return Objection(ObjectionKind.CORDONED)
    if taint := untolerated(pod, node):
        return Objection(ObjectionKind.TAINT, shown_taint(taint))
    return None


class EquivalenceClasses:
    """Every class of pods that waits or lately waited. Equal requests always get the same object."""

    KEPT = 512

    def __init__(
        self, resources: NodeResources, settings: PlannerSettings, devices: SharedDevices, workload: TypicalWorkload
    ) -> None:
        self._room = resources
        self._settings = settings
        self._devices = devices
        self._habits = workload
        self._known: WeakValueDictionary[Any, EquivalenceClass] = WeakValueDictionary()
        self._kept: dict[Any, EquivalenceClass] = {}  # beyond the pods that have them

    def of(self, pod: Pod, vector: Vector) -> EquivalenceClass:
        """`vector` is what the pod requests."""
        key = vector if _is_plain(pod) else class_key(pod)
        found = self._known.get(key)
        if found is None:
            if len(self._kept) >= self.KEPT:
                del self._kept[next(iter(self._kept))]
            found = EquivalenceClass(self._room, pod, self._settings, self._devices, self._habits)
            self._known[key] = self._kept[key] = found
        return found


def _is_plain(pod: Pod) -> bool:
    """Requests resources and nothing else, as most do."""
    return not (
        pod.node_selector
        or pod.tolerations
        or pod.gpu_milli
        or pod.ports
        or pod.together
        or pod.apart
        or pod.spreads
        or pod.preferred_nodes
        or pod.volume_terms
        or pod.node_terms is not None
    )


def class_key(pod: Pod) -> Any:
    return (
        tuple(pod.requests.items()),
        _frozen(pod.node_selector),
        None if pod.node_terms is None else tuple(_frozen(term) for term in pod.node_terms),
        tuple(_frozen(toleration) for toleration in pod.tolerations),
        pod.gpu_milli,
        pod.ports,
        pod.together,
        pod.apart,
        pod.spreads,
        tuple((weight, _frozen(term)) for weight, term in pod.preferred_nodes),
        tuple(tuple(_frozen(term) for term in terms) for terms in pod.volume_terms),
        # Neighbours select by labels; pods without such rules of their own are distinguished only where labels count.
        (pod.key.namespace, _frozen(pod.labels)) if pod.together or pod.apart or pod.spreads else None,
    )


def workload_kind(pod: Pod, accelerators: tuple[str, ...]) -> WorkloadKind:
    """The pod as one of the kinds whose use of devices is learned."""
    asked = sum(pod.requests.get(name, 0) for name in accelerators)
    count = 1 if pod.gpu_milli else asked // 1000
    return WorkloadKind(pod.requests.get("cpu", 0), pod.requests.get("memory", 0), count, pod.gpu_milli or 1000)


def _frozen(value: Any) -> Any:
    if isinstance(value, Mapping):
        return tuple((key, _frozen(inner)) for key, inner in sorted(value.items())) if value else ()
    if isinstance(value, list | tuple):
        return tuple(_frozen(inner) for inner in value)
    return value
