"""The scheduler: watch events update a view, a plan is made when something changed, and it is executed.

`Scheduler.run` is the main loop. A pass never waits: requests are sent beside it, what they will change is assumed at
once, and the next pass builds on that. No pass runs by the clock except at the moment the last plan named (a promise of
waiting time, a time in the queue, a half-bound gang's hold time, a next turn for gangs for whose victims no search was
left). It may be interrupted anywhere: the next process finds gangs half bound and completes them, or undoes them when
their hold time is over.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from shoal.cluster.client import Cluster
from shoal.cluster.clock import Clock, Timer, sleep
from shoal.cluster.event_recorder import EventRecorder
from shoal.cluster.informer import Change, EventHandler, Informer, strip_managed_fields
from shoal.controller_runtime.runnables import subscribe_all
from shoal.kube.conditions import is_true
from shoal.kube.kinds import (
    NAMESPACE,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD_DISRUPTION_BUDGET,
    PRIORITY_CLASS,
    RESOURCE_QUOTA,
    STORAGE_CLASS,
)
from shoal.kube.messages import Message
from shoal.kube.objects import Key, Obj
from shoal.logs import Logger
from shoal.scheduler.api.hypernodes import HYPER_NODE
from shoal.scheduler.api.pod_groups import COMMAND
from shoal.scheduler.cache.hypernode_domains import HyperNodeResolver
from shoal.scheduler.cache.limits import LimitsUpdater
from shoal.scheduler.cache.scheduler_cache import CacheUpdater
from shoal.scheduler.effects.binder import Binder
from shoal.scheduler.effects.dispatcher import Dispatcher
from shoal.scheduler.effects.queue_controller import QueueController
from shoal.scheduler.effects.status_writer import AT_ONCE, GroupStatusWriter, PodStatusWriter
from shoal.scheduler.gauges import SchedulerGauges
from shoal.scheduler.messages import text
from shoal.scheduler.metrics import SchedulerMetrics
from shoal.scheduler.planner.gang_types import PlannerSettings
from shoal.scheduler.planner.plan_types import GroupResult, Plan, Wait
from shoal.scheduler.scope import SchedulerScope

if TYPE_CHECKING:
    from shoal.scheduler.planner.cache import ClusterView

log = Logger(__name__)

PLANNER = ("shoal.scheduler.planner.cache", "shoal.scheduler.planner.planner", "shoal.scheduler.planner.results")
BINDS_AT_ONCE = 16
MISSING_PODS_SECONDS = 5.0
MOST_REPEATS = 8  # of a plan at one moment that binds nothing, whatever it decides: what is left waits for an event


class Scheduler:
    """Copies of nodes and pods are given, because others share them; what else it needs it keeps itself."""

    name = "scheduler"

    def __init__(
        self,
        cluster: Cluster,
        nodes: Informer,
        pods: Informer,
        *,
        recorder: EventRecorder,
        clock: Clock,
        metrics: SchedulerMetrics,
        scope: SchedulerScope | None = None,
        settings: PlannerSettings | None = None,
        binds_at_once: int = BINDS_AT_ONCE,
        coalesce_seconds: float = 0.0,
        quiet_seconds: float = 0.0,
    ) -> None:
        """`coalesce_seconds`: how long news so soon after a plan waits for company. The first never waits.
        `quiet_seconds`: how long no pod was placed when Events about placed ones go out."""
        self._cluster = cluster
        self._nodes = nodes
        self._pods = pods
        self._recorder = recorder
        self._clock = clock
        self._metrics = metrics
        self._scope = scope or SchedulerScope()
        self._settings = settings or PlannerSettings()
        self._binds_at_once = binds_at_once
        self._gathering_seconds = coalesce_seconds
        self._quiet_seconds = quiet_seconds
        self._stirred = asyncio.Event()
        self._is_dirty = False  # another plan may come out differently
        self._wake: Timer | None = None
        self._cycles = 0
        self._missing_pods_timers: dict[Key, Timer] = {}  # groups some of whose pods do not exist
        self._planned = 0.0  # when
        self._repeats = 0  # plans in a row that only followed the one before
        self._warned: tuple[Message, ...] = ()
        self._copies = self._own_copies()

    def _own_copies(self) -> dict[str, Informer]:
        scope, cluster, clock = self._scope, self._cluster, self._clock
        found = {
            "claims": Informer(cluster, PERSISTENT_VOLUME_CLAIM, trim=strip_managed_fields, clock=clock),
            "volumes": Informer(cluster, PERSISTENT_VOLUME, trim=strip_managed_fields, clock=clock),
            "storage": Informer(cluster, STORAGE_CLASS, trim=strip_managed_fields, clock=clock),
            "namespaces": Informer(cluster, NAMESPACE, trim=strip_managed_fields, clock=clock),
            "budgets": Informer(cluster, POD_DISRUPTION_BUDGET, trim=strip_managed_fields, clock=clock),
        }
        if scope.gangs:
            found["classes"] = Informer(cluster, PRIORITY_CLASS, trim=strip_managed_fields, clock=clock)
            found["queues"] = Informer(cluster, scope.queue_kind, trim=strip_managed_fields, clock=clock)
            found["groups"] = Informer(
                cluster, scope.group_kind, scope.namespace, trim=strip_managed_fields, clock=clock
            )
            found["quotas"] = Informer(cluster, RESOURCE_QUOTA, scope.namespace, trim=strip_managed_fields, clock=clock)
            found["orders"] = Informer(cluster, COMMAND, scope.namespace, trim=strip_managed_fields, clock=clock)
        if scope.hypernodes:
            found["domains"] = Informer(cluster, HYPER_NODE, trim=strip_managed_fields, clock=clock)
        return found

    @property
    def is_synced(self) -> bool:
        return all(copy.synced.is_set() for copy in (self._nodes, self._pods, *self._copies.values()))

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for copy in self._copies.values():
                group.create_task(copy.run())
            if not is_loaded():
                await self._wait_until_needed()
                await asyncio.to_thread(load_planner)
            for copy in (self._nodes, self._pods, *self._copies.values()):
                await copy.synced.wait()
            await self._work()

    async def _wait_until_needed(self) -> None:
        """Wait until a node is ready or a pod waits: loading the planner earlier would delay the cluster's start."""
        needed = asyncio.Event()

        def look(change: Change) -> None:
            if change.new is not None and (change.kind != NODE or is_true(change.new, "Ready")):
                needed.set()

        copies = (self._nodes, self._pods, *(copy for name, copy in self._copies.items() if name == "groups"))
        with subscribe_all(*((copy, look) for copy in copies)):
            await needed.wait()

    async def _work(self) -> None:
        self._start()
        with ExitStack() as ending:
            for copy, subscriber in self._subscriptions():
                ending.callback(copy.subscribe(subscriber))
            try:
                if self._queues is not None:
                    self._queues.begin()
                while True:
                    await self._stirred.wait()
                    if self._feed.now - self._planned < self._gathering_seconds:
                        await sleep(self._clock, self._gathering_seconds)
                    self._feed.read_again(self._pods.objects)
                    self._stirred.clear()
                    if self._is_dirty:
                        self._is_dirty = False
                        self._run_cycle()
                        self._planned = self._feed.now
                    await asyncio.sleep(0)  # events that arrived are processed before the next plan
            finally:
                for timer in (*self._missing_pods_timers.values(), *((self._wake,) if self._wake else ())):
                    timer.cancel()
                await self._close()

    def _start(self) -> None:
        from shoal.scheduler.planner.cache import ClusterView

        cluster, clock, scope, recorder = self._cluster, self._clock, self._scope, self._recorder
        self.view: ClusterView = ClusterView(self._settings)
        cache_updater = self._feed = CacheUpdater(
            self.view, scope, clock,
            on_news=self._request_cycle, on_group=self._members_changed,
            on_started=self._gang_started, on_queue=self._queue_changed, on_stale=self._stirred.set,
        )  # fmt: skip
        at_once = asyncio.Semaphore(AT_ONCE)
        self._crew = Dispatcher(self._binds_at_once, clock, quiet_seconds=self._quiet_seconds)
        self._pod_words = PodStatusWriter(
            cluster, self._pods, cache_updater=cache_updater, recorder=recorder, clock=clock, at_once=at_once
        )
        self._domains = HyperNodeResolver(self.view, self._request_cycle) if scope.hypernodes else None
        self._group_status: GroupStatusWriter | None = None
        self._queues: QueueController | None = None
        if scope.gangs:
            self._group_status = GroupStatusWriter(
                cluster, self._copies["groups"], cache_updater=cache_updater, scope=scope, recorder=recorder,
                clock=clock, at_once=at_once, submit_low_priority=self._crew.submit_low_priority,
            )  # fmt: skip
            self._queues = QueueController(
                cluster, self._copies["queues"], self._copies["orders"],
                cache_updater=cache_updater, scope=scope, recorder=recorder, clock=clock,
            )  # fmt: skip
        self._figures = SchedulerGauges(
            self.view, self._metrics.durations, scope=scope, now=lambda: cache_updater.now, causes=self._causes
        )
        self._metrics.show(self._figures.collect)
        self._carrier = Binder(
            cluster, cache_updater, self._pods, self._crew,
            scope=scope, recorder=recorder, clock=clock, metrics=self._metrics, on_bound=self._pod_words.remove,
            tell=self._pod_words.report,
        )  # fmt: skip
        self._limits = LimitsUpdater(self.view, on_news=self._request_cycle, on_freed=self._carrier.budget_freed)

    def _subscriptions(self) -> Iterable[tuple[Informer, EventHandler]]:
        """In the order in which existing objects are delivered: a pod follows its claims, node and group."""
        cache_updater, copies = self._feed, self._copies
        yield copies["namespaces"], lambda change: cache_updater.namespace_changed(change, self._pods.objects)
        for name in ("storage", "volumes", "claims"):
            yield copies[name], cache_updater.claim_changed
            yield copies[name], self._carrier.fastener.changed
        yield copies["budgets"], self._limits.budget_changed
        yield self._nodes, cache_updater.node_changed
        yield self._nodes, self._carrier.fastener.node_changed
        if self._domains is not None:
            yield copies["domains"], self._domains.changed
            yield self._nodes, self._domains.node_changed
        if self._queues is not None and self._group_status is not None:
            yield copies["classes"], lambda change: cache_updater.class_changed(change, copies["groups"].objects)
            yield copies["queues"], cache_updater.queue_changed
            yield copies["queues"], self._queues.queue_changed
            yield copies["quotas"], self._limits.quota_changed
            yield copies["groups"], cache_updater.group_changed
            yield copies["groups"], self._group_status.group_changed
            yield copies["groups"], self._carrier.asker.group_changed
            yield copies["groups"], self._figures.group_changed
        yield self._pods, self._pod_changed
        if self._queues is not None:
            yield copies["orders"], self._queues.command_changed

    def _request_cycle(self) -> None:
        self._repeats = 0
        self._is_dirty = True
        self._stirred.set()

    def _pod_changed(self, change: Change) -> None:
        if change.old is None and change.new is not None:
            self._update_assumed(change.new)
        self._feed.pod_changed(change)
        self._carrier.asker.pod_changed(change)
        if change.new is None:
            self._pod_words.remove(change.key)

    def _update_assumed(self, pod: Obj) -> None:
        if not pod["spec"].get("nodeName") and self._scope.is_responsible_for(pod):
            self._metrics.observe_stage("Watched", pod["metadata"].get("creationTimestamp") or "", self._feed.now)

    def _queue_changed(self, name: str) -> None:
        if self._queues is not None:
            self._queues.mark_dirty(name)

    def _members_changed(self, key: Key) -> None:
        self._figures.members_changed(key)
        if self._group_status is not None:
            self._group_status.pods_changed(key)

    def _gang_started(self, key: Key) -> None:
        if not self._feed.is_foreign(key):
            self._metrics.gang_started(self._feed.now - self.view.groups[key].group.created)
        if self._group_status is not None:
            self._group_status.started(key)

    # One pass

    def _run_cycle(self) -> None:
        if not self.view.unsettled:
            return  # nothing waits and nothing is open
        from shoal.scheduler.planner.planner import plan

        self._cycles += 1
        with self._metrics.planning() as lap:
            made = plan(self.view, self._feed.now, lap)
        made, bindings = self._carrier.fastener.choose(made)
        news = self._group_status.results_changed(made.groups, self._cycles) if self._group_status is not None else []
        waits = (*made.waits, *self._waits(made, news))
        self._feed.assume(made)
        self._carrier.execute(made, bindings)
        self._pod_words.report(waits)
        self._metrics.planned(made, len(waits))
        self._count(made, news)
        self._wake_at(made.wake_at)
        if made.binds:
            self._repeats = 0  # fewer pods wait, so this ends
        if made.again and self._repeats < MOST_REPEATS:
            self._repeats += 1
            self._is_dirty = True
            self._stirred.set()
        elif any(self.view.gang_of(self.view.pods[bind.pod]).waiting for bind in made.binds):
            # the next plan reports why some pods of a gang stayed behind while others were placed
            self._request_cycle()

    def _waits(self, made: Plan, news: list[GroupResult]) -> tuple[Wait, ...]:
        """The waits to report on pods of gangs.
        Missing members are reported once no pod has arrived for a while: the pods of a large gang arrive one after the
        other, and a report on all at each would take longer than placing them."""
        from shoal.scheduler.planner.results import pod_waits

        for verdict in news:
            if (timer := self._missing_pods_timers.pop(verdict.group, None)) is not None:
                timer.cancel()
            if verdict.blocked == "pods":
                tell = partial(self._report_missing_pods, made, verdict)
                self._missing_pods_timers[verdict.group] = self._clock.call_later(MISSING_PODS_SECONDS, tell)
        others = tuple(verdict for verdict in news if verdict.blocked != "pods")
        return pod_waits(replace(made, groups=others), self.view)

    def _report_missing_pods(self, made: Plan, verdict: GroupResult) -> None:
        from shoal.scheduler.planner.results import pod_waits

        self._missing_pods_timers.pop(verdict.group, None)
        if verdict.group in self.view.groups:
            self._pod_words.report(pod_waits(replace(made, binds=(), groups=(verdict,)), self.view))

    def _count(self, made: Plan, news: list[GroupResult]) -> None:
        self._figures.results_changed(news)
        if made.warnings != self._warned:
            self._warned = made.warnings
            for warning in made.warnings:
                log.warning("queues", warning=text(warning))
        if self._queues is not None:
            for verdict in news:
                self._queues.mark_dirty(self.view.groups[verdict.group].group.queue, verdict.phase)

    def _causes(self) -> Counter[str]:
        return self._group_status.causes() if self._group_status is not None else Counter()

    def _wake_at(self, moment: float | None) -> None:
        if self._wake is not None:
            self._wake.cancel()
            self._wake = None
        if moment is not None:
            self._wake = self._clock.call_later(max(moment - self._feed.now, 0.0), self._request_cycle)

    async def _close(self) -> None:
        self._metrics.show_idle(self._feed.now)
        await self._carrier.close()
        await self._crew.close()
        await self._pod_words.close()
        if self._group_status is not None:
            await self._group_status.close()
        if self._queues is not None:
            await self._queues.close()


def is_loaded() -> bool:
    return all(name in sys.modules for name in PLANNER)


def load_planner() -> None:
    for name in PLANNER:
        import_module(name)
