"""Scheduler metrics, under the names that dashboards for Volcano expect, and a few that these lack.

Events are counted here as they happen; what can be seen at any moment is computed when the metrics are read
(`gauges`), so that a plan is not slower for being measured. Nothing is labelled with the name of a job: there are too
many.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import Metric

from shoal.kube.times import parse
from shoal.scheduler.gauges import Durations, idle_metrics
from shoal.scheduler.planner.plan_types import Plan

_MILLISECONDS = (0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
_LONG_MILLISECONDS = (*(1000 * each for each in (0.01, 0.1, 1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 24 * 3600)),)
_ACTIONS = ("enqueue", "allocate", "preempt")
_parse_once = lru_cache(maxsize=1024)(parse)  # many pods are created in one second
STAGES = ("Watched", "Assumed", "PreBound", "Bound")


class SchedulerMetrics:
    """One for each registry, whichever replica leads: what was counted stays when the scheduler starts again."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.durations = Durations()
        self._gauges: Callable[[], Iterable[Metric]] = partial(idle_metrics, self.durations)

        def latency(name: str, text: str, *labels: str, buckets: tuple[float, ...] = _MILLISECONDS) -> Histogram:
            return Histogram(f"volcano_{name}_milliseconds", text, labels, buckets=buckets, registry=registry)

        self._cycle = latency("e2e_scheduling_latency", "How long one plan takes.")
        self._opening = latency("open_session_duration", "How long a plan takes to make its accounts.")
        text = "How long the parts of a plan take; preempt: also between queues."
        actions = latency("action_scheduling_latency", text, "action")
        text = "How long computing the queues' shares and the gangs' results takes."
        plugins = latency("plugin_scheduling_latency", text, "plugin", "OnSession")
        self._laps: dict[str, tuple[Histogram, ...]] = {name: (actions.labels(name),) for name in _ACTIONS}
        self._laps["open"] = (self._opening, plugins.labels("shares", "OnSessionOpen"))
        self._laps["close"] = (plugins.labels("gang", "OnSessionClose"),)
        text = "From the making of a group until its minimum is bound."
        self._gang = latency("e2e_job_scheduling_latency", text, buckets=_LONG_MILLISECONDS)
        text = "From the making of a pod until it was seen, had a place, was asked to be bound, and was."
        tasks = latency("task_scheduling_latency", text, "stage", buckets=_LONG_MILLISECONDS)
        self._stages = {stage: tasks.labels(stage) for stage in STAGES}

        self._attempts = Counter(
            "volcano_schedule_attempts", "Pods by result: scheduled, unschedulable (they have to "
            "wait), error.", ["result"], registry=registry,
        )  # fmt: skip
        self._bound = Counter("volcano_bound_pods", "Pods that were bound.", registry=registry)
        # Counters in all but the end of their names, which the client would add.
        self._victims = Gauge("volcano_pod_preemption_victims", "Pods evicted since the start.", registry=registry)
        self._searches = Gauge(
            "volcano_total_preemption_attempts", "Searches for pods that could be evicted, since the start.",
            registry=registry,
        )  # fmt: skip
        self._retries = Gauge(
            "volcano_job_retry_counts", "How often a plan found no place for a group, since the start.",
            registry=registry,
        )  # fmt: skip
        self._transactions = Counter(
            "volcano_eviction_transactions", "Groups for which pods were made to leave, by why they may; undo: gangs "
            "of which only a part could be bound.", ["action"], registry=registry,
        )  # fmt: skip
        self._scheduled = self._attempts.labels("scheduled")
        registry.register(self)

    def collect(self) -> Iterable[Metric]:
        return self._gauges()

    def show(self, collect: Callable[[], Iterable[Metric]]) -> None:
        """What is computed from now on whenever the metrics are read."""
        self._gauges = collect

    def show_idle(self, now: float) -> None:
        self.durations.end(now)
        self._gauges = partial(idle_metrics, self.durations)

    # As it happens

    @contextmanager
    def planning(self) -> Iterator[Callable[[str], None]]:
        """Yields the function to which a plan reports its laps."""
        began = before = time.perf_counter()

        def lap(name: str) -> None:
            nonlocal before
            now = time.perf_counter()
            for histogram in self._laps[name]:
                histogram.observe((now - before) * 1000)
            before = now

        yield lap
        self._cycle.observe((time.perf_counter() - began) * 1000)

    def planned(self, made: Plan, told_to_wait: int) -> None:
        if made.searches:
            self._searches.inc(made.searches)
        for way in made.ways:
            self._transactions.labels(way).inc()
        blocked = sum(bool(result.blocked) for result in made.groups)
        if blocked:
            self._retries.inc(blocked)
        if told_to_wait:
            self._attempts.labels("unschedulable").inc(told_to_wait)

    def gang_started(self, seconds: float) -> None:
        self._gang.observe(max(seconds, 0.0) * 1000)

    def observe_stage(self, stage: str, created: str, now: float) -> None:
        """A pod created then has reached this stage. Creation times have whole seconds."""
        if created:
            self._stages[stage].observe(max(now - _parse_once(created).timestamp(), 0.0) * 1000)

    def bound(self) -> None:
        self._scheduled.inc()
        self._bound.inc()

    def not_bound(self) -> None:
        self._attempts.labels("error").inc()

    def evicted(self) -> None:
        self._victims.inc()
