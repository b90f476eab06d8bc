"""A real API server that a test may kill and start again, on the same address and the same etcd."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from kit.control_plane import START_SECONDS, ControlPlane, Keeper, binaries

API_SERVER = "kube-apiserver"


class Restarting(Keeper):
    """`kill` and `start_again` block; between them nobody answers."""

    plane: ControlPlane

    def start(self, programs: Sequence[str]) -> ControlPlane:
        self.running: dict[str, tuple[subprocess.Popen[bytes], Sequence[str]]] = {}
        self.plane = super().start(programs)
        return self.plane

    def _run(self, program: str, flags: Sequence[str]) -> subprocess.Popen[bytes]:
        process = super()._run(program, flags)
        self.running[program] = (process, flags)
        return process

    def kill(self) -> None:
        process, _ = self.running[API_SERVER]
        process.kill()
        process.wait()

    def start_again(self) -> None:
        self.deadline = time.monotonic() + START_SECONDS
        self._wait(f"{self.plane.url}/readyz", self._run(API_SERVER, self.running[API_SERVER][1]))


@contextlib.contextmanager
def restarting(folder: Path) -> Iterator[Restarting]:
    with contextlib.ExitStack() as stack:
        keeper = Restarting(folder, binaries(), stack)
        keeper.start(())
        yield keeper
