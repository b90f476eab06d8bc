"""Servers of Kubernetes 1.28 lack what the client would rather use; it does with what they have.

Lists do not stream there, so they come in pages and a watch follows; commands are spoken about in version 4, which
cannot say that input has ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress

import pytest

from kit.cluster_objects import config_map, pod
from kit.embedded_api_server import NODE, Running, serve
from kit.framework_notation import fw, role
from kit.hollow_nodes import HollowNodes
from kit.old_api_server import Older
from kit.operator_namespace import FRAMEWORK, state_of, until
from kit.operator_process import operator
from kit.pod_behavior import exits
from shoal.cluster.client import DeleteOptions, ExecRequest, Streams
from shoal.cluster.exec_streams import V4, V5
from shoal.cluster.informer import Change, Informer
from shoal.cluster.kubeconfig import from_kubeconfig
from shoal.cluster.kubernetes import KubernetesCluster, open_client
from shoal.cluster.kubernetes.discovery_client import Version
from shoal.kube.errors import ApiError
from shoal.kube.kinds import CONFIG_MAP, POD
from shoal.kube.kinds import NODE as NODE_KIND


@pytest.fixture(scope="module")
def older() -> list[Older]:
    return []


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, older: list[Older]) -> Iterator[Running]:
    def behind(app: object) -> Older:
        older.append(Older(app))
        return older[0]

    with serve(tmp_path_factory.mktemp("older"), behind=behind) as running:
        yield running


@pytest.fixture
async def cluster(server: Running) -> AsyncIterator[KubernetesCluster]:
    async with open_client(from_kubeconfig(server.kubeconfig)) as made:
        yield made


async def test_the_oldest_server_that_is_served_is_taken(cluster: KubernetesCluster) -> None:
    assert await cluster.require_supported() == Version(1, 28, "v1.28.15")


async def test_a_copy_is_listed_in_pages_and_then_followed(cluster: KubernetesCluster, older: list[Older]) -> None:
    names = [f"many-{number}" for number in range(502)]  # more than a page
    await asyncio.gather(*(cluster.create(CONFIG_MAP, config_map(name), "default") for name in names))
    changes: asyncio.Queue[Change] = asyncio.Queue()
    before = len(older[0].refused)
    copy = Informer(cluster, CONFIG_MAP, "default", on_change=changes.put_nowait)
    running = asyncio.create_task(copy.run())
    await copy.synced.wait()
    assert {key.name for key in copy.objects} >= set(names)
    while not changes.empty():
        changes.get_nowait()
    await cluster.create(CONFIG_MAP, config_map("later"), "default")
    assert (await changes.get()).key.name == "later"
    await cluster.delete(CONFIG_MAP, "later", "default")
    assert (await changes.get()).new is None
    running.cancel()
    assert older[0].refused[before:] == ["/api/v1/namespaces/default/configmaps"]  # asked once, and not again


# --- commands --------------------------------------------------------------------------------------------------------


@pytest.fixture
async def running_pod(server: Running, cluster: KubernetesCluster) -> AsyncIterator[str]:
    await cluster.create(POD, pod("p"), "default")
    with suppress(ApiError):  # it is there from the test before
        await cluster.create(NODE_KIND, {"metadata": {"name": NODE}})
    await cluster.bind("p", "default", node=NODE)
    yield "p"
    await cluster.delete(POD, "p", "default", DeleteOptions(grace_seconds=0))


class Ends:
    """The near ends of a command's streams."""

    def __init__(self, *words: bytes) -> None:
        self.out, self.err = b"", b""
        self._words = words
        self.all_said = asyncio.Event()

    async def _take_out(self, data: bytes) -> None:
        self.out += data

    async def _take_err(self, data: bytes) -> None:
        self.err += data

    async def _say(self) -> AsyncIterator[bytes]:
        for word in self._words:
            yield word
        self.all_said.set()

    @property
    def streams(self) -> Streams:
        return Streams(self._take_out, self._take_err, stdin=self._say() if self._words else None)


@pytest.mark.parametrize(
    ("command", "code", "out", "err"),
    [(("echo", "hi"), 0, b"hi\n", b""), (("complain", "no", "7"), 7, b"", b"no 7\n")],
    ids=["that succeeds", "that fails"],
)
async def test_a_command_is_run_in_version_4(
    cluster: KubernetesCluster, older: list[Older], running_pod: str, command: tuple[str, ...], code: int, out: bytes,
    err: bytes,
) -> None:  # fmt: skip
    ends = Ends()
    assert await cluster.execute(running_pod, "default", ExecRequest("main", command), ends.streams) == code
    assert (ends.out, ends.err) == (out, err)
    assert older[0].offered[-1] == [V5, V4]


async def test_input_reaches_the_command_and_its_end_does_not(
    server: Running, cluster: KubernetesCluster, running_pod: str
) -> None:
    """Nothing of version 5 is sent, so the command goes on; who asked for it has to leave."""
    arrived = asyncio.Event()
    ends = Ends(b"some ", b"text")

    async def take(data: bytes) -> None:
        ends.out += data
        if ends.out == b"some text":
            arrived.set()

    streams = Streams(take, take, stdin=ends.streams.stdin)
    asking = asyncio.create_task(cluster.execute(running_pod, "default", ExecRequest("main", ("cat",)), streams))
    await arrived.wait()
    await ends.all_said.wait()
    assert not asking.done()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(server.node.left.wait(), server.loop))
    assert server.node.stopped == ["cat"]


# --- everything together ---------------------------------------------------------------------------------------------


async def test_the_operator_runs_a_job_there(server: Running, cluster: KubernetesCluster, older: list[Older]) -> None:
    """From the definition to the last status."""
    words, before = ["--namespace", "default", "--dialects", "framework"], len(older[0].refused)
    async with (
        HollowNodes(cluster, namespace="default").running(),
        operator(server.kubeconfig, *words) as running,
    ):
        await running.says("leading")
        await cluster.create(FRAMEWORK, fw("old", role(number=2, fate=exits(0, after=0.05))), "default")
        ended = await until(
            cluster, FRAMEWORK, "old", "default", lambda found: found is not None and state_of(found) == "Completed"
        )
        assert await running.stop() == 0
    assert ended is not None
    assert ended["status"]["attemptStatus"]["completionStatus"]["code"] == 0
    assert len(older[0].refused) > before  # it had hoped for more
