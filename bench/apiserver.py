"""The API over HTTP: how many small pods a second it takes, and how many watch events it hands out.

The server is a process of its own on a file (WAL, as `shoal up` has it) and plain HTTP on loopback; the client is
this process, raw asyncio streams without a client library, on the same machine. Both share its cores.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness import Metric

CLIENTS = 32
CREATES = 6_000
WATCHERS = 8
WATCHED_CREATES = 3_000
TOKEN = "bench"
PODS = "/api/v1/namespaces/default/pods"

METRICS = [
    Metric("pods created over HTTP, 32 clients", "/s", 1_500, "higher"),
    Metric("watch events delivered over HTTP, 8 watchers", "/s", 8_000, "higher"),
]


def run() -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder:
        server = subprocess.Popen(
            [sys.executable, __file__, str(Path(folder) / "store.db")], stdout=subprocess.PIPE, text=True
        )
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline())
            created, delivered = asyncio.run(_drive(port))
        finally:
            server.terminate()
            server.wait()
    return {METRICS[0].name: created, METRICS[1].name: delivered}


async def _drive(port: int) -> tuple[float, float]:
    await _create(port, "warm", 200)
    created = CREATES / await _create(port, "a", CREATES)
    return created, await _watch(port)


async def _create(port: int, prefix: str, count: int) -> float:
    """Seconds it took to create `count` pods."""
    numbers = iter(range(count))
    began = time.monotonic()
    await asyncio.gather(*(_creator(port, prefix, numbers) for _ in range(CLIENTS)))
    return time.monotonic() - began


async def _creator(port: int, prefix: str, numbers: object) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for number in numbers:  # type: ignore[attr-defined]
        writer.write(_request(f"{prefix}-{number}"))
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 201"), head
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        await reader.readexactly(int(length))
    writer.close()


def _request(name: str) -> bytes:
    container = {"name": "main", "image": "python", "command": ["true"], "resources": {"requests": {"cpu": "100m"}}}
    pod = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "bench"}},
        "spec": {"containers": [container], "restartPolicy": "Never"},
    }  # fmt: skip
    body = json.dumps(pod, separators=(",", ":")).encode()
    head = (
        f"POST {PODS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n"
        f"User-Agent: bench/1\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def _watch(port: int) -> float:
    """Events delivered per second while every watcher sees every one of the creates."""
    ready = [asyncio.Event() for _ in range(WATCHERS)]
    watchers = [asyncio.create_task(_watcher(port, event)) for event in ready]
    for event in ready:
        await event.wait()
    began = time.monotonic()
    await _create(port, "w", WATCHED_CREATES)
    await asyncio.gather(*watchers)
    return WATCHERS * WATCHED_CREATES / (time.monotonic() - began)


async def _watcher(port: int, ready: asyncio.Event) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**24)
    version = await _version(port)
    query = f"watch=1&resourceVersion={version}"
    writer.write(f"GET {PODS}?{query} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode())
    await reader.readuntil(b"\r\n\r\n")
    ready.set()
    seen = 0
    while seen < WATCHED_CREATES:
        piece = await reader.read(2**20)
        assert piece, "the watch ended early"
        seen += piece.count(b'"type":"ADDED","object"')
    writer.close()


async def _version(port: int) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    request = f"GET {PODS}?limit=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n\r\n"
    writer.write(request.encode())
    body = (await reader.read()).partition(b"\r\n\r\n")[2]
    writer.close()
    return str(json.loads(body)["metadata"]["resourceVersion"])


async def _serve(path: str) -> None:
    from shoal.apiserver.app import build_application
    from shoal.apiserver.server import Server
    from shoal.cluster.embedded import EmbeddedCluster

    server = Server(build_application(await EmbeddedCluster.open(path), token=TOKEN))
    await server.start()
    print(server.port, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1]))
