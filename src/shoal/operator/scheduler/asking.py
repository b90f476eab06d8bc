"""Asks elastic jobs for pods: by name and uid, in a note on their group that says no more than is still wanted, and in
another for whom they are.

Whoever runs the job answers by deleting these pods in its own way. What nobody told to go within the hold time is
evicted. A pod that goes, or that is being evicted, is taken off the note; a note that an earlier life of ours left
behind is taken away, because that life's reasons are not known any more.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from shoal.cluster.port import Cluster, OutcomeUnknown
from shoal.cluster.recording import NORMAL, Recorder
from shoal.cluster.reflecting import Change
from shoal.dialects.gangs import GIVE_BACK, GIVE_BACK_WHY
from shoal.kube.errors import ApiError
from shoal.kube.objects import Key, Obj, annotations_of, is_leaving, uid_of
from shoal.logs import Logger
from shoal.operator.scheduler.crew import Crew
from shoal.operator.scheduler.feeding import Feed
from shoal.operator.scheduler.scope import Scope
from shoal.operator.scheduler.timers import Timers
from shoal.scheduling.planning import Evict, Shrink

log = Logger(__name__)

FAILURES = (ApiError, OutcomeUnknown, OSError)


class Wanted(NamedTuple):
    """A pod that a job is asked for."""

    uid: str
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
        self._asked: dict[Key, dict[Key, Wanted]] = {}  # by group: those of its pods that are wanted back
        self._groups: dict[Key, Key] = {}  # of those pods

    async def ask(self, shrink: Shrink) -> None:
        pods, group = self._feed.view.pods, shrink.group
        wanted = {pod: pods[pod].uid for pod in shrink.pods if pod in pods}
        for pod, uid in wanted.items():
            self.is_answered(pod)  # whoever had its name before
            self._groups[pod] = group
            self._asked.setdefault(group, {})[pod] = Wanted(uid, shrink.why)
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
        if group is not None and self._asked[group][eviction.pod].uid == eviction.uid:
            self._insist(eviction)
            self.is_answered(eviction.pod)

    def pod_changed(self, change: Change) -> None:
        """A pod that goes, or that has another's name, is the answer."""
        group = self._groups.get(change.key)
        if group is None:
            return
        pod, wanted = change.new, self._asked[group][change.key]
        if pod is None or is_leaving(pod) or uid_of(pod) != wanted.uid:
            self.is_answered(change.key)

    def is_answered(self, pod: Key) -> None:
        """It goes, or is not asked for any more."""
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
        wanted = self._asked.get(key, {})
        notes = {
            GIVE_BACK: ",".join(f"{pod.name}={each.uid}" for pod, each in wanted.items()) or None,
            GIVE_BACK_WHY: "; ".join(dict.fromkeys(each.why for each in wanted.values())) or None,
        }
        metadata = {"uid": members.group.uid, "annotations": notes}
        return await self._cluster.patch(self._scope.group_kind, key.name, key.namespace, patch={"metadata": metadata})
