"""Step 2, resize: who should be there. Sizes come from the spec, victims from the shrink policy.

Works on an open run only: a closed one keeps its tasks, and the next run is built from the spec of its own moment.
A dropped task stops counting at once. Where the ledger is the record (DropMark.LEDGER) it lives on until its body is
gone and is then removed, or replaced by a new instance if its index is wanted again; elsewhere it is forgotten at
once and its body is settled. Kept tasks are not touched.
"""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b
from itertools import chain

from msgspec.structs import replace

from shoal.engine.model import Job, Role
from shoal.engine.observed import Phase
from shoal.engine.pass_context import Scene
from shoal.engine.policies import CompletionsSize, DropMark, Memory, Names, Victims, WeightedSize
from shoal.engine.state import AttemptState, JobState, RoleState, TaskState, Why, named
from shoal.engine.types import NoticeKind, Stage
from shoal.engine.unindexed_pods import reluctance, slots_wanted


def allocate(job: Job, state: JobState | None = None) -> dict[str, int]:
    """How many tasks each role should have now."""
    size = job.policies.size
    if isinstance(size, WeightedSize):
        return _weighted(job, size.total)
    if isinstance(size, CompletionsSize):
        return {role.name: _open_completions(role.name, size, state) for role in job.roles}
    return {role.name: role.size for role in job.roles}


def _weighted(job: Job, total: int) -> dict[str, int]:
    """One member at a time to the role with the smallest count / weight, ties to the first; all in integers.

    Giving them one by one keeps earlier gifts when the total grows, which rounding shares would not.
    """
    counts = {role.name: 0 if role.weight else role.size for role in job.roles}
    scalable = [role for role in job.roles if role.weight]
    for _ in range(max(0, total - sum(counts.values())) if scalable else 0):
        chosen = scalable[0]
        for role in scalable[1:]:
            if counts[role.name] * chosen.weight < counts[chosen.name] * role.weight:
                chosen = role
        counts[chosen.name] += 1
    return counts


def _open_completions(name: str, size: CompletionsSize, state: JobState | None) -> int:
    role = state.role(name) if state else None
    achieved = 0
    if role is not None:
        achieved = role.ok_count + sum(1 for task in role.tasks if task.is_done and task.outcome and task.outcome.is_ok)
    if size.completions is None:
        return min(_embodied(role), size.parallelism) if achieved else size.parallelism
    return max(0, min(size.parallelism, size.completions - achieved))


def _embodied(role: RoleState | None) -> int:
    """Who is there may finish; nobody is made any more."""
    tasks = role.tasks if role is not None else ()
    return sum(1 for task in tasks if task.uid is not None and not task.is_done and not task.dropped)


def resize(job: Job, state: JobState, scene: Scene) -> JobState:
    scene.sizes = allocate(job, state)
    scene.total = sum(scene.sizes.values())
    if state.is_ended:
        return state
    state = _copy_force_times(state, scene)
    if not state.run.is_open:
        return state
    wanted = {role.name: role for role in job.roles}
    roles: list[RoleState] = []
    settled: dict[str, Why] = {}
    grows = {role.name for role in state.roles}  # the others are there for the first time, which is no growth
    for role in _in_spec_order(job, state, scene):
        after = _resized(wanted.get(role.name), role, scene, settled, is_told=role.name in grows)
        if after.tasks or after.name in wanted:
            roles.append(after)
    if len(roles) != len(state.roles) or any(a is not b for a, b in zip(roles, state.roles, strict=True)):
        state = replace(state, roles=tuple(roles))
    return _settle(state, settled, scene)


def fresh_roles(job: Job, scene: Scene) -> tuple[RoleState, ...]:
    """The tasks of a run that opens now."""
    return tuple(
        RoleState(
            role.name,
            instance=_instance(scene, role.name, -1),
            force_after_seconds=role.force_after_seconds,
            tasks=tuple([_new_task(scene, role.name, index) for index in range(scene.sizes[role.name])]),
        )
        for role in job.roles
    )


def _copy_force_times(state: JobState, scene: Scene) -> JobState:
    """The spec's patience with leaving bodies, kept so that it outlives the role in the spec."""
    roles, changed = [], False
    for role in state.roles:
        spec = scene.roles.get(role.name)
        if spec is not None and spec.force_after_seconds != role.force_after_seconds:
            role = replace(role, force_after_seconds=spec.force_after_seconds)
            changed = True
        roles.append(role)
    return replace(state, roles=tuple(roles)) if changed else state


def _in_spec_order(job: Job, state: JobState, scene: Scene) -> list[RoleState]:
    """Every role of the spec, then those removed from it, which stay until their pods are gone."""
    known = {role.name: role for role in state.roles}
    wanted = [
        known[role.name]
        if role.name in known
        else RoleState(role.name, _instance(scene, role.name, -1), role.force_after_seconds)
        for role in job.roles
    ]
    names = {role.name for role in wanted}
    return [*wanted, *(role for role in state.roles if role.name not in names)]


def _resized(spec: Role | None, role: RoleState, scene: Scene, settled: dict[str, Why], *, is_told: bool) -> RoleState:
    """Remove and replace what was dropped before, drop what is too much, add what is missing."""
    size = scene.sizes.get(role.name, 0)
    completions = scene.job.policies.size
    if isinstance(completions, CompletionsSize):
        return _resized_slots(role, completions, scene, settled)
    kept = [task for task in role.tasks if not task.dropped]
    if len(kept) == len(role.tasks) == size and (not size or role.tasks[-1].index == size - 1):
        return role
    going = victims(spec, role, scene, len(kept) - size)
    wanted = _wanted(role, {task.index for task in kept}.difference(going), size)
    tasks = _without_dropped_tail(role, wanted, scene)
    tasks = [_replaced(task, role.name, scene) if task.index in wanted else task for task in tasks]
    if going:
        scene.emit(role.name, "ScaledDown", tasks=named(role.name, going), size=size)
        tasks = _drop(tasks, role.name, set(going), scene, settled)
    added = sorted(wanted.difference(task.index for task in tasks))
    if added:
        tasks = sorted([*tasks, *(_new_task(scene, role.name, i) for i in added)], key=lambda task: task.index)
        if is_told:
            scene.emit(role.name, "ScaledUp", tasks=named(role.name, added), size=size)
    if len(tasks) == len(role.tasks) and all(a is b for a, b in zip(tasks, role.tasks, strict=True)):
        return role
    return replace(role, tasks=tuple(tasks))


def _resized_slots(role: RoleState, size: CompletionsSize, scene: Scene, settled: dict[str, Why]) -> RoleState:
    wanted = slots_wanted(role, size, scene.sizes.get(role.name, 0))
    staying = {task.index for task in wanted}
    going = {task.index for task in role.tasks if task.index not in staying}
    if going:
        scene.emit(role.name, "ScaledDown.Unindexed", tasks=named(role.name, going), size=len(wanted))
        _drop(list(role.tasks), role.name, going, scene, settled)
    if len(wanted) == len(role.tasks) and not going:
        return role
    return replace(role, tasks=tuple(wanted))


def _wanted(role: RoleState, staying: set[int], size: int) -> set[int]:
    """The indexes that should have a task: those that stay, then the lowest others.

    A gap in the entries can only be a task a compact ledger had nothing to say about; it comes before an index that
    was dropped.
    """
    known = {task.index for task in role.tasks}
    # Generated one by one: an index comes from stored state or from a pod's annotation and may be of any size.
    gaps = (index for index in range(max(known, default=0)) if index not in known)
    wanted = set(staying)
    for index in chain(gaps, range(len(staying) + size)):
        if len(wanted) >= size:
            break
        wanted.add(index)
    return wanted


def victims(spec: Role | None, role: RoleState, scene: Scene, count: int) -> list[int]:
    """Which `count` of the role's tasks go, in the order of the shrink policy; spared ones last."""
    tasks = [task for task in role.tasks if not task.dropped]
    if spec is None:
        return [task.index for task in tasks]
    chosen = scene.job.policies.shrink.victims
    if chosen is Victims.HIGHEST:
        size = len(tasks) - count
        return [task.index for task in tasks if task.index >= size]
    if count <= 0:
        return []
    crowds = Counter(body.node for (name, _), body in scene.bodies.items() if name == role.name and body.node)

    def first_to_go(task: TaskState) -> tuple[object, ...]:
        order: tuple[object, ...] = ()
        body = scene.bodies.get((role.name, task.index))
        if chosen is Victims.NAMED:
            order = (spec.victims.index(task.index) if task.index in spec.victims else len(spec.victims),)
        elif chosen is Victims.PENDING_FIRST:
            order = (task.is_done or (body is not None and body.phase is Phase.RUNNING),)
        elif chosen is Victims.RANKED:
            order = reluctance(body, crowds.get(body.node, 0) if body is not None else 0)
        return (task.index in spec.spared, *order, -task.index)

    return sorted(task.index for task in sorted(tasks, key=first_to_go)[:count])


def _without_dropped_tail(role: RoleState, wanted: set[int], scene: Scene) -> list[TaskState]:
    """Dropped tasks that are done leave from the tail, so that positions below stay what they were."""
    tasks = list(role.tasks)
    while tasks and tasks[-1].dropped and tasks[-1].is_done and tasks[-1].index not in wanted:
        scene.tell(NoticeKind.TASK_REMOVED, role.name, tasks.pop())
    return tasks


def _replaced(task: TaskState, role: str, scene: Scene) -> TaskState:
    """A wanted index whose task was dropped gets a new one, once the old one is done."""
    if not (task.dropped and task.is_done):
        return task
    scene.tell(NoticeKind.TASK_REMOVED, role, task)
    scene.emit(f"{role}-{task.index}", "TaskReplaced", task=f"{role}-{task.index}")
    return _new_task(scene, role, task.index)


def _drop(tasks: list[TaskState], role: str, going: set[int], scene: Scene, settled: dict[str, Why]) -> list[TaskState]:
    shrink = scene.job.policies.shrink
    if shrink.mark is DropMark.LEDGER:
        return [_dropped(task, scene) if task.index in going else task for task in tasks]
    for index in going:
        body = scene.bodies.get((role, index))
        if body is not None:
            settled[body.uid] = Why(role, index, "dropped")
    last_kept = max((task.index for task in tasks if task.index not in going), default=-1)
    if scene.job.policies.embodiment.names is Names.RANDOM:
        last_kept = -1  # a slot is no place anybody would look for
    return [
        task if task.index not in going else TaskState(task.index, stage=Stage.DONE, dropped=True)
        for task in tasks
        if task.index not in going or task.index < last_kept
    ]


def _dropped(task: TaskState, scene: Scene) -> TaskState:
    scene.again = scene.again or task.is_done
    task = replace(task.judged(scene.job.policies.shrink.outcome), dropped=True)
    if Stage.PREPARING <= task.stage <= Stage.RUNNING:
        return task.at(Stage.CLOSING, scene.stamp)
    return task


def _settle(state: JobState, settled: dict[str, Why], scene: Scene) -> JobState:
    """Bodies of dropped tasks raise nothing from here on."""
    if not settled:
        return state
    for uid, why in settled.items():
        body = scene.bodies.get((why.role, why.index))
        if body is not None and body.uid == uid:
            del scene.bodies[(why.role, why.index)]
            scene.doomed.append(body)
    return state.settle(settled)


def _new_task(scene: Scene, role: str, index: int) -> TaskState:
    if scene.job.policies.embodiment.memory is not Memory.RECORD:
        return TaskState(index)
    now = scene.stamp
    instance = _instance(scene, role, index)
    return TaskState(index, instance, since=now, started=now, attempt=AttemptState(started=now))


def _instance(scene: Scene, role: str, index: int) -> str:
    """A uuid that depends on this pass's nonce only, so that equal inputs give equal steps."""
    if scene.job.policies.embodiment.memory is not Memory.RECORD:
        return ""
    seed = f"{scene.job.uid}/{scene.observed.nonce}/{role}/{index}".encode()
    digits = blake2b(seed, digest_size=16).hexdigest()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"
