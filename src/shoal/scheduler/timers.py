"""Delayed calls that end with their owner: no timer acts for a scheduler that has stopped."""

from __future__ import annotations

from collections.abc import Callable

from shoal.cluster.clock import Clock, Timer


class Timers:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: dict[int, Timer] = {}
        self._made = 0
        self._closed = False

    def call_later(self, seconds: float, call: Callable[[], None]) -> None:
        if self._closed:
            return
        self._made += 1
        number = self._made

        def due() -> None:
            del self._waiting[number]
            call()

        self._waiting[number] = self._clock.call_later(seconds, due)

    def close(self) -> None:
        self._closed = True
        for timer in self._waiting.values():
            timer.cancel()
        self._waiting.clear()
