"""Why a task waits and why a job ended, in terms of its users. Pure: records in, text out.

The raw diagnostics, which programs may read, stay in the job's status: `shoal get JOB -o yaml` shows them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.dialects import dialects
from shoal.engine import ContainerEnd, Detail, Job, JobState, Outcome, Stage
from shoal.engine.policies import ExternalGate
from shoal.kube.conditions import condition_of
from shoal.kube.objects import Obj, name_of

if TYPE_CHECKING:
    from shoal.cli.job_lookup import FoundJob

LAST_LINES = 5  # of a task's last output
_ORDINARY_REASONS = (None, "ContainerCreating", "PodInitializing")
_NOT_THERE_YET = ("created", "preparing", "running")


def why_waiting(pod: Obj) -> str:
    """Why a pod does not run, though it should; nothing of one that is merely being made."""
    placed = condition_of(pod, "PodScheduled")
    if placed is not None and placed.get("status") == "False":
        return str(placed.get("message") or "no node has room for it")
    status = pod.get("status") or {}
    for each in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        waiting = (each.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") not in _ORDINARY_REASONS:
            return f"{waiting['reason']}: {waiting.get('message', '')}".rstrip(": ")
    return ""


def why_name_taken(pod: Obj) -> str:
    """Why a task has no pod of its own: a pod of another owner has the name."""
    owners = ((dialect.kind.kind, dialect.owner_of(pod)) for dialect in dialects())
    owner_name = next((f"{kind} {owner.key.name}" for kind, owner in owners if owner is not None), "another owner")
    fact = f"there is a pod {name_of(pod)} of {owner_name}"
    return f"{fact}; the task waits until that pod is deleted; or rename one of the two"


def why_idle(found: FoundJob, state: JobState) -> str:
    """Why a whole job does nothing, though it has not ended.
    It belongs to another controller, has no tasks, or waits for a request of its user."""
    if controller := found.other_controller:
        return f"spec.managedBy assigns it to the controller {controller}"
    job = found.job
    if job is None or state.is_ended or job.deleting:
        return ""
    # Whether the controller has already recorded the suspension makes no difference to a job that has never run.
    is_suspended = job.policies.hold.requested and state.stamps.ran is None
    if not (state.run.is_open or is_suspended):
        return ""
    if not any(role.tasks for role in state.roles) and not any(role.size for role in job.roles):
        return "it has no tasks" if job.roles else "it has no roles and so no tasks"
    if is_suspended:
        return "it is suspended"
    if state.run.stage is not Stage.WAITING:
        return ""
    return why_not_started(job)


def why_not_started(job: Job) -> str:
    """Why the job that the manifest requests only waits for its start; '' for all others."""
    gates = (gate for gate in job.policies.gates if isinstance(gate, ExternalGate) and not gate.key)
    return next((gate.message for gate in gates if not gate.open), "")


def status_with_reason(status: str, why: str) -> str:
    """The state to show for a task whose pod has a reason to wait: the job may count it as running, a user does not."""
    return "waiting" if why and status in _NOT_THERE_YET else status


def why_ended(state: JobState, outcome: Outcome) -> str:
    """What decided about the job, without its end mark."""
    trigger = outcome.trigger
    if outcome.is_ok or (trigger is None and (outcome.final or state.is_held)):
        return _first_line(outcome)
    if trigger is None:
        return _describe(outcome)
    decisive = _outcome_of(state, trigger.role, trigger.index)
    return describe_failure(
        f"{trigger.role}-{trigger.index}", outcome if decisive is None or decisive.is_ok else decisive
    )


def last_message_lines(state: JobState, outcome: Outcome) -> list[str]:
    """The last lines of what the task that decided left as its message."""
    if outcome.is_ok or outcome.trigger is None:
        return []
    decisive = _outcome_of(state, outcome.trigger.role, outcome.trigger.index)
    if decisive is None or decisive.detail is None:
        return []
    failed = _failed_container(decisive.detail)
    message = failed.message if failed is not None else ""
    return [line for line in message.splitlines() if line.strip()][-LAST_LINES:]


def _outcome_of(state: JobState, role: str, index: int) -> Outcome | None:
    tasks = (task for each in state.roles if each.name == role for task in each.tasks)
    return next((task.outcome for task in tasks if task.index == index and task.stage >= Stage.OVER), None)


def describe_failure(who: str, outcome: Outcome) -> str:
    detail = outcome.detail or Detail()
    failed = _failed_container(detail)
    if failed is not None and not detail.reason:
        who = f"{failed.name} of {who}" if len(detail.containers) > 1 else who
        because = f" ({failed.reason})" if failed.reason not in ("", "Error") else ""
        how = f"was ended by signal {failed.signal}" if failed.signal else f"ended with code {failed.code}"
        return f"{who} {how}{because}"
    if detail.reason:
        return f"{who} failed: {detail.reason}{f', {detail.message}' if detail.message else ''}".rstrip(".")
    code = f" with code {outcome.code}" if outcome.code else ""
    return f"{who} failed{code}: {_describe(outcome)}"


def _describe(outcome: Outcome) -> str:
    line = _first_line(outcome)
    return f"{line} ({outcome.phrase})" if outcome.phrase and outcome.phrase != line else line


def _failed_container(detail: Detail) -> ContainerEnd | None:
    return next((end for end in detail.containers if end.code or end.signal), None)


def _first_line(outcome: Outcome) -> str:
    text = outcome.text.splitlines()[0] if outcome.text else outcome.phrase
    return text.rstrip(".")
