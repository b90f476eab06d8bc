"""Builders for sandboxes and what runs in them, and the check that nothing of them stays behind."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import cache
from pathlib import Path
from uuid import uuid4

from shoal.node.sandbox import cgroups, proctree
from shoal.node.sandbox.interface import Mount, Network, ProcessSpec, SandboxSpec
from shoal.node.sandbox.sandbox_manager import SandboxManager
from shoal.node.sandbox.shim_client import ShimClient, wait_gone

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
LONGEST_DEATH_SECONDS = 120
STREETS = range(100, 250)


@cache
def street() -> int:
    """Loopback addresses that are this test process's alone: the third number of them. Others run beside it."""
    for number in STREETS:
        claim = socket.socket(socket.AF_UNIX)
        with suppress(OSError):
            claim.bind(f"\0shoal tests on 127.77.{number}")
            _claims.append(claim)  # held until the process ends
            return number
        claim.close()
    raise RuntimeError("no loopback addresses left for tests")


_claims: list[socket.socket] = []


class Place:
    """A folder for one test, the sandboxes in it, and the pods made so far."""

    def __init__(self, root: Path, keepers: SandboxManager) -> None:
        self.root = root
        self.keepers = keepers
        self._count = 0
        self._count_of_news = 0

    async def pod(self, name: str = "pod", *, ip: str | None = None, hosts: str = "") -> Pod:
        """A sandbox with an address of its own."""
        self._count += 1
        hosts_file = self.root / f"{name}.hosts"
        hosts_file.write_text(f"127.0.0.1 localhost\n{hosts}")
        spec = SandboxSpec(
            id=f"{name}-{self._count}-{uuid4()}",  # as a pod's: what a lost keeper leaves is found by it, machine-wide
            hostname=name,
            ip=self.address(self._count + 1) if ip is None else ip,
            hosts_file=hosts_file,
            labels={"name": name},
        )
        return Pod(self, await self.keepers.create(spec))

    def address(self, number: int) -> str:
        return f"10.77.3.{number}" if self.keepers.network is Network.ISOLATED else f"127.77.{street()}.{number}"

    def service_address(self, number: int) -> str:
        return f"10.96.3.{number}" if self.keepers.network is Network.ISOLATED else f"127.96.{street()}.{number}"

    def news(self) -> News:
        """A pipe programs can write lines to."""
        self._count_of_news += 1
        return News(self.root / f"news-{self._count_of_news}")


class Pod:
    """A sandbox with short words for what tests do."""

    def __init__(self, place: Place, sandbox: ShimClient) -> None:
        self._place = place
        self.sandbox = sandbox

    @property
    def ip(self) -> str:
        return self.sandbox.spec.ip

    def process(self, *argv: str, name: str = "main.0", **settings: object) -> ProcessSpec:
        env = {"PATH": PATH, **dict(settings.pop("env", {}))}  # type: ignore[call-overload]
        return ProcessSpec(
            id=name,
            argv=argv,
            env=env,
            cwd=str(settings.pop("cwd", "/")),
            log_file=self.log_file(name),
            **settings,  # type: ignore[arg-type]
        )

    def log_file(self, name: str = "main.0") -> Path:
        return self._place.root / f"{self.sandbox.spec.id}-{name}.log"

    async def shell(self, script: str, *, name: str = "main.0", **settings: object) -> object:
        """Start a shell script; how the start went."""
        return await self.sandbox.start(self.process("sh", "-c", script, name=name, **settings))

    async def python(self, script: str, *, name: str = "main.0", **settings: object) -> object:
        return await self.sandbox.start(self.process(sys.executable, "-I", "-c", script, name=name, **settings))

    async def output(self, script: str, *, name: str = "main.0", **settings: object) -> str:
        """Run a shell script to its end; what it wrote to both streams."""
        await self.shell(script, name=name, **settings)
        await self.sandbox.wait(name)
        return self.logged(name)

    def logged(self, name: str = "main.0") -> str:
        """The text of the log without its heads."""
        text = ""
        for line in self.log_file(name).read_text().splitlines():
            _, _, flag, rest = line.split(" ", 3)
            text += rest + ("\n" if flag == "F" else "")
        return text


class News:
    """Lines that programs write to a named pipe, read as they come."""

    def __init__(self, path: Path) -> None:
        self.path = path
        os.mkfifo(path, 0o666)
        path.chmod(0o666)
        # Open for both: the pipe then never ends between two writers.
        self._fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        self._rest = b""

    async def line(self) -> str:
        while b"\n" not in self._rest:
            await readable(self._fd)
            self._rest += os.read(self._fd, 65536)
        first, self._rest = self._rest.split(b"\n", 1)
        return first.decode()

    def __del__(self) -> None:
        os.close(self._fd)


async def readable(fd: int) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(fd, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(fd)


def folder_mount(target: str, source: Path, *, read_only: bool = False) -> Mount:
    return Mount(target, source, read_only=read_only)


@asynccontextmanager
async def opened(root: Path, network: Network, *, pids_limit: int | None = None) -> AsyncIterator[Place]:
    """Sandboxes in a folder, all closed at the end, and nothing of them left on the machine."""
    before = _machine()
    folder = root / "sandboxes"
    keepers = await SandboxManager.open(folder, network=network, pids_limit=pids_limit)
    place = Place(root, keepers)
    try:
        yield place
    finally:
        kept, _ = await place.keepers.adopt()
        for sandbox in kept:
            await sandbox.close()
        await place.keepers.close()
    await _dying_are_dead(folder)
    assert left_running(folder) == []
    assert _machine() == before
    assert _groups_left(keepers) == []


async def _dying_are_dead(folder: Path) -> None:
    """A keeper that a test has killed leaves its pod's processes to the kernel, which takes its time over them."""
    for line in left_running(folder):
        with suppress(TimeoutError):
            await asyncio.wait_for(wait_gone([int(line.partition(" ")[0])]), LONGEST_DEATH_SECONDS)


def left_running(folder: Path) -> list[str]:
    """Living processes that were started for the sandboxes in this folder."""
    sandboxes = {path.name for path in folder.iterdir() if path.is_dir()}
    found = []
    for pid in proctree.all_pids():
        seen = proctree.stat(pid)
        if seen is None or not seen.is_alive or pid == os.getpid():
            continue
        if str(folder) in _command(pid).split("\0") or proctree.mark(pid).partition("/")[0] in sandboxes:
            found.append(f"{pid} {_command(pid)}")
    return found


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    except OSError:
        return ""


def _machine() -> Mapping[str, object]:
    mounts = sorted(line.split(" ", 4)[4] for line in Path("/proc/self/mountinfo").read_text().splitlines())
    return {"mounts": mounts, "interfaces": sorted(name for _, name in socket.if_nameindex())}


def _groups_left(keepers: SandboxManager) -> list[str]:
    place, _ = cgroups.find()
    if place is None:
        return []
    folders = [Path(folder) / keepers.cluster for folder in place.folders.values()]
    return sorted(str(path) for folder in folders if folder.exists() for path in folder.iterdir() if path.is_dir())
