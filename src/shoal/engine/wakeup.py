"""Step 8, wake: the earliest moment at which a further look is due although nothing happened.

Every wait is a stored stamp plus a duration, so a crash shifts nothing. What is due already was done in this pass
and is not waited for; the moment is rounded up to a whole second.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from shoal.engine.limits import deadline
from shoal.engine.model import Job
from shoal.engine.observed import PodPhase
from shoal.engine.pass_context import PassContext
from shoal.engine.plan_writes import force_due, ttl_due
from shoal.engine.policies import Reaction
from shoal.engine.reactions import is_excused
from shoal.engine.retry_spacing import run_created_from, task_created_from
from shoal.engine.state import JobState
from shoal.engine.types import EventType, Stage


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
