"""Schedulers of other installations that serve the same pods: one of them works, the others wait.

Replicas of one installation take turns under its Lease. Installations in other namespaces have Leases of the same name
there, and the holder of one writes on it which pods it claims. It may begin once it has written that and then sees no
live scheduler with such a claim: of two that write at once, the later writer sees the other. If both see each other,
the one in the namespace that sorts first keeps its claim and the other withdraws its own. A Lease that was released, or
is not renewed for its duration, binds no scheduler.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from shoal.cluster.client import Cluster, OutcomeUnknown
from shoal.cluster.clock import Clock, sleep, wait_event
from shoal.cluster.informer import Change, Informer
from shoal.controller_runtime.leader_election import boottime, is_older
from shoal.kube.errors import ApiError
from shoal.kube.kinds import LEASE
from shoal.kube.objects import Key, Obj, annotations_of, key_of
from shoal.logs import Logger

log = Logger(__name__)

ANSWERS_FOR = "shoal.dev/answers-for"
DEFAULT_DURATION_SECONDS = 15
PAUSE_SECONDS = 2.0  # after a request that failed


@dataclass(frozen=True, slots=True)
class PodScope:
    """Pods that name one of these schedulers, in one namespace or, where that is None, in all."""

    schedulers: frozenset[str]
    namespace: str | None = None

    def overlaps(self, other: PodScope) -> bool:
        is_near = None in (self.namespace, other.namespace) or self.namespace == other.namespace
        return is_near and not self.schedulers.isdisjoint(other.schedulers)

    def __str__(self) -> str:
        names = ",".join(sorted(self.schedulers))
        return names if self.namespace is None else f"{names}@{self.namespace}"

    @classmethod
    def read(cls, text: str) -> PodScope:
        names, at, namespace = text.partition("@")
        return cls(frozenset(names.split(",")), namespace if at else None)


@dataclass(frozen=True, slots=True)
class _ObservedLease:
    lease: Obj
    since: float  # when it was last seen to change

    def ends_in(self, now: float) -> float:
        spec = self.lease["spec"]
        if not spec.get("holderIdentity"):
            return 0.0
        return self.since + float(spec.get("leaseDurationSeconds") or DEFAULT_DURATION_SECONDS) - now


class ConflictDetector:
    def __init__(
        self, cluster: Cluster, lease: Key, claim: PodScope, *, clock: Clock, seconds: Callable[[], float] = boottime
    ) -> None:
        """`lease` is the one held while this runs."""
        self.waits_for = ""  # as text; '': none
        self._cluster = cluster
        self._lease = lease
        self._claim = claim
        self._clock = clock
        self._seconds = seconds
        self._seen: dict[Key, _ObservedLease] = {}
        self._news = asyncio.Event()

    async def wait_until_alone(self) -> None:
        """Wait until no other scheduler serves the same pods, and all can see that this one does."""
        copy = Informer(self._cluster, LEASE, fields=self._fields, on_change=self._changed, clock=self._clock)
        following = asyncio.create_task(copy.run())
        try:
            await copy.synced.wait()
            await self._claim_when_alone()
        finally:
            self.waits_for = ""
            following.cancel()

    async def _claim_when_alone(self) -> None:
        before = self._claimed_scope(self._lease)  # by our replica that held the Lease then
        is_published, may_be_published = before == str(self._claim), bool(before)
        while True:
            self._news.clear()
            if conflicts := self._conflicts():
                places = ", ".join(sorted(key.namespace for key in conflicts))
                message = (
                    f"the scheduler in namespace {places} answers for the same pods; "
                    f"let one remain and remove the other"
                )
                if message != self.waits_for:
                    log.warning("waits", lease=str(self._lease), why=message)
                self.waits_for = message
                if may_be_published and (not is_published or min(conflicts) < self._lease):
                    is_published, may_be_published = False, not await self._succeeds(self._publish(None))
                await wait_event(self._clock, self._news, min(conflicts.values()))
                continue
            may_be_published = True  # even if no response arrives
            is_published = is_published or await self._succeeds(self._publish(str(self._claim)))
            if is_published and await self._succeeds(self._refresh()) and not self._conflicts():
                if self.waits_for:
                    log.info("no other scheduler serves the same pods", lease=str(self._lease))
                return

    @property
    def _fields(self) -> str:
        return f"metadata.name={self._lease.name}"

    # Leases of other schedulers

    def _changed(self, change: Change) -> None:
        if change.new is None:
            self._seen.pop(change.key, None)
        else:
            self._observe(change.new)
        self._news.set()

    def _observe(self, lease: Obj) -> None:
        key = key_of(lease)
        known = self._seen.get(key)
        if known is None or not is_older(lease, known.lease):  # a list may be ahead of the watch
            same = known is not None and known.lease["spec"] == lease["spec"]
            self._seen[key] = _ObservedLease(lease, known.since if known is not None and same else self._seconds())

    def _claimed_scope(self, key: Key) -> str:
        seen = self._seen.get(key)
        return annotations_of(seen.lease).get(ANSWERS_FOR, "") if seen is not None else ""

    def _conflicts(self) -> dict[Key, float]:
        """Live ones for the same pods: with the seconds after which their claims expire if they are not renewed."""
        now, found = self._seconds(), {}
        for key, seen in self._seen.items():
            scope, left = self._claimed_scope(key), seen.ends_in(now)
            if key != self._lease and scope and left > 0 and self._claim.overlaps(PodScope.read(scope)):
                found[key] = left
        return found

    # Requests to the cluster

    async def _publish(self, claim: str | None) -> None:
        patch = {"metadata": {"annotations": {ANSWERS_FOR: claim}}}
        await self._cluster.patch(LEASE, self._lease.name, self._lease.namespace, patch=patch)

    async def _refresh(self) -> None:
        """Read the current Leases: watch events may be late."""
        found = (await self._cluster.list(LEASE, fields=self._fields)).items
        for lease in found:
            self._observe(lease)
        for key in self._seen.keys() - {key_of(lease) for lease in found}:
            del self._seen[key]

    async def _succeeds(self, request: Awaitable[None]) -> bool:
        try:
            await request
        except (ApiError, OutcomeUnknown, OSError) as problem:
            log.warning("other schedulers are not known", lease=str(self._lease), error=str(problem))
            await sleep(self._clock, PAUSE_SECONDS)
            return False
        return True
