"""Step 5, advance the run: a closed run drains, is over, and then the job ends, rests, or opens the next run.

A run is over only when everything it may not keep is gone; where a run owner owns the pods, when the run owner is gone.
The next run is built from the spec of the moment it opens. A job that is being deleted opens none.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from hashlib import blake2b

from msgspec.structs import replace

from shoal.engine.model import Job
from shoal.engine.observed import ObservedPod, RunOwnerRef
from shoal.engine.pass_context import PassContext
from shoal.engine.policies import (
    BudgetScope,
    BudgetUnit,
    DeadlineBase,
    Drained,
    GroupGate,
    HoldClock,
    KeepPods,
    Lifetime,
    Memory,
    RetryDecision,
    UniformDelay,
)
from shoal.engine.run_closing import end, pods_to_keep
from shoal.engine.scaling import new_roles
from shoal.engine.state import JobState, RoleState, Run, TaskState
from shoal.engine.types import FailureClass, Intent, NoticeKind, Stage


def open_first_run(job: Job, state: JobState, context: PassContext) -> JobState:
    """The first look at a job: its first run opens, and values that outlive an edit are copied."""
    stamps = replace(state.stamps, started=context.stamp, clock_from=_clock_from(job, context))
    state = replace(state, run=_new_run(job, context, 0), stamps=stamps, frozen=dict(job.policies.rendezvous.frozen))
    context.emit("", "Started", job=job.name, run=0)
    return state


def advance_run(job: Job, state: JobState, context: PassContext) -> JobState:
    if state.is_ended:
        return state
    if state.run.is_open:
        return _start_clock(job, state, context)
    if state.run.stage is not Stage.OVER:
        if not is_drained(job, state, context):
            return state
        state = _finish_run(job, state, context)
    intent = state.run.intent
    if intent is Intent.END:
        return _after_end(job, state, context)
    if intent is Intent.RESTART and not job.deleting:
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
    if any(_lives_for_a_run(gate) and gate.groups and context.observed.groups for gate in _group_gates(job)):
        return False
    remaining = [pod for pod in _all_pods(context) if must_delete(job, state, pod)]
    if job.policies.pod_policy.memory is Memory.FINALIZER:
        # A released pod is matched to no task and may still exist.
        remaining += [pod for pod in context.observed.pods if pod.owned and pod.leaving and not pod.is_finished]
    if run.intent is Intent.RESTART and job.policies.teardown.restart_drained is Drained.ENOUGH:
        need = job.minimum if job.minimum is not None else context.total
        return all(pod.leaving for pod in remaining) and context.total - len(remaining) >= need
    return not remaining


def must_delete(job: Job, state: JobState, pod: ObservedPod) -> bool:
    """Whether a closed run may not keep this body."""
    keep = pods_to_keep(job, state)
    if pod.leaving or keep is KeepPods.NONE:
        return True
    return keep is KeepPods.FINISHED and not pod.is_finished


def _all_pods(context: PassContext) -> list[ObservedPod]:
    return [*context.pods.values(), *context.settled_pods, *context.strays]


def _group_gates(job: Job) -> list[GroupGate]:
    return [gate for gate in job.policies.gates if isinstance(gate, GroupGate)]


def _lives_for_a_run(gate: GroupGate) -> bool:
    return gate.lifetime is Lifetime.RUN


def _finish_run(job: Job, state: JobState, context: PassContext) -> JobState:
    """Everything is gone. Where tasks are recorded, whatever was left of them is done with the run."""
    state = replace(state, run=state.run.at(Stage.OVER, context.stamp))
    if job.policies.pod_policy.memory is Memory.RECORD:
        state = replace(state, roles=tuple(_all_done(role, context) for role in state.roles))
    return state


def _all_done(role: RoleState, context: PassContext) -> RoleState:
    if all(task.is_done for task in role.tasks):
        return role
    now = context.stamp
    tasks = [task if task.is_done else task.at(Stage.OVER, now).at(Stage.DONE, now) for task in role.tasks]
    return replace(role, tasks=tuple(tasks))


def _after_end(job: Job, state: JobState, context: PassContext) -> JobState:
    """The run's own retry: once decided it is carried out after its delay, or at once where a stop is requested."""
    run = state.run
    if run.delay_seconds is None:
        decision = _retry_decision(job, state)
        if decision is RetryDecision.DONE or job.deleting:
            return _ended(job, state, context) if decision is RetryDecision.DONE else state
        delay = _delay(job, state, context)
        if delay and not job.stop:
            context.emit("", "RunDelayed", job=job.name, seconds=delay, run=run.number + 1)
            return replace(state, run=replace(run, delay_seconds=delay))
    elif job.deleting or not _is_due(run, job, context):
        return state
    context.notify(NoticeKind.JOB_RETRY, "", state)
    if _retry_decision(job, state) is RetryDecision.CHARGED:
        state = state.with_charge("")
        context.charge(f"run {run.number}", "")
    return _open_next(job, state, context)


def _ended(job: Job, state: JobState, context: PassContext) -> JobState:
    outcome = state.run.outcome
    if outcome is not None and outcome.final and not outcome.is_ok:
        context.emit("", "Stopped", job=job.name)
        return end(state, context)
    what = "Succeeded" if outcome is not None and outcome.is_ok else "Failed"
    context.emit("", what, warning=what == "Failed", job=job.name, phrase=outcome.phrase if outcome else what)
    return end(state, context)


def _is_due(run: Run, job: Job, context: PassContext) -> bool:
    assert run.since is not None
    assert run.delay_seconds is not None
    return job.stop or context.now >= run.since + timedelta(seconds=run.delay_seconds)


def _retry_decision(job: Job, state: JobState) -> RetryDecision:
    retry, outcome = job.policies.run_retry, state.run.outcome
    if retry is None or outcome is None:
        return RetryDecision.DONE
    decision = retry.decide(outcome)
    if decision is not RetryDecision.CHARGED:
        return decision
    budget = next(
        (b for b in job.policies.budgets if b.unit is BudgetUnit.ATTEMPTS and b.scope is BudgetScope.JOB), None
    )
    empty = budget is not None and budget.permits is not None and state.charged >= budget.permits
    # A decided retry is kept, even if the budget was cut since.
    return RetryDecision.DONE if empty and state.run.delay_seconds is None else decision


def _delay(job: Job, state: JobState, context: PassContext) -> int:
    """Seconds until the next run, drawn from this pass's nonce; stored, so that a restart keeps it."""
    retry, outcome = job.policies.run_retry, state.run.outcome
    if retry is None or outcome is None or outcome.failure_class is not FailureClass.CONFLICT:
        return 0
    if not isinstance(retry.delay, UniformDelay):
        return 0
    seed = f"{job.uid}/{context.observed.nonce}/delay/{state.run.number}".encode()
    drawn = int.from_bytes(blake2b(seed, digest_size=8).digest(), "big")
    return retry.delay.low + drawn % (retry.delay.high - retry.delay.low + 1)


def _open_next(job: Job, state: JobState, context: PassContext) -> JobState:
    number = state.run.number + 1
    context.emit("", "RunOpened", job=job.name, run=number)
    roles = new_roles(job, context)
    if pods_to_keep(job, state) is not KeepPods.NONE and job.policies.pod_policy.memory is not Memory.RECORD:
        ok_only = state.run.held and job.policies.hold.renews_failed
        roles = tuple(_with_completed_tasks(role, state.role(role.name), ok_only=ok_only) for role in roles)
    stamps = state.stamps
    if state.run.held and job.policies.hold.clock is HoldClock.RESTARTS:
        stamps = replace(stamps, clock_from=_clock_from(job, context))
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


def _clock_from(job: Job, context: PassContext) -> datetime | None:
    """Only kept where a deadline may require it."""
    return context.stamp if job.policies.clock.deadline_from is DeadlineBase.STARTED and _has_clock(job) else None


def _has_clock(job: Job) -> bool:
    return job.policies.clock.deadline_seconds is not None or job.policies.pod_policy.memory is not Memory.RECORD


def _start_clock(job: Job, state: JobState, context: PassContext) -> JobState:
    """The clock that runs from the moment all pods of the run exist."""
    if state.stamps.clock_from is not None or job.policies.clock.deadline_from is not DeadlineBase.CLOCK:
        return state
    living = [task for role in state.roles for task in role.tasks if not task.is_done]
    if not living or any(task.uid is None for task in living):
        return state
    return replace(state, stamps=replace(state.stamps, clock_from=context.stamp))
