"""What dashboards see of the scheduler goes down again: on an idle cluster nobody waits and nothing is held."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from kit.scheduled_cluster import NS, Scheduled, scheduled
from shoal.kube.kinds import POD
from shoal.scheduler.api.pod_groups import GROUP_NAME, POD_GROUP, QUEUE

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


async def test_a_queue_that_holds_no_accelerator_any_more_shows_none() -> None:
    name = "volcano_queue_allocated_scalar_resources"
    async with scheduled() as it:
        await it.node("a", **{GPU: "8"})
        await it.queue("q")
        await it.group("g", 1, queue="q")
        asked = {"requests": {"cpu": "1", GPU: "8"}, "limits": {GPU: "8"}}
        container = {"name": "main", "image": "x", "resources": asked}
        await it.pod("g-0", notes={GROUP_NAME: "g"}, containers=[container])
        await it.rest()
        everybody = {f"{queue},{GPU}": 0.0 for queue in ("default", "root")}
        assert samples(it.registry, name) == {**everybody, f"q,{GPU}": 8000.0}
        await it.cluster.delete(POD, "g-0", NS)
        await it.rest()
        assert samples(it.registry, name) == {**everybody, f"q,{GPU}": 0.0}
        await it.cluster.delete(POD_GROUP, "g", NS)
        await it.cluster.delete(QUEUE, "q")
        await it.rest()
        assert samples(it.registry, name) == everybody


async def test_waiting_is_counted_in_seconds_by_what_it_is_for() -> None:
    async with scheduled() as it:
        await it.gang("two", 2)
        await it.rest(10)
        assert waited(it) == {"default,capacity": 10.0}
        await it.node("a", cpu=4)
        await it.rest(10)
        assert waited(it) == {"default,capacity": 10.0}
        await it.queue("narrow", capability={"cpu": 1})
        await it.group("wide", 1, queue="narrow", minResources={"cpu": 2})
        await it.rest(5)
        assert waited(it) == {"default,capacity": 10.0, "narrow,quota": 5.0}
        await it.cluster.delete(POD_GROUP, "wide", NS)
        await it.rest(5)
        assert waited(it) == {"default,capacity": 10.0, "narrow,quota": 5.0}


async def test_a_gang_that_lost_a_pod_is_broken_until_another_runs() -> None:
    async with scheduled() as it:
        await it.node("a", cpu=4)
        await it.gang("two", 2)
        await it.rest(10)
        assert broken(it) == {}
        await it.cluster.delete(POD, "two-0", NS)
        await it.rest(7)
        assert broken(it) == {"default": 7.0}
        await it.pods("two", 1, first=2)
        await it.rest(7)
        assert broken(it) == {"default": 7.0}


async def test_a_scheduler_that_stopped_keeps_what_it_counted() -> None:
    async with scheduled() as it:
        await it.gang("two", 2)
        await it.rest(10)
        await it.kill()
        await it.rest(10)
        assert waited(it) == {"default,capacity": 10.0}
        await it.start()
        await it.rest(5)
        assert waited(it) == {"default,capacity": 15.0}


def waited(it: Scheduled) -> dict[str, float]:
    return _rounded(samples(it.registry, "volcano_waiting_seconds_total"))


def broken(it: Scheduled) -> dict[str, float]:
    return _rounded(samples(it.registry, "volcano_broken_gang_seconds_total"))


def _rounded(found: dict[str, float]) -> dict[str, float]:
    return {labels: round(seconds, 3) for labels, seconds in found.items() if round(seconds, 3)}
