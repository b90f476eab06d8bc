"""Waiting for a job: by a watch, never by polling.

A person waits at the other end: a missing right to watch is reported, and a status that cannot be read is a result too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from shoal.cli.job_lookup import FoundJob
from shoal.cluster.client import Cluster
from shoal.cluster.informer import Change, Informer
from shoal.dialects.dialect import StateUnreadable
from shoal.kube.objects import uid_of

NOT_ALLOWED = (401, 403)
# A cluster that restarts answers again within a few retries. Their pauses double from 0.2 s, so a command ends within
# six seconds of the loss of its cluster.
MAX_FAILURES = 6


async def until(cluster: Cluster, job: FoundJob, condition: Callable[[FoundJob | None], bool]) -> FoundJob | None:
    """The job as soon as `is_so` holds; None represents a job that is gone, or another under its name."""
    reached: asyncio.Future[FoundJob | None] = asyncio.get_running_loop().create_future()

    def check(found: FoundJob | None) -> None:
        if reached.done():
            return
        try:
            if condition(found):
                reached.set_result(found)
        except StateUnreadable as problem:
            reached.set_exception(problem)

    def changed(change: Change) -> None:
        new = change.new
        check(FoundJob(new, job.dialect) if new is not None and uid_of(new) == uid_of(job.manifest) else None)

    informer = Informer(
        cluster, job.dialect.kind, job.namespace,
        fields=f"metadata.name={job.name}", on_change=changed, fatal_codes=NOT_ALLOWED,
        max_failures=MAX_FAILURES,
    )  # fmt: skip
    running = asyncio.create_task(informer.run())
    synced = asyncio.create_task(informer.synced.wait())
    try:
        await asyncio.wait((synced, running, reached), return_when=asyncio.FIRST_COMPLETED)
        if informer.synced.is_set() and not informer.objects:
            check(None)
        await asyncio.wait((running, reached), return_when=asyncio.FIRST_COMPLETED)
        if not reached.done():
            running.result()  # raises: a copy ends by nothing else
        return await reached
    finally:
        running.cancel()
        synced.cancel()


async def wait_until_gone(cluster: Cluster, job: FoundJob) -> None:
    await until(cluster, job, lambda found: found is None)
