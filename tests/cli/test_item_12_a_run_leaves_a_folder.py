"""`shoal run` leaves a folder for each job: logs of every attempt, the final object, the story and the metrics."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
import yaml

from kit.cli_runner import SHOAL
from kit.framework_notation import fw, role

pytestmark = pytest.mark.processes

SCRIPT = """
n=$(ls {folder} | grep -c attempt); touch {folder}/attempt-$n
printf '\\r 50%%|#    | 1/2 [00:01<00:01, 4.00it/s, loss=0.9]'
printf '\\r100%%|##   | 2/2 [00:01<00:00, 4.00it/s, loss=0.%d]\\n' $n
[ $n -ge 1 ]
"""


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name != "SHOAL_OUT"}
    return subprocess.run(
        [SHOAL, "run", "job.yaml", "--plain", *words], cwd=folder, env=env, capture_output=True, text=True, check=False
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    job = fw("hello", role("worker", 1, 1, 1, retry=(False, 1)))
    script = SCRIPT.format(folder=tmp_path / "attempts")
    (tmp_path / "attempts").mkdir()
    job["spec"]["taskRoles"][0]["task"]["pod"]["spec"]["containers"][0]["command"] = ["sh", "-c", script]
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
    return tmp_path


def test_logs_object_description_and_metrics_are_written(folder: Path) -> None:
    made = run(folder)
    assert made.returncode == 0, made.stderr
    (left,) = (folder / "shoal-out").iterdir()
    assert f"Logs and results of hello are kept in shoal-out/{left.name}." in made.stderr
    assert {path.name: path.read_text() for path in left.glob("*.log")} == {
        "worker-0.0.log": "100%|##   | 2/2 [00:01<00:00, 4.00it/s, loss=0.0]\n",
        "worker-0.1.log": "100%|##   | 2/2 [00:01<00:00, 4.00it/s, loss=0.1]\n",
    }
    assert yaml.safe_load((left / "job.yaml").read_text())["status"]["state"] == "Completed"
    assert (left / "story.txt").read_text().startswith("Framework hello in namespace default (worker x 1) succeeded")
    points = [json.loads(line) for line in (left / "metrics.jsonl").read_text().splitlines()]
    last = {each["attempt"]: each for each in points}  # a bar may have been seen before, while it moved
    assert [
        (each["task"], number, each["step"], each["loss"], each["step_seconds"]) for number, each in last.items()
    ] == [
        ("worker-0", 1, "2/2", 0.0, 0.25),
        ("worker-0", 2, "2/2", 0.1, 0.25),
    ]


def test_another_folder_or_none_can_be_chosen(folder: Path) -> None:
    assert run(folder, "--out", "elsewhere/results").returncode == 0
    assert [path.name.partition("-")[0] for path in (folder / "elsewhere" / "results").iterdir()] == ["hello"]
    assert run(folder, "--no-out").returncode == 0
    assert not (folder / "shoal-out").exists()


def test_a_folder_that_cannot_be_made_stops_no_job(folder: Path) -> None:
    (folder / "shoal-out").write_text("in the way")
    made = run(folder)
    assert made.returncode == 0, made.stderr
    assert "Warning: no output folder is written" in made.stderr
