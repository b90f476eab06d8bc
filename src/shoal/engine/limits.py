"""Limits that end a job: the deadline, and container restarts beyond what a budget permits."""

from __future__ import annotations

from datetime import datetime, timedelta

from shoal.engine.model import Job
from shoal.engine.pass_context import PassContext
from shoal.engine.policies import BudgetUnit, RetryBudget, WhenEmpty
from shoal.engine.reactions import container_restarts, counts
from shoal.engine.state import JobState
from shoal.engine.types import Outcome, Trigger
from shoal.kube.messages import Message


def deadline(job: Job, state: JobState) -> datetime | None:
    """When the open run is over time; None where no clock runs."""
    clock = job.policies.clock
    if clock.deadline_seconds is None or state.stamps.clock_from is None or state.is_ended:
        return None
    return state.stamps.clock_from + timedelta(seconds=clock.deadline_seconds)


def exceeded_limit(
    job: Job, state: JobState, context: PassContext, exhausted: Outcome | None
) -> tuple[Outcome, Message, bool] | None:
    """The outcome of a limit that is reached, its cause, and whether it is the deadline."""
    if exhausted is not None:
        return exhausted, Message("Cause.NoRetry"), False
    for budget in job.policies.budgets:
        if budget.unit is not BudgetUnit.CONTAINERS or budget.when_empty is WhenEmpty.EVENT or budget.permits is None:
            continue
        count = container_restarts(budget, context)
        if count > budget.permits:
            why = Message("Cause.Restarts", {"count": count, "permitted": budget.permits})
            return _restart_limit_outcome(budget, context), why, False
    due = deadline(job, state)
    if due is not None and context.now >= due:
        return job.policies.clock.deadline_outcome, Message("Cause.Deadline"), True
    return None


def _restart_limit_outcome(budget: RetryBudget, context: PassContext) -> Outcome:
    """The budget's outcome with the body that restarted most often, and the code its container ended with before."""
    counted = [(pod.restarts, *key, pod) for key, pod in context.pods.items() if counts(budget, key[0], pod)]
    restarts, role, index, pod = max(counted, key=lambda each: each[0])
    code = next((each.last_code for each in pod.containers if each.last_code), 0)
    return budget.outcome.blaming(Trigger(role, index, f"{role}-{index} restarted {restarts} times"), code)
