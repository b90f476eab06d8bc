"""A cluster that notes what it refuses, and that may lose the answer to a request that was carried out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from shoal.cluster.client import OutcomeUnknown, WatchEvent
from shoal.cluster.kubernetes import KubernetesCluster
from shoal.kube.errors import ApiError
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj

Call = tuple[str, str]  # verb and resource, as roles name them


@dataclass
class Noting:
    """`port.Cluster` over another. `loses` says of which calls the first answer is lost."""

    cluster: KubernetesCluster
    loses: set[Call] = field(default_factory=set)
    refused: list[tuple[Call, str]] = field(default_factory=list)
    on_refusal: Callable[[Call], None] = lambda _: None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.cluster, name)

    async def get(self, kind: Kind, name: str, namespace: str = "") -> Obj:
        return await self._noted("get", kind.plural, self.cluster.get(kind, name, namespace))

    async def create(self, kind: Kind, obj: Obj, namespace: str = "", **more: Any) -> Obj:
        return await self._noted("create", kind.plural, self.cluster.create(kind, obj, namespace, **more))

    async def patch(self, kind: Kind, name: str, namespace: str = "", *, subresource: str = "", **more: Any) -> Obj:
        resource = f"{kind.plural}/{subresource}" if subresource else kind.plural
        request = self.cluster.patch(kind, name, namespace, subresource=subresource, **more)
        return await self._noted("patch", resource, request)

    async def delete(self, kind: Kind, name: str, namespace: str = "", options: Any = None) -> Obj:
        return await self._noted("delete", kind.plural, self.cluster.delete(kind, name, namespace, options))

    async def watch(self, kind: Kind, namespace: str | None = None, **more: Any) -> AsyncIterator[WatchEvent]:
        try:
            async for event in self.cluster.watch(kind, namespace, **more):
                yield event
        except ApiError as refused:
            self._note((_verb_in(refused, "watch"), kind.plural), refused)
            raise

    async def _noted(self, verb: str, resource: str, request: Any) -> Obj:
        try:
            answer: Obj = await request
        except ApiError as refused:
            self._note((verb, resource), refused)
            raise
        if (verb, resource) in self.loses:
            self.loses.discard((verb, resource))
            raise OutcomeUnknown(f"the answer to {verb} {resource} was lost on purpose")
        return answer

    def _note(self, call: Call, refused: ApiError) -> None:
        if refused.code != 403:
            return
        if "set finalizers on" in refused.message:  # owners are checked for what they own
            call = ("update", {"configmaps": "frameworks/finalizers", "pods": "configmaps/finalizers"}[call[1]])
        self.refused.append((call, refused.message))
        self.on_refusal(call)


def _verb_in(refused: ApiError, otherwise: str) -> str:
    """A watch may begin with a list; the server says which of the two it refused."""
    return "list" if " cannot list " in refused.message else otherwise


async def first(*waited: Any) -> None:
    """Until one of them is over; the others are cut. What went wrong in it is raised."""
    tasks = [asyncio.ensure_future(each) for each in waited]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
