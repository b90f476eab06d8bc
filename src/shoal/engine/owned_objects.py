"""Groups and companions: which should exist now, and the writes that bring them there.

One is applied when it is missing or shows another digest than the policy names, and deleted when its life is over.
Foreign objects of the same name are left alone, and one that is leaving is waited for.
"""

from __future__ import annotations

from collections.abc import Iterator

from shoal.engine.gates import may_start
from shoal.engine.model import Job
from shoal.engine.observed import CompanionRef, GroupRef
from shoal.engine.pass_context import Scene
from shoal.engine.policies import Companion, GroupGate, Life, Scope
from shoal.engine.state import JobState
from shoal.engine.writes import Apply, Delete, Setting, Write


def shape_groups(job: Job, state: JobState, scene: Scene, setting: Setting) -> Iterator[Write]:
    for gate in job.policies.gates:
        if not isinstance(gate, GroupGate):
            continue
        wanted = _lives(state, gate.life) and not (state.is_held and job.policies.hold.group)
        for plan in gate.groups:
            group = scene.observed.groups.get(plan.key)
            if group is None:
                if wanted and may_start(job, state, scene):
                    yield Apply(GroupRef(plan.key), setting, plan.digest)
            elif not group.owned or group.leaving:
                continue
            elif not wanted:
                yield Delete(GroupRef(plan.key), group.uid)
            elif gate.follows and group.digest != plan.digest and state.run.is_open:
                yield Apply(GroupRef(plan.key), setting, plan.digest)


def shape_companions(job: Job, state: JobState, scene: Scene, setting: Setting) -> Iterator[Write]:
    wanted = dict(_wanted(job, state, scene))
    for ref, policy in wanted.items():
        seen = scene.observed.companions.get(ref)
        is_stale = seen is not None and seen.owned and not seen.leaving and seen.digest != policy.digest
        if is_stale or (seen is None and _may_be_made(job, state, scene, policy)):
            yield Apply(ref, setting, policy.digest)
    for ref, seen in scene.observed.companions.items():
        if ref not in wanted and seen.owned and not seen.leaving and not job.deleting:
            yield Delete(ref, seen.uid)


def _may_be_made(job: Job, state: JobState, scene: Scene, policy: Companion) -> bool:
    if policy.life is Life.UNTIL_DELETED:
        return not job.deleting
    return may_start(job, state, scene)


def _wanted(job: Job, state: JobState, scene: Scene) -> Iterator[tuple[CompanionRef, Companion]]:
    for policy in job.policies.companions:
        if state.is_held and policy.name in job.policies.hold.companions:
            continue
        if policy.life is not Life.TASK and not _lives(state, policy.life):
            continue
        for ref in _refs(state, scene, policy):
            yield ref, policy


def _refs(state: JobState, scene: Scene, policy: Companion) -> Iterator[CompanionRef]:
    if policy.scope is Scope.JOB:
        yield CompanionRef(policy.name)
        return
    if policy.life is not Life.TASK and not state.run.is_open:
        # A closed run has no tasks to ask about; whoever outlives it stays, and nobody new comes.
        yield from (ref for ref in scene.observed.companions if ref.name == policy.name)
        return
    for role in state.roles:
        if role.name not in scene.roles or (policy.roles and role.name not in policy.roles):
            continue
        if policy.scope is Scope.ROLE:
            yield CompanionRef(policy.name, role.name)
            continue
        for task in role.tasks:
            if not task.dropped and _stands_beside(policy, state, scene, role.name, task.index):
                yield CompanionRef(policy.name, role.name, task.index)


def _stands_beside(policy: Companion, state: JobState, scene: Scene, role: str, index: int) -> bool:
    """A companion of a task's life goes with the body once the run is closed."""
    if policy.life is not Life.TASK or state.run.is_open:
        return True
    body = scene.bodies.get((role, index))
    return body is not None and not body.leaving


def _lives(state: JobState, life: Life) -> bool:
    if life is Life.RUN:
        return state.run.is_open
    if life is Life.UNTIL_DELETED:
        return True
    return not state.is_ended
