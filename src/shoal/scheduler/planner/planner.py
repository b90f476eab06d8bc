"""One plan: who starts where, who gives way, and what everybody else is told.

`plan` is the whole story; each step has its own module. It reads the view, tries things in its arrays and takes all of
them back before it returns: the same view at the same moment gives the same plan, and planning twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from shoal.scheduler.planner.allocate import allocate
from shoal.scheduler.planner.cache import ClusterView
from shoal.scheduler.planner.cycle_state import Cycle
from shoal.scheduler.planner.enqueue import enqueue, send_back
from shoal.scheduler.planner.gang import Members, pod_order
from shoal.scheduler.planner.plan_types import Evict, Plan
from shoal.scheduler.planner.preemption import make_room
from shoal.scheduler.planner.reservation import honour, reserve
from shoal.scheduler.planner.results import UNDONE, conclude


def plan(view: ClusterView, now: float, lap: Callable[[str], None] = lambda _: None) -> Plan:
    """`lap` is told what was done, whenever a part of it is."""
    view.habits.refresh()
    mark = view.room.mark()
    try:
        cycle = Cycle(view, now)
        lap("open")
        undo_half_bound(cycle)  # 1. gangs of which a part was bound, and the rest never
        send_back(cycle)  # 2. admitted too long without a place
        enqueue(cycle)  # 3. who may create pods
        lap("enqueue")
        honour(cycle)  # 4. nodes kept for those who waited too long
        allocate(cycle)  # 5. whole gangs, in their order, on what is free
        reserve(cycle)  # 6. the next who has waited too long
        lap("allocate")
        make_room(cycle)  # 7. shrink, evict, for those who deserve it
        lap("preempt")
        made = conclude(cycle)  # 8. in words
        lap("close")
        return made
    finally:
        view.room.rollback(mark)


def is_half_bound(members: Members) -> bool:
    if members.lone or not members.known or members.group.ran:
        return False
    return bool(members.sitting) and not members.is_whole


def undo_half_bound(cycle: Cycle) -> None:
    """Binds are single calls and some may fail. A gang that never ran holds its nodes only so long."""
    half = [members for members in cycle.view.unsettled.values() if members.sitting and is_half_bound(members)]
    for members in sorted(half, key=lambda members: members.key):
        ends = min(pod.since for pod in members.sitting.values()) + cycle.settings.hold_seconds
        cycle.wake(ends)
        if cycle.now < ends:
            continue
        cycle.undone.add(members.key)
        sentence = UNDONE.format(members.minimum().total)
        for pod in sorted(members.sitting.values(), key=pod_order):
            if pod.protected:
                continue  # a budget may keep it for a while; it is asked for again when that has passed
            cycle.evictions.append(Evict(pod.key, pod.uid, sentence))
            cycle.given_up.add(pod.key)
