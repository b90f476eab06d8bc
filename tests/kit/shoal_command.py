"""`shoal` as people type it: a process, what it printed, and its exit code."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


async def begun(*words: str, **environment: str) -> asyncio.subprocess.Process:
    """Without the variables of whoever runs the tests; `environment` adds some. Whoever begins it hears it out."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name == "SHOAL_OUT" or not name.startswith(("SHOAL_", "KUBE"))
    }
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "shoal", *words,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        env={**kept, **environment},
    )  # fmt: skip


async def shoal(*words: str, **environment: str) -> Outcome:
    """The same to its end."""
    process = await begun(*words, **environment)
    out, err = await process.communicate()
    assert process.returncode is not None
    return Outcome(process.returncode, out.decode(), err.decode())
