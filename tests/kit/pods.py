"""Builders for pods and for the node that runs them in tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from shoal.cluster.client import Cluster
from shoal.kube.kinds import POD
from shoal.kube.objects import Obj
from shoal.node.agent import Agent
from shoal.node.config import NodeConfig
from shoal.node.node_object import Machine
from shoal.node.pod_lifecycle import BackOff
from shoal.node.sandbox.interface import Sandboxes

NODE_NAME = "n1"
T0 = 1_900_000_000.0


def container(name: str = "main", *command: str, **more: Any) -> Obj:
    return {"name": name, "image": "any", "command": list(command) or ["run"], **more}


def pod(name: str = "p", *containers: Obj, inits: tuple[Obj, ...] = (), node: str = NODE_NAME, **spec: Any) -> Obj:
    """A pod bound to the test's node."""
    full: Obj = {"containers": list(containers) or [container()], "nodeName": node, **spec}
    if inits:
        full["initContainers"] = list(inits)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": full}


def stored(obj: Obj, uid: str = "u1", **meta: Any) -> Obj:
    """The pod as the API would give it back, for pure functions."""
    return {**obj, "metadata": {**obj["metadata"], "uid": uid, **meta}, "status": obj.get("status", {})}


def machine(**more: Any) -> Machine:
    facts: dict[str, Any] = {
        "cores": 64,
        "memory_bytes": 256 << 30,
        "disk_bytes": 100 << 30,
        "hostname": "box",
        "host_ip": "127.0.0.1",
    }
    return Machine(**{**facts, **more})


def config(data: Path, **more: Any) -> NodeConfig:
    quick = BackOff(initial_seconds=0.0, max_seconds=0.0)
    given: dict[str, Any] = {"name": NODE_NAME, "data": data, "machine": machine(), "backoff": quick, "caller_env": {}}
    return NodeConfig(**{**given, **more})


@asynccontextmanager
async def running_agent(cluster: Cluster, sandboxes: Sandboxes, settings: NodeConfig) -> AsyncIterator[Agent]:
    """An agent that has taken up its node; leaving is what a clean stop of the agent does."""
    agent = Agent(cluster, sandboxes, settings)
    task = asyncio.create_task(agent.run())
    ready = asyncio.create_task(agent.ready.wait())
    try:
        await asyncio.wait({task, ready}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        yield agent
    finally:
        ready.cancel()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def wait_for_pod(
    cluster: Cluster, name: str, holds: Callable[[Obj | None], bool], namespace: str = "default"
) -> Obj | None:
    """The pod once `holds` is true of it (None: it is gone), told by the watch."""
    seen: Obj | None = None
    listed = False
    async for event in cluster.watch(POD, namespace, fields=f"metadata.name={name}", initial_events=True):
        if event.type == "BOOKMARK":
            listed |= event.ends_initial_list
        else:
            seen = None if event.type == "DELETED" else event.object
        if listed and holds(seen):
            return seen
    raise AssertionError("the watch ended")


def phase_is(*phases: str) -> Callable[[Obj | None], bool]:
    return lambda pod: pod is not None and (pod.get("status") or {}).get("phase") in phases


def is_gone(pod: Obj | None) -> bool:
    return pod is None
