"""Probes and hooks carried out: what they answer, and what they leave behind when nobody asks any more."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kit.fake_sandbox import FakeExecution
from kit.pods import container, pod
from shoal.node.messages import text
from shoal.node.probe_handlers import run_handler

PATIENCE_SECONDS = 99.0


class EndlessExecution(FakeExecution):
    def __init__(self) -> None:
        super().__init__(0, b"")
        self.is_read = asyncio.Event()
        self.is_killed = False

    async def output(self) -> AsyncIterator[tuple[int, bytes]]:
        self.is_read.set()
        await asyncio.Event().wait()
        yield 1, b""

    async def kill(self) -> None:
        self.is_killed = True


class Inside:
    """A sandbox as far as questions need one: its network is this machine's."""

    def __init__(self, execution: FakeExecution | None = None) -> None:
        self._execution = execution

    async def execute(self, *_: Any, **__: Any) -> Any:
        return self._execution

    async def dial(self, host: str, port: int, *, timeout: float) -> socket.socket:
        sock = socket.create_connection((host, port), timeout)
        sock.setblocking(False)
        return sock


async def asked(inside: Inside, what: dict[str, Any], seconds: float = PATIENCE_SECONDS) -> Any:
    return await run_handler(inside, "main.0", pod(), container(), what, ip="127.0.0.1", timeout=seconds)  # type: ignore[arg-type]


async def test_a_cancelled_command_is_killed() -> None:
    execution = EndlessExecution()
    asking = asyncio.create_task(asked(Inside(execution), {"exec": {"command": ["check"]}}))
    await execution.is_read.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert execution.is_killed


async def test_a_command_that_times_out_is_killed_and_reported() -> None:
    execution = EndlessExecution()
    answer = await asked(Inside(execution), {"exec": {"command": ["check", "it"]}}, 0.001)
    assert (answer.ok, text(answer.output)) == (False, 'command "check it" timed out after 0.001s')
    assert execution.is_killed


async def test_a_server_without_tls_is_reported_as_one() -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(plain, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        answer = await asked(Inside(), {"httpGet": {"port": port, "scheme": "HTTPS"}})
    assert not answer.ok
    assert answer.output.startswith("[SSL")
