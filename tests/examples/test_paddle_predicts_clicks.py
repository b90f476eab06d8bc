"""examples/paddle-ctr: servers and trainers to their end, as one Volcano Job and as a ReplicaSet with a Job."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kit.paddle_examples import configured, prepare, trainings
from kit.shoal_command import shoal

pytestmark = pytest.mark.processes
SHORT = {"PASSES": "1", "BATCHES": "60", "MODEL_DIR": ""}


@pytest.fixture(scope="module")
def example() -> Path:
    """The first time on a machine this installs Paddle, which takes a minute."""
    return prepare("paddle-ctr")


async def test_the_volcano_job_trains_and_completes(example: Path, tmp_path: Path) -> None:
    config = configured(example, tmp_path, **SHORT)
    told = await shoal("run", str(example / "ctr-volcano.yaml"), "--plain", "--config", str(config), "-o", "json")
    assert told.code == 0, told.err
    assert json.loads(told.out)["status"]["state"]["phase"] == "Completed"
    learned = {task: (len(each.losses), each.has_learned) for task, each in trainings(told.err).items()}
    assert learned == {"trainer-0": (60, True), "trainer-1": (60, True)}, told.err


async def test_the_native_flow_trains_while_servers_stay(example: Path, tmp_path: Path) -> None:
    config = configured(example, tmp_path, **SHORT)
    files = [str(example / name) for name in ("pserver.yaml", "trainer.yaml")]
    told = await shoal("run", *files, "--plain", "--config", str(config), "-o", "json")
    assert told.code == 0, told.err
    servers, trainer = json.loads(told.out)["items"]
    assert (servers["kind"], servers["status"]["readyReplicas"]) == ("ReplicaSet", 2)
    assert [each["type"] for each in trainer["status"]["conditions"]] == ["SuccessCriteriaMet", "Complete"]
    assert {name: trainer["status"].get(name) for name in ("succeeded", "failed")} == {"succeeded": 2, "failed": None}
    by_pod = trainings(told.err)  # pods of a Job without indexes are told apart by the letters of their names
    assert all(re.fullmatch(r"pod-[a-z0-9]{5}", pod) for pod in by_pod), told.err
    assert [(len(each.losses), each.has_learned) for each in by_pod.values()] == [(60, True)] * 2, told.err
