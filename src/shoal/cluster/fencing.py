"""A cluster seen by somebody who may write only for as long as he leads.

Every write asks first; one that comes too late is not sent. It may wait for its turn meanwhile, or be tried again: so
a client asks once more, with `check_fence`, when the request is about to leave. What is on its way when leadership
ends is made harmless by its own condition: ledgers carry the version they were made for, deletions a uid, bodies a
name of their own.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from shoal.cluster.port import Cluster, DeleteOptions, LogOptions, OutcomeUnknown, Page, PatchType, WatchEvent
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj


class Deposed(OutcomeUnknown):
    """The write was not sent, because another may lead by now."""


_fence: ContextVar[Callable[[], None] | None] = ContextVar("fence", default=None)


def check_fence() -> None:
    """Raise Deposed where the write that is being sent may not go out any more."""
    fence = _fence.get()
    if fence is not None:
        fence()


class Fenced:
    """`port.Cluster` whose writes pass only while `may_write` says so."""

    def __init__(self, cluster: Cluster, may_write: Callable[[], bool]) -> None:
        self._cluster = cluster
        self._may_write = may_write

    @contextmanager
    def _writing(self, what: str) -> Iterator[None]:
        def check() -> None:
            if not self._may_write():
                raise Deposed(f"{what} not sent: this process no longer leads")

        check()
        before = _fence.set(check)
        try:
            yield
        finally:
            _fence.reset(before)

    async def get(self, kind: Kind, name: str, namespace: str = "") -> Obj:
        return await self._cluster.get(kind, name, namespace)

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
        return await self._cluster.list(
            kind, namespace,
            labels=labels, fields=fields, limit=limit, continue_token=continue_token, resource_version=resource_version,
        )  # fmt: skip

    def watch(
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
        return self._cluster.watch(
            kind, namespace,
            resource_version=resource_version, labels=labels, fields=fields, bookmarks=bookmarks,
            initial_events=initial_events, timeout_seconds=timeout_seconds,
        )  # fmt: skip

    async def create(
        self, kind: Kind, obj: Obj, namespace: str = "", *, field_manager: str = "shoal", dry_run: bool = False
    ) -> Obj:
        with self._writing(f"create of {kind.kind} {obj['metadata'].get('name', '')}"):
            return await self._cluster.create(kind, obj, namespace, field_manager=field_manager, dry_run=dry_run)

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
        with self._writing(f"patch of {kind.kind} {name}"):
            return await self._cluster.patch(
                kind, name, namespace,
                patch=patch, patch_type=patch_type, subresource=subresource,
                field_manager=field_manager, force=force, dry_run=dry_run,
            )  # fmt: skip

    async def delete(self, kind: Kind, name: str, namespace: str = "", options: DeleteOptions | None = None) -> Obj:
        with self._writing(f"delete of {kind.kind} {name}"):
            return await self._cluster.delete(kind, name, namespace, options)

    async def bind(self, pod: str, namespace: str, *, node: str, uid: str = "") -> None:
        with self._writing(f"place of pod {pod}"):
            await self._cluster.bind(pod, namespace, node=node, uid=uid)

    def logs(self, pod: str, namespace: str, options: LogOptions) -> AsyncIterator[bytes]:
        return self._cluster.logs(pod, namespace, options)
