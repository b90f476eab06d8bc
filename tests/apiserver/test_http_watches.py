"""A watch over HTTP: lines as things happen, and an end that clients understand."""

from __future__ import annotations

from typing import Any

import pytest

from kit.asgi_client import Asgi
from shoal.cluster.embedded import EmbeddedCluster

MAPS = "/api/v1/namespaces/default/configmaps"
TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
METADATA = {"accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}


async def make(http: Asgi, name: str, **labels: str) -> dict[str, Any]:
    obj: dict[str, Any] = (await http("POST", MAPS, {"metadata": {"name": name, "labels": labels}})).json
    return obj


def message(event: Any) -> tuple[str, str]:
    return event["type"], event["object"]["metadata"].get("name", "")


async def test_changes_arrive_as_lines_of_json(http: Asgi) -> None:
    await make(http, "a")
    async with http.stream("GET", MAPS, watch="true") as watch:
        start = await watch.start()
        assert (start.status, start.header("content-type")) == (200, "application/json")
        assert message(await watch.event()) == ("ADDED", "a")
        made = await make(http, "b")
        assert await watch.event() == {"type": "ADDED", "object": made}
        await http("DELETE", f"{MAPS}/a")
        assert message(await watch.event()) == ("DELETED", "a")


async def test_what_happened_at_once_leaves_in_one_write(http: Asgi, cluster: EmbeddedCluster) -> None:
    for name in "abc":
        await make(http, name)
    async with http.stream("GET", MAPS, watch="1") as watch:
        await watch.start()
        assert (await watch.write()).count(b"\n") == 3


async def test_a_watch_goes_on_from_a_version(http: Asgi) -> None:
    version = (await make(http, "a"))["metadata"]["resourceVersion"]
    await make(http, "b")
    async with http.stream("GET", MAPS, watch="1", resourceVersion=version) as watch:
        await watch.start()
        assert message(await watch.event()) == ("ADDED", "b")


async def test_one_object_can_be_watched_by_its_path(http: Asgi) -> None:
    await make(http, "a")
    await make(http, "b")
    async with http.stream("GET", f"{MAPS}/b", watch="1") as watch:
        await watch.start()
        assert message(await watch.event()) == ("ADDED", "b")


async def test_leaving_the_selection_is_a_deletion(http: Asgi) -> None:
    await make(http, "a", app="x")
    async with http.stream("GET", MAPS, watch="1", labelSelector="app=x") as watch:
        await watch.start()
        assert message(await watch.event()) == ("ADDED", "a")
        patch = {"metadata": {"labels": {"app": "y"}}}
        await http("PATCH", f"{MAPS}/a", patch, {"content-type": "application/merge-patch+json"})
        assert message(await watch.event()) == ("DELETED", "a")


async def test_a_streaming_list_ends_with_a_bookmark(http: Asgi) -> None:
    await make(http, "a")
    query = {"sendInitialEvents": "true", "allowWatchBookmarks": "true", "resourceVersionMatch": "NotOlderThan"}
    async with http.stream("GET", MAPS, watch="1", **query) as watch:
        await watch.start()
        assert message(await watch.event()) == ("ADDED", "a")
        bookmark = await watch.event()
        assert bookmark["type"] == "BOOKMARK"
        assert bookmark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_an_expired_version_is_an_error_event_in_the_stream(http: Asgi, cluster: EmbeddedCluster) -> None:
    await make(http, "a")
    cluster.machinery.store.compact(cluster.machinery.revision)
    async with http.stream("GET", MAPS, watch="1", resourceVersion="1") as watch:
        assert (await watch.start()).status == 200
        event = await watch.event()
        assert (event["type"], event["object"]["kind"]) == ("ERROR", "Status")
        assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")
        assert await watch.event() is None


async def test_the_stream_ends_when_its_time_is_up(http: Asgi) -> None:
    await make(http, "a")
    answer = await http("GET", MAPS, watch="1", timeoutSeconds="1")
    assert answer.body.count(b"\n") == 1


async def test_a_table_has_its_headers_once(http: Asgi) -> None:
    await make(http, "a")
    async with http.stream("GET", MAPS, headers=TABLE, watch="1") as watch:
        await watch.start()
        first = (await watch.event())["object"]
        await make(http, "b")
        second = (await watch.event())["object"]
    assert [c["name"] for c in first["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert not second["columnDefinitions"]
    assert [t["rows"][0]["cells"][0] for t in (first, second)] == ["a", "b"]


async def test_metadata_can_be_watched_alone(http: Asgi) -> None:
    made = await make(http, "a")
    async with http.stream("GET", MAPS, headers=METADATA, watch="1") as watch:
        await watch.start()
        obj = (await watch.event())["object"]
    assert obj == {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": made["metadata"]}


async def test_a_client_that_goes_away_leaves_no_watcher(http: Asgi, cluster: EmbeddedCluster) -> None:
    async with http.stream("GET", MAPS, watch="1") as watch:
        await watch.start()
        await make(http, "a")
        await watch.event()
    assert not cluster.machinery.store.table("configmaps").waiters


async def test_a_closing_server_ends_its_streams(http: Asgi) -> None:
    async with http.stream("GET", MAPS, watch="1") as watch:
        await watch.start()
        await make(http, "a")
        await watch.event()
        http.app.end_streams()
        await watch._task


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"labelSelector": "a=("}, 400),
        ({"fieldSelector": "spec.colour=red"}, 400),
        ({"timeoutSeconds": "soon"}, 400),
        ({"resourceVersion": "newest"}, 400),
        ({"sendInitialEvents": "true"}, 422),
    ],
    ids=["labels", "fields", "time", "version", "initial events"],
)
async def test_a_bad_watch_is_refused_before_it_begins(http: Asgi, query: dict[str, str], code: int) -> None:
    answer = await http("GET", MAPS, watch="1", **query)
    assert (answer.status, answer.json["kind"]) == (code, "Status")
