"""What the metrics show of this moment: which groups wait and for how long, which gangs are broken, what queues hold.

Computed when the metrics are read. Only that a group begins or ceases to wait, or to be broken, is recorded as it
happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from shoal.cluster.informer import Change
from shoal.kube.objects import Key
from shoal.scheduler.channels import GroupStatus
from shoal.scheduler.queue_gauges import queue_metrics
from shoal.scheduler.scope import SchedulerScope

if TYPE_CHECKING:
    from shoal.scheduler.planner.cluster_view import ClusterView

CAUSES = ("capacity", "quota", "queue", "pods", "order")


Labels = tuple[str, ...]


class DurationTotals:
    """Durations of conditions: seconds by label, for what is over and for what still lasts.
    A counter made of these never decreases: what lasts is counted up to the moment it is read."""

    def __init__(self) -> None:
        self._lasting: dict[Key, tuple[Labels, float]] = {}  # with the moment it began
        self._over: dict[Labels, float] = {}

    def set_state(self, key: Key, labels: Labels | None, now: float) -> None:
        """From now on it is so; None: it no longer is."""
        lasting = self._lasting.get(key)
        if (lasting[0] if lasting else None) == labels:
            return
        if lasting is not None:
            labels_before, since = lasting
            self._over[labels_before] = self._over.get(labels_before, 0.0) + max(now - since, 0.0)
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


class Durations:
    """How long groups waited, by queue and cause; and by queue how long gangs were broken."""

    def __init__(self) -> None:
        self.waiting = DurationTotals()
        self.broken = DurationTotals()

    def end(self, now: float) -> None:
        """End all spans: no object is tracked any more."""
        for spans in (self.waiting, self.broken):
            spans.end_missing(lambda _: False, now)


class SchedulerGauges:
    def __init__(
        self,
        view: ClusterView,
        durations: Durations,
        *,
        scope: SchedulerScope,
        now: Callable[[], float],
        causes: Callable[[], Mapping[str, int]],
    ) -> None:
        """`causes`: how many groups wait for what."""
        self._view = view
        self._durations = durations
        self._scope = scope
        self._now = now
        self._causes = causes

    # As it happens

    def results_changed(self, statuses: Iterable[GroupStatus]) -> None:
        now = self._now()
        for status in statuses:
            waits_for = (status.queue, status.blocked) if status.blocked else None
            self._durations.waiting.set_state(status.group, waits_for, now)

    def members_changed(self, key: Key) -> None:
        now, gang = self._now(), self._view.groups.get(key)
        queue = self._queue_if_broken(key)
        self._durations.broken.set_state(key, None if queue is None else (queue,), now)
        if gang is None or (gang.placed and not gang.waiting):
            self._durations.waiting.set_state(key, None, now)  # perhaps placed by another scheduler: no result shows it

    def group_changed(self, change: Change) -> None:
        if change.new is None:
            for spans in (self._durations.waiting, self._durations.broken):
                spans.set_state(change.key, None, self._now())

    def _queue_if_broken(self, key: Key) -> str | None:
        """It ran and has fewer pods than its minimum. Roles are not looked at: that would cost at every pod."""
        gang = self._view.groups.get(key)
        if gang is None or not gang.known or not gang.group.ran or not gang.placed:
            return None
        return gang.group.queue if gang.ready < gang.group.min_member else None

    # On collection

    def collect(self) -> Iterator[Metric]:
        now, waiting, broken = self._now(), self._durations.waiting, self._durations.broken
        waiting.end_missing(self._view.unsettled.__contains__, now)
        broken.end_missing(lambda key: self._queue_if_broken(key) is not None, now)
        pods = sum(len(gang.waiting) for gang in self._view.unsettled.values())
        yield from waiting_metrics(pods, self._causes())
        yield from duration_metrics(self._durations, now)
        if self._scope.gangs and self._scope.manages_queues:
            yield from queue_metrics(self._view)


def idle_metrics(durations: Durations) -> Iterator[Metric]:
    """While no scheduler is active: nothing waits here, and what was counted stays."""
    yield from waiting_metrics(0, {})
    yield from duration_metrics(durations, 0.0)


def waiting_metrics(pods: int, causes: Mapping[str, int]) -> Iterator[Metric]:
    yield GaugeMetricFamily("volcano_unschedule_task_count", "Pods that wait for a place.", value=pods)
    groups = sum(causes.values())
    yield GaugeMetricFamily("volcano_unschedule_job_count", "Groups that wait for places.", value=groups)
    by_cause = GaugeMetricFamily("shoal_waiting_groups", "Groups that wait, by what they wait for.", labels=["cause"])
    for cause in CAUSES:
        by_cause.add_metric([cause], causes.get(cause, 0))
    yield by_cause


def duration_metrics(durations: Durations, now: float) -> Iterator[Metric]:
    waited = CounterMetricFamily(
        "volcano_waiting_seconds", "Seconds that groups waited in all, by what for.", labels=["queue_name", "cause"]
    )
    broken = CounterMetricFamily(
        "volcano_broken_gang_seconds", "Seconds in all that gangs had lost pods of their minimum.",
        labels=["queue_name"],
    )  # fmt: skip
    for family, spans in ((waited, durations.waiting), (broken, durations.broken)):
        for labels, seconds in spans.totals(now).items():
            family.add_metric(labels, seconds)
        yield family
