"""Waiting for a job: told by a watch, never by asking again.

A person waits at the other end: who may not watch is told so, and a status nobody can read is an answer too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from shoal.cli.job_lookup import Found
from shoal.cluster.client import Cluster
from shoal.cluster.informer import Change, Informer
from shoal.dialects.dialect import StateUnreadable
from shoal.kube.objects import uid_of

NOT_ALLOWED = (401, 403)
# A cluster that restarts answers again within a few retries. Their pauses double from 0.2 s, so a command ends within
# six seconds of the loss of its cluster.
MOST_FAILURES = 6


async def until(cluster: Cluster, job: Found, is_so: Callable[[Found | None], bool]) -> Found | None:
    """The job as soon as it is so; None stands for a job that is gone, or another under its name."""
    reached: asyncio.Future[Found | None] = asyncio.get_running_loop().create_future()

    def look(found: Found | None) -> None:
        if reached.done():
            return
        try:
            if is_so(found):
                reached.set_result(found)
        except StateUnreadable as problem:
            reached.set_exception(problem)

    def changed(change: Change) -> None:
        new = change.new
        look(Found(new, job.dialect) if new is not None and uid_of(new) == uid_of(job.manifest) else None)

    copy = Informer(
        cluster, job.dialect.kind, job.namespace,
        fields=f"metadata.name={job.name}", on_change=changed, fatal_codes=NOT_ALLOWED,
        max_failures=MOST_FAILURES,
    )  # fmt: skip
    running = asyncio.create_task(copy.run())
    synced = asyncio.create_task(copy.synced.wait())
    try:
        await asyncio.wait((synced, running, reached), return_when=asyncio.FIRST_COMPLETED)
        if copy.synced.is_set() and not copy.objects:
            look(None)
        await asyncio.wait((running, reached), return_when=asyncio.FIRST_COMPLETED)
        if not reached.done():
            running.result()  # raises: a copy ends by nothing else
        return await reached
    finally:
        running.cancel()
        synced.cancel()


async def until_gone(cluster: Cluster, job: Found) -> None:
    await until(cluster, job, lambda found: found is None)
