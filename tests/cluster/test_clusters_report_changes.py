"""For every kind of cluster: a watch reports what exists and every change, and an informer stays up to date."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from kit.cluster_backends import Place, define_widgets
from kit.cluster_objects import config_map
from shoal.cluster.client import WatchEvent, WatchEventType
from shoal.cluster.informer import Change, Informer
from shoal.kube.errors import ApiError
from shoal.kube.kinds import CONFIG_MAP
from shoal.kube.objects import Key, name_of

CM = CONFIG_MAP
OURS = "app=ours"


def ours(name: str, mode: str = "fast") -> dict[str, Any]:
    return config_map(name, {"mode": mode}, labels={"app": "ours"})


def changes(event: WatchEvent) -> tuple[str, str]:
    return event.type.value, name_of(event.object)


async def test_a_watch_begins_with_what_there_is(place: Place) -> None:
    cluster, namespace = place.cluster, place.namespace
    for name in "ab":
        await cluster.create(CM, ours(name), namespace)
    received = []
    async with aclosing(cluster.watch(CM, namespace, initial_events=True, labels=OURS)) as events:
        async for event in events:
            if event.type is not WatchEventType.BOOKMARK or event.ends_initial_list:  # others come at any time
                received.append(changes(event))
            if event.ends_initial_list:
                await cluster.patch(CM, "a", namespace, patch={"data": {"mode": "slow"}})
                await cluster.delete(CM, "b", namespace)
            if event.type is WatchEventType.DELETED:
                break
    assert (sorted(received[:2]), received[2:]) == (
        [("ADDED", "a"), ("ADDED", "b")],
        [("BOOKMARK", ""), ("MODIFIED", "a"), ("DELETED", "b")],
    )


async def test_a_watch_goes_on_from_a_version(place: Place) -> None:
    cluster, namespace = place.cluster, place.namespace
    made = await cluster.create(CM, ours("a"), namespace)
    changed = await cluster.patch(CM, "a", namespace, patch={"data": {"mode": "slow"}})
    gone = await cluster.create(CM, ours("b"), namespace)
    await cluster.delete(CM, "b", namespace)
    version = made["metadata"]["resourceVersion"]
    received = []
    async with aclosing(cluster.watch(CM, namespace, resource_version=version, labels=OURS)) as events:
        async for event in events:
            received.append(event)
            if event.type is WatchEventType.DELETED:
                break
    assert [changes(event) for event in received] == [("MODIFIED", "a"), ("ADDED", "b"), ("DELETED", "b")]
    assert [event.object for event in received[:2]] == [changed, gone]
    versions = [int(event.resource_version) for event in received]
    assert versions == sorted(versions)


async def test_what_leaves_the_selection_is_a_deleted_event(place: Place) -> None:
    cluster, namespace = place.cluster, place.namespace
    made = await cluster.create(CM, ours("a"), namespace)
    await cluster.patch(CM, "a", namespace, patch={"metadata": {"labels": {"app": "theirs"}}})
    version = made["metadata"]["resourceVersion"]
    async with aclosing(cluster.watch(CM, namespace, resource_version=version, labels=OURS)) as events:
        assert changes(await anext(events)) == ("DELETED", "a")


async def test_a_version_that_is_not_kept_is_expired(place: Place) -> None:
    kind = await define_widgets(place.cluster)
    await place.forget()
    with pytest.raises(ApiError) as caught:
        async for _ in place.cluster.watch(kind, place.namespace, resource_version="1"):
            pass
    assert caught.value.code == 410


class Copy:
    """A running informer, and the changes it reported."""

    def __init__(self, place: Place) -> None:
        self.changes: asyncio.Queue[Change] = asyncio.Queue()
        self.reflector = Informer(place.cluster, CM, place.namespace, labels=OURS, on_change=self.changes.put_nowait)

    async def __aenter__(self) -> Copy:
        self._task = asyncio.create_task(self.reflector.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def next(self) -> tuple[str, str | None, str | None]:
        change = await self.changes.get()
        modes = [obj and obj["data"]["mode"] for obj in (change.old, change.new)]
        return change.key.name, modes[0], modes[1]


async def test_a_copy_is_kept_true(place: Place) -> None:
    cluster, namespace = place.cluster, place.namespace
    await cluster.create(CM, ours("a"), namespace)
    async with Copy(place) as copy:
        await copy.reflector.synced.wait()
        await cluster.create(CM, ours("b"), namespace)
        await cluster.patch(CM, "a", namespace, patch={"data": {"mode": "slow"}})
        await cluster.delete(CM, "b", namespace)
        assert [await copy.next() for _ in range(4)] == [
            ("a", None, "fast"), ("b", None, "fast"), ("a", "fast", "slow"), ("b", "fast", None),
        ]  # fmt: skip
        assert copy.reflector.objects == {Key(namespace, "a"): await cluster.get(CM, "a", namespace)}
