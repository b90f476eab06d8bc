"""Jobs of every language on a simulated cluster: they end, go when they are deleted, and leave foreign pods alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kit.fault_matrix import Case, Worlds
from kit.frameworks import framework, role
from kit.native_world import SimulatedJobs, SimulatedReplicaSets, job, replica_set
from kit.pod_behavior import Fate, Rule, exits, pod_with, runs
from kit.scenario import NAMESPACE, SimulatedWorld
from kit.toy_language import SwarmWorld, swarm
from kit.training_jobs import kubedl, kubeflow, replicas
from kit.training_world import SimulatedKubedl, SimulatedKubeflow
from kit.volcano_jobs import task, vcjob
from kit.volcano_world import SimulatedVolcano
from shoal.engine import TaskRef
from shoal.kube.kinds import POD
from shoal.kube.objects import Obj, is_terminating, uid_of

Stage = tuple[type[SimulatedWorld], Callable[[Fate], Obj]]


def _framework(fate: Fate) -> Obj:
    written = framework(role("worker", 2, pod=pod_with(Rule(fate))), name="a")
    return {**written, "metadata": {"name": "a"}}


STAGES: dict[str, Stage] = {
    "Framework": (SimulatedWorld, _framework),
    "Volcano": (SimulatedVolcano, lambda fate: vcjob("a", task("worker", 2, fate=fate))),
    "ReplicaSet": (SimulatedReplicaSets, lambda fate: replica_set("a", 2, fate)),
    "Job": (SimulatedJobs, lambda fate: job("a", fate, parallelism=2, completions=2)),
    "PyTorchJob of KubeDL": (
        SimulatedKubedl,
        lambda fate: kubedl(master=replicas(fate=fate), worker=replicas(fate=fate)),
    ),
    "PyTorchJob of Kubeflow": (SimulatedKubeflow, lambda fate: kubeflow(worker=replicas(2, fate=fate))),
    "toy": (SwarmWorld, lambda fate: swarm("a", fate, workers=2)),
}
WITH_AN_END = {name: stage for name, stage in STAGES.items() if not stage[0].dialect.never_completes}
WITH_KNOWN_NAMES = {name: stage for name, stage in STAGES.items() if stage[0].dialect.pod_name(
    {"metadata": {"name": "a", "namespace": NAMESPACE, "uid": "u"}}, TaskRef("worker", 0)
)}  # fmt: skip


def on_stages(stages: dict[str, Stage]) -> Any:
    return pytest.mark.parametrize(("world_type", "written"), stages.values(), ids=list(stages))


def living(world: SimulatedWorld) -> list[Obj]:
    return [pod for pod in world.pods.values() if not is_terminating(pod)]


@on_stages(WITH_AN_END)
@pytest.mark.disturbed
async def test_a_job_ends_alike_whatever_write_its_operator_dies_at(
    world_type: type[SimulatedWorld], written: Callable[[Fate], Obj], record_property: Callable[[str, Any], None]
) -> None:
    async def ends(world: SimulatedWorld) -> None:
        await world.submit(written(exits(0)))
        await world.until(lambda: world.dialect.load_state(world.frameworks["a"]).is_ended)

    worlds = Worlds(world_type, kubernetes=None, watched=(world_type.dialect.kind, POD))
    record_property("disturbed runs", await Case(ends, None, (), worlds).disturb())


@on_stages(STAGES)
async def test_a_deleted_job_leaves_no_pods(world_type: type[SimulatedWorld], written: Callable[[Fate], Obj]) -> None:
    async with world_type() as world:
        await world.submit(written(runs()))
        await world.until(lambda: len(living(world)) == 2)
        await world.delete("a")
        await world.until(lambda: not world.frameworks and not world.pods)


@on_stages(WITH_KNOWN_NAMES)
async def test_a_foreign_pod_in_the_way_is_left_alone(
    world_type: type[SimulatedWorld], written: Callable[[Fate], Obj]
) -> None:
    """The job waits for its name, and goes on when the pod is gone."""
    async with world_type() as world:
        name = world.dialect.pod_name({"metadata": {"name": "a"}}, TaskRef("worker", 0))
        foreign = pod_with(Rule(runs()))
        foreign["metadata"] |= {"name": name}
        uid = uid_of(await world.user.create(POD, foreign, NAMESPACE))
        await world.submit(written(runs()))
        await world.rest(60)
        assert uid_of(world.pods[name]) == uid
        assert not is_terminating(world.pods[name])
        await world.delete_pod(name)
        await world.until(lambda: name in world.pods and uid_of(world.pods[name]) != uid)
