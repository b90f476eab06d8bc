"""What a loop is, and how the loops of a cluster run together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Protocol

from shoal.cluster.informer import EventHandler, Informer
from shoal.logs import Logger

log = Logger(__name__)

RESTART_SECONDS = 1.0


class Runnable(Protocol):
    """Runs until cancelled. It may be interrupted anywhere: the state it needs is in the cluster."""

    @property
    def name(self) -> str: ...

    async def run(self) -> None: ...


async def run_all(runnables: Iterable[Callable[[], Runnable]]) -> None:
    """Run the loops side by side; each is made by a function, so that one that broke starts afresh."""
    async with asyncio.TaskGroup() as group:
        for make in runnables:
            group.create_task(keep_running(make))


async def keep_running(make: Callable[[], Runnable]) -> None:
    while True:
        loop = make()
        try:
            await loop.run()
        except Exception:
            # A mistake of ours must not take the cluster down with it; it is loud in the log instead.
            log.exception("loop broke and starts again", loop=loop.name)
            await asyncio.sleep(RESTART_SECONDS)


async def wait_forever() -> None:
    """Until cancelled: the work of the loop is done by its callbacks."""
    await asyncio.Event().wait()


@contextmanager
def subscribe_all(*subscriptions: tuple[Informer, EventHandler]) -> Iterator[None]:
    """Receive what exists and every change to it, for as long as the loop runs."""
    with ExitStack() as stack:
        for reflector, subscriber in subscriptions:
            stack.callback(reflector.subscribe(subscriber))
        yield
