"""A node whose pods say and do what a test wants: the other end of logs, exec and top.

Logs are the lines a test put under (pod name, container). Commands are a handful of tiny programs, run here
instead of in a process, so that a test sees streams, exit codes and terminal sizes without needing a pod.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from shoal.cluster.client import ExecRequest, LogOptions, NodeUsage, Streams, Usage
from shoal.kube.errors import bad_request

Obj = dict[str, Any]


@dataclass
class ScriptedNode:
    lines: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    before: dict[tuple[str, str], list[str]] = field(default_factory=dict)  # of the container's previous run
    asked: list[LogOptions] = field(default_factory=list)
    node: Usage = field(default_factory=lambda: Usage(1.5, 2 * 1024**3))
    pods: dict[str, dict[str, Usage]] = field(default_factory=dict)  # by uid
    more: dict[tuple[str, str], asyncio.Queue[str | None]] = field(default_factory=dict)  # what a follower sees later
    listened: asyncio.Event = field(default_factory=asyncio.Event)  # set once somebody asked for logs
    stopped: list[str] = field(default_factory=list)  # commands whose client went away
    left: asyncio.Event = field(default_factory=asyncio.Event)  # set when the last of them did

    async def logs(self, pod: Obj, options: LogOptions) -> AsyncIterator[bytes]:
        self.asked.append(options)
        self.listened.set()
        key = (pod["metadata"]["name"], options.container)
        source = self.before if options.previous else self.lines
        if options.previous and key not in source:
            told = f'previous terminated container "{options.container}" in pod "{key[0]}" not found'
            raise bad_request(told)
        lines = source.get(key, [])
        if options.tail_lines is not None:
            lines = lines[-options.tail_lines :] if options.tail_lines else []
        for number, line in enumerate(lines):
            stamp = f"2030-01-01T00:00:0{number}.000000000Z " if options.timestamps else ""
            yield f"{stamp}{line}\n".encode()
        if options.follow and key in self.more:
            while (line := await self.more[key].get()) is not None:
                yield f"{line}\n".encode()

    async def execute(self, pod: Obj, request: ExecRequest, streams: Streams) -> int:
        program, *words = request.command
        try:
            return await getattr(self, f"_{program}")(words, request, streams)
        except asyncio.CancelledError:
            self.stopped.append(program)
            self.left.set()
            raise

    async def connect(self, pod: Obj, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", port)

    async def usage(self) -> NodeUsage:
        return NodeUsage(self.node, self.pods, 15.0)

    async def _echo(self, words: list[str], _: ExecRequest, streams: Streams) -> int:
        await streams.stdout(" ".join(words).encode() + b"\n")
        return 0

    async def _complain(self, words: list[str], _: ExecRequest, streams: Streams) -> int:
        await streams.stderr(" ".join(words).encode() + b"\n")
        return int(words[-1])

    async def _cat(self, _: list[str], __: ExecRequest, streams: Streams) -> int:
        assert streams.stdin is not None
        async for data in streams.stdin:
            await streams.stdout(data)
        return 0

    async def _where(self, _: list[str], request: ExecRequest, streams: Streams) -> int:
        await streams.stdout(request.container.encode())
        return 0

    async def _size(self, _: list[str], __: ExecRequest, streams: Streams) -> int:
        assert streams.resize is not None
        columns, rows = await anext(streams.resize)
        await streams.stdout(f"{columns}x{rows}".encode())
        return 0

    async def _wait(self, _: list[str], __: ExecRequest, streams: Streams) -> int:
        await streams.stdout(b"waiting")
        await asyncio.Event().wait()
        return 0
