"""`shoal run` whose terminal is closed, or that is told to end: the job is stopped, and nothing stays behind."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
from pathlib import Path

import pytest
import yaml

from kit.framework_notation import fw, role
from kit.pod_behavior import runs

pytestmark = pytest.mark.processes

# Stands where a module of the cluster would be loaded, and is told there to end.
TOLD = """
import os, sys
from importlib.abc import MetaPathFinder

number = int(sys.argv.pop())

class Tell(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "shoal.cli.submit_client":
            os.kill(os.getpid(), number)
        return None

sys.meta_path.insert(0, Tell())
from shoal.cli import main
main()
"""
SAYS_GOODBYE = "trap 'echo left >> {note}; exit 0' TERM; echo ready; sleep 1000 & wait"


@pytest.fixture
def note(tmp_path: Path) -> Path:
    (tmp_path / "tmp").mkdir()
    return tmp_path / "note"


def manifest(folder: Path, script: str) -> str:
    job = fw("job", role("worker", fate=runs()))
    job["spec"]["taskRoles"][0]["task"]["pod"]["spec"]["containers"][0]["command"] = ["sh", "-c", script]
    (folder / "job.yaml").write_text(yaml.safe_dump(job))
    return str(folder / "job.yaml")


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "TMPDIR": str(folder / "tmp"), "TERM": "xterm"}


def left_in(folder: Path) -> list[str]:
    return [path.name for path in (folder / "tmp").iterdir()]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_the_job_and_waits_for_it(tmp_path: Path, note: Path, number: signal.Signals) -> None:
    words = [sys.executable, "-m", "shoal", "run", manifest(tmp_path, SAYS_GOODBYE.format(note=note)), "--plain"]
    with subprocess.Popen(words, env=environment(tmp_path), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.endswith("| ready\n"):
                process.send_signal(number)
    assert (process.returncode, note.read_text(), left_in(tmp_path)) == (130, "left\n", [])


@pytest.mark.parametrize("mode", [(), ("--plain",)], ids=["table", "lines"])
def test_a_terminal_that_is_closed_stops_the_job_and_waits_for_it(
    tmp_path: Path, note: Path, mode: tuple[str, ...]
) -> None:
    ours, its = pty.openpty()

    def take_it() -> None:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    words = [sys.executable, "-m", "shoal", "run", manifest(tmp_path, SAYS_GOODBYE.format(note=note)), *mode]
    with subprocess.Popen(
        words, env=environment(tmp_path), stdin=its, stdout=its, stderr=its, preexec_fn=take_it
    ) as process:
        os.close(its)
        with os.fdopen(ours, "rb", buffering=0) as screen:
            said = b""
            while b"ready" not in said:
                said += screen.read(4096)
    assert (process.returncode, note.read_text(), left_in(tmp_path)) == (130, "left\n", [])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_before_the_cluster_is_there_leaves_nothing_either(
    tmp_path: Path, note: Path, number: signal.Signals
) -> None:
    file = manifest(tmp_path, SAYS_GOODBYE.format(note=note))
    words = [sys.executable, "-c", TOLD, "run", file, str(int(number))]
    done = subprocess.run(words, env=environment(tmp_path), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr, left_in(tmp_path)) == (130, "", [])


def test_a_run_that_is_to_ignore_a_hangup_goes_on(tmp_path: Path, note: Path) -> None:
    os.mkfifo(note)
    words = ["nohup", sys.executable, "-m", "shoal", "run", manifest(tmp_path, f"echo ready; read word < {note}")]
    with subprocess.Popen(
        words, env=environment(tmp_path), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        for line in process.stdout:
            if line.endswith("| ready\n"):
                process.send_signal(signal.SIGHUP)
                note.write_text("go on\n")
    assert (process.returncode, left_in(tmp_path)) == (0, [])
