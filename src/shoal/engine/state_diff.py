"""The difference between two job states, rated by what would be lost with it.

It decides which changes may be coalesced before they are stored: a thousand pods that start one by one need not cost a
thousand writes. In doubt, a change is a decision.
"""

from __future__ import annotations

from enum import IntEnum

from msgspec.structs import replace

from shoal.engine.state import JobState, RoleState, TaskState


class StateChange(IntEnum):
    """What a job state contains that an older one did not, by how much depends on it."""

    FACTS = 0  # stages, their times and mirrored addresses: restored by observing the pods
    CREATIONS = 1  # also uids of a new run owner and new pods: after a crash these are adopted by their stamps
    DECISIONS = 2  # an outcome, a charge, a drop, an intent


def state_change(before: JobState, after: JobState) -> StateChange:
    """What `after` holds that would be lost with it."""
    if before is after:
        return StateChange.FACTS
    if len(before.roles) != len(after.roles) or _decided_run(before) != _decided_run(after):
        return StateChange.DECISIONS
    roles = zip(before.roles, after.roles, strict=True)
    role_changes = [_diff_role(old, new) for old, new in roles if old is not new]
    return max((_diff_run_owner(before.run.run_owner, after.run.run_owner), *role_changes))


def _diff_run_owner(was: str | None, now: str | None) -> StateChange:
    if was == now:
        return StateChange.FACTS
    return StateChange.CREATIONS if was is None else StateChange.DECISIONS


def _decided_run(state: JobState) -> tuple[object, ...]:
    run, stamps = state.run, state.stamps
    return (
        (run.number, run.intent, run.outcome, run.delay_seconds, run.is_ended, run.held),
        (stamps.started, stamps.held, stamps.ended, stamps.clock_from),
        (state.charges, state.settled, state.due, state.handled, state.round, state.frozen, state.memo),
    )


def _diff_role(old: RoleState, new: RoleState) -> StateChange:
    if replace(old, tasks=()) != replace(new, tasks=()) or len(old.tasks) != len(new.tasks):
        return StateChange.DECISIONS
    tasks = zip(old.tasks, new.tasks, strict=True)
    return max((_diff_task(was, now) for was, now in tasks if was is not now), default=StateChange.FACTS)


def _diff_task(was: TaskState, now: TaskState) -> StateChange:
    if _decided_task(was) != _decided_task(now):
        return StateChange.DECISIONS
    if (was.uid, was.had_pod) == (now.uid, now.had_pod):
        return StateChange.FACTS
    return StateChange.CREATIONS if was.uid is None and now.had_pod else StateChange.DECISIONS


def _decided_task(task: TaskState) -> tuple[object, ...]:
    return (
        (task.index, task.instance, task.dropped, task.charged, task.not_before, task.is_done),
        (task.attempt.number, task.attempt.outcome),
    )
