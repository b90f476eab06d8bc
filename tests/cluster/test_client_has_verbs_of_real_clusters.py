"""What only the client of real clusters has: scale, evictions, collections, discovery, rights, commands."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kit.cluster_backends import Reached, define_widgets, new_namespace
from kit.cluster_objects import config_map, pod
from kit.control_plane import ControlPlane
from kit.embedded_api_server import NODE, Running
from kit.eventually import answer_becomes
from shoal.cluster.client import DeleteOptions, ExecRequest, LogOptions, Streams
from shoal.cluster.kubeconfig import from_kubeconfig
from shoal.cluster.kubernetes import KubernetesCluster, open_client
from shoal.cluster.kubernetes.field_decoders import WithoutManagedFields
from shoal.kube.errors import ApiError
from shoal.kube.kinds import CONFIG_MAP, POD, SECRET, Kind
from shoal.kube.objects import name_of

BUDGET = Kind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")


async def test_a_custom_kind_is_discovered_and_scaled(reached: Reached) -> None:
    cluster, namespace = reached.cluster, reached.namespace
    kind = await define_widgets(cluster, scale=True, versions=("v1", "v2"))
    # Another part of a real server puts up what is discovered, before or after the path that answers.
    found = await answer_becomes(lambda: cluster.find_kind(f"{kind.group}/v1", "Widget"), bool)
    assert found is not None
    assert (found.plural, found.namespaced, found.subresources) == ("widgets", True, frozenset({"status", "scale"}))
    served = await answer_becomes(lambda: cluster.served_versions(kind.group, "Widget"), lambda each: len(each) == 2)
    assert [each.version for each in served] == ["v2", "v1"]
    assert await cluster.served_versions("nowhere.example.com", "Widget") == []
    assert await cluster.find_kind(f"{kind.group}/v1", "Gadget") is None
    assert await cluster.find_kind("nowhere.example.com/v1", "Widget") is None

    await cluster.create(found, {"metadata": {"name": "w"}, "spec": {"replicas": 1}}, namespace)
    await cluster.patch(found, "w", namespace, patch={"status": {"replicas": 1}}, subresource="status")
    scaled = await cluster.scale(found, "w", namespace, 3)
    assert (scaled["kind"], scaled["spec"], scaled["status"]["replicas"]) == ("Scale", {"replicas": 3}, 1)
    assert (await cluster.get(found, "w", namespace, subresource="scale"))["spec"] == {"replicas": 3}
    assert (await cluster.get(found, "w", namespace))["spec"]["replicas"] == 3


async def test_applying_makes_and_changes(reached: Reached) -> None:
    cluster, namespace = reached.cluster, reached.namespace
    await cluster.apply(CONFIG_MAP, config_map("a", {"x": "1", "y": "2"}), namespace)
    changed = await cluster.apply(CONFIG_MAP, config_map("a", {"x": "3"}), namespace)
    assert changed["data"] == {"x": "3"}


async def test_a_collection_goes_at_once(reached: Reached) -> None:
    cluster, namespace = reached.cluster, reached.namespace
    for name, app in (("a", "x"), ("b", "y"), ("c", "x")):
        await cluster.create(CONFIG_MAP, config_map(name, labels={"app": app}), namespace)
    await cluster.delete_collection(CONFIG_MAP, namespace, labels="app=x")
    assert [name_of(item) for item in (await cluster.list(CONFIG_MAP, namespace, labels="app")).items] == ["b"]
    with pytest.raises(ValueError, match="one namespace at a time"):
        await cluster.delete_collection(CONFIG_MAP, "")


async def test_an_eviction_deletes(reached: Reached) -> None:
    cluster, namespace = reached.cluster, reached.namespace
    await cluster.create(POD, pod("p"), namespace)
    await cluster.evict("p", namespace, DeleteOptions(grace_seconds=0))
    with pytest.raises(ApiError) as caught:
        await cluster.get(POD, "p", namespace)
    assert caught.value.code == 404


async def test_the_version_is_young_enough(reached: Reached) -> None:
    version = await reached.cluster.version()
    assert (version.major, version.is_supported) == (1, True)
    assert await reached.cluster.require_supported() == version


async def test_access_is_reviewed(reached: Reached) -> None:
    assert (await reached.cluster.check_access("create", POD, reached.namespace, subresource="exec")).is_allowed


async def test_shapes_leave_out_unread_fields(reached: Reached) -> None:
    whole = await reached.cluster.create(POD, pod("p"), reached.namespace)
    async with open_client(from_kubeconfig(reached.kubeconfig), shapes={POD: WithoutManagedFields}) as cluster:
        (listed,) = (await cluster.list(POD, reached.namespace)).items
        async with aclosing(cluster.watch(POD, reached.namespace, initial_events=True)) as events:
            watched = (await anext(events)).object
            assert (await anext(events)).ends_initial_list
        got = await cluster.get(POD, "p", reached.namespace)
    kept = {name: value for name, value in whole["metadata"].items() if name != "managedFields"}
    assert listed == watched == {**whole, "metadata": kept}
    assert got == whole  # one object is read whole


async def test_long_answers_may_come_compressed(reached: Reached) -> None:
    whole = await reached.cluster.create(CONFIG_MAP, config_map("long", {"text": "word " * 60_000}), reached.namespace)
    near = from_kubeconfig(reached.kubeconfig)
    async with open_client(replace(near, compression=True)) as cluster:
        assert (near.compression, await cluster.get(CONFIG_MAP, "long", reached.namespace)) == (False, whole)


# Commands and logs, where there is a node: the embedded cluster's


@pytest.fixture
async def speaking(served: Running) -> AsyncIterator[tuple[KubernetesCluster, str]]:
    async with open_client(from_kubeconfig(served.kubeconfig)) as cluster:
        namespace = await new_namespace(cluster)
        await cluster.create(POD, pod("p"), namespace)
        await cluster.bind("p", namespace, node=NODE)
        yield cluster, namespace


class ScriptedStreams:
    def __init__(self, *words: bytes, sizes: tuple[tuple[int, int], ...] = ()) -> None:
        self.out, self.err = b"", b""
        self._words, self._sizes = words, sizes

    async def _stdout(self, data: bytes) -> None:
        self.out += data

    async def _stderr(self, data: bytes) -> None:
        self.err += data

    async def _give(self, several: tuple[Any, ...]) -> AsyncIterator[Any]:
        for each in several:
            yield each

    def streams(self) -> Streams:
        stdin = self._give(self._words) if self._words else None
        return Streams(self._stdout, self._stderr, stdin, self._give(self._sizes) if self._sizes else None)


async def test_a_command_runs_in_a_container(speaking: tuple[KubernetesCluster, str]) -> None:
    cluster, namespace = speaking
    echo, complain, cat, size = (
        ScriptedStreams(),
        ScriptedStreams(),
        ScriptedStreams(b"one ", b"two"),
        ScriptedStreams(sizes=((80, 24),)),
    )
    codes = [
        await cluster.execute("p", namespace, ExecRequest("main", ("echo", "a b", "&c")), echo.streams()),
        await cluster.execute("p", namespace, ExecRequest("", ("complain", "bad", "3")), complain.streams()),
        await cluster.execute("p", namespace, ExecRequest("main", ("cat",)), cat.streams()),
        await cluster.execute("p", namespace, ExecRequest("main", ("size",), tty=True), size.streams()),
    ]
    assert codes == [0, 3, 0, 0]
    assert [echo.out, complain.err, cat.out, size.out] == [b"a b &c\n", b"bad 3\n", b"one two", b"80x24"]


async def test_a_command_that_cannot_run_is_an_error(reached: Reached) -> None:
    cluster, namespace = reached.cluster, reached.namespace
    await cluster.create(POD, pod("p"), namespace)
    for name, code in (("missing", 404), ("p", 400)):
        with pytest.raises(ApiError) as caught:
            await cluster.execute(name, namespace, ExecRequest("main", ("true",)), ScriptedStreams().streams())
        assert (caught.value.code, bool(caught.value.message)) == (code, True)


async def test_a_log_is_read(served: Running, speaking: tuple[KubernetesCluster, str]) -> None:
    cluster, namespace = speaking
    served.node.lines["p", "main"] = ["first", "last"]
    output = [chunk async for chunk in cluster.logs("p", namespace, LogOptions(tail_lines=1))]
    assert b"".join(output) == b"last\n"


# Rights, where there are any: the real server's


@pytest.mark.kubernetes
async def test_a_budget_may_forbid_an_eviction(plane: ControlPlane) -> None:
    async with open_client(from_kubeconfig(Path(plane.kubeconfig))) as cluster:
        namespace = await new_namespace(cluster)
        spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}
        await cluster.create(BUDGET, {"metadata": {"name": "b"}, "spec": spec}, namespace)
        await cluster.create(POD, pod("p", node="n1", labels={"app": "x"}), namespace)
        await cluster.patch(POD, "p", namespace, patch={"status": {"phase": "Running"}}, subresource="status")
        with pytest.raises(ApiError) as caught:
            await cluster.evict("p", namespace)
    assert (caught.value.code, caught.value.causes[0].reason) == (429, "DisruptionBudget")


@pytest.mark.kubernetes
async def test_missing_rights_are_named_with_verb_and_kind(plane: ControlPlane, tmp_path: Path) -> None:
    config = json.loads(Path(plane.kubeconfig).read_text())
    config["users"][0]["user"]["as"] = "nobody-special"
    (tmp_path / "config").write_text(json.dumps(config))
    async with open_client(from_kubeconfig(tmp_path / "config")) as cluster:
        with pytest.raises(ApiError) as caught:
            await cluster.list(SECRET, "default")
        assert not (await cluster.check_access("list", SECRET, "default")).is_allowed
    assert (caught.value.code, caught.value.message) == (
        403,
        'secrets is forbidden: User "nobody-special" cannot list resource "secrets" in API group "" in the namespace '
        '"default"',
    )
