"""Step 6, evaluate_gates: whether pods may be created now. One status per role, with the reason why it is closed.

A gate prevents pods from being created; it never removes one. Stop and hold are checked here again, because a run may
have been opened in this very pass. A gate whose policy is to hold counts as a request for a hold instead.
"""

from __future__ import annotations

from collections.abc import Mapping
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
    from shoal.engine.model import Job
    from shoal.engine.observed import ObservedGroup
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

    def status(self, role: str, groups: Mapping[str, ObservedGroup]) -> GateStatus:
        plans = [plan for plan in self.groups if not plan.roles or role in plan.roles]
        code = next(filter(None, (self._why_closed(groups.get(plan.key)) for plan in plans)), "")
        if not code:
            return GateStatus(role)
        for plan in plans:
            group = groups.get(plan.key)
            if self.reason and group is not None and group.pending_reason:
                # The group has a reason of its own not to be admitted, which is worth an Event.
                why = {"group": plan.key, "cause": group.pending_message}
                text = CATALOG.text(Message("Gate.GroupPending" if plan.key else "Gate.GroupPending.Only", why))
                return GateStatus(role, False, text, self.reason, f"{plan.key} {group.pending_reason}")
        return GateStatus(role, False, CATALOG.text(Message(code, {"role": role})))

    def _why_closed(self, group: ObservedGroup | None) -> str:
        if group is None or group.leaving:
            # A group that does not exist yet is applied in this very step, before the pods.
            return "" if group is None and self.opens_when is Opens.EXISTS else "Gate.GroupCreation"
        return "Gate.GroupAdmission" if self.opens_when is Opens.ADMITTED and not group.admitted else ""


@dataclass(frozen=True, slots=True)
class ExternalGate:
    """Opened or closed by the manifest itself, or by a client that writes `key` (Observed.open_gates)."""

    open: bool = True
    key: str = ""
    message: str = CATALOG.text(Message("Gate.External"))  # why it is closed
    when_closed: WhenShut = WhenShut.IGNORE
    reason: str = ""  # of the Event about it, where one is wanted

    def is_open(self, context: PassContext) -> bool:
        return self.key in context.observed.open_gates if self.key else self.open


Gate = GroupGate | ExternalGate


@dataclass(frozen=True, slots=True)
class After:
    """A role waits until `roles` (all of them, or any) have enough members at a level; count None: their minimum."""

    roles: tuple[str, ...]
    any: bool = False
    ready: bool = False  # else running is enough
    or_ok: bool = True
    count: int | None = None

    def awaited(self, context: PassContext, counts: dict[str, TaskCounts]) -> list[str]:
        """The roles that do not have enough members yet; none where the role may start."""
        late = [name for name in self.roles if not self._is_enough(name, context, counts)]
        return [] if self.any and len(late) < len(self.roles) else late

    def _is_enough(self, name: str, context: PassContext, counts: dict[str, TaskCounts]) -> bool:
        role, count = context.roles.get(name), counts.get(name)
        if role is None or count is None:
            return True  # no role to wait for
        need = self.count if self.count is not None else role.minimum
        up = count.of(Tally.RUNNING)
        if self.ready:
            up = sum(1 for (of, _), pod in context.pods.items() if of == name and pod.ready and not pod.leaving)
        return up + (count.ok if self.or_ok else 0) >= (need if need is not None else count.size)


def evaluate_gates(job: Job, state: JobState, context: PassContext) -> tuple[GateStatus, ...]:
    closed = _closed_for_all(job, state, context)
    if closed is not None:
        return tuple([replace(closed, role=role.name) for role in job.roles])
    counts = tally(job, state, context).roles if any(role.after for role in job.roles) else {}
    group_gates = [gate for gate in job.policies.gates if isinstance(gate, GroupGate)]
    statuses = []
    for role in job.roles:
        status = GateStatus(role.name)
        for gate in group_gates:
            if status.open:
                status = gate.status(role.name, context.observed.groups)
        if status.open and role.after and (awaited := role.after.awaited(context, counts)):
            text = CATALOG.text(Message("Gate.Dependency", {"role": role.name, "awaited": awaited}))
            status = GateStatus(role.name, False, text)
        statuses.append(status)
    return tuple(statuses)


def may_start(job: Job, state: JobState, context: PassContext) -> bool:
    """Whether a run may create its run owner and groups: all gates but those that wait for these."""
    return not _lifecycle_reason(job, state, context) and _closed_gate(job, context) is None


def is_hold_requested(job: Job, context: PassContext) -> bool:
    """Whether the spec requests a hold, or a gate revokes its admission."""
    return job.policies.hold.requested or any(
        isinstance(gate, ExternalGate) and gate.when_closed is WhenShut.HOLD and not gate.is_open(context)
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
    return next((gate for gate in gates if not gate.is_open(context)), None)
