"""Operators by the hundred: processes of their own that need not read the whole program anew.

A nursery (this file run as a program) has read everything that `shoal operator` reads and forks a child for every line
it is given; the child runs the command as it is on the command line. Who is killed is followed by a descriptor of the
process, never by a number that may be somebody else's by then. Children end with the nursery, the nursery with its
test.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from pathlib import Path

from kit.control_plane import ROOT, die_with_parent


class Child:
    """One process; `ended` is set when it has."""

    def __init__(self, pid: int, log: Path) -> None:
        self.log = log
        self.ended = asyncio.Event()
        try:
            self._handle = os.pidfd_open(pid)
        except ProcessLookupError:  # it did not live long
            self._handle = -1
            self.ended.set()
            return
        asyncio.get_running_loop().add_reader(self._handle, self._has_ended)

    def _has_ended(self) -> None:
        asyncio.get_running_loop().remove_reader(self._handle)
        os.close(self._handle)
        self.ended.set()

    def signal(self, number: signal.Signals) -> None:
        if not self.ended.is_set():
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, number)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)


class Nursery:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._asking = asyncio.Lock()

    async def start(self, words: Sequence[str], log: Path) -> Child:
        """`shoal` with these words; what it says on standard error is added to `log`."""
        birth = asyncio.create_task(self._give_birth(words, log))
        try:
            return await asyncio.shield(birth)
        except asyncio.CancelledError:  # nobody waits for the child; the next one must not be taken for it
            birth.add_done_callback(lambda born: born.result().kill())
            raise

    async def _give_birth(self, words: Sequence[str], log: Path) -> Child:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        async with self._asking:
            self._process.stdin.write(json.dumps({"words": list(words), "log": str(log)}).encode() + b"\n")
            return Child(int(await self._process.stdout.readline()), log)


@asynccontextmanager
async def nursery() -> AsyncIterator[Nursery]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, __file__,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        env={**{name: value for name, value in os.environ.items() if not name.startswith("SHOAL_")},
             "PYTHONPATH": str(ROOT / "tests")},
    )  # fmt: skip
    try:
        yield Nursery(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()


# What follows runs in the nursery.

WAY = (
    "shoal.local.config", "shoal.cli.main", "shoal.operator.main", "shoal.cli.commands.operator", "shoal.cli.context",
    "shoal.local.gc_tuning", "shoal.dialects.framework", "shoal.controller_runtime.crd_installer",
    "shoal.install.manifests",
    "shoal.controller_runtime.preflight",
)  # fmt: skip


def breed() -> None:
    main = _read()
    gc.freeze()  # a collection in a child would copy every page it looks at
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them here
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            _live(main, **json.loads(line))
        print(pid, flush=True)


def _read() -> Callable[[], None]:
    """What every operator would read on its way; the command itself."""
    from shoal.cli import main  # before the module of that name takes its place
    from shoal.kube.schemas import named

    for module in WAY:
        import_module(module)
    named("PodTemplateSpec")
    return main


def _live(main: Callable[[], None], words: Sequence[str], log: str) -> None:
    die_with_parent()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDWR)
    said = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for target, source in ((0, nothing), (1, nothing), (2, said)):
        os.dup2(source, target)
    sys.argv = ["shoal", *words]
    try:
        main()
    finally:
        sys.stderr.flush()
        os._exit(0)


if __name__ == "__main__":
    breed()
