"""Trainer numbers are those of Paddle's unmodified start script: places among the names of pods, sorted as text."""

from __future__ import annotations

from typing import Any

from shoal.kube.objects import Obj
from shoal.launch.paddle_launcher.environment import read
from shoal.launch.paddle_launcher.peers import settings

NUMBERS = {"0": 0, "1": 1, "10": 2, "11": 3, "2": 4, "3": 5, "4": 6, "5": 7, "6": 8, "7": 9, "8": 10, "9": 11}


def pod(role: str, label: str, index: int) -> Obj:
    metadata = {"name": f"ctr-{role}-{index}", "labels": {label: "ctr"}}
    return {"metadata": metadata, "status": {"phase": "Running", "podIP": f"10.0.0.{index + 1}"}}


def orders(index: str) -> Any:
    return read(
        {
            "PADDLE_JOB_NAME": "ctr", "NAMESPACE": "default", "POD_NAME": f"ctr-trainer-{index}",
            "TRAINING_ROLE": "TRAINER", "PADDLE_TRAINERS_NUM": "12",
            "PADDLE_PSERVERS_NUM": "1", "PADDLE_PORT": "30236", "ENTRY": "true",
        }
    )  # fmt: skip


def test_16_twelve_trainers_have_the_numbers_of_the_start_script():
    pods = [pod("pserver", "paddle-job-pserver", 20), *(pod("trainer", "paddle-job", index) for index in range(12))]
    found = {index: int(settings(orders(index), pods)["PADDLE_TRAINER_ID"]) for index in NUMBERS}
    assert found == NUMBERS
