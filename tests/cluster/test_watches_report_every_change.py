"""A watch reports every change after a version, in order, or ends with 410."""

from __future__ import annotations

import asyncio
import json

import pytest

from kit.cluster_objects import (
    cluster_key,
    config_map,
    define,
    key,
    machinery,
    obj,
    pod,
    refusal,
    seen,
    so_far,
    told,
)
from shoal.cluster.client import DeleteOptions, PatchType
from shoal.cluster.store import HistoryLimits
from shoal.cluster.types import WatchOptions
from shoal.kube import kinds
from shoal.kube.errors import ApiError


def changed(cluster, name, **data):
    return cluster.patch(kinds.CONFIG_MAP, key(name), {"data": data}, PatchType.MERGE).stored.revision


async def test_changes_after_a_version_come_in_order():
    cluster = machinery()
    start = cluster.create(kinds.CONFIG_MAP, "default", config_map("a")).stored.revision
    second = changed(cluster, "a", x="1")
    third = cluster.create(kinds.CONFIG_MAP, "default", config_map("b")).stored.revision
    fourth = cluster.delete(kinds.CONFIG_MAP, key("a")).stored.revision
    assert await seen(cluster, kinds.CONFIG_MAP, resource_version=str(start)) == [
        ("MODIFIED", "a", str(second)),
        ("ADDED", "b", str(third)),
        ("DELETED", "a", str(fourth)),
    ]


async def test_without_a_version_what_exists_comes_first():
    cluster = machinery()
    for name in ("b", "a"):
        cluster.create(kinds.CONFIG_MAP, "default", config_map(name))
    watch = cluster.watch(kinds.CONFIG_MAP, "default")
    later = changed(cluster, "a", x="1")
    cluster.store.flush()
    assert [(t, n) for t, n, _ in told(await so_far(watch))] == [("ADDED", "a"), ("ADDED", "b"), ("MODIFIED", "a")]
    assert later == cluster.revision


async def test_a_streaming_list_ends_with_a_marked_bookmark():
    cluster = machinery()
    cluster.create(kinds.CONFIG_MAP, "default", config_map("a"))
    options = WatchOptions(bookmarks=True, initial_events=True, resource_version_match="NotOlderThan")
    batch = await anext(cluster.watch(kinds.CONFIG_MAP, None, options))
    assert [event.type for event in batch] == ["ADDED", "BOOKMARK"]
    assert batch[-1].object() == {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {
            "resourceVersion": str(cluster.revision),
            "annotations": {"k8s.io/initial-events-end": "true"},
        },
    }


async def test_no_event_is_sent_before_its_commit():
    cluster = machinery()
    watch = cluster.watch(kinds.CONFIG_MAP, None, WatchOptions(resource_version=str(cluster.revision)))
    waiting = asyncio.ensure_future(anext(watch))
    await asyncio.sleep(0)
    cluster.create(kinds.CONFIG_MAP, "default", config_map("a"))
    assert not waiting.done()
    await cluster.durable()
    assert [(t, n) for t, n, _ in told(await waiting)] == [("ADDED", "a")]
    watch.close()


async def test_an_object_that_leaves_the_selection_is_deleted_for_the_watcher():
    cluster = machinery()
    start = str(cluster.revision)
    cluster.create(kinds.CONFIG_MAP, "default", config_map("a", labels={"app": "x"}))
    cluster.create(kinds.CONFIG_MAP, "default", config_map("b"))
    for labels in ({"app": "y"}, {"app": "x"}):
        cluster.patch(kinds.CONFIG_MAP, key("a"), {"metadata": {"labels": labels}}, PatchType.MERGE)
    events = await seen(cluster, kinds.CONFIG_MAP, resource_version=start, labels="app=x")
    assert [(happened, name) for happened, name, _ in events] == [("ADDED", "a"), ("DELETED", "a"), ("ADDED", "a")]


async def test_a_deletion_by_selection_has_the_old_content_under_the_new_version():
    cluster = machinery()
    start = cluster.create(kinds.CONFIG_MAP, "default", config_map("a", labels={"app": "x"})).stored.revision
    change = {"metadata": {"labels": {"app": "y"}}}
    left = cluster.patch(kinds.CONFIG_MAP, key("a"), change, PatchType.MERGE).stored.revision
    watch = cluster.watch(kinds.CONFIG_MAP, None, WatchOptions(resource_version=str(start), labels="app=x"))
    [event] = await so_far(watch)
    metadata = event.object()["metadata"]
    assert (metadata["labels"], metadata["resourceVersion"]) == ({"app": "x"}, str(left))


async def test_field_selectors_follow_a_pod_onto_its_node():
    cluster = machinery()
    start = str(cluster.revision)
    cluster.create(kinds.POD, "default", pod("p"))
    cluster.create(kinds.POD, "default", pod("q"))
    cluster.bind(key("p"), {"target": {"name": "n1"}})
    events = await seen(cluster, kinds.POD, resource_version=start, fields="spec.nodeName=n1")
    assert [(happened, name) for happened, name, _ in events] == [("ADDED", "p")]


async def test_a_version_that_is_no_longer_kept_is_410():
    cluster = machinery()
    first = cluster.create(kinds.CONFIG_MAP, "default", config_map("a")).stored.revision
    changed(cluster, "a", x="1")
    cluster.store.compact()
    watch = cluster.watch(kinds.CONFIG_MAP, None, WatchOptions(resource_version=str(first)))
    with pytest.raises(ApiError) as caught:
        await anext(watch)
    assert (caught.value.code, caught.value.reason, caught.value.message) == (
        410, "Expired", f"too old resource version: {first} ({cluster.revision})",
    )  # fmt: skip


async def test_a_watcher_that_falls_behind_ends_with_410():
    cluster = machinery(limits=HistoryLimits(changes=10))
    start = str(cluster.revision)
    watch = cluster.watch(kinds.CONFIG_MAP, None, WatchOptions(resource_version=start))
    for number in range(30):
        cluster.create(kinds.CONFIG_MAP, "default", config_map(f"c{number}"))
    cluster.store.flush()
    with pytest.raises(ApiError) as caught:
        await anext(watch)
    assert caught.value.code == 410


async def test_a_watch_can_resume_from_the_version_of_a_deletion():
    cluster = machinery()
    cluster.create(kinds.CONFIG_MAP, "default", config_map("a"))
    gone = cluster.delete(kinds.CONFIG_MAP, key("a")).stored.revision
    after = cluster.create(kinds.CONFIG_MAP, "default", config_map("b")).stored.revision
    assert await seen(cluster, kinds.CONFIG_MAP, resource_version=str(gone)) == [("ADDED", "b", str(after))]


async def test_a_version_of_the_future_waits_for_it():
    cluster = machinery()
    watch = cluster.watch(kinds.CONFIG_MAP, None, WatchOptions(resource_version=str(cluster.revision + 2)))
    for name in ("a", "b", "c"):
        cluster.create(kinds.CONFIG_MAP, "default", config_map(name))
    cluster.store.flush()
    assert [name for _, name, _ in told(await so_far(watch))] == ["c"]


async def test_a_bookmark_reports_progress_without_events():
    cluster = machinery()
    options = WatchOptions(resource_version=str(cluster.revision), bookmarks=True)
    watch = cluster.watch(kinds.CONFIG_MAP, None, options)
    cluster.create(kinds.SECRET, "default", obj("s"))
    cluster.store.flush()
    cluster.clock.advance(60)
    assert told(await anext(watch)) == [("BOOKMARK", "", str(cluster.revision))]
    watch.close()


async def test_the_time_is_up_after_timeout_seconds_with_a_last_bookmark():
    cluster = machinery()
    options = WatchOptions(resource_version=str(cluster.revision), bookmarks=True, timeout_seconds=5)
    watch = cluster.watch(kinds.CONFIG_MAP, None, options)
    cluster.create(kinds.SECRET, "default", obj("s"))
    cluster.store.flush()
    cluster.clock.advance(5)
    assert [told(batch) async for batch in watch] == [[("BOOKMARK", "", str(cluster.revision))]]


async def test_watchers_of_one_change_share_its_event():
    cluster = machinery()
    start = WatchOptions(resource_version=str(cluster.revision))
    first, second = (cluster.watch(kinds.CONFIG_MAP, None, start) for _ in range(2))
    cluster.create(kinds.CONFIG_MAP, "default", config_map("a"))
    cluster.store.flush()
    [one], [other] = await anext(first), await anext(second)
    assert one is other
    assert one.frame is other.frame


async def test_closing_a_watch_ends_a_waiting_reader():
    cluster = machinery()
    watch = cluster.watch(kinds.CONFIG_MAP, None, WatchOptions(resource_version=str(cluster.revision)))
    reader = asyncio.ensure_future(anext(watch, None))
    await asyncio.sleep(0)
    watch.close()
    assert await reader is None


async def test_a_cancelled_reader_leaves_nothing_behind():
    cluster = machinery()
    watch = cluster.watch(kinds.CONFIG_MAP, None, WatchOptions(resource_version=str(cluster.revision)))
    reader = asyncio.ensure_future(anext(watch))
    await asyncio.sleep(0)
    reader.cancel()
    await asyncio.gather(reader, return_exceptions=True)
    assert cluster.store.table("configmaps").waiters == {}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"initial_events": True}, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"),
        (
            {"resource_version_match": "NotOlderThan"},
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        ),
    ],
    ids=["initial events without a match", "a match without initial events"],
)
def test_options_that_make_no_sense_are_refused(options, message):
    assert refusal(machinery().watch, kinds.POD, None, WatchOptions(**options)) == (
        422, "Invalid", f'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: {message}',
    )  # fmt: skip


async def test_a_pod_that_goes_at_once_is_modified_then_deleted():
    cluster = machinery()
    start = cluster.create(kinds.POD, "default", pod("p")).stored.revision
    cluster.delete(kinds.POD, key("p"), DeleteOptions(grace_seconds=0))
    events = await seen(cluster, kinds.POD, resource_version=str(start))
    assert [happened for happened, _, _ in events] == ["MODIFIED", "DELETED"]


async def test_each_version_of_a_custom_kind_is_watched_in_its_own_api_version():
    cluster = machinery()
    define(cluster, "v1", "v2")
    first, second = (cluster.find("example.com", version, "widgets") for version in ("v1", "v2"))
    start = str(cluster.revision)
    cluster.create(first, "default", obj("w", spec={}))
    kinds_seen = []
    for kind in (first, second):
        [event] = await so_far(cluster.watch(kind, None, WatchOptions(resource_version=start)))
        kinds_seen.append(event.object()["apiVersion"])
    assert kinds_seen == ["example.com/v1", "example.com/v2"]


async def test_namespaces_are_watched_apart():
    cluster = machinery()
    cluster.create(kinds.NAMESPACE, "", obj("other"))
    start = str(cluster.revision)
    cluster.create(kinds.CONFIG_MAP, "default", config_map("a"))
    cluster.create(kinds.CONFIG_MAP, "other", config_map("b"))
    events = await seen(cluster, kinds.CONFIG_MAP, "other", resource_version=start)
    assert [name for _, name, _ in events] == ["b"]
    assert cluster.get(kinds.NAMESPACE, cluster_key("other")).key.name == "other"


POD_CHANGES = [
    ({"metadata": {"labels": {"x": "1"}}}, PatchType.MERGE, ""),
    ({"metadata": {"finalizers": ["shoal.test/keep"]}}, PatchType.MERGE, ""),
    ({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}, PatchType.MERGE, "status"),
    ({"status": {"podIP": "10.0.0.1"}}, PatchType.MERGE, "status"),
    ({"status": {"conditions": [{"type": "Ready", "status": "False"}]}}, PatchType.STRATEGIC, "status"),
    ([{"op": "add", "path": "/metadata/annotations", "value": {"y": "2"}}], PatchType.JSON, ""),
    ({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": {"z": "3"}}}, PatchType.APPLY, ""),
]


async def test_delivered_events_do_not_change():
    """Watches share the objects that were written, and these are not changed any more."""
    cluster = machinery()
    thing = define(cluster)
    watches = [cluster.watch(kinds.POD, "default"), cluster.watch(thing, "default")]
    cluster.create(kinds.POD, "default", pod("a"))
    cluster.create(thing, "default", obj("a", spec={"size": 1}))
    for patch, form, part in POD_CHANGES:
        cluster.patch(kinds.POD, key("a"), patch, form, subresource=part)
    cluster.patch(thing, key("a"), {"status": {"seen": {"a": 1}}}, PatchType.MERGE, subresource="status")
    cluster.patch(thing, key("a"), {"metadata": {"labels": {"x": "1"}}}, PatchType.MERGE)
    cluster.patch(thing, key("a"), {"status": {"more": [1]}}, PatchType.MERGE, subresource="status")
    cluster.delete(kinds.POD, key("a"))
    cluster.delete(thing, key("a"))
    cluster.store.flush()
    events = [event for watch in watches for event in await so_far(watch)]
    assert [len(events), events[1].type.value, events[-1].type.value] == [8 + 1 + 5, "MODIFIED", "DELETED"]
    assert [event.object() for event in events] == [json.loads(event.stored_raw) for event in events]
