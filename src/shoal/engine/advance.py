"""One pass: specified job, job state, observations and time in; the next job state and its writes out.

The order makes the pass safe. Matching is first, because all later steps refer to uids; resizing and reclaim precede
the evaluation of outcomes, so that a member removed or given back in this pass is charged to no budget; facts precede
decisions; deciding precedes run transitions; and stop and hold are checked again at the gates, because a run may have
opened in between.
"""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from shoal.engine.decide import decide, handle_lost_run_owner
from shoal.engine.gates import evaluate_gates
from shoal.engine.membership import publish_members
from shoal.engine.model import GuardResult, Job
from shoal.engine.observed import Observed
from shoal.engine.pass_context import PassContext
from shoal.engine.plan_writes import plan_writes
from shoal.engine.pod_matching import match_pods
from shoal.engine.pod_outcomes import evaluate_outcomes
from shoal.engine.reclaim import reclaim_pods
from shoal.engine.run_lifecycle import advance_run, open_first_run
from shoal.engine.scaling import resize
from shoal.engine.state import JobState
from shoal.engine.timeouts import next_wakeup
from shoal.engine.unindexed_pods import count_done
from shoal.engine.writes import Step, state_change

_NO_GUARD = GuardResult()


def advance(job: Job, state: JobState, observed: Observed, now: datetime) -> Step:
    """Pure: equal inputs give equal steps, and inputs are never changed. `state` may be `JobState()`."""
    stored = state
    state, context = match_pods(job, state, observed, now)  # 1 pods to tasks
    if state.is_new:
        state = open_first_run(job, state, context)
    state = resize(job, state, context)  # 2 which tasks should exist
    state = reclaim_pods(job, state, context)
    state = handle_lost_run_owner(job, state, context)
    state, events = evaluate_outcomes(job, state, context)  # 3 how pods ended
    state = decide(job, state, context, events)  # 4 retries, reactions, the end of the run
    state = count_done(job, state, context)
    state = advance_run(job, state, context)  # 5 close, drain, next run
    state = publish_members(job, state, context)
    gate_statuses = evaluate_gates(job, state, context)  # 6 whether pods may be created now
    state, guarded = _run_guard(job, state, context)
    writes = plan_writes(job, state, context, gate_statuses, guarded)  # 7 what to create, apply and delete
    return Step(
        state,
        notices=tuple(context.notices),
        writes=tuple(writes),
        notifications=tuple(context.notifications),
        gate_statuses=gate_statuses,
        wake_at=next_wakeup(job, state, context),  # 8 when the next pass is due
        requeue=context.requeue,
        state_change=state_change(stored, state),
        charges=tuple(context.charges),
    )


def _run_guard(job: Job, state: JobState, context: PassContext) -> tuple[JobState, GuardResult]:
    """A guard of the dialect may delay writes and patch pods; it never creates, deletes or decides outcomes."""
    if job.guard is None:
        return state, _NO_GUARD
    guarded = job.guard(job, state.memo, context, context.now)
    if guarded.message:
        context.emit("", "Guarded", text=guarded.message)
    return (state if guarded.memo == state.memo else replace(state, memo=guarded.memo)), guarded
