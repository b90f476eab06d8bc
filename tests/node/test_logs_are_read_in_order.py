"""Reading logs: tails, times, limits, parts of lines, and following through rotations."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.cluster.client import LogOptions
from shoal.kube.errors import ApiError
from shoal.node.log_reader import LogTrail, read_log
from shoal.node.sandbox.cri_log import LogFile, Stream

NOW = datetime(2030, 1, 1, 12, 0, 30, tzinfo=UTC)


def record(second: int, text: str, flag: str = "F") -> str:
    return f"2030-01-01T12:00:{second:02}.000000000Z stdout {flag} {text}\n"


async def text_of(path: Path, **options: Any) -> str:
    chunks = read_log(path, LogOptions(**options), now=NOW, is_over=lambda: True, subscribe=lambda _: lambda: None)
    return b"".join([chunk async for chunk in chunks]).decode()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Two rotated files and the current one; one line is in parts."""
    path = tmp_path / "0.log"
    (tmp_path / "0.log.2").write_text(record(1, "one"))
    (tmp_path / "0.log.1").write_text(record(2, "two ", "P") + record(3, "halves"))
    path.write_text(record(4, "three") + record(20, "four"))
    return path


READINGS: dict[str, tuple[dict[str, Any], str]] = {
    "everything": ({}, "one\ntwo halves\nthree\nfour\n"),
    "the last line": ({"tail_lines": 1}, "four\n"),
    "a tail into an older file": ({"tail_lines": 3}, "two halves\nthree\nfour\n"),
    "a tail longer than the log": ({"tail_lines": 30}, "one\ntwo halves\nthree\nfour\n"),
    "no lines at all": ({"tail_lines": 0}, ""),
    "since some seconds": ({"since_seconds": 10}, "four\n"),
    "since a time": ({"since_time": "2030-01-01T12:00:04Z"}, "three\nfour\n"),
    "some bytes": ({"limit_bytes": 6}, "one\ntw"),
    "with times": (
        {"timestamps": True, "tail_lines": 3},
        "2030-01-01T12:00:02.000000000Z two halves\n"
        "2030-01-01T12:00:04.000000000Z three\n2030-01-01T12:00:20.000000000Z four\n",
    ),
}


@pytest.mark.parametrize("case", READINGS, ids=str)
async def test_a_log_is_read_as_asked(case: str, log: Path) -> None:
    options, expected = READINGS[case]
    assert await text_of(log, **options) == expected
    assert await text_of(log, **options, follow=True) == expected


async def test_a_time_that_is_none_is_refused(log: Path) -> None:
    with pytest.raises(ApiError) as refused:
        await text_of(log, since_time="yesterday")
    assert refused.value.code == 400


async def test_a_log_that_is_not_there_yet_is_empty(tmp_path: Path) -> None:
    assert await text_of(tmp_path / "0.log") == ""


async def test_following_ends_at_the_limit_though_the_run_goes_on(log: Path) -> None:
    options = LogOptions(follow=True, limit_bytes=6)
    chunks = read_log(log, options, now=NOW, is_over=lambda: False, subscribe=lambda _: lambda: None)
    assert b"".join([chunk async for chunk in chunks]) == b"one\ntw"


async def test_following_passes_through_rotations_and_ends_with_the_run(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    writer = LogFile(str(path), max_bytes=200, max_files=50)
    stream = Stream("stdout", writer)
    over = False
    poked: list[Callable[[], None]] = []

    def subscribe(poke: Callable[[], None]) -> Callable[[], None]:
        poked.append(poke)
        return poked.clear

    chunks = read_log(path, LogOptions(follow=True), now=NOW, is_over=lambda: over, subscribe=subscribe)
    reading = asyncio.create_task(_gather(chunks))
    for number in range(40):
        stream.feed(f"line {number}\n".encode())
        if number % 3 == 0:
            await asyncio.sleep(0)  # a turn of the loop for the reader
    over = True
    poked[0]()
    assert await reading == "".join(f"line {number}\n" for number in range(40))
    assert poked == []
    writer.close()


@pytest.mark.parametrize("tail", [None, 100], ids=["from the first line", "from a tail"])
def test_files_renamed_while_one_looks_at_them_are_read_once_and_in_order(tmp_path: Path, tail: int | None) -> None:
    path = tmp_path / "0.log"
    stream = Stream("stdout", LogFile(str(path), max_bytes=10, max_files=99))  # every line makes a new file
    lines = iter(range(1, 40))
    stream.feed(b"line 0\n")
    trail = LogTrail(path)
    look = trail._files

    def look_slowly() -> list[Path]:
        found = look()
        if (number := next(lines, None)) is not None:
            stream.feed(f"line {number}\n".encode())  # between this look and what is done with it
        return found

    trail._files = look_slowly  # type: ignore[method-assign]
    trail.seek_tail(tail)
    read = b""
    while records := trail.read():
        read += records
    trail.close()
    written = b"".join(line.rsplit(b" ", 2)[-2] + b" " + line.rsplit(b" ", 1)[-1] for line in read.splitlines(True))
    assert written.decode() == "".join(f"line {number}\n" for number in range(40))


async def test_a_single_file_that_was_emptied_is_read_from_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_text(record(1, "a long line of the first part"))
    trail = LogTrail(path)
    trail.seek_tail(None)
    assert trail.read().decode() == record(1, "a long line of the first part")
    path.write_text(record(2, "short"))
    assert trail.read().decode() == record(2, "short")
    trail.close()


async def _gather(chunks: Any) -> str:
    return b"".join([chunk async for chunk in chunks]).decode()


LINES = st.lists(st.text(alphabet="ab é", max_size=30), max_size=30)


@settings(deadline=None)
@given(LINES, st.integers(60, 400), st.integers(0, 40))
def test_any_tail_is_the_end_of_the_whole(lines: list[str], size: int, tail: int) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "0.log"
        writer = LogFile(str(path), max_bytes=size, max_files=100)
        stream = Stream("stdout", writer)
        for line in lines:
            stream.feed(f"{line}\n".encode())
        writer.close()
        expected = lines[len(lines) - min(tail, len(lines)) :]
        assert _read(path, tail) == "".join(f"{line}\n" for line in expected)


def _read(path: Path, tail: int) -> str:
    trail = LogTrail(path)
    trail.seek_tail(tail)
    text = b""
    while records := trail.read():
        text += b"".join(line.split(b" ", 3)[3] + b"\n" for line in records.splitlines())
    trail.close()
    return text.decode()
