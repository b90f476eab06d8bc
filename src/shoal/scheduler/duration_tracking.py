"""Durations of conditions: seconds by label, for what is over and for what still lasts.

A counter made of these never decreases: what lasts is counted up to the moment it is read.
"""

from __future__ import annotations

from collections.abc import Callable

from shoal.kube.objects import Key

Labels = tuple[str, ...]


class DurationTotals:
    def __init__(self) -> None:
        self._lasting: dict[Key, tuple[Labels, float]] = {}  # with the moment it began
        self._over: dict[Labels, float] = {}

    def set_state(self, key: Key, labels: Labels | None, now: float) -> None:
        """From now on it is so; None: it no longer is."""
        lasting = self._lasting.get(key)
        if (lasting[0] if lasting else None) == labels:
            return
        if lasting is not None:
            self._add(*lasting, now)
        if labels is None:
            self._lasting.pop(key, None)
        else:
            self._lasting[key] = labels, now

    def end_missing(self, still: Callable[[Key], bool], now: float) -> None:
        """End what lasts no longer, even where no event ended it."""
        for key in [key for key in self._lasting if not still(key)]:
            self.set_state(key, None, now)

    def totals(self, now: float) -> dict[Labels, float]:
        found = dict(self._over)
        for labels, since in self._lasting.values():
            found[labels] = found.get(labels, 0.0) + max(now - since, 0.0)
        return dict(sorted(found.items()))

    def _add(self, labels: Labels, since: float, now: float) -> None:
        self._over[labels] = self._over.get(labels, 0.0) + max(now - since, 0.0)


class Durations:
    """How long groups waited, by queue and cause; and by queue how long gangs were broken."""

    def __init__(self) -> None:
        self.waiting = DurationTotals()
        self.broken = DurationTotals()

    def end(self, now: float) -> None:
        """End all spans: no object is tracked any more."""
        for spans in (self.waiting, self.broken):
            spans.end_missing(lambda _: False, now)
