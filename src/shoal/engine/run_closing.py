"""How a run closes: the reason and outcome are stored, tasks cut off get the dialect's outcome for it.

Closing removes nothing by itself; plan_writes.py deletes what a closed run may not keep, and run_lifecycle.py finds it
drained.
"""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from shoal.engine.model import Job
from shoal.engine.pass_context import PassContext
from shoal.engine.policies import Finish, KeepPods
from shoal.engine.state import JobState, RoleState, Round
from shoal.engine.types import Intent, Outcome, Stage


def close(
    job: Job,
    state: JobState,
    context: PassContext,
    intent: Intent,
    *,
    outcome: Outcome | None = None,
    finish: Finish = Finish.DRAINED,
    at_deadline: bool = False,
) -> JobState:
    """The run closed for this reason; unchanged where it is closed for a stronger one."""
    closed = state.close(intent, context.stamp, outcome)
    if closed is state:
        return state
    held = state.run.held or intent is Intent.HOLD
    closed = replace(closed, run=replace(closed.run, at_deadline=at_deadline, held=held))
    if intent is Intent.HOLD:
        closed = replace(closed, stamps=replace(closed.stamps, held=context.stamp))
    if job.policies.teardown.cut is not None:
        closed = _stop_tasks(closed, job.policies.teardown.cut)
    if intent is Intent.END and finish is Finish.AT_ONCE:
        closed = end(closed, context)
    return closed


def end(state: JobState, context: PassContext) -> JobState:
    """The job is over for good."""
    run = state.run
    if run.completed is None:
        run = replace(run, completed=context.stamp)
    run = run.at(Stage.DONE, context.stamp)
    return replace(state, run=run, stamps=replace(state.stamps, ended=context.stamp))


def give_up(state: JobState, outcome: Outcome, now: datetime) -> JobState:
    """The job closed for good and without its tasks, where a state that has them cannot be stored.

    Its pods belong to no task any more, so that the passes that follow delete them.
    """
    closed = state.close(Intent.END, now.replace(microsecond=0), outcome)
    return replace(closed, roles=(), settled={}, round=Round())


def _stop_tasks(state: JobState, outcome: Outcome) -> JobState:
    return replace(state, roles=tuple(_stop_role_tasks(role, outcome) for role in state.roles))


def _stop_role_tasks(role: RoleState, outcome: Outcome) -> RoleState:
    return replace(role, tasks=tuple([task.with_outcome(outcome) for task in role.tasks]))


def pods_to_keep(job: Job, state: JobState) -> KeepPods:
    """Which pods a closed run keeps."""
    teardown, run = job.policies.teardown, state.run
    if run.intent is not Intent.END and run.held:
        return job.policies.hold.keeps
    if run.intent is Intent.RESTART:
        return teardown.at_restart
    if run.at_deadline and teardown.at_deadline is not None:
        return teardown.at_deadline
    failed = run.outcome is not None and not run.outcome.is_ok
    return teardown.at_failed_end if failed and teardown.at_failed_end is not None else teardown.at_end
