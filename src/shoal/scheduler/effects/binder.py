"""Binds pods to the nodes that a plan chose.

The cache has assumed every bind before its request is sent. One that fails is reported as an event after a moment, so
that the next plan finds the pod waiting again; a pod that was deleted, or placed by another scheduler, is reported by
its watch.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial

from shoal.cluster.client import Cluster, OutcomeUnknown
from shoal.cluster.clock import Clock
from shoal.cluster.event_recorder import NORMAL, EventRecorder
from shoal.cluster.informer import Informer
from shoal.kube.errors import ApiError
from shoal.kube.messages import Message
from shoal.kube.objects import Key, uid_of
from shoal.logs import Logger
from shoal.scheduler.cache.scheduler_cache import SchedulerCache
from shoal.scheduler.channels import BindFailed, Channel, Event
from shoal.scheduler.effects.dispatcher import Dispatcher, Timers
from shoal.scheduler.effects.events import record
from shoal.scheduler.metrics import SchedulerMetrics
from shoal.scheduler.planner.plan_types import Bind

log = Logger(__name__)

PAUSE_SECONDS = 1.0
NOT_FOUND_OR_CONFLICT = (404, 409)  # deleted, or placed elsewhere: a watch event follows


class Binder:
    def __init__(
        self,
        cluster: Cluster,
        cache: SchedulerCache,
        events: Channel[Event],
        pods: Informer,
        dispatcher: Dispatcher,
        timers: Timers,
        *,
        recorder: EventRecorder,
        clock: Clock,
        metrics: SchedulerMetrics,
        on_bound: Callable[[Key], None],
    ) -> None:
        self._cluster = cluster
        self._cache = cache
        self._events = events
        self._pods = pods
        self._dispatcher = dispatcher
        self._timers = timers
        self._recorder = recorder
        self._clock = clock
        self._metrics = metrics
        self._on_bound = on_bound

    def submit(self, bind: Bind) -> None:
        known = self._cache.view.pods.get(bind.pod)
        created = known.created if known is not None else ""
        self._dispatcher.submit(partial(self._bind, bind, created))

    async def _bind(self, bind: Bind, created: str) -> None:
        key = bind.pod
        self._metrics.observe_stage("PreBound", created, self._cache.now)
        try:
            await self._cluster.bind(key.name, key.namespace, node=bind.node, uid=bind.uid)
        except ApiError as refused:
            log.info("bind refused", pod=str(key), node=bind.node, message=refused.message)
            self._metrics.not_bound()
            if refused.code in NOT_FOUND_OR_CONFLICT:
                self._events.put(BindFailed(bind, for_good=True))
            else:
                self._report_later(bind)
        except (OutcomeUnknown, OSError) as broken:
            log.info("bind may not have arrived", pod=str(key), node=bind.node, error=str(broken))
            self._report_later(bind)
        else:
            self._metrics.bound()
            self._metrics.observe_stage("Bound", created, self._cache.now)
            self._on_bound(key)
            known = self._cache.view.pods.get(key)
            if known is None or known.group is None:  # for a gang, its group reports once for all
                self._dispatcher.submit_low_priority(partial(self._emit_scheduled, bind, self._clock.now()))

    def _report_later(self, bind: Bind) -> None:
        # Binding twice does no harm: where the first request came through, the second is a conflict.
        self._timers.call_later(PAUSE_SECONDS, lambda: self._events.put(BindFailed(bind, for_good=False)))

    async def _emit_scheduled(self, bind: Bind, at: datetime) -> None:
        pod = self._pods.objects.get(bind.pod)
        if pod is not None and uid_of(pod) == bind.uid:
            message = Message("Scheduled.Pod", {"pod": str(bind.pod), "node": bind.node})
            await record(self._recorder, pod, NORMAL, "Scheduled", message, at=at)
