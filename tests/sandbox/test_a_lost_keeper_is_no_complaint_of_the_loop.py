"""A keeper that dies is told to those who wait for it; where nobody does, asyncio has nothing to complain of."""

from __future__ import annotations

import asyncio
import gc
import socket
from pathlib import Path

import pytest

from shoal.node.sandbox.shim_client import ShimClient

TURNS = range(6)  # of the loop after the keeper's death: whatever it has got round to when it stops


def forget_others(caplog: pytest.LogCaptureFixture) -> None:
    """What earlier tests of this process left behind is complained of when it is collected: now."""
    gc.collect()
    caplog.clear()


@pytest.mark.parametrize("turns", TURNS)
def test_a_loop_that_stops_while_a_shim_is_lost_logs_nothing(
    turns: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    forget_others(caplog)
    loop = asyncio.new_event_loop()
    ours, theirs = socket.socketpair()

    async def begin() -> tuple[ShimClient, asyncio.Task[object]]:
        sandbox = ShimClient(ours, tmp_path)
        waiting = asyncio.ensure_future(sandbox.wait("main.0"))
        await asyncio.sleep(0)
        return sandbox, waiting

    async def nothing() -> None:
        """One turn."""

    sandbox, waiting = loop.run_until_complete(begin())
    theirs.close()
    for _ in range(turns):
        loop.run_until_complete(nothing())
    waiting.cancel()
    loop.run_until_complete(asyncio.gather(waiting, return_exceptions=True))
    sandbox.disconnect()
    loop.close()
    del sandbox, waiting
    gc.collect()
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []


async def test_a_shim_that_dies_before_the_handshake_logs_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    forget_others(caplog)
    ours, theirs = socket.socketpair()
    gone = asyncio.Event()
    sandbox = ShimClient(ours, tmp_path, on_gone=lambda _: gone.set())
    theirs.close()
    await gone.wait()
    del sandbox
    gc.collect()
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []
