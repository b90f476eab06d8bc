"""Carries out decisions: what a cycle decided becomes requests, and what changed in the cache becomes status.

Requests go out beside the cycles and never block one. Outcomes that the cache has to know come back as events. After a
crash nothing has to be repeated from here: the next process finds pods that wait, gangs half bound, or volumes chosen,
and decides again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from shoal.cluster.client import Cluster
from shoal.cluster.clock import Clock, Timer
from shoal.cluster.event_recorder import EventRecorder
from shoal.cluster.informer import Change, Informer
from shoal.kube.kinds import NODE, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, POD
from shoal.kube.objects import Key
from shoal.logs import Logger
from shoal.scheduler.api.pod_groups import COMMAND, POD_GROUP, QUEUE
from shoal.scheduler.cache.scheduler_cache import SchedulerCache
from shoal.scheduler.channels import (
    BindFailed,
    CacheChanges,
    Channel,
    Decision,
    Decisions,
    Event,
    EvictionFailed,
    GroupStatus,
)
from shoal.scheduler.effects.binder import Binder
from shoal.scheduler.effects.dispatcher import Dispatcher, Timers
from shoal.scheduler.effects.evictor import Evictor
from shoal.scheduler.effects.group_status import GroupStatusWriter
from shoal.scheduler.effects.pod_status import PodStatusWriter
from shoal.scheduler.effects.queue_controller import QueueController
from shoal.scheduler.effects.shrink_requests import ShrinkRequester
from shoal.scheduler.effects.volume_binder import VolumeBinder
from shoal.scheduler.gauges import SchedulerGauges
from shoal.scheduler.metrics import SchedulerMetrics
from shoal.scheduler.planner.plan_types import Bind, Wait
from shoal.scheduler.scope import SchedulerScope

log = Logger(__name__)

STATUS_WRITES_AT_ONCE = 16
MISSING_PODS_SECONDS = 5.0
PAUSE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class WatchedObjects:
    """The informers whose objects the effects read."""

    pods: Informer
    groups: Informer
    queues: Informer
    commands: Informer


class Effects:
    def __init__(
        self,
        cluster: Cluster,
        cache: SchedulerCache,
        events: Channel[Event],
        watched: WatchedObjects,
        *,
        scope: SchedulerScope,
        recorder: EventRecorder,
        clock: Clock,
        metrics: SchedulerMetrics,
        gauges: SchedulerGauges,
        binds_at_once: int,
        quiet_seconds: float,
    ) -> None:
        """`events`: where outcomes of requests go."""
        self._cache = cache
        self._events = events
        self._scope = scope
        self._clock = clock
        self._metrics = metrics
        self._gauges = gauges
        self._missing_pods: dict[Key, Timer] = {}  # groups some of whose pods do not exist
        self._dispatcher = Dispatcher(binds_at_once, clock, quiet_seconds=quiet_seconds)
        self._timers = Timers(clock)
        at_once = asyncio.Semaphore(STATUS_WRITES_AT_ONCE)
        pods = watched.pods
        self._pod_status = PodStatusWriter(cluster, pods, cache=cache, recorder=recorder, clock=clock, at_once=at_once)
        self._group_status = GroupStatusWriter(
            cluster, watched.groups, cache=cache, scope=scope, recorder=recorder, clock=clock, at_once=at_once,
            submit_low_priority=self._dispatcher.submit_low_priority,
        )  # fmt: skip
        self._queues = QueueController(
            cluster, watched.queues, watched.commands,
            cache=cache, events=events, scope=scope, recorder=recorder, clock=clock,
        )  # fmt: skip
        self._binder = Binder(
            cluster, cache, events, pods, self._dispatcher, self._timers,
            recorder=recorder, clock=clock, metrics=metrics, on_bound=self._pod_status.remove,
        )  # fmt: skip
        self._evictor = Evictor(
            cluster, cache, events, pods, self._dispatcher, self._timers,
            recorder=recorder, clock=clock, metrics=metrics,
        )  # fmt: skip
        self._shrinks = ShrinkRequester(
            cluster, cache, self._dispatcher, self._timers,
            scope=scope, recorder=recorder, clock=clock, evict=self._evictor.submit_unanswered,
        )  # fmt: skip
        self._volumes = VolumeBinder(
            cluster, cache, events, self._dispatcher, self._timers,
            bind=self._binder.submit, report=self._pod_status.report,
        )  # fmt: skip

    async def run(self, decisions: Channel[Decision]) -> None:
        """Until cancelled; what was not sent by then is decided again by the next process."""
        self._queues.begin()
        try:
            while True:
                await decisions.wait()
                for decision in decisions.drain():
                    if isinstance(decision, Decisions):
                        self.execute(decision)
                    else:
                        self.follow(decision)
        finally:
            for timer in self._missing_pods.values():
                timer.cancel()
            self._timers.close()
            for part in (self._shrinks, self._dispatcher, self._pod_status, self._group_status, self._queues):
                await part.close()

    def execute(self, decisions: Decisions) -> None:
        """Send the requests of one cycle. A decision that breaks is taken back, and does not hold up the others."""
        made = decisions.plan
        for eviction in made.evictions:
            try:
                self._evictor.submit(eviction)
            except Exception:
                log.exception("eviction broke", pod=str(eviction.pod))
                self._take_back(EvictionFailed(eviction.pod, eviction.uid))
        for shrink in made.shrinks:
            try:
                self._shrinks.submit(shrink)
            except Exception:
                log.exception("shrink request broke", group=str(shrink.group))
                for eviction in shrink.evictions:
                    self._take_back(EvictionFailed(eviction.pod, eviction.uid))
        self._bind(made.binds, held=self._volumes.begin(decisions.volumes))
        for status in decisions.statuses:
            try:
                self._report(status)
            except Exception:
                log.exception("report on a group broke", group=str(status.group))
        try:
            self._pod_status.report(decisions.waits)
        except Exception:
            log.exception("report on waiting pods broke", pods=len(decisions.waits))

    def _bind(self, binds: Iterable[Bind], *, held: set[Key]) -> None:
        """Bind the pods, except those `held` until their volumes are bound."""
        now, pods = self._cache.now, self._cache.view.pods
        broken: set[Key] = set()  # gangs that cannot become whole in this cycle
        for bind in binds:
            pod = pods.get(bind.pod)
            gang = pod.group if pod is not None else None
            if gang is not None and gang in broken and bind.pod not in held:
                self._take_back(BindFailed(bind, for_good=False))
                continue
            try:
                if pod is not None:
                    self._metrics.observe_stage("Assumed", pod.created, now)
                if bind.pod not in held:
                    self._binder.submit(bind)
            except Exception:
                log.exception("bind broke", pod=str(bind.pod), node=bind.node)
                if bind.pod in held:
                    continue  # its volumes decide when it is bound
                self._take_back(BindFailed(bind, for_good=False))
                if gang is not None:
                    broken.add(gang)

    def _take_back(self, outcome: Event) -> None:
        # After a pause: the next plan may decide the same, and break again.
        self._timers.call_later(PAUSE_SECONDS, partial(self._events.put, outcome))

    def _report(self, status: GroupStatus) -> None:
        self._group_status.report([status])
        self._gauges.results_changed([status])
        if (timer := self._missing_pods.pop(status.group, None)) is not None:
            timer.cancel()
        if status.blocked == "pods":
            # Reported once no pod has arrived for a while: the pods of a large gang arrive one after the other,
            # and a report on all at each would take longer than placing them.
            report = partial(self._report_missing_pods, status)
            self._missing_pods[status.group] = self._clock.call_later(MISSING_PODS_SECONDS, report)
        self._queues.mark_dirty(status.queue, status.phase)

    def _report_missing_pods(self, status: GroupStatus) -> None:
        self._missing_pods.pop(status.group, None)
        gang = self._cache.view.groups.get(status.group)
        if gang is not None:
            waiting = gang.waiting.values()
            self._pod_status.report([Wait(pod.key, pod.uid, status.message, "Queued") for pod in waiting])

    def follow(self, changes: CacheChanges) -> None:
        """Update what depends on the changed objects: status of groups and queues, claims, metrics."""
        for change in changes.objects:
            try:
                self._object_changed(change)
            except Exception:
                # One object of many: the others must be followed all the same.
                log.exception("change could not be followed", kind=change.kind.kind, key=str(change.key))
        for group in changes.groups:
            self._gauges.members_changed(group)
            self._group_status.pods_changed(group)
        for queue in changes.queues:
            self._queues.mark_dirty(queue)
        for started in changes.started:
            if started.seconds is not None:
                self._metrics.gang_started(started.seconds)
            self._group_status.gang_started(started.group)

    def _object_changed(self, change: Change) -> None:
        match change.kind.kind:
            case POD.kind:
                pod = change.new
                is_new = change.old is None and pod is not None and not pod["spec"].get("nodeName")
                if is_new and pod is not None and self._scope.is_responsible_for(pod):
                    created = pod["metadata"].get("creationTimestamp") or ""
                    self._metrics.observe_stage("Watched", created, self._cache.now)
                self._shrinks.pod_changed(change)
                if pod is None:
                    self._pod_status.remove(change.key)
            case POD_GROUP.kind:
                self._group_status.group_changed(change)
                self._shrinks.group_changed(change)
                self._gauges.group_changed(change)
            case QUEUE.kind:
                self._queues.queue_changed(change)
            case COMMAND.kind:
                self._queues.command_changed(change)
            case PERSISTENT_VOLUME_CLAIM.kind:
                self._volumes.claim_changed(change)
            case PERSISTENT_VOLUME.kind:
                self._volumes.volume_changed(change)
            case NODE.kind:
                self._volumes.node_changed(change)
