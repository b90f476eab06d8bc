"""What the scheduler counts, under the names that dashboards for Volcano know, and a few that these lack.

Nothing is labelled with the name of a job: there are too many of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_MILLISECONDS = (0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
CAUSES = ("capacity", "quota", "queue", "pods", "order")
PHASES = ("pending", "inqueue", "running", "unknown", "completed")


class SchedulerMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        self._cycle = Histogram(
            "volcano_e2e_scheduling_latency_milliseconds", "How long one plan takes.",
            buckets=_MILLISECONDS, registry=registry,
        )  # fmt: skip
        self._attempts = Counter(
            "volcano_schedule_attempts",
            "Pods that were to be bound, by what came of it.",
            ["result"],
            registry=registry,
        )
        self._victims = Counter("volcano_pod_preemption_victims", "Pods that were evicted.", registry=registry)
        self._waiting = Gauge("volcano_unschedule_task_count", "Pods that wait for a place.", registry=registry)
        self._waiting_groups = Gauge("volcano_unschedule_job_count", "Groups that wait for places.", registry=registry)
        self._waits = Gauge(
            "shoal_waiting_groups", "Groups that wait, by what they wait for.", ["cause"], registry=registry
        )
        self._counted = {
            phase: Gauge(
                f"volcano_queue_pod_group_{phase}_count", f"Groups of a queue that are {phase}.", ["queue_name"],
                registry=registry,
            )
            for phase in PHASES
        }  # fmt: skip
        self._allocated = {
            name: Gauge(f"volcano_queue_allocated_{name}", what, ["queue_name"], registry=registry)
            for name, what in (
                ("milli_cpu", "Thousandths of processors that a queue's pods hold."),
                ("memory_bytes", "Memory that a queue's pods hold."),
            )
        }
        self._scalars = Gauge(
            "volcano_queue_allocated_scalar_resources", "Other resources that a queue's pods hold, in thousandths.",
            ["queue_name", "resource"], registry=registry,
        )  # fmt: skip
        self._held: dict[str, set[str]] = {}  # by queue: other resources that it has held
        self._weight = Gauge("volcano_queue_weight", "A queue's weight.", ["queue_name"], registry=registry)
        self._bound = self._attempts.labels("scheduled")

    @contextmanager
    def planning(self) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self._cycle.observe((time.perf_counter() - began) * 1000)

    def attempted(self, result: str) -> None:
        (self._bound if result == "scheduled" else self._attempts.labels(result)).inc()

    def evicted(self) -> None:
        self._victims.inc()

    def watch_waiting(self, pods: Callable[[], int], causes: Callable[[], Mapping[str, int]]) -> None:
        """Counted when asked for: who stops waiting, by whatever hand, is no longer counted."""
        self._waiting.set_function(pods)
        self._waiting_groups.set_function(lambda: sum(causes().values()))
        for cause in CAUSES:
            self._waits.labels(cause).set_function(partial(_one_of, causes, cause))

    def queue(self, name: str, *, weight: int, phases: Mapping[str, int], allocated: Mapping[str, int]) -> None:
        self._weight.labels(name).set(weight)
        for phase in PHASES:
            self._counted[phase].labels(name).set(phases.get(phase, 0))
        self._allocated["milli_cpu"].labels(name).set(allocated.get("cpu", 0))
        self._allocated["memory_bytes"].labels(name).set(allocated.get("memory", 0) / 1000)
        scalars = {each: amount for each, amount in allocated.items() if each not in ("cpu", "memory", "pods")}
        held = self._held.setdefault(name, set())
        held.update(scalars)
        for resource in held:  # also what it no longer holds: a gauge stays where it was left
            self._scalars.labels(name, resource).set(scalars.get(resource, 0))

    def queue_gone(self, name: str) -> None:
        for resource in self._held.pop(name, ()):
            self._scalars.remove(name, resource)
        for gauge in (*self._counted.values(), *self._allocated.values(), self._weight):
            try:
                gauge.remove(name)
            except KeyError:
                continue


def _one_of(causes: Callable[[], Mapping[str, int]], cause: str) -> float:
    return causes().get(cause, 0)
