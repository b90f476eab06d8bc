"""Waiting for a job that cannot be heard of any more: the reason, at once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kit.scenario import FRAMEWORK, NAMESPACE, SimulatedWorld
from kit.watched_job import Unwatchable, running, spoil
from shoal.cli.job_lookup import FoundJob
from shoal.cli.wait_for import until
from shoal.dialects.dialect import StateUnreadable
from shoal.dialects.framework import DIALECT
from shoal.kube.errors import ApiError


async def waited(world: SimulatedWorld, cluster: Any) -> FoundJob | None:
    job = FoundJob(await world.user.get(FRAMEWORK, "one", NAMESPACE), DIALECT)
    waiting = asyncio.create_task(until(cluster, job, lambda found: found is None or found.state.is_ended))
    await world.until(waiting.done)
    return waiting.result()


async def test_who_may_not_watch_does_not_wait() -> None:
    async with SimulatedWorld() as world:
        await running(world)
        cluster = Unwatchable(world)
        refusal = cluster.refuses(FRAMEWORK)
        with pytest.raises(ApiError) as caught:
            await waited(world, cluster)
    assert caught.value is refusal


async def test_an_unreadable_status_ends_the_wait() -> None:
    async with SimulatedWorld() as world:
        await running(world)
        await spoil(world)
        with pytest.raises(StateUnreadable, match="was not written by a controller"):
            await waited(world, world.user)
