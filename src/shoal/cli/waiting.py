"""Waiting for a job: told by a watch, never by asking again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from shoal.cli.jobs import Found
from shoal.cluster.port import Cluster
from shoal.cluster.reflecting import Change, Reflector
from shoal.kube.objects import uid_of


async def until(cluster: Cluster, job: Found, is_so: Callable[[Found | None], bool]) -> Found | None:
    """The job as soon as it is so; None stands for a job that is gone, or another under its name."""
    reached: asyncio.Future[Found | None] = asyncio.get_running_loop().create_future()

    def look(found: Found | None) -> None:
        if not reached.done() and is_so(found):
            reached.set_result(found)

    def changed(change: Change) -> None:
        new = change.new
        look(Found(new, job.dialect) if new is not None and uid_of(new) == uid_of(job.manifest) else None)

    copy = Reflector(cluster, job.dialect.kind, job.namespace, fields=f"metadata.name={job.name}", on_change=changed)
    running = asyncio.create_task(copy.run())
    try:
        synced = asyncio.create_task(copy.synced.wait())
        await asyncio.wait((synced, running, reached), return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()
        if not copy.objects:
            look(None)
        return await reached
    finally:
        running.cancel()


async def until_gone(cluster: Cluster, job: Found) -> None:
    await until(cluster, job, lambda found: found is None)
