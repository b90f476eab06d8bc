"""Asks elastic jobs for pods: by name and uid, in a note on their group, which says no more than is still wanted.

Whoever runs the job may answer by deleting these pods in its own way. What is still there after the hold time is
evicted. A pod that has gone, or that is being evicted, is taken off the note; a note that an earlier life of ours left
behind is taken away, because that life's reasons are not known any more.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial

from shoal.cluster.port import Cluster, OutcomeUnknown
from shoal.cluster.recording import NORMAL, Recorder
from shoal.cluster.reflecting import Change
from shoal.kube.errors import ApiError
from shoal.kube.objects import Key, Obj, annotations_of
from shoal.logs import Logger
from shoal.operator.scheduler.crew import Crew
from shoal.operator.scheduler.feeding import Feed
from shoal.operator.scheduler.scope import Scope
from shoal.operator.scheduler.timers import Timers
from shoal.scheduling.planning import Evict, Shrink

log = Logger(__name__)

GIVE_BACK = "shoal.dev/give-back"  # on a PodGroup: NAME=UID,... of pods that its job is asked for
FAILURES = (ApiError, OutcomeUnknown, OSError)


class Asker:
    def __init__(
        self,
        cluster: Cluster,
        feed: Feed,
        crew: Crew,
        timers: Timers,
        *,
        scope: Scope,
        recorder: Recorder,
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
        self._asked: dict[Key, dict[Key, str]] = {}  # by group: the uids of its pods that are wanted back
        self._groups: dict[Key, Key] = {}  # of those pods

    async def ask(self, shrink: Shrink) -> None:
        pods, group = self._feed.view.pods, shrink.group
        wanted = {pod: pods[pod].uid for pod in shrink.pods if pod in pods}
        for pod, uid in wanted.items():
            self.is_answered(pod)  # whoever had its name before
            self._groups[pod] = group
            self._asked.setdefault(group, {})[pod] = uid
        try:
            noted = await self._note(group)
        except FAILURES as failed:
            log.warning("the job could not be asked for pods", group=str(group), error=str(failed))
            noted = None
        patience = self._feed.view.settings.hold_seconds if noted is not None else 0.0
        for pod, uid in wanted.items():
            self._timers.call_later(patience, partial(self._over, Evict(pod, uid, shrink.sentence)))
        if noted is not None:
            with suppress(*FAILURES):  # it is asked, whoever hears of it
                await self._recorder.record(noted, NORMAL, "Shrink", shrink.sentence)

    def _over(self, eviction: Evict) -> None:
        group = self._groups.get(eviction.pod)
        if group is not None and self._asked[group][eviction.pod] == eviction.uid:
            self._insist(eviction)
            self.is_answered(eviction.pod)

    def is_answered(self, pod: Key) -> None:
        """It has gone, or is not asked for any more."""
        group = self._groups.pop(pod, None)
        if group is None:
            return
        del self._asked[group][pod]
        if not self._asked[group]:
            del self._asked[group]
        self._crew.ask(partial(self._note_again, group))

    def group_changed(self, change: Change) -> None:
        """One with a note that we know nothing of."""
        if change.new is not None and change.key not in self._asked and GIVE_BACK in annotations_of(change.new):
            self._crew.ask(partial(self._note_again, change.key))

    async def _note_again(self, group: Key) -> None:
        try:
            await self._note(group)
        except FAILURES as failed:  # the next life, or the next note, puts it right
            log.warning("a note about pods could not be changed", group=str(group), error=str(failed))

    async def _note(self, key: Key) -> Obj | None:
        """The group as it is then; None where nobody is left to be asked."""
        members = self._feed.view.groups.get(key)
        if members is None or not members.known:
            return None
        wanted = ",".join(f"{pod.name}={uid}" for pod, uid in self._asked.get(key, {}).items())
        metadata = {"uid": members.group.uid, "annotations": {GIVE_BACK: wanted or None}}
        return await self._cluster.patch(self._scope.group_kind, key.name, key.namespace, patch={"metadata": metadata})
