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
    "nothing ran": (pods("Never", phase="Succeeded"), "UP where it was."),
    "one waits for a node": (pods("Never", phase="Pending"), "UP where it was."),
    "all start anew": (pods("Always", "OnFailure"), "UP, and 2 pods that ran are restarted."),
    "one starts anew": (pods("Always"), "UP, and 1 pod that ran is restarted."),
    "one has ended": (pods("Never"), "UP. 1 pod that ran has ended for good (restartPolicy Never)."),
    "several have ended": (
        pods("Never", "Never", "Always"),
        "UP. 2 pods that ran have ended for good (restartPolicy Never); 1 is restarted.",
    ),
    "nobody knows": (
        None,
        "UP; pods that ran are restarted, except those with restartPolicy Never, which have ended.",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_down_prints_what_happens_to_running_pods(case: str, tmp_path: Path) -> None:
    found, sentence = CASES[case]
    data = DataFolder(tmp_path)
    assert describe_remaining_pods(data, found) == sentence.replace("UP", f"`{data.command('up')}` starts it again")
