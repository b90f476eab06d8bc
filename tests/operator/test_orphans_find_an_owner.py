"""A pod nobody controls becomes that of a ReplicaSet or Job that selects it; one it no longer selects goes free."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from kit.native_world import job, replica_set
from kit.preloaded_cluster import founded
from kit.virtual_time import rested, settled, turn
from shoal.cluster.client import DeleteOptions, DeletionPropagation, PatchType
from shoal.cluster.informer import Informer
from shoal.cluster.simulated import SimulatedCluster
from shoal.controller_runtime.metrics import Metrics
from shoal.controllers.orphan_adoption import OrphanAdoptionController
from shoal.dialects.native import batch_job, replica_sets
from shoal.dialects.native.adoption import Adopter, adopter_from, adopter_of, is_released
from shoal.kube.kinds import JOB, POD, REPLICA_SET, SERVICE_ACCOUNT, Kind
from shoal.kube.objects import Key, Obj, labels_of, name_of
from shoal.kube.owners import controller_of
from shoal.kube.selectors import from_labels
from shoal.operator.embedded import JobReconciler
from shoal.scheduler.transforms import slim_pod

NS = "default"


def pod(name: str = "p", phase: str = "Running", **labels: str) -> Obj:
    template: Obj = job("x")["spec"]["template"]
    return {"metadata": {"name": name, "labels": labels}, "spec": template["spec"], "status": {"phase": phase}}


def claimant(name: str, kind: Kind = REPLICA_SET, *, created: str = "", takes: bool = True, **labels: str) -> Adopter:
    return Adopter(kind, Key(NS, name), f"uid-{name}", created, from_labels(labels), takes)


OWNED = {"ownerReferences": [{"uid": "u", "controller": True}]}
TAKEN: dict[str, tuple[Obj, list[Adopter], str]] = {
    "whose labels are chosen": (pod(app="a"), [claimant("b", app="b"), claimant("a", app="a")], "a"),
    "by the oldest of two": (
        pod(app="a"), [claimant("a", created="2", app="a"), claimant("b", created="1", app="a")], "b",
    ),
    "not if it is somebody's": (
        {**pod(app="a"), "metadata": {"labels": {"app": "a"}, **OWNED}}, [claimant("a", app="a")], "",
    ),
    "not if it leaves": (
        {**pod(app="a"), "metadata": {"labels": {"app": "a"}, "deletionTimestamp": "t"}}, [claimant("a", app="a")], "",
    ),
    "not by a set if it has ended": (pod(phase="Succeeded", app="a"), [claimant("a", app="a")], ""),
    "by a job also then": (pod(phase="Succeeded", app="a"), [claimant("a", JOB, app="a")], "a"),
    "not by a job by index": (pod(app="a"), [claimant("a", JOB, takes=False, app="a")], ""),
}  # fmt: skip


@pytest.mark.parametrize(("orphan", "claimants", "expected"), TAKEN.values(), ids=TAKEN)
def test_it_is_taken(orphan: Obj, claimants: list[Adopter], expected: str) -> None:
    found = adopter_of(orphan, claimants)
    assert (found.key.name if found is not None else "") == expected


def test_who_is_let_go() -> None:
    owner = claimant("a", app="a")
    free = {"chosen": pod(app="a"), "renamed": pod(app="b"), "ended": pod(phase="Failed", app="b")}
    assert [name for name, each in free.items() if is_released(each, owner)] == ["renamed"]


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        (REPLICA_SET, {"metadata": {"name": "a", "deletionTimestamp": "t"}}),
        (JOB, {"spec": {"managedBy": "somebody"}}),
        (JOB, {"status": {"conditions": [{"type": "Complete", "status": "True"}]}}),
    ],
    ids=["leaving", "somebody else's", "ended"],
)
def test_who_takes_nobody(kind: Kind, more: Obj) -> None:
    assert adopter_from(kind, {"metadata": {"name": "a"}, **more}) is None


# --- in a cluster --------------------------------------------------------------------------------------------------


class Land:
    def __init__(self, cluster: SimulatedCluster) -> None:
        self.cluster = cluster

    async def rest(self) -> None:
        await rested(self.cluster.clock, 5, settled)

    async def orphan(self, name: str, **labels: str) -> None:
        await self.cluster.create(POD, pod(name, **labels), NS)
        await self.rest()

    async def relabel(self, name: str, **labels: str) -> None:
        patch = {"metadata": {"labels": labels}}
        await self.cluster.patch(POD, name, NS, patch=patch, patch_type=PatchType.STRATEGIC)
        await self.rest()

    async def owners(self) -> dict[str, str]:
        """Of pods that stay."""
        found = [
            each for each in (await self.cluster.list(POD, NS)).items if "deletionTimestamp" not in each["metadata"]
        ]
        return {name_of(each): str((controller_of(each) or {}).get("name", "")) for each in found}


async def a_cluster(dialect: Any) -> SimulatedCluster:
    cluster = founded(0, dialect)
    await cluster.create(SERVICE_ACCOUNT, {"metadata": {"name": "default"}}, NS)
    return cluster


@asynccontextmanager
async def a_land(
    dialect: Any, cluster: SimulatedCluster | None = None, *, is_adopting: bool = True
) -> AsyncIterator[Land]:
    """Whoever is given a cluster starts again where somebody else was stopped."""
    cluster = cluster or await a_cluster(dialect)
    pods = Informer(cluster, POD, trim=lambda event: slim_pod(event.object, owners=True), clock=cluster.clock)
    adopting = OrphanAdoptionController(cluster, pods, clock=cluster.clock)
    running = JobReconciler(cluster, dialect, clock=cluster.clock, metrics=Metrics(CollectorRegistry()))
    parts = (pods, adopting, running) if is_adopting else (running,)
    tasks = [asyncio.create_task(part.run()) for part in parts]
    try:
        land = Land(cluster)
        await land.rest()
        yield land
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_set_counts_orphans_and_makes_the_rest() -> None:
    async with a_land(replica_sets.DIALECT) as land:
        await land.orphan("mine", app="a")
        await land.orphan("other", app="b")
        await land.cluster.create(REPLICA_SET, replica_set("a", 2), NS)
        await land.rest()
        owners = await land.owners()
        assert (owners.pop("mine"), owners.pop("other"), list(owners.values())) == ("a", "", ["a"])
        made = [call for call in land.cluster.calls if call.verb == "create" and call.kind == POD]
        assert len(made) == 3  # the two orphans, and not one too many


async def test_orphans_that_go_while_they_are_taken_keep_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    async with a_land(replica_sets.DIALECT, is_adopting=False) as land:  # the set itself takes them
        cluster = land.cluster
        for name in ("one", "two"):
            await land.orphan(name, app="a")
        patch = cluster.patch

        async def taken_and_gone(kind: Kind, name: str, namespace: str, **more: Any) -> Obj:
            answer = await patch(kind, name, namespace, **more)
            if kind == POD:
                await cluster.delete(POD, name, NS, DeleteOptions(grace_seconds=0))
                for _ in range(50):  # every copy has shown it, come and gone, before anybody waits for it
                    await turn()
            return answer

        monkeypatch.setattr(cluster, "patch", taken_and_gone)
        await cluster.create(REPLICA_SET, replica_set("a", 2), NS)
        await settled()  # no time passes
        assert list((await land.owners()).values()) == ["a", "a"]


async def test_an_orphan_that_comes_later_is_one_too_many() -> None:
    async with a_land(replica_sets.DIALECT) as land:
        await land.cluster.create(REPLICA_SET, replica_set("a", 1), NS)
        await land.rest()
        await land.orphan("late", app="a")
        owners = await land.owners()
        assert list(owners.values()) == ["a"]


async def test_a_pod_that_is_relabelled_goes_free_and_is_replaced() -> None:
    async with a_land(replica_sets.DIALECT) as land:
        await land.cluster.create(REPLICA_SET, replica_set("a", 1), NS)
        await land.rest()
        (first,) = await land.owners()
        await land.relabel(first, app="looked-at")
        owners = await land.owners()
        assert (owners.pop(first), list(owners.values())) == ("", ["a"])


async def test_a_pod_that_was_relabelled_while_nobody_looked_goes_free_and_is_replaced() -> None:
    cluster = await a_cluster(replica_sets.DIALECT)
    async with a_land(replica_sets.DIALECT, cluster) as land:
        await land.cluster.create(REPLICA_SET, replica_set("a", 1), NS)
        await land.rest()
        (first,) = await land.owners()
    await land.relabel(first, app="looked-at")
    async with a_land(replica_sets.DIALECT, cluster) as again:
        owners = await again.owners()
        assert (owners.pop(first), list(owners.values())) == ("", ["a"])


async def test_those_a_set_left_behind_are_the_next_ones() -> None:
    async with a_land(replica_sets.DIALECT) as land:
        await land.cluster.create(REPLICA_SET, replica_set("a", 2), NS)
        await land.rest()
        before = await land.owners()
        await land.cluster.delete(REPLICA_SET, "a", NS, DeleteOptions(propagation=DeletionPropagation.ORPHAN))
        await land.rest()
        assert await land.owners() == dict.fromkeys(before, "")
        again = replica_set("b", 2)
        again["spec"]["selector"] = {"matchLabels": {"app": "a"}}
        again["spec"]["template"]["metadata"]["labels"] = {"app": "a"}
        await land.cluster.create(REPLICA_SET, again, NS)
        await land.rest()
        assert await land.owners() == dict.fromkeys(before, "b")


async def test_a_job_takes_those_it_was_told_to_select() -> None:
    async with a_land(batch_job.DIALECT) as land:
        await land.orphan("mine", of="j")
        made = job("j", parallelism=1)
        made["spec"] |= {"manualSelector": True, "selector": {"matchLabels": {"of": "j"}}}
        made["spec"]["template"]["metadata"]["labels"] = {"of": "j"}
        await land.cluster.create(JOB, made, NS)
        await land.rest()
        assert await land.owners() == {"mine": "j"}
        (kept,) = [each for each in (await land.cluster.list(POD, NS)).items if labels_of(each) == {"of": "j"}]
        assert kept["metadata"].get("finalizers") == [batch_job.FINALIZER]


async def test_a_pod_that_a_job_lets_go_is_replaced_and_nobody_has_failed() -> None:
    async with a_land(batch_job.DIALECT) as land:
        await land.cluster.create(JOB, job("j"), NS)
        await land.rest()
        (first,) = await land.owners()
        await land.relabel(first, **{"batch.kubernetes.io/controller-uid": "nobody"})
        await rested(land.cluster.clock, 20, settled)
        owners = await land.owners()
        assert (owners.pop(first), list(owners.values())) == ("", ["j"])
        assert "finalizers" not in (await land.cluster.get(POD, first, NS))["metadata"]
        assert not (await land.cluster.get(JOB, "j", NS))["status"].get("failed")
