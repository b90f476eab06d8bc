"""On a real Kubernetes with a node: logs are followed, commands run in containers, and certificates let people in."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from kit.cluster_backends import new_namespace
from kit.control_plane import ControlPlane
from shoal.cluster.client import DeleteOptions, ExecRequest, LogOptions, Streams
from shoal.cluster.kubeconfig import from_kubeconfig
from shoal.cluster.kubernetes import KubernetesCluster, open_client
from shoal.kube.errors import ApiError
from shoal.kube.kinds import NAMESPACE, POD

pytestmark = [pytest.mark.kubernetes, pytest.mark.processes]


@pytest.fixture
async def speaking(kubernetes_plane: ControlPlane) -> AsyncIterator[tuple[KubernetesCluster, str]]:
    """A pod that has said two words and waits to be asked to leave."""
    async with open_client(from_kubeconfig(Path(kubernetes_plane.kubeconfig))) as cluster:
        namespace = await new_namespace(cluster)
        container = {"name": "main", "image": "any", "command": ["sh", "-c", "echo first; echo second; exec sleep 999"]}
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [container], "terminationGracePeriodSeconds": 0}}
        version = (await cluster.create(POD, pod, namespace))["metadata"]["resourceVersion"]
        async with aclosing(cluster.watch(POD, namespace, resource_version=version)) as events:
            async for event in events:
                if event.object["status"].get("phase") == "Running":
                    break
        yield cluster, namespace
        await cluster.delete(POD, "p", namespace, DeleteOptions(grace_seconds=0))
        await cluster.delete(NAMESPACE, namespace)


async def test_a_log_is_read_and_followed(speaking: tuple[KubernetesCluster, str]) -> None:
    cluster, namespace = speaking
    received = b""
    async with aclosing(cluster.logs("p", namespace, LogOptions(follow=True))) as output:
        async for chunk in output:
            received += chunk
            if received.endswith(b"second\n"):
                break
    assert received == b"first\nsecond\n"
    last = [chunk async for chunk in cluster.logs("p", namespace, LogOptions(tail_lines=1))]
    assert b"".join(last) == b"second\n"


async def test_commands_run_in_the_container(speaking: tuple[KubernetesCluster, str]) -> None:
    cluster, namespace = speaking
    output: dict[str, bytes] = {"out": b"", "err": b""}

    async def run(*command: str, stdin: list[bytes] | None = None) -> tuple[int, bytes, bytes]:
        output.update(out=b"", err=b"")

        async def give(words: list[bytes]) -> AsyncIterator[bytes]:
            for word in words:
                yield word

        streams = Streams(hear("out"), hear("err"), give(stdin) if stdin else None)
        code = await cluster.execute("p", namespace, ExecRequest("main", command), streams)
        return code, output["out"], output["err"]

    def hear(which: str) -> Any:
        async def take(data: bytes) -> None:
            output[which] += data

        return take

    assert await run("sh", "-c", "echo out; echo err >&2; exit 3") == (3, b"out\n", b"err\n")
    assert await run("cat", stdin=[b"one ", b"two"]) == (0, b"one two", b"")
    with pytest.raises(ApiError) as caught:
        await cluster.execute("p", namespace, ExecRequest("other", ("true",)), Streams(hear("out"), hear("err")))
    assert (caught.value.code, caught.value.reason) == (400, "BadRequest")


async def test_a_certificate_lets_in(kubernetes_plane: ControlPlane, tmp_path: Path) -> None:
    clients = Path(kubernetes_plane.folder) / "clients"
    config = json.loads(Path(kubernetes_plane.kubeconfig).read_text())
    shown = {"client-certificate": str(clients / "kubelet.crt"), "client-key": str(clients / "kubelet.key")}
    config["users"][0]["user"] = shown
    (tmp_path / "config").write_text(json.dumps(config))
    async with open_client(from_kubeconfig(tmp_path / "config")) as cluster:
        assert (await cluster.get(NAMESPACE, "default"))["status"] == {"phase": "Active"}
