"""The status of a Job, derived from the job state and the observed pods; and the job state, an annotation.

Counters are those of the pods; a pod whose deletion was requested counts as terminating alone. A finished pod that was
deleted still counts as what it was. Timestamps change when the phase does and at no other time.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import replace
from pydantic import ValidationError

from shoal.dialects import state_annotation
from shoal.dialects.dialect import StatePatch, StatusReport
from shoal.dialects.displayed_state import complete_state
from shoal.dialects.volcano import names
from shoal.dialects.volcano import status_types as wire
from shoal.dialects.volcano.children import controlled
from shoal.dialects.volcano.completion_codes import COMPLETED, CUT_OFF, FAILED, TERMINATED
from shoal.dialects.volcano.settings import VolcanoSettings
from shoal.dialects.volcano.spec import spec_of
from shoal.engine import Intent, Job, JobState, Observed, Outcome, PodPhase, Run, Stage, Stamps
from shoal.engine.messages import describe_trigger
from shoal.kube import times
from shoal.kube.objects import Obj, at_path, name_of, uid_of

_ENDS: dict[str, Outcome] = {wire.COMPLETED: COMPLETED, wire.FAILED: FAILED, wire.TERMINATED: TERMINATED}
_ENDING = {wire.COMPLETED: wire.COMPLETING, wire.TERMINATED: wire.TERMINATING}
TERMINATING = "Terminating"
RESTART = "restart"  # why the engine deletes the pod of a task that is restarted
_COUNTED = ("Pending", "Running", "Succeeded", "Failed", "Unknown")


def record(job: Job, state: JobState, _: VolcanoSettings) -> StatePatch:
    return state_annotation.record(job, state)


def restore(manifest: Obj) -> JobState:
    """Return the stored job state; where it was lost, one rebuilt from the status."""
    found = state_annotation.restore(manifest)
    return found if found is not None else _state_from_status(manifest)


def status_state(manifest: Obj) -> JobState:
    """The job state with every task of the spec, living ones in the stages the status counts.

    Of equal pods, the first ones are chosen. For users a job has ended when its status shows it.
    """
    state = restore(manifest)
    if state.is_ended and at_path(manifest, "status", "state", "phase") not in _ENDS:
        state = replace(state, run=replace(state.run, stage=Stage.LEAVING))  # what people see is about to follow
    counts = at_path(manifest, "status", "taskStatusCount", default={})
    running = {name: int(at_path(found, "phase", "Running", default=0)) for name, found in counts.items()}
    try:
        sizes = {task.name: task.replicas for task in spec_of(manifest).tasks}
    except ValidationError:  # reported where jobs are read
        sizes = {}
    return complete_state(state, sizes, running, cut_off=CUT_OFF)


def _state_from_status(manifest: Obj) -> JobState:
    """A run as the status last described it. Ended tasks are lost; finished pods still there restore them."""
    status = manifest.get("status") or {}
    phase = at_path(status, "state", "phase", default="")
    if not phase:
        return JobState()
    since = times.parse(at_path(status, "state", "lastTransitionTime") or manifest["metadata"]["creationTimestamp"])
    version, charged = int(status.get("version") or 0), int(status.get("retryCount") or 0)
    run = Run(version, Stage.PREPARING, since=since, started=since)
    stamps = Stamps(started=since)
    if phase in _ENDS:
        outcome = _ENDS[phase]
        run = replace(run, number=max(version - 1, 0), intent=Intent.END, outcome=outcome, completed=since)
        run, stamps = replace(run, stage=Stage.DONE), replace(stamps, ended=since)
    elif phase in (wire.ABORTING, wire.ABORTED):
        run = replace(run, number=max(version - 1, 0), intent=Intent.HOLD, stage=Stage.CLOSING, held=True)
    return JobState(run=run, charges={"": charged} if charged else {}, stamps=stamps)


# --- reporting -----------------------------------------------------------------------------------------------------


def report(job: Job, state: JobState, observed: Observed, previous: Obj, now: datetime) -> StatusReport:
    before: Obj = previous.get("status") or {}
    spec = spec_of(previous)
    phase = phase_of(state, observed)
    moved = at_path(before, "state", "phase") != phase
    written = None if moved else at_path(before, "state", "lastTransitionTime")
    since = times.parse(written) if written else now.replace(microsecond=0)
    outcome = state.run.outcome
    # A reason and a message where there is more to report than the phase.
    reason = phase if outcome is not None else ""
    message = outcome.text if outcome is not None else ""
    if outcome is not None and outcome.trigger is not None:
        message = f"{outcome.text}: {describe_trigger(outcome.trigger)}"
    reached = [  # one condition for each phase, the latest at the end
        wire.PhaseCondition(each.get("status") or "", times.parse(each["lastTransitionTime"]))
        for each in before.get("conditions") or ()
        if each.get("status") != phase and each.get("lastTransitionTime")
    ]
    counts = count_pods(state, observed)
    total = sum(counts.values(), Counter[str]())
    status = wire.VolcanoJobStatus(
        state=wire.VolcanoJobState(phase, reason, message, since),
        min_available=job.minimum or 0,
        task_status_count={
            task: wire.TaskCount({word: found[word] for word in sorted(found) if word in _COUNTED})
            for task, found in counts.items()
            if any(found[word] for word in _COUNTED)
        },
        **{word.lower(): total[word] for word in (*_COUNTED, TERMINATING)},
        version=state.run.number + (not state.run.is_open),
        retry_count=state.charged,
        running_duration=_duration(previous, since),
        controlled_resources=dict(controlled(spec, name_of(previous), uid_of(previous))),
        conditions=[*reached, wire.PhaseCondition(phase, since)],
    )
    made: Obj = msgspec.to_builtins(status)
    return StatusReport(status=made, spec=tuple(_claim_names(previous, observed)))


def phase_of(state: JobState, observed: Observed) -> str:
    run = state.run
    if state.is_ended:
        return run.outcome.phrase if run.outcome is not None else wire.FAILED
    if run.intent is Intent.END:
        return _ENDING.get(run.outcome.phrase if run.outcome is not None else "", wire.RESTARTING)
    if run.intent is Intent.HOLD:
        return wire.ABORTED if run.stage is Stage.OVER else wire.ABORTING
    there = {pod.uid for pod in observed.pods}
    is_restarting_tasks = any(why.reason == RESTART and uid in there for uid, why in state.settled.items())
    if run.intent is Intent.RESTART or is_restarting_tasks:
        return wire.RESTARTING
    return wire.RUNNING if run.stage is Stage.RUNNING else wire.PENDING


def count_pods(state: JobState, observed: Observed) -> dict[str, Counter[str]]:
    """By task and phase; finished places whose pod is gone count as what they were."""
    counts: dict[str, Counter[str]] = {}
    present: set[tuple[str, int]] = set()
    restarted = {uid for uid, why in state.settled.items() if why.reason == RESTART}
    for pod in observed.pods:
        if pod.owned:
            present.add((pod.role, pod.index or 0))
            # A finished pod has no grace period, so it would never be seen leaving.
            word = TERMINATING if pod.leaving or pod.uid in restarted else pod.phase.value
            counts.setdefault(pod.role, Counter())[word] += 1
    for role in state.roles:
        for task in role.tasks:
            ended = task.outcome if task.is_done and not task.dropped else None
            if ended is not None and (role.name, task.index) not in present:
                word = PodPhase.SUCCEEDED.value if ended.is_ok else PodPhase.FAILED.value
                counts.setdefault(role.name, Counter())[word] += 1
    return counts


def _duration(manifest: Obj, since: datetime) -> str:
    """From the Job's creation to the last change of its phase, as Go writes a length of time."""
    created = manifest["metadata"].get("creationTimestamp")
    seconds = max(int((since - times.parse(created)).total_seconds()), 0) if created else 0
    hours, minutes = seconds // 3600, seconds // 60 % 60
    return (f"{hours}h" if hours else "") + (f"{minutes}m" if hours or minutes else "") + f"{seconds % 60}s"


def _claim_names(manifest: Obj, observed: Observed) -> list[Obj]:
    """The names of claims we made, into the spec, once they are there."""
    made: list[Obj] = []
    there = {ref.name for ref in observed.owned_objects}
    written: Any = at_path(manifest, "spec", "volumes", default=())
    for number, volume in enumerate(written):
        name = names.claim_name(name_of(manifest), uid_of(manifest), number)
        is_ours = volume.get("volumeClaim") is not None and f"claim-{number}" in there
        if is_ours and volume.get("volumeClaimName") != name:
            made.append({"op": "add", "path": f"/spec/volumes/{number}/volumeClaimName", "value": name})
    return made
