"""A page for a terminal breaks between words, never beyond its width, and loses no word."""

from __future__ import annotations

from pathlib import Path

import pytest

from kit.cli_runner import SHOAL, at_a_cluster
from kit.framework_notation import fw, role
from kit.pod_behavior import exits
from kit.pseudo_terminal import AtTerminal
from shoal.cli.commands.describe import wrapped

PAGE = """Framework pet in namespace default (worker x 4) is pending for 12s.

Tasks:
  worker-0 to worker-3  waiting, needs 8 nvidia.com/gpu, the most free is 3 of 4 on node laptop.example.com-0
  worker-4              running, on laptop"""


@pytest.mark.parametrize("width", [40, 60, 80])
def test_no_line_is_wider_than_the_terminal_and_no_word_is_lost(width: int) -> None:
    lines = wrapped(PAGE, width).splitlines()
    assert max(map(len, lines)) <= width
    assert " ".join(lines).split() == PAGE.split()


def test_what_is_continued_stands_below_its_line() -> None:
    lines = wrapped(PAGE, 60).splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("  worker-0 to worker-3  waiting"))
    assert lines[first + 1].startswith("    ")


def test_a_page_that_fits_stays_as_it_is() -> None:
    assert wrapped(PAGE, 200) == PAGE


@pytest.mark.processes
def test_describe_fits_its_terminal_and_is_whole_in_a_pipe(tmp_path: Path) -> None:
    with at_a_cluster(tmp_path) as terminal:
        terminal.submit(fw("pet", role("worker", 1, 1, 1, fate=exits(0))))
        terminal("wait", "pet")
        whole = terminal("describe", "pet")
        with AtTerminal([SHOAL, "describe", "pet"], terminal.env, tmp_path, columns=50) as narrow:
            assert narrow.read_to_end() == 0, narrow.text
    assert max(map(len, whole.splitlines())) > 50
    assert max(map(len, narrow.text.replace("\r", "").splitlines())) <= 50
