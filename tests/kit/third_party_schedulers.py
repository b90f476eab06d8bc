"""What other people's gang schedulers write, for tests in which they do not run; and copies of what a test looks at.

An `Admitter` lets every gang of a namespace in as soon as its door is open, and says why it waits as long as it is not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from shoal.cluster.client import Cluster, PatchType
from shoal.cluster.clock import Clock
from shoal.cluster.informer import Change, Informer
from shoal.dialects.gang_backends.backend import Backend
from shoal.kube.errors import ApiError
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj, is_terminating, name_of, namespace_of, uid_of
from shoal.kube.times import rfc3339

FULL = "needs 4 cpu at once, 3 are free"


class Copies:
    """Of some kinds in one namespace; `until` returns when they are as wanted."""

    def __init__(self, cluster: Cluster, namespace: str, *kinds: Kind, clock: Clock | None = None) -> None:
        self._copies = {
            kind: Informer(cluster, kind, namespace, on_change=self._changed, clock=clock) for kind in kinds
        }
        self._news = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(copy.run()) for copy in self._copies.values()]
        for copy in self._copies.values():
            await copy.synced.wait()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def of(self, kind: Kind) -> list[Obj]:
        objects = self._copies[kind].objects
        return [objects[key] for key in sorted(objects)]

    async def until(self, is_so: Callable[[], bool]) -> None:
        while not is_so():
            self._news.clear()
            await self._news.wait()

    def look_again(self) -> None:
        self._news.set()

    def _changed(self, _: Change) -> None:
        self._news.set()


class Admitter:
    def __init__(self, cluster: Cluster, backend: Backend, copies: Copies) -> None:
        self._cluster = cluster
        self._backend = backend
        self._copies = copies
        self.is_open = False
        self.more: Obj = {}  # what else is said of one that is let in
        self._answered: set[tuple[str, bool]] = set()

    async def run(self) -> None:
        """Until cancelled. A gang that has been let in stays so."""
        kind = self._backend.kind
        assert kind is not None
        while True:
            await self._copies.until(lambda: bool(self._unanswered(kind)))
            for group in self._unanswered(kind):
                self._answered.add((uid_of(group), self.is_open))
                more = self.more if self.is_open else {}
                await self.tell(group, {**answer(self._backend.name, granted=self.is_open), **more})

    def set_open(self, is_open: bool) -> None:
        self.is_open = is_open
        self._copies.look_again()

    def _unanswered(self, kind: Kind) -> list[Obj]:
        groups = [group for group in self._copies.of(kind) if not is_terminating(group)]
        return [
            group
            for group in groups
            if not {(uid_of(group), self.is_open), (uid_of(group), True)} & self._answered
        ]  # fmt: skip

    async def tell(self, group: Obj, status: Obj) -> None:
        assert self._backend.kind is not None
        kind, below = self._backend.kind, "status" if "status" in self._backend.kind.subresources else ""
        with suppress(ApiError):  # it has gone meanwhile
            await self._cluster.patch(
                kind, name_of(group), namespace_of(group),
                patch={"status": status}, patch_type=PatchType.MERGE, subresource=below,
            )  # fmt: skip


def answer(name: str, *, granted: bool) -> Obj:
    """The status that each of them writes."""
    if name == "kueue":
        return conditions(QuotaReserved=granted, Admitted=granted)
    if name == "coscheduling":
        return {"phase": "Running" if granted else "Pending"}
    if granted:
        return {"phase": "Inqueue"}
    return {"phase": "Pending", **conditions(Unschedulable=True)}


def conditions(**said: bool) -> Obj:
    now = rfc3339(datetime.now(UTC))
    words = {"reason": "Pending", "message": FULL, "lastTransitionTime": now}
    return {"conditions": [{"type": name, "status": str(value), **words} for name, value in said.items()]}
