"""Told to stop: one signal must be enough, wherever it finds the agent.

torch answers a signal by raising an exception where the program happens to be, and only while workers run. An
exception raised while a log line is written is swallowed by logging, one raised in a rendezvous is taken for a failed
attempt and retried; the agent then goes on as if nothing had been said, and its pod is held until it is killed. So the
signal is also remembered, and said again at the places the agent passes every moment.
"""

from __future__ import annotations

import signal

from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.rendezvous import RendezvousError


class Stopped(SignalException, RendezvousError):
    """Both: torch's agent stops its workers and leaves the job open for the others, and its rendezvous lets it pass."""


class Stopping:
    def __init__(self) -> None:
        self._told: signal.Signals | None = None

    def listen(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._hear)

    def check(self) -> None:
        """Raise Stopped if a signal has come."""
        if self._told is not None:
            raise Stopped(f"told to stop by {self._told.name}", self._told)

    def _hear(self, number: int, _frame: object) -> None:
        self._told = signal.Signals(number)
        self.check()
