"""What is said when a cluster has stopped: which of its pods the next start brings back, and which it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.cli.commands.down import describe_remaining_pods
from shoal.kube.objects import Obj
from shoal.local.data_dir import DataFolder


def pods(*policies: str, phase: str = "Running") -> list[Obj]:
    return [{"spec": {"restartPolicy": policy}, "status": {"phase": phase}} for policy in policies]


CASES: dict[str, tuple[list[Obj] | None, str]] = {
    "nothing ran": (pods("Never", phase="Succeeded"), "UP."),
    "one waits for a node": (pods("Never", phase="Pending"), "UP."),
    "all start anew": (pods("Always", "OnFailure"), "UP and restarts 2 pods."),
    "one starts anew": (pods("Always"), "UP and restarts 1 pod."),
    "one has ended": (pods("Never"), "UP. 1 pod with restartPolicy Never is not restarted."),
    "several have ended": (
        pods("Never", "Never", "Always"),
        "UP and restarts 1 pod. 2 pods with restartPolicy Never are not restarted.",
    ),
    "nobody knows": (
        None,
        "UP and restarts the pods that ran, except those with restartPolicy Never.",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_down_prints_what_happens_to_running_pods(case: str, tmp_path: Path) -> None:
    found, sentence = CASES[case]
    data = DataFolder(tmp_path)
    assert describe_remaining_pods(data, found) == sentence.replace("UP", f"`{data.command('up')}` starts it again")
