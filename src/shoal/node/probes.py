"""Asking the containers of a pod how they are, as often as the manifest says.

One `Prober` per run of a container. It keeps time with the loop's timers (a period is a timer by nature),
counts answers with `probe_results` and reports every change of a verdict; it decides nothing about restarts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from shoal.kube.objects import Obj
from shoal.node.probe_results import Answer, ProbeKind, Tally, next_at, timing_of

Ask = Callable[[Obj, float], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a kind of probe now says of a container, with the last answer. Told only when it changes."""

    kind: ProbeKind
    ok: bool
    text: str


class Prober:
    """`on_verdict` hears changes, `on_failure` hears every failed answer. Both run in the loop, at once."""

    def __init__(
        self,
        container: Obj,
        ask: Ask,
        *,
        passed_startup: bool,
        on_verdict: Callable[[Verdict], None],
        on_failure: Callable[[ProbeKind, str], None],
    ) -> None:
        self._container = container
        self._ask = ask
        self._passed_startup = passed_startup
        self._on_verdict = on_verdict
        self._on_failure = on_failure
        self._started_at = 0.0
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, ran_seconds: float) -> None:
        """Begin; `ran_seconds` is how long the container has been running already (adopted ones: long)."""
        self._started_at = asyncio.get_running_loop().time() - ran_seconds
        if self._container.get(ProbeKind.STARTUP) and not self._passed_startup:
            self._begin(ProbeKind.STARTUP)
        else:
            self._begin_after_startup()

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _begin_after_startup(self) -> None:
        for kind in (ProbeKind.LIVENESS, ProbeKind.READINESS):
            if self._container.get(kind):
                self._begin(kind)

    def _begin(self, kind: ProbeKind) -> None:
        task = asyncio.create_task(self._repeat(kind, self._container[kind]))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _repeat(self, kind: ProbeKind, probe: Obj) -> None:
        loop = asyncio.get_running_loop()
        tally = Tally(timing_of(probe))
        asked_at: float | None = None
        while True:
            await _until(next_at(self._started_at, asked_at, tally.timing))
            asked_at = loop.time()
            answer = await self._ask(probe, tally.timing.timeout)
            if not answer.ok:
                self._on_failure(kind, answer.text)
            before, tally = tally.verdict, tally.count(answer)
            if tally.verdict is None or tally.verdict == before:
                continue
            self._on_verdict(Verdict(kind, tally.verdict, answer.text))
            if kind is ProbeKind.STARTUP:
                if tally.verdict:
                    self._begin_after_startup()
                return


async def _until(due: float) -> None:
    """A timer of the loop, nothing more. It may be due in the very turn in which its waiter is told to stop."""
    reached = asyncio.Event()
    timer = asyncio.get_running_loop().call_at(due, reached.set)
    try:
        await reached.wait()
    finally:
        timer.cancel()
