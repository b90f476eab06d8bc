"""ReplicaSets and batch Jobs by their names alone, on a cluster of our own, and out of sight on any other."""

from __future__ import annotations

import click
import pytest

from kit.native_world import job, replica_set
from shoal.cli.jobs import job_named, jobs_in
from shoal.cluster.embedded import EmbeddedCluster
from shoal.dialects import load
from shoal.kube.errors import ApiError
from shoal.kube.kinds import JOB, REPLICA_SET, REPLICA_SET_V1BETA1, Kind
from shoal.kube.objects import Obj
from shoal.operator.jobs import prepare

VOLCANO = load("volcano").kind


class LikeKubernetes:
    """A cluster that has given up the first version of ReplicaSet, and shows its own Jobs to nobody."""

    async def list(self, kind: Kind, *_: object, **__: object) -> None:
        raise ApiError(404 if kind == REPLICA_SET_V1BETA1 or kind.custom else 403, "Forbidden", "no")


@pytest.fixture
async def cluster() -> EmbeddedCluster:
    made = await EmbeddedCluster.open(":memory:")
    await prepare(made)
    return made


async def test_they_are_listed_and_told_apart(cluster: EmbeddedCluster) -> None:
    task: Obj = {"name": "t", "replicas": 1, "template": job("a")["spec"]["template"]}
    await cluster.create(JOB, job("a"), "default")
    await cluster.create(VOLCANO, {"metadata": {"name": "a"}, "spec": {"tasks": [task]}}, "default")
    await cluster.create(REPLICA_SET, replica_set("b", 1), "default")

    assert sorted(str(found) for found in await jobs_in(cluster, "default")) == ["Job a", "Job a", "ReplicaSet b"]
    assert (await job_named(cluster, "rs/b", "default")).dialect.kind == REPLICA_SET
    assert (await job_named(cluster, "jobs.batch/a", "default")).dialect.kind == JOB
    with pytest.raises(click.ClickException) as several:
        await job_named(cluster, "a", "default")
    assert several.value.message == ("there are several jobs called 'a': say jobs.batch.volcano.sh/a or jobs.batch/a.")
    await cluster.close()


async def test_those_of_kubernetes_are_nobody_elses_business() -> None:
    assert await jobs_in(LikeKubernetes(), "default") == []  # type: ignore[arg-type]
