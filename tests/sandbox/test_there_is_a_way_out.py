"""An isolated pod fetches from outside by the proxy it is told of, and other pods' names still mean other pods."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kit.sandboxes import Place, Pod, opened
from shoal.node.sandbox.port import Network

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


async def run(pod: Pod, place: Place, script: str, *argv: str, name: str = "main.0") -> str:
    env = dict(place.keepers.environment())
    await pod.sandbox.start(pod.process(sys.executable, "-I", "-c", script, *argv, name=name, env=env))
    await pod.sandbox.wait(name)
    return pod.logged(name).strip()


async def test_plain_requests_and_tunnels_reach_the_outside(isolated: Place) -> None:
    pod = await isolated.pod()
    async with outside(lambda line, headers: f"{line} | {headers.get('connection')}") as port:
        # 0.0.0.0 is the machine itself, without being one of the addresses a pod takes for its own.
        plain = await run(pod, isolated, FETCH, f"http://0.0.0.0:{port}/data?x=1")
        tunnel = await run(pod, isolated, TUNNEL, f"0.0.0.0 {port}", name="tunnel.0")

    assert plain == "GET /data?x=1 HTTP/1.1 | close"
    assert tunnel.startswith("GET /by-tunnel HTTP/1.1")


async def test_names_of_the_cluster_stay_inside_though_a_program_asks_the_proxy(isolated: Place) -> None:
    server = await isolated.pod("server")
    news = isolated.news()
    await server.python(SERVER, env={"NEWS": str(news.path)})
    assert await news.line() == "up"
    service = (isolated.service_address(1), 80)
    await isolated.keepers.serve({service: ((server.ip, 8000),)})
    client = await isolated.pod("client", hosts=f"{server.ip} web web.default\n{service[0]} shop\n")

    urls = ["http://web:8000/a", "http://web.default:8000/b", f"http://{server.ip}:8000/c", "http://shop/d"]
    answers = [await run(client, isolated, FETCH, url, name=f"f.{number}") for number, url in enumerate(urls)]
    tunnel = await run(client, isolated, TUNNEL, "web 8000", name="tunnel.0")

    assert answers == [f"server has /{letter}" for letter in "abcd"]
    assert tunnel == "server has /by-tunnel"


@pytest.mark.parametrize(
    ("url", "answer"),
    [
        pytest.param("http://127.0.0.1:1/", "400 127.0.0.1 is the pod itself", id="the pod itself"),
        pytest.param("http://0.0.0.0:1/", "502 the way out of the cluster", id="refused outside"),
        pytest.param("http://10.77.250.250:1/", "502 inside the cluster", id="nobody inside"),
    ],
)
async def test_what_cannot_be_reached_is_answered_in_words(isolated: Place, url: str, answer: str) -> None:
    pod = await isolated.pod()
    script = FETCH.replace("import sys,", "import os, sys,").replace("try:", "os.environ['no_proxy'] = ''\ntry:")

    assert (await run(pod, isolated, script, url)).startswith(answer)


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
            answer = await run(pod, place, FETCH, "http://data.example/set")

    assert answer == "proxied GET http://data.example:80/set HTTP/1.1 for Basic bWU6c2VjcmV0"


async def test_pods_are_told_of_the_proxy_in_both_spellings(isolated: Place) -> None:
    told = isolated.keepers.environment()

    assert {name: told[name] for name in told if name.islower()} == {
        "http_proxy": "http://10.77.0.1:3128",
        "https_proxy": "http://10.77.0.1:3128",
        "no_proxy": "localhost,127.0.0.1,::1,.svc,.cluster.local,10.77.0.0/16",
    }
    assert {name.lower(): value for name, value in told.items() if name.isupper()} == {
        name: value for name, value in told.items() if name.islower()
    }


async def test_pods_on_the_machines_network_need_to_be_told_nothing(loopback: Place) -> None:
    assert loopback.keepers.environment() == {}
