"""One plan: which pods start where, which are evicted, and what is reported on all others.

`plan` is the whole sequence; each step has its own module. It reads the view, tries changes in its arrays and reverts
all of them before it returns: the same view at the same moment gives the same plan, and planning twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from shoal.scheduler.planner.allocate import allocate
from shoal.scheduler.planner.cluster_view import ClusterView
from shoal.scheduler.planner.cycle_state import CycleState
from shoal.scheduler.planner.enqueue import enqueue, requeue_timed_out
from shoal.scheduler.planner.gang import Gang, pod_order
from shoal.scheduler.planner.message_parts import undone
from shoal.scheduler.planner.plan_builder import build_plan
from shoal.scheduler.planner.plan_types import Evict, Plan
from shoal.scheduler.planner.preemption import preempt
from shoal.scheduler.planner.reservation import apply_reservations, reserve


def plan(view: ClusterView, now: float, lap: Callable[[str], None] = lambda _: None) -> Plan:
    """`lap` is called with the name of each stage when it is done."""
    view.workload.refresh()
    mark = view.resources.mark()
    try:
        cycle = CycleState(view, now)
        lap("open")
        undo_half_bound(cycle)  # 1. gangs of which some pods were bound, and the rest never
        requeue_timed_out(cycle)  # 2. admitted too long without a place
        enqueue(cycle)  # 3. who may create pods
        lap("enqueue")
        apply_reservations(cycle)  # 4. nodes kept for those who waited too long
        allocate(cycle)  # 5. whole gangs, in their order, on what is free
        reserve(cycle)  # 6. the next who has waited too long
        lap("allocate")
        preempt(cycle)  # 7. shrink, evict, for those who deserve it
        lap("preempt")
        made = build_plan(cycle)  # 8. messages
        lap("close")
        return made
    finally:
        view.resources.rollback(mark)


def is_half_bound(gang: Gang) -> bool:
    if gang.lone or not gang.known or gang.group.ran:
        return False
    return bool(gang.placed) and not gang.is_whole


def undo_half_bound(cycle: CycleState) -> None:
    """Binds are single calls and some may fail. A gang that never ran holds its nodes only so long."""
    half = [gang for gang in cycle.view.unsettled.values() if gang.placed and is_half_bound(gang)]
    for gang in sorted(half, key=lambda gang: gang.key):
        ends = min(pod.since for pod in gang.placed.values()) + cycle.settings.hold_seconds
        cycle.wake(ends)
        if cycle.now < ends:
            continue
        cycle.undone.add(gang.key)
        message = undone(gang.minimum().total)
        for pod in sorted(gang.placed.values(), key=pod_order):
            if pod.protected:
                continue  # a budget may keep it for a while; its eviction is tried again after that
            cycle.evictions.append(Evict(pod.key, pod.uid, message))
            cycle.given_up.add(pod.key)
