"""What the job loops count, for Prometheus. The registry is passed in, so that two clusters of one process do not mix.

Queue depth shows whether the operator keeps up, reconcile seconds how long one pass of a job takes, writes what it
costs the API server, and jobs by state what people would otherwise use kubectl for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from shoal.kube.kinds import Kind

_SECONDS = (0.0002, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """One set of metrics for all loops that share a registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self._depth_callbacks: dict[str, list[Callable[[], int]]] = {}
        self._request_counters: dict[tuple[str, str], Counter] = {}
        self._write_counters: dict[tuple[str, str], Counter] = {}
        self._depth = Gauge(
            "shoal_queue_depth", "Jobs that are being looked at or wait for it.", ["kind"], registry=registry
        )
        self._seconds = Histogram(
            "shoal_reconcile_seconds", "How long one pass over a job takes, its writes included.", ["kind"],
            buckets=_SECONDS, registry=registry,
        )  # fmt: skip
        self._failures = Counter(
            "shoal_reconcile_failures_total", "Passes that failed and are tried again.", ["kind"], registry=registry
        )
        self._writes = Counter(
            "shoal_writes_total", "Requests that change something, by kind of object and verb.", ["kind", "verb"],
            registry=registry,
        )  # fmt: skip
        self._requests = Counter(
            "shoal_requests_total", "Requests sent to the API server, every try of them, by verb and resource.",
            ["verb", "resource"], registry=registry,
        )  # fmt: skip
        self._jobs = Gauge("shoal_jobs", "Jobs by state.", ["kind", "state"], registry=registry)
        self._leading = Gauge(
            "shoal_leading", "Whether this process serves the shard, 1 or 0.", ["shard"], registry=registry
        )

    @contextmanager
    def observe_depth(self, kind: Kind, depth: Callable[[], int]) -> Iterator[None]:
        """Calls `depth` whenever the metrics are read, for as long as the loop runs; loops of one kind add up."""
        callbacks = self._depth_callbacks.setdefault(kind.kind, [])
        callbacks.append(depth)
        self._depth.labels(kind.kind).set_function(lambda: sum(each() for each in callbacks))
        try:
            yield
        finally:
            callbacks.remove(depth)

    def observe_leading(self, shard: int, leads: Callable[[], bool]) -> None:
        """Calls `leads` whenever the metrics are read."""
        self._leading.labels(str(shard)).set_function(lambda: float(leads()))

    def count_write(self, kind: Kind, verb: str) -> None:
        written = self._write_counters.get((kind.kind, verb))
        if written is None:  # finding a counter by its labels takes longer than counting
            written = self._write_counters[kind.kind, verb] = self._writes.labels(kind.kind, verb)
        written.inc()

    def count_request(self, verb: str, resource: str) -> None:
        requested = self._request_counters.get((verb, resource))
        if requested is None:
            requested = self._request_counters[verb, resource] = self._requests.labels(verb, resource)
        requested.inc()

    def count_state_change(self, kind: Kind, before: str, after: str) -> None:
        """A job went from one state to another; '' is before the first and after the last."""
        if before == after:
            return
        if before:
            self._jobs.labels(kind.kind, before).dec()
        if after:
            self._jobs.labels(kind.kind, after).inc()

    @contextmanager
    def time_reconcile(self, kind: Kind) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        except Exception:
            self._failures.labels(kind.kind).inc()
            raise
        finally:
            self._seconds.labels(kind.kind).observe(time.perf_counter() - started)

    def exposition(self) -> tuple[bytes, str]:
        """The page Prometheus reads, and its content type."""
        return generate_latest(self.registry), CONTENT_TYPE_LATEST
