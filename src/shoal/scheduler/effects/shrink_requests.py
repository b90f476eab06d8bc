"""Requests pods from elastic jobs: by name and uid, in one annotation on their group; another holds the beneficiary.

The annotation lists no more than is still wanted. The controller of the job responds by deleting these pods in its own
way. A pod without a deletion request within the hold time is evicted; a write of the annotation that fails is retried
until then, and only where no group is left to receive it there is no wait. A pod that leaves, or that is being evicted,
is removed from the annotation, together with others that leave in the same moment: every change of it wakes the job. An
annotation that an earlier process left behind is removed, because that process's reasons are not known any more.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from shoal.cluster.client import Cluster, OutcomeUnknown
from shoal.cluster.clock import Clock
from shoal.cluster.event_recorder import NORMAL, EventRecorder
from shoal.cluster.informer import Change
from shoal.controller_runtime.workqueue import WorkQueue
from shoal.kube.errors import ApiError
from shoal.kube.messages import Message
from shoal.kube.objects import Key, annotations_of, is_terminating, uid_of
from shoal.scheduler.api.pod_groups import RECLAIM, RECLAIM_REASON
from shoal.scheduler.cache.scheduler_cache import SchedulerCache
from shoal.scheduler.effects.dispatcher import Dispatcher, Timers
from shoal.scheduler.effects.events import record
from shoal.scheduler.messages import text
from shoal.scheduler.planner.plan_types import Evict, ShrinkRequest
from shoal.scheduler.scope import SchedulerScope

COALESCE_SECONDS = 1.0  # how long a pod that is gone may stay in the annotation; it is named by uid, so it does no harm


class RequestedPod(NamedTuple):
    """A pod requested back from a job."""

    eviction: Evict  # what happens to it without an answer
    cause: Message


class ShrinkRequester:
    def __init__(
        self,
        cluster: Cluster,
        cache: SchedulerCache,
        dispatcher: Dispatcher,
        timers: Timers,
        *,
        scope: SchedulerScope,
        recorder: EventRecorder,
        clock: Clock,
        evict: Callable[[Evict], None],
    ) -> None:
        """`evict`: the job did not delete the pod in time."""
        self._cluster = cluster
        self._cache = cache
        self._dispatcher = dispatcher
        self._timers = timers
        self._scope = scope
        self._recorder = recorder
        self._evict = evict
        self._requested: dict[Key, dict[Key, RequestedPod]] = {}  # by group: those of its pods that are wanted back
        self._groups: dict[Key, Key] = {}  # of those pods
        self._annotated: set[Key] = set()  # groups that may have an annotation of this process
        self._pending_messages: dict[
            Key, tuple[Message, ...]
        ] = {}  # by group: what to report once the annotation is written
        self._work = WorkQueue("shrink requests", self._write, clock=clock, coalesce_seconds=COALESCE_SECONDS)

    def submit(self, shrink: ShrinkRequest) -> None:
        pods, group = self._cache.view.pods, shrink.group
        for eviction in shrink.evictions:
            pod, known = eviction.pod, pods.get(eviction.pod)
            if known is None or known.uid != eviction.uid:
                continue  # deleted or replaced since the plan was made: the job has given it back already
            self.remove_pod(pod)  # an earlier pod of its name
            self._groups[pod] = group
            self._requested.setdefault(group, {})[pod] = RequestedPod(eviction, shrink.cause)
            self._timers.call_later(self._cache.view.settings.hold_seconds, partial(self._finish, eviction))
        if group in self._requested:
            self._annotated.add(group)
            self._pending_messages[group] = (*self._pending_messages.get(group, ()), shrink.message)
            self._work.add(group)

    def _finish(self, eviction: Evict) -> None:
        group = self._groups.get(eviction.pod)
        if group is not None and self._requested[group][eviction.pod].eviction.uid == eviction.uid:
            self._evict(eviction)
            self.remove_pod(eviction.pod)

    def pod_changed(self, change: Change) -> None:
        """A pod that leaves, or that has another's name, is the answer."""
        group = self._groups.get(change.key)
        if group is None:
            return
        pod, requested = change.new, self._requested[group][change.key]
        if pod is None or is_terminating(pod) or uid_of(pod) != requested.eviction.uid:
            self.remove_pod(change.key)

    def remove_pod(self, pod: Key) -> None:
        """Request the pod no longer: it leaves, or is evicted."""
        group = self._groups.pop(pod, None)
        if group is None:
            return
        del self._requested[group][pod]
        if not self._requested[group]:
            del self._requested[group]
        self._work.add_after_delay(group)

    def group_changed(self, change: Change) -> None:
        """Queue a group with an annotation of an earlier process."""
        if change.new is not None and change.key not in self._annotated and RECLAIM in annotations_of(change.new):
            self._work.add(change.key)

    async def close(self) -> None:
        await self._work.close()

    async def _write(self, key: Key) -> None:
        gang = self._cache.view.groups.get(key)
        if gang is None or not gang.known:
            self._group_missing(key)
            return
        requested = self._requested.get(key, {})
        annotations = {
            RECLAIM: ",".join(f"{pod.name}={each.eviction.uid}" for pod, each in requested.items()) or None,
            RECLAIM_REASON: "; ".join(dict.fromkeys(text(each.cause) for each in requested.values())) or None,
        }
        patch = {"metadata": {"uid": gang.group.uid, "annotations": annotations}}
        messages = self._pending_messages.pop(key, ())
        try:
            written = await self._cluster.patch(self._scope.group_kind, key.name, key.namespace, patch=patch)
        except (ApiError, OutcomeUnknown, OSError) as failed:
            if isinstance(failed, ApiError) and failed.code == 404:
                self._group_missing(key)
                return
            self._pending_messages[key] = messages + self._pending_messages.get(key, ())
            raise
        if not requested:
            self._annotated.discard(key)
        for message in messages:
            self._dispatcher.submit_low_priority(partial(record, self._recorder, written, NORMAL, "Shrink", message))

    def _group_missing(self, key: Key) -> None:
        """There is no such group any more, and so nothing to wait for."""
        self._pending_messages.pop(key, None)
        self._annotated.discard(key)
        for requested in list(self._requested.get(key, {}).values()):
            self._finish(requested.eviction)
