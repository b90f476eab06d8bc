"""Trainer numbers are those of Paddle's unmodified start script: places among the names of pods, sorted as text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kit.paddle_jobs import last_line, member
from kit.volcano_jobs import policy, vcjob
from kit.volcano_world import RealVolcano
from shoal.kube.objects import Obj
from shoal.launch.paddle_launcher.environment import read
from shoal.launch.paddle_launcher.peers import training_env

NUMBERS = {"0": 0, "1": 1, "10": 2, "11": 3, "2": 4, "3": 5, "4": 6, "5": 7, "6": 8, "7": 9, "8": 10, "9": 11}


def pod(role: str, label: str, index: int) -> Obj:
    metadata = {"name": f"ctr-{role}-{index}", "labels": {label: "ctr"}}
    return {"metadata": metadata, "status": {"phase": "Running", "podIP": f"10.0.0.{index + 1}"}}


def config(index: str) -> Any:
    return read(
        {
            "PADDLE_JOB_NAME": "ctr", "NAMESPACE": "default", "POD_NAME": f"ctr-trainer-{index}",
            "TRAINING_ROLE": "TRAINER", "PADDLE_TRAINERS_NUM": "12",
            "PADDLE_PSERVERS_NUM": "1", "PADDLE_PORT": "30236", "ENTRY": "true",
        }
    )  # fmt: skip


def test_16_twelve_trainers_have_the_numbers_of_the_start_script():
    pods = [pod("pserver", "paddle-job-pserver", 20), *(pod("trainer", "paddle-job", index) for index in range(12))]
    found = {index: int(training_env(config(index), pods)["PADDLE_TRAINER_ID"]) for index in NUMBERS}
    assert found == NUMBERS


@pytest.mark.processes
async def test_16_twelve_trainers_of_a_running_job_have_the_same_numbers(tmp_path: Path) -> None:
    size = {"servers": 1, "trainers": 12}
    trainer = member("trainer", "echo $PADDLE_TRAINER_ID", **size)
    job = vcjob(
        "ctr",
        member("pserver", "exec sleep 100000", **size),
        {**trainer, "policies": [policy("TaskCompleted", "CompleteJob")]},
        schedulerName="volcano",
    )
    async with RealVolcano(tmp_path) as world:
        await world.submit(job)
        await world.in_phase("ctr", "Completed")
        found = {index: int(await last_line(world, f"ctr-trainer-{index}")) for index in NUMBERS}
    assert found == NUMBERS
