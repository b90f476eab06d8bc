"""What a loop is, and how the loops of a cluster run together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Protocol

import structlog

log = structlog.get_logger(__name__)

PAUSE_SECONDS = 1.0


class Loop(Protocol):
    """Runs until cancelled. It may be cut anywhere: what it has to know it finds in the cluster."""

    name: str

    async def run(self) -> None: ...


async def run_all(loops: Iterable[Callable[[], Loop]]) -> None:
    """Run the loops side by side; each is made by a function, so that one that broke starts afresh."""
    async with asyncio.TaskGroup() as group:
        for make in loops:
            group.create_task(_keep_running(make))


async def _keep_running(make: Callable[[], Loop]) -> None:
    while True:
        loop = make()
        try:
            await loop.run()
        except Exception:
            # A mistake of ours must not take the cluster down with it; it is loud in the log instead.
            log.exception("loop broke and starts again", loop=loop.name)
            await asyncio.sleep(PAUSE_SECONDS)
