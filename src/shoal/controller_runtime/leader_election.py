"""Leader election: one of several processes leads, by a Lease, and never two at once.

The leader renews the Lease; a candidate watches it and takes over when it has not changed for its duration, counted on
the candidate's own clock from the moment it observed the change, so that clocks need not agree. The leader counts from
the moment before its request, and to a deadline that is shorter: it has stopped before any other can begin. A process
that was paused finds its deadline passed before it can write anything (`shoal.cluster.fencing`). One that ends gives
the Lease back, and the next one leads at once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from shoal.cluster.client import Cluster, OutcomeUnknown
from shoal.cluster.clock import Clock, SystemClock, sleep, wait_event
from shoal.cluster.informer import Change, Informer
from shoal.kube.errors import ApiError
from shoal.kube.kinds import LEASE
from shoal.kube.objects import Obj
from shoal.kube.times import rfc3339_micro
from shoal.logs import Logger

log = Logger(__name__)

RELEASE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """In seconds. `deadline` is shorter than `duration` by the time a request may take."""

    duration: int = 15  # without a renewal for so long, others take over
    deadline: float = 10.0  # without a renewal for so long, the leader stops
    renewal: float = 2.0  # between renewals, and between tries

    @classmethod
    def of(cls, duration: int) -> LeaseTimes:
        """In the same proportions."""
        return cls(duration, duration * 2 / 3, duration * 2 / 15)


def boottime() -> float:
    """Seconds that go on while this process, or the machine, is asleep."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class LeaderElector:
    """`run` executes the work whenever this process leads. `is_held` is to be checked before each write."""

    def __init__(
        self,
        cluster: Cluster,
        name: str,
        namespace: str,
        *,
        identity: str,
        lease_times: LeaseTimes | None = None,
        clock: Clock | None = None,
        seconds: Callable[[], float] = boottime,
        acquire_delay: Callable[[], float] = lambda: 0.0,
        on_leader: Callable[[], None] = lambda: None,
    ) -> None:
        """`acquire_delay`: seconds this process waits before it takes a free Lease. `on_leader`: the leader changed."""
        self.identity = identity
        self.leader = ""  # as last seen
        self.has_seen_lease = False  # whether the Lease has been seen, so that waiting for it means something
        self._cluster = cluster
        self._name = name
        self._namespace = namespace
        self._lease_times = lease_times or LeaseTimes()
        self._clock = clock or SystemClock()
        self._seconds = seconds
        self._acquire_delay = acquire_delay
        self._on_leader = on_leader
        self._lead_until = 0.0  # we lead before this moment
        self._lease: Obj | None = None
        self._changed_at = seconds()
        self._changed_event = asyncio.Event()

    @property
    def is_held(self) -> bool:
        return self._seconds() < self._lead_until

    async def run(self, work: Callable[[], Awaitable[None]]) -> None:
        """Until cancelled, or until the work fails. The work is cancelled when leadership is lost."""
        informer = Informer(
            self._cluster, LEASE, self._namespace,
            fields=f"metadata.name={self._name}", on_change=self._changed, clock=self._clock,
        )  # fmt: skip
        informer_task = asyncio.create_task(informer.run())
        try:
            await informer.synced.wait()
            self.has_seen_lease = True
            if self._seconds_until_free() > 0:
                log.info("waiting for its turn", lease=self._name, identity=self.identity, leader=self.leader)
            while True:
                await self._acquire()
                log.info("leading", lease=self._name, identity=self.identity)
                await self._lead(work)
                log.warning("no longer leading", lease=self._name, identity=self.identity, leader=self.leader)
        finally:
            informer_task.cancel()
            if self.is_held and self._lease is not None:
                self._lead_until = 0.0
                with suppress(ApiError, OutcomeUnknown, OSError, TimeoutError):  # then the Lease expires
                    async with asyncio.timeout(RELEASE_SECONDS):
                        await self._replace(self._lease, "")

    def _changed(self, change: Change) -> None:
        if not is_older(change.new, self._lease):  # an answer may be ahead of the watch
            self._observe_lease(change.new)

    def _observe_lease(self, lease: Obj | None) -> None:
        self._lease, self._changed_at = lease, self._seconds()
        before, self.leader = self.leader, _holder(lease)
        self._changed_event.set()
        if self.leader != before:
            self._on_leader()

    def recheck(self) -> None:
        """The delay before acquiring a free Lease may have changed."""
        self._changed_event.set()

    # Waiting

    async def _acquire(self) -> None:
        while True:
            self._changed_event.clear()
            seconds_until_free = self._seconds_until_free()
            if seconds_until_free <= 0 and await self._acquire_or_renew():
                return
            await wait_event(
                self._clock,
                self._changed_event,
                seconds_until_free if seconds_until_free > 0 else self._lease_times.renewal,
            )

    def _seconds_until_free(self) -> float:
        duration = 0.0
        if self._lease is not None and _holder(self._lease):
            if _holder(self._lease) == self.identity:
                return 0.0
            duration = float(self._lease["spec"].get("leaseDurationSeconds") or self._lease_times.duration)
        return self._changed_at + duration + self._acquire_delay() - self._seconds()

    # Leading

    async def _lead(self, work: Callable[[], Awaitable[None]]) -> None:
        work_task = asyncio.ensure_future(work())
        renew_task = asyncio.create_task(self._renew())
        try:
            await asyncio.wait((work_task, renew_task), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (work_task, renew_task):
                task.cancel()
            await asyncio.gather(work_task, renew_task, return_exceptions=True)
        if not work_task.cancelled():
            work_task.result()

    async def _renew(self) -> None:
        """Returns when leadership is lost."""
        while True:
            await sleep(self._clock, self._lease_times.renewal)
            if not self.is_held or self.leader != self.identity:
                break
            try:
                async with asyncio.timeout(max(self._lead_until - self._seconds(), 0.0)):
                    await self._acquire_or_renew()
            except TimeoutError:
                log.warning("lease not written", lease=self._name, error="no answer came while we led")
        self._lead_until = 0.0

    # The Lease

    async def _acquire_or_renew(self) -> bool:
        """Take or renew the Lease; whether we hold it now."""
        sent_at = self._seconds()
        try:
            if self._lease is not None:
                lease = await self._replace(self._lease, self.identity)
            else:
                new = {"metadata": {"name": self._name}, "spec": self._spec(None, self.identity)}
                lease = await self._cluster.create(LEASE, new, self._namespace)
        except ApiError as refused:
            if refused.code not in (404, 409):
                log.warning("lease not written", lease=self._name, code=refused.code, message=refused.message)
            return False
        except (OutcomeUnknown, OSError) as unknown:
            log.warning("lease not written", lease=self._name, error=str(unknown))
            return False
        self._observe_lease(lease)
        self._lead_until = sent_at + self._lease_times.deadline
        return self.is_held  # the response may arrive too late, so check again

    async def _replace(self, lease: Obj, holder: str) -> Obj:
        version = {"resourceVersion": lease["metadata"]["resourceVersion"]}
        return await self._cluster.patch(
            LEASE, self._name, self._namespace, patch={"metadata": version, "spec": self._spec(lease, holder)}
        )

    def _spec(self, lease: Obj | None, holder: str) -> Obj:
        now = rfc3339_micro(self._clock.now())
        before = lease["spec"] if lease is not None else {}
        spec = {"holderIdentity": holder, "leaseDurationSeconds": self._lease_times.duration, "renewTime": now}
        if holder and holder != before.get("holderIdentity"):
            spec["acquireTime"] = now
            spec["leaseTransitions"] = int(before.get("leaseTransitions") or 0) + (1 if before else 0)
        return spec


def _holder(lease: Obj | None) -> str:
    return str((lease or {}).get("spec", {}).get("holderIdentity") or "")


def is_older(one: Obj | None, other: Obj | None) -> bool:
    """Whether the first is no newer than the second, of which it is a version."""
    if one is None or other is None or one["metadata"]["uid"] != other["metadata"]["uid"]:
        return False
    return int(one["metadata"]["resourceVersion"]) <= int(other["metadata"]["resourceVersion"])
