"""Groups and owned objects: which should exist now, and the writes that create, update or delete them.

One is applied when it is missing or its digest differs from the policy's, and deleted when its lifetime is over.
Foreign objects of the same name are left alone, and one that is terminating is waited for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shoal.engine.gates import GroupGate, may_start
from shoal.engine.observed import GroupRef, OwnedObjectRef
from shoal.engine.pass_context import PassContext
from shoal.engine.retry import BudgetScope
from shoal.engine.state import JobState
from shoal.engine.types import Lifetime
from shoal.engine.writes import Apply, BuildContext, Delete, GateStatus, Write

if TYPE_CHECKING:
    from shoal.engine.model import Job


@dataclass(frozen=True, slots=True)
class OwnedObject:
    """Any other child. `digest` names its setting; it is applied where the object shows another one."""

    name: str
    scope: BudgetScope = BudgetScope.JOB
    lifetime: Lifetime = Lifetime.UNTIL_END
    digest: str = ""
    roles: frozenset[str] = frozenset()  # for scope ROLE and TASK; empty: all
    behind_gate: bool = False  # of a role or task: created only where the role may create pods
    write_back: bool = False  # its name is stored in the spec


def plan_groups(job: Job, state: JobState, context: PassContext, build_context: BuildContext) -> Iterator[Write]:
    for gate in job.policies.gates:
        if not isinstance(gate, GroupGate):
            continue
        wanted = _should_exist(state, gate.lifetime) and not (state.is_held and job.policies.hold.group)
        for plan in gate.groups:
            group = context.observed.groups.get(plan.key)
            if group is None:
                if wanted and may_start(job, state, context):
                    yield Apply(GroupRef(plan.key), build_context, plan.digest)
            elif not group.owned or group.leaving:
                continue
            elif not wanted:
                yield Delete(GroupRef(plan.key), group.uid)
            elif gate.follows and group.digest != plan.digest and state.run.is_open:
                yield Apply(GroupRef(plan.key), build_context, plan.digest)


def plan_owned_objects(
    job: Job, state: JobState, context: PassContext, gates: tuple[GateStatus, ...], build_context: BuildContext
) -> Iterator[Write]:
    wanted: dict[OwnedObjectRef, OwnedObject] = {}
    for policy in job.policies.owned_objects:
        if state.is_held and policy.name in job.policies.hold.owned_objects:
            continue
        if policy.lifetime is Lifetime.TASK or _should_exist(state, policy.lifetime):
            wanted.update((ref, policy) for ref in _refs(state, context, policy))
    closed = {gate.role for gate in gates if not gate.open}
    for ref, policy in wanted.items():
        if policy.behind_gate and ref.role in closed and ref not in context.observed.owned_objects:
            continue
        seen = context.observed.owned_objects.get(ref)
        if seen is None:
            outlives_runs = policy.lifetime is Lifetime.UNTIL_DELETED
            must_apply = not job.deleting if outlives_runs else may_start(job, state, context)
        else:
            must_apply = seen.owned and not seen.leaving and seen.digest != policy.digest
        if must_apply:
            yield Apply(ref, build_context, policy.digest)
    for ref, seen in context.observed.owned_objects.items():
        if ref not in wanted and seen.owned and not seen.leaving and not job.deleting:
            yield Delete(ref, seen.uid)


def _refs(state: JobState, context: PassContext, policy: OwnedObject) -> Iterator[OwnedObjectRef]:
    if policy.scope is BudgetScope.JOB:
        yield OwnedObjectRef(policy.name)
        return
    if not state.run.is_open and policy.lifetime is Lifetime.TASK:
        # What belongs to a task goes with its pod. The tasks of a closed run are not all known: those without an
        # outcome of their own are not stored.
        for (role_name, index), pod in context.pods.items():
            if not pod.leaving and (not policy.roles or role_name in policy.roles):
                yield OwnedObjectRef(policy.name, role_name, index)
        return
    if not state.run.is_open:
        # A closed run has no tasks to check; objects that outlive it stay, and none are created.
        yield from (ref for ref in context.observed.owned_objects if ref.name == policy.name)
        return
    for role in state.roles:
        if role.name not in context.roles or (policy.roles and role.name not in policy.roles):
            continue
        if policy.scope is BudgetScope.ROLE:
            yield OwnedObjectRef(policy.name, role.name)
            continue
        for task in role.tasks:
            if not task.dropped:
                yield OwnedObjectRef(policy.name, role.name, task.index)


def _should_exist(state: JobState, lifetime: Lifetime) -> bool:
    if lifetime is Lifetime.RUN:
        return state.run.is_open
    if lifetime is Lifetime.UNTIL_DELETED:
        return True
    return not state.is_ended
