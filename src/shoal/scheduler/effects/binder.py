"""Executes a plan: binds and evicts pods, requests pods from elastic jobs, and reverts what was rejected.

The view has assumed all of it before the first request is sent. A request that fails is reverted after a moment, so
that the next plan finds the pod waiting again; a pod that was deleted, or placed by another scheduler, is reported by
its watch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial

from shoal.cluster.client import Cluster, DeleteOptions, OutcomeUnknown, PatchType, Preconditions
from shoal.cluster.clock import Clock
from shoal.cluster.event_recorder import NORMAL, WARNING, EventRecorder
from shoal.cluster.informer import Informer
from shoal.kube.errors import ApiError
from shoal.kube.kinds import POD
from shoal.kube.messages import Message
from shoal.kube.objects import Key, Obj, uid_of
from shoal.kube.times import rfc3339
from shoal.logs import Logger
from shoal.scheduler.cache.scheduler_cache import CacheUpdater
from shoal.scheduler.effects.dispatcher import Dispatcher
from shoal.scheduler.effects.events import record
from shoal.scheduler.effects.shrink_requests import ShrinkRequester
from shoal.scheduler.effects.volume_binder import GangBinding, VolumeBinder
from shoal.scheduler.messages import condition_text
from shoal.scheduler.metrics import SchedulerMetrics
from shoal.scheduler.planner.plan_types import Bind, Evict, Plan, Wait
from shoal.scheduler.planner.snapshot_types import PodState
from shoal.scheduler.scope import SchedulerScope
from shoal.scheduler.timers import Timers

log = Logger(__name__)

PAUSE_SECONDS = 1.0
# after that eviction of a pod that its budget kept may be retried, even if no budget has changed
BUDGET_RETRY_SECONDS = 60.0
BUDGET_REFUSALS = (429, 500)  # what a budget answers, or two of them together, or a server that is in trouble
NOT_FOUND_OR_CONFLICT = (404, 409)  # or placed elsewhere: a watch event follows


class Binder:
    def __init__(
        self,
        cluster: Cluster,
        cache_updater: CacheUpdater,
        pods: Informer,
        dispatcher: Dispatcher,
        *,
        scope: SchedulerScope,
        recorder: EventRecorder,
        clock: Clock,
        metrics: SchedulerMetrics,
        on_bound: Callable[[Key], None],
        tell: Callable[[Sequence[Wait]], None],
    ) -> None:
        self._cluster = cluster
        self._feed = cache_updater
        self._pods = pods
        self._crew = dispatcher
        self._timers = Timers(clock)
        self.asker = ShrinkRequester(
            cluster,
            cache_updater,
            dispatcher,
            self._timers,
            scope=scope,
            recorder=recorder,
            clock=clock,
            insist=self._evict_unanswered,
        )
        self.fastener = VolumeBinder(
            cluster, cache_updater, pods, dispatcher, self._timers, bind=self._bind_now, tell=tell
        )
        self._recorder = recorder
        self._clock = clock
        self._metrics = metrics
        self._on_bound = on_bound

    def execute(self, made: Plan, bindings: Sequence[GangBinding] = ()) -> None:
        """`bindings`: pods whose claims are to be bound before."""
        for eviction in made.evictions:
            self._crew.submit(partial(self._evict, eviction))
        for shrink in made.shrinks:
            self.asker.submit(shrink)
        now, pods = self._feed.now, self._feed.view.pods
        held = self.fastener.begin(bindings) if bindings else ()
        for bind in made.binds:
            created = pods[bind.pod].created
            self._metrics.observe_stage("Assumed", created, now)
            if bind.pod not in held:
                self._crew.submit(partial(self._bind, bind, created))

    async def close(self) -> None:
        """Delayed calls are dropped: the next process plans again."""
        self._timers.close()
        await self.asker.close()

    # Binds

    def _bind_now(self, bind: Bind) -> None:
        """Its claims are bound."""
        known = self._feed.view.pods.get(bind.pod)
        self._crew.submit(partial(self._bind, bind, known.created if known is not None else ""))

    async def _bind(self, bind: Bind, created: str) -> None:
        key = bind.pod
        self._metrics.observe_stage("PreBound", created, self._feed.now)
        try:
            await self._cluster.bind(key.name, key.namespace, node=bind.node, uid=bind.uid)
        except ApiError as refused:
            log.info("bind refused", pod=str(key), node=bind.node, message=refused.message)
            self._metrics.not_bound()
            if refused.code in NOT_FOUND_OR_CONFLICT:
                self._feed.not_bound(bind, None, for_good=True)
            else:
                self._later(lambda: self._feed.not_bound(bind, self._pods.objects.get(key), for_good=False))
        except (OutcomeUnknown, OSError) as broken:
            log.info("bind may not have been heard", pod=str(key), node=bind.node, error=str(broken))
            self._later(lambda: self._feed.not_bound(bind, self._pods.objects.get(key), for_good=False))
        else:
            self._metrics.bound()
            self._metrics.observe_stage("Bound", created, self._feed.now)
            self._on_bound(key)
            known = self._feed.view.pods.get(key)
            if known is None or known.group is None:  # for a gang, its group reports once for all
                self._crew.submit_low_priority(partial(self._emit_scheduled, bind, self._clock.now()))

    async def _emit_scheduled(self, bind: Bind, at: datetime) -> None:
        pod = self._pods.objects.get(bind.pod)
        if pod is not None and uid_of(pod) == bind.uid:
            message = Message("Scheduled.Pod", {"pod": str(bind.pod), "node": bind.node})
            await self._record(pod, NORMAL, "Scheduled", message, at)

    def _later(self, call: Callable[[], None]) -> None:
        """After a moment. Binding twice does no harm: where the first came through, the second is a conflict."""
        self._timers.call_later(PAUSE_SECONDS, call)

    # Evictions

    async def _evict(self, eviction: Evict) -> None:
        """Mark the pod first, so that its job sees the reason; then delete it, with its grace period.
        One that a budget selects is evicted first: the server may keep it, and sets a mark of its own before ours."""
        pod, key = self._pods.objects.get(eviction.pod), eviction.pod
        known = self._feed.view.pods.get(key)
        budgeted = known is not None and bool(self._feed.view.budgets.matching(known))
        exactly = DeleteOptions(preconditions=Preconditions(uid=eviction.uid))
        try:
            if budgeted:
                await self._cluster.evict(key.name, key.namespace, exactly)
                with suppress(ApiError, OutcomeUnknown, OSError):  # evicted in any case; its Event has the reason
                    await self._mark(eviction)
            else:
                await self._mark(eviction)
                await self._cluster.delete(POD, key.name, key.namespace, exactly)
        except ApiError as refused:
            if budgeted and refused.code in BUDGET_REFUSALS:
                log.info("eviction refused by a budget", pod=str(key), message=refused.message)
                self._budget_refused(eviction, nothing_left=_is_budget_rejection(refused))
            elif refused.code not in NOT_FOUND_OR_CONFLICT:
                log.warning("eviction refused", pod=str(key), message=refused.message)
                self._later(lambda: self._eviction_failed(eviction))
        except (OutcomeUnknown, OSError) as broken:
            log.warning("eviction may not have been heard", pod=str(key), error=str(broken))
            self._later(lambda: self._eviction_failed(eviction))
        else:
            self._metrics.evicted()
            if pod is not None:
                await self._record(pod, WARNING, "Evicted", eviction.message)

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

    def _budget_refused(self, eviction: Evict, *, nothing_left: bool) -> None:
        key, uid = eviction.pod, eviction.uid
        self._feed.budget_refused(key, uid, self._pods.objects.get(key), nothing_left=nothing_left)
        self._timers.call_later(
            BUDGET_RETRY_SECONDS, lambda: self._feed.budget_released(key, uid, self._pods.objects.get(key))
        )

    def budget_freed(self, namespace: str) -> None:
        """Pods that a budget kept there may be evicted again."""
        for key, uid in self._feed.refused_in(namespace):
            self._feed.budget_released(key, uid, self._pods.objects.get(key))

    def _eviction_failed(self, eviction: Evict) -> None:
        self._feed.eviction_failed(eviction.pod, eviction.uid, self._pods.objects.get(eviction.pod))

    # Shrinking

    def _evict_unanswered(self, eviction: Evict) -> None:
        known = self._feed.view.pods.get(eviction.pod)
        seen = self._pods.objects.get(eviction.pod) or {}
        told_to_go = (seen.get("metadata") or {}).get("deletionTimestamp")
        if known is not None and known.uid == eviction.uid and known.state is PodState.RELEASING and not told_to_go:
            self._crew.submit(partial(self._evict, eviction))

    async def _record(
        self, regarding: Obj, severity: str, reason: str, message: Message, at: datetime | None = None
    ) -> None:
        with suppress(ApiError, OutcomeUnknown, OSError):  # it has happened, even without Event
            await record(self._recorder, regarding, severity, reason, message, at=at)


def _is_budget_rejection(refused: ApiError) -> bool:
    return any(cause.reason == "DisruptionBudget" for cause in refused.causes)
