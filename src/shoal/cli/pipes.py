"""Whether the output of a command is still read: `shoal logs -f job | head -2` is done after two lines.

The kernel reports when the other end of a pipe is closed, so the command need not wait for the next line to notice it.
"""

from __future__ import annotations

import asyncio
import os
import select
import stat
import sys
from collections.abc import Coroutine
from typing import Any

CLOSED_PIPE_CODE = 141  # what shells say of a command that wrote into a closed pipe


class PipeClosed(Exception):
    """Standard output has no reader any more."""


async def while_pipe_open(work: Coroutine[Any, Any, None]) -> None:
    """Do the work; raises PipeClosed as soon as its output has no reader."""
    try:
        pipe = sys.stdout.fileno()
        is_pipe = stat.S_ISFIFO(os.fstat(pipe).st_mode)
    except (OSError, ValueError, AttributeError):
        is_pipe = False  # the output is captured in memory
    if not is_pipe:
        await work
        return
    loop = asyncio.get_running_loop()
    closed = asyncio.Event()
    loop.add_reader(pipe, closed.set)  # a pipe's writing end is never readable: this is its other end going
    writing, pipe_closed = asyncio.create_task(work), asyncio.create_task(closed.wait())
    try:
        await asyncio.wait((writing, pipe_closed), return_when=asyncio.FIRST_COMPLETED)
    finally:
        loop.remove_reader(pipe)
        poll = select.poll()
        poll.register(pipe, 0)  # errors are reported without a request
        is_closed = any(events & select.POLLERR for _, events in poll.poll(0))
        for task in (writing, pipe_closed):
            task.cancel()
        ends = await asyncio.gather(writing, pipe_closed, return_exceptions=True)
    if is_closed:
        raise PipeClosed
    if isinstance(ends[0], BaseException):
        raise ends[0]


def exit_on_closed_pipe() -> SystemExit:
    """The quiet end of a command: what Python still buffers is discarded too."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return SystemExit(CLOSED_PIPE_CODE)
