"""The reconcilers of one process share their informers; each hears of the objects of its own jobs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from kit.virtual_time import settled
from shoal.cluster.client import WatchEvent, WatchEventType
from shoal.cluster.clock import SystemClock
from shoal.dialects import NAMES, NATIVE, load
from shoal.dialects.dialect import Dialect, DialectWrapper, Owner
from shoal.kube.errors import expired
from shoal.kube.kinds import POD, Kind
from shoal.kube.objects import Key, Obj
from shoal.operator.job_index import JobIndex
from shoal.operator.shared_informers import SharedInformers

DIALECTS = [load(name) for name in (*NAMES, *NATIVE)]
SETS, JOBS = (load(name) for name in NATIVE)


class Feed:
    """A cluster whose watches of pods send what is put into it; those of other kinds send nothing."""

    def __init__(self) -> None:
        self.watches = 0
        self._events: asyncio.Queue[WatchEvent | Exception] = asyncio.Queue()
        self._version = 0

    async def watch(self, kind: Kind, *_: Any, **__: Any) -> AsyncIterator[WatchEvent]:
        if kind != POD:
            await asyncio.Event().wait()
        self.watches += 1
        while True:
            event = await self._events.get()
            if isinstance(event, Exception):
                raise event
            yield event

    async def send(self, kind: WatchEventType, pod: Obj) -> None:
        self._version += 1
        pod = {**pod, "metadata": {**pod["metadata"], "resourceVersion": str(self._version)}}
        self._events.put_nowait(WatchEvent(kind, pod))
        await settled()

    async def list(self, *pods: Obj) -> None:
        for pod in pods:
            await self.send(WatchEventType.ADDED, pod)
        end = {"metadata": {"annotations": {"k8s.io/initial-events-end": "true"}}}
        await self.send(WatchEventType.BOOKMARK, end)

    async def forget(self) -> None:
        """The server no longer keeps the version of the watch."""
        self._events.put_nowait(expired("too old resource version"))
        await settled()


def pod(name: str, owner: Dialect | None, job: str = "job") -> Obj:
    references = []
    if owner is not None:
        kind = owner.kind
        references = [
            {"apiVersion": kind.api_version, "kind": kind.kind, "name": job, "uid": f"uid-{job}", "controller": True}
        ]
    metadata = {"namespace": "default", "name": name, "uid": f"uid-{name}", "ownerReferences": references}
    return {"metadata": metadata, "spec": {"nodeName": "node"}, "status": {"phase": "Running"}}


class Woken:
    """An index of one dialect, and the jobs it woke."""

    def __init__(self, informers: SharedInformers, dialect: Dialect) -> None:
        self.jobs: list[str] = []
        self.freed: list[str] = []
        self.index = JobIndex(
            informers.of(POD), dialect,
            wake=lambda key: self.jobs.append(key.name), on_name_freed=lambda key: self.freed.append(key.name),
        )  # fmt: skip

    def pods(self, job: str) -> list[str]:
        return [each["metadata"]["name"] for each in self.index.of(Key("default", job))]


@asynccontextmanager
async def running(dialects: list[Dialect]) -> AsyncIterator[tuple[Feed, SharedInformers]]:
    feed = Feed()
    informers = SharedInformers(feed, dialects, clock=SystemClock())  # type: ignore[arg-type]
    task = asyncio.create_task(informers.run())
    yield feed, informers
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_pod_wakes_the_reconciler_of_its_owner_alone() -> None:
    async with running(DIALECTS) as (feed, informers):
        woken = {dialect.kind.kind: Woken(informers, dialect) for dialect in (SETS, JOBS)}
        await feed.list(pod("a", SETS), pod("b", JOBS, "other"), pod("c", None))
        assert feed.watches == 1
        assert {kind: each.jobs for kind, each in woken.items()} == {"ReplicaSet": ["job"], "Job": ["other"]}
        await feed.send(WatchEventType.DELETED, pod("a", SETS))
        assert (woken["ReplicaSet"].jobs, woken["Job"].jobs) == (["job", "job"], ["other"])


async def test_of_a_foreign_pod_only_its_identity_is_cached() -> None:
    async with running(DIALECTS) as (feed, informers):
        await feed.list(pod("foreign", None))
        cached = informers.of(POD).objects[Key("default", "foreign")]
        identity = {"namespace": "default", "name": "foreign", "uid": "uid-foreign", "resourceVersion": "1"}
        assert cached == {"metadata": identity}


async def test_the_end_of_another_dialects_pod_frees_its_name() -> None:
    async with running(DIALECTS) as (feed, informers):
        sets = Woken(informers, SETS)
        await feed.list(pod("job-0", JOBS))
        assert sets.index.await_end(Key("default", "job-0"), Key("default", "mine"))
        assert (sets.pods("mine"), sets.jobs) == (["job-0"], [])
        await feed.send(WatchEventType.DELETED, pod("job-0", JOBS))
        assert (sets.pods("mine"), sets.jobs, sets.freed) == ([], ["mine"], ["mine"])


async def test_a_reconciler_that_starts_again_sees_what_exists() -> None:
    async with running(DIALECTS) as (feed, informers):
        former = Woken(informers, SETS)
        await feed.list(pod("a", SETS))
        again = Woken(informers, SETS)
        assert (again.jobs, again.pods("job")) == (["job"], ["a"])
        await feed.send(WatchEventType.MODIFIED, pod("a", SETS))
        assert (len(former.jobs), len(again.jobs)) == (1, 2)


async def test_pods_deleted_while_the_watch_was_expired_are_reported() -> None:
    async with running(DIALECTS) as (feed, informers):
        sets = Woken(informers, SETS)
        await feed.list(pod("a", SETS), pod("b", SETS, "other"))
        await feed.forget()
        await feed.list(pod("b", SETS, "other"))
        assert (feed.watches, sets.pods("job"), sets.pods("other")) == (2, [], ["b"])
        assert sets.jobs.count("job") == 2


async def test_a_pod_that_changes_its_owner_wakes_both_jobs() -> None:
    async with running(DIALECTS) as (feed, informers):
        sets, jobs = Woken(informers, SETS), Woken(informers, JOBS)
        await feed.list(pod("a", SETS))
        await feed.send(WatchEventType.MODIFIED, pod("a", JOBS, "other"))
        assert (sets.pods("job"), jobs.pods("other")) == ([], ["a"])
        assert (sets.jobs, jobs.jobs) == (["job", "job"], ["other"])


class Unreadable(DialectWrapper):
    def owner_of(self, obj: Obj) -> Owner | None:
        raise ValueError(obj)


async def test_a_pod_that_one_dialect_cannot_read_reaches_the_others() -> None:
    broken = Unreadable(JOBS)
    async with running([broken, SETS]) as (feed, informers):
        sets = Woken(informers, SETS)
        await feed.list(pod("a", SETS))
        assert sets.jobs == ["job"]
