"""Giving back: a group that has more members than it needs lets some go because its scheduler asks for their places.

The scheduler names bodies by uid, because it has planned who comes into their places; asking twice, or for a body that
has gone, therefore asks for nothing. Nobody goes who is needed: job, group and each role keep their minima, and where
not all that is asked for can go, the highest indexes of the last role go first. Whoever goes is settled in the
same ledger: its end is judged by nobody, answered by no reaction and charged to no budget. Its task waits and gets a
fresh body, which is placed when there is room again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from shoal.engine.messages import stated
from shoal.engine.model import Job
from shoal.engine.observed import Body, Group, Phase
from shoal.engine.pass_context import Scene, Tasks
from shoal.engine.policies import Giving, GroupGate, GroupPlan
from shoal.engine.retry import settle_bodies
from shoal.engine.state import JobState, Why, named
from shoal.engine.types import TaskRef
from shoal.kube.messages import Message

GIVEN = "given"  # why a body is settled


def give_back(job: Job, state: JobState, scene: Scene) -> JobState:
    if not state.run.is_open or job.deleting:
        return state  # everybody goes in any case
    for plan in _plans(job):
        group = scene.observed.groups.get(plan.key)
        if group is not None and group.asked and group.owned and not group.leaving and plan.gives is not None:
            going = _chosen(job, state, scene, plan, plan.gives, frozenset(group.asked))
            if going:
                _emit(job, scene, going, group)
                state = _let_go(state, scene, going)
    return state


def _plans(job: Job) -> Iterator[GroupPlan]:
    for gate in job.policies.gates:
        if isinstance(gate, GroupGate):
            yield from gate.groups


def _chosen(
    job: Job, state: JobState, scene: Scene, plan: GroupPlan, gives: Giving, asked: frozenset[str]
) -> list[TaskRef]:
    """Who goes, of those that are asked for: as many as the group can spare."""
    ranks = {role.name: rank for rank, role in enumerate(job.roles) if not plan.roles or role.name in plan.roles}
    up = {TaskRef(*place): body for place, body in scene.bodies.items() if is_up(body)}
    staying = Counter(ref.role for ref in up)
    staying.update(_succeeded(state))
    of_group = sum(count for role, count in staying.items() if role in ranks)
    spare = min(of_group - gives.least, staying.total() - (job.minimum or 0))
    going: list[TaskRef] = []
    wanted = (ref for ref, body in up.items() if body.uid in asked and ref.role in ranks)
    for ref in sorted(wanted, key=lambda ref: (-ranks[ref.role], -ref.index)):
        if len(going) < spare and staying[ref.role] > gives.of_role.get(ref.role, 0):
            staying[ref.role] -= 1
            going.append(ref)
    return going


def is_up(body: Body) -> bool:
    """Whether it holds a place and keeps it."""
    return bool(body.node or body.phase is Phase.RUNNING) and not body.is_finished and not body.leaving


def _succeeded(state: JobState) -> Iterable[str]:
    """The role of each member that has done its part."""
    for role in state.roles:
        for task in role.tasks:
            if task.is_done and not task.dropped and task.outcome is not None and task.outcome.is_ok:
                yield role.name


def _emit(job: Job, scene: Scene, going: list[TaskRef], group: Group) -> None:
    roles = dict.fromkeys(ref.role for ref in going)
    tasks = " and ".join(named(role, (ref.index for ref in going if ref.role == role)) for role in roles)
    code = "GaveBack" if len(going) > 1 else "GaveBack.One"
    cause = stated(group.because) if group.because else Message("Cause.Scheduler")
    scene.emit("", code, job=job.name, count=len(going), tasks=tasks, cause=cause)


def _let_go(state: JobState, scene: Scene, going: list[TaskRef]) -> JobState:
    changes, settled = Tasks(), dict[str, Why]()
    for ref in going:
        task = state.task(ref)
        assert task is not None, f"{ref} has a body and no record"
        settled[scene.bodies[(ref.role, ref.index)].uid] = Why(ref.role, ref.index, GIVEN)
        changes.setdefault(ref.role, {})[ref.index] = task.gave_back(scene.stamp)
    return settle_bodies(state.with_tasks(changes), scene, settled)
