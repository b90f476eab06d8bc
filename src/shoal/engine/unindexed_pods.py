"""Members without a name of their own: bodies with random names are seated in the slots of a role.

The one module that knows that a slot may be a mere count. A body that brings an index (completions by index) sits
there; one without keeps the slot whose record names its uid, else takes the lowest free one, oldest first. A role
grows a slot for everybody who finds none, and the ordinary resize then sends the surplus away. Where slots are
counts, an end that stands is added to the role's counters and the slot is used again.
"""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec.structs import replace

from shoal.engine.model import Job
from shoal.engine.observed import Body, Phase
from shoal.engine.pass_context import Scene
from shoal.engine.policies import CompletionsSize, Deleted, Memory, Names, Release
from shoal.engine.retry import settle_bodies
from shoal.engine.state import JobState, RoleState, TaskState, Why

_LATE = datetime.max.replace(tzinfo=UTC)
_PHASES = {Phase.PENDING: 0, Phase.UNKNOWN: 1}


def seat(job: Job, state: JobState, scene: Scene) -> JobState:
    """Each body beside a slot; those that are settled, finished with or not ours stand aside."""
    waiting: dict[str, list[Body]] = {}
    for body in sorted(scene.observed.bodies, key=lambda body: (body.created or _LATE, body.name)):
        if not body.owned:
            continue
        if body.uid in state.settled:
            scene.doomed.append(body)
        elif _wants_a_seat(job, body):
            waiting.setdefault(body.role, []).append(body)
    known = {role.name for role in state.roles}
    roles = [*state.roles, *(RoleState(name) for name in waiting if name not in known)]
    seated = tuple(_seated(role, waiting.get(role.name, []), scene) for role in roles)
    if len(seated) == len(state.roles) and all(a is b for a, b in zip(seated, state.roles, strict=True)):
        return state
    return replace(state, roles=seated)


def _wants_a_seat(job: Job, body: Body) -> bool:
    if job.policies.embodiment.memory is Memory.FINALIZER:
        return body.finalizer or not (body.is_finished or body.leaving)  # without it the body is counted already
    if body.is_finished:
        return False
    ending = job.policies.ending
    return not (body.leaving and ending.by_others is Deleted.NOTHING and ending.release is Release.LEAVING)


def _seated(role: RoleState, bodies: list[Body], scene: Scene) -> RoleState:
    slots = {task.index: task for task in role.tasks}
    owner = {task.uid: task.index for task in role.tasks if task.uid is not None}
    present = {body.uid for body in bodies}
    held = {index for uid, index in owner.items() if uid in present}
    for body in bodies:
        index = owner.get(body.uid, body.index)
        if index is None:
            index = next((t.index for t in role.tasks if _is_free(t, held)), None)
        if index is None:
            index = max(slots, default=-1) + 1
        is_over = index in slots and slots[index].is_done
        if (role.name, index) in scene.bodies or (is_over and not body.is_finished):
            scene.strays.append(body)  # a second body of one index
            continue
        held.add(index)
        slots.setdefault(index, TaskState(index))
        scene.bodies[(role.name, index)] = body
    if len(slots) == len(role.tasks):
        return role
    return replace(role, tasks=tuple(slots[index] for index in sorted(slots)))


def _is_free(task: TaskState, held: set[int]) -> bool:
    return task.index not in held and not task.is_done and not task.dropped


def reluctance(body: Body | None, crowd: int = 0) -> tuple[object, ...]:
    """How late a ReplicaSet sends this member away: unassigned, not running, not ready, cheap, crowded, young first.

    `crowd` is how many members share its node.
    """
    if body is None:
        return (False, 0, False, 0, 0, 0.0, 0, 0.0)
    return (
        bool(body.node),
        _PHASES.get(body.phase, 2),
        body.ready,
        body.deletion_cost,
        -crowd,
        _youth(body.ready_since),
        -body.restarts,
        _youth(body.created),
    )


def _youth(moment: datetime | None) -> float:
    """Later is smaller; a time nobody wrote down is the latest."""
    return -moment.timestamp() if moment is not None else float("-inf")


def slots_wanted(role: RoleState, size: CompletionsSize, open_slots: int) -> list[TaskState]:
    """The role's slots for the completions still missing: those in use, then the lowest that never ended."""
    done = [task for task in role.tasks if task.is_done]
    living = [task for task in role.tasks if not task.is_done and not task.dropped]
    living = sorted(living, key=lambda task: task.uid is None)[:open_slots]  # whoever is there before who is to come
    used = {task.index for task in (*done, *living)}
    limit = size.completions if size.indexed and size.completions is not None else None
    index = 0
    while len(living) < open_slots and (limit is None or index < limit):
        if index not in used:
            living.append(TaskState(index))
        index += 1
    return sorted([*done, *living], key=lambda task: task.index)


def count_done(job: Job, state: JobState, scene: Scene) -> JobState:
    """Where slots are counts, ends that stand go into the counters and leave their slots."""
    size = job.policies.size
    is_counted = job.policies.embodiment.names is Names.RANDOM and not (
        isinstance(size, CompletionsSize) and size.indexed
    )
    if not is_counted or not any(task.is_done for role in state.roles for task in role.tasks):
        return state
    settled: dict[str, Why] = {}
    roles = []
    for role in state.roles:
        done = [task for task in role.tasks if task.is_done and task.outcome is not None]
        good = sum(1 for task in done if task.outcome is not None and task.outcome.is_ok)
        for task in done:
            body = scene.bodies.get((role.name, task.index))
            if body is not None and task.outcome is not None:
                settled[body.uid] = Why(role.name, task.index, "counted", task.outcome.is_ok)
        living = tuple(task for task in role.tasks if not task.is_done)
        counts = {"ok_count": role.ok_count + good, "bad_count": role.bad_count + len(done) - good}
        roles.append(replace(role, tasks=living, **counts) if done else role)
    scene.again = True
    return settle_bodies(replace(state, roles=tuple(roles)), scene, settled)
