"""A progress bar that only carriage returns move: at a terminal it is seen moving, in a file its last state is kept."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from kit.cli_runner import SHOAL, Terminal, at_a_cluster
from kit.framework_notation import fw, role
from kit.pseudo_terminal import AtTerminal
from shoal.kube.objects import Obj
from shoal.training_progress import plain

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    with at_a_cluster(tmp_path_factory.mktemp("bars")) as opened:
        yield opened


def training(name: str, pipe: Path) -> Obj:
    """A bar of three states like tqdm's; each further one appears when somebody writes into the pipe."""
    os.mkfifo(pipe)
    made = fw(name, role("worker", 1, 1, 1))
    bar = "printf '\\r%3d%%|##  | %d/3 [00:01<00:02, 4.00it/s, loss=0.%d]'"
    words = f"""
    exec 3<> {pipe}
    for n in 1 2 3; do {bar} $((n * 33)) $n $((9 - n)) >&2; read line <&3; done
    printf '\\n' >&2; echo done >&2
    """
    container = made["spec"]["taskRoles"][0]["task"]["pod"]["spec"]["containers"][0]
    container["command"] = ["sh", "-c", words]
    return made


def go_on(pipe: Path) -> None:
    with pipe.open("w") as end:
        end.write("go on\n")


def test_run_shows_the_bar_and_its_values_in_the_table(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(training("bar", pipe)))
    with AtTerminal([SHOAL, "run", "job.yaml"], {**os.environ, "KUBECONFIG": "/nowhere"}, tmp_path) as run:
        for number in (1, 2, 3):
            run.read_until(lambda text, n=number: f" {n}/3 [00:01" in text)  # below the table
            run.read_until(lambda text, n=number: f" {n}/3 " in text.replace(f" {n}/3 [", "") and f"0.{9 - n}" in text)
            go_on(pipe)
        assert run.read_to_end() == 0, run.text
    assert "worker-0 | done" in plain(run.text)


def test_following_shows_the_bar_in_one_row(terminal: Terminal) -> None:
    pipe = terminal.folder / "followed"
    terminal.submit(training("followed", pipe))
    with AtTerminal([SHOAL, "logs", "-f", "followed"], terminal.env, terminal.folder) as logs:
        for number in (1, 2, 3):
            logs.read_until(lambda text, n=number: f" {n}/3 [00:01" in text)
            go_on(pipe)
        assert logs.read_to_end() == 0, logs.text
    rows = [row for row in logs.text.split("\r\n") if "/3 [" in row]
    assert len(rows) == 1
    assert "\x1b[K" in rows[0]


def test_a_file_gets_the_first_state_at_once_and_the_last_one_for_good(terminal: Terminal) -> None:
    pipe = terminal.folder / "piped"
    terminal.submit(training("piped", pipe))
    words = [SHOAL, "logs", "-f", "piped"]
    with subprocess.Popen(words, env=terminal.env, stdout=subprocess.PIPE, text=True) as following:
        assert following.stdout is not None
        assert "1/3 [00:01" in following.stdout.readline()
        for _ in range(3):
            go_on(pipe)
        rest = following.stdout.read()
    assert "3/3 [00:01" in rest
    assert rest.splitlines()[-1] == "worker-0 | done"
