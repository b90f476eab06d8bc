"""Step 1, recognise: whose is what. The bodies of the world are put beside the tasks of the ledger.

By uid where the ledger has one, else by stamp; never by name alone. An object whose uid was not stored before a crash
carries the stamp of the very attempt that the ledger still waits for, and is adopted: its process may have run, and
to replace it would be a retry that no counter shows. Receipts enter uids into records, and every task climbs to the
stage its body shows. Nothing is judged here: a body that ended or vanished is only pointed out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime

from msgspec.structs import replace

from shoal.engine.model import Job
from shoal.engine.observed import Accepted, Anchor, AnchorRef, Body, Created, Gone, Observed, Phase, Refused
from shoal.engine.pass_context import Scene, Tasks
from shoal.engine.policies import Memory, Names
from shoal.engine.state import JobState, RoleState, Run, TaskState
from shoal.engine.types import Stage, TaskRef
from shoal.engine.unindexed_pods import seat


def recognise(job: Job, state: JobState, observed: Observed, now: datetime) -> tuple[JobState, Scene]:
    scene = Scene(job, observed, now)
    settled = state.settled
    state = _prune(state, scene)
    state = _take_receipts(state, scene, settled)
    state = _see_anchor(state, scene)
    if job.policies.embodiment.names is Names.RANDOM:
        state = seat(job, state, scene)
    else:
        state = _place_bodies(state, scene)
    return _climb(state, scene), scene


def _take_receipts(state: JobState, scene: Scene, settled: Collection[str]) -> JobState:
    """What our writes came to. A birth may be told again after its body was settled: that body gets no task back."""
    changes: Tasks = {}
    for receipt in scene.observed.receipts:
        target = receipt.target
        if isinstance(receipt, Created) and receipt.uid in settled:
            continue
        if isinstance(receipt, Gone):
            scene.gone.add((target, receipt.uid))
        elif isinstance(target, AnchorRef):
            state = _anchor_receipt(state, receipt, scene.stamp)
        elif isinstance(target, TaskRef):
            if isinstance(receipt, Refused):
                scene.refused[target] = receipt
                continue
            task = changes.get(target.role, {}).get(target.index) or state.task(target)
            if task is not None:
                changes.setdefault(target.role, {})[target.index] = _task_receipt(task, receipt, scene.stamp)
    return state.with_tasks(changes)


def _anchor_receipt(state: JobState, receipt: Created | Accepted | Refused, stamp: datetime) -> JobState:
    run = state.run
    if isinstance(receipt, Created) and run.anchor is None and run.stage is Stage.WAITING:
        run = replace(run, anchor=receipt.uid).at(Stage.REQUESTED, stamp)
    elif isinstance(receipt, Accepted) and run.stage is Stage.CLOSING and receipt.uid == run.anchor:
        run = run.at(Stage.ASKED, stamp)
    return state if run is state.run else replace(state, run=run)


def _task_receipt(task: TaskState, receipt: Created | Accepted, stamp: datetime) -> TaskState:
    if isinstance(receipt, Created):
        if task.uid is None and task.stage is Stage.WAITING:
            return task.embodied(receipt.uid).at(Stage.REQUESTED, stamp)
    elif task.stage is Stage.CLOSING and receipt.uid == task.uid:
        return task.at(Stage.ASKED, stamp)
    return task


def _see_anchor(state: JobState, scene: Scene) -> JobState:
    """The run follows what its anchor shows; its loss is judged later."""
    if scene.job.policies.embodiment.anchor is None:
        return state
    run, found = state.run, scene.observed.anchor
    if found is not None and _is_unstored_anchor(run, found):
        run = replace(run, anchor=found.uid).at(Stage.REQUESTED, scene.stamp)
    if found is not None and found.uid != run.anchor:
        scene.stray_anchor, found = found, None
    scene.anchor = found
    if found is None or run.stage >= Stage.OVER:
        return state
    if found.leaving:
        run = run.at(Stage.LEAVING, scene.stamp)
    elif run.stage is Stage.REQUESTED:
        run = run.at(Stage.PREPARING if run.is_open else Stage.CLOSING, scene.stamp)
    return state if run is state.run else replace(state, run=run)


def _is_unstored_anchor(run: Run, found: Anchor) -> bool:
    """Created for this run by an operator that stopped before it stored the uid."""
    return run.stage is Stage.WAITING and run.anchor is None and found.owned and found.run == run.number


def _place_bodies(state: JobState, scene: Scene) -> JobState:
    is_recorded = scene.job.policies.embodiment.memory is Memory.RECORD
    is_its_body = _is_unstored_body if is_recorded else _is_stamped_body
    known = {role.name: {task.index: task for task in role.tasks} for role in state.roles}
    found: dict[str, list[Body]] = {}  # bodies of tasks the ledger does not list
    for body in scene.observed.bodies:
        place = (body.role, body.index if body.index is not None else -1)
        scene.taken.add(place)
        if not body.owned:
            continue
        if body.uid in state.settled:
            scene.doomed.append(body)
            continue
        task = known.get(body.role, {}).get(place[1])
        if task is not None and (task.uid == body.uid or is_its_body(state, task, body)):
            scene.bodies[place] = body
        elif task is None and not is_recorded and state.run.is_open and body.run == state.run.number:
            scene.bodies[place] = body
            found.setdefault(body.role, []).append(body)
        else:
            scene.strays.append(body)
    return _enter(state, found) if found else state


def _is_unstored_body(state: JobState, task: TaskState, body: Body) -> bool:
    """Created for this attempt by an operator that stopped before it stored the uid."""
    if not state.run.is_open or task.dropped or task.stage is not Stage.WAITING or task.attempt.outcome is not None:
        return False
    stamp = (body.run, body.instance, body.attempt)
    return task.uid is None and stamp == (state.run.number, task.instance, task.attempt.number)


def _is_stamped_body(state: JobState, task: TaskState, body: Body) -> bool:
    """A stamped body the record does not name: of this run, or the kept remains of a task that is done."""
    if task.dropped:
        return False
    return body.run == state.run.number or (task.is_done and body.is_finished)


def _enter(state: JobState, found: dict[str, list[Body]]) -> JobState:
    """Tasks rebuilt from their bodies, where the ledger keeps none for living ones."""
    names = {role.name for role in state.roles}
    roles = [*state.roles, *(RoleState(name) for name in found if name not in names)]
    entered = []
    for role in roles:
        extra = [TaskState(body.index or 0) for body in found.get(role.name, ())]
        tasks = tuple(sorted([*role.tasks, *extra], key=lambda task: task.index)) if extra else role.tasks
        entered.append(replace(role, tasks=tasks) if extra else role)
    return replace(state, roles=tuple(entered))


def _climb(state: JobState, scene: Scene) -> JobState:
    """Every task to the stage its body shows."""
    memory = scene.job.policies.embodiment.memory
    roles, bodies, moved = [], scene.bodies, False
    for role in state.roles:
        name, changed = role.name, False
        tasks: list[TaskState] = []
        for task in role.tasks:
            if task.stage is Stage.DONE:
                tasks.append(task)
                continue
            body = bodies.get((name, task.index))
            after = _shown(task, body, state, scene) if body is not None else _missing(task, name, memory, state, scene)
            changed = changed or after is not task
            tasks.append(after)
        roles.append(replace(role, tasks=tuple(tasks)) if changed else role)
        moved = moved or changed
    return replace(state, roles=tuple(roles)) if moved else state


def _shown(task: TaskState, body: Body, state: JobState, scene: Scene) -> TaskState:
    """The task beside a body that is there."""
    if task.uid != body.uid:
        task = task.embodied(body.uid)
    if body.leaving:
        return task.at(Stage.LEAVING, scene.stamp)
    attempt = task.attempt
    if attempt.ip != body.ip or attempt.node != body.node or attempt.host_ip != body.host_ip:
        task = replace(task, attempt=replace(attempt, node=body.node, ip=body.ip, host_ip=body.host_ip))
    if task.stage >= Stage.CLOSING:
        return task
    if attempt.outcome is not None and state.run.is_open:
        return task.at(Stage.CLOSING, scene.stamp)  # ended before it was ever seen
    if body.phase is Phase.RUNNING:
        return task.at(Stage.RUNNING, scene.stamp)
    if task.stage < Stage.PREPARING or body.phase is Phase.PENDING:
        return task.at(Stage.PREPARING, scene.stamp)
    return task


def _missing(task: TaskState, role: str, memory: Memory, state: JobState, scene: Scene) -> TaskState:
    """The task without a body: not made yet, gone as it was told to, or lost."""
    if memory is Memory.RECORD:
        return _missing_of_record(task, role, state, scene)
    is_awaited = memory is Memory.ROSTER or scene.job.policies.embodiment.names is Names.RANDOM
    if is_awaited and task.stage is Stage.REQUESTED and not _is_confirmed_gone(task, role, scene):
        return task  # created and not seen yet; how long that may take is the clock's business
    if memory is Memory.ROSTER and task.born and state.run.is_open and not task.dropped:
        scene.losses.append(TaskRef(role, task.index))
        return task
    if task.stage is Stage.WAITING and task.uid is None and not task.born:
        return task
    return task.vacated(scene.stamp)


def _missing_of_record(task: TaskState, role: str, state: JobState, scene: Scene) -> TaskState:
    if task.stage >= Stage.PREPARING:
        ref = TaskRef(role, task.index)
        if task.outcome is None:
            scene.losses.append(ref)
        scene.over.append(ref)
        return task.at(Stage.OVER, scene.stamp)
    if task.outcome is not None and state.run.is_open and _is_confirmed_gone(task, role, scene):
        scene.over.append(TaskRef(role, task.index))
        return task.at(Stage.OVER, scene.stamp)
    return task


def _is_confirmed_gone(task: TaskState, role: str, scene: Scene) -> bool:
    return bool(scene.gone) and (TaskRef(role, task.index), task.uid or "") in scene.gone


def _prune(state: JobState, scene: Scene) -> JobState:
    """Settled subjects and handled commands leave the ledger with their objects."""
    if state.settled:
        tracked = scene.job.policies.embodiment.memory is Memory.FINALIZER
        present = {body.uid for body in scene.observed.bodies if body.finalizer or not tracked}
        state = state.unsettle(uid for uid in _subjects(state.settled) if uid not in present)
    if state.handled:
        there = {command.uid for command in scene.observed.commands}
        if not there.issuperset(state.handled):
            state = replace(state, handled=tuple(uid for uid in state.handled if uid in there))
    return state


def _subjects(settled: Iterable[str]) -> list[str]:
    """Settled bodies; latches carry a colon and are lifted by whoever set them."""
    return [uid for uid in settled if ":" not in uid]
