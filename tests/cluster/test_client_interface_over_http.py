"""The HTTP client implements the client interface, against an API server on a real socket."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path

import pytest

from kit.cluster_objects import config_map, definition, pod
from kit.embedded_api_server import NODE, Running, serve
from shoal.cluster.client import DeleteOptions, DeletionPropagation, LogOptions, Preconditions, WatchEventType
from shoal.cluster.kubeconfig import ConnectionConfig, ConnectionConfigError, contexts, from_kubeconfig
from shoal.cluster.kubernetes import KubernetesCluster, open_client
from shoal.kube.errors import ApiError
from shoal.kube.kinds import CONFIG_MAP, CUSTOM_RESOURCE_DEFINITION, POD
from shoal.kube.kinds import NODE as NODE_KIND
from shoal.kube.objects import name_of, uid_of


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serve(tmp_path_factory.mktemp("api")) as running:
        yield running


@pytest.fixture
async def cluster(server: Running) -> AsyncIterator[KubernetesCluster]:
    async with open_client(from_kubeconfig(server.kubeconfig)) as made:
        for item in (await made.list(CONFIG_MAP, "default")).items:
            await made.delete(CONFIG_MAP, name_of(item), "default")
        yield made


async def refused(awaitable: object) -> tuple[int, str]:
    with pytest.raises(ApiError) as caught:
        await awaitable  # type: ignore[misc]
    return caught.value.code, caught.value.reason


async def test_what_was_created_is_found(cluster: KubernetesCluster) -> None:
    made = await cluster.create(CONFIG_MAP, config_map("a"), "default")
    assert await cluster.get(CONFIG_MAP, "a", "default") == made
    assert made["metadata"]["managedFields"][0]["manager"] == "shoal"


async def test_a_dry_run_leaves_nothing(cluster: KubernetesCluster) -> None:
    await cluster.create(CONFIG_MAP, config_map("a"), "default", dry_run=True)
    assert await refused(cluster.get(CONFIG_MAP, "a", "default")) == (404, "NotFound")


async def test_lists_come_in_pages(cluster: KubernetesCluster) -> None:
    for name in "abc":
        await cluster.create(CONFIG_MAP, config_map(name), "default")
    first = await cluster.list(CONFIG_MAP, "default", limit=2)
    rest = await cluster.list(CONFIG_MAP, "default", continue_token=first.continue_token)
    assert ([name_of(i) for i in first.items], first.remaining) == (["a", "b"], 1)
    assert ([name_of(i) for i in rest.items], rest.continue_token) == (["c"], "")
    assert {item["kind"] for item in first.items} == {"ConfigMap"}


async def test_a_watch_begins_with_what_there_is(cluster: KubernetesCluster) -> None:
    await cluster.create(CONFIG_MAP, config_map("a"), "default")
    collected = []
    async with aclosing(cluster.watch(CONFIG_MAP, "default", initial_events=True, fields="metadata.name=a")) as events:
        async for event in events:
            collected.append(event.type)
            if event.ends_initial_list:
                await cluster.patch(CONFIG_MAP, "a", "default", patch={"data": {"mode": "slow"}})
                await cluster.delete(CONFIG_MAP, "a", "default")
            if event.type is WatchEventType.DELETED:
                break
    assert collected == [WatchEventType.ADDED, WatchEventType.BOOKMARK, WatchEventType.MODIFIED, WatchEventType.DELETED]


async def test_a_version_of_long_ago_is_expired(server: Running, cluster: KubernetesCluster) -> None:
    await cluster.create(CONFIG_MAP, config_map("a"), "default")

    async def forget(embedded: object) -> None:
        embedded.machinery.store.compact()  # type: ignore[attr-defined]

    server.call(forget)
    with pytest.raises(ApiError) as caught:
        async for _ in cluster.watch(CONFIG_MAP, "default", resource_version="1"):
            pass
    assert caught.value.code == 410


async def test_a_watch_ends_quietly_when_its_time_is_up(cluster: KubernetesCluster) -> None:
    collected = [event async for event in cluster.watch(CONFIG_MAP, "default", timeout_seconds=1, bookmarks=False)]
    assert collected == []


async def test_a_write_on_an_old_version_is_a_conflict(cluster: KubernetesCluster) -> None:
    made = await cluster.create(CONFIG_MAP, config_map("a"), "default")
    old = {"resourceVersion": made["metadata"]["resourceVersion"]}
    await cluster.patch(CONFIG_MAP, "a", "default", patch={"data": {"mode": "slow"}})
    stale = cluster.patch(CONFIG_MAP, "a", "default", patch={"metadata": old, "data": {"mode": "x"}})
    assert await refused(stale) == (409, "Conflict")


async def test_a_write_to_another_uid_is_a_conflict(cluster: KubernetesCluster) -> None:
    await cluster.create(CONFIG_MAP, config_map("a"), "default")
    other = cluster.patch(CONFIG_MAP, "a", "default", patch={"metadata": {"uid": "another"}, "data": {"mode": "x"}})
    assert await refused(other) == (409, "Conflict")


async def test_a_delete_may_name_the_uid(cluster: KubernetesCluster) -> None:
    uid = uid_of(await cluster.create(CONFIG_MAP, config_map("a"), "default"))
    wrong = DeleteOptions(preconditions=Preconditions(uid="another"))
    right = DeleteOptions(propagation=DeletionPropagation.BACKGROUND, preconditions=Preconditions(uid=uid))
    assert await refused(cluster.delete(CONFIG_MAP, "a", "default", wrong)) == (409, "Conflict")
    await cluster.delete(CONFIG_MAP, "a", "default", right)
    assert (await cluster.list(CONFIG_MAP, "default")).items == []


async def test_pods_are_placed_and_their_logs_read(server: Running, cluster: KubernetesCluster) -> None:
    await cluster.create(NODE_KIND, {"metadata": {"name": NODE}})
    await cluster.create(POD, pod("speaks"), "default")
    await cluster.bind("speaks", "default", node=NODE)
    server.node.lines["speaks", "main"] = ["first", "last"]
    output = [chunk async for chunk in cluster.logs("speaks", "default", LogOptions(tail_lines=1))]
    assert b"".join(output) == b"last\n"


async def test_custom_kinds_are_found_by_discovery(cluster: KubernetesCluster) -> None:
    await cluster.create(CUSTOM_RESOURCE_DEFINITION, definition())
    found = await cluster.find_kind("example.com/v1", "Widget")
    assert found is not None
    assert (found.plural, found.namespaced) == ("widgets", True)
    assert await cluster.find_kind("example.com/v1", "Gadget") is None
    assert await cluster.find_kind("nowhere.org/v1", "Widget") is None


async def test_a_closed_port_is_unreachable(tmp_path: Path) -> None:
    async with open_client(ConnectionConfig("http://127.0.0.1:1")) as cluster:
        with pytest.raises(ConnectionError, match=r"http://127\.0\.0\.1:1 cannot be reached"):
            await cluster.get(CONFIG_MAP, "a", "default")


async def test_a_wrong_token_is_refused(server: Running) -> None:
    right = from_kubeconfig(server.kubeconfig)
    async with open_client(
        ConnectionConfig(right.url, {"Authorization": "Bearer wrong"}, right.ssl_context)
    ) as cluster:
        assert await refused(cluster.list(CONFIG_MAP, "default")) == (401, "Unauthorized")


def test_a_kubeconfig_names_its_contexts(server: Running) -> None:
    assert contexts(server.kubeconfig) == ["shoal"]
    assert from_kubeconfig(server.kubeconfig, context="shoal").namespace == "default"
    with pytest.raises(ConnectionConfigError, match="no entry 'other' in contexts"):
        from_kubeconfig(server.kubeconfig, context="other")
