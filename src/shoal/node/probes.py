"""Probing the containers of a pod, as often as the manifest specifies.

One `Prober` per run of a container. It keeps time with the loop's timers (a period is a timer by nature), counts
results with `probe_results` and reports every change of a verdict; it decides nothing about restarts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from shoal.kube.messages import Message
from shoal.kube.objects import Obj
from shoal.node.probe_results import ProbeCounter, ProbeKind, ProbeResult, next_probe_at, timing_of

RunProbe = Callable[[Obj, float], Awaitable[ProbeResult]]


@dataclass(frozen=True, slots=True)
class ProbeUpdate:
    """The current result of a kind of probe for a container. Sent only when it changes."""

    kind: ProbeKind
    ok: bool


class Prober:
    """`on_update` receives changes, `on_failure` every failed answer. Both run in the loop, at once."""

    def __init__(
        self,
        container: Obj,
        run_probe: RunProbe,
        *,
        passed_startup: bool,
        on_update: Callable[[ProbeUpdate], None],
        on_failure: Callable[[ProbeKind, Message | str], None],
    ) -> None:
        self._container = container
        self._run_probe = run_probe
        self._passed_startup = passed_startup
        self._on_update = on_update
        self._on_failure = on_failure
        self._started_at = 0.0
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, ran_seconds: float) -> None:
        """Begin; `ran_seconds` is how long the container has been running already (adopted ones: long)."""
        self._started_at = asyncio.get_running_loop().time() - ran_seconds
        if self._container.get(ProbeKind.STARTUP) and not self._passed_startup:
            self._start_probe(ProbeKind.STARTUP)
        else:
            self._start_after_startup()

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _start_after_startup(self) -> None:
        for kind in (ProbeKind.LIVENESS, ProbeKind.READINESS):
            if self._container.get(kind):
                self._start_probe(kind)

    def _start_probe(self, kind: ProbeKind) -> None:
        task = asyncio.create_task(self._repeat(kind, self._container[kind]))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _repeat(self, kind: ProbeKind, probe: Obj) -> None:
        loop = asyncio.get_running_loop()
        counter = ProbeCounter(timing_of(probe))
        probed_at: float | None = None
        while True:
            # A timer with an Event rather than sleep(): it may be due in the very turn in which the prober is stopped.
            reached = asyncio.Event()
            timer = loop.call_at(next_probe_at(self._started_at, probed_at, counter.timing), reached.set)
            try:
                await reached.wait()
            finally:
                timer.cancel()
            probed_at = loop.time()
            result = await self._run_probe(probe, counter.timing.timeout)
            if not result.ok:
                self._on_failure(kind, result.output)
            before, counter = counter.verdict, counter.count(result)
            if counter.verdict is None or counter.verdict == before:
                continue
            self._on_update(ProbeUpdate(kind, counter.verdict))
            if kind is ProbeKind.STARTUP:
                if counter.verdict:
                    self._start_after_startup()
                return
