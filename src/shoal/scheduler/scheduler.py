"""The scheduler: a cache fed by informers, cycles that plan on it, and effects that carry the plans out.

The three parts talk through two channels. Informers, and the effects with the outcomes of requests, put events into the
first; the cache applies them. What a cycle decides, and what changed in the cache, goes through the second to the
effects. A cycle never waits: requests are sent beside it, what they will change is assumed at once, and the next cycle
builds on that. No cycle runs by the clock except at the moment the last plan named (a promise of waiting time, a time
in the queue, a half-bound gang's hold time, a next turn for gangs for whose victims no search was left). The process
may be interrupted anywhere: the next one finds gangs half bound and completes them, or undoes them when their hold time
is over.
"""

from __future__ import annotations

import asyncio
import sys
from importlib import import_module

from shoal.cluster.client import Cluster
from shoal.cluster.clock import Clock, Timer, sleep
from shoal.cluster.event_recorder import EventRecorder
from shoal.cluster.informer import Change, Informer, strip_managed_fields
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
    Kind,
)
from shoal.logs import Logger
from shoal.scheduler.api.hypernodes import HYPER_NODE
from shoal.scheduler.api.pod_groups import COMMAND
from shoal.scheduler.cache.scheduler_cache import SchedulerCache
from shoal.scheduler.channels import Channel, CycleDue, Decision, Event
from shoal.scheduler.effects.effects import Effects, WatchedObjects
from shoal.scheduler.gauges import SchedulerGauges
from shoal.scheduler.metrics import SchedulerMetrics
from shoal.scheduler.planner.gang_types import PlannerSettings
from shoal.scheduler.scope import SchedulerScope

log = Logger(__name__)

PLANNER = (
    "shoal.scheduler.planner.cluster_view",
    "shoal.scheduler.planner.planner",
    "shoal.scheduler.planner.plan_builder",
)
BINDS_AT_ONCE = 16


class Scheduler:
    """Informers of nodes and pods are given, because others share them; it runs all others itself."""

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
        """`coalesce_seconds`: how long a cycle so soon after another waits for more events. The first never waits.
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
        self._coalesce_seconds = coalesce_seconds
        self._quiet_seconds = quiet_seconds
        self._groups = self._informer(self._scope.group_kind, self._scope.namespace)
        self._queues = self._informer(self._scope.queue_kind)
        self._commands = self._informer(COMMAND, self._scope.namespace)
        # In the order in which existing objects are delivered, before nodes and pods: a pod follows its claims, node
        # and group.
        kinds = [NAMESPACE, STORAGE_CLASS, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, POD_DISRUPTION_BUDGET]
        if self._scope.hypernodes:
            kinds.append(HYPER_NODE)
        self._informers = [self._informer(kind) for kind in kinds]
        if self._scope.gangs:
            quotas = self._informer(RESOURCE_QUOTA, self._scope.namespace)
            self._informers += [self._informer(PRIORITY_CLASS), self._queues, quotas, self._groups, self._commands]
        self._events: Channel[Event] = Channel()
        self._decisions: Channel[Decision] = Channel()
        self._cycle_due = asyncio.Event()
        self._wake: Timer | None = None

    def _informer(self, kind: Kind, namespace: str | None = None) -> Informer:
        return Informer(self._cluster, kind, namespace, trim=strip_managed_fields, clock=self._clock)

    @property
    def is_synced(self) -> bool:
        return all(informer.synced.is_set() for informer in (*self._informers, self._nodes, self._pods))

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for informer in self._informers:
                group.create_task(informer.run())
            if not is_loaded():
                await self._wait_until_needed()
                await asyncio.to_thread(load_planner)
            for informer in (*self._informers, self._nodes, self._pods):
                await informer.synced.wait()
            await self._schedule()

    async def _wait_until_needed(self) -> None:
        """Wait until a node is ready or a pod waits: loading the planner earlier would delay the cluster's start."""
        needed = asyncio.Event()

        def look(change: Change) -> None:
            if change.new is not None and (change.kind != NODE or is_true(change.new, "Ready")):
                needed.set()

        groups = [self._groups] if self._scope.gangs else []
        with subscribe_all(*((informer, look) for informer in (self._nodes, self._pods, *groups))):
            await needed.wait()

    async def _schedule(self) -> None:
        from shoal.scheduler.cycle import Cycle
        from shoal.scheduler.planner.cluster_view import ClusterView

        view = ClusterView(self._settings)
        self._cache = SchedulerCache(
            view, self._scope, self._clock, pods=self._pods.objects, groups=self._groups.objects
        )
        self._cycle = Cycle(self._cache, self._metrics)
        gauges = SchedulerGauges(
            view, self._metrics.durations, scope=self._scope, now=lambda: self._cache.now, causes=self._cycle.causes
        )
        effects = Effects(
            self._cluster, self._cache, self._events,
            WatchedObjects(self._pods, self._groups, self._queues, self._commands),
            scope=self._scope, recorder=self._recorder, clock=self._clock, metrics=self._metrics, gauges=gauges,
            binds_at_once=self._binds_at_once, quiet_seconds=self._quiet_seconds,
        )  # fmt: skip
        self._metrics.show(gauges.collect)
        informers = (*self._informers, self._nodes, self._pods)
        with subscribe_all(*((informer, self._events.put) for informer in informers)):
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._follow_events())
                    group.create_task(self._run_cycles())
                    group.create_task(effects.run(self._decisions))
            finally:
                self._metrics.show_idle(self._cache.now)
                if self._wake is not None:
                    self._wake.cancel()

    async def _follow_events(self) -> None:
        while True:
            await self._events.wait()
            self._apply_events()

    async def _run_cycles(self) -> None:
        last_cycle = 0.0
        while True:
            # 1. Wait until another plan may come out differently; soon after the last, for more events as well.
            await self._cycle_due.wait()
            if self._cache.now - last_cycle < self._coalesce_seconds:
                await sleep(self._clock, self._coalesce_seconds)
            # 2. Apply what has arrived, so that the plan is made on the latest state.
            self._apply_events()
            self._cycle_due.clear()
            # 3. Plan: pure, on the cache alone.
            decisions = self._cycle.run()
            last_cycle = self._cache.now
            if decisions is not None:
                # 4. Assume that all of it happens, so that no resource is given away twice.
                self._cache.assume(decisions)
                # 5. Hand it to the effects, which send the requests.
                self._decisions.put(decisions)
                # 6. Plan again at once if the plan opened the way for others, or at the time it named.
                self._cycle.schedule_next(decisions.plan)
                self._wake_at(decisions.plan.wake_at)
                if self._cycle.is_due:
                    self._cycle_due.set()
            await asyncio.sleep(0)

    def _apply_events(self) -> None:
        self._cache.apply(self._events.drain())
        changes = self._cache.take_changes()
        for change in changes.objects:
            if change.new is None and change.kind == self._scope.group_kind:
                self._cycle.forget(change.key)
        self._decisions.put(changes)
        if self._cycle.is_due:
            self._cycle_due.set()

    def _wake_at(self, moment: float | None) -> None:
        if self._wake is not None:
            self._wake.cancel()
            self._wake = None
        if moment is not None:
            seconds = max(moment - self._cache.now, 0.0)
            self._wake = self._clock.call_later(seconds, lambda: self._events.put(CycleDue()))


def is_loaded() -> bool:
    return all(name in sys.modules for name in PLANNER)


def load_planner() -> None:
    for name in PLANNER:
        import_module(name)
