"""Failed and waiting tasks at the top, one line per reason, task output on stdout, and the usual words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from kit.cli_runner import Terminal, at_a_cluster
from kit.framework_notation import fw, role
from kit.pod_behavior import exits, runs
from kit.shoal_command import shoal
from shoal.cli.main import ALIASES, COMMANDS
from shoal.cli.main import shoal as command
from shoal.kube.objects import Obj

pytestmark = pytest.mark.processes

THING = "example.com/thing"


def asking(job: Obj, *, role_name: str) -> Obj:
    """Its tasks of that role ask for more than any node has."""
    for each in job["spec"]["taskRoles"]:
        if each["name"] == role_name:
            container = each["task"]["pod"]["spec"]["containers"][0]
            container["resources"] = {"requests": {THING: "1"}, "limits": {THING: "1"}}
    return job


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    with at_a_cluster(tmp_path_factory.mktemp("cli")) as opened:
        yield opened


def tasks_in(story: str) -> list[str]:
    """The lines of the section about tasks."""
    return [line.strip() for line in story.partition("Tasks:\n")[2].partition("\n\n")[0].splitlines()]


def test_failed_and_waiting_tasks_stand_above_running_ones_with_one_line_per_reason(terminal: Terminal) -> None:
    broken = role("broken", 1, 2, -1, fate=exits(3))
    job = fw("mixed", role("runner", 2, 2, -1, fate=runs()), role("waiter", 3, 3, -1, fate=runs()), broken)
    terminal.submit(asking(job, role_name="waiter"))
    terminal("wait", "mixed", "--for", "running")
    with terminal.start("logs", "-f", "mixed", "waiter") as following:  # it prints once that the tasks wait
        following.terminate()
    lines = tasks_in(terminal("describe", "mixed"))
    words = [line.partition("  ")[2].strip().partition(" ")[0].rstrip(",") for line in lines]
    assert [word for word in words if word in ("failed", "waiting")] == words[: len(words) - 2]
    waiting = [line for line in lines if "waiting, " in line]
    assert [line.partition("  ")[0] for line in waiting] == ["waiter-0 to waiter-2"], lines
    terminal("delete", "mixed", "--no-wait")


def test_aliases_of_other_tools_are_accepted(terminal: Terminal) -> None:
    file = terminal.file(fw("words", role("worker", 1, fate=runs())))
    assert terminal("apply", file) == "Framework words stored.\n"
    terminal("wait", "words", "--for", "running")
    assert terminal("ls", "-o", "name") == terminal("ps", "-o", "name") == terminal("get", "-o", "name")
    events = terminal("events", "words").splitlines()
    assert events[0].split() == ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert [line for line in events[1:] if "/words" not in line] == []
    assert len(events) > 1
    heads, *used = (line.split() for line in terminal("top", "words").splitlines())
    assert heads == ["JOB", "TASK", "CPU", "MEMORY", "NODE"]
    assert [row[:2] for row in used] == [["words", "worker-0"]]
    assert terminal("cancel", "words").startswith("Framework words stops.")
    assert terminal("rm", "words") == "Framework words deleted.\n"


def test_help_lists_the_other_names_of_commands() -> None:
    overview = CliRunner().invoke(command, ["--help"]).output
    assert "Other names:" in overview
    for alias, name in ALIASES.items():
        assert f"The same as `shoal {name}`." in overview
        said = CliRunner().invoke(command, [alias, "--help"]).output
        assert said.startswith(f"Usage: shoal {alias}")
        assert COMMANDS[name].rstrip(".") in said.replace("\n  ", " ")


async def test_run_prints_what_tasks_print_on_stdout(tmp_path: Path) -> None:
    job = fw("hello", role("worker", 1, 1, 1, fate=exits(0)))
    job["spec"]["taskRoles"][0]["task"]["pod"]["spec"]["containers"][0]["command"] = ["echo", "hello"]
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
    ended = await shoal("run", "--plain", str(tmp_path / "job.yaml"))
    assert (ended.code, ended.out) == (0, "worker-0 | hello\n")
    assert ended.err.splitlines()[-1].endswith("hello: succeeded"), ended.err
