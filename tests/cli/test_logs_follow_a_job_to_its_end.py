"""`shoal logs -f`: from before a job's first pod to its end, with the tasks that come meanwhile."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.cli_runner import SHOAL, Terminal, at_a_cluster
from kit.framework_notation import fw, role
from shoal.kube.objects import Obj

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    with at_a_cluster(tmp_path_factory.mktemp("logs")) as opened:
        yield opened


def waiting_for(name: str, file: Path, *, start: str = "Start") -> Obj:
    """Two workers that say hello and end when the file is there; all must succeed."""
    made = fw(name, role("worker", 2, 1, 2, retry=(False, 0)), start=start)
    words = f"echo hello from $FC_TASK_INDEX; until [ -e {file} ]; do sleep 0.1; done"
    made["spec"]["taskRoles"][0]["task"]["pod"]["spec"]["containers"][0]["command"] = ["sh", "-c", words]
    return made


def test_logs_of_later_tasks_are_shown_from_their_first_line(terminal: Terminal) -> None:
    signal = terminal.folder / "grown"
    terminal.submit(waiting_for("grows", signal, start="Create"))
    with terminal.start("logs", "-f", "grows", "worker", "--tail=5") as following:
        assert following.stdout is not None
        terminal("start", "grows")
        first = sorted(following.stdout.readline() for _ in range(2))
        terminal("scale", "grows", "worker=3")
        third = following.stdout.readline()
        signal.touch()
        rest = following.stdout.read()
    assert (first, third, rest) == (
        ["worker-0 | hello from 0\n", "worker-1 | hello from 1\n"], "worker-2 | hello from 2\n", "",
    )  # fmt: skip
    assert following.returncode == 0


def test_logs_of_a_job_that_never_started_show_the_reason(terminal: Terminal) -> None:
    signal = terminal.folder / "present"
    signal.touch()
    terminal.submit(waiting_for("never", signal, start="Create"))
    words = [SHOAL, "logs", "-f", "never"]
    with subprocess.Popen(
        words, env=terminal.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as following:
        assert following.stderr is not None
        assert following.stderr.readline() == "never waits: The Framework waits for executionType Start\n"
        terminal("start", "never")
        assert following.wait() == 0


def test_one_task_needs_no_name_before_its_lines(terminal: Terminal) -> None:
    signal = terminal.folder / "single"
    terminal.submit(waiting_for("single", signal))
    with terminal.start("logs", "-f", "single", "worker-1") as following:
        assert following.stdout is not None
        assert following.stdout.readline() == "hello from 1\n"
        signal.touch()
        assert following.stdout.read() == ""


def test_logs_of_a_restarted_container_are_shown(terminal: Terminal) -> None:
    marker, pipe = terminal.folder / "second", terminal.folder / "pipe"
    os.mkfifo(pipe)
    job = fw("again", role("worker", 1, 1, 1))
    template = job["spec"]["taskRoles"][0]["task"]["pod"]["spec"]
    template["restartPolicy"] = "OnFailure"
    again = f"echo second run; read line < {pipe}"  # logs go with their pods: it stays until it was heard
    first_time = f"touch {marker}; echo first run; read line < {pipe}; exit 1"
    words = f"if [ -e {marker} ]; then {again}; else {first_time}; fi"
    template["containers"][0]["command"] = ["sh", "-c", words]
    terminal.submit(job)
    with terminal.start("logs", "-f", "again", "worker-0") as following:
        assert following.stdout is not None
        for run in ("first", "second"):
            assert following.stdout.readline() == f"{run} run\n"
            with pipe.open("w") as end:
                end.write("go on\n")
        assert following.stdout.read() == ""


def test_after_the_end_there_is_nothing_to_follow(terminal: Terminal) -> None:
    terminal.submit(fw("over", role("worker", 1)))
    terminal("wait", "over")
    assert terminal("logs", "-f", "over") == ""  # its task printed nothing


def test_an_unknown_task_is_reported_with_the_existing_tasks(terminal: Terminal) -> None:
    terminal.submit(fw("known", role("worker", 1)))
    assert terminal("logs", "known", "master", code=1) == (
        "Error: Framework known has no task 'master'. Its roles: worker.\n"
    )


def test_an_unknown_container_is_reported(terminal: Terminal) -> None:
    signal = terminal.folder / "other"
    terminal.submit(waiting_for("other", signal))
    with subprocess.Popen(
        [SHOAL, "logs", "-f", "other", "worker-0", "-c", "side"], env=terminal.env, stderr=subprocess.PIPE, text=True
    ) as following:
        assert following.stderr is not None
        assert "container side is not valid for pod other-worker-0" in following.stderr.readline()
        signal.touch()


def test_following_and_looking_back_do_not_go_together(terminal: Terminal) -> None:
    assert "--follow cannot be combined with --previous" in terminal("logs", "-f", "--previous", "known", code=2)
