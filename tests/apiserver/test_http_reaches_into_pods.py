"""Logs and commands: what the API passes on to a pod's node."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from kit.asgi_client import Asgi
from kit.scripted_node import ScriptedNode
from shoal.apiserver.app import build_application
from shoal.cluster.embedded import EmbeddedCluster

PODS = "/api/v1/namespaces/default/pods"
V4, V5 = "v4.channel.k8s.io", "v5.channel.k8s.io"


@pytest.fixture
async def pod(http: Asgi, cluster: EmbeddedCluster, node: ScriptedNode) -> str:
    await make(http, "p", "main")
    await cluster.bind("p", "default", node="node-1")
    node.lines["p", "main"] = ["one", "two"]
    return f"{PODS}/p"


async def make(http: Asgi, name: str, *containers: str) -> None:
    listed = [{"name": c, "image": "python"} for c in containers]
    assert (await http("POST", PODS, {"metadata": {"name": name}, "spec": {"containers": listed}})).status == 201


async def test_a_log_is_plain_text(http: Asgi, pod: str) -> None:
    answer = await http("GET", f"{pod}/log")
    assert (answer.status, answer.header("content-type")) == (200, "text/plain; charset=utf-8")
    assert answer.body == b"one\ntwo\n"


async def test_a_log_stream_ends_when_its_client_disconnects(http: Asgi, pod: str, node: ScriptedNode) -> None:
    node.more["p", "main"] = asyncio.Queue()
    async with http.stream("GET", f"{pod}/log", follow="true") as log:
        await log.start()
        assert await log.write() == b"one\n"
        assert await log.write() == b"two\n"
        node.more["p", "main"].put_nowait("three")
        assert await log.write() == b"three\n"


async def test_a_follower_of_a_silent_container_can_leave(http: Asgi, pod: str, node: ScriptedNode) -> None:
    node.lines.clear()
    node.more["p", "main"] = asyncio.Queue()
    async with http.stream("GET", f"{pod}/log", follow="true"):
        await node.listened.wait()
    assert node.asked[-1].follow


async def test_before_a_pod_has_a_node_its_log_is_empty(http: Asgi) -> None:
    await make(http, "waiting", "main")
    answer = await http("GET", f"{PODS}/waiting/log")
    assert (answer.status, answer.body) == (200, b"")


async def test_a_pod_whose_node_is_away_is_an_error(http: Asgi, pod: str, cluster: EmbeddedCluster) -> None:
    cluster.nodes.clear()
    answer = await http("GET", f"{pod}/log")
    assert (answer.status, answer.json["reason"]) == (503, "ServiceUnavailable")
    assert "node-1" in answer.json["message"]


REFUSED = {
    "which container": ({}, 400, "a container name must be specified for pod two, choose one of: [a b]"),
    "no such container": ({"container": "c"}, 400, "container c is not valid for pod two"),
    "bad time": ({"container": "a", "sinceTime": "noon"}, 400, 'sinceTime: Invalid value: "noon"'),
    "two limits": (
        {"container": "a", "sinceTime": "2030-01-01T00:00:00Z", "sinceSeconds": "5"},
        422,
        "at most one of `sinceTime` or `sinceSeconds` may be specified",
    ),
    "no bytes": ({"container": "a", "limitBytes": "0"}, 422, "limitBytes: Invalid value: 0: must be greater than 0"),
}


@pytest.mark.parametrize(("query", "code", "message"), REFUSED.values(), ids=REFUSED)
async def test_a_log_that_cannot_be_read_is_an_error(
    http: Asgi, query: dict[str, str], code: int, message: str
) -> None:
    await make(http, "two", "a", "b")
    answer = await http("GET", f"{PODS}/two/log", **query)
    assert answer.status == code
    assert message in answer.json["message"]


async def frames(socket: Any) -> list[tuple[int, bytes]]:
    """Everything until the end of the command: (channel, data)."""
    found = []
    while (message := await socket.next())["type"] == "websocket.send":
        found.append((message["bytes"][0], message["bytes"][1:]))
    assert message["type"] == "websocket.close"
    return found


@pytest.mark.parametrize(("offered", "taken"), [([V5, V4], V5), ([V4], V4), (["x", V5], V5)], ids=str)
async def test_the_newest_common_protocol_is_chosen(http: Asgi, pod: str, offered: list[str], taken: str) -> None:
    async with http.socket(f"{pod}/exec", offered, command=["echo", "hi"], stdout="1") as socket:
        assert await socket.next() == {"type": "websocket.accept", "subprotocol": taken}
        output, ending = await frames(socket)
    assert output == (1, b"hi\n")
    assert (ending[0], json.loads(ending[1])) == (3, {"metadata": {}, "status": "Success"})


async def test_the_exit_code_comes_in_the_status(http: Asgi, pod: str) -> None:
    async with http.socket(f"{pod}/exec", [V5], command=["complain", "7"], stderr="1") as socket:
        await socket.next()
        output, (_, ending) = await frames(socket)
    assert output == (2, b"7\n")
    status = json.loads(ending)
    assert (status["status"], status["reason"]) == ("Failure", "NonZeroExitCode")
    assert status["details"] == {"causes": [{"reason": "ExitCode", "message": "7"}]}


async def test_closing_stdin_is_seen_by_the_command(http: Asgi, pod: str) -> None:
    async with http.socket(f"{pod}/exec", [V5], command=["cat"], stdin="1", stdout="1") as socket:
        await socket.next()
        await socket.send(b"\x00some")
        await socket.send(b"\x00 text")
        await socket.send(b"\xff\x00")
        assert [data for channel, data in await frames(socket) if channel == 1] == [b"some", b" text"]


async def test_a_terminal_receives_its_size_and_unknown_messages_are_ignored(http: Asgi, pod: str) -> None:
    async with http.socket(f"{pod}/exec", [V5], command=["size"], tty="1", stdin="1", stdout="1") as socket:
        await socket.next()
        for message in (b"", b"\x04", b"\x04{}", b"\x04[1]", b"\x09?", b'\x04{"Width":100,"Height":30}'):
            await socket.send(message)
        assert (1, b"100x30") in await frames(socket)


async def test_output_of_unrequested_streams_is_dropped(http: Asgi, pod: str) -> None:
    async with http.socket(f"{pod}/exec", [V5], command=["complain", "0"], stdout="1") as socket:
        await socket.next()
        assert [channel for channel, _ in await frames(socket)] == [3]


async def test_a_command_is_stopped_when_its_client_leaves(http: Asgi, pod: str, node: ScriptedNode) -> None:
    async with http.socket(f"{pod}/exec", [V5], command=["wait"], stdout="1") as socket:
        await socket.next()
        await socket.next()
    assert node.stopped == ["wait"]


@pytest.mark.parametrize(("count", "size"), [(1000, 1), (100, 100_000)], ids=["many small pieces", "megabytes"])
async def test_a_client_that_wrote_much_unread_is_still_seen_to_leave(
    http: Asgi, pod: str, node: ScriptedNode, count: int, size: int
) -> None:
    async with http.socket(f"{pod}/exec", [V5], command=["wait"], stdin="1", stdout="1") as socket:
        await socket.next()
        for _ in range(count):
            await socket.send(b"\x00" + b"x" * size)
    assert node.stopped == ["wait"]


async def test_a_command_that_reads_slowly_gets_all_that_was_piped_into_it(http: Asgi, pod: str) -> None:
    pieces = [bytes([number]) * 100_000 for number in range(1, 40)]
    async with http.socket(f"{pod}/exec", [V5], command=["cat"], stdin="1", stdout="1") as socket:
        await socket.next()
        for piece in pieces:
            await socket.send(b"\x00" + piece)
        await socket.send(b"\xff\x00")
        assert b"".join(data for channel, data in await frames(socket) if channel == 1) == b"".join(pieces)


async def test_a_failing_node_is_reported_in_the_status(http: Asgi, pod: str) -> None:
    async with http.socket(f"{pod}/exec", [V5], command=["nonsense"], stdout="1") as socket:
        await socket.next()
        [(channel, ending)] = await frames(socket)
    assert (channel, json.loads(ending)["code"]) == (3, 500)


EXEC_REFUSED: dict[str, tuple[str, list[str], dict[str, Any], int]] = {
    "no command": (f"{PODS}/p/exec", [V5], {"stdout": "1"}, 400),
    "no stream": (f"{PODS}/p/exec", [V5], {"command": "echo"}, 400),
    "tty with stderr": (f"{PODS}/p/exec", [V5], {"command": "echo", "tty": "1", "stderr": "1"}, 400),
    "no protocol": (f"{PODS}/p/exec", ["channel.k8s.io"], {"command": "echo", "stdout": "1"}, 400),
    "no pod": (f"{PODS}/ghost/exec", [V5], {"command": "echo", "stdout": "1"}, 404),
    "no exec": (f"{PODS}/p/lunch", [V5], {}, 404),
}


@pytest.mark.parametrize("case", EXEC_REFUSED)
async def test_a_command_that_cannot_run_is_refused_before_the_upgrade(http: Asgi, pod: str, case: str) -> None:
    path, protocols, query, code = EXEC_REFUSED[case]
    async with http.socket(path, protocols, **query) as socket:
        start, body = await socket.next(), await socket.next()
    assert (start["type"], start["status"]) == ("websocket.http.response.start", code)
    assert json.loads(body["body"])["kind"] == "Status"


async def test_a_closing_server_ends_commands(cluster: EmbeddedCluster, pod: str, node: ScriptedNode) -> None:
    app = build_application(cluster, token="t")
    async with Asgi(app, "t").socket(f"{pod}/exec", [V5], command=["wait"], stdout="1") as socket:
        await socket.next()
        await socket.next()
        app.end_streams()
        await socket.task
    assert node.stopped == ["wait"]


async def test_a_command_without_an_upgrade_is_rejected(http: Asgi, pod: str) -> None:
    answer = await http("POST", f"{pod}/exec", command="echo", stdout="1")
    assert (answer.status, answer.json["message"]) == (400, "Upgrade request required")
