"""`shoal describe` shows the last log lines of the attempt that failed last, while the job goes on retrying it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kit.cli_runner import Terminal, at_a_cluster
from kit.framework_notation import fw, role
from kit.pod_behavior import runs
from shoal.kube.objects import Obj

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    with at_a_cluster(tmp_path_factory.mktemp("cli")) as opened:
        yield opened


def crashing(name: str, script: str, *, in_place: bool = False) -> Obj:
    """A job that never ends, with a task that runs the script again and again."""
    job = fw(name, role("worker", 1, 2, -1, fate=runs(), retry=(False, -1)))
    pod = job["spec"]["taskRoles"][0]["task"]["pod"]["spec"]
    pod["containers"][0]["command"] = ["sh", "-c", script]
    pod["restartPolicy"] = "OnFailure" if in_place else "Never"
    return job


def until_ready(terminal: Terminal, name: str) -> None:
    """Until the attempt that stays has printed `ready`."""
    with terminal.start("logs", "-f", "--grep", "ready", name) as following:
        assert following.stdout is not None
        assert "ready" in following.stdout.readline()
        following.terminate()


def section(page: str) -> list[str]:
    title, _, rest = page.partition("Last log lines of ")[2].partition(":\n")
    return [title, *(line.strip() for line in rest.partition("\n\n")[0].splitlines())]


@pytest.mark.parametrize("in_place", [False, True], ids=["another pod", "in place"])
def test_the_last_lines_of_the_failed_attempt_are_shown(terminal: Terminal, *, in_place: bool) -> None:
    name = "inplace" if in_place else "afresh"
    fails = "for i in 1 2 3 4 5 6 7; do echo line $$i; done; exit 3"
    mark = f"{terminal.folder}/{name}"
    once = f"if [ -e {mark} ]; then echo ready; exec sleep 1000000; fi; : > {mark}; {fails}"
    terminal.submit(crashing(name, once, in_place=in_place))
    until_ready(terminal, name)
    lines = [f"line {number}" for number in range(3, 8)]
    assert section(terminal("describe", name)) == ["worker-0, which failed with code 3", *lines]
    terminal("delete", name, "--no-wait")


def test_a_job_without_failures_has_no_such_section(terminal: Terminal) -> None:
    terminal.submit(crashing("well", "echo ready; exec sleep 1000000"))
    until_ready(terminal, "well")
    assert "Last log lines" not in terminal("describe", "well")
    terminal("delete", "well", "--no-wait")


def test_a_program_that_does_not_exist_is_named_where_the_language_keeps_no_message(terminal: Terminal) -> None:
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "x", "command": ["nosuchprogram"]}]}
    job: Obj = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "typo"}}
    terminal.submit({**job, "spec": {"backoffLimit": 0, "template": {"spec": pod}}})
    terminal("wait", "typo", code=127)
    (_, line) = section(terminal("describe", "typo"))
    assert line == 'exec: "nosuchprogram": executable file not found in $PATH'
