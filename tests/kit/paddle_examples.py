"""The Paddle examples as a test plays them: their environment, made once, a short training, and what its log says."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import yaml

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
_LINE = re.compile(r"(\S+) +\| .*pass: \d+ batch: \d+ loss: (\S+) auc: \S+, batch_auc: (\S+)")


def prepare(example: str) -> Path:
    """Make the environment where it is missing; the folder of the example."""
    folder = EXAMPLES / example
    subprocess.run([sys.executable, folder / "prepare.py"], check=True, stdout=sys.stderr)
    return folder


def configured(folder: Path, place: Path, **variables: str) -> Path:
    """The example's configuration with other variables, in a place of the test's own."""
    config = yaml.safe_load((folder / "shoal.yaml").read_text())
    for image in config["images"].values():
        image["python"] = str(folder / image["python"])
        image["mounts"] = {target: str(folder / source) for target, source in image["mounts"].items()}
        image["env"] = {**image["env"], **variables}
    written = place / "shoal.yaml"
    written.write_text(yaml.safe_dump(config))
    return written


@dataclass(frozen=True)
class Training:
    """What one trainer said, batch by batch."""

    losses: list[float]
    scores: list[float]

    @property
    def has_learned(self) -> bool:
        """A lower loss at the end than at the beginning, and guesses that are clearly better than chance."""
        return _mean(self.losses[-10:]) < _mean(self.losses[:10]) and _mean(self.scores[-10:]) > 0.6


def trainings(log: str) -> dict[str, Training]:
    """By task, as `shoal run` names it."""
    found: dict[str, Training] = {}
    for task, loss, score in _LINE.findall(log):
        training = found.setdefault(task, Training([], []))
        training.losses.append(float(loss))
        training.scores.append(float(score))
    return found


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
