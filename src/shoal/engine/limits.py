"""Limits that end a job: the deadline, and container restarts beyond what a budget permits."""

from __future__ import annotations

from datetime import datetime, timedelta

from shoal.engine.ledger import JobState
from shoal.engine.model import Job
from shoal.engine.policies import Budget, Unit, WhenEmpty
from shoal.engine.reactions import container_restarts
from shoal.engine.scene import Scene
from shoal.engine.words import Outcome


def deadline(job: Job, state: JobState) -> datetime | None:
    """When the open run is over time; None where no clock runs."""
    clock = job.policies.clock
    if clock.deadline_seconds is None or state.stamps.clock_from is None or state.is_ended:
        return None
    return state.stamps.clock_from + timedelta(seconds=clock.deadline_seconds)


def reached(job: Job, state: JobState, scene: Scene, exhausted: Budget | None) -> tuple[Outcome, str, bool] | None:
    """The outcome of a limit that is reached, the sentence for it, and whether it is the deadline."""
    if exhausted is not None:
        return exhausted.outcome, "no retry is left", False
    for budget in job.policies.budgets:
        if budget.unit is not Unit.CONTAINERS or budget.when_empty is WhenEmpty.EVENT or budget.permits is None:
            continue
        count = container_restarts(budget, scene)
        if count > budget.permits:
            return budget.outcome, f"containers restarted {count} times, {budget.permits} permitted", False
    due = deadline(job, state)
    if due is not None and scene.now >= due:
        return job.policies.clock.deadline_outcome, "it was active longer than its deadline allows", True
    return None
