"""An isolated pod fetches from outside by the proxy it is told of, and other pods' names still mean other pods."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kit.sandboxes import Place, Pod, opened
from shoal.node.host_checks import probe_host
from shoal.node.sandbox.interface import Network

pytestmark = pytest.mark.processes

FETCH = """
import sys, urllib.error, urllib.request
try:
    print(urllib.request.urlopen(sys.argv[1], timeout=99).read().decode())
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode().strip())
"""
TUNNEL = """
import http.client, os, sys
proxy, port = os.environ["https_proxy"].removeprefix("http://").split(":")
connection = http.client.HTTPConnection(proxy, int(port), timeout=99)
host, port = sys.argv[1].split(" ")
connection.set_tunnel(host, int(port))
connection.request("GET", "/by-tunnel")
print(connection.getresponse().read().decode())
"""
SERVER = """
import http.server, os
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = f"{os.uname().nodename} has {self.path}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
server = http.server.HTTPServer(("", 8000), Answer)
open(os.environ["NEWS"], "w").write("up\\n")
server.serve_forever()
"""

Answer = Callable[[str, dict[str, str]], str]


@asynccontextmanager
async def outside(answer: Answer) -> AsyncIterator[int]:
    """A web server on the machine's own network; its port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        body = answer(head[0], headers).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


PROXY = dict.fromkeys(("http_proxy", "https_proxy"), "http://10.77.0.1:3128")


async def run(pod: Pod, script: str, *argv: str, name: str = "main.0") -> str:
    await pod.sandbox.start(pod.process(sys.executable, "-I", "-c", script, *argv, name=name, env=PROXY))
    await pod.sandbox.wait(name)
    return pod.logged(name).strip()


async def test_names_of_the_cluster_stay_inside_though_a_program_asks_the_proxy(isolated: Place) -> None:
    server = await isolated.pod("server")
    news = isolated.news()
    await server.python(SERVER, env={"NEWS": str(news.path)})
    assert await news.line() == "up"
    service = (isolated.service_address(1), 80)
    await isolated.keepers.serve({service: ((server.ip, 8000),)})
    client = await isolated.pod("client", hosts=f"{server.ip} web web.default\n{service[0]} shop\n")

    urls = ["http://web:8000/a", "http://web.default:8000/b", f"http://{server.ip}:8000/c", "http://shop/d"]
    answers = [await run(client, FETCH, url, name=f"f.{number}") for number, url in enumerate(urls)]
    tunnel = await run(client, TUNNEL, "web 8000", name="tunnel.0")

    assert answers == [f"server has /{letter}" for letter in "abcd"]
    assert tunnel == "server has /by-tunnel"


@pytest.mark.parametrize(
    ("url", "answer"),
    [
        pytest.param("http://127.0.0.1:1/", "400 127.0.0.1 is the pod itself", id="the pod itself"),
        pytest.param("http://0.0.0.0:1/", "400 0.0.0.0 is the pod itself", id="the pod itself by another name"),
        pytest.param("http://no-such-host.invalid:1/", "502 the way out of the cluster", id="refused outside"),
        pytest.param("http://10.77.250.250:1/", "502 inside the cluster", id="nobody inside"),
    ],
)
async def test_unreachable_hosts_are_answered_with_an_error_message(isolated: Place, url: str, answer: str) -> None:
    pod = await isolated.pod()
    script = FETCH.replace("import sys,", "import os, sys,").replace("try:", "os.environ['no_proxy'] = ''\ntry:")

    assert (await run(pod, script, url)).startswith(answer)


async def test_the_callers_own_proxy_is_honoured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, needs_isolation: None
) -> None:
    def proxy(line: str, headers: dict[str, str]) -> str:
        return f"proxied {line} for {headers.get('proxy-authorization')}"

    async with outside(proxy) as port:
        monkeypatch.setenv("http_proxy", f"http://me:secret@127.0.0.1:{port}")
        monkeypatch.setenv("no_proxy", "direct.example")
        async with opened(tmp_path, Network.ISOLATED) as place:
            pod = await place.pod()
            answer = await run(pod, FETCH, "http://data.example/set")

    assert answer == "proxied GET http://data.example:80/set HTTP/1.1 for Basic bWU6c2VjcmV0"


# A machine of its own: a network where an outside server and a name server can listen at any address. The cluster
# is then started in it as on any machine. Says what a pod in it gets.
MACHINE = """
import asyncio, os, struct, sys
from pathlib import Path
from kit.sandboxes import opened
from shoal.node.sandbox import syscalls, rtnetlink
from shoal.node.host_checks import probe_host
from shoal.node.sandbox.interface import Network

def build(root):
    if os.getuid() != 0:
        syscalls.enter_own_user_namespace()
    syscalls.unshare(syscalls.NEW_NET | syscalls.NEW_NS)
    net = rtnetlink.Netlink()
    net.set_up(1)
    link = net.add_bridge("machine", hardware=bytes([2, 0, 0, 0, 0, 1]))
    net.add_address(link, "198.51.100.1", 24)
    (root / "machine.conf").write_text("nameserver 127.0.0.9\\nsearch corp.example\\n")
    syscalls.mount(None, "/", flags=syscalls.MS_REC | syscalls.MS_SLAVE)
    syscalls.mount(str(root / "machine.conf"), os.path.realpath("/etc/resolv.conf"), flags=syscalls.MS_BIND)

class Names(asyncio.DatagramProtocol):
    def connection_made(self, transport):
        self.transport = transport
    def datagram_received(self, data, addr):
        wants_ipv4 = data[-4:-2] == b"\\0\\1" or b"\\0\\1\\0\\1" in data
        answer = data[12:data.index(0, 12) + 5] + (
            b"\\xc0\\x0c\\0\\1\\0\\1\\0\\0\\0\\x3c\\0\\4" + bytes([198, 51, 100, 1]) if wants_ipv4 else b"")
        self.transport.sendto(data[:2] + struct.pack(">HHHHH", 0x8180, 1, wants_ipv4, 0, 0) + answer, addr)

async def any_connection(root):
    loop = asyncio.get_running_loop()
    await loop.create_datagram_endpoint(Names, ("127.0.0.9", 53))
    async def greet(reader, writer):
        writer.write(b"outside got " + await reader.read())
        writer.close()
    await asyncio.start_server(greet, "198.51.100.1", 7000)
    async with opened(root, Network.ISOLATED) as place:
        pod = await place.pod()
        fetch = '''
import socket
for host in ("198.51.100.1", "data.example"):
    with socket.create_connection((host, 7000), timeout=99) as sock:
        sock.sendall(host.encode())
        sock.shutdown(socket.SHUT_WR)
        print(sock.makefile().read())
'''
        await pod.python(fetch)
        await pod.sandbox.wait("main.0")
        print(pod.logged() + await pod.output("cat /etc/resolv.conf", name="conf.0"), end="")
        print(sorted(place.keepers.environment()))

async def by_the_proxy(root):
    async def answer(reader, writer):
        head = (await reader.readuntil(b"\\r\\n\\r\\n")).decode().splitlines()
        body = " | ".join(line for line in head if line.startswith(("GET", "Connection"))).encode()
        writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body) + body)
        writer.close()
    await asyncio.start_server(answer, "198.51.100.1", 7000)
    async with opened(root, Network.ISOLATED) as place:
        pod = await place.pod()
        for name, script, where in (
            ("plain.0", FETCH, "http://198.51.100.1:7000/data?x=1"), ("tunnel.0", TUNNEL, "198.51.100.1 7000")):
            await pod.sandbox.start(pod.process(sys.executable, "-I", "-c", script, where, name=name, env=PROXY))
            await pod.sandbox.wait(name)
            print(pod.logged(name).strip())

root = Path(sys.argv[1])
build(root)
asyncio.run(globals()[sys.argv[2]](root))
"""
MACHINE = f"FETCH, TUNNEL, PROXY = {FETCH!r}, {TUNNEL!r}, {PROXY!r}\n{MACHINE}"


def on_a_machine_of_its_own(tmp_path: Path, part: str, env: dict[str, str] | None = None) -> tuple[str, list[str]]:
    """What a part of MACHINE complained of and what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", MACHINE, str(tmp_path), part],
        capture_output=True,
        text=True,
        env={**os.environ, **(env or {}), "PYTHONPATH": ":".join(sys.path)},
    )
    return done.stderr, done.stdout.splitlines()


def test_plain_requests_and_tunnels_reach_the_outside(tmp_path: Path, needs_isolation: None) -> None:
    assert on_a_machine_of_its_own(tmp_path, "by_the_proxy") == (
        "",
        ["GET /data?x=1 HTTP/1.1 | Connection: close", "GET /by-tunnel HTTP/1.1"],
    )


@pytest.fixture
def needs_redirection(needs_isolation: None) -> None:
    if not probe_host()["redirect"]:
        pytest.skip(f"no packet filter here: {probe_host()['redirect_detail']}")


@pytest.mark.parametrize(
    ("proxy", "told"),
    [
        pytest.param({}, [], id="without a proxy pods need to be told nothing"),
        pytest.param(
            {"https_proxy": "http://127.0.0.1:9"},
            ["HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"],
            id="with a proxy pods are told of ours",
        ),
    ],
)
def test_any_connection_and_any_name_finds_its_way_out(
    tmp_path: Path, needs_redirection: None, proxy: dict[str, str], told: list[str]
) -> None:
    assert on_a_machine_of_its_own(tmp_path, "any_connection", proxy) == (
        "",
        [
            "outside got 198.51.100.1",
            "outside got data.example",
            "nameserver 10.77.0.1",
            "search corp.example",
            str(told),
        ],
    )


async def test_pods_on_the_host_network_get_no_proxy_variables(loopback: Place) -> None:
    assert loopback.keepers.environment() == {}
