"""A control plane that has Shoal's kinds from the start, and of which a test that has it for itself may stop parts.

Shared by tests that leave much behind and clean nothing up: it ends with the run. A test that kills the API server or
pauses etcd keeps one of its own (`kept`).
"""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from kit import control_plane
from kit.control_plane import START_SECONDS, ControlPlane
from kit.operated import OperatedKeeper

API_SERVER, ETCD = "kube-apiserver", "etcd"
PROGRAMS = ("kube-controller-manager",)


@contextlib.contextmanager
def shared(folder: Path) -> Iterator[ControlPlane]:
    with control_plane.shared(folder, programs=PROGRAMS, keeper=__file__) as plane:
        yield plane


@contextlib.contextmanager
def kept(folder: Path) -> Iterator[DefinedKeeper]:
    """One that this test may disturb."""
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        keeper = DefinedKeeper(folder, control_plane.binaries(PROGRAMS), stack)
        keeper.plane = keeper.start(PROGRAMS)
        yield keeper


class DefinedKeeper(OperatedKeeper):
    plane: ControlPlane

    def more_flags(self, program: str) -> Sequence[str]:
        if program == "kube-controller-manager":
            self.define()
        return ()

    def kill_apiserver(self) -> None:
        self.kill(API_SERVER)

    def begin_apiserver(self) -> None:
        """Another one, which is not ready yet."""
        self._run(API_SERVER, self.running[API_SERVER][1])

    def await_apiserver(self) -> None:
        """Blocks until it is ready."""
        self.deadline = time.monotonic() + START_SECONDS
        self._wait(f"{self.url}/readyz", self.running[API_SERVER][0])

    def pause_etcd(self) -> None:
        self.running[ETCD][0].send_signal(signal.SIGSTOP)

    def resume_etcd(self) -> None:
        self.running[ETCD][0].send_signal(signal.SIGCONT)


if __name__ == "__main__":
    control_plane.keep(DefinedKeeper, Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
