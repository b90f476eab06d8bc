"""A control plane whose own scheduler knows gangs, and which serves the APIs of other people's gang schedulers too."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from kit import control_plane
from kit.audited_control_plane import OperatedKeeper
from kit.control_plane import CONTROLLERS, ControlPlane

PROGRAMS = ("kube-controller-manager", "kube-scheduler")
GATES = "--feature-gates=GenericWorkload=true,GangScheduling=true"


@contextlib.contextmanager
def shared(folder: Path) -> Iterator[ControlPlane]:
    with control_plane.shared(folder, programs=PROGRAMS, keeper=__file__) as plane:
        yield plane


class GangKeeper(OperatedKeeper):
    def more_flags(self, program: str) -> Sequence[str]:
        controllers = ",".join((*CONTROLLERS, "podgroup-protection-controller"))
        own = {
            "kube-apiserver": (GATES, "--runtime-config=scheduling.k8s.io/v1alpha2=true"),
            "kube-scheduler": (GATES,),
            "kube-controller-manager": (GATES, f"--controllers={controllers}"),
        }[program]
        return [*super().more_flags(program), *own]


if __name__ == "__main__":
    control_plane.keep(GangKeeper, Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
