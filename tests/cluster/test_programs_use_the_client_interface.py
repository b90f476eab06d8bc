"""The embedded cluster implements the client interface."""

from __future__ import annotations

from contextlib import aclosing

import pytest

from kit.cluster_objects import config_map, pod
from shoal.cluster.client import DeleteOptions, LogOptions, PatchType, WatchEventType
from shoal.cluster.embedded import EmbeddedCluster
from shoal.kube import kinds
from shoal.kube.errors import ApiError

CM = kinds.CONFIG_MAP


@pytest.fixture
async def cluster():
    made = await EmbeddedCluster.open(":memory:")
    yield made
    await made.close()


async def test_what_a_program_gives_stays_its_own(cluster):
    sent = pod("p")
    await cluster.create(kinds.POD, sent, "default")
    assert sent == pod("p")


async def test_pages_and_patches(cluster):
    for name in ("a", "b", "c"):
        await cluster.create(CM, config_map(name), "default")
    first = await cluster.list(CM, "default", limit=2)
    rest = await cluster.list(CM, "default", continue_token=first.continue_token)
    found = [item["metadata"]["name"] for page in (first, rest) for item in page.items]
    assert (found, first.remaining) == (["a", "b", "c"], 1)
    steps = [{"op": "add", "path": "/data/x", "value": "1"}]
    patched = await cluster.patch(CM, "a", "default", patch=steps, patch_type=PatchType.JSON)
    assert patched["data"] == {"mode": "fast", "x": "1"}


async def test_a_watch_begins_with_what_is_there(cluster):
    await cluster.create(CM, config_map("a"), "default")
    async with aclosing(cluster.watch(CM, "default", initial_events=True)) as stream:
        first, second = await anext(stream), await anext(stream)
        await cluster.delete(CM, "a", "default")
        third = await anext(stream)
    assert [first.type, second.type, third.type] == [
        WatchEventType.ADDED,
        WatchEventType.BOOKMARK,
        WatchEventType.DELETED,
    ]
    assert second.ends_initial_list
    assert int(third.resource_version) > int(second.resource_version)


async def test_a_patch_for_another_uid_is_a_conflict(cluster):
    await cluster.create(CM, config_map("a"), "default")
    with pytest.raises(ApiError) as caught:
        await cluster.patch(CM, "a", "default", patch={"metadata": {"uid": "other"}, "data": {"x": "1"}})
    assert (caught.value.code, caught.value.reason) == (409, "Conflict")


async def test_binding_and_deleting_a_pod(cluster):
    made = await cluster.create(kinds.POD, pod("p"), "default")
    await cluster.bind("p", "default", node="n1", uid=made["metadata"]["uid"])
    lingering = await cluster.delete(kinds.POD, "p", "default")
    assert lingering["metadata"]["deletionGracePeriodSeconds"] == 30
    await cluster.delete(kinds.POD, "p", "default", DeleteOptions(grace_seconds=0))
    with pytest.raises(ApiError) as caught:
        await cluster.get(kinds.POD, "p", "default")
    assert caught.value.code == 404


class Agent:
    async def logs(self, pod, options):
        yield f"{pod['metadata']['name']} {options.tail_lines}".encode()


async def test_logs_come_from_the_agent_of_the_node(cluster):
    await cluster.create(kinds.POD, pod("p", node="n1"), "default")
    cluster.nodes["n1"] = Agent()
    assert [chunk async for chunk in cluster.logs("p", "default", LogOptions(tail_lines=3))] == [b"p 3"]


@pytest.mark.parametrize(("node", "code"), [("", 400), ("n2", 503)], ids=["not placed", "no agent here"])
async def test_logs_without_an_agent_are_an_error(cluster, node, code):
    await cluster.create(kinds.POD, pod("p", node=node), "default")
    with pytest.raises(ApiError) as caught:
        await anext(cluster.logs("p", "default", LogOptions()))
    assert caught.value.code == code


async def test_cluster_wide_kinds_need_no_namespace(cluster):
    await cluster.create(kinds.NAMESPACE, {"metadata": {"name": "team"}})
    found = await cluster.list(kinds.NAMESPACE)
    assert [n["metadata"]["name"] for n in found.items] == [
        "default", "kube-node-lease", "kube-public", "kube-system", "team",
    ]  # fmt: skip
