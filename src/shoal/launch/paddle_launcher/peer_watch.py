"""Hearing of the pods of a job until all that are awaited are there.

A copy of the pods is kept by a watch, so nothing here looks again by the clock; the copy lists anew by itself where a
watch breaks off.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from shoal.cluster.client import Cluster
from shoal.cluster.informer import Informer
from shoal.kube.kinds import POD
from shoal.launch.paddle_launcher.environment import Orders
from shoal.launch.paddle_launcher.peers import gathered, settings

_REFUSALS = (401, 403)  # asking again is of no use


async def wait(cluster: Cluster, orders: Orders, namespace: str, say: Callable[[str], None]) -> dict[str, str]:
    """What the program is told, once everybody is there. Raises TooManyFailed, and ApiError where we may not look."""
    changed = asyncio.Event()
    copy = Informer(cluster, POD, namespace, on_change=lambda _: changed.set(), fatal_codes=_REFUSALS)
    hearing = asyncio.create_task(copy.run())
    try:
        await _first(copy.synced.wait(), hearing)
        for label, wanted in orders.awaited:
            say(f"label selector: {label}, desired: {wanted}")
        said = None
        while True:
            found = gathered(orders, copy.objects.values())
            if found != said:
                said = found
                for label, there, wanted in found.counts:
                    say(f"{label}: {there} of {wanted} are there")
                if found.ended and not found.is_complete:
                    say(f"ended and waited for no more: {', '.join(found.ended)}; others have to come in their place")
            if found.is_complete:
                with suppress(LookupError):  # others run; that this pod does too is told in a moment
                    return settings(orders, copy.objects.values())
            await _first(changed.wait(), hearing)
            changed.clear()
    finally:
        hearing.cancel()
        await asyncio.gather(hearing, return_exceptions=True)


async def _first(news: Coroutine[Any, Any, object], hearing: asyncio.Task[None]) -> None:
    """Wait for news, or for the end of hearing, which then says why."""
    task = asyncio.create_task(news)
    await asyncio.wait((task, hearing), return_when=asyncio.FIRST_COMPLETED)
    if not task.done():
        task.cancel()
        await hearing
