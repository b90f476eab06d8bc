"""Asks elastic jobs for pods: by name and uid, in a note on their group that says no more than is still wanted, and in
another for whom they are.

Whoever runs the job answers by deleting these pods in its own way. What nobody told to go within the hold time is
evicted; a note that does not get through is tried again meanwhile, and only where no group is left to be asked it is
not waited for. A pod that goes, or that is being evicted, is taken off the note, together with others that go in the
same moment: every change of it wakes the job. A note that an earlier life of ours left behind is taken away, because
that life's reasons are not known any more.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from shoal.cluster.client import Cluster, OutcomeUnknown
from shoal.cluster.clock import Clock
from shoal.cluster.event_recorder import NORMAL, EventRecorder
from shoal.cluster.informer import Change
from shoal.controller_runtime.workqueue import WorkQueue
from shoal.kube.errors import ApiError
from shoal.kube.objects import Key, Obj, annotations_of, is_terminating, uid_of
from shoal.scheduler.api.pod_groups import GIVE_BACK, GIVE_BACK_WHY
from shoal.scheduler.dispatcher import Crew
from shoal.scheduler.event_handlers import Feed
from shoal.scheduler.planner.plan_types import Evict, Shrink
from shoal.scheduler.scope import Scope
from shoal.scheduler.timers import Timers

GATHERING_SECONDS = 1.0  # how long a pod that went may stay on the note; it is asked for by uid, so it does no harm


class Wanted(NamedTuple):
    """A pod that a job is asked for."""

    eviction: Evict  # what becomes of it if nobody answers
    why: str


class Asker:
    def __init__(
        self,
        cluster: Cluster,
        feed: Feed,
        crew: Crew,
        timers: Timers,
        *,
        scope: Scope,
        recorder: EventRecorder,
        clock: Clock,
        insist: Callable[[Evict], None],
    ) -> None:
        """`insist`: the pod was asked for in vain."""
        self._cluster = cluster
        self._feed = feed
        self._crew = crew
        self._timers = timers
        self._scope = scope
        self._recorder = recorder
        self._insist = insist
        self._asked: dict[Key, dict[Key, Wanted]] = {}  # by group: those of its pods that are wanted back
        self._groups: dict[Key, Key] = {}  # of those pods
        self._noted: set[Key] = set()  # groups that may bear a note of ours
        self._unsaid: dict[Key, tuple[str, ...]] = {}  # by group: what it is told once the note is there
        self._notes = WorkQueue("notes for elastic jobs", self._note, clock=clock, coalesce_seconds=GATHERING_SECONDS)

    def ask(self, shrink: Shrink) -> None:
        pods, group = self._feed.view.pods, shrink.group
        for pod in shrink.pods:
            if pod not in pods:
                continue
            self.is_answered(pod)  # whoever had its name before
            eviction = Evict(pod, pods[pod].uid, shrink.sentence)
            self._groups[pod] = group
            self._asked.setdefault(group, {})[pod] = Wanted(eviction, shrink.why)
            self._timers.call_later(self._feed.view.settings.hold_seconds, partial(self._over, eviction))
        if group in self._asked:
            self._noted.add(group)
            self._unsaid[group] = (*self._unsaid.get(group, ()), shrink.sentence)
            self._notes.add(group)

    def _over(self, eviction: Evict) -> None:
        group = self._groups.get(eviction.pod)
        if group is not None and self._asked[group][eviction.pod].eviction.uid == eviction.uid:
            self._insist(eviction)
            self.is_answered(eviction.pod)

    def pod_changed(self, change: Change) -> None:
        """A pod that goes, or that has another's name, is the answer."""
        group = self._groups.get(change.key)
        if group is None:
            return
        pod, wanted = change.new, self._asked[group][change.key]
        if pod is None or is_terminating(pod) or uid_of(pod) != wanted.eviction.uid:
            self.is_answered(change.key)

    def is_answered(self, pod: Key) -> None:
        """It goes, or is not asked for any more."""
        group = self._groups.pop(pod, None)
        if group is None:
            return
        del self._asked[group][pod]
        if not self._asked[group]:
            del self._asked[group]
        self._notes.add_after_delay(group)

    def group_changed(self, change: Change) -> None:
        """One with a note that we know nothing of."""
        if change.new is not None and change.key not in self._noted and GIVE_BACK in annotations_of(change.new):
            self._notes.add(change.key)

    async def close(self) -> None:
        await self._notes.close()

    async def _note(self, key: Key) -> None:
        """What is wanted of the group now."""
        members = self._feed.view.groups.get(key)
        if members is None or not members.known:
            self._nobody_hears(key)
            return
        wanted = self._asked.get(key, {})
        notes = {
            GIVE_BACK: ",".join(f"{pod.name}={each.eviction.uid}" for pod, each in wanted.items()) or None,
            GIVE_BACK_WHY: "; ".join(dict.fromkeys(each.why for each in wanted.values())) or None,
        }
        patch = {"metadata": {"uid": members.group.uid, "annotations": notes}}
        said = self._unsaid.pop(key, ())
        try:
            noted = await self._cluster.patch(self._scope.group_kind, key.name, key.namespace, patch=patch)
        except (ApiError, OutcomeUnknown, OSError) as failed:
            if isinstance(failed, ApiError) and failed.code == 404:
                self._nobody_hears(key)
                return
            self._unsaid[key] = said + self._unsaid.get(key, ())
            raise
        if not wanted:
            self._noted.discard(key)
        for sentence in said:
            self._crew.say(partial(self._tell, noted, sentence))

    def _nobody_hears(self, key: Key) -> None:
        """There is no such group any more, and so nothing to wait for."""
        self._unsaid.pop(key, None)
        self._noted.discard(key)
        for wanted in list(self._asked.get(key, {}).values()):
            self._over(wanted.eviction)

    async def _tell(self, group: Obj, sentence: str) -> None:
        with suppress(ApiError, OutcomeUnknown, OSError):  # it is asked, whoever hears of it
            await self._recorder.record(group, NORMAL, "Shrink", sentence)
