"""What dashboards see of the scheduler goes down again: on an idle cluster nobody waits and nothing is held."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from kit.scheduled import NS, Scheduled, scheduled
from shoal.kube.kinds import POD
from shoal.operator.scheduler.metrics import SchedulerMetrics

GPU = "nvidia.com/gpu"


def samples(registry: CollectorRegistry, name: str) -> dict[str, float]:
    """By the labels' values."""
    found = [sample for metric in registry.collect() for sample in metric.samples if sample.name == name]
    return {",".join(sample.labels.values()): sample.value for sample in found}


def waiting(it: Scheduled) -> tuple[float, float, dict[str, float]]:
    pods, groups, causes = (
        samples(it.registry, name)
        for name in ("volcano_unschedule_task_count", "volcano_unschedule_job_count", "shoal_waiting_groups")
    )
    return pods[""], groups[""], {cause: count for cause, count in causes.items() if count}


NOBODY = (0.0, 0.0, {})


async def test_a_lone_pod_that_is_deleted_waits_no_more() -> None:
    async with scheduled() as it:
        await it.node("a", cpu=1)
        await it.pods("", 1, cpu=4)
        assert waiting(it) == (1.0, 0.0, {})
        await it.cluster.delete(POD, "lone-0", NS)
        await it.rest()
        assert waiting(it) == NOBODY


async def test_what_was_placed_waits_no_more() -> None:
    async with scheduled() as it:
        await it.gang("two", 2)
        assert waiting(it) == (2.0, 1.0, {"capacity": 1.0})
        await it.node("a", cpu=4)
        assert (await it.placed(), waiting(it)) == (["two-0", "two-1"], NOBODY)


async def test_what_somebody_else_placed_waits_no_more() -> None:
    async with scheduled() as it:
        await it.node("a", cpu=1)
        await it.gang("two", 2)
        assert waiting(it) == (2.0, 1.0, {"capacity": 1.0})
        for name in ("two-0", "two-1"):
            await it.cluster.bind(name, NS, node="a")
        await it.rest()
        assert waiting(it) == NOBODY


async def test_a_scheduler_that_stopped_counts_nobody() -> None:
    async with scheduled() as it:
        await it.gang("two", 2)
        await it.kill()
        assert waiting(it) == NOBODY
        await it.start()
        assert waiting(it) == (2.0, 1.0, {"capacity": 1.0})


def test_a_queue_that_holds_no_accelerator_any_more_shows_none() -> None:
    registry = CollectorRegistry()
    metrics = SchedulerMetrics(registry)
    name = "volcano_queue_allocated_scalar_resources"
    metrics.queue("q", weight=1, phases={}, allocated={"cpu": 1000, GPU: 8000})
    assert samples(registry, name) == {f"q,{GPU}": 8000.0}
    metrics.queue("q", weight=1, phases={}, allocated={})
    assert samples(registry, name) == {f"q,{GPU}": 0.0}
    metrics.queue_gone("q")
    assert samples(registry, name) == {}
