"""Retry and Budget: what becomes of an attempt that ended. Free, charged within budget, or done.

Answers are given in rank order, so that several ends in one pass take the budget in a known order. A budget of
containers is no answer to an end; it is a level, read in limits.py.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from shoal.engine.model import Job, Role
from shoal.engine.pass_context import Scene, Tasks
from shoal.engine.policies import (
    Answer,
    AnswerAt,
    Budget,
    ExponentialDelay,
    Keep,
    Scope,
    Spent,
    Unit,
    WhenEmpty,
)
from shoal.engine.state import JobState, TaskState, Why
from shoal.engine.types import NoticeKind, Outcome, Stage, TaskRef, Trigger


class Purse:
    """The job's charges while the answers of one pass are given."""

    __slots__ = ("_budgets", "_counts_pods", "charges", "exhausted")

    def __init__(self, job: Job, state: JobState) -> None:
        shared = [budget for budget in job.policies.budgets if _counts_retries(budget)]
        self._budgets = {role.name: [*_own(role), *shared] for role in job.roles}
        self._counts_pods = {
            name: any(budget.unit is Unit.PODS for budget in budgets) for name, budgets in self._budgets.items()
        }
        self.charges = dict(state.charges)
        self.exhausted: Outcome | None = None  # of the job, where a budget ran out whose emptiness fails it

    def pays(self, role: Role, task: TaskState) -> tuple[bool, tuple[str, ...]]:
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
                self.exhausted = _blaming(role, task, failing[0])
        return not empty, scopes

    def _spent(self, budget: Budget, role: Role, task: TaskState) -> int:
        if budget.scope is Scope.TASK:
            return task.charged
        return self.charges.get("" if budget.scope is Scope.JOB else role.name, 0)


def _blaming(role: Role, task: TaskState, budget: Budget) -> Outcome:
    """The end of the job with the task that asked for one more, and that task's own code."""
    ref = TaskRef(role.name, task.index)
    code = task.outcome.code if task.outcome is not None else 0
    return budget.outcome.blaming(Trigger(ref.role, ref.index, f"{ref} failed and no retry is left"), code)


def _counts_retries(budget: Budget) -> bool:
    """Attempts of a job are its runs; actions are charged where they are taken, containers never."""
    return budget.unit is Unit.PODS or (budget.unit is Unit.ATTEMPTS and budget.scope is not Scope.JOB)


def _own(role: Role) -> list[Budget]:
    return [role.budget] if role.budget is not None and _counts_retries(role.budget) else []


def _charges_refusal(budget: Budget) -> bool:
    """Whether the one too many is counted as well."""
    return budget.spent is Spent.ON_FAILURE or budget.when_empty is WhenEmpty.CHARGE_AND_FAIL


def answer(job: Job, state: JobState, scene: Scene, consumed: set[TaskRef]) -> tuple[JobState, Outcome | None]:
    """Every ended attempt retried or done; also how the job ends, if a budget ran out that fails it."""
    if not scene.over:
        return state, None
    ranks = {role.name: rank for rank, role in enumerate(state.roles)}
    purse, changes, settled = Purse(job, state), Tasks(), dict[str, Why]()
    for ref in sorted(scene.over, key=lambda ref: (ranks.get(ref.role, -1), ref.index)):
        task = state.task(ref)
        if task is None or ref in consumed or task.outcome is None or task.is_done:
            continue
        changes.setdefault(ref.role, {})[ref.index] = _answered(job, state, scene, ref, task, purse, settled)
    state = state.with_tasks(changes)
    if purse.charges != state.charges:
        state = state.with_charges(purse.charges)
    return settle_bodies(state, scene, settled), purse.exhausted


def _answered(
    job: Job, state: JobState, scene: Scene, ref: TaskRef, task: TaskState, purse: Purse, settled: dict[str, Why]
) -> TaskState:
    role, outcome = scene.roles.get(ref.role), task.outcome
    assert outcome is not None
    reply = role.retry.answer(outcome) if role is not None and not task.dropped else Answer.DONE
    if not state.run.is_open:
        return _after_close(job, task, reply, scene)
    if reply is Answer.CHARGED and role is not None:
        paid, scopes = purse.pays(role, task)
        if paid or scopes:
            scene.charge(_cause(ref, task, scene), *scopes, task=ref if paid else None)
        if not paid:
            scene.emit(str(ref), "RetriesExhausted", warning=True, task=str(ref))
            reply = Answer.DONE
    if reply is Answer.DONE:
        return _done(job, scene, ref, task, settled)
    return _tried_again(job, scene, ref, task, outcome, settled, charged=reply is Answer.CHARGED)


def _cause(ref: TaskRef, task: TaskState, scene: Scene) -> str:
    """The attempt that is charged: by its record, else by its body, if anybody saw it."""
    if task.instance:
        return f"retry {task.instance}/{task.attempt.number}"
    body = scene.bodies.get((ref.role, ref.index))
    return f"retry {body.uid}" if body is not None else ""


def _after_close(job: Job, task: TaskState, reply: Answer, scene: Scene) -> TaskState:
    """Nobody is retried in a closed run; where bodies outlive their tasks an end that would stand does stand."""
    if job.policies.ending.answer_at is AnswerAt.OVER or reply is Answer.DONE:
        return task.at(Stage.DONE, scene.stamp)
    return task.forgotten()


def _done(job: Job, scene: Scene, ref: TaskRef, task: TaskState, settled: dict[str, Why]) -> TaskState:
    scene.again = scene.again or task.dropped
    body = scene.bodies.get((ref.role, ref.index))
    if body is not None and job.policies.teardown.at_done is Keep.NONE:
        settled[body.uid] = Why(ref.role, ref.index, "done", task.outcome.is_ok if task.outcome else None)
    return task.at(Stage.DONE, scene.stamp)


def _tried_again(
    job: Job,
    scene: Scene,
    ref: TaskRef,
    task: TaskState,
    outcome: Outcome,
    settled: dict[str, Why],
    *,
    charged: bool,
) -> TaskState:
    scene.tell(NoticeKind.TASK_RETRY, ref.role, task)
    code = "TaskRetried" if charged else "TaskRetried.Free"
    scene.emit(str(ref), code, task=str(ref), attempt=task.attempt.number + 1, charged=task.charged + 1)
    body = scene.bodies.get((ref.role, ref.index))
    if body is not None:
        reason = "retry" if job.policies.teardown.at_retry is Keep.NONE else "counted"
        settled[body.uid] = Why(ref.role, ref.index, reason, outcome.is_ok)
    due = _due(scene.roles[ref.role], task, scene.stamp) if charged else None
    return task.retried(scene.stamp, charged=charged, not_before=due)


def _due(role: Role, task: TaskState, stamp: datetime) -> datetime | None:
    delay = role.retry.delay
    if not isinstance(delay, ExponentialDelay):
        return None
    return stamp + timedelta(seconds=min(delay.cap, delay.base * 2 ** min(task.charged, 30)))


def settle_bodies(state: JobState, scene: Scene, settled: dict[str, Why]) -> JobState:
    """These bodies raise nothing more and stand beside no task."""
    for uid, why in settled.items():
        body = scene.bodies.get((why.role, why.index))
        if body is not None and body.uid == uid:
            scene.doomed.append(scene.bodies.pop((why.role, why.index)))
    return state.settle(settled)


def restart(state: JobState, scene: Scene, refs: list[TaskRef]) -> JobState:
    """The one primitive behind restarts of task, partition and role: settle the bodies, begin the tasks anew."""
    changes, settled = Tasks(), dict[str, Why]()
    for ref in refs:
        task = state.task(ref)
        if task is None or task.dropped:
            continue
        body = scene.bodies.get((ref.role, ref.index))
        if body is not None:
            settled[body.uid] = Why(ref.role, ref.index, "restart")
        changes.setdefault(ref.role, {})[ref.index] = task.retried(scene.stamp, charged=False)
    return settle_bodies(state.with_tasks(changes), scene, settled)
