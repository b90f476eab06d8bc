"""The agent is killed at every single step of a small day; the next agent finishes the day all the same.

The steps are all calls to the cluster and to the sandboxes and all writes of records, before and after each.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from kit.dying import Killed, Lifeline, mortal_cluster, mortal_sandboxes
from kit.fake_sandbox import FakeSandboxes
from kit.pods import config, container, is_gone, phase_is, pod, running_agent, wait_for_pod
from shoal.cluster.embedded import EmbeddedCluster
from shoal.kube.errors import ApiError
from shoal.kube.kinds import POD
from shoal.kube.objects import Obj, name_of
from shoal.node.agent import Agent
from shoal.node.records import PodFolder

PODS = {
    "succeeds": pod("succeeds", container("main", "exit", "0"), restartPolicy="Never"),
    "fails": pod("fails", container("main", "exit", "3"), restartPolicy="Never"),
    "tries-again": pod("tries-again", container("main", "exits", "1,0"), restartPolicy="OnFailure"),
    "prepares": pod(
        "prepares",
        container("main", "exit", "0"),
        inits=(container("first", "exit", "0"), container("second", "exit", "0")),
        restartPolicy="Never",
    ),
    "stays": pod("stays", container("main"), container("other")),
    "leaves": pod("leaves"),
}

EXPECTED = {
    "succeeds": ("Succeeded", {"main": 0}),
    "fails": ("Failed", {"main": 0}),
    "tries-again": ("Succeeded", {"main": 1}),
    "prepares": ("Succeeded", {"first": 0, "second": 0, "main": 0}),
    "stays": ("Running", {"main": 0, "other": 0}),
}

STARTED = Counter(
    {
        ("succeeds", "main.0"): 1,
        ("fails", "main.0"): 1,
        ("tries-again", "main.0"): 1,
        ("tries-again", "main.1"): 1,
        ("prepares", "first.0"): 1,
        ("prepares", "second.0"): 1,
        ("prepares", "main.0"): 1,
        ("stays", "main.0"): 1,
        ("stays", "other.0"): 1,
        ("leaves", "main.0"): 1,
    }
)


def told(obj: Obj) -> tuple[str, dict[str, int]]:
    status = obj["status"]
    listed = [*(status.get("initContainerStatuses") or ()), *status["containerStatuses"]]
    return status["phase"], {c["name"]: c["restartCount"] for c in listed}


async def the_day(cluster: EmbeddedCluster) -> None:
    """Everything is applied, one pod is deleted once it runs, and all come to where they belong."""
    await wait_for_pod(
        cluster, "leaves", lambda p: p is None or phase_is("Running")(p) or "deletionTimestamp" in p["metadata"]
    )
    with suppress(ApiError):  # it may be gone already, by the hand of the life before
        await cluster.delete(POD, "leaves", "default")
    await wait_for_pod(cluster, "leaves", is_gone)
    for name, (phase, _) in EXPECTED.items():
        await wait_for_pod(cluster, name, phase_is(phase))


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
    names = {}
    for obj in PODS.values():
        made = await cluster.create(POD, obj, "default")
        names[made["metadata"]["uid"]] = name_of(made)
    life = Lifeline(die_at)
    with monkeypatch.context() as patched:
        mortal_save(patched, life)
        await live(cluster, sandboxes, data, life)
    async with asyncio.timeout(20):
        async with running_agent(cluster, sandboxes, config(data)):
            await the_day(cluster)
    pods = {name_of(p): told(p) for p in (await cluster.list(POD, "default")).items}
    started = Counter((names[uid], process) for uid, process in sandboxes.started)
    left = {names[uid] for uid in sandboxes.sandboxes}
    folders = {names[path.name] for path in (data / "nodes" / "n1" / "pods").iterdir()}
    await cluster.close()
    where = f"killed at step {die_at}: {life.steps[-1:]}"
    assert (pods, started, left, folders) == (EXPECTED, STARTED, {"stays"}, set(EXPECTED)), where
    return life.steps


PARTS = 4


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
