"""Step 3, judge: what happened. Bodies that ended, left or vanished get an outcome, each exactly once.

Only tasks of an open run without an outcome are looked at: a dropped task has its outcome already, a settled body
stands beside no task, and the bodies of a closed run raise nothing. The end of a container is a verdict only where
nobody restarts it in place. Phase Unknown is no news.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from shoal.engine.classification import Classifier, detail_of, judged_container, refusal
from shoal.engine.messages import stated
from shoal.engine.model import Job
from shoal.engine.observed import DISRUPTED, Body, Phase
from shoal.engine.pass_context import Scene, Tasks
from shoal.engine.policies import AnswerAt, Deleted, Memory
from shoal.engine.state import JobState, RoleState, TaskState
from shoal.engine.types import Event, Happening, Nature, Outcome, Stage, TaskRef


def judge(job: Job, state: JobState, scene: Scene) -> tuple[JobState, list[Event]]:
    if not state.run.is_open:
        return state, []
    events: list[Event] = []
    reacts = bool(job.policies.reactions) or any(role.reactions for role in job.roles)
    changes: Tasks = {}
    for role, task, outcome in _verdicts(job, state, scene):
        ref = TaskRef(role.name, task.index)
        _emit(job, scene, ref, task, outcome)
        if reacts and not outcome.is_ok:
            events.append(_event(job, ref, outcome, scene))
        changes.setdefault(role.name, {})[task.index] = _judged(job, task, outcome, scene)
        if job.policies.ending.answer_at is AnswerAt.VERDICT:
            scene.over.append(ref)
    events.sort(key=lambda event: event.at)  # within one moment: role and index, as found
    return state.with_tasks(changes), events


def _verdicts(job: Job, state: JobState, scene: Scene) -> Iterator[tuple[RoleState, TaskState, Outcome]]:
    lost = set(scene.losses)
    classifier = Classifier(job.policies.classify, job.policies.ending)
    for role in state.roles:
        peer_ok: bool | None = None
        for task in role.tasks:
            if task.stage is Stage.DONE or task.attempt.outcome is not None:
                continue
            body = scene.bodies.get((role.name, task.index))
            if body is None:
                outcome = _without_body(job, role, task, scene, lost)
            elif body.leaving or body.phase is not Phase.RUNNING or job.policies.ending.while_running:
                if peer_ok is None:
                    peer_ok = any(t.is_done and t.outcome is not None and t.outcome.is_ok for t in role.tasks)
                outcome = _of_body(job, body, classifier, peer_ok=peer_ok)
            else:
                continue
            if outcome is not None:
                yield role, task, outcome


def _of_body(job: Job, body: Body, classifier: Classifier, *, peer_ok: bool) -> Outcome | None:
    """How this body ended, or None while it has not."""
    ending = job.policies.ending
    succeeded = body.phase is Phase.SUCCEEDED
    is_final = body.is_finished and not ending.at_leaving  # whoever waits for the end takes it as it is
    if body.leaving and not is_final and not (succeeded and ending.success_beats_leaving):
        return ending.leaving if ending.at_leaving and ending.by_others is not Deleted.NOTHING else None
    if succeeded:
        ok = ending.ok
        return Outcome(Nature.OK, ok.code, ok.phrase, ok.text, ok.attributes, detail=detail_of(body))
    if body.phase is Phase.FAILED:
        if ending.disruption_is_loss and DISRUPTED in body.conditions:
            return ending.leaving
        return classifier.of(body, peer_ok=peer_ok)
    if ending.while_running and not body.restarts_in_place:
        container = judged_container(ending, body.containers)
        if container is not None and container.code:
            return classifier.of(body, peer_ok=peer_ok)
    return None


def _without_body(job: Job, role: RoleState, task: TaskState, scene: Scene, lost: set[TaskRef]) -> Outcome | None:
    ending = job.policies.ending
    ref = TaskRef(role.name, task.index)
    if lost and ref in lost:
        return None if ending.by_others is Deleted.NOTHING else ending.gone
    if scene.refused and ref in scene.refused and task.stage is Stage.WAITING:
        return _of_refusal(job, ref, scene)
    if task.stage is Stage.REQUESTED and _is_unseen(job, task, scene):
        return ending.unseen
    return None


def _of_refusal(job: Job, ref: TaskRef, scene: Scene) -> Outcome | None:
    answer = scene.refused[ref]
    outcome = refusal(job.policies.classify, answer)
    if outcome is None:
        scene.emit(str(ref), "FailedCreate", warning=True, task=str(ref), cause=stated(answer.text))
    return outcome


def _is_unseen(job: Job, task: TaskState, scene: Scene) -> bool:
    """Created, and not seen in all the time it may take."""
    limit = job.policies.clock.creation_seconds
    return limit is not None and task.since is not None and scene.now >= task.since + timedelta(seconds=limit)


def _judged(job: Job, task: TaskState, outcome: Outcome, scene: Scene) -> TaskState:
    task = task.judged(outcome)
    if job.policies.embodiment.memory is Memory.RECORD and Stage.PREPARING <= task.stage <= Stage.RUNNING:
        return task.at(Stage.CLOSING, scene.stamp)
    return task


def _event(job: Job, ref: TaskRef, outcome: Outcome, scene: Scene) -> Event:
    ending = job.policies.ending
    losses = (ending.leaving, ending.gone, ending.unseen)
    by_others = ending.by_others is Deleted.LOST and any(outcome is loss for loss in losses)
    body = scene.bodies.get((ref.role, ref.index))
    kind = Happening.TASK_LOST if by_others else Happening.TASK_FAILED
    return Event(kind, _when(body, scene), ref.role, ref.index, body.uid if body else "", _code(job, body))


def _when(body: Body | None, scene: Scene) -> datetime:
    """When it happened, as far as anybody wrote it down."""
    if body is None:
        return scene.stamp
    if body.leaving:
        return body.leaving_since or scene.stamp
    return max((c.finished for c in body.containers if c.finished is not None), default=scene.stamp)


def _code(job: Job, body: Body | None) -> int | None:
    container = judged_container(job.policies.ending, body.containers) if body is not None else None
    return container.code if container is not None else None


def _emit(job: Job, scene: Scene, ref: TaskRef, task: TaskState, outcome: Outcome) -> None:
    if outcome.is_ok:
        scene.emit(str(ref), "TaskSucceeded", task=str(ref), attempt=task.attempt.number)
        return
    code, cause = "TaskLost" if outcome.nature is Nature.LOST else "TaskFailed", outcome.label
    body = scene.bodies.get((ref.role, ref.index))
    if outcome is job.policies.ending.leaving and body is not None and body.disruption:
        code, cause = f"{code}.Evicted", body.disruption.removeprefix("evicted: ")
    scene.emit(str(ref), code, warning=True, task=str(ref), attempt=task.attempt.number, cause=stated(cause))
