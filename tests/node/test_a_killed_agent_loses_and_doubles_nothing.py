"""The agent is killed at every single step of a small day; the next agent finishes the day all the same.

The steps are all calls to the cluster and to the sandboxes and all writes of records, before and after each.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kit.crash_points import Killed, Lifeline, mortal_cluster, mortal_sandboxes
from kit.fake_sandbox import FakeSandboxes
from kit.node_workload import begin, check, the_day
from kit.pods import config, running_agent
from shoal.cluster.embedded import EmbeddedCluster
from shoal.node.agent import Agent
from shoal.node.checkpoint import PodFolder

PARTS = 4
PATIENCE_SECONDS = 120  # for a day of milliseconds, so that a machine at its limit fails nobody


async def live(cluster: EmbeddedCluster, sandboxes: FakeSandboxes, data: Path, life: Lifeline) -> None:
    """One life of the agent, until it is killed or the day is over."""
    agent = Agent(mortal_cluster(cluster, life), mortal_sandboxes(sandboxes, life), config(data))
    agent_task = asyncio.create_task(agent.run())
    day = asyncio.create_task(the_day(cluster))
    killed = asyncio.create_task(life.killed.wait())
    done, _ = await asyncio.wait({agent_task, day, killed}, return_when=asyncio.FIRST_COMPLETED)
    for task in (agent_task, day, killed):
        task.cancel()
    results = await asyncio.gather(agent_task, day, killed, return_exceptions=True)
    for result in results:
        if isinstance(result, Exception):
            raise result
    assert day in done or life.killed.is_set()


def mortal_save(monkeypatch: pytest.MonkeyPatch, life: Lifeline) -> None:
    save = PodFolder.save

    def dying(self: PodFolder, record: Any) -> None:
        life.step_now("before save")
        save(self, record)
        life.step_now("after save")

    monkeypatch.setattr(PodFolder, "save", dying)


async def one_day(data: Path, die_at: int | None, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The day with a kill at the given step, then a life that nobody cuts short; checks what is left."""
    cluster = await EmbeddedCluster.open(":memory:")
    sandboxes = FakeSandboxes()
    names = await begin(cluster)
    life = Lifeline(die_at)
    with monkeypatch.context() as patched:
        mortal_save(patched, life)
        await live(cluster, sandboxes, data, life)
    async with asyncio.timeout(PATIENCE_SECONDS):
        async with running_agent(cluster, sandboxes, config(data)):
            await the_day(cluster)
    await check(cluster, sandboxes, data, names, f"killed at step {die_at}: {life.steps[-1:]}")
    await cluster.close()
    return life.steps


@pytest.mark.parametrize("part", range(PARTS))
async def test_a_kill_at_any_step_changes_nothing_in_the_end(
    part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = await one_day(tmp_path / "whole", None, monkeypatch)
    assert len(steps) > 100
    for step in range(part, len(steps), PARTS):
        await one_day(tmp_path / str(step), step, monkeypatch)


def test_the_kill_is_no_ordinary_exception() -> None:
    assert not issubclass(Killed, Exception)
