"""A command that prints into a pipe ends when its reader has gone, without waiting for another line."""

from __future__ import annotations

import asyncio
import io
import os
import sys

import pytest

from shoal.cli.pipes import Unheard, while_heard


async def for_ever() -> None:
    await asyncio.Event().wait()


async def test_work_ends_when_the_reader_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        asyncio.get_running_loop().call_soon(os.close, reading)
        with pytest.raises(Unheard):
            await while_heard(for_ever())


async def test_a_line_that_nobody_reads_is_no_error_of_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)

    async def write() -> None:
        os.write(writing, b"line\n")

    with os.fdopen(writing, "w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        with pytest.raises(Unheard):
            await while_heard(write())


@pytest.mark.parametrize("is_pipe", [True, False], ids=["a pipe", "no pipe"])
async def test_what_is_read_ends_as_it_ends(monkeypatch: pytest.MonkeyPatch, is_pipe: bool) -> None:
    done = []

    async def work(broken: bool) -> None:
        done.append("worked")
        if broken:
            raise ConnectionResetError

    reading, writing = os.pipe()
    with os.fdopen(reading), os.fdopen(writing, "w") as out:
        monkeypatch.setattr(sys, "stdout", out if is_pipe else io.StringIO())
        await while_heard(work(broken=False))
        with pytest.raises(ConnectionResetError):
            await while_heard(work(broken=True))
    assert done == ["worked", "worked"]
