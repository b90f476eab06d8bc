"""The simulated cluster: the embedded one on a virtual clock, seen through faults a test chose.

Several programs may look at the same store, each with faults of its own (`new_client`). A killed program is dead
for good; the store keeps what was committed, and the next program starts from there. Every call is counted.
"""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import TypeVar, cast

from shoal.cluster.apimachinery import MEMORY, Machinery
from shoal.cluster.client import DeleteOptions, LogOptions, Page, PatchType, WatchEvent
from shoal.cluster.clock import VirtualClock, sleep
from shoal.cluster.embedded import EmbeddedCluster
from shoal.cluster.fault_injection import WRITES, Call, Delay, Faults, FaultTiming, ProgramKilled, WatchDisruption
from shoal.cluster.registry import RegistrySettings
from shoal.cluster.store import HistoryLimits
from shoal.cluster.types import ListOptions
from shoal.kube import kinds
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj

T = TypeVar("T")


class SimulatedCluster:
    """`client.Cluster` for one program. Make the first with `SimulatedCluster(seed)`, more with `new_client`."""

    def __init__(
        self,
        seed: int = 0,
        *,
        faults: Faults | None = None,
        settings: RegistrySettings | None = None,
        limits: HistoryLimits | None = None,
        base: EmbeddedCluster | None = None,
        clock: VirtualClock | None = None,
    ) -> None:
        self.clock = clock or VirtualClock()
        if base is None:
            rng = random.Random(seed)  # noqa: S311 - names and uids of a simulation
            base = EmbeddedCluster(Machinery.open(MEMORY, clock=self.clock, rng=rng, settings=settings, limits=limits))
        self.embedded = base
        self.faults = faults or Faults()
        self.calls: list[Call] = []
        self.is_dead = False
        self._writes = 0

    def new_client(self, faults: Faults | None = None) -> SimulatedCluster:
        """Another program, or this one after a restart, on the same store and clock."""
        return SimulatedCluster(faults=faults, base=self.embedded, clock=self.clock)

    @property
    def machinery(self) -> Machinery:
        return self.embedded.machinery

    def compact_history(self) -> None:
        """Watches and lists from older versions are answered with 410 from now on."""
        self.machinery.store.compact()

    def count(self, verb: str = "", kind: Kind | None = None) -> int:
        return sum((not verb or c.verb == verb) and (kind is None or c.kind == kind) for c in self.calls)

    async def is_embedded(self) -> bool:
        return True

    # Requests

    def _record_call(self, verb: str, kind: Kind, namespace: str | None, name: str, subresource: str = "") -> Call:
        if self.is_dead:
            raise ProgramKilled
        if verb in WRITES:
            self._writes += 1
        write = self._writes if verb in WRITES else 0
        call = Call(verb, kind, namespace, name, subresource, len(self.calls) + 1, write)
        self.calls.append(call)
        return call

    def _inject_fault(self, call: Call, when: FaultTiming) -> None:
        if self.is_dead:  # killed at another call while this one was in flight
            raise ProgramKilled
        for fault in self.faults.requests:
            if fault.applies_to(call, when):
                failure = fault.failure()
                self.is_dead = isinstance(failure, ProgramKilled)
                raise failure

    async def _call(self, call: Call, request: Callable[[], Awaitable[T]]) -> T:
        self._inject_fault(call, FaultTiming.BEFORE)
        answer = await request()
        self._inject_fault(call, FaultTiming.AFTER)
        return answer

    async def get(self, kind: Kind, name: str, namespace: str = "") -> Obj:
        call = self._record_call("get", kind, namespace, name)
        return await self._call(call, lambda: self.embedded.get(kind, name, namespace))

    async def list(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        labels: str = "",
        fields: str = "",
        limit: int = 0,
        continue_token: str = "",
        resource_version: str = "",
    ) -> Page:
        call = self._record_call("list", kind, namespace, "")
        stale = self.faults.stale.pop(kind.resource, None)
        if stale is not None:
            options = ListOptions(labels, fields, resource_version=str(stale), resource_version_match="Exact")

            async def list_stale() -> Page:
                page = self.machinery.list(kind, namespace, options)
                return Page([stored.obj() for stored in page.items], str(page.revision))

            return await self._call(call, list_stale)
        return await self._call(
            call,
            lambda: self.embedded.list(
                kind, namespace, labels=labels, fields=fields, limit=limit, continue_token=continue_token,
                resource_version=resource_version,
            ),
        )  # fmt: skip

    async def create(
        self, kind: Kind, obj: Obj, namespace: str = "", *, field_manager: str = "shoal", dry_run: bool = False
    ) -> Obj:
        call = self._record_call("create", kind, namespace, (obj.get("metadata") or {}).get("name") or "")
        return await self._call(
            call, lambda: self.embedded.create(kind, obj, namespace, field_manager=field_manager, dry_run=dry_run)
        )

    async def patch(
        self,
        kind: Kind,
        name: str,
        namespace: str = "",
        *,
        patch: Obj | Sequence[Obj],
        patch_type: PatchType = PatchType.MERGE,
        subresource: str = "",
        field_manager: str = "shoal",
        force: bool = False,
        dry_run: bool = False,
    ) -> Obj:
        call = self._record_call("patch", kind, namespace, name, subresource)
        return await self._call(
            call,
            lambda: self.embedded.patch(
                kind, name, namespace, patch=patch, patch_type=patch_type, subresource=subresource,
                field_manager=field_manager, force=force, dry_run=dry_run,
            ),
        )  # fmt: skip

    async def delete(self, kind: Kind, name: str, namespace: str = "", options: DeleteOptions | None = None) -> Obj:
        call = self._record_call("delete", kind, namespace, name)
        return await self._call(call, lambda: self.embedded.delete(kind, name, namespace, options))

    async def bind(self, pod: str, namespace: str, *, node: str, uid: str = "") -> None:
        call = self._record_call("bind", kinds.POD, namespace, pod, "binding")
        await self._call(call, lambda: self.embedded.bind(pod, namespace, node=node, uid=uid))

    async def evict(self, pod: str, namespace: str, options: DeleteOptions | None = None) -> None:
        call = self._record_call("evict", kinds.POD, namespace, pod, "eviction")
        await self._call(call, lambda: self.embedded.evict(pod, namespace, options))

    async def logs(self, pod: str, namespace: str, options: LogOptions) -> AsyncIterator[bytes]:
        call = self._record_call("logs", kinds.POD, namespace, pod, "log")
        self._inject_fault(call, FaultTiming.BEFORE)
        async for chunk in self.embedded.logs(pod, namespace, options):
            yield chunk

    # Watches

    async def watch(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        resource_version: str = "",
        labels: str = "",
        fields: str = "",
        bookmarks: bool = True,
        initial_events: bool = False,
        timeout_seconds: float | None = None,
    ) -> AsyncIterator[WatchEvent]:
        call = self._record_call("watch", kind, namespace, "")
        self._inject_fault(call, FaultTiming.BEFORE)
        stream = self.embedded.watch(
            kind, namespace, resource_version=resource_version, labels=labels, fields=fields, bookmarks=bookmarks,
            initial_events=initial_events, timeout_seconds=timeout_seconds,
        )  # fmt: skip
        async with (
            aclosing(cast(AsyncGenerator[WatchEvent, None], stream)),
            aclosing(self._with_disruptions(kind, stream)) as disrupted,
        ):
            async for event in disrupted:
                yield event

    async def _with_disruptions(
        self, kind: Kind, stream: AsyncIterator[WatchEvent]
    ) -> AsyncGenerator[WatchEvent, None]:
        held: WatchEvent | None = None  # swapped: waits for the next
        number = 0
        async for event in stream:
            number += 1
            if self.is_dead:
                raise ProgramKilled
            # Every fault is evaluated for every event, so that random choices do not depend on earlier results.
            faults = [fault for fault in self.faults.watches if fault.kind in (None, kind)]
            what = [fault.what for fault in faults if fault.where(number, event)]
            if WatchDisruption.CUT in what:
                return
            if WatchDisruption.SWAP in what and held is None:
                held = event
                continue
            if seconds := sum(step.seconds for step in what if isinstance(step, Delay)):
                await sleep(self.clock, seconds)
            for _ in range(0 if WatchDisruption.DROP in what else 1 + (WatchDisruption.DUPLICATE in what)):
                yield event
            if held is not None:
                yield held
                held = None
