"""A watch tells of everything, also of what the operator itself wrote, and often before the write is answered."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kit.framework_notation import fw, role
from kit.pod_behavior import exits, runs
from kit.scenario import FRAMEWORK, SimulatedWorld
from shoal.kube.kinds import Kind
from shoal.kube.objects import Key


def count_passes(world: SimulatedWorld) -> list[str]:
    passes: list[str] = []
    timed = world.metrics.time_reconcile

    @contextmanager
    def counted(kind: Kind) -> Iterator[None]:
        passes.append(kind.kind)
        with timed(kind):
            yield

    world.metrics.time_reconcile = counted  # type: ignore[method-assign]
    return passes


async def ended(world: SimulatedWorld, tasks: int) -> None:
    await world.submit(fw("one", role("worker", tasks, fate=exits(0, after=60))))
    await world.completed("one")
    await world.rest(1)


async def test_a_ledger_that_comes_back_by_the_watch_wakes_nobody() -> None:
    async with SimulatedWorld(0) as world:
        passes = count_passes(world)
        await ended(world, tasks=3)
        # There; anchored; bodies made, bound, running; all recorded; ended; bodies gone; anchor gone.
        assert len(passes) == 9


async def test_an_edit_that_meets_a_ledger_on_its_way_is_seen() -> None:
    async with SimulatedWorld(0) as world:
        await world.submit(fw("one", role("worker", 1, fate=runs())))
        for size in (2, 3, 1, 4):  # each while the last is still being written down
            await world.rescale("one", size)
        await world.running("one", 4)


async def test_a_job_that_ended_rests_until_somebody_edits_it() -> None:
    async with SimulatedWorld(0) as world:
        passes = count_passes(world)
        await ended(world, tasks=1)
        assert world.loop.finished_jobs == {Key("default", "one")}
        before = len(passes)
        await world.user.patch(FRAMEWORK, "one", "default", patch={"metadata": {"labels": {"seen": "yes"}}})
        await world.rest(1)
        words = [counted_as(world, word) for word in ("succeeded", "running")]
        assert (len(passes) - before, words) == (1, [1.0, 0.0])
        assert world.loop.finished_jobs == {Key("default", "one")}
        await world.user.delete(FRAMEWORK, "one", "default")
        await world.rest(1)
        assert (counted_as(world, "succeeded"), world.loop.finished_jobs) == (0.0, frozenset())


def counted_as(world: SimulatedWorld, word: str) -> float:
    return float(world.metrics.registry.get_sample_value("shoal_jobs", {"kind": "Framework", "state": word}) or 0)
