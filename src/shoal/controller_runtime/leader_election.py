"""Who leads: one of several processes, by a Lease, and never two at once.

The leader renews the Lease; whoever waits watches it and takes over when it has not changed for its duration, counted
on his own clock from the moment he saw it change, so that clocks need not agree. The leader counts from the moment
before it asked, and to a deadline that is shorter: it has stopped before anybody else can begin. A process that was
paused finds its deadline passed before it can write anything (`shoal.cluster.fencing`). One that ends gives the Lease
back, and the next one leads at once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from shoal.cluster.client import Cluster, OutcomeUnknown
from shoal.cluster.clock import Clock, SystemClock, news_within, pause
from shoal.cluster.informer import Change, Reflector
from shoal.kube.errors import ApiError
from shoal.kube.kinds import LEASE
from shoal.kube.objects import Obj
from shoal.kube.times import rfc3339_micro
from shoal.logs import Logger

log = Logger(__name__)

GIVING_BACK_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Terms:
    """In seconds. `deadline` is shorter than `duration` by the time a request may take."""

    duration: int = 15  # without a renewal for so long, others take over
    deadline: float = 10.0  # without a renewal for so long, the leader stops
    renewal: float = 2.0  # between renewals, and between tries

    @classmethod
    def of(cls, duration: int) -> Terms:
        """In the same proportions."""
        return cls(duration, duration * 2 / 3, duration * 2 / 15)


def elapsed() -> float:
    """Seconds that go on while this process, or the machine, is asleep."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Leadership:
    """`run` the work whenever we lead. `is_held` is the question to ask before each write."""

    def __init__(
        self,
        cluster: Cluster,
        name: str,
        namespace: str,
        *,
        identity: str,
        terms: Terms | None = None,
        clock: Clock | None = None,
        seconds: Callable[[], float] = elapsed,
        patience: Callable[[], float] = lambda: 0.0,
        on_leader: Callable[[], None] = lambda: None,
    ) -> None:
        """`patience`: how many seconds others may go first when the Lease is free. `on_leader`: there is another."""
        self.identity = identity
        self.leader = ""  # as last seen
        self.follows = False  # whether the Lease has been seen, so that waiting for it means something
        self._cluster = cluster
        self._name = name
        self._namespace = namespace
        self._terms = terms or Terms()
        self._clock = clock or SystemClock()
        self._seconds = seconds
        self._patience = patience
        self._on_leader = on_leader
        self._until = 0.0  # we lead before this moment
        self._lease: Obj | None = None
        self._changed_at = seconds()
        self._news = asyncio.Event()

    @property
    def is_held(self) -> bool:
        return self._seconds() < self._until

    async def run(self, work: Callable[[], Awaitable[None]]) -> None:
        """Until cancelled, or until the work fails. The work is cancelled when leadership is lost."""
        copy = Reflector(
            self._cluster, LEASE, self._namespace,
            fields=f"metadata.name={self._name}", on_change=self._changed, clock=self._clock,
        )  # fmt: skip
        following = asyncio.create_task(copy.run())
        try:
            await copy.synced.wait()
            self.follows = True
            if self._free_in() > 0:
                log.info("waiting for its turn", lease=self._name, identity=self.identity, leader=self.leader)
            while True:
                await self._until_ours()
                log.info("leading", lease=self._name, identity=self.identity)
                await self._while_ours(work)
                log.warning("no longer leading", lease=self._name, identity=self.identity, leader=self.leader)
        finally:
            following.cancel()
            await self._give_back()

    def _changed(self, change: Change) -> None:
        if not is_older(change.new, self._lease):  # an answer may be ahead of the watch
            self._see(change.new)

    def _see(self, lease: Obj | None) -> None:
        self._lease, self._changed_at = lease, self._seconds()
        before, self.leader = self.leader, _holder(lease)
        self._news.set()
        if self.leader != before:
            self._on_leader()

    def reconsider(self) -> None:
        """How patient we are may have changed."""
        self._news.set()

    # Waiting

    async def _until_ours(self) -> None:
        while True:
            self._news.clear()
            free_in = self._free_in()
            if free_in <= 0 and await self._ask():
                return
            await news_within(self._clock, self._news, free_in if free_in > 0 else self._terms.renewal)

    def _free_in(self) -> float:
        duration = 0.0
        if self._lease is not None and _holder(self._lease):
            if _holder(self._lease) == self.identity:
                return 0.0
            duration = float(self._lease["spec"].get("leaseDurationSeconds") or self._terms.duration)
        return self._changed_at + duration + self._patience() - self._seconds()

    # Leading

    async def _while_ours(self, work: Callable[[], Awaitable[None]]) -> None:
        working = asyncio.ensure_future(work())
        renewing = asyncio.create_task(self._renew())
        try:
            await asyncio.wait((working, renewing), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (working, renewing):
                task.cancel()
            await asyncio.gather(working, renewing, return_exceptions=True)
        if not working.cancelled():
            working.result()

    async def _renew(self) -> None:
        """Returns when leadership is lost."""
        while True:
            await pause(self._clock, self._terms.renewal)
            if not self.is_held or self.leader != self.identity:
                break
            try:
                async with asyncio.timeout(max(self._until - self._seconds(), 0.0)):
                    await self._ask()
            except TimeoutError:
                log.warning("lease not written", lease=self._name, error="no answer came while we led")
        self._until = 0.0

    # The Lease

    async def _ask(self) -> bool:
        """Take or renew the Lease; whether we hold it now."""
        asked = self._seconds()
        try:
            lease = await (self._create() if self._lease is None else self._replace(self._lease, self.identity))
        except ApiError as refused:
            if refused.code not in (404, 409):
                log.warning("lease not written", lease=self._name, code=refused.code, message=refused.message)
            return False
        except (OutcomeUnknown, OSError) as unknown:
            log.warning("lease not written", lease=self._name, error=str(unknown))
            return False
        self._see(lease)
        self._until = asked + self._terms.deadline
        return self.is_held  # an answer may come so late that we have to ask again

    async def _create(self) -> Obj:
        lease = {"metadata": {"name": self._name}, "spec": self._spec(None, self.identity)}
        return await self._cluster.create(LEASE, lease, self._namespace)

    async def _replace(self, lease: Obj, holder: str) -> Obj:
        version = {"resourceVersion": lease["metadata"]["resourceVersion"]}
        return await self._cluster.patch(
            LEASE, self._name, self._namespace, patch={"metadata": version, "spec": self._spec(lease, holder)}
        )

    def _spec(self, lease: Obj | None, holder: str) -> Obj:
        now = rfc3339_micro(self._clock.now())
        before = lease["spec"] if lease is not None else {}
        spec = {"holderIdentity": holder, "leaseDurationSeconds": self._terms.duration, "renewTime": now}
        if holder and holder != before.get("holderIdentity"):
            spec["acquireTime"] = now
            spec["leaseTransitions"] = int(before.get("leaseTransitions") or 0) + (1 if before else 0)
        return spec

    async def _give_back(self) -> None:
        if not self.is_held or self._lease is None:
            return
        self._until = 0.0
        with suppress(ApiError, OutcomeUnknown, OSError, TimeoutError):  # then it runs out by itself
            async with asyncio.timeout(GIVING_BACK_SECONDS):
                await self._replace(self._lease, "")


def _holder(lease: Obj | None) -> str:
    return str((lease or {}).get("spec", {}).get("holderIdentity") or "")


def is_older(one: Obj | None, other: Obj | None) -> bool:
    """Whether the first is no newer than the second, of which it is a version."""
    if one is None or other is None or one["metadata"]["uid"] != other["metadata"]["uid"]:
        return False
    return int(one["metadata"]["resourceVersion"]) <= int(other["metadata"]["resourceVersion"])
