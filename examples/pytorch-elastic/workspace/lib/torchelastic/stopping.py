"""Stop signals: one signal must suffice at any point of the agent.

torch handles a signal by raising an exception at the current statement, and only while workers run. An exception
raised while a log line is written is swallowed by logging, one raised in a rendezvous counts as a failed attempt and
is retried; the agent then continues, and its pod does not terminate until it is killed. So the signal is also stored,
and raised again at points the agent passes frequently.
"""

from __future__ import annotations

import signal

from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.rendezvous import RendezvousError


class Stopped(SignalException, RendezvousError):
    """A SignalException, so that torch's agent stops its workers without closing the job, and a RendezvousError, which
    its rendezvous does not retry."""


class Stopping:
    def __init__(self) -> None:
        self._told: signal.Signals | None = None

    def listen(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._hear)

    def check(self) -> None:
        """Raise Stopped if a signal was received."""
        if self._told is not None:
            raise Stopped(f"told to stop by {self._told.name}", self._told)

    def _hear(self, number: int, _frame: object) -> None:
        self._told = signal.Signals(number)
        self.check()
