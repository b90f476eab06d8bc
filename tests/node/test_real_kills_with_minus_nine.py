"""The process with the store, the sandboxes and the agent is killed with -9, again and again, at random moments.

Afterwards every pod is where it belongs, and every process was started exactly as often as its restart count says.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from collections import Counter
from pathlib import Path

import pytest

from kit import node_process
from kit.pods import is_gone, phase_is, running_agent, wait_for_pod
from shoal.cluster.embedded import EmbeddedCluster
from shoal.kube.kinds import POD
from shoal.kube.objects import Obj, name_of
from shoal.node.sandbox.sandbox_manager import SandboxManager

pytestmark = pytest.mark.processes

KILLS = 10
ENDS = {"ends": "Succeeded", "again": "Succeeded", "stays": "Running"}
RESTARTS = {"ends": 0, "again": 1, "stays": 0}


async def one_life(data: Path, seconds: float) -> None:
    """Until it is ready, a little longer, and then no more."""
    tests = Path(node_process.__file__).parents[1]
    life = await asyncio.create_subprocess_exec(
        sys.executable, node_process.__file__, str(data),
        stdout=asyncio.subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(tests)},
    )  # fmt: skip
    assert life.stdout is not None
    assert await life.stdout.readline() == b"ready\n"
    try:
        await asyncio.wait_for(life.wait(), seconds)
    except TimeoutError:
        life.send_signal(signal.SIGKILL)
    assert await life.wait() == -signal.SIGKILL


def restarts(obj: Obj) -> int:
    return int(obj["status"]["containerStatuses"][0]["restartCount"])


async def test_nothing_is_lost_and_nothing_is_doubled(data: Path) -> None:
    seed = random.randrange(10**6)
    print("seed", seed)
    rng = random.Random(seed)
    for _ in range(KILLS):
        await one_life(data, rng.uniform(0.0, 0.25))
    cluster = await EmbeddedCluster.open(data / "state.db")
    sandboxes = await SandboxManager.open(data / "sandboxes")
    async with running_agent(cluster, sandboxes, node_process.settings(data)):
        leaving = asyncio.create_task(node_process.delete_leavers(cluster, data))
        for number in range(node_process.COUNT):
            await wait_for_pod(cluster, f"leaves-{number}", is_gone)
            for kind, phase in ENDS.items():
                await wait_for_pod(cluster, f"{kind}-{number}", phase_is(phase))
        leaving.cancel()
        await node_process.noted(data, *(f"stays-{number}" for number in range(node_process.COUNT)))
        pods = (await cluster.list(POD, "default")).items
    kept = {sandbox.spec.hostname for sandbox in (await sandboxes.adopt())[0]}
    for sandbox in (await sandboxes.adopt())[0]:
        await sandbox.close()
    await sandboxes.close()
    await cluster.close()
    numbers = range(node_process.COUNT)
    assert {name_of(p): restarts(p) for p in pods} == {f"{k}-{n}": RESTARTS[k] for k in ENDS for n in numbers}
    started = Counter((data / "notes" / "started").read_text().split())
    expected = {**RESTARTS, "leaves": 0}
    assert started == {f"{kind}-{n}": count + 1 for kind, count in expected.items() for n in numbers}
    assert kept == {f"stays-{n}" for n in numbers}
