"""Step 6, evaluate_gates: whether pods may be created now. One status per role, with the reason why it is closed.

A gate prevents pods from being created; it never removes one. Stop and hold are checked here again, because a run may
have been opened in this very pass. A gate whose policy is to hold counts as a request for a hold instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from msgspec.structs import replace

from shoal.engine.completion import Tally, TaskCounts, tally
from shoal.engine.messages import CATALOG
from shoal.engine.pass_context import PassContext
from shoal.engine.state import JobState
from shoal.engine.types import Lifetime
from shoal.engine.writes import GateStatus
from shoal.kube.messages import Message

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

    def groups_of(self, role: str) -> list[GroupPlan]:
        return [plan for plan in self.groups if not plan.roles or role in plan.roles]


@dataclass(frozen=True, slots=True)
class ExternalGate:
    """Opened or closed by the manifest itself, or by a client that writes `key` (Observed.opened)."""

    open: bool = True
    key: str = ""
    message: str = CATALOG.text(Message("Gate.External"))  # why it is closed
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
    closed = _closed_for_all(job, state, context)
    if closed is not None:
        return tuple([replace(closed, role=role.name) for role in job.roles])
    counts = tally(job, state, context).roles if any(role.after for role in job.roles) else {}
    statuses = []
    for role in job.roles:
        group_gates = (gate for gate in job.policies.gates if isinstance(gate, GroupGate))
        shut = next(filter(None, (_closed_by_group(gate, role, context) for gate in group_gates)), None)
        statuses.append(shut or _dependency_status(role, context, counts))
    return tuple(statuses)


def may_start(job: Job, state: JobState, context: PassContext) -> bool:
    """Whether a run may create its run owner and groups: all gates but those that wait for these."""
    return not _lifecycle_reason(job, state, context) and _closed_gate(job, context) is None


def is_hold_requested(job: Job, context: PassContext) -> bool:
    """Whether the spec requests a hold, or a gate revokes its admission."""
    return job.policies.hold.requested or any(
        gate.when_closed is WhenShut.HOLD and isinstance(gate, ExternalGate) and not _is_open(gate, context)
        for gate in job.policies.gates
    )


def _closed_for_all(job: Job, state: JobState, context: PassContext) -> GateStatus | None:
    """The status of every role, where no role of the job may get pods."""
    if code := _lifecycle_reason(job, state, context):
        return GateStatus("", False, CATALOG.text(Message(code)))
    if (gate := _closed_gate(job, context)) is not None:
        return GateStatus("", False, gate.message, gate.reason)
    if job.policies.pod_policy.run_owner is not None and (context.run_owner is None or context.run_owner.leaving):
        return GateStatus("", False, CATALOG.text(Message("Gate.RunOwner")))
    return None


def _lifecycle_reason(job: Job, state: JobState, context: PassContext) -> str:
    """The code of the reason why the job may create nothing at all; '' where it may."""
    if state.is_ended:
        return "Gate.Ended"
    if job.deleting:
        return "Gate.Deleting"
    if job.stop:
        return "Gate.Stopping"
    if is_hold_requested(job, context) or state.is_held:
        return "Gate.Held"
    return "" if state.run.is_open else "Gate.RunClosed"


def _closed_gate(job: Job, context: PassContext) -> ExternalGate | None:
    gates = (gate for gate in job.policies.gates if isinstance(gate, ExternalGate))
    return next((gate for gate in gates if not _is_open(gate, context)), None)


def _is_open(gate: ExternalGate, context: PassContext) -> bool:
    return gate.key in context.observed.open_gates if gate.key else gate.open


def _closed_by_group(gate: GroupGate, role: Role, context: PassContext) -> GateStatus | None:
    plans = [(plan, context.observed.groups.get(plan.key)) for plan in gate.groups_of(role.name)]
    code = ""
    for _, group in plans:
        if group is None or group.leaving:
            # A group that does not exist yet is applied in this very step, before the pods.
            if group is None and gate.opens_when is Opens.EXISTS:
                continue
            code = "Gate.GroupCreation"
            break
        if gate.opens_when is Opens.ADMITTED and not group.admitted:
            code = "Gate.GroupAdmission"
            break
    if not code:
        return None
    for plan, group in plans:
        if gate.reason and group is not None and group.pending_reason:
            # The group has a reason of its own not to be admitted, which is worth an Event.
            why = {"group": plan.key, "cause": group.pending_message}
            text = CATALOG.text(Message("Gate.GroupPending" if plan.key else "Gate.GroupPending.Only", why))
            return GateStatus(role.name, False, text, gate.reason, f"{plan.key} {group.pending_reason}")
    return GateStatus(role.name, False, CATALOG.text(Message(code, {"role": role.name})))


def _dependency_status(role: Role, context: PassContext, counts: dict[str, TaskCounts]) -> GateStatus:
    after = role.after
    late = [name for name in after.roles if not _is_enough(name, after, context, counts)] if after else []
    if after is None or not late or (after.any and len(late) < len(after.roles)):
        return GateStatus(role.name)
    text = CATALOG.text(Message("Gate.Dependency", {"role": role.name, "awaited": late}))
    return GateStatus(role.name, False, text)


def _is_enough(name: str, after: After, context: PassContext, counts: dict[str, TaskCounts]) -> bool:
    awaited, count = context.roles.get(name), counts.get(name)
    if awaited is None or count is None:
        return True  # no role to wait for
    need = after.count if after.count is not None else awaited.minimum
    up = count.of(Tally.RUNNING)
    if after.ready:
        up = sum(1 for (of, _), pod in context.pods.items() if of == name and pod.ready and not pod.leaving)
    return up + (count.ok if after.or_ok else 0) >= (need if need is not None else count.size)
