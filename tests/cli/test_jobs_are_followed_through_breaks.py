"""Following jobs where the log breaks off, the job is gone before anybody looked, or watching is not allowed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kit.scenario import FRAMEWORK, NAMESPACE, SimulatedWorld
from kit.watched_job import Unwatchable, running, spoil
from shoal.cli.follow import Follower
from shoal.cli.job_lookup import FoundJob
from shoal.cluster.client import LogOptions, OutcomeUnknown
from shoal.dialects.dialect import StateUnreadable
from shoal.dialects.framework import DIALECT
from shoal.kube.errors import ApiError, unavailable
from shoal.kube.kinds import POD, Kind

STAMPS = [f"2030-01-01T00:00:0{second}.000000000Z" for second in range(10)]


class Telling(Unwatchable):
    """Its logs play a script: lines, then how the stream ends.

    The job is stopped as the last part is played, which is played for everybody who asks again.
    """

    def __init__(self, world: SimulatedWorld, *script: list[str | Exception]) -> None:
        super().__init__(world)
        self.script = list(script)
        self.asked: list[LogOptions] = []

    async def logs(self, _: str, __: str, options: LogOptions) -> AsyncIterator[bytes]:
        self.asked.append(options)
        part = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if part is self.script[0]:
            await self.world.set("one", executionType="Stop")
        for each in part:
            if isinstance(each, Exception):
                raise each
            yield each.encode()


async def followed(world: SimulatedWorld, cluster: Any, **how: Any) -> tuple[list[str], list[str]]:
    """Until the job is over: the lines that were told, and the troubles."""
    said: list[str] = []
    troubles: list[str] = []
    job = FoundJob(await world.user.get(FRAMEWORK, "one", NAMESPACE), DIALECT)
    follower = Follower(
        cluster, [job], clock=world.cluster.clock,
        on_line=lambda _, __, line: said.append(line), on_log_failure=lambda _, why: troubles.append(why), **how,
    )  # fmt: skip
    following = asyncio.create_task(follower.run())
    await world.until(following.done)
    following.result()
    return said, troubles


def line(second: int, text: str) -> str:
    return f"{STAMPS[second]} {text}\n"


async def test_a_log_that_breaks_off_goes_on_after_the_last_line() -> None:
    broken = OutcomeUnknown("the log broke off")
    async with SimulatedWorld() as world:
        await running(world)
        first = [line(1, "a"), line(2, "b"), line(2, "c"), f"{STAMPS[3]} half a", broken]
        again = [line(2, "b"), line(2, "c"), line(2, "d"), line(3, "half a line"), OSError("reset")]
        cluster = Telling(world, first, again, [line(3, "half a line"), line(4, "e")])
        told = await followed(world, cluster, options=LogOptions(tail_lines=2))
    assert told == (["a", "b", "c", "d", "half a line", "e"], [])
    assert [(options.tail_lines, options.since_time) for options in cluster.asked] == [
        (2, None), (None, STAMPS[2]), (None, STAMPS[3]),
    ]  # fmt: skip


async def test_a_log_that_broke_before_its_first_line_is_asked_for_as_before() -> None:
    async with SimulatedWorld() as world:
        await running(world)
        cluster = Telling(world, [unavailable("the node is away")], [OSError("reset")], [line(1, "a")])
        assert await followed(world, cluster, options=LogOptions(tail_lines=2)) == (["a"], ["the node is away"])
    assert [(options.tail_lines, options.since_time) for options in cluster.asked] == [(2, None)] * 3


async def test_logs_are_not_retried_for_ever_once_the_job_is_over() -> None:
    async with SimulatedWorld() as world:
        await running(world)
        cluster = Telling(world, [line(1, "a"), OSError("the log broke off")])
        assert await followed(world, cluster) == (["a"], ["the log broke off"])


async def test_a_job_that_went_before_anybody_looked_is_over() -> None:
    async with SimulatedWorld() as world:
        await running(world)
        gone = FoundJob({"metadata": {"name": "gone", "namespace": NAMESPACE, "uid": "gone"}}, DIALECT)
        follower = Follower(world.user, [gone])
        following = asyncio.create_task(follower.run())
        await world.until(following.done)
        assert following.result() == [gone]


@pytest.mark.parametrize("kind", [FRAMEWORK, POD])
async def test_a_forbidden_watch_is_reported(kind: Kind) -> None:
    async with SimulatedWorld() as world:
        await running(world)
        cluster = Telling(world, [line(1, "a")])
        refusal = cluster.refuses(kind)
        with pytest.raises(ApiError) as caught:
            await followed(world, cluster)
    assert caught.value is refusal


async def test_an_unreadable_status_ends_the_follower() -> None:
    async with SimulatedWorld() as world:
        await running(world)
        await spoil(world)
        with pytest.raises(StateUnreadable, match="was not written by a controller"):
            await followed(world, Telling(world, [line(1, "a")]))
