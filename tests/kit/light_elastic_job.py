"""The elastic example's manifest with processes that need no torch: a worker ends when its pipe is written to."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

import yaml

from kit.elastic_group import EXAMPLE
from shoal.kube.objects import Obj


class Pipes:
    """One per worker: it ends when something is written."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._ends: dict[int, int] = {}
        for index in range(4):
            os.mkfifo(folder / f"worker-{index}")
            # Open for both: neither we nor a worker that comes late waits for the other to open it.
            self._ends[index] = os.open(folder / f"worker-{index}", os.O_RDWR)
            stack.callback(os.close, self._ends[index])

    @property
    def command(self) -> list[str]:
        return ["sh", "-c", f"read line < {self._folder}/worker-$FC_TASK_INDEX"]

    def release(self, index: int) -> None:
        os.write(self._ends[index], b"\n")


def light(command: list[str]) -> tuple[list[Obj], Obj]:
    """The Services, and the Framework with other commands."""
    *services, framework = yaml.safe_load_all((EXAMPLE / "pet.yaml").read_text())
    etcd, worker = framework["spec"]["taskRoles"]
    etcd["task"]["pod"]["spec"]["containers"][0]["command"] = ["sleep", "100000"]
    worker["task"]["pod"]["spec"]["containers"][0]["command"] = command
    return services, framework


def patch_to(number: int) -> list[Obj]:
    """The patch of 2020: the size and the completion policy in one."""
    path = "/spec/taskRoles/1"
    return [
        {"op": "test", "path": f"{path}/name", "value": "worker"},
        {"op": "replace", "path": f"{path}/taskNumber", "value": number},
        {
            "op": "replace",
            "path": f"{path}/frameworkAttemptCompletionPolicy/minSucceededTaskCount",
            "value": number,
        },
    ]
