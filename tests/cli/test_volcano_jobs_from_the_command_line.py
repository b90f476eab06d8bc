"""The commands people use, for a Volcano Job: nothing about them is special to a language."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit.cli_runner import Terminal, at_a_cluster
from kit.pod_behavior import exits, runs
from kit.volcano_jobs import policy, task, vcjob

pytestmark = pytest.mark.processes

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "volcano-hello" / "hello.yaml"


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    with at_a_cluster(tmp_path_factory.mktemp("cli")) as opened:
        yield opened


def test_a_volcano_job_from_submission_to_its_end(terminal: Terminal) -> None:
    file = terminal.file(vcjob("pet", task("ps", 1, fate=runs()), task("worker", 2, fate=runs())))
    assert terminal("submit", file) == "Job pet stored.\n"
    assert terminal("wait", "pet", "--for", "running") == "Job pet is running.\n"
    assert terminal("scale", "pet", "worker=3") == "Job pet scaled to 3 x worker.\n"
    assert terminal("scale", "pet", "worker=3") == "Job pet already has 3 x worker: nothing was changed.\n"
    spec = json.loads(terminal("get", "job/pet", "-o", "json"))["spec"]
    assert (spec["minAvailable"], spec["tasks"][1]["replicas"], spec["tasks"][1]["minAvailable"]) == (4, 3, 3)
    story = terminal("describe", "vcjob/pet")
    assert story.startswith("Job pet in namespace default (ps x 1, worker x 3) is ")
    assert "waits for its group" not in story
    assert terminal("stop", "pet") == "Job pet stops. `shoal wait pet` waits until it has.\n"
    assert terminal("wait", "pet", code=1) == "Job pet was stopped.\n"
    assert json.loads(terminal("get", "pet", "-o", "json"))["status"]["state"]["phase"] == "Terminated"


def test_the_example_runs_to_its_end() -> None:
    made = subprocess.run(
        [sys.executable, "-m", "shoal", "run", str(EXAMPLE), "--plain", "-o", "json"], capture_output=True, text=True
    )
    assert made.returncode == 0, made.stderr
    status = json.loads(made.stdout)["status"]
    assert (status["state"]["phase"], status["succeeded"], status.get("retryCount", 0)) == ("Completed", 2, 0)
    assert "worker-1 | worker 1 knows hello-gang-server-0.hello-gang at " in made.stderr


def test_a_run_ends_with_an_abort_and_the_code_of_its_cause(tmp_path: Path) -> None:
    job = vcjob("pet", task("ps", 1, fate=runs()), task(fate=exits(7)), policies=[policy("PodFailed", "AbortJob")])
    told = Terminal(tmp_path)("run", Terminal(tmp_path).file(job), "--plain", code=7).splitlines()
    headline, way_out = told[-2:]
    assert headline.startswith("Job pet in namespace default (ps x 1, worker x 1) is held for ")
    assert headline.endswith(": worker-0 ended with code 7.")
    assert way_out.startswith("`shoal run` ends here. In a cluster of `shoal up`, `shoal start pet` resumes it")


def test_a_run_is_refused_at_once_where_there_is_no_such_queue(tmp_path: Path) -> None:
    at = Terminal(tmp_path)
    assert at("run", file := at.file(vcjob("pet", task(), queue="nowhere")), "--plain", code=1) == (
        f"Error: {file}: Job pet has 1 mistake:\n"
        '  spec.queue: Invalid value: "nowhere": unable to find job queue: there is no such queue; create it or '
        "name another\n"
    )


def test_waiting_ends_with_an_abort_and_goes_on_after_the_next_order(terminal: Terminal) -> None:
    job = vcjob("cat", task("ps", 1, fate=runs()), task(fate=exits(7)), policies=[policy("PodFailed", "AbortJob")])
    terminal("submit", terminal.file(job))
    assert terminal("wait", "cat", code=7) == (
        "Job cat is held: worker-0 ended with code 7. `shoal start cat` resumes it without repeating "
        "tasks that have succeeded; `shoal stop cat` ends it.\n"
    )
    terminal("stop", "cat")
    assert terminal("wait", "cat", code=1) == "Job cat was stopped.\n"


def test_definitions_come_with_what_belongs_to_them() -> None:
    made = subprocess.run(
        [sys.executable, "-m", "shoal", "crds", "volcano", "-o", "name"], capture_output=True, text=True
    )
    assert made.stdout.split() == [
        "jobs.batch.volcano.sh",
        "podgroups.scheduling.volcano.sh",
        "queues.scheduling.volcano.sh",
        "commands.bus.volcano.sh",
    ]
