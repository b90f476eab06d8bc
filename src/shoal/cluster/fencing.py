"""A cluster client that may write only for as long as its process leads.

Every write checks first; one that is too late is not sent. After that it may wait for its turn, or be retried: so a
client checks once more, with `check_fence`, when the request is about to be sent. A request in flight when leadership
ends is made harmless by its own condition: job states carry the version they were made for, deletions a uid, pods a
name of their own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from shoal.cluster.client import Cluster, OutcomeUnknown
from shoal.kube.kinds import Kind

P = ParamSpec("P")
T = TypeVar("T")

_fence: ContextVar[Callable[[], None] | None] = ContextVar("fence", default=None)


class LeadershipLost(OutcomeUnknown):
    """The write was not sent, because another may lead by now."""


def check_fence() -> None:
    """Raise LeadershipLost where the write that is being sent may not go out any more."""
    fence = _fence.get()
    if fence is not None:
        fence()


class FencedCluster:
    """`client.Cluster` whose writes pass only while `may_write` returns true; reads are the cluster's own."""

    def __init__(self, cluster: Cluster, may_write: Callable[[], bool]) -> None:
        self._may_write = may_write
        self.get, self.list, self.watch, self.logs = cluster.get, cluster.list, cluster.watch, cluster.logs
        self.create = self._fenced("create", cluster.create)
        self.patch = self._fenced("patch", cluster.patch)
        self.delete = self._fenced("delete", cluster.delete)
        self.bind = self._fenced("bind", cluster.bind)
        self.evict = self._fenced("evict", cluster.evict)

    def _fenced(self, verb: str, write: Callable[P, Awaitable[T]]) -> Callable[P, Coroutine[Any, Any, T]]:
        @wraps(write)
        async def fenced(*args: P.args, **kwargs: P.kwargs) -> T:
            def check() -> None:
                if self._may_write():
                    return
                kind, *rest = args
                target = rest[0] if rest else ""
                if isinstance(kind, Kind):
                    name = target["metadata"].get("name", "") if isinstance(target, dict) else target
                    what = f"{kind.kind} {name}"
                else:  # bind and evict take the name of a pod
                    what = f"pod {kind}"
                raise LeadershipLost(f"{verb} of {what} not sent: this process no longer leads")

            check()
            before = _fence.set(check)
            try:
                return await write(*args, **kwargs)
            finally:
                _fence.reset(before)

        return fenced
