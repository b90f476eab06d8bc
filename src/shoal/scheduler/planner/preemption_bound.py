"""Whether a search for victims could succeed: would the gang fit if all possible victims were evicted?

A search simulates victims one by one and costs milliseconds; on a full cluster hundreds of gangs would need one and
most would find too little. What all pods may lose in total is the same for all groups that request the same resources,
so it is added up once in a plan, and a gang is compared with the sum. It is an upper bound: a gang that passes may
still fail, one that does not pass would surely have failed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from shoal.kube.objects import Key
from shoal.scheduler.planner.cycle_state import CycleState, asked_at_least
from shoal.scheduler.planner.equivalence_classes import EquivalenceClass
from shoal.scheduler.planner.gang import Gang
from shoal.scheduler.planner.node_and_pod_types import Pod
from shoal.scheduler.planner.preemption_candidates import (
    has_weaker,
    held,
    is_losable,
    steps_of_queue,
    steps_within,
)
from shoal.scheduler.planner.resource_vectors import Ints, Vector


class PreemptionBound:
    def __init__(self, cycle: CycleState) -> None:
        self._cycle = cycle
        self._freed: dict[object, Ints] = {}  # what would become free, per resource and row
        self._is_weaker: dict[object, bool] = {}  # whether any pod could be preempted, by queue and priority
        self._most: dict[object, int] = {}  # how many pods of a shape would fit then

    def reset(self) -> None:
        """A victim was chosen: less can be freed now, and other queues may now hold too much."""
        self._freed.clear()
        self._is_weaker.clear()
        self._most.clear()

    def within(self, gang: Gang) -> bool:
        """Whether it would fit without all weaker pods of the same queue."""
        eq_class = self._shape(gang)
        if eq_class is None:
            return True
        of = ("within", gang.group.queue, gang.group.priority)
        if of not in self._freed:
            self._freed[of] = self._sum(pod for step in steps_within(self._cycle, gang) for pod in step.pods)
        return self._could_hold(gang, eq_class, of)

    def has_weaker(self, gang: Gang) -> bool:
        """Whether anything at all could be preempted for it."""
        of = (gang.group.queue, gang.group.priority)
        if of not in self._is_weaker:
            self._is_weaker[of] = has_weaker(self._cycle, gang) and bool(steps_within(self._cycle, gang))
        return self._is_weaker[of]

    def beyond(self, gang: Gang) -> bool:
        """Whether there would be room with everything gone that other queues hold beyond what they deserve."""
        eq_class = self._shape(gang)
        if eq_class is None:
            return True
        wanted = asked_at_least(gang, self._cycle.view)
        of = ("beyond", frozenset(wanted), eq_class.eligible.tobytes())
        if of not in self._freed:
            self._freed[of] = self._sum(self._losable(eq_class, wanted))
        return self._could_hold(gang, eq_class, of)

    def _shape(self, gang: Gang) -> EquivalenceClass | None:
        """The one equivalence class of the gang; None where counting what is free does not show whether it fits."""
        if self._cycle.view.devices.are_shared or self._cycle.gangs.kind(gang) is None:
            return None
        eq_classes = gang.minimum().eq_classes
        return eq_classes[0].sync() if eq_classes else None

    def _could_hold(self, gang: Gang, eq_class: EquivalenceClass, of: object) -> bool:
        most = self._most.get((id(eq_class), of))
        if most is None:
            most = self._most[id(eq_class), of] = eq_class.fits_with(self._freed[of])
        return most >= gang.minimum().total

    def _losable(self, eq_class: EquivalenceClass, wanted: Mapping[str, int]) -> Iterable[Pod]:
        """Each queue's victims in their order for as long as it holds too much: nobody's loss depends on another's."""
        cycle = self._cycle
        taken: dict[Key, Pod] = {}
        rows = cycle.resources.rows
        mark = cycle.resources.mark()
        for name in list(cycle.view.accounts):
            if not is_losable(cycle, name, wanted):
                continue
            for step in steps_of_queue(cycle, name):
                if not is_losable(cycle, name, wanted):
                    break
                # A step is of use where one of its pods runs on a node that the pods could go to.
                on = (rows[pod.node] for pod in step.pods if pod.node in rows)
                if any(eq_class.eligible[row] for row in on) and cycle.shares.can_lose(name, step.held, wanted):
                    fresh = [pod for pod in step.pods if pod.key not in taken]
                    taken.update((pod.key, pod) for pod in fresh)
                    cycle.shares.charge(name, held(cycle, fresh).items(), -1)
        cycle.resources.rollback(mark)
        return taken.values()

    def _sum(self, pods: Iterable[Pod]) -> Ints:
        resources = self._cycle.resources
        rows: dict[Vector, dict[Key, int]] = {}
        for pod in pods:
            row = resources.rows.get(pod.node)
            if row is not None:
                rows.setdefault(self._cycle.view.vector_of(pod), {})[pod.key] = row
        freed = np.zeros_like(resources.free)
        for vector, found in rows.items():
            count = np.bincount(list(found.values()), minlength=len(resources))
            for column, amount in vector.cells:
                freed[column] += count * amount
        return freed
