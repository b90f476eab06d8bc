"""What jobs own besides pods, wait for and are ordered: who is woken by it, and what is forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kit.capabilities import capability
from kit.preloaded_cluster import founded
from kit.virtual_time import settled
from kit.volcano_jobs import task, vcjob
from shoal.cluster.simulated import SimulatedCluster
from shoal.dialects.capabilities import Gangs, JobCommands, OwnedObjects
from shoal.dialects.dialect import Dialect, DialectWrapper
from shoal.dialects.volcano import DIALECT
from shoal.dialects.volcano.commands import new_command
from shoal.engine import Apply, OwnedObjectRef
from shoal.engine.writes import BuildContext
from shoal.kube.kinds import PERSISTENT_VOLUME_CLAIM, SERVICE, Kind
from shoal.kube.objects import Key, Obj, uid_of
from shoal.operator.owned_object_writer import NameConflict, OwnedObjectWriter
from shoal.operator.related_objects import RelatedObjectIndex, RelatedObjects
from shoal.operator.shared_informers import SharedInformers

PET = Key("default", "pet")
CLAIM: Obj = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


class Watched:
    """One Job, copies of what it has, and whom they woke since the last look."""

    def __init__(self, cluster: SimulatedCluster, dialect: Dialect) -> None:
        self.cluster = cluster
        self._woken: list[Key] = []
        self.copies = RelatedObjectIndex(
            cluster, dialect, SharedInformers(cluster, [dialect], clock=cluster.clock),
            namespace=None, wake=self._woken.append, clock=cluster.clock,
        )  # fmt: skip
        self.writer = OwnedObjectWriter(cluster, dialect, self.copies, lambda _, __, request: request)
        self.job: Obj = {}

    async def woken(self) -> list[Key]:
        await settled()
        woken = self._woken.copy()
        self._woken.clear()
        return woken

    def seen(self) -> RelatedObjects:
        return self.copies.of(PET, self.job, frozenset())

    async def make(self, kind: Kind, obj: Obj) -> Obj:
        made = await self.cluster.create(kind, obj, "default")
        await settled()
        return made


@asynccontextmanager
async def watched(dialect: Dialect = DIALECT, **spec: Any) -> AsyncIterator[Watched]:
    it = Watched(founded(0, dialect), dialect)
    tasks = [asyncio.create_task(copy.run()) for copy in it.copies.informers]
    manifest = vcjob("pet", task("worker", 1))
    manifest["spec"] |= spec
    try:
        it.job = await it.make(dialect.kind, manifest)
        yield it
    finally:
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


MOUNTED = [{"mountPath": "/data", "volumeClaimName": "data"}]


async def test_a_claim_of_somebody_else_that_leaves_is_not_there() -> None:
    async with watched(volumes=MOUNTED) as it:
        assert it.seen().open_gates == frozenset()
        held = {**CLAIM, "metadata": {**CLAIM["metadata"], "finalizers": ["example.com/held"]}}
        await it.make(PERSISTENT_VOLUME_CLAIM, held)
        assert (await it.woken(), it.seen().open_gates) == ([PET], frozenset({"claim:data"}))
        await it.cluster.delete(PERSISTENT_VOLUME_CLAIM, "data", "default")
        assert (await it.woken(), it.seen().open_gates) == ([PET], frozenset())


async def test_a_job_that_is_forgotten_waits_for_nothing() -> None:
    async with watched(volumes=MOUNTED) as it:
        it.seen()
        it.copies.forget(PET)
        await it.make(PERSISTENT_VOLUME_CLAIM, CLAIM)
        assert await it.woken() == []


@pytest.mark.parametrize("finalizers", [[], ["example.com/held"]], ids=["stays", "leaves"])
async def test_the_end_of_what_stands_in_the_way_wakes_the_job(finalizers: list[str]) -> None:
    async with watched(plugins={"svc": []}) as it:
        metadata = {"name": "pet", "labels": {"volcano.sh/job-name": "theirs"}, "finalizers": finalizers}
        await it.make(SERVICE, {"metadata": metadata, "spec": {"clusterIP": "None"}})
        if finalizers:
            await it.cluster.delete(SERVICE, "pet", "default")
            await settled()
        with pytest.raises(NameConflict):
            await it.writer.apply(it.job, Apply(OwnedObjectRef("svc"), BuildContext(), "x"))
        assert await it.woken() == []
        if finalizers:
            await it.cluster.patch(SERVICE, "pet", "default", patch={"metadata": {"finalizers": None}})
        else:
            await it.cluster.delete(SERVICE, "pet", "default")
        assert await it.woken() == [PET]


async def test_orders_are_heard_in_a_language_that_owns_nothing_else() -> None:
    async with watched(DialectWrapper(DIALECT, replaced=(OwnedObjects, Gangs))) as it:
        made = await it.make(capability(DIALECT, JobCommands).kind, new_command(it.job, "AbortJob"))
        assert [each.uid for each in it.seen().commands] == [uid_of(made)]
        await it.cluster.delete(capability(DIALECT, JobCommands).kind, made["metadata"]["name"], "default")
        assert (await it.woken(), it.seen()) == ([PET, PET], RelatedObjects())
