"""Step 7, shape: wanted against scene. Marks and finalizers, deletes, anchor and groups, companions, bodies.

Every delete is justified by the ledger that is stored before it: the body is settled, dropped, a stray, or of a
closed run that may not keep it. It carries the uid and is repeated until the object is gone. A body is made only
for an attempt the ledger wants, behind an open door, under a name nobody holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from shoal.engine.gates import may_start
from shoal.engine.model import Guarded, Job
from shoal.engine.observed import AnchorRef, Body, CommandRef, JobRef
from shoal.engine.owned_objects import shape_companions, shape_groups
from shoal.engine.pass_context import Scene
from shoal.engine.policies import DropMark, Keep, Memory, Names, Propagation, Via
from shoal.engine.retry_spacing import run_created_from, task_created_from
from shoal.engine.run_closing import kept
from shoal.engine.run_lifecycle import must_go
from shoal.engine.state import JobState
from shoal.engine.types import Stage, TaskRef
from shoal.engine.writes import Create, Delete, Door, Free, Mark, Setting, Write


def shape(job: Job, state: JobState, scene: Scene, doors: tuple[Door, ...], guarded: Guarded) -> list[Write]:
    setting = _setting(state, scene)
    going = [] if "delete" in guarded.blocks else list(_going(job, state, scene))
    writes: list[Write] = [*guarded.writes, *_marks(job, state, scene, going)]
    writes += going
    writes += _anchor(job, state, scene, setting)
    writes += shape_groups(job, state, scene, setting)
    writes += shape_companions(job, state, scene, setting)
    if "create" not in guarded.blocks:
        writes += _bodies(job, state, scene, doors, setting)
    writes += _consumed(state, scene)
    writes += _retired(job, state, scene)
    return writes


def _setting(state: JobState, scene: Scene) -> Setting:
    return Setting(
        run=state.run.number,
        anchor=state.run.anchor or "",
        sizes=scene.sizes,
        charged=state.charged,
        resumed=state.stamps.held is not None,
        round=state.round.number,
        frozen=state.frozen,
    )


def _going(job: Job, state: JobState, scene: Scene) -> Iterator[Delete]:
    """Bodies that have to go, gracefully; leaving ones by force when their time is up."""
    for body in _condemned(job, state, scene):
        if not body.leaving:
            yield Delete(_ref(body), body.uid)
    if job.policies.embodiment.memory is Memory.RECORD and state.run.is_open:
        yield from _unseen(state)
    for body in scene.observed.bodies:
        if body.leaving and body.owned:
            due = force_due(state, body)
            if due is not None and scene.now >= due:
                yield Delete(_ref(body), body.uid, grace_seconds=0, confirm=True)


def _condemned(job: Job, state: JobState, scene: Scene) -> Iterator[Body]:
    yield from scene.strays
    for body in scene.doomed:
        why = state.settled.get(body.uid)
        if why is None or why.reason != "counted":
            yield body
    if job.policies.embodiment.memory is Memory.RECORD:
        for role in state.roles:
            for task in role.tasks:
                found = scene.bodies.get((role.name, task.index)) if task.stage is Stage.CLOSING else None
                if found is not None:
                    yield found
    if not state.run.is_open and job.policies.teardown.via is Via.EACH and kept(job, state) is not Keep.ALL:
        yield from (body for body in scene.bodies.values() if must_go(job, state, body))


def _unseen(state: JobState) -> Iterator[Delete]:
    """Attempts that ended without their body ever being seen: a live look must confirm that there is none."""
    for role in state.roles:
        for task in role.tasks:
            if task.stage <= Stage.REQUESTED and task.attempt.outcome is not None:
                yield Delete(TaskRef(role.name, task.index), task.uid or "", confirm=True)


def force_due(state: JobState, body: Body) -> datetime | None:
    """When a leaving body is deleted by force; None: never."""
    role = state.role(body.role)
    if role is None or role.force_after_seconds is None or body.leaving_since is None:
        return None
    return body.leaving_since + timedelta(seconds=role.force_after_seconds)


def _marks(job: Job, state: JobState, scene: Scene, going: list[Delete]) -> Iterator[Write]:
    """Before a body goes: the mark that says who sent it away; and our finalizer once it is counted, or on its way: a
    body that is free and not told to go yet would be forgotten by whoever starts after a crash."""
    doomed = {write.uid for write in going}
    freed = {uid for uid, why in state.settled.items() if why.reason == "counted"}
    freed.update(_counted(state, scene))
    sent_away = {*state.settled, *(body.uid for body in scene.strays)}
    if not state.run.is_open:
        sent_away.update(body.uid for body in scene.bodies.values())
    freed.update(body.uid for body in scene.observed.bodies if body.leaving and body.uid in sent_away)
    marks, tracked = job.policies.shrink.mark is DropMark.POD, job.policies.embodiment.memory is Memory.FINALIZER
    if not marks and not tracked:
        return
    for body in scene.observed.bodies:
        if marks and body.uid in doomed and not body.marked:
            yield Mark(_ref(body), body.uid)
        elif tracked and body.finalizer and body.owned and body.uid in freed:
            yield Free(_ref(body), body.uid)


def _counted(state: JobState, scene: Scene) -> Iterator[str]:
    """Bodies whose end stands in the record of their task."""
    for role in state.roles:
        for task in role.tasks:
            body = scene.bodies.get((role.name, task.index)) if task.is_done else None
            if body is not None and body.is_finished:
                yield body.uid


def _anchor(job: Job, state: JobState, scene: Scene, setting: Setting) -> Iterator[Write]:
    if job.policies.embodiment.anchor is None:
        return
    run, stray, found = state.run, scene.stray_anchor, scene.anchor
    if stray is not None and stray.owned and not stray.leaving:
        yield Delete(AnchorRef(), stray.uid)
    if run.is_open:
        if (
            run.stage is Stage.WAITING
            and stray is None
            and _is_run_due(job, state, scene)
            and may_start(job, state, scene)
        ):
            yield Create(AnchorRef(), setting)
    elif run.stage <= Stage.REQUESTED:
        yield Delete(AnchorRef(), run.anchor or "", confirm=True)
    elif run.stage is Stage.CLOSING and found is not None and not found.leaving:
        # Whoever waits for bodies waits for a collector; where there is none left, nobody has to.
        alone = Propagation.BACKGROUND if _is_left_by_all(state, scene) else None
        yield Delete(AnchorRef(), found.uid, propagation=alone)


def _is_run_due(job: Job, state: JobState, scene: Scene) -> bool:
    created_from = run_created_from(job, state)
    return created_from is None or created_from <= scene.now


def _is_left_by_all(state: JobState, scene: Scene) -> bool:
    over = all(task.is_done for role in state.roles for task in role.tasks)
    return over and not any(body.owned for body in scene.observed.bodies)


def _bodies(job: Job, state: JobState, scene: Scene, doors: tuple[Door, ...], setting: Setting) -> Iterator[Create]:
    open_doors = {door.role for door in doors if door.open}
    if not open_doors or not _is_run_due(job, state, scene):
        return
    reserved = scene.taken if job.policies.embodiment.names is Names.INDEX else scene.bodies.keys()
    rank = 0
    for role in state.roles:
        if role.name in open_doors:
            for position, task in enumerate(role.tasks):
                attempt = task.attempt
                if task.stage is not Stage.WAITING or attempt.uid is not None or attempt.outcome is not None:
                    continue
                if task.dropped or (role.name, task.index) in reserved:
                    continue
                created_from = task_created_from(job, task)
                if created_from is not None and created_from > scene.now:
                    continue
                ref = TaskRef(role.name, task.index)
                if ref in scene.refused:
                    continue  # asked again by whoever backs off, not in the pass that hears of it
                yield Create(ref, setting, attempt.number, task.instance, role.instance, rank + position, task.charged)
        rank += len(role.tasks)


def _consumed(state: JobState, scene: Scene) -> Iterator[Delete]:
    handled = set(state.handled)
    for command in scene.observed.commands:
        if command.uid in handled:
            yield Delete(CommandRef(command.uid), command.uid)


def _retired(job: Job, state: JobState, scene: Scene) -> Iterator[Delete]:
    """An ended job is deleted when its time to live is over."""
    due = ttl_due(job, state)
    if due is not None and scene.now >= due and not job.deleting:
        yield Delete(JobRef(), job.uid, propagation=job.policies.clock.propagation)


def ttl_due(job: Job, state: JobState) -> datetime | None:
    ttl, ended = job.policies.clock.ttl_seconds, state.stamps.ended
    return ended + timedelta(seconds=ttl) if ttl is not None and ended is not None and state.is_ended else None


def _ref(body: Body) -> TaskRef:
    return TaskRef(body.role, body.index if body.index is not None else -1)
