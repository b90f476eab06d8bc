"""`nohup make test &` starts every test with SIGINT and SIGHUP ignored; programs under test must not inherit that."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

SHOWS_IGNORED_SIGNALS = """
import signal, subprocess, sys

def test_ignored_signals_of_a_child():
    code = "import re; print(re.search('SigIgn:.*?([0-9a-f]+)', open('/proc/self/status').read())[1])"
    ignored = int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout, 16)
    assert [each.name for each in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT) if ignored >> (each - 1) & 1] == []
"""


@pytest.mark.processes
@pytest.mark.parametrize("workers", [[], ["-n", "1"]], ids=["in one process", "in workers"])
def test_item_17_a_child_of_a_test_does_not_inherit_ignored_signals(tmp_path: Path, workers: list[str]):
    (tmp_path / "conftest.py").symlink_to(TESTS / "conftest.py")
    (tmp_path / "test_child.py").write_text(SHOWS_IGNORED_SIGNALS)
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-c",
        "/dev/null",
        "--rootdir",
        str(tmp_path),
    ]
    done = subprocess.run(
        [*words, *workers, str(tmp_path)],
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        preexec_fn=lambda: [signal.signal(each, signal.SIG_IGN) for each in (signal.SIGINT, signal.SIGHUP)],
    )
    assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout + done.stderr


def test_item_17_the_run_itself_survives_a_hangup_that_its_parent_ignored(tmp_path: Path):
    (tmp_path / "conftest.py").symlink_to(TESTS / "conftest.py")
    (tmp_path / "test_hangup.py").write_text(
        "import os, signal\n\n\ndef test_survives():\n    os.kill(os.getpid(), signal.SIGHUP)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null", str(tmp_path)],
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    assert done.returncode == 0, done.stdout + done.stderr
