"""What people and Prometheus learn from the operator besides the status."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from kit.asgi_client import Asgi
from kit.framework_notation import fw, role
from kit.pod_behavior import exits, runs
from kit.scenario import FRAMEWORK, NAMESPACE, SimulatedWorld
from shoal.apiserver.app import build_application
from shoal.controller_runtime.metrics import Metrics
from shoal.kube.kinds import EVENT


def sample(world: SimulatedWorld, name: str, **labels: str) -> float | None:
    return world.metrics.registry.get_sample_value(name, {"kind": "Framework", **labels})


async def events(world: SimulatedWorld, name: str) -> list[tuple[str, str]]:
    found = (await world.user.list(EVENT, NAMESPACE)).items
    about = [event for event in found if event["involvedObject"]["name"] == name]
    return sorted({(event["type"], event["reason"]) for event in about})


async def test_jobs_are_counted_by_state() -> None:
    async with SimulatedWorld(0) as world:
        await world.submit(fw("good", role("worker", fate=exits(0))))
        await world.submit(fw("bad", role("worker", fate=exits(1))))
        await world.submit(fw("long", role("worker", fate=runs())))
        await world.submit(fw("later", role("worker"), start="Create"))
        await world.completed("good")
        await world.completed("bad")
        await world.running("long", 1)
        await world.settle()
        counted = {
            state: sample(world, "shoal_jobs", state=state) for state in ("succeeded", "failed", "running", "pending")
        }
        assert counted == {"succeeded": 1, "failed": 1, "running": 1, "pending": 1}
        await world.delete("long")
        await world.until(lambda: "long" not in world.frameworks)
        await world.settle()
        assert (sample(world, "shoal_jobs", state="running"), sample(world, "shoal_queue_depth")) == (0, 0)


async def test_passes_and_writes_are_counted() -> None:
    async with SimulatedWorld(0) as world:
        await world.submit(fw("good", role("worker", fate=exits(0, after=0.01))))
        await world.completed("good")
        registry = world.metrics.registry
        written = {
            kind: registry.get_sample_value("shoal_writes_total", {"kind": kind, "verb": "create"})
            for kind in ("Pod", "ConfigMap")
        }
        assert written == {"Pod": 1, "ConfigMap": 1}
        assert sample(world, "shoal_writes_total", verb="patch") == 4
        assert (sample(world, "shoal_reconcile_seconds_count") or 0) >= 6


async def test_events_say_what_was_decided() -> None:
    async with SimulatedWorld(0) as world:
        await world.submit(fw("tries", role("worker", 2, retry=(False, 1), fate=exits(1))))
        await world.completed("tries")
        await world.rest(1)
        assert await events(world, "tries") == [
            ("Normal", "TaskRetried"),
            ("Warning", "Failed"),
            ("Warning", "RetriesExhausted"),
            ("Warning", "RunEnding"),
            ("Warning", "TaskFailed"),
        ]


async def test_a_refusal_that_comes_back_is_one_event_with_a_count() -> None:
    from shoal.kube.errors import forbidden
    from shoal.kube.kinds import POD

    async with SimulatedWorld(0) as world:
        world.pod_refusal = forbidden(POD, "waits-worker-0", "exceeded quota: pods")
        await world.submit(fw("waits", role("worker")))
        await world.rest(30)
        found = [
            event for event in (await world.user.list(EVENT, NAMESPACE)).items if event["reason"] == "FailedCreate"
        ]
        assert len(found) == 1
        assert found[0]["count"] > 3


async def test_metrics_are_for_whoever_holds_the_token() -> None:
    async with SimulatedWorld(0) as world:
        app = build_application(world.cluster.embedded, token="secret", metrics=world.metrics.exposition)
        answer = await Asgi(app, "secret")("GET", "/metrics")
        assert (answer.status, b"shoal_queue_depth" in answer.body) == (200, True)
        assert (await Asgi(app, "wrong")("GET", "/metrics")).status == 401


def test_the_depth_of_loops_of_one_kind_adds_up_while_they_run() -> None:
    metrics = Metrics(CollectorRegistry())

    def depth() -> float | None:
        return metrics.registry.get_sample_value("shoal_queue_depth", {"kind": "Framework"})

    with metrics.observe_depth(FRAMEWORK, lambda: 5):
        with metrics.observe_depth(FRAMEWORK, lambda: 2):
            assert depth() == 7
        assert depth() == 5
    assert depth() == 0
