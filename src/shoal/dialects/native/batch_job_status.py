"""The status of a Job, derived from the job state and the observed pods.

Successes are those the job state counted, failures those it charged. A job that fails deletes its running pods, and
they count as failed too: they are not charged, so they are counted while they exist, and the number is kept. Timestamps
change when what they describe changes, and at no other time.
"""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from shoal.dialects import state_annotation
from shoal.dialects.capabilities import CompletionProgress
from shoal.dialects.dialect import StatePatch, StatusReport
from shoal.dialects.job_limits import LARGEST_JOB, MOST_INDEXES_OF_INDEXED
from shoal.dialects.native.batch_job_spec import ROLE, is_indexed
from shoal.dialects.native.pod_failure_policy import POD_SUCCEEDED
from shoal.dialects.native.settings import NativeSettings
from shoal.engine import (
    AttemptState,
    Intent,
    Job,
    JobState,
    Observed,
    ObservedPod,
    PodPhase,
    RoleState,
    Stage,
    TaskState,
    format_ranges,
)
from shoal.kube.conditions import find_condition, is_true, with_condition
from shoal.kube.objects import Obj
from shoal.kube.times import rfc3339


def record(job: Job, state: JobState, _: NativeSettings) -> StatePatch:
    return state_annotation.record(job, state)


def restore(manifest: Obj) -> JobState:
    return state_annotation.restore(manifest, MOST_INDEXES_OF_INDEXED) or JobState()


def status_state(manifest: Obj) -> JobState:
    """The job state with members as the status counts them: succeeded, running, being created.

    For users a job has ended when its status shows it.
    """
    state, status = restore(manifest), manifest.get("status") or {}
    active, ready = min(int(status.get("active") or 0), LARGEST_JOB), int(status.get("ready") or 0)
    if not state.run.is_open:
        active = 0
    if state.is_ended and not any(is_true(manifest, claim) for claim in ("Complete", "Failed")):
        state = replace(state, run=replace(state.run, stage=Stage.LEAVING))
    role = state.role(ROLE) or RoleState(ROLE)
    done = [task for task in role.tasks if task.is_done] or [
        TaskState(index, stage=Stage.DONE, attempt=AttemptState(outcome=POD_SUCCEEDED))
        for index in range(min(role.ok_count, LARGEST_JOB))
    ]
    wanted = (manifest.get("spec") or {}).get("completions")
    if wanted is not None:  # the status may still count those as active that the job state has counted as done
        active = min(active, max(int(wanted) - len(done), 0))
    used = {task.index for task in done}
    free = [index for index in range(active + len(done)) if index not in used][:active]
    living = [
        TaskState(index, stage=Stage.RUNNING if place < ready else Stage.PREPARING) for place, index in enumerate(free)
    ]
    tasks = tuple(sorted([*done, *living], key=lambda task: task.index))
    run = state.run
    has_run = ready or any(int(status.get(word) or 0) for word in ("succeeded", "failed"))
    if run.is_open and run.stage is Stage.PREPARING and has_run:
        run = replace(run, stage=Stage.RUNNING)
    return replace(state, run=run, roles=(replace(role, tasks=tasks),))


def completion_progress(manifest: Obj) -> CompletionProgress | None:
    """Against the successes that are required; a job that requires no number of them has its pods only."""
    spec = manifest.get("spec") or {}
    wanted = spec.get("completions")
    if wanted is None:
        return None
    return CompletionProgress(
        wanted=int(wanted),
        parallelism=min(int(spec.get("parallelism", 1)), int(wanted)),
        succeeded=_succeeded(restore(manifest)),
        running=sum(task.stage is Stage.RUNNING for role in status_state(manifest).roles for task in role.tasks),
        failed=int((manifest.get("status") or {}).get("failed") or 0),
    )


# --- reporting -----------------------------------------------------------------------------------------------------


def report(_: Job, state: JobState, observed: Observed, previous: Obj, now: datetime) -> StatusReport:
    before: Obj = previous.get("status") or {}
    pods = [pod for pod in observed.pods if pod.owned]
    active = [pod for pod in pods if not pod.leaving and not pod.is_finished]
    is_over = state.is_ended or state.run.intent is Intent.END
    living = [] if is_over or state.is_held else active
    began, ended, outcome = state.stamps.clock_from, state.stamps.ended, state.run.outcome
    has_succeeded = ended is not None and outcome is not None and outcome.is_ok
    ends = state.is_ended or state.run.intent is not None
    status: Obj = {
        "conditions": _conditions(state, before.get("conditions"), now),
        # The clock of a suspended job does not run.
        "startTime": rfc3339(began) if began is not None and not state.is_held else "",
        "completionTime": rfc3339(ended) if ended is not None and has_succeeded else "",
        "active": len(living),
        "ready": sum(pod.ready for pod in living),
        "terminating": sum(not pod.is_finished and (pod.leaving or ends) for pod in pods),
        "succeeded": _succeeded(state),
        "failed": _failed(state, pods, before),
        "uncountedTerminatedPods": {},
        **_indexes(state, previous["spec"]),
    }
    kept = ("ready", "terminating", "uncountedTerminatedPods")
    return StatusReport(status={name: value for name, value in status.items() if value or name in kept})


def _succeeded(state: JobState) -> int:
    return sum(
        role.ok_count + sum(bool(task.is_done and task.outcome and task.outcome.is_ok) for task in role.tasks)
        for role in state.roles
    )


def _failed(state: JobState, pods: list[ObservedPod], before: Obj) -> int:
    outcome = state.run.outcome
    # Permanent failures were not checked against a retry budget. The one end that exhausted it was charged already.
    exhausted = int(outcome is not None and outcome.phrase == "BackoffLimitExceeded")
    failed_count = state.charged + max(sum(role.bad_count for role in state.roles) - exhausted, 0)
    if state.run.intent is Intent.END and outcome is not None and not outcome.is_ok:
        done = {task.index for role in state.roles for task in role.tasks if task.is_done}
        # Pods that are deleted with the job, and were not counted before.
        cut = [
            pod
            for pod in pods
            if pod.uid not in state.settled
            and (
                (pod.finalizer and pod.index not in done)
                if pod.is_finished
                else (pod.leaving or pod.phase in (PodPhase.PENDING, PodPhase.RUNNING))
            )
        ]
        failed_count = max(failed_count + len(cut), int(before.get("failed") or 0))
    return failed_count


def _indexes(state: JobState, spec: Obj) -> Obj:
    if not is_indexed(spec):
        return {}
    done = [task for role in state.roles for task in role.tasks if task.is_done and task.outcome is not None]
    good = format_ranges(task.index for task in done if task.outcome is not None and task.outcome.is_ok)
    bad = format_ranges(task.index for task in done if task.outcome is not None and not task.outcome.is_ok)
    return {"completedIndexes": good} | ({"failedIndexes": bad} if spec.get("backoffLimitPerIndex") is not None else {})


def _conditions(state: JobState, before: list[Obj] | None, now: datetime) -> list[Obj]:
    stamp, made = rfc3339(now.replace(microsecond=0)), list(before or ())

    def say(claim: str, status: bool, reason: str, message: str) -> None:
        nonlocal made
        known = find_condition(made, claim)
        if known is None or known.get("status") != ("True" if status else "False"):
            made = with_condition(made, claim, status, now=stamp, reason=reason, message=message)
            made = [{"lastProbeTime": stamp, **each} if each.get("type") == claim else each for each in made]

    outcome = state.run.outcome
    if state.is_held:
        say("Suspended", True, "JobSuspended", "Job suspended")
    elif find_condition(made, "Suspended") is not None:
        say("Suspended", False, "JobResumed", "Job resumed")
    if state.run.intent is Intent.END and outcome is not None:
        say("SuccessCriteriaMet" if outcome.is_ok else "FailureTarget", True, outcome.phrase, outcome.text)
        if state.is_ended:
            say("Complete" if outcome.is_ok else "Failed", True, outcome.phrase, outcome.text)
    return made
