"""The places a port can lead to, each opened for one test with a namespace of its own.

`simulated` and `embedded` are in this process, `served` is the embedded cluster behind its HTTP face and `kubernetes`
a real API server; the last two are reached by the client for real clusters.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kit.api_objects import is_established
from kit.cluster_objects import definition
from kit.control_plane import ControlPlane
from kit.embedded_api_server import Running
from kit.eventually import answer_becomes
from shoal.cluster.client import Cluster
from shoal.cluster.embedded import EmbeddedCluster
from shoal.cluster.kubeconfig import from_kubeconfig
from shoal.cluster.kubernetes import KubernetesCluster, open_client
from shoal.cluster.simulated import SimulatedCluster
from shoal.kube.errors import ApiError
from shoal.kube.kinds import CUSTOM_RESOURCE_DEFINITION as DEFINITION
from shoal.kube.kinds import NAMESPACE, SERVICE_ACCOUNT, Kind
from shoal.kube.objects import Obj


@dataclass(frozen=True)
class Place:
    name: str
    cluster: Cluster
    namespace: str
    forget: Callable[[], Awaitable[None]]  # the oldest versions, where that has not happened already


@dataclass(frozen=True)
class Reached:
    """A cluster that is reached by HTTP."""

    name: str
    cluster: KubernetesCluster
    namespace: str
    kubeconfig: Path


@asynccontextmanager
async def simulated() -> AsyncGenerator[Place, None]:
    cluster = SimulatedCluster()

    async def forget() -> None:
        cluster.compact_history()

    yield Place("simulated", cluster, await new_namespace(cluster), forget)
    await cluster.embedded.close()


@asynccontextmanager
async def embedded() -> AsyncGenerator[Place, None]:
    cluster = await EmbeddedCluster.open(":memory:")

    async def forget() -> None:
        cluster.machinery.store.compact()

    yield Place("embedded", cluster, await new_namespace(cluster), forget)
    await cluster.close()


@asynccontextmanager
async def served(running: Running) -> AsyncGenerator[Place, None]:
    async def compact(inside: EmbeddedCluster) -> None:
        inside.machinery.store.compact()

    async def forget() -> None:
        running.call(compact)

    async with open_client(from_kubeconfig(running.kubeconfig)) as cluster:
        yield Place("served", cluster, await new_namespace(cluster), forget)


@asynccontextmanager
async def kubernetes(plane: ControlPlane) -> AsyncGenerator[Place, None]:
    async def forget() -> None:
        """Its first versions were forgotten when it started."""

    async with open_client(from_kubeconfig(Path(plane.kubeconfig))) as cluster:
        yield Place("kubernetes", cluster, await new_namespace(cluster), forget)


async def new_namespace(cluster: Cluster) -> str:
    name = f"t-{secrets.token_hex(5)}"
    await cluster.create(NAMESPACE, {"metadata": {"name": name}})
    try:
        await cluster.create(SERVICE_ACCOUNT, {"metadata": {"name": "default"}}, name)
    except ApiError as refused:
        if refused.reason != "AlreadyExists":  # a real server has a controller for it, which may be first
            raise
    return name


async def define_widgets(cluster: Cluster, **more: Any) -> Kind:
    """A kind of a new group, ready to be asked for; its objects have a status and, where asked for, a scale."""
    made = definition(**more)
    group = f"g{secrets.token_hex(5)}.example.com"
    made["spec"]["group"], made["metadata"]["name"] = group, f"widgets.{group}"
    told = cluster.watch(
        DEFINITION, resource_version=await _create(cluster, made), fields=f"metadata.name=widgets.{group}"
    )
    async with aclosing(told) as events:  # type: ignore[type-var]
        async for event in events:
            if is_established(event.object):
                break
    return await _answering(cluster, Kind(group, "v1", "Widget", "widgets", custom=True))


async def _create(cluster: Cluster, made: Obj) -> str:
    """The version before it was made, so that a watch from there tells everything about it."""
    before = (await cluster.list(DEFINITION, limit=1)).resource_version
    await cluster.create(DEFINITION, made)
    return before


async def _answering(cluster: Cluster, kind: Kind) -> Kind:
    """Nothing tells when a real server has put the new path up; Established comes a moment before."""

    async def is_served() -> bool:
        try:
            await cluster.list(kind, "default", limit=1)
        except ApiError as refused:
            if refused.code != 404:
                raise
            return False
        return True

    await answer_becomes(is_served, bool)
    return kind
