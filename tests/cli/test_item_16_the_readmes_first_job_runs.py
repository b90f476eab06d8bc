"""What the README shows under "Run a job" can be typed after `pip install .`: it needs only Shoal and a shell."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from kit.cli_runner import SHOAL

pytestmark = pytest.mark.processes

ROOT = Path(__file__).resolve().parents[2]


def commands() -> list[str]:
    section = (ROOT / "README.md").read_text().partition("## Run a job\n")[2].partition("\n## ")[0]
    before_training = section.partition("A training needs its own environment")[0]
    return re.findall(r"^\$ (shoal .*)$", before_training, re.MULTILINE)


def test_the_commands_of_run_a_job_succeed_without_packages_of_their_own(tmp_path: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SHOAL_", "KUBE"))}
    env = {**kept, "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data"), "PATH": "/usr/bin:/bin"}
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    printed = ""
    try:
        for line in commands():
            words = [SHOAL, *shlex.split(line, comments=True)[1:]]
            both = subprocess.STDOUT
            ended = subprocess.run(words, cwd=tmp_path, env=env, text=True, stdout=subprocess.PIPE, stderr=both)
            assert ended.returncode == 0, (line, ended.stdout)
            printed += ended.stdout
    finally:
        subprocess.run([SHOAL, "down"], env=env)
    assert printed.count("worker-1 | hello from worker-1\n") == 2  # of `run`, and of `logs`
