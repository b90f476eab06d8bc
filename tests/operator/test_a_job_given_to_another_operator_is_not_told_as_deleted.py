"""Operators share jobs out by a label; a job that changes hands leaves the sight of one of them, and is not gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from prometheus_client import CollectorRegistry

from kit.framework_notation import fw, role
from kit.pod_behavior import runs
from kit.scenario import FRAMEWORK, NAMESPACE, SimulatedWorld
from shoal.cluster.client import PatchType
from shoal.controller_runtime.metrics import Metrics
from shoal.dialects.capabilities import Snapshot
from shoal.dialects.framework import DIALECT
from shoal.operator.embedded import JobReconciler


@asynccontextmanager
async def operated(labels: str) -> AsyncIterator[tuple[SimulatedWorld, list[Snapshot]]]:
    """A world whose operator serves the jobs so labelled; and the history it tells."""
    history: list[Snapshot] = []
    async with SimulatedWorld(0) as world:
        await world.kill_operator()
        loop = JobReconciler(
            world.cluster.new_client(), DIALECT,
            settings=world.config, clock=world.cluster.clock, metrics=Metrics(CollectorRegistry()),
            history=history.append, labels=labels,
        )  # fmt: skip
        running = asyncio.create_task(loop.run())
        await world.submit(fw("moves", role("worker", fate=runs())))
        await world.running("moves", 1)
        yield world, history
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def told(history: list[Snapshot]) -> list[tuple[str, str]]:
    return [(each.trigger, each.object["metadata"]["name"]) for each in history if each.object["kind"] == "Framework"]


async def test_a_job_that_changes_hands_leaves_no_record_of_a_deletion() -> None:
    async with operated("!shoal.dev/class") as (world, history):
        patch = {"metadata": {"labels": {"shoal.dev/class": "fast"}}}
        await world.user.patch(FRAMEWORK, "moves", NAMESPACE, patch=patch, patch_type=PatchType.MERGE)
        await world.rest(60)
        assert (told(history), world.are_running("moves", 1)) == ([], True)


async def test_a_job_that_is_deleted_leaves_one() -> None:
    async with operated("!shoal.dev/class") as (world, history):
        await world.delete("moves")
        await world.until(lambda: "moves" not in world.frameworks)
        await world.rest(60)
        assert told(history) == [("OnFrameworkDeletion", "moves")]


async def test_a_job_that_was_replaced_by_one_of_its_name_leaves_one() -> None:
    async with operated("") as (world, history):
        await world.delete("moves")
        await world.until(lambda: "moves" not in world.frameworks)
        await world.submit(fw("moves", role("worker", fate=runs())))
        await world.running("moves", 1)
        assert told(history) == [("OnFrameworkDeletion", "moves")]
