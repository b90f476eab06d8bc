"""An operator that lives with us is told less, or refused more, than its cluster would: what a fault would do to it.

Only the operator meets these; people, nodes and controllers use the cluster as it is.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

from shoal.cluster.client import WatchEvent
from shoal.kube.errors import ApiError
from shoal.kube.kinds import POD, Kind
from shoal.kube.objects import Obj, uid_of
from shoal.operator.embedded import JobReconciler


def meddle(loop: JobReconciler, *, refusal: Callable[[], ApiError | None], hides: Callable[[str], bool]) -> None:
    """Answer every creation of a pod with `refusal`, while there is one, and never show pods whose uid it `hides`."""
    creator, pods = loop._executor._creator, loop._pods.informer
    creator._cluster = _Refusing(creator._cluster, refusal)  # type: ignore[assignment]
    pods._cluster = _Silent(pods._cluster, hides)  # type: ignore[assignment]


class _Beside:
    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)


class _Refusing(_Beside):
    def __init__(self, cluster: Any, refusal: Callable[[], ApiError | None]) -> None:
        super().__init__(cluster)
        self._refusal = refusal

    async def create(self, kind: Kind, *rest: Any, **more: Any) -> Obj:
        refused = self._refusal() if kind == POD else None
        if refused is not None:
            raise refused
        made: Obj = await self._cluster.create(kind, *rest, **more)
        return made


class _Silent(_Beside):
    def __init__(self, cluster: Any, hides: Callable[[str], bool]) -> None:
        super().__init__(cluster)
        self._hides = hides

    async def watch(self, *rest: Any, **more: Any) -> AsyncIterator[WatchEvent]:
        async for event in self._cluster.watch(*rest, **more):
            if not self._hides(uid_of(event.object)):
                yield event
