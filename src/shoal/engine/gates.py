"""Step 6, evaluate_gates: whether pods may be created now. One status per role, with the reason why it is closed.

A gate prevents pods from being created; it never removes one. Stop and hold are checked here again, because a run may
have been opened in this very pass. A gate whose policy is to hold counts as a request for a hold instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from shoal.engine.completion import Tally, TaskCounts, tally
from shoal.engine.pass_context import PassContext
from shoal.engine.state import JobState
from shoal.engine.types import Lifetime
from shoal.engine.writes import GateStatus

if TYPE_CHECKING:
    from shoal.engine.model import Job, Role
    from shoal.engine.reclaim import ReclaimLimits


class Opens(Enum):
    EXISTS = "exists"
    ADMITTED = "admitted"


class WhenShut(Enum):
    IGNORE = "ignore"
    HOLD = "hold"


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """One request for all-or-nothing placement. `digest` names its setting; roles empty: all."""

    key: str  # '' for a job's only group, else a role's or stage's name
    digest: str = ""
    roles: frozenset[str] = frozenset()
    reclaim_limits: ReclaimLimits | None = None  # None: it gives no member back on request


@dataclass(frozen=True, slots=True)
class GroupGate:
    groups: tuple[GroupPlan, ...]
    opens_when: Opens = Opens.EXISTS
    follows: bool = False  # the group is applied again when its digest changes
    lifetime: Lifetime = Lifetime.UNTIL_END
    when_closed: WhenShut = WhenShut.IGNORE
    reason: str = ""  # of the Event about a group that is not admitted


@dataclass(frozen=True, slots=True)
class ExternalGate:
    """Opened or closed by the manifest itself, or by a client that writes `key` (Observed.opened)."""

    open: bool = True
    key: str = ""
    message: str = "The job waits for its start"
    when_closed: WhenShut = WhenShut.IGNORE
    reason: str = ""  # of the Event about it, where one is wanted


Gate = GroupGate | ExternalGate


@dataclass(frozen=True, slots=True)
class After:
    """A role waits until `roles` (all of them, or any) have enough members at a level; count None: their minimum."""

    roles: tuple[str, ...]
    any: bool = False
    ready: bool = False  # else running is enough
    or_ok: bool = True
    count: int | None = None


def evaluate_gates(job: Job, state: JobState, context: PassContext) -> tuple[GateStatus, ...]:
    reason = _job_gate_reason(job, state, context)
    if reason:
        event_reason = _event_reason(job, context, reason)
        return tuple([GateStatus(role.name, False, reason, event_reason) for role in job.roles])
    ordered = any(role.after for role in job.roles)
    counts = tally(job, state, context).roles if ordered else {}
    return tuple([_gate_status(job, role, context, counts) for role in job.roles])


def may_start(job: Job, state: JobState, context: PassContext) -> bool:
    """Whether a run may create its run owner and groups: all gates but those that wait for these."""
    return not _lifecycle_gate_reason(job, state, context) and not _external_gate_reason(job, context)


def is_hold_requested(job: Job, context: PassContext) -> bool:
    """Whether the spec requests a hold, or a gate revokes its admission."""
    if job.policies.hold.requested:
        return True
    for gate in job.policies.gates:
        if gate.when_closed is WhenShut.HOLD and isinstance(gate, ExternalGate) and not _is_open(gate, context):
            return True
    return False


def _job_gate_reason(job: Job, state: JobState, context: PassContext) -> str:
    reason = _lifecycle_gate_reason(job, state, context) or _external_gate_reason(job, context)
    if reason or job.policies.pod_policy.run_owner is None:
        return reason
    if context.run_owner is None or context.run_owner.leaving:
        return "The members wait for the object that will own them"
    return ""


def _lifecycle_gate_reason(job: Job, state: JobState, context: PassContext) -> str:
    if state.is_ended:
        return "The job has ended"
    if job.deleting:
        return "The job is being deleted"
    if job.stop:
        return "The job is being stopped"
    if is_hold_requested(job, context) or state.is_held:
        return "The job is held"
    if not state.run.is_open:
        return "The run is closed; its members have to go first"
    return ""


def _external_gate_reason(job: Job, context: PassContext) -> str:
    shut = [g.message for g in job.policies.gates if isinstance(g, ExternalGate) and not _is_open(g, context)]
    return shut[0] if shut else ""


def _event_reason(job: Job, context: PassContext, message: str) -> str:
    """The reason of the Event about a gate, where it is that gate that is closed."""
    gates = (gate for gate in job.policies.gates if isinstance(gate, ExternalGate) and not _is_open(gate, context))
    return next((gate.reason for gate in gates if gate.message == message), "")


def _is_open(gate: ExternalGate, context: PassContext) -> bool:
    return gate.key in context.observed.open_gates if gate.key else gate.open


def _gate_status(job: Job, role: Role, context: PassContext, counts: dict[str, TaskCounts]) -> GateStatus:
    for gate in job.policies.gates:
        reason = _group_gate_reason(gate, role, context)
        if reason:
            return _pending_group(gate, role, context) or GateStatus(role.name, False, reason)
    reason = _dependency_reason(role, context, counts)
    return GateStatus(role.name, not reason, reason)


def _group_gate_reason(gate: Gate, role: Role, context: PassContext) -> str:
    if not isinstance(gate, GroupGate):
        return ""
    for plan in gate.groups:
        if plan.roles and role.name not in plan.roles:
            continue
        group = context.observed.groups.get(plan.key)
        if group is None or group.leaving:
            # A group that does not exist yet is applied in this very step, before the pods.
            if gate.opens_when is Opens.EXISTS and group is None:
                continue
            return f"{role.name} waits for its group to be made"
        if gate.opens_when is Opens.ADMITTED and not group.admitted:
            return f"{role.name} waits for its group to be admitted"
    return ""


def _pending_group(gate: Gate, role: Role, context: PassContext) -> GateStatus | None:
    """The closed gate with an Event, where the group has a reason not to be admitted."""
    if not isinstance(gate, GroupGate) or not gate.reason:
        return None
    for plan in gate.groups:
        group = context.observed.groups.get(plan.key)
        if group is not None and group.pending_reason and (not plan.roles or role.name in plan.roles):
            text = f"PodGroup {plan.key} is not admitted" if plan.key else "The PodGroup is not admitted"
            return GateStatus(
                role.name, False, f"{text}: {group.pending_message}", gate.reason, f"{plan.key} {group.pending_reason}"
            )
    return None


def _dependency_reason(role: Role, context: PassContext, counts: dict[str, TaskCounts]) -> str:
    after = role.after
    if after is None:
        return ""
    late = [name for name in after.roles if not _is_enough(name, role, context, counts)]
    if not late or (after.any and len(late) < len(after.roles)):
        return ""
    return f"{role.name} waits for {', '.join(late)}"


def _is_enough(name: str, role: Role, context: PassContext, counts: dict[str, TaskCounts]) -> bool:
    after, awaited, count = role.after, context.roles.get(name), counts.get(name)
    assert after is not None
    if awaited is None or count is None:
        return True  # no role to wait for
    need = after.count if after.count is not None else awaited.minimum
    up = count.of(Tally.RUNNING)
    if after.ready:
        up = sum(1 for (of, _), pod in context.pods.items() if of == name and pod.ready and not pod.leaving)
    return up + (count.ok if after.or_ok else 0) >= (need if need is not None else count.size)
