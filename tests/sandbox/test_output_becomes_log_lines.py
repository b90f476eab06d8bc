"""What a program writes is in its log, byte for byte, as lines with a time and a stream."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.sandboxes import Place
from shoal.node.sandbox.cri_log import MAX_PART_BYTES, LogFile, Stream, timestamp

LINE = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z) (stdout|stderr) ([FP]) (.*)", re.DOTALL)


def written(path: Path) -> list[tuple[bytes, bytes, bytes]]:
    lines = path.read_bytes().split(b"\n")
    assert lines.pop() == b""
    found = []
    for line in lines:
        match = LINE.fullmatch(line)
        assert match, line
        found.append(match.groups()[1:])
    return found


def text_of(path: Path, stream: bytes = b"stdout") -> bytes:
    return b"".join(text + (b"\n" if flag == b"F" else b"") for name, flag, text in written(path) if name == stream)


@given(
    chunks=st.lists(
        st.one_of(
            st.binary(max_size=40),
            st.just(b"\n"),
            st.integers(MAX_PART_BYTES - 2, 2 * MAX_PART_BYTES + 2).map(lambda count: b"x" * count),
        )
    )
)
def test_whatever_is_written_can_be_read_back(tmp_path_factory: pytest.TempPathFactory, chunks: list[bytes]) -> None:
    path = tmp_path_factory.mktemp("log") / "log"
    log = LogFile(str(path), max_bytes=1 << 30, max_files=2)
    stream = Stream("stdout", log)
    for chunk in chunks:
        stream.feed(chunk)
    stream.finish()
    log.close()

    assert text_of(path) == b"".join(chunks)
    assert all(len(text) <= MAX_PART_BYTES for _, _, text in written(path))


def test_a_full_file_is_renamed_and_the_oldest_goes(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = LogFile(str(path), max_bytes=150, max_files=3)
    stream = Stream("stdout", log)
    for number in range(12):
        stream.feed(b"line %d\n" % number)
    log.close()

    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["log", "log.1", "log.2"]
    kept = b"".join(text_of(tmp_path / name) for name in ("log.2", "log.1", "log"))
    assert kept.endswith(b"line 10\nline 11\n")
    assert all((tmp_path / name).stat().st_size <= 150 for name in names)


def test_a_single_file_is_emptied_when_it_is_full(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = LogFile(str(path), max_bytes=100, max_files=1)
    stream = Stream("stderr", log)
    for number in range(5):
        stream.feed(b"line %d\n" % number)
    log.close()

    assert [path.name for path in tmp_path.iterdir()] == ["log"]
    assert text_of(path, b"stderr").endswith(b"line 4\n")


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        pytest.param(0, b"1970-01-01T00:00:00.000000000Z", id="epoch"),
        pytest.param(1_700_000_000_000_000_001, b"2023-11-14T22:13:20.000000001Z", id="all digits kept"),
    ],
)
def test_times_are_utc_with_nanoseconds(nanoseconds: int, text: bytes) -> None:
    assert timestamp(nanoseconds) == text


@pytest.mark.processes
async def test_both_streams_of_a_process_are_in_its_log(loopback: Place) -> None:
    pod = await loopback.pod()
    await pod.output("echo one; echo two >&2; printf 'no newline'")

    lines = written(pod.log_file())
    assert sorted(lines) == [
        (b"stderr", b"F", b"two"),
        (b"stdout", b"F", b"one"),
        (b"stdout", b"P", b"no newline"),
    ]


@pytest.mark.processes
async def test_the_last_output_is_in_the_log_before_the_exit_is_reported(loopback: Place) -> None:
    pod = await loopback.pod()
    await pod.output("seq 1 20000")

    assert pod.logged() == "".join(f"{number}\n" for number in range(1, 20001))


@pytest.mark.processes
async def test_a_program_may_open_its_output_again(loopback: Place) -> None:
    pod = await loopback.pod()

    assert await pod.output("echo again > /dev/stdout") == "again\n"
