"""Step 3, evaluate_outcomes: which pods ended, left or vanished. Each gets an outcome, exactly once.

How the end of a pod is observed is the dialect's PodEndPolicy. Only tasks of an open run without an outcome are
examined: a dropped task has its outcome already, a settled pod belongs to no task, and the pods of a closed run raise
no events. The end of a container is decisive only where it is not restarted in place. Phase Unknown is ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import TYPE_CHECKING

from shoal.engine.failure_classification import (
    Classifier,
    DecisiveContainer,
    classify_refusal,
    detail_of,
    find_decisive_container,
)
from shoal.engine.messages import stated
from shoal.engine.observed import DISRUPTED, ObservedPod, PodPhase
from shoal.engine.pass_context import PassContext, Tasks
from shoal.engine.state import JobState, RoleState, TaskState
from shoal.engine.types import (
    POD_GONE,
    POD_LEAVING,
    POD_OK,
    POD_UNSEEN,
    Event,
    EventType,
    FailureClass,
    Memory,
    Outcome,
    Stage,
    TaskRef,
)

if TYPE_CHECKING:
    from shoal.engine.model import Job


class RetryTiming(Enum):
    VERDICT = "verdict"  # retried or done as soon as the end is known
    OVER = "over"  # only once the pod is gone


class SlotRelease(Enum):
    """When the slot of a pod is free for the next one."""

    GONE = "gone"
    TERMINAL = "terminal"
    LEAVING = "leaving"


class ExternalDeletion(Enum):
    """How a deletion by another client counts."""

    LOST = "lost"
    FAILED = "failed"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class PodEndPolicy:
    decisive_container: DecisiveContainer = DecisiveContainer.LAST_FAILED
    container: str = ""  # for NAMED and TRAINING
    while_running: bool = False  # evaluate that container even while others keep the pod running
    external_deletion: ExternalDeletion = ExternalDeletion.LOST
    at_termination: bool = True  # else only when the pod is gone
    success_beats_leaving: bool = False  # a terminating pod that succeeded did succeed
    disruption_is_loss: bool = False  # a failed pod under DisruptionTarget counts as deleted by others
    leaving: Outcome = POD_LEAVING
    gone: Outcome = POD_GONE
    unseen: Outcome = POD_UNSEEN
    ok: Outcome = POD_OK
    retry_at: RetryTiming = RetryTiming.VERDICT
    release: SlotRelease = SlotRelease.GONE


def evaluate_outcomes(job: Job, state: JobState, context: PassContext) -> tuple[JobState, list[Event]]:
    if not state.run.is_open:
        return state, []
    events: list[Event] = []
    reacts = bool(job.policies.reactions) or any(role.reactions for role in job.roles)
    changes: Tasks = {}
    for role, task, outcome in _new_outcomes(job, state, context):
        ref = TaskRef(role.name, task.index)
        _emit_outcome(job, context, ref, task, outcome)
        if reacts and not outcome.is_ok:
            events.append(_event(job, ref, outcome, context))
        task = task.with_outcome(outcome)
        if job.policies.pod_policy.memory is Memory.RECORD and Stage.PREPARING <= task.stage <= Stage.RUNNING:
            task = task.at(Stage.CLOSING, context.stamp)
        changes.setdefault(role.name, {})[task.index] = task
        if job.policies.pod_end.retry_at is RetryTiming.VERDICT:
            context.ended_attempts.append(ref)
    events.sort(key=lambda event: event.at)  # within one moment: role and index, as found
    return state.with_tasks(changes), events


def _new_outcomes(job: Job, state: JobState, context: PassContext) -> Iterator[tuple[RoleState, TaskState, Outcome]]:
    lost = set(context.losses)
    classifier = Classifier(job.policies.classify, job.policies.pod_end)
    for role in state.roles:
        peer_ok: bool | None = None
        for task in role.tasks:
            if task.stage is Stage.DONE or task.attempt.outcome is not None:
                continue
            pod = context.pods.get((role.name, task.index))
            if pod is None:
                outcome = _missing_pod_outcome(job, role, task, context, lost)
            elif pod.leaving or pod.phase is not PodPhase.RUNNING or job.policies.pod_end.while_running:
                if peer_ok is None:
                    peer_ok = any(t.is_done and t.outcome is not None and t.outcome.is_ok for t in role.tasks)
                outcome = _pod_outcome(job, pod, classifier, peer_ok=peer_ok)
            else:
                continue
            if outcome is not None:
                yield role, task, outcome


def _pod_outcome(job: Job, pod: ObservedPod, classifier: Classifier, *, peer_ok: bool) -> Outcome | None:
    """How this pod ended, or None while it has not."""
    pod_end = job.policies.pod_end
    succeeded = pod.phase is PodPhase.SUCCEEDED
    is_final = pod.is_finished and not pod_end.at_termination  # a policy that waits for the end uses it
    if pod.leaving and not is_final and not (succeeded and pod_end.success_beats_leaving):
        return (
            pod_end.leaving
            if pod_end.at_termination and pod_end.external_deletion is not ExternalDeletion.NOTHING
            else None
        )
    if succeeded:
        ok = pod_end.ok
        return Outcome(FailureClass.OK, ok.code, ok.phrase, ok.text, ok.attributes, detail=detail_of(pod))
    if pod.phase is PodPhase.FAILED:
        if pod_end.disruption_is_loss and DISRUPTED in pod.conditions:
            return pod_end.leaving
        return classifier.of(pod, peer_ok=peer_ok)
    if pod_end.while_running and not pod.restarts_in_place:
        container = find_decisive_container(pod_end, pod.containers)
        if container is not None and container.code:
            return classifier.of(pod, peer_ok=peer_ok)
    return None


def _missing_pod_outcome(
    job: Job, role: RoleState, task: TaskState, context: PassContext, lost: set[TaskRef]
) -> Outcome | None:
    pod_end, ref = job.policies.pod_end, TaskRef(role.name, task.index)
    if ref in lost:
        return None if pod_end.external_deletion is ExternalDeletion.NOTHING else pod_end.gone
    if ref in context.refused and task.stage is Stage.WAITING:
        refused = context.refused[ref]
        outcome = classify_refusal(job.policies.classify, refused)
        if outcome is None:
            context.emit(str(ref), "FailedCreate", warning=True, task=str(ref), cause=stated(refused.text))
        return outcome
    limit = job.policies.clock.creation_seconds
    if task.stage is Stage.REQUESTED and limit is not None and task.since is not None:
        return pod_end.unseen if context.now >= task.since + timedelta(seconds=limit) else None
    return None


def _event(job: Job, ref: TaskRef, outcome: Outcome, context: PassContext) -> Event:
    pod_end = job.policies.pod_end
    losses = (pod_end.leaving, pod_end.gone, pod_end.unseen)
    is_lost = pod_end.external_deletion is ExternalDeletion.LOST and any(outcome is loss for loss in losses)
    kind = EventType.TASK_LOST if is_lost else EventType.TASK_FAILED
    pod = context.pods.get((ref.role, ref.index))
    if pod is None:
        return Event(kind, context.stamp, ref.role, ref.index)
    # When it happened, as far as a time is recorded.
    at = max((c.finished for c in pod.containers if c.finished is not None), default=context.stamp)
    if pod.leaving:
        at = pod.leaving_since or context.stamp
    container = find_decisive_container(pod_end, pod.containers)
    return Event(kind, at, ref.role, ref.index, pod.uid, container.code if container is not None else None)


def _emit_outcome(job: Job, context: PassContext, ref: TaskRef, task: TaskState, outcome: Outcome) -> None:
    if outcome.is_ok:
        context.emit(str(ref), "TaskSucceeded", task=str(ref), attempt=task.attempt.number)
        return
    code, cause = "TaskLost" if outcome.failure_class is FailureClass.LOST else "TaskFailed", outcome.label
    pod = context.pods.get((ref.role, ref.index))
    if outcome is job.policies.pod_end.leaving and pod is not None and pod.disruption:
        code, cause = f"{code}.Evicted", pod.disruption
    context.emit(str(ref), code, warning=True, task=str(ref), attempt=task.attempt.number, cause=stated(cause))
