"""Sandboxes without processes, for faults that real ones cannot be made to have at a chosen moment.

A process does what its first argument says: `exit 3` ends at once with 3, `exits 1,0,never` ends with the code of
its attempt or not at all, `run` runs until it is told to stop, `deaf` only dies by SIGKILL. Sandboxes outlive the
agent that made them, as real ones do: give the same `FakeSandboxes` to the next agent.
"""

from __future__ import annotations

import asyncio
import signal as signals
import socket
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

from shoal.node.sandbox.interface import (
    Exited,
    LostSandbox,
    Network,
    ProcessSpec,
    ProcessState,
    SandboxSpec,
    ShimLost,
    Started,
)


class FakeExecution:
    def __init__(self, code: int, output: bytes) -> None:
        self._code = code
        self._output = output

    async def write(self, data: bytes) -> None: ...
    async def close_stdin(self) -> None: ...

    async def output(self) -> AsyncIterator[tuple[int, bytes]]:
        yield 1, self._output

    async def resize(self, columns: int, rows: int) -> None: ...

    async def wait(self) -> int:
        return self._code

    async def kill(self) -> None: ...


class FakeSandbox:
    def __init__(self, spec: SandboxSpec, house: FakeSandboxes) -> None:
        self.spec = spec
        self.house = house
        self.specs: dict[str, ProcessSpec] = {}
        self.states: dict[str, ProcessState] = {}
        self.ends: dict[str, asyncio.Event] = {}
        self.lost = False

    def _check(self) -> None:
        if self.lost:
            raise ShimLost

    async def start(self, process: ProcessSpec) -> Started | Exited:
        self._check()
        if process.id in self.states:
            state = self.states[process.id]
            known = state.started or state.exited
            assert known is not None
            return known
        self.house.started.append((self.spec.id, process.id))
        self.house.specs[(self.spec.id, process.id)] = process
        self.specs[process.id] = process
        self.ends[process.id] = asyncio.Event()
        if process.argv[0] == "missing":
            exited = Exited(process.id, time.time(), 127, None, message="no such program: missing")
            self.states[process.id] = ProcessState(None, exited)
            return exited
        started = Started(process.id, 4000 + len(self.house.started), time.time())
        self.states[process.id] = ProcessState(started, None)
        code = self._planned(process)
        if code is not None:
            asyncio.get_running_loop().call_soon(self.end, process.id, code)
        return started

    def _planned(self, process: ProcessSpec) -> int | None:
        attempt = int(process.id.rpartition(".")[2])
        match process.argv:
            case ("exit", code):
                return int(code)
            case ("exits", codes):
                listed = codes.split(",")
                code = listed[min(attempt, len(listed) - 1)]
                return None if code == "never" else int(code)
        return None

    def end(self, process: str, code: int | None = None, signal: int | None = None, *, oom: bool = False) -> None:
        state = self.states[process]
        if state.exited is None:
            self.states[process] = ProcessState(state.started, Exited(process, time.time(), code, signal, oom))
            self.ends[process].set()

    def processes(self) -> Mapping[str, ProcessState]:
        return dict(self.states)

    async def wait(self, process: str) -> Exited:
        self._check()
        await self.ends[process].wait()
        self._check()
        exited = self.states[process].exited
        assert exited is not None
        return exited

    async def signal(self, process: str, signal: signals.Signals) -> None:
        self._check()
        self.house.signals.append((self.spec.id, process, signal))
        if signal is signals.SIGKILL:
            self.end(process, signal=9)
        elif self.specs[process].argv[0] != "deaf":
            self.end(process, signal=int(signal))

    async def execute(
        self, process: str, argv: tuple[str, ...], *, env: Mapping[str, str] | None = None, tty: bool = False
    ) -> FakeExecution:
        self._check()
        self.house.executed.append((process, argv))
        return FakeExecution(self.house.exec_codes.get(argv, 0), b"done\n")

    async def dial(self, host: str, port: int, *, timeout: float) -> socket.socket:
        raise ConnectionRefusedError(111, "Connection refused")

    def usage(self) -> Mapping[str, tuple[float, int]]:
        return {name: (1.0, 1 << 20) for name, state in self.states.items() if state.exited is None}

    async def close(self) -> None:
        for process in self.states:
            self.end(process, signal=9)
        if self.house.sandboxes.get(self.spec.id) is self:
            del self.house.sandboxes[self.spec.id]

    def lose(self) -> None:
        """The keeper dies, and its processes with it."""
        self.lost = True
        self.house.sandboxes.pop(self.spec.id, None)
        self.house.graves[self.spec.id] = LostSandbox(self.spec, dict(self.states))
        for end in self.ends.values():
            end.set()


class FakeSandboxes:
    def __init__(self) -> None:
        self.network = Network.ISOLATED
        self.sandboxes: dict[str, FakeSandbox] = {}
        self.graves: dict[str, LostSandbox] = {}
        self.started: list[tuple[str, str]] = []
        self.specs: dict[tuple[str, str], ProcessSpec] = {}
        self.signals: list[tuple[str, str, int]] = []
        self.executed: list[tuple[str, tuple[str, ...]]] = []
        self.exec_codes: dict[tuple[str, ...], int] = {}
        self.tables: list[Any] = []

    async def create(self, spec: SandboxSpec) -> FakeSandbox:
        assert spec.id not in self.sandboxes, f"two sandboxes for {spec.id}"
        self.sandboxes[spec.id] = FakeSandbox(spec, self)
        return self.sandboxes[spec.id]

    async def adopt(self) -> tuple[list[Any], list[LostSandbox]]:
        return list(self.sandboxes.values()), list(self.graves.values())

    async def remove(self, sandbox: str) -> None:
        self.graves.pop(sandbox, None)

    async def serve(self, services: Mapping[tuple[str, int], tuple[tuple[str, int], ...]]) -> None:
        self.tables.append(dict(services))

    async def close(self) -> None: ...
