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

from shoal.engine.messages import CATALOG
from shoal.engine.observed import ObservedPod, PodPhase
from shoal.engine.pass_context import PassContext
from shoal.engine.reactions import container_restarts, is_excused
from shoal.engine.retry import BudgetUnit, WhenEmpty, created_from
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
    """Where the deadline of a run that opens now is counted from, if not from the creation of all its pods."""
    # Recorded only where a deadline may need it: a full record without a deadline does without.
    may_need_it = job.policies.clock.deadline_seconds is not None or job.policies.pod_policy.memory is not Memory.RECORD
    return context.stamp if may_need_it and job.policies.clock.deadline_from is DeadlineBase.STARTED else None


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
            # The outcome has the pod that restarted most often, and the code its container ended with before.
            counted = [(key, pod) for key, pod in context.pods.items() if budget.covers(key[0], pod)]
            (role, index), pod = max(counted, key=lambda each: each[1].restarts)
            text = CATALOG.text(Message("Trigger.Restarts", {"task": f"{role}-{index}", "times": pod.restarts}))
            code = next((each.last_code for each in pod.containers if each.last_code), 0)
            why = Message("Cause.Restarts", {"count": count, "permitted": budget.permits})
            return budget.outcome.blaming(Trigger(role, index, text), code), why, False
    due = deadline(job, state)
    if due is not None and context.now >= due:
        return job.policies.clock.deadline_outcome, Message("Cause.Deadline"), True
    return None


def force_due(state: JobState, pod: ObservedPod) -> datetime | None:
    """When a terminating pod is deleted by force; None: never."""
    role = state.role(pod.role)
    if role is None or role.force_after_seconds is None or pod.leaving_since is None:
        return None
    return pod.leaving_since + timedelta(seconds=role.force_after_seconds)


def ttl_due(job: Job, state: JobState) -> datetime | None:
    ttl, ended = job.policies.clock.ttl_seconds, state.stamps.ended
    return ended + timedelta(seconds=ttl) if ttl is not None and ended is not None and state.is_ended else None


def next_wakeup(job: Job, state: JobState, context: PassContext) -> datetime | None:
    """The earliest time at which another pass is due although nothing was observed, rounded up to a whole second."""
    times = [deadline(job, state), ttl_due(job, state), *(due.at for due in state.due.values())]
    run = state.run
    if run.stage is Stage.OVER and run.delay_seconds is not None and run.since is not None:
        times.append(run.since + timedelta(seconds=run.delay_seconds))
    times += [force_due(state, pod) for pod in context.observed.pods if pod.leaving and pod.owned]
    if run.is_open:
        times += _creation_times(job, state)
        times += _pending_times(job, state, context)
    ahead = [moment for moment in times if moment is not None and moment > context.now]
    if not ahead:
        return None
    whole = min(ahead).replace(microsecond=0)
    return whole if whole == min(ahead) else whole + timedelta(seconds=1)


def _creation_times(job: Job, state: JobState) -> Iterator[datetime | None]:
    """When retries may be created, and when created objects must be observed."""
    clock = job.policies.clock
    yield created_from(clock, state.run)
    limit = timedelta(seconds=clock.creation_seconds) if clock.creation_seconds is not None else None
    if limit is not None and state.run.stage is Stage.REQUESTED and state.run.since is not None:
        yield state.run.since + limit
    for role in state.roles:
        for task in role.tasks:
            if task.stage is Stage.WAITING:
                yield created_from(clock, task.attempt, task.not_before)
            elif task.stage is Stage.REQUESTED and limit is not None and task.since is not None:
                yield task.since + limit


def _pending_times(job: Job, state: JobState, context: PassContext) -> Iterator[datetime]:
    """When the time ends that a reaction gives pods to stop being pending."""
    seconds = {
        role.name: [
            reaction.after_seconds
            for reaction in (*role.reactions, *job.policies.reactions)
            if reaction.after_seconds and reaction.events & {EventType.TASK_PENDING, EventType.ANY}
        ]
        for role in job.roles
    }
    if not any(seconds.values()):
        return
    for (role, index), pod in context.pods.items():
        if pod.phase is PodPhase.PENDING and pod.created is not None and not is_excused(state, role, index):
            yield from (pod.created + timedelta(seconds=after) for after in seconds.get(role, ()))
