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
from hashlib import blake2b
from typing import TYPE_CHECKING

from shoal.engine.messages import CATALOG
from shoal.engine.pass_context import PassContext, Tasks, settle_pods
from shoal.engine.pod_outcomes import RetryTiming
from shoal.engine.state import AttemptState, JobState, Run, SettledReason, TaskState
from shoal.engine.types import BAD, FailureClass, KeepPods, NoticeKind, Outcome, Stage, TaskRef, Trigger
from shoal.kube.messages import Message

if TYPE_CHECKING:
    from shoal.engine.model import Job, Role
    from shoal.engine.observed import ObservedPod
    from shoal.engine.timeouts import Timeouts


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
    """`base` seconds, doubled with each charged retry, at most `cap`."""

    base: int
    cap: int


Delay = UniformDelay | ExponentialDelay | None


@dataclass(frozen=True, slots=True)
class Retry:
    """Whether an end of each class is retried. `Retry.from_letters("dfcdf")`: one letter per field, in order."""

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
        found = FailureClass.TRANSIENT if outcome.failure_class is FailureClass.CONFLICT else outcome.failure_class
        decision: RetryDecision = getattr(self, found.value)
        return decision


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

    @property
    def counts_retries(self) -> bool:
        """Attempts of a job are its runs; actions are charged where they are taken, containers never."""
        return self.unit is BudgetUnit.PODS or (self.unit is BudgetUnit.ATTEMPTS and self.scope is not BudgetScope.JOB)

    def covers(self, role: str, pod: ObservedPod) -> bool:
        """Whether restarts of this pod's containers count."""
        return pod.phase.value in self.phases and (not self.roles or role in self.roles)


class BudgetTracker:
    """The job's charges while the retries of one pass are decided."""

    __slots__ = ("_budgets", "_context", "charges", "exhausted")

    def __init__(self, job: Job, state: JobState, context: PassContext) -> None:
        self._context = context
        self._budgets = {
            role.name: [budget for budget in (role.budget, *job.policies.budgets) if budget and budget.counts_retries]
            for role in job.roles
        }
        self.charges = dict(state.charges)
        self.exhausted: Outcome | None = None  # of the job, where a budget ran out whose emptiness fails it

    def charge(self, role: Role, task: TaskState) -> bool:
        """Whether every budget allows one more retry; if so it is taken from all of them."""
        budgets, ref = self._budgets[role.name], TaskRef(role.name, task.index)
        spent = {BudgetScope.TASK: task.charged, BudgetScope.ROLE: self._of(role.name), BudgetScope.JOB: self._of("")}
        empty = [budget for budget in budgets if budget.permits is not None and spent[budget.scope] >= budget.permits]
        # Some budgets count the one too many as well.
        is_counted = not empty or any(
            budget.spent is SpentOn.ON_FAILURE or budget.when_empty is WhenEmpty.CHARGE_AND_FAIL for budget in empty
        )
        counts_pods = any(budget.unit is BudgetUnit.PODS for budget in budgets)
        scopes = ("", role.name) if counts_pods and is_counted else ()
        for scope in scopes:
            self.charges[scope] = self._of(scope) + 1
        if not empty or scopes:
            # The attempt that is charged is named by its record, else by its pod, if one was observed.
            pod = self._context.pods.get((ref.role, ref.index))
            attempt = f"{task.instance}/{task.attempt.number}" if task.instance else pod.uid if pod else ""
            cause = f"retry {attempt}" if attempt else ""
            self._context.charge(cause, *scopes, task=ref if not empty else None)
        if not empty:
            return True
        self._context.emit(str(ref), "RetriesExhausted", warning=True, task=str(ref))
        failing = [budget for budget in empty if budget.when_empty is not WhenEmpty.DONE]
        if failing and self.exhausted is None:
            code = task.outcome.code if task.outcome is not None else 0
            why = CATALOG.text(Message("Trigger.RetriesExhausted", {"task": str(ref)}))
            self.exhausted = failing[0].outcome.blaming(Trigger(ref.role, ref.index, why), code)
        return False

    def _of(self, scope: str) -> int:
        return self.charges.get(scope, 0)


def decide_retries(
    job: Job, state: JobState, context: PassContext, consumed: set[TaskRef]
) -> tuple[JobState, Outcome | None]:
    """Every ended attempt retried or done; also how the job ends, if a budget ran out that fails it."""
    if not context.ended_attempts:
        return state, None
    ranks = {role.name: rank for rank, role in enumerate(state.roles)}
    tracker, changes, settled = BudgetTracker(job, state, context), Tasks(), dict[str, SettledReason]()
    for ref in sorted(context.ended_attempts, key=lambda ref: (ranks.get(ref.role, -1), ref.index)):
        role, task = context.roles.get(ref.role), state.task(ref)
        if task is None or ref in consumed or task.outcome is None or task.is_done:
            continue
        tasks = changes.setdefault(ref.role, {})
        decision = role.retry.decide(task.outcome) if role is not None and not task.dropped else RetryDecision.DONE
        if not state.run.is_open:
            # No task is retried in a closed run; where pods outlive their tasks a final end remains final.
            is_final = decision is RetryDecision.DONE or job.policies.pod_end.retry_at is RetryTiming.OVER
            tasks[ref.index] = task.at(Stage.DONE, context.stamp) if is_final else task.without_outcome()
            continue
        if decision is RetryDecision.CHARGED and role is not None and not tracker.charge(role, task):
            decision = RetryDecision.DONE
        if role is None or decision is RetryDecision.DONE:
            context.requeue = context.requeue or task.dropped
            tasks[ref.index] = task.at(Stage.DONE, context.stamp)
            reason = "done" if job.policies.teardown.at_done is KeepPods.NONE else ""
        else:
            tasks[ref.index] = _retry_task(role, task, context, charged=decision is RetryDecision.CHARGED)
            reason = "retry" if job.policies.teardown.at_retry is KeepPods.NONE else "counted"
        pod = context.pods.get((ref.role, ref.index))
        if pod is not None and reason:
            settled[pod.uid] = SettledReason(ref.role, ref.index, reason, task.outcome.is_ok)
    state = state.with_tasks(changes)
    if tracker.charges != state.charges:
        state = state.with_charges(tracker.charges)
    return settle_pods(state, context, settled), tracker.exhausted


def _retry_task(role: Role, task: TaskState, context: PassContext, *, charged: bool) -> TaskState:
    ref = f"{role.name}-{task.index}"
    context.notify(NoticeKind.TASK_RETRY, role.name, task)
    code = "TaskRetried" if charged else "TaskRetried.Free"
    context.emit(ref, code, task=ref, attempt=task.attempt.number + 1, charged=task.charged + 1)
    not_before = None
    if charged and role.retry.delay is not None and task.outcome is not None:
        seed = f"{context.job.uid}/{context.observed.nonce}/delay/{ref}/{task.attempt.number}"
        if seconds := retry_backoff(role.retry.delay, task.outcome, charged=task.charged, seed=seed):
            not_before = context.stamp + timedelta(seconds=seconds)
    return task.retried(context.stamp, charged=charged, not_before=not_before)


def retry_backoff(delay: Delay, outcome: Outcome, *, charged: int, seed: str) -> int:
    """Seconds before the retry of a task or a run. A random delay depends on the seed only."""
    if isinstance(delay, ExponentialDelay):
        seconds: int = delay.base * 2 ** min(charged, 30)
        return min(delay.cap, seconds)
    if isinstance(delay, UniformDelay) and outcome.failure_class is FailureClass.CONFLICT:
        drawn = int.from_bytes(blake2b(seed.encode(), digest_size=8).digest(), "big")
        return delay.low + drawn % (delay.high - delay.low + 1)
    return 0


def created_from(clock: Timeouts, attempt: AttemptState | Run, not_before: datetime | None = None) -> datetime | None:
    """When the first object of an attempt or a run may be created, after its backoff and spaced; None: at once."""
    if attempt.number < clock.quick_retries or attempt.started is None:
        return not_before
    spaced = attempt.started + timedelta(seconds=clock.retry_spacing_seconds)
    return max(spaced, not_before or spaced)


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
    return settle_pods(state.with_tasks(changes), context, settled)
