"""Timeouts and other limits: deadlines, container restarts, forced deletion, and when the next pass is due (step 8).

Every wait is a stored stamp plus a duration, so a crash shifts nothing. What is due already was done in this pass and
is not waited for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING

from msgspec.structs import replace

from shoal.engine.observed import ObservedPod, PodPhase
from shoal.engine.pass_context import PassContext
from shoal.engine.reactions import Reaction, container_restarts, counts, is_excused
from shoal.engine.retry import BudgetUnit, RetryBudget, WhenEmpty, run_created_from, task_created_from
from shoal.engine.state import JobState
from shoal.engine.types import BAD, EventType, Memory, Outcome, Stage, Trigger
from shoal.kube.messages import Message

if TYPE_CHECKING:
    from shoal.engine.model import Job


class DeadlineBase(Enum):
    STARTED = "started"  # first pass
    CLOCK = "clock"  # all pods of the run created


class Propagation(Enum):
    FOREGROUND = "Foreground"
    BACKGROUND = "Background"


@dataclass(frozen=True, slots=True)
class Timeouts:
    deadline_seconds: int | None = None
    deadline_from: DeadlineBase = DeadlineBase.STARTED
    deadline_outcome: Outcome = BAD
    ttl_seconds: int | None = None  # the job is deleted that long after its end
    propagation: Propagation = Propagation.FOREGROUND
    creation_seconds: int | None = None  # a created pod or run owner must be seen within
    quick_retries: int = 3  # attempts of a task, or of the whole, from this number on are spaced
    retry_spacing_seconds: int = 1  # from the start stamp of a spaced attempt to the creation of its first object


def clock_start(job: Job, context: PassContext) -> datetime | None:
    """Only kept where a deadline may require it."""
    return context.stamp if job.policies.clock.deadline_from is DeadlineBase.STARTED and _has_clock(job) else None


def _has_clock(job: Job) -> bool:
    return job.policies.clock.deadline_seconds is not None or job.policies.pod_policy.memory is not Memory.RECORD


def start_clock(job: Job, state: JobState, context: PassContext) -> JobState:
    """The clock that runs from the moment all pods of the run exist."""
    if state.stamps.clock_from is not None or job.policies.clock.deadline_from is not DeadlineBase.CLOCK:
        return state
    living = [task for role in state.roles for task in role.tasks if not task.is_done]
    if not living or any(task.uid is None for task in living):
        return state
    return replace(state, stamps=replace(state.stamps, clock_from=context.stamp))


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


def force_due(state: JobState, pod: ObservedPod) -> datetime | None:
    """When a leaving body is deleted by force; None: never."""
    role = state.role(pod.role)
    if role is None or role.force_after_seconds is None or pod.leaving_since is None:
        return None
    return pod.leaving_since + timedelta(seconds=role.force_after_seconds)


def ttl_due(job: Job, state: JobState) -> datetime | None:
    ttl, ended = job.policies.clock.ttl_seconds, state.stamps.ended
    return ended + timedelta(seconds=ttl) if ttl is not None and ended is not None and state.is_ended else None


def next_wakeup(job: Job, state: JobState, context: PassContext) -> datetime | None:
    ahead = [moment for moment in _wakeup_times(job, state, context) if moment > context.now]
    return _rounded_up(min(ahead)) if ahead else None


def _rounded_up(moment: datetime) -> datetime:
    whole = moment.replace(microsecond=0)
    return whole if whole == moment else whole + timedelta(seconds=1)


def _wakeup_times(job: Job, state: JobState, context: PassContext) -> Iterator[datetime]:
    for found in (deadline(job, state), ttl_due(job, state), _next_run(state)):
        if found is not None:
            yield found
    for due in state.due.values():
        yield due.at
    for pod in context.observed.pods:
        if pod.leaving and pod.owned:
            forced = force_due(state, pod)
            if forced is not None:
                yield forced
    if state.run.is_open:
        yield from _of_tasks(job, state)
        yield from _of_pending(job, state, context)


def _next_run(state: JobState) -> datetime | None:
    run = state.run
    if run.stage is not Stage.OVER or run.delay_seconds is None or run.since is None:
        return None
    return run.since + timedelta(seconds=run.delay_seconds)


def _of_tasks(job: Job, state: JobState) -> Iterator[datetime]:
    """Delayed retries, and created objects that are not observed yet."""
    created_from = run_created_from(job, state)
    if created_from is not None:
        yield created_from
    limit = job.policies.clock.creation_seconds
    if limit is not None and state.run.stage is Stage.REQUESTED and state.run.since is not None:
        yield state.run.since + timedelta(seconds=limit)
    for role in state.roles:
        for task in role.tasks:
            if task.stage is Stage.REQUESTED:
                if limit is not None and task.since is not None:
                    yield task.since + timedelta(seconds=limit)
            elif task.stage is Stage.WAITING:
                created_from = task_created_from(job, task)
                if created_from is not None:
                    yield created_from


def _of_pending(job: Job, state: JobState, context: PassContext) -> Iterator[datetime]:
    """When the time ends that a reaction gives pods to stop being pending."""
    reactions = {role.name: [*role.reactions, *job.policies.reactions] for role in job.roles}
    if not any(_has_delay(reaction) for several in reactions.values() for reaction in several):
        return
    for (role, index), pod in context.pods.items():
        if pod.phase is PodPhase.PENDING and pod.created is not None and not is_excused(state, role, index):
            for reaction in reactions.get(role, ()):
                if _has_delay(reaction):
                    yield pod.created + timedelta(seconds=reaction.after_seconds)


def _has_delay(reaction: Reaction) -> bool:
    is_meant = EventType.TASK_PENDING in reaction.events or EventType.ANY in reaction.events
    return bool(reaction.after_seconds) and is_meant
