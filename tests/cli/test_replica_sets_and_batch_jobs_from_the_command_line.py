"""ReplicaSets and batch Jobs by their names alone, on a cluster of our own, and out of sight on any other."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click
import pytest

from kit.native_world import job, replica_set
from shoal.cli.follow import head_of, task_of
from shoal.cli.job_actions import start, stop, why_unstoppable
from shoal.cli.job_lookup import FoundJob, find_job, list_jobs
from shoal.cli.progress import Board
from shoal.cluster.embedded import EmbeddedCluster
from shoal.dialects import load, state_annotation
from shoal.dialects.native.batch_job import DIALECT as BATCH
from shoal.dialects.native.pod_builder import SLOT
from shoal.engine import JobState, RoleState, Run, Stage, Stamps
from shoal.kube.errors import ApiError
from shoal.kube.kinds import JOB, REPLICA_SET, Kind
from shoal.kube.objects import Obj
from shoal.operator.embedded import prepare

VOLCANO = load("volcano").kind
BEGAN = datetime(2030, 1, 1, tzinfo=UTC)


class LikeKubernetes:
    """A cluster whose own controllers run Jobs, and that forbids to list them."""

    async def is_embedded(self) -> bool:
        return False

    async def list(self, kind: Kind, *_: object, **__: object) -> None:
        raise ApiError(404 if kind.custom else 403, "Forbidden", "no")


class Refusing:
    """A cluster of our own that answers for one kind with a refusal."""

    def __init__(self, cluster: EmbeddedCluster, kind: Kind, refusal: ApiError) -> None:
        self._cluster, self._kind, self._refusal = cluster, kind, refusal

    async def is_embedded(self) -> bool:
        return True

    async def list(self, kind: Kind, *where: Any, **how: Any) -> Any:
        if kind == self._kind:
            raise self._refusal
        return await self._cluster.list(kind, *where, **how)


@pytest.fixture
async def cluster() -> EmbeddedCluster:
    made = await EmbeddedCluster.open(":memory:")
    await prepare(made)
    return made


async def test_jobs_of_the_same_name_are_listed_by_kind(cluster: EmbeddedCluster) -> None:
    task: Obj = {"name": "t", "replicas": 1, "template": job("a")["spec"]["template"]}
    await cluster.create(JOB, job("a"), "default")
    await cluster.create(VOLCANO, {"metadata": {"name": "a"}, "spec": {"tasks": [task]}}, "default")
    await cluster.create(REPLICA_SET, replica_set("b", 1), "default")

    assert sorted(str(found) for found in await list_jobs(cluster, "default")) == ["Job a", "Job a", "ReplicaSet b"]
    assert (await find_job(cluster, "rs/b", "default")).dialect.kind == REPLICA_SET
    assert (await find_job(cluster, "jobs.batch/a", "default")).dialect.kind == JOB
    with pytest.raises(click.ClickException) as several:
        await find_job(cluster, "a", "default")
    assert several.value.message == (
        "several jobs are called 'a': name one of them as jobs.batch.volcano.sh/a or jobs.batch/a."
    )
    await cluster.close()


async def test_jobs_that_kubernetes_runs_are_not_listed() -> None:
    assert await list_jobs(LikeKubernetes(), "default") == []  # type: ignore[arg-type]


REFUSALS = [(JOB, 403), (REPLICA_SET, 429), (JOB, 500)]


@pytest.mark.parametrize(("kind", "code"), REFUSALS, ids=lambda value: str(value))
async def test_a_refusal_is_not_taken_for_none(cluster: EmbeddedCluster, kind: Kind, code: int) -> None:
    refusal = ApiError(code, "Refused", "not now")
    with pytest.raises(ApiError) as caught:
        await list_jobs(Refusing(cluster, kind, refusal), "default")  # type: ignore[arg-type]
    assert caught.value is refusal
    await cluster.close()


async def test_a_stop_suspends_a_batch_job_and_a_start_lets_it_go_on(cluster: EmbeddedCluster) -> None:
    await cluster.create(JOB, job("a"), "default")
    became = []
    for act in (stop, stop, start, start):
        is_news = await act(cluster, await find_job(cluster, "a", "default"))
        became.append((is_news, (await cluster.get(JOB, "a", "default"))["spec"]["suspend"]))
    assert became == [(True, True), (False, True), (True, False), (False, False)]
    await cluster.close()


async def test_a_replica_set_is_not_stopped(cluster: EmbeddedCluster) -> None:
    await cluster.create(REPLICA_SET, replica_set("web", 2), "default")
    await cluster.create(JOB, job("a"), "default")
    told = [why_unstoppable(await find_job(cluster, name, "default")) for name in ("web", "a")]
    assert told == [
        "ReplicaSet web cannot be stopped: its kind never completes. `shoal scale web replica=0` deletes its pods, "
        "`shoal delete web` ends it.",
        None,
    ]
    await cluster.close()


def pod_called(name: str, manifest: Obj, index: int) -> Obj:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "a", "uid": "u", "controller": True}
    meta = {"name": name, "namespace": "default", "uid": name, "ownerReferences": [owner]}
    return {"metadata": {**meta, "annotations": {SLOT: str(index)}}, "spec": manifest["spec"]["template"]["spec"]}


@pytest.mark.parametrize(
    ("spec", "heads"),
    [({}, ["pod-x7k2q", "pod-b4c5d"]), ({"completionMode": "Indexed", "completions": 2}, ["pod-0", "pod-1"])],
    ids=["by number", "by index"],
)
def test_log_lines_are_prefixed_by_distinct_pod_names(spec: Obj, heads: list[str]) -> None:
    manifest = job("a", **spec)
    manifest["metadata"] |= {"uid": "u", "namespace": "default"}
    found = FoundJob(manifest, BATCH)
    pods = [pod_called("a-x7k2q", manifest, 0), pod_called("a-b4c5d", manifest, 1 if spec else 0)]
    refs = [task_of(found, pod) for pod in pods]
    assert [head_of(found, ref, pod) for ref, pod in zip(refs, pods, strict=True) if ref is not None] == heads


STORY = [
    ({"active": 1}, "pending", ["preparing"]),
    ({"active": 1, "ready": 1}, "running", ["running"]),
    ({"active": 1, "ready": 0}, "running", ["running"]),  # about to end: ready no more, and still active
    ({"active": 0, "succeeded": 1}, "running", ["succeeded"]),
    ({"active": 1, "succeeded": 1}, "running", ["succeeded", "preparing"]),
    ({"active": 1, "ready": 1, "succeeded": 1}, "running", ["succeeded", "running"]),
]


async def test_the_table_never_goes_back_from_running_to_preparing(cluster: EmbeddedCluster) -> None:
    made = await cluster.create(JOB, job("a", parallelism=1, completions=2), "default")
    read = BATCH.to_job(made, BATCH.settings(None))
    assert read is not None
    board, words = Board(), []
    for status, _, _ in STORY:
        done = RoleState("pod", ok_count=status.get("succeeded", 0))
        state = JobState(run=Run(stage=Stage.PREPARING), roles=(done,), stamps=Stamps(started=BEGAN))
        noted = state_annotation.record(read, state).annotations
        found = FoundJob(
            {**made, "metadata": {**made["metadata"], "annotations": dict(noted)}, "status": status}, BATCH
        )
        board.update_job(found)
        words.append((status, board.job_status(found), [view.status for _, view, _, _ in board.rows()]))
    assert words == STORY
    await cluster.close()
