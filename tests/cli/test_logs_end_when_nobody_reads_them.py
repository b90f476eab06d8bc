"""A command that prints into a pipe ends when its reader has gone, without waiting for another line."""

from __future__ import annotations

import asyncio
import io
import os
import sys

import pytest

from shoal.cli.pipes import PipeClosed, while_pipe_open


async def for_ever() -> None:
    await asyncio.Event().wait()


async def test_work_ends_when_the_reader_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        asyncio.get_running_loop().call_soon(os.close, reading)
        with pytest.raises(PipeClosed):
            await while_pipe_open(for_ever())


async def test_a_closed_pipe_is_no_error_of_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)

    async def write() -> None:
        os.write(writing, b"line\n")

    with os.fdopen(writing, "w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        with pytest.raises(PipeClosed):
            await while_pipe_open(write())


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
        await while_pipe_open(work(broken=False))
        with pytest.raises(ConnectionResetError):
            await while_pipe_open(work(broken=True))
    assert done == ["worked", "worked"]
