"""How long one pass of the engine takes: a quiet one, and one in which every body moved, for small and large jobs.

The jobs are Frameworks in the engine's words: the dialect with the heaviest ledger. Time excludes reading the
manifest and writing anything; it is one call of `advance`, in seconds of CPU, so that neighbours do not count.
"""

from __future__ import annotations

import sys
from pathlib import Path
from time import process_time

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from harness import Metric

from kit.engine_jobs import fc_role, framework
from kit.engine_world import World, started
from shoal.engine import Job, JobState, Observed, advance

METRICS = [
    Metric("advance, 4 tasks, quiet", "µs", 200),
    Metric("advance, 4 tasks, all start running", "µs", 200),
    Metric("advance, 4 tasks, all end", "µs", 200),
    Metric("advance, 1000 tasks, first pass", "ms", 15),
    Metric("advance, 1000 tasks, all are created", "ms", 15),
    Metric("advance, 1000 tasks, quiet", "ms", 15),
    Metric("advance, 1000 tasks, all start running", "ms", 15),
    Metric("advance, 1000 tasks, all end", "ms", 15),
    Metric("advance, 1000 tasks, all are gone and retried", "ms", 15),
]


def job(tasks: int) -> Job:
    return framework(fc_role("worker", tasks, task=(False, -1)))


def timed(world: World, *, times: int) -> float:
    """Seconds for one pass over the world as it stands, best of `times`."""
    state, observed = world.state, world.observed()
    return min(_once(world.job, state, observed, world) for _ in range(times))


def _once(wanted: Job, state: JobState, observed: Observed, world: World) -> float:
    begin = process_time()
    advance(wanted, state, observed, world.now)
    return process_time() - begin


def busy(world: World) -> dict[str, float]:
    """The stages of a life in which all tasks move together, each timed and then carried out."""
    found: dict[str, float] = {}
    times = 5 if len(world.pods) > 100 else 50
    found["quiet"] = timed(world, times=times)
    for name in world.pods:
        world.exits(name, 1)
    found["all end"] = timed(world, times=times)
    world.step()
    world.step()
    world.reap()
    found["all are gone and retried"] = timed(world, times=times)
    world.step()
    world.step()
    world.run()
    found["all start running"] = timed(world, times=times)
    return found


def run() -> dict[str, float]:
    small = busy(started(job(4)))
    fresh = World(job(1000))
    first = timed(fresh, times=5)
    fresh.step()
    fresh.step()
    created = timed(fresh, times=5)
    large = busy(started(job(1000)))
    figures = {f"advance, 1000 tasks, {name}": seconds * 1e3 for name, seconds in large.items()}
    figures["advance, 1000 tasks, first pass"] = first * 1e3
    figures["advance, 1000 tasks, all are created"] = created * 1e3
    for name in ("quiet", "all start running", "all end"):
        figures[f"advance, 4 tasks, {name}"] = small[name] * 1e6
    return figures
