"""A progress bar is in the log of its process while it moves, as parts of one line, and nothing of it is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.node.log_reader import LogFormatter, LogTrail
from shoal.node.sandbox.cri_log import LogFile, Stream


@pytest.fixture
def log(tmp_path: Path) -> LogFile:
    return LogFile(str(tmp_path / "log"), max_bytes=1 << 20, max_files=2)


def shown(folder: Path) -> bytes:
    """As a client of the API gets it."""
    trail = LogTrail(folder / "log")
    trail.seek_tail(None)
    try:
        return LogFormatter().format(trail.read())
    finally:
        trail.close()


def test_every_state_of_a_bar_is_there_before_its_line_ends(log: LogFile, tmp_path: Path) -> None:
    stream = Stream("stderr", log)
    for state in (b"\r 1/3", b"\r 2/", b"3", b"\r 3/3"):
        stream.feed(state)
    assert shown(tmp_path) == b"\r 1/3\r 2/3\r 3/3"
    stream.feed(b"\nnext\n")
    assert shown(tmp_path) == b"\r 1/3\r 2/3\r 3/3\nnext\n"


def test_text_without_a_carriage_return_waits_for_its_newline(log: LogFile, tmp_path: Path) -> None:
    stream = Stream("stdout", log)
    stream.feed(b"a line that is not")
    assert shown(tmp_path) == b""
    stream.feed(b" cut\n")
    assert (tmp_path / "log").read_bytes().count(b"\n") == 1


def test_a_line_of_the_other_stream_stands_on_its_own(log: LogFile, tmp_path: Path) -> None:
    bar, text = Stream("stderr", log), Stream("stdout", log)
    bar.feed(b"\r 1/3")
    text.feed(b"epoch 1\n")
    bar.feed(b"\r 2/3\n")
    assert shown(tmp_path) == b"\r 1/3\nepoch 1\n\r 2/3\n"


def test_a_line_that_ends_as_on_dos_is_one_line(log: LogFile, tmp_path: Path) -> None:
    stream = Stream("stdout", log)
    for piece in (b"dos\r", b"\nunix\n"):
        stream.feed(piece)
    assert shown(tmp_path) == b"dos\r\nunix\n"
