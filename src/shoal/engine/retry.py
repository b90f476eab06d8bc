"""Retry, RetryBudget and backoff: whether an attempt that ended is retried, what that costs, and when it is created.

Retries are decided in rank order, so that several ends in one pass take the budget in a known order. A budget of
containers does not decide about an end; it is a level, evaluated in timeouts.py.

Retries that fail at once are spaced, too: every attempt starts where the one before it ended; creating each no earlier
than a second after its start stamp therefore limits the rate to one a second, however fast it fails. This is derived in
each pass from the attempt's number and start stamp, so nothing more is persisted, and neither counts nor outcomes
depend on it. Where a compact state does not store the number of an attempt (`Memory.ROSTER`, `LEVEL`, `FINALIZER`), an
operator that restarts counts from 0 again. Containers that restart in place are slowed by the kubelet instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING

from shoal.engine.pass_context import PassContext, Tasks
from shoal.engine.pod_outcomes import RetryTiming
from shoal.engine.state import JobState, SettledReason, TaskState
from shoal.engine.types import BAD, FailureClass, KeepPods, NoticeKind, Outcome, Stage, TaskRef, Trigger

if TYPE_CHECKING:
    from shoal.engine.model import Job, Role


class RetryDecision(Enum):
    DONE = "d"
    FREE = "f"
    CHARGED = "c"


@dataclass(frozen=True, slots=True)
class UniformDelay:
    """A random whole number of seconds, after a conflict only."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class ExponentialDelay:
    base: int
    cap: int


Delay = UniformDelay | ExponentialDelay | None


_RETRIED_AS = {failure_class: failure_class.value for failure_class in FailureClass} | {
    FailureClass.CONFLICT: FailureClass.TRANSIENT.value
}


@dataclass(frozen=True, slots=True)
class Retry:
    """What to do about each nature of end. `Retry.word("dfcdf")` reads ok, transient, unknown, permanent, lost."""

    ok: RetryDecision = RetryDecision.DONE
    transient: RetryDecision = RetryDecision.DONE
    unknown: RetryDecision = RetryDecision.DONE
    permanent: RetryDecision = RetryDecision.DONE
    lost: RetryDecision = RetryDecision.DONE
    delay: Delay = None

    @classmethod
    def from_letters(cls, letters: str, delay: Delay = None) -> Retry:
        ok, transient, unknown, permanent, lost = (RetryDecision(letter) for letter in letters)
        return cls(ok, transient, unknown, permanent, lost, delay)

    def decide(self, outcome: Outcome) -> RetryDecision:
        if outcome.final:
            return RetryDecision.DONE
        chosen: RetryDecision = getattr(self, _RETRIED_AS[outcome.failure_class])
        return chosen


class BudgetUnit(Enum):
    ATTEMPTS = "attempts"
    PODS = "pods"
    ACTIONS = "actions"
    CONTAINERS = "containers"  # restarts in place, summed over living pods; never stored


class BudgetScope(Enum):
    TASK = "task"
    ROLE = "role"
    JOB = "job"


class SpentOn(Enum):
    ON_RESTART = "on restart"
    ON_FAILURE = "on failure"


class WhenEmpty(Enum):
    DONE = "done"  # the task keeps its end
    FAIL = "fail"  # the job fails
    CHARGE_AND_FAIL = "charge and fail"  # the refused one is counted too
    EVENT = "event"  # raises ROLE_EXHAUSTED


@dataclass(frozen=True, slots=True)
class RetryBudget:
    unit: BudgetUnit
    scope: BudgetScope
    permits: int | None = None  # None: no limit
    spent: SpentOn = SpentOn.ON_RESTART
    when_empty: WhenEmpty = WhenEmpty.DONE
    outcome: Outcome = BAD  # of the job, where it fails
    phases: frozenset[str] = frozenset({"Running"})  # CONTAINERS: which pods count
    roles: frozenset[str] = frozenset()  # CONTAINERS: whose; empty: all


class BudgetTracker:
    """The job's charges while the answers of one pass are given."""

    __slots__ = ("_budgets", "_counts_pods", "charges", "exhausted")

    def __init__(self, job: Job, state: JobState) -> None:
        shared = [budget for budget in job.policies.budgets if _counts_retries(budget)]
        self._budgets = {role.name: [*_role_budgets(role), *shared] for role in job.roles}
        self._counts_pods = {
            name: any(budget.unit is BudgetUnit.PODS for budget in budgets) for name, budgets in self._budgets.items()
        }
        self.charges = dict(state.charges)
        self.exhausted: Outcome | None = None  # of the job, where a budget ran out whose emptiness fails it

    def try_charge(self, role: Role, task: TaskState) -> tuple[bool, tuple[str, ...]]:
        """Whether every budget allows one more; if so it is taken from all of them. Also the counters that rose."""
        empty = [
            budget
            for budget in self._budgets[role.name]
            if budget.permits is not None and self._spent(budget, role, task) >= budget.permits
        ]
        is_counted = not empty or any(_charges_refusal(budget) for budget in empty)
        scopes = ("", role.name) if self._counts_pods[role.name] and is_counted else ()
        for scope in scopes:
            self.charges[scope] = self.charges.get(scope, 0) + 1
        if empty:
            failing = [budget for budget in empty if budget.when_empty is not WhenEmpty.DONE]
            if failing and self.exhausted is None:
                self.exhausted = _exhausted_outcome(role, task, failing[0])
        return not empty, scopes

    def _spent(self, budget: RetryBudget, role: Role, task: TaskState) -> int:
        if budget.scope is BudgetScope.TASK:
            return task.charged
        return self.charges.get("" if budget.scope is BudgetScope.JOB else role.name, 0)


def _exhausted_outcome(role: Role, task: TaskState, budget: RetryBudget) -> Outcome:
    """The outcome of the job, with the task that required one more retry, and that task's own code."""
    ref = TaskRef(role.name, task.index)
    code = task.outcome.code if task.outcome is not None else 0
    return budget.outcome.blaming(Trigger(ref.role, ref.index, f"{ref} failed and no retry is left"), code)


def _counts_retries(budget: RetryBudget) -> bool:
    """Attempts of a job are its runs; actions are charged where they are taken, containers never."""
    return budget.unit is BudgetUnit.PODS or (
        budget.unit is BudgetUnit.ATTEMPTS and budget.scope is not BudgetScope.JOB
    )


def _role_budgets(role: Role) -> list[RetryBudget]:
    return [role.budget] if role.budget is not None and _counts_retries(role.budget) else []


def _charges_refusal(budget: RetryBudget) -> bool:
    """Whether the one too many is counted as well."""
    return budget.spent is SpentOn.ON_FAILURE or budget.when_empty is WhenEmpty.CHARGE_AND_FAIL


def decide_retries(
    job: Job, state: JobState, context: PassContext, consumed: set[TaskRef]
) -> tuple[JobState, Outcome | None]:
    """Every ended attempt retried or done; also how the job ends, if a budget ran out that fails it."""
    if not context.ended_attempts:
        return state, None
    ranks = {role.name: rank for rank, role in enumerate(state.roles)}
    tracker, changes, settled = BudgetTracker(job, state), Tasks(), dict[str, SettledReason]()
    for ref in sorted(context.ended_attempts, key=lambda ref: (ranks.get(ref.role, -1), ref.index)):
        task = state.task(ref)
        if task is None or ref in consumed or task.outcome is None or task.is_done:
            continue
        changes.setdefault(ref.role, {})[ref.index] = _decide_retry(job, state, context, ref, task, tracker, settled)
    state = state.with_tasks(changes)
    if tracker.charges != state.charges:
        state = state.with_charges(tracker.charges)
    return settle_bodies(state, context, settled), tracker.exhausted


def _decide_retry(
    job: Job,
    state: JobState,
    context: PassContext,
    ref: TaskRef,
    task: TaskState,
    tracker: BudgetTracker,
    settled: dict[str, SettledReason],
) -> TaskState:
    role, outcome = context.roles.get(ref.role), task.outcome
    assert outcome is not None
    decision = role.retry.decide(outcome) if role is not None and not task.dropped else RetryDecision.DONE
    if not state.run.is_open:
        return _decision_after_close(job, task, decision, context)
    if decision is RetryDecision.CHARGED and role is not None:
        charged_all, scopes = tracker.try_charge(role, task)
        if charged_all or scopes:
            context.charge(_cause(ref, task, context), *scopes, task=ref if charged_all else None)
        if not charged_all:
            context.emit(str(ref), "RetriesExhausted", warning=True, task=str(ref))
            decision = RetryDecision.DONE
    if decision is RetryDecision.DONE:
        return _done(job, context, ref, task, settled)
    return _retry_task(job, context, ref, task, outcome, settled, charged=decision is RetryDecision.CHARGED)


def _cause(ref: TaskRef, task: TaskState, context: PassContext) -> str:
    """The attempt that is charged: by its record, else by its pod, if one was observed."""
    if task.instance:
        return f"retry {task.instance}/{task.attempt.number}"
    pod = context.pods.get((ref.role, ref.index))
    return f"retry {pod.uid}" if pod is not None else ""


def _decision_after_close(job: Job, task: TaskState, decision: RetryDecision, context: PassContext) -> TaskState:
    """No task is retried in a closed run; where pods outlive their tasks a final end remains final."""
    if job.policies.pod_end.retry_at is RetryTiming.OVER or decision is RetryDecision.DONE:
        return task.at(Stage.DONE, context.stamp)
    return task.without_outcome()


def _done(
    job: Job, context: PassContext, ref: TaskRef, task: TaskState, settled: dict[str, SettledReason]
) -> TaskState:
    context.requeue = context.requeue or task.dropped
    pod = context.pods.get((ref.role, ref.index))
    if pod is not None and job.policies.teardown.at_done is KeepPods.NONE:
        settled[pod.uid] = SettledReason(ref.role, ref.index, "done", task.outcome.is_ok if task.outcome else None)
    return task.at(Stage.DONE, context.stamp)


def _retry_task(
    job: Job,
    context: PassContext,
    ref: TaskRef,
    task: TaskState,
    outcome: Outcome,
    settled: dict[str, SettledReason],
    *,
    charged: bool,
) -> TaskState:
    context.notify(NoticeKind.TASK_RETRY, ref.role, task)
    code = "TaskRetried" if charged else "TaskRetried.Free"
    context.emit(str(ref), code, task=str(ref), attempt=task.attempt.number + 1, charged=task.charged + 1)
    pod = context.pods.get((ref.role, ref.index))
    if pod is not None:
        reason = "retry" if job.policies.teardown.at_retry is KeepPods.NONE else "counted"
        settled[pod.uid] = SettledReason(ref.role, ref.index, reason, outcome.is_ok)
    due = _due(context.roles[ref.role], task, context.stamp) if charged else None
    return task.retried(context.stamp, charged=charged, not_before=due)


def _due(role: Role, task: TaskState, stamp: datetime) -> datetime | None:
    delay = role.retry.delay
    if not isinstance(delay, ExponentialDelay):
        return None
    return stamp + timedelta(seconds=min(delay.cap, delay.base * 2 ** min(task.charged, 30)))


def settle_bodies(state: JobState, context: PassContext, settled: dict[str, SettledReason]) -> JobState:
    """These pods raise nothing more and are matched to no task."""
    for uid, why in settled.items():
        pod = context.pods.get((why.role, why.index))
        if pod is not None and pod.uid == uid:
            context.settled_pods.append(context.pods.pop((why.role, why.index)))
    return state.settle(settled)


def restart(state: JobState, context: PassContext, refs: list[TaskRef]) -> JobState:
    """The one primitive behind restarts of task, partition and role: settle the pods, restart the tasks."""
    changes, settled = Tasks(), dict[str, SettledReason]()
    for ref in refs:
        task = state.task(ref)
        if task is None or task.dropped:
            continue
        pod = context.pods.get((ref.role, ref.index))
        if pod is not None:
            settled[pod.uid] = SettledReason(ref.role, ref.index, "restart")
        changes.setdefault(ref.role, {})[ref.index] = task.retried(context.stamp, charged=False)
    return settle_bodies(state.with_tasks(changes), context, settled)


def run_created_from(job: Job, state: JobState) -> datetime | None:
    """When the open run's first object may be created; None: at once."""
    return _spaced(job, state.run.number, state.run.started)


def task_created_from(job: Job, task: TaskState) -> datetime | None:
    """When the pod of the task's attempt may be created; None: at once."""
    spaced = _spaced(job, task.attempt.number, task.attempt.started)
    if spaced is None or task.not_before is None:
        return spaced or task.not_before
    return max(spaced, task.not_before)


def _spaced(job: Job, number: int, started: datetime | None) -> datetime | None:
    clock = job.policies.clock
    if number < clock.quick_retries or started is None:
        return None
    return started + timedelta(seconds=clock.retry_spacing_seconds)
