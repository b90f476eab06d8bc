"""What a ledger says that the one before did not, judged by what would be lost with it.

Whoever stores ledgers asks this to know what may wait for company: a thousand bodies that start one by one need not
cost a thousand writes. Where it is in doubt, it is a decision.
"""

from __future__ import annotations

from enum import IntEnum

from msgspec.structs import replace

from shoal.engine.state import JobState, RoleState, TaskState


class News(IntEnum):
    """What a ledger says that an older one did not, by how much depends on it."""

    FACTS = 0  # stages, their times and mirrored addresses: a look at the bodies finds them again
    BIRTHS = 1  # also uids of a new anchor and new bodies: after a crash these are adopted by their stamps
    DECISIONS = 2  # an outcome, a charge, a drop, an intent


def news(before: JobState, after: JobState) -> News:
    """What `after` holds that would be lost with it."""
    if before is after:
        return News.FACTS
    if len(before.roles) != len(after.roles) or _decided_run(before) != _decided_run(after):
        return News.DECISIONS
    roles = zip(before.roles, after.roles, strict=True)
    told = [_news_of_role(old, new) for old, new in roles if old is not new]
    return max((_news_of_anchor(before.run.anchor, after.run.anchor), *told))


def _news_of_anchor(was: str | None, now: str | None) -> News:
    if was == now:
        return News.FACTS
    return News.BIRTHS if was is None else News.DECISIONS


def _decided_run(state: JobState) -> tuple[object, ...]:
    run, stamps = state.run, state.stamps
    return (
        (run.number, run.intent, run.outcome, run.delay_seconds, run.is_ended, run.held),
        (stamps.started, stamps.held, stamps.ended, stamps.clock_from),
        (state.charges, state.settled, state.due, state.handled, state.round, state.frozen, state.memo),
    )


def _news_of_role(old: RoleState, new: RoleState) -> News:
    if replace(old, tasks=()) != replace(new, tasks=()) or len(old.tasks) != len(new.tasks):
        return News.DECISIONS
    tasks = zip(old.tasks, new.tasks, strict=True)
    return max((_news_of_task(was, now) for was, now in tasks if was is not now), default=News.FACTS)


def _news_of_task(was: TaskState, now: TaskState) -> News:
    if _decided_task(was) != _decided_task(now):
        return News.DECISIONS
    if (was.uid, was.born) == (now.uid, now.born):
        return News.FACTS
    return News.BIRTHS if was.uid is None and now.born else News.DECISIONS


def _decided_task(task: TaskState) -> tuple[object, ...]:
    return (
        (task.index, task.instance, task.dropped, task.charged, task.not_before, task.is_done),
        (task.attempt.number, task.attempt.outcome),
    )
