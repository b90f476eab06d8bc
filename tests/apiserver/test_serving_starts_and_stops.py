"""The server on a real socket: where it listens, what it speaks, and how it ends."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from kit.odd_certificates import nameless
from kit.scripted_node import ScriptedNode
from shoal.apiserver import serving_certificate
from shoal.apiserver.app import build_application
from shoal.apiserver.server import Server, ServerListenError, tls_context
from shoal.cluster.embedded import EmbeddedCluster
from shoal.kube.kinds import CONFIG_MAP, POD

ECHO = "command=echo&stdout=1"
TOKEN = {"Authorization": "Bearer t"}


@pytest.fixture
async def server(cluster: EmbeddedCluster) -> AsyncIterator[Server]:
    made = Server(build_application(cluster, token="t"))
    await made.start()
    yield made
    await made.stop()


async def test_the_url_is_where_the_server_listens(server: Server) -> None:
    async with aiohttp.ClientSession(headers=TOKEN) as client, client.get(f"{server.url}/api/v1/pods") as answer:
        assert (answer.status, (await answer.json())["kind"]) == (200, "PodList")
        assert answer.headers["Date"]


async def test_a_connection_serves_many_requests(server: Server) -> None:
    connector = aiohttp.TCPConnector(limit=1)
    async with aiohttp.ClientSession(headers=TOKEN, connector=connector) as client:
        for _ in range(3):
            async with client.get(f"{server.url}/readyz") as answer:
                assert await answer.text() == "ok"
        assert len(server._state.connections) == 1


async def test_stopping_ends_open_watches(cluster: EmbeddedCluster) -> None:
    server = Server(build_application(cluster, token="t"))
    await server.start()
    async with aiohttp.ClientSession(headers=TOKEN) as client:
        answer = await client.get(f"{server.url}/api/v1/pods?watch=1&timeoutSeconds=999")
        await asyncio.wait_for(server.stop(), 60)
        with pytest.raises(aiohttp.ClientPayloadError):
            await answer.content.read()
        with pytest.raises(aiohttp.ClientConnectorError):
            await client.get(f"{server.url}/readyz")
    await server.stop()


async def test_stopping_cuts_the_log_of_a_silent_pod_and_calls_it_no_error(
    cluster: EmbeddedCluster, node: ScriptedNode
) -> None:
    await cluster.create(
        POD, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}, "default"
    )
    await cluster.bind("p", "default", node="node-1")
    node.more["p", "c"] = asyncio.Queue()
    server = Server(build_application(cluster, token="t"))
    await server.start()
    async with aiohttp.ClientSession(headers=TOKEN) as client:
        path = f"{server.url}/api/v1/namespaces/default/pods/p/log?follow=true"
        asking = asyncio.create_task(client.get(path))
        await node.listened.wait()
        await asyncio.wait_for(server.stop(), 60)
        answer = await asking
        assert answer.status == 200
        with pytest.raises(aiohttp.ClientPayloadError):
            await answer.content.read()


async def test_a_port_in_use_is_an_error(server: Server, cluster: EmbeddedCluster) -> None:
    with pytest.raises(ServerListenError) as refused:
        await Server(build_application(cluster, token="t"), port=server.port).start()
    port = server.port
    assert str(refused.value) == (
        f"port {port} of 127.0.0.1 is in use by another program (`ss -ltnp sport = :{port}` shows which). "
        "Choose another with --port, or leave it out for any that is free."
    )


async def test_an_address_of_another_machine_is_an_error(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    made = serving_certificate.ensure(tmp_path, "192.0.2.1")
    with pytest.raises(
        ServerListenError, match=r"192\.0\.2\.1 is no address of this machine\. Choose another with --bind"
    ):
        await Server(build_application(cluster, token="t"), "192.0.2.1", ssl=made.context()).start()


async def test_tls_uses_the_certificate_of_the_cluster(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    made = serving_certificate.ensure(tmp_path, "127.0.0.1")
    server = Server(build_application(cluster, token="t"), ssl=tls_context(made.certificate, made.key))
    await server.start()
    trusted = ssl.create_default_context(cadata=made.authority().decode())
    async with aiohttp.ClientSession() as client, client.get(f"{server.url}/version", ssl=trusted) as answer:
        assert (server.url[:8], answer.status) == ("https://", 200)
    await server.stop()


def test_an_unusable_certificate_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "cert.pem"
    file.write_text("no certificate")
    with pytest.raises(ServerListenError, match="cannot use the certificate"):
        tls_context(file, file)


def test_a_certificate_lists_its_names(tmp_path: Path) -> None:
    made = serving_certificate.ensure(tmp_path, "*.lab.example")
    assert made.names() == ("localhost", "127.0.0.1", "::1", "*.lab.example")
    assert [made.is_for(host) for host in ("127.0.0.1", "LOCALHOST", "a.lab.example", "0.0.0.0")] == [
        True,
        True,
        True,
        False,
    ]


def test_a_certificate_without_names_is_refused_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(ServerListenError, match=r"has no subjectAltName, and clients refuse .* -addext"):
        nameless(tmp_path).names()


async def test_a_body_cut_short_is_not_taken_for_a_whole_one(server: Server, cluster: EmbeddedCluster) -> None:
    whole = b"metadata: {name: half}\ndata: {a: b}\nimmutable: true\n"
    head = (
        "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer t\r\n"
        f"Content-Type: application/yaml\r\nContent-Length: {len(whole)}\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(head.encode() + whole[:-16])
    await writer.drain()
    raw: socket.socket = writer.get_extra_info("socket")
    raw.shutdown(socket.SHUT_WR)
    await reader.read()
    writer.close()
    assert server._state.tasks == set()
    assert (await cluster.list(CONFIG_MAP, "default")).items == []


async def test_an_unsupported_upgrade_is_rejected_with_the_supported_one(
    server: Server, cluster: EmbeddedCluster
) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    await cluster.create(POD, pod, "default")
    await cluster.bind("p", "default", node="node-1")
    url = f"{server.url}/api/v1/namespaces/default/pods/p/exec"
    headers = {**TOKEN, "Connection": "Upgrade", "Upgrade": "SPDY/3.1"}
    async with aiohttp.ClientSession(headers=headers) as client:
        problems = [
            (await (await client.post(f"{url}?{query}")).json())["message"] for query in (ECHO, f"{ECHO}&container=x")
        ]
    assert problems == [
        "exec runs over websockets here, not SPDY/3.1; kubectl uses them from version 1.31 on",
        "container x is not valid for pod p",
    ]


async def test_the_head_of_a_watch_ends_at_once(server: Server) -> None:
    async with (
        aiohttp.ClientSession(headers=TOKEN) as client,
        client.head(f"{server.url}/api/v1/pods?watch=1") as answer,
    ):
        assert answer.status == 200
