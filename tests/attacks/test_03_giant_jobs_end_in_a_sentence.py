"""A job of more tasks than the operator keeps is refused with its numbers and the way out, wherever it comes in."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kit.framework_notation import fw, role
from kit.frameworks import framework
from kit.frameworks import role as written_role
from kit.native_world import SimulatedReplicaSets, job, replica_set
from kit.pod_behavior import runs
from kit.scenario import SimulatedWorld, World
from kit.volcano_jobs import task, vcjob
from kit.volcano_world import SimulatedVolcano
from shoal.cluster.fault_injection import Call
from shoal.dialects.dialect import Dialect, ManifestInvalid
from shoal.dialects.framework import DIALECT as FRAMEWORKS
from shoal.dialects.native import batch_job, replica_sets
from shoal.dialects.volcano import DIALECT as VOLCANO
from shoal.kube.errors import ApiError, too_large
from shoal.kube.kinds import EVENT
from shoal.kube.objects import Obj

LARGEST = 10_000
MOST = 2**31 - 1


def framework_of(*sizes: int) -> Obj:
    return framework(*(written_role(f"r{place}", size) for place, size in enumerate(sizes)))


def volcano_of(*sizes: int) -> Obj:
    return VOLCANO.default(vcjob("a", *(task(f"r{place}", size) for place, size in enumerate(sizes))))


def stored(dialect: Dialect, manifest: Obj) -> Obj:
    filled = dialect.default(manifest)
    filled["metadata"] |= {"uid": "u", "namespace": "default"}
    return filled


TOO_MANY = f"a job has at most {LARGEST} tasks in all"
GIANTS = {
    "Framework": (FRAMEWORKS, framework_of(*[LARGEST] * 20), f"spec.taskRoles: Invalid value: {TOO_MANY}"),
    "Framework, by one": (FRAMEWORKS, framework_of(LARGEST, 1), f"spec.taskRoles: Invalid value: {TOO_MANY}"),
    "Volcano": (VOLCANO, volcano_of(*[LARGEST] * 200), f"spec.tasks: Invalid value: {TOO_MANY}"),
    "ReplicaSet": (replica_sets.DIALECT, replica_set("a", MOST), f"{MOST} tasks in all"),
    "Job": (batch_job.DIALECT, job("a", parallelism=MOST), f"{MOST} tasks in all"),
    "Job by index": (
        batch_job.DIALECT,
        job("a", completions=MOST, completionMode="Indexed"),
        "a Job by index has at most 100000 completions",
    ),
}


@pytest.mark.parametrize("name", GIANTS)
def test_03_a_giant_is_refused_at_admission_and_where_it_is_read(name: str):
    dialect, manifest, words = GIANTS[name]
    manifest = stored(dialect, manifest)

    assert [words in str(cause) for cause in dialect.validate(manifest)] == [True]
    with pytest.raises(ManifestInvalid, match=words):
        dialect.to_job(manifest, dialect.settings(None))


LARGEST_ONES: list[tuple[Dialect, Obj]] = [
    (FRAMEWORKS, framework_of(LARGEST - 1, 1)),
    (VOLCANO, volcano_of(LARGEST - 1, 1)),
    (replica_sets.DIALECT, replica_set("a", LARGEST)),
    (batch_job.DIALECT, job("a", parallelism=MOST, completions=5)),
]


@pytest.mark.parametrize(("dialect", "manifest"), LARGEST_ONES, ids=["Framework", "Volcano", "ReplicaSet", "Job"])
def test_03_a_job_within_the_limit_is_read(dialect: Dialect, manifest: Obj):
    manifest = stored(dialect, manifest)

    assert dialect.validate(manifest) == []
    assert dialect.to_job(manifest, dialect.settings(None)) is not None


@pytest.mark.parametrize("dialect", [FRAMEWORKS, VOLCANO], ids=["Framework", "Volcano"])
def test_03_the_schema_has_the_same_limit(dialect: Dialect):
    assert dialect.crd is not None
    (version,) = dialect.crd()["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    rules = [rule["rule"] for rule in (spec.get("taskRoles") or spec["tasks"])["x-kubernetes-validations"]]

    assert any(f".sum() <= {LARGEST}" in rule for rule in rules)


async def test_03_a_giant_replicaset_creates_no_pod_and_reports_why():
    async with SimulatedReplicaSets() as world:
        world.machinery.admissions.clear()  # as on a server that accepted it before there was a limit
        await world.submit(replica_set("giant", MOST))
        await world.rest(60)
        events = (await world.user.list(EVENT, "default")).items

        assert world.pods == {}
        assert [event["reason"] for event in events] == ["InvalidManifest"]
        assert f"{MOST} tasks in all" in events[0]["message"]


TOO_LARGE = {
    "413": too_large("Request entity too large: limit is 3145728"),
    "etcd": ApiError(500, "InternalError", "etcdserver: request is too large"),
}


def state_writes_once_pods_are_there(world: World, subresource: str) -> Callable[[Call], bool]:
    kind = world.dialect.kind
    return lambda call: (call.verb, call.kind, call.subresource) == ("patch", kind, subresource) and bool(world.pods)


@pytest.mark.parametrize("name", TOO_LARGE)
async def test_03_a_framework_whose_state_is_too_large_fails_with_a_reason(name: str):
    async with SimulatedWorld() as world:
        world.lives[-1].faults.fail(state_writes_once_pods_are_there(world, "status"), TOO_LARGE[name], times=1)
        await world.submit(fw("giant", role("worker", 2, fate=runs()), retry=(True, -2)))
        status = await world.completed("giant")
        await world.at_rest()
        events = (await world.user.list(EVENT, "default")).items

        assert status["attemptStatus"]["completionStatus"]["code"] == -240
        assert "too large" in status["attemptStatus"]["completionStatus"]["diagnostics"]
        assert (world.pods, world.config_maps, world.kubelet.running) == ({}, {}, {})
        assert [event["message"] for event in events if event["reason"] == "StateTooLarge"] != []


async def test_03_a_volcano_job_whose_state_is_too_large_fails_with_a_reason():
    async with SimulatedVolcano() as world:
        world.lives[-1].faults.fail(state_writes_once_pods_are_there(world, ""), TOO_LARGE["413"], times=1)
        await world.submit(vcjob("giant", task(replicas=2, fate=runs())))
        await world.until(lambda: world.phase("giant") == "Failed")
        await world.at_rest()

        assert world.pods_of("giant") == {}
        assert "StateTooLarge" in world.reasons("giant")
