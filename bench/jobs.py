"""Jobs: a thousand Frameworks of three tasks that do nothing, from submission to Completed.

Once on a whole cluster with real processes (a process of its own, so that its memory is its own), once on the
simulated cluster, where no process and no clock is waited for; there the processor time counts. API writes are the
operator's for one job of one task, its Event counted like the rest.
"""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from harness import ROOT, Metric

sys.path.insert(0, str(ROOT / "tests"))

FRAMEWORKS = 1_000
TASKS = 3

METRICS = [
    Metric("1,000 Frameworks x 3 tasks, real processes, to Completed", "s", 60),
    Metric("memory of the cluster's process at the end", "MB", 200),
    Metric("1,000 Frameworks x 3 tasks, simulated, processor time", "s", 15),
    Metric("API writes of a job of one task", "writes", 10),
]


def run() -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder:
        seconds, memory = _in_a_process("embedded", folder)
    (simulated,) = _in_a_process("simulated")
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder:
        (writes,) = _in_a_process("writes", folder)
    return dict(zip((metric.name for metric in METRICS), (seconds, memory, simulated, writes), strict=True))


def _in_a_process(*words: str) -> list[float]:
    made = subprocess.run([sys.executable, __file__, *words], check=True, stdout=subprocess.PIPE, text=True)
    found: list[float] = json.loads(made.stdout.splitlines()[-1])
    return found


def framework(name: str, tasks: int = TASKS) -> dict[str, Any]:
    """Three tasks that do nothing, and all of them have to."""
    from kit.framework_notation import fw, role
    from kit.pod_behavior import exits

    made = fw(name, role("worker", tasks, fate=exits(0, after=0.01)))
    made["spec"]["taskRoles"][0]["task"]["pod"]["spec"]["containers"][0]["command"] = ["true"]
    return made


async def embedded(folder: Path) -> list[float]:
    """A whole cluster; jobs are submitted as fast as it takes them."""
    from kit.embedded_world import RealWorld

    world = RealWorld(folder)
    world.promises.watch_steps = lambda _: None  # type: ignore[method-assign]
    async with world:
        world.look_away()
        began = time.monotonic()
        await asyncio.gather(*(world.submit(framework(f"job{number}")) for number in range(FRAMEWORKS)))
        await _all_completed(world.user)
        seconds = time.monotonic() - began
        memory = _resident_bytes() / 1e6
    return [seconds, memory]


async def _all_completed(cluster: Any, count: int = FRAMEWORKS) -> None:
    from kit.scenario import FRAMEWORK

    over: set[str] = set()
    async for event in cluster.watch(FRAMEWORK, initial_events=True):
        if (event.object.get("status") or {}).get("state") == "Completed":
            over.add(event.object["metadata"]["name"])
            if len(over) == count:
                return


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


async def simulated() -> list[float]:
    from kit.scenario import SimulatedWorld

    world = SimulatedWorld(0)
    world.promises.watch_steps = lambda _: None  # type: ignore[method-assign]
    async with world:
        world.look_away()
        began = time.process_time()
        for number in range(FRAMEWORKS):
            await world.submit(framework(f"job{number}"))
        await world.until(lambda: _succeeded(world) == FRAMEWORKS)
        return [time.process_time() - began]


def _succeeded(world: Any) -> float:
    labels = {"kind": "Framework", "state": "succeeded"}
    return float(world.metrics.registry.get_sample_value("shoal_jobs", labels) or 0)


async def writes(folder: Path) -> list[float]:
    """With a real process: what falls into one moment there is one write."""
    from kit.embedded_world import RealWorld

    async with RealWorld(folder) as world:
        await world.submit(framework("one", tasks=1))
        await world.completed("one")
        samples = [sample for metric in world.hosted.metrics.registry.collect() for sample in metric.samples]
        return [sum(sample.value for sample in samples if sample.name == "shoal_writes_total")]


if __name__ == "__main__":
    import logging

    from shoal.local import gc_tuning

    logging.disable(logging.WARNING)
    gc_tuning.serve()  # as every program of ours
    chosen = {"embedded": embedded, "simulated": simulated, "writes": writes}[sys.argv[1]]
    print(json.dumps(asyncio.run(chosen(*map(Path, sys.argv[2:])))))
