"""A control plane that has Shoal's kinds from the start.

Shared by tests that leave much behind and clean nothing up: it ends with the run. A test that kills the API server or
pauses etcd keeps one of its own (`control_plane.kept`).
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from kit import control_plane
from kit.audited_control_plane import OperatedKeeper
from kit.control_plane import ControlPlane

PROGRAMS = ("kube-controller-manager",)


@contextlib.contextmanager
def shared(folder: Path) -> Iterator[ControlPlane]:
    with control_plane.shared(folder, programs=PROGRAMS, keeper=__file__) as plane:
        yield plane


class DefinedKeeper(OperatedKeeper):
    def more_flags(self, program: str) -> Sequence[str]:
        if program == "kube-controller-manager":
            self.define()
        return ()


if __name__ == "__main__":
    control_plane.keep(DefinedKeeper, Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
