"""A stored job state completed for people: every task of the spec, running ones as the status counts them.

A state in an annotation keeps nothing about pods that merely run; how many of them do is in the status.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from msgspec.structs import replace

from shoal.engine import Intent, JobState, Outcome, RoleState, Stage, TaskState


def complete_state(
    state: JobState, sizes: Mapping[str, int], running: Mapping[str, int], *, cut_off: Outcome
) -> JobState:
    """The state with `sizes` tasks per role, of which the first ones run. `cut_off` is how tasks without an outcome
    of their own ended with the job."""
    known = {role.name: role for role in state.roles}
    roles = []
    for name in {**sizes, **known}:
        role, left = _filled(known.get(name) or RoleState(name), sizes.get(name, 0)), running.get(name, 0)
        tasks: list[TaskState] = []
        for task in role.tasks:
            if not task.is_done:
                task = _living(task, state, is_running=left > 0, cut_off=cut_off)
                left -= task.had_pod
            tasks.append(task)
        roles.append(replace(role, tasks=tuple(tasks)))
    return replace(state, roles=tuple(roles))


def _filled(role: RoleState, size: int) -> RoleState:
    places = {task.index: task for task in role.tasks}
    missing = size - sum(not task.dropped for task in role.tasks)
    free = (index for index in range(size + len(places)) if index not in places)
    places |= {index: TaskState(index) for index in islice(free, max(missing, 0))}
    return replace(role, tasks=tuple(places[index] for index in sorted(places)))


def _living(task: TaskState, state: JobState, *, is_running: bool, cut_off: Outcome) -> TaskState:
    """A task without an outcome of its own: it runs or will, or ends with the run, or ended with the job."""
    if state.is_ended:
        return replace(task, stage=Stage.DONE, attempt=replace(task.attempt, outcome=cut_off))
    if not state.run.is_open and (task.had_pod or state.run.intent is Intent.END):
        return replace(task, stage=Stage.LEAVING)
    if not task.had_pod:
        return task
    return replace(task, stage=Stage.RUNNING if is_running else Stage.PREPARING)
