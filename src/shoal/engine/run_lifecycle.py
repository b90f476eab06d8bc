"""Step 5, advance_run: a run closes, drains, is over; then the job ends, rests, or opens the next run.

Closing stores the reason and the outcome, and gives unfinished tasks the dialect's outcome for that. It deletes
nothing: plan_writes.py deletes what a closed run may not keep, which Teardown and Hold say. A run is over only when all
of that is gone; where a run owner owns the pods, when the run owner is gone. The next run is built from the spec of the
moment it opens. A job that is being deleted opens none.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING

from msgspec.structs import replace

from shoal.engine.completion import Finish
from shoal.engine.gates import GroupGate
from shoal.engine.observed import ObservedPod, RunOwnerRef
from shoal.engine.pass_context import PassContext
from shoal.engine.retry import BudgetScope, BudgetUnit, RetryDecision, retry_backoff
from shoal.engine.scaling import new_roles
from shoal.engine.state import JobState, RoleState, Round, Run, TaskState
from shoal.engine.timeouts import clock_start, start_clock
from shoal.engine.types import (
    Action,
    Intent,
    KeepPods,
    Lifetime,
    Memory,
    NoticeKind,
    Outcome,
    Stage,
)

if TYPE_CHECKING:
    from shoal.engine.model import Job


class HoldClock(Enum):
    RESTARTS = "restarts"
    RUNS_ON = "runs on"


@dataclass(frozen=True, slots=True)
class Hold:
    requested: bool = False
    from_spec: bool = True  # the request is a level: without it a held job is released; else only an action releases
    keeps: KeepPods = KeepPods.NONE  # FINISHED also keeps what was achieved
    owned_objects: frozenset[str] = frozenset()  # names of those that go
    group: bool = True  # the group is deleted
    clock: HoldClock = HoldClock.RESTARTS
    resume_charged: bool = False
    renews_failed: bool = False  # after a release only successes are kept; failed tasks are retried
    release_counts: bool = False  # the release is a run of its own, without members and seen for one pass
    ignores: frozenset[Action] = frozenset()  # commands without effect on a held job


class TeardownVia(Enum):
    RUN_OWNER = "anchor"  # delete the run owner; the cascade deletes the pods
    EACH = "each"


class Drained(Enum):
    """When a closed run counts as empty."""

    GONE = "gone"  # nothing that must go is left
    ENOUGH = "enough"  # size less terminating pods reaches the job's minimum


@dataclass(frozen=True, slots=True)
class Teardown:
    at_retry: KeepPods = KeepPods.NONE  # the pod of an attempt that is retried
    at_done: KeepPods = KeepPods.ALL  # a task that will not be retried
    at_restart: KeepPods = KeepPods.NONE
    at_end: KeepPods = KeepPods.FINISHED
    at_failed_end: KeepPods | None = None  # None: as at_end
    at_deadline: KeepPods | None = None
    via: TeardownVia = TeardownVia.EACH
    cut: Outcome | None = None  # of tasks that had no outcome when the run closed
    restart_drained: Drained = Drained.GONE


def open_first_run(job: Job, state: JobState, context: PassContext) -> JobState:
    """The first pass of a job: its first run opens, and values that outlive an edit are copied."""
    stamps = replace(state.stamps, started=context.stamp, clock_from=clock_start(job, context))
    state = replace(state, run=_new_run(job, context, 0), stamps=stamps, frozen=dict(job.policies.rendezvous.frozen))
    context.emit("", "Started", job=job.name, run=0)
    return state


def advance_run(job: Job, state: JobState, context: PassContext) -> JobState:
    if state.is_ended:
        return state
    if state.run.is_open:
        return start_clock(job, state, context)
    if state.run.stage is not Stage.OVER:
        if not is_drained(job, state, context):
            return state
        state = replace(state, run=state.run.at(Stage.OVER, context.stamp))
        if job.policies.pod_policy.memory is Memory.RECORD:
            # Where tasks are recorded, whatever was left of them is done with the run.
            state = replace(state, roles=tuple(role.finish(context.stamp) for role in state.roles))
    if state.run.intent is Intent.END:
        return _end_or_retry(job, state, context)
    if state.run.intent is Intent.RESTART and not job.deleting:
        if context.released and job.policies.hold.release_counts:
            context.requeue = True  # the restart is visible before it has begun
            return state
        return _open_next(job, state, context)
    return state


def is_drained(job: Job, state: JobState, context: PassContext) -> bool:
    run = state.run
    if job.policies.pod_policy.run_owner is not None:
        if run.stage <= Stage.REQUESTED:
            return (RunOwnerRef(), run.run_owner or "") in context.gone
        return context.run_owner is None
    group_gates = (gate for gate in job.policies.gates if isinstance(gate, GroupGate) and gate.groups)
    if context.observed.groups and any(gate.lifetime is Lifetime.RUN for gate in group_gates):
        return False
    pods = [*context.pods.values(), *context.settled_pods, *context.strays]
    remaining = [pod for pod in pods if must_delete(job, state, pod)]
    if job.policies.pod_policy.memory is Memory.FINALIZER:
        # A released pod is matched to no task and may still exist.
        remaining += [pod for pod in context.observed.pods if pod.owned and pod.leaving and not pod.is_finished]
    if run.intent is Intent.RESTART and job.policies.teardown.restart_drained is Drained.ENOUGH:
        need = job.minimum if job.minimum is not None else context.total
        return all(pod.leaving for pod in remaining) and context.total - len(remaining) >= need
    return not remaining


def must_delete(job: Job, state: JobState, pod: ObservedPod) -> bool:
    """Whether a closed run may not keep this pod."""
    keep = pods_to_keep(job, state)
    if pod.leaving or keep is KeepPods.NONE:
        return True
    return keep is KeepPods.FINISHED and not pod.is_finished


def _end_or_retry(job: Job, state: JobState, context: PassContext) -> JobState:
    """A decided retry of the run is carried out after its delay, or at once where a stop is requested."""
    run = state.run
    decision = _retry_decision(job, state)
    if run.delay_seconds is None:
        if decision is RetryDecision.DONE:
            return _end_job(job, state, context)
        if job.deleting:
            return state
        assert job.policies.run_retry is not None
        assert run.outcome is not None
        # Drawn from this pass's nonce; stored, so that a restart of the operator keeps it.
        seed = f"{job.uid}/{context.observed.nonce}/delay/{run.number}"
        delay = retry_backoff(job.policies.run_retry.delay, run.outcome, charged=state.charged, seed=seed)
        if delay and not job.stop:
            context.emit("", "RunDelayed", job=job.name, seconds=delay, run=run.number + 1)
            return replace(state, run=replace(run, delay_seconds=delay))
    else:
        assert run.since is not None
        is_due = job.stop or context.now >= run.since + timedelta(seconds=run.delay_seconds)
        if job.deleting or not is_due:
            return state
    context.notify(NoticeKind.JOB_RETRY, "", state)
    if decision is RetryDecision.CHARGED:
        state = state.with_charge("")
        context.charge(f"run {run.number}", "")
    return _open_next(job, state, context)


def _end_job(job: Job, state: JobState, context: PassContext) -> JobState:
    outcome = state.run.outcome
    if outcome is not None and outcome.final and not outcome.is_ok:
        context.emit("", "Stopped", job=job.name)
    else:
        what = "Succeeded" if outcome is not None and outcome.is_ok else "Failed"
        context.emit("", what, warning=what == "Failed", job=job.name, phrase=outcome.phrase if outcome else what)
    return end(state, context)


def _retry_decision(job: Job, state: JobState) -> RetryDecision:
    retry, outcome = job.policies.run_retry, state.run.outcome
    if retry is None or outcome is None:
        return RetryDecision.DONE
    decision = retry.decide(outcome)
    if decision is not RetryDecision.CHARGED or state.run.delay_seconds is not None:
        return decision  # a retry that is only delayed is kept, even if the budget was cut since
    budgets = (b for b in job.policies.budgets if b.unit is BudgetUnit.ATTEMPTS and b.scope is BudgetScope.JOB)
    budget = next(budgets, None)
    is_empty = budget is not None and budget.permits is not None and state.charged >= budget.permits
    return RetryDecision.DONE if is_empty else decision


def _open_next(job: Job, state: JobState, context: PassContext) -> JobState:
    number = state.run.number + 1
    context.emit("", "RunOpened", job=job.name, run=number)
    roles = new_roles(job, context)
    if pods_to_keep(job, state) is not KeepPods.NONE and job.policies.pod_policy.memory is not Memory.RECORD:
        ok_only = state.run.held and job.policies.hold.renews_failed
        roles = tuple(_with_completed_tasks(role, state.role(role.name), ok_only=ok_only) for role in roles)
    stamps = state.stamps
    if state.run.held and job.policies.hold.clock is HoldClock.RESTARTS:
        stamps = replace(stamps, clock_from=clock_start(job, context))
    context.requeue = context.requeue or job.stop or job.policies.hold.requested
    return replace(state, run=_new_run(job, context, number), roles=roles, stamps=stamps)


def _with_completed_tasks(role: RoleState, before: RoleState | None, *, ok_only: bool) -> RoleState:
    """What was done before a hold stays done.

    A failure that is not kept belongs to no task any more: its pod is deleted as a stray, which frees the name for the
    next attempt.
    """
    done: dict[int, TaskState] = {}
    if before is not None:
        stays = [task for task in before.tasks if task.is_done and not task.dropped]
        done = {task.index: task for task in stays if not ok_only or (task.outcome and task.outcome.is_ok)}
        role = replace(role, ok_count=before.ok_count, bad_count=before.bad_count)
    return replace(role, tasks=tuple([done.get(task.index, task) for task in role.tasks]))


def _new_run(job: Job, context: PassContext, number: int) -> Run:
    stage = Stage.PREPARING if job.policies.pod_policy.run_owner is None else Stage.WAITING
    return Run(number, stage, since=context.stamp, started=context.stamp)


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
    if (cut := job.policies.teardown.cut) is not None:
        roles = [replace(role, tasks=tuple([task.with_outcome(cut) for task in role.tasks])) for role in closed.roles]
        closed = replace(closed, roles=tuple(roles))
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
