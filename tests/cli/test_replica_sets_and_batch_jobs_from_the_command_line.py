"""ReplicaSets and batch Jobs by their names alone, on a cluster of our own, and out of sight on any other."""

from __future__ import annotations

from typing import Any

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

    def __init__(self, of_the_first_version: int = 404) -> None:
        self._code = of_the_first_version

    async def list(self, kind: Kind, *_: object, **__: object) -> None:
        raise ApiError(self._code if kind == REPLICA_SET_V1BETA1 else 404 if kind.custom else 403, "Forbidden", "no")


class Refusing:
    """A cluster of our own that answers for one kind with a refusal."""

    def __init__(self, cluster: EmbeddedCluster, kind: Kind, refusal: ApiError) -> None:
        self._cluster, self._kind, self._refusal = cluster, kind, refusal

    async def list(self, kind: Kind, *where: Any, **how: Any) -> Any:
        if kind == self._kind:
            raise self._refusal
        return await self._cluster.list(kind, *where, **how)


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


@pytest.mark.parametrize("code", [404, 403])
async def test_those_of_kubernetes_are_nobody_elses_business(code: int) -> None:
    assert await jobs_in(LikeKubernetes(code), "default") == []  # type: ignore[arg-type]


REFUSALS = [(JOB, 403), (REPLICA_SET, 429), (JOB, 500), (REPLICA_SET_V1BETA1, 429), (REPLICA_SET_V1BETA1, 500)]


@pytest.mark.parametrize(("kind", "code"), REFUSALS, ids=lambda value: str(value))
async def test_a_refusal_is_not_taken_for_none(cluster: EmbeddedCluster, kind: Kind, code: int) -> None:
    refusal = ApiError(code, "Refused", "not now")
    with pytest.raises(ApiError) as caught:
        await jobs_in(Refusing(cluster, kind, refusal), "default")  # type: ignore[arg-type]
    assert caught.value is refusal
    await cluster.close()
