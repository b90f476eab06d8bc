"""An elastic training group of plain processes: etcd and launcher agents from the example's own environment.

Nothing here waits by the clock: the group is steered by the lines its workers write, and ends when they do.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import TracebackType

import psutil

from kit.control_plane import free_ports

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "pytorch-elastic"
MAIN = EXAMPLE / "workspace" / "examples" / "imagenet" / "main.py"
DATA = EXAMPLE / "workspace" / "data" / "tiny-imagenet-200"


def prepare() -> None:
    """Make the environment and the images where they are missing."""
    subprocess.run([sys.executable, EXAMPLE / "prepare.py"], check=True, stdout=sys.stderr)


class Worker:
    """One agent with its worker process."""

    def __init__(self, name: str, process: asyncio.subprocess.Process) -> None:
        self.name = name
        self.process = process
        self.lines: list[str] = []
        self._changed = asyncio.Condition()
        self._reader = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        assert self.process.stdout is not None
        async for raw in self.process.stdout:
            await self._tell(raw.decode(errors="replace").rstrip("\n"))
        await self._tell(None)

    async def _tell(self, line: str | None) -> None:
        async with self._changed:
            if line is not None:
                self.lines.append(line)
            self._changed.notify_all()

    async def writes(self, pattern: str, *, after: int = 0) -> int:
        """Wait for a line that matches; its number + 1, to go on from. Fails with the log when the worker ends."""
        wanted = re.compile(pattern)
        seen = after
        async with self._changed:
            while True:
                for number in range(seen, len(self.lines)):
                    if wanted.search(self.lines[number]):
                        return number + 1
                seen = len(self.lines)
                if self._reader.done() or self.process.returncode is not None:
                    raise AssertionError(f"{self.name} ended without writing {pattern!r}:\n" + "\n".join(self.lines))
                await self._changed.wait()

    def terminate(self) -> None:
        self.process.terminate()

    def kill(self) -> None:
        """With all descendants: torchrun starts each worker in a session of its own."""
        if self.process.returncode is not None:
            return
        with contextlib.suppress(psutil.NoSuchProcess):  # any of them may end by itself meanwhile
            agent = psutil.Process(self.process.pid)
            for process in (agent, *agent.children(recursive=True)):
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()

    async def ends(self) -> int:
        await self._reader
        return await self.process.wait()

    def last(self, pattern: str) -> re.Match[str]:
        """The last line that matches."""
        matches = [match for line in self.lines if (match := re.search(pattern, line))]
        assert matches, f"{self.name} never wrote {pattern!r}:\n" + "\n".join(self.lines)
        return matches[-1]


class Group:
    """`async with Group(folder, max_nodes=2) as group: await group.start("worker-0", DATA)`. Leaves nothing running."""

    def __init__(self, folder: Path, *, max_nodes: int) -> None:
        self.folder = folder
        self.max_nodes = max_nodes
        self._etcd: Worker | None = None
        self._workers: list[Worker] = []
        self._port = 0

    async def __aenter__(self) -> Group:
        try:
            while not await self._has_etcd():
                pass
        except BaseException:  # nobody calls __aexit__ then
            if self._etcd is not None:
                self._etcd.kill()
            raise
        return self

    async def _has_etcd(self) -> bool:
        """Whether it serves; not if another process was quicker and took one of its ports."""
        self._port, peers = free_ports(2)
        here = f"http://127.0.0.1:{self._port}"
        etcd = self._etcd = await self._spawn(
            "etcd",
            str(EXAMPLE / "environment" / "libexec" / "etcd"),
            *("--data-dir", str(self.folder / "etcd"), "--enable-v2"),
            *("--listen-client-urls", here, "--advertise-client-urls", here),
            *("--listen-peer-urls", f"http://127.0.0.1:{peers}"),
            *("--initial-advertise-peer-urls", f"http://127.0.0.1:{peers}"),
            *("--initial-cluster", f"default=http://127.0.0.1:{peers}"),
        )
        try:
            await etcd.writes("ready to serve client requests")
        except AssertionError:
            if not any("address already in use" in line for line in etcd.lines):
                raise
            await etcd.ends()
            shutil.rmtree(self.folder / "etcd", ignore_errors=True)  # it names ports that were not to be had
            return False
        return True

    async def __aexit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        for process in (*self._workers, *([self._etcd] if self._etcd else [])):
            process.kill()
            await process.ends()

    async def start(self, name: str, *arguments: str) -> Worker:
        """Start a worker with a temporary folder of its own, as a pod has."""
        scratch = self.folder / name
        scratch.mkdir(exist_ok=True)
        worker = await self._spawn(
            name,
            str(EXAMPLE / "environment" / "bin" / "python"),
            *("-m", "torchelastic.distributed.launch"),
            *("--rdzv_backend=etcd", f"--rdzv_endpoint=127.0.0.1:{self._port}", "--rdzv_id=pet"),
            *(f"--nnodes=1:{self.max_nodes}", "--nproc_per_node=1", "--local-addr=127.0.0.1"),
            str(MAIN),
            *arguments,
            env={"TMPDIR": str(scratch), "PYTHONPATH": str(EXAMPLE / "workspace" / "lib")},
        )
        self._workers.append(worker)
        return worker

    async def _spawn(self, name: str, *argv: str, env: dict[str, str] | None = None) -> Worker:
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
            limit=1 << 20,
            env={**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1", **(env or {})},
        )
        return Worker(name, process)
