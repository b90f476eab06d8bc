"""An agent that leaves a sandbox to its keeper, or loses the pods' network, keeps nobody waiting for ever."""

from __future__ import annotations

import asyncio
import os
import select
import shutil
import signal
import socket
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest

from kit.sandboxes import Place
from shoal.node.sandbox import wire
from shoal.node.sandbox.network_client import NetworkClient
from shoal.node.sandbox.rpc import RpcConnection
from shoal.node.sandbox.sandbox_manager import SandboxManager
from shoal.node.sandbox.shim_client import SandboxFailed, ShimClient


async def begun(awaited: Awaitable[Any]) -> asyncio.Task[Any]:
    """A task that has come to its first wait."""
    task = asyncio.ensure_future(awaited)
    await asyncio.sleep(0)
    return task


async def test_ends_commands_and_meetings_are_given_up(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    sandbox = ShimClient(ours, tmp_path)
    waiting = [await begun(sandbox.handshake()), await begun(sandbox.wait("main.0"))]
    asking = await begun(sandbox.execute("main.0", ("true",)))
    keeper = wire.Channel(theirs)
    pipes = [os.pipe() for _ in range(3)]
    keeper.send({"n": 1, "execution": 7}, [fd for pair in pipes for fd in pair][:3])
    execution = await asyncio.wait_for(asking, 30)
    waiting.append(await begun(execution.wait()))

    sandbox.disconnect()
    await asyncio.wait(waiting, timeout=30)
    assert [task.done() and task.cancelled() for task in waiting] == [True, True, True]
    keeper.close()
    for fd in [fd for pair in pipes for fd in pair][3:]:
        os.close(fd)


class ScriptedZygote:
    """Forks no fabric but plays one: each is well, or says why it could not be."""

    def __init__(self, *script: str) -> None:
        self.script = list(script)
        self.asked: asyncio.Queue[str] = asyncio.Queue()
        self._fabric: RpcConnection | None = None

    async def send(self, message: dict[str, Any], fds: list[int]) -> None:
        channel, trouble = wire.Channel(socket.socket(fileno=fds[0])), self.script.pop(0)
        if trouble:
            channel.send({"event": "failed", "message": trouble})
            channel.close()
        else:
            self._fabric = RpcConnection(channel, on_message=self._answer, on_closed=lambda: None)
            self._fabric.send({"event": "hello", "pid": os.getpid(), "isolated": False, "is_open": True})
        self.asked.put_nowait(message["do"])

    def _answer(self, message: dict[str, Any], _: list[int]) -> None:
        if self._fabric is not None and "n" in message:
            self._fabric.send({"n": message["n"], "refused": []})

    def kill_fabric(self) -> None:
        assert self._fabric is not None
        self._fabric.close()


async def test_a_failed_restart_of_the_network_process_is_retried_on_demand(tmp_path: Path) -> None:
    zygote = ScriptedZygote("", "no memory", "no memory", "")
    link = NetworkClient(zygote, tmp_path, {"isolated": False, "gateway": "10.77.0.1"})  # type: ignore[arg-type]
    await link.find()
    zygote.kill_fabric()
    assert [await asyncio.wait_for(zygote.asked.get(), 30) for _ in range(2)] == ["fork_network", "fork_network"]
    assert link._repair is not None
    await asyncio.wait([link._repair], timeout=30)

    with pytest.raises(SandboxFailed, match="the pods' network could not be created: no memory"):
        await asyncio.wait_for(link.ready(), 30)
    await asyncio.wait_for(link.ready(), 30)
    assert zygote.script == []
    await link.disconnect(wait=False)
    zygote.kill_fabric()


@pytest.mark.processes
async def test_closing_does_not_wait_for_a_pod_whose_shim_died_unnoticed(loopback: Place) -> None:
    pod = await loopback.pod()
    keeper = os.pidfd_open(pod.sandbox.shim_pid)
    os.kill(pod.sandbox.shim_pid, signal.SIGKILL)
    select.select([keeper], [], [])  # not by the loop, which would hear of the end
    os.close(keeper)
    shutil.rmtree(loopback.root / "sandboxes" / pod.sandbox.spec.id)

    await asyncio.wait_for(loopback.keepers.close(), 60)
    loopback.keepers = await SandboxManager.open(loopback.root / "sandboxes", network=loopback.keepers.network)
