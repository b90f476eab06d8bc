"""Nothing a pod connects to loops, takes the connections of other pods, or reaches the machine's loopback."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from kit.eventually import answer_becomes
from kit.sandboxes import Place, Pod, opened
from shoal.node.host_checks import probe_host
from shoal.node.sandbox import egress_outside, fault_log, network_client, network_process
from shoal.node.sandbox.connection_limits import CONNECTIONS_PER_POD
from shoal.node.sandbox.egress_inside import PROXY_PORT, REDIRECT_PORT
from shoal.node.sandbox.fault_log import FaultLog
from shoal.node.sandbox.interface import Network
from shoal.node.sandbox.sandbox_manager import GATEWAY
from shoal.node.sandbox.shim_client import wait_gone

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(not probe_host()["network"], reason="pods cannot have networks of their own here"),
]

GREET = """
import os, socket
server = socket.create_server(("", 9000), backlog=64)
open(os.environ["NEWS"], "w").write("listening\\n")
while True:
    connection, _ = server.accept()
    connection.sendall(b"hello")
    connection.close()
"""
# Says what a tunnel through the proxy is answered, without any idea of what a client would send there.
TUNNEL = """
import socket, sys
with socket.create_connection(("10.77.0.1", 3128)) as sock:
    sock.sendall(b"CONNECT %s HTTP/1.1\\r\\n\\r\\n" % sys.argv[1].encode("utf-8", "surrogateescape"))
    print(sock.makefile("rb").read().decode())
"""
# Opens connections to the proxy and says nothing on them, until more than may be open have been reset.
HOARD = """
import select, socket, sys, threading
most, more = int(sys.argv[1]), 20
poll, socks = select.poll(), {}
for _ in range(most + more):
    sock = socket.create_connection(("10.77.0.1", 3128))
    socks[sock.fileno()] = sock
    poll.register(sock, select.POLLIN | select.POLLHUP)
ended = set()
while len(ended) < more:
    for fd, _ in poll.poll():
        ended.add(fd)
        poll.unregister(fd)
print(len(ended), flush=True)
open(sys.argv[2], "w").write("full\\n")
threading.Event().wait()
"""


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with opened(tmp_path, Network.ISOLATED) as place:
        yield place


async def server(place: Place, name: str = "server") -> Pod:
    pod = await place.pod(name)
    news = place.news()
    await pod.python(GREET, env={"NEWS": str(news.path)})
    assert await news.line() == "listening"
    return pod


async def heard(pod: Pod, host: str, port: int) -> bytes:
    """All that a server says until it ends the connection; a reset is raised."""
    sock = await pod.sandbox.dial(host, port, timeout=99)
    reader, writer = await asyncio.open_connection(sock=sock)
    try:
        return await reader.read()
    finally:
        writer.close()


async def heard_or_reset(pod: Pod, host: str, port: int) -> bytes:
    try:
        return await heard(pod, host, port)
    except ConnectionResetError:
        return b"reset"


async def tunnel(pod: Pod, target: str, *, name: str = "tunnel.0") -> str:
    await pod.sandbox.start(pod.process(sys.executable, "-I", "-c", TUNNEL, target, name=name))
    await pod.sandbox.wait(name)
    return pod.logged(name)


def faults(place: Place, log: str = network_process.LOG) -> list[str]:
    path = place.root / "sandboxes" / log
    return [line.split(" ", 2)[2] for line in path.read_text().splitlines()] if path.exists() else []


# Loops


async def test_a_connection_to_a_port_of_the_gateway_itself_is_reset(place: Place) -> None:
    pod = await place.pod()
    for _ in range(50):
        with pytest.raises(ConnectionResetError):
            await heard(pod, GATEWAY, REDIRECT_PORT)

    assert len(faults(place)) < 10


@pytest.mark.parametrize("port", [PROXY_PORT, REDIRECT_PORT, 53, 1])
async def test_the_proxy_does_not_connect_to_the_gateway(place: Place, port: int) -> None:
    pod = await place.pod()
    answer = await tunnel(pod, f"{GATEWAY}:{port}")

    assert answer.startswith("HTTP/1.1 502 ")
    assert f"{GATEWAY}:{port} is an address of the pods' network itself" in answer


async def test_services_that_lead_to_services_reset_and_the_others_go_on(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    good = await server(place)
    client = await place.pod("client")
    itself, there, back, mixed = [(place.service_address(number), 80) for number in range(1, 5)]
    table = {
        itself: (itself,),
        there: (back,),
        back: (there,),
        mixed: (itself, (GATEWAY, REDIRECT_PORT), (good.ip, 9000)),
    }
    await place.keepers.serve(table)
    await place.keepers.serve(table)
    for address in (itself, there, back):
        with pytest.raises(ConnectionResetError):
            await heard(client, *address)

    assert await heard(client, *mixed) == b"hello"
    told = [record.getMessage() for record in caplog.records]
    assert (
        f"service address {itself[0]}:80 leads to the virtual address {itself[0]}:80; that backend is passed over"
        in told
    )
    assert len(told) == len(set(told))


async def test_a_service_that_leads_to_itself_is_reset_on_the_machines_own_network_too(tmp_path: Path) -> None:
    async with opened(tmp_path, Network.LOOPBACK) as place:
        client = await place.pod("client")
        itself = (place.service_address(1), 8080)
        await place.keepers.serve({itself: (itself,)})
        with pytest.raises(ConnectionResetError):
            await heard(client, *itself)


async def test_a_service_is_reached_through_the_proxy_without_a_connection_to_itself(place: Place) -> None:
    good = await server(place)
    client = await place.pod("client")
    service = (place.service_address(1), 80)
    await place.keepers.serve({service: ((good.ip, 9000),)})

    assert (await tunnel(client, f"{service[0]}:80")).startswith(
        "HTTP/1.1 200 Connection established\r\n\r\nhello".replace("\r", "")
    )


# The machine's loopback


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.9.9.9",
        "127.1",
        "0.0.0.0",
        "0",
        "2130706433",
        "0x7f000001",
        "017700000001",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:0.0.0.0]",
        "localhost",
        "LOCALHOST.",
        "any.localhost",
    ],
)
@pytest.mark.parametrize("upstream", [False, True], ids=["directly", "by another proxy"])
async def test_a_tunnel_does_not_reach_the_loopback_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str, upstream: bool
) -> None:
    reached: list[bytes] = []

    async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.append(b"somebody")
        writer.write(b"HTTP/1.1 200 secret of the machine\r\n\r\n")
        writer.close()

    listening = await asyncio.start_server(note, ["127.0.0.1", "::1"], 0)
    port = listening.sockets[0].getsockname()[1]
    if upstream:
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{port}")
        monkeypatch.setenv("no_proxy", "")
    async with opened(tmp_path, Network.ISOLATED) as place:
        pod = await place.pod()
        answer = await tunnel(pod, f"{host}:{port}")
    listening.close()

    assert answer.startswith("HTTP/1.1 400 ")
    assert "is the pod itself" in answer
    assert reached == []


async def test_a_name_that_leads_to_the_loopback_of_the_machine_is_refused(place: Place) -> None:
    names = [line.split("#")[0].split() for line in Path("/etc/hosts").read_text().splitlines()]
    local = [words[1] for words in names if len(words) > 1 and words[0].startswith("127.") and words[1] != "localhost"]
    if not local:
        pytest.skip("the machine's hosts file has no other name for its loopback")
    pod = await place.pod()

    assert "is the pod itself" in await tunnel(pod, f"{local[0]}:22")


def test_a_name_of_the_machine_is_not_given_to_another_proxy_which_may_run_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.1.1 workbench.lab workbench\n::1 six\n10.0.0.7 other\nnonsense odd\n")
    monkeypatch.setattr(egress_outside, "HOSTS_FILE", str(hosts))
    names = ["workbench", "WORKBENCH.", "workbench.lab", "six", "other", "odd", "unknown"]

    assert [name for name in names if egress_outside.is_loopback_name(name)] == names[:4]


@pytest.mark.parametrize("host", ["a" * 70 + ".example", "a..b", "x" * 300])
async def test_an_invalid_host_name_gets_an_error_message(place: Place, host: str) -> None:
    pod = await place.pod()
    answer = await tunnel(pod, f"{host}:80")

    assert answer.split(" ")[1] in ("400", "502")
    assert faults(place, "doorway.log") == []


# Limits


async def test_a_pod_with_too_many_connections_leaves_the_others_theirs(place: Place) -> None:
    good = await server(place)
    greedy, other = await place.pod("greedy"), await place.pod("other")
    service = (place.service_address(1), 80)
    await place.keepers.serve({service: ((good.ip, 9000),)})
    news = place.news()
    argv = ("-I", "-c", HOARD, str(CONNECTIONS_PER_POD), str(news.path))
    await greedy.sandbox.start(greedy.process(sys.executable, *argv))
    assert await news.line() == "full"
    with pytest.raises(ConnectionResetError):
        await heard(greedy, *service)

    assert await heard(other, *service) == b"hello"
    assert greedy.logged() == "20\n"
    assert faults(place)[0] == f"the pod {greedy.ip} has {CONNECTIONS_PER_POD} connections open; more are reset"
    assert len(faults(place)) < 10
    await greedy.sandbox.signal("main.0", signal.SIGKILL)
    await greedy.sandbox.wait("main.0")
    assert await answer_becomes(partial(heard_or_reset, greedy, *service), lambda said: said == b"hello")


def test_faults_are_counted_and_their_file_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fault_log, "_MAX_BYTES", 10_000)
    log = FaultLog(str(tmp_path / "log"))
    for _ in range(1000):
        log.note("the same")
    lines = (tmp_path / "log").read_text().splitlines()
    for number in range(5000):
        log.note(f"fault {number}")

    assert [line.split(" ", 2)[2] for line in lines[:2]] == ["the same", "the same (2 times)"]
    assert len(lines) == 10
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 21_000


# A process that hangs


@pytest.mark.parametrize("which", ["network process", "way out"])
async def test_a_network_process_that_does_not_answer_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    monkeypatch.setattr(network_client, "PING_SECONDS", 0.01)
    async with opened(tmp_path, Network.ISOLATED) as place:
        good = await server(place)
        client = await place.pod("client")
        service = (place.service_address(1), 80)
        await place.keepers.serve({service: ((good.ip, 9000),)})
        hung = place.keepers.network_client.pid
        monkeypatch.setattr(network_client, "ANSWER_SECONDS", 0.5)
        os.kill(hung if which == "network process" else child_of(hung), signal.SIGSTOP)
        await wait_gone([hung])
        monkeypatch.setattr(network_client, "ANSWER_SECONDS", 999)
        await place.keepers.serve({service: ((good.ip, 9000),)})

        assert place.keepers.network_client.pid != hung
        assert await heard(client, *service) == b"hello"


def child_of(pid: int) -> int:
    (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(child)
