"""Step 6, admit: may bodies exist now. One door per role, shut with the sentence that says why.

A door keeps bodies from being made; it never removes one. The wishes of stop and hold are asked here again, because
a run may have been opened in this very pass. A gate whose policy is to hold counts as a wish for a hold instead.
"""

from __future__ import annotations

from shoal.engine.completion import Count, tally
from shoal.engine.model import Job, Role
from shoal.engine.pass_context import Scene
from shoal.engine.policies import Gate, GroupGate, Opens, Tally, WhenShut, WishGate
from shoal.engine.state import JobState
from shoal.engine.writes import Door


def admit(job: Job, state: JobState, scene: Scene) -> tuple[Door, ...]:
    reason = _job_is_shut(job, state, scene)
    if reason:
        told = _told_of(job, scene, reason)
        return tuple([Door(role.name, False, reason, told) for role in job.roles])
    ordered = any(role.after for role in job.roles)
    counts = tally(job, state, scene).roles if ordered else {}
    return tuple([_door(job, role, scene, counts) for role in job.roles])


def may_start(job: Job, state: JobState, scene: Scene) -> bool:
    """Whether a run may make its anchor and groups: everything but the doors that wait for these."""
    return not _life_is_shut(job, state, scene) and not _wish_is_shut(job, scene)


def is_hold_wished(job: Job, scene: Scene) -> bool:
    """The spec's wish, or a gate that takes back what it gave."""
    if job.policies.hold.wish:
        return True
    for gate in job.policies.gates:
        if gate.when_shut is WhenShut.HOLD and isinstance(gate, WishGate) and not _is_open(gate, scene):
            return True
    return False


def _job_is_shut(job: Job, state: JobState, scene: Scene) -> str:
    reason = _life_is_shut(job, state, scene) or _wish_is_shut(job, scene)
    if reason or job.policies.embodiment.anchor is None:
        return reason
    if scene.anchor is None or scene.anchor.leaving:
        return "The members wait for the object that will own them"
    return ""


def _life_is_shut(job: Job, state: JobState, scene: Scene) -> str:
    if state.is_ended:
        return "The job has ended"
    if job.deleting:
        return "The job is being deleted"
    if job.stop:
        return "The job is being stopped"
    if is_hold_wished(job, scene) or state.is_held:
        return "The job is held"
    if not state.run.is_open:
        return "The run is closed; its members have to go first"
    return ""


def _wish_is_shut(job: Job, scene: Scene) -> str:
    shut = [g.sentence for g in job.policies.gates if isinstance(g, WishGate) and not _is_open(g, scene)]
    return shut[0] if shut else ""


def _told_of(job: Job, scene: Scene, sentence: str) -> str:
    """The reason of the Event that tells of a gate, where it is that gate that is shut."""
    gates = (gate for gate in job.policies.gates if isinstance(gate, WishGate) and not _is_open(gate, scene))
    return next((gate.reason for gate in gates if gate.sentence == sentence), "")


def _is_open(gate: WishGate, scene: Scene) -> bool:
    return gate.key in scene.observed.opened if gate.key else gate.open


def _door(job: Job, role: Role, scene: Scene, counts: dict[str, Count]) -> Door:
    for gate in job.policies.gates:
        reason = _group_is_shut(gate, role, scene)
        if reason:
            return _pending_group(gate, role, scene) or Door(role.name, False, reason)
    reason = _waits_for(role, scene, counts)
    return Door(role.name, not reason, reason)


def _group_is_shut(gate: Gate, role: Role, scene: Scene) -> str:
    if not isinstance(gate, GroupGate):
        return ""
    for plan in gate.groups:
        if plan.roles and role.name not in plan.roles:
            continue
        group = scene.observed.groups.get(plan.key)
        if group is None or group.leaving:
            # A group that is merely first is applied in this very step, before the bodies.
            if gate.opens is Opens.EXISTS and group is None:
                continue
            return f"{role.name} waits for its group to be made"
        if gate.opens is Opens.ADMITTED and not group.admitted:
            return f"{role.name} waits for its group to be admitted"
    return ""


def _pending_group(gate: Gate, role: Role, scene: Scene) -> Door | None:
    """The door with an Event, where the group has a reason not to be admitted."""
    if not isinstance(gate, GroupGate) or not gate.reason:
        return None
    for plan in gate.groups:
        group = scene.observed.groups.get(plan.key)
        if group is not None and group.obstacle and (not plan.roles or role.name in plan.roles):
            text = f"PodGroup {plan.key} is not admitted" if plan.key else "The PodGroup is not admitted"
            return Door(role.name, False, f"{text}: {group.obstacle_text}", gate.reason, f"{plan.key} {group.obstacle}")
    return None


def _waits_for(role: Role, scene: Scene, counts: dict[str, Count]) -> str:
    after = role.after
    if after is None:
        return ""
    late = [name for name in after.roles if not _is_enough(name, role, scene, counts)]
    if not late or (after.any and len(late) < len(after.roles)):
        return ""
    return f"{role.name} waits for {', '.join(late)}"


def _is_enough(name: str, role: Role, scene: Scene, counts: dict[str, Count]) -> bool:
    after, awaited, count = role.after, scene.roles.get(name), counts.get(name)
    assert after is not None
    if awaited is None or count is None:
        return True  # nobody to wait for
    need = after.count if after.count is not None else awaited.minimum
    up = count.of(Tally.RUNNING)
    if after.ready:
        up = sum(1 for (of, _), body in scene.bodies.items() if of == name and body.ready and not body.leaving)
    return up + (count.ok if after.or_ok else 0) >= (need if need is not None else count.size)
