"""Evicts pods: with a condition that names the reason, and through the eviction API where a budget selects the pod.

The cache has assumed the eviction before its request is sent. One that fails is reported as an event.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from shoal.cluster.client import Cluster, DeleteOptions, OutcomeUnknown, PatchType, Preconditions
from shoal.cluster.clock import Clock
from shoal.cluster.event_recorder import WARNING, EventRecorder
from shoal.cluster.informer import Informer
from shoal.kube.errors import ApiError
from shoal.kube.kinds import POD
from shoal.kube.times import rfc3339
from shoal.logs import Logger
from shoal.scheduler.cache.scheduler_cache import SchedulerCache
from shoal.scheduler.channels import Channel, Event, EvictionFailed, EvictionRefused, EvictionRetry
from shoal.scheduler.effects.dispatcher import Dispatcher, Timers
from shoal.scheduler.effects.events import record
from shoal.scheduler.messages import condition_text
from shoal.scheduler.metrics import SchedulerMetrics
from shoal.scheduler.planner.node_and_pod_types import PodState
from shoal.scheduler.planner.plan_types import Evict

log = Logger(__name__)

PAUSE_SECONDS = 1.0
# after that eviction of a pod that its budget kept may be retried, even if no budget has changed
BUDGET_RETRY_SECONDS = 60.0
BUDGET_REFUSALS = (429, 500)  # what a budget answers, or two of them together, or a server that is in trouble
NOT_FOUND_OR_CONFLICT = (404, 409)  # deleted: a watch event follows


class Evictor:
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

    def submit(self, eviction: Evict) -> None:
        self._dispatcher.submit(partial(self._evict, eviction))

    def submit_unanswered(self, eviction: Evict) -> None:
        """Evict a pod that its job was asked to delete, unless it is being deleted."""
        known = self._cache.view.pods.get(eviction.pod)
        if known is None or known.uid != eviction.uid or known.state is not PodState.RELEASING:
            return
        pod = self._pods.objects.get(eviction.pod)
        if pod is None or not pod["metadata"].get("deletionTimestamp"):
            self.submit(eviction)

    async def _evict(self, eviction: Evict) -> None:
        pod, key = self._pods.objects.get(eviction.pod), eviction.pod
        known = self._cache.view.pods.get(key)
        budgeted = known is not None and bool(self._cache.view.budgets.matching(known))
        exactly = DeleteOptions(preconditions=Preconditions(uid=eviction.uid))
        try:
            if budgeted:
                # Evicted first: the server may keep the pod, and sets a condition of its own before this one.
                await self._cluster.evict(key.name, key.namespace, exactly)
                with suppress(ApiError, OutcomeUnknown, OSError):  # evicted in any case; its Event has the reason
                    await self._mark(eviction)
            else:
                # Marked first, so that the job sees the reason; then deleted with its grace period.
                await self._mark(eviction)
                await self._cluster.delete(POD, key.name, key.namespace, exactly)
        except ApiError as refused:
            if budgeted and refused.code in BUDGET_REFUSALS:
                log.info("eviction refused by a budget", pod=str(key), message=refused.message)
                nothing_left = any(cause.reason == "DisruptionBudget" for cause in refused.causes)
                self._events.put(EvictionRefused(key, eviction.uid, nothing_left))
                self._report_after(BUDGET_RETRY_SECONDS, EvictionRetry(key, eviction.uid))
            elif refused.code not in NOT_FOUND_OR_CONFLICT:
                log.warning("eviction refused", pod=str(key), message=refused.message)
                self._report_after(PAUSE_SECONDS, EvictionFailed(key, eviction.uid))
        except (OutcomeUnknown, OSError) as broken:
            log.warning("eviction may not have arrived", pod=str(key), error=str(broken))
            self._report_after(PAUSE_SECONDS, EvictionFailed(key, eviction.uid))
        else:
            self._metrics.evicted()
            if pod is not None:
                await record(self._recorder, pod, WARNING, "Evicted", eviction.message)

    def _report_after(self, seconds: float, outcome: Event) -> None:
        self._timers.call_later(seconds, partial(self._events.put, outcome))

    async def _mark(self, eviction: Evict) -> None:
        key = eviction.pod
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": condition_text(eviction.message),
            "lastTransitionTime": rfc3339(self._clock.now()),
        }
        patch = {"metadata": {"uid": eviction.uid}, "status": {"conditions": [condition]}}
        await self._cluster.patch(
            POD, key.name, key.namespace, patch=patch, patch_type=PatchType.STRATEGIC, subresource="status"
        )
