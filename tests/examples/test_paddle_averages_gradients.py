"""examples/paddle-collective: workers that learn together and end with the same weights."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kit.paddle_examples import configured, prepare
from kit.shoal_command import shoal

pytestmark = pytest.mark.processes
STEP = re.compile(r"worker-0 +\| step: \d+ loss: (\S+) accuracy: (\S+)")
END = re.compile(r"rank (\d) of 2 is done, sum of weights (\S+)")


@pytest.fixture(scope="module")
def example() -> Path:
    """The first time on a machine this installs Paddle, which takes a minute."""
    return prepare("paddle-collective")


async def test_two_workers_end_with_the_same_weights(example: Path, tmp_path: Path) -> None:
    config = configured(example, tmp_path, STEPS="40")
    told = await shoal("run", str(example / "collective.yaml"), "--plain", "--config", str(config), "-o", "json")
    assert told.code == 0, told.err
    assert json.loads(told.out)["status"]["state"]["phase"] == "Completed"
    ends = dict(END.findall(told.err))
    assert (sorted(ends), len(set(ends.values()))) == (["0", "1"], 1)
    steps = [(float(loss), float(accuracy)) for loss, accuracy in STEP.findall(told.err)]
    losses, accuracies = zip(*steps, strict=True)
    assert len(steps) == 40
    assert sum(losses[-5:]) < sum(losses[:5]) / 2
    assert sum(accuracies[-5:]) / 5 > 0.6  # four classes: chance is a quarter
