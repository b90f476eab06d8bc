"""Watching the pods of a job until all that are awaited are there.

A watch keeps a copy of the pods, so nothing here polls; the copy lists again by itself where a watch breaks off.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from shoal.cluster.client import Cluster
from shoal.cluster.informer import Informer
from shoal.kube.kinds import POD
from shoal.launch.paddle_launcher.environment import LauncherConfig
from shoal.launch.paddle_launcher.peers import peer_status, training_env

_REFUSALS = (401, 403)  # asking again is of no use


async def wait(
    cluster: Cluster, config: LauncherConfig, namespace: str, report: Callable[[str], None]
) -> dict[str, str]:
    """The program's settings, once all peers are there. Raises TooManyFailed, and ApiError where access is denied."""
    changed = asyncio.Event()
    informer = Informer(cluster, POD, namespace, on_change=lambda _: changed.set(), fatal_codes=_REFUSALS)
    watching = asyncio.create_task(informer.run())
    try:
        await _wait_first(informer.synced.wait(), watching)
        for label, wanted in config.required_peers:
            report(f"label selector: {label}, desired: {wanted}")
        last_status = None
        while True:
            found = peer_status(config, informer.objects.values())
            if found != last_status:
                last_status = found
                for label, there, wanted in found.counts:
                    report(f"{label}: {there} of {wanted} are there")
                if found.ended and not found.is_complete:
                    report(
                        f"ended and waited for no more: {', '.join(found.ended)}; others have to come in their place"
                    )
            if found.is_complete:
                with suppress(LookupError):  # others run; this pod's own change arrives in a moment
                    return training_env(config, informer.objects.values())
            await _wait_first(changed.wait(), watching)
            changed.clear()
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


async def _wait_first(event: Coroutine[Any, Any, object], watching: asyncio.Task[None]) -> None:
    """Wait for news, or for the end of the watch, whose error is raised."""
    task = asyncio.create_task(event)
    await asyncio.wait((task, watching), return_when=asyncio.FIRST_COMPLETED)
    if not task.done():
        task.cancel()
        await watching
