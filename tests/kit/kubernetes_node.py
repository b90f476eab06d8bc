"""A node of a real Kubernetes and its pods, as tests meet them: builders, and waiting by watches."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from kit.control_plane import ControlPlane
from kit.control_plane_with_node import NodeProcess
from kit.node_credentials import node_kubeconfig
from shoal.cluster.client import LogOptions, WatchEventType
from shoal.cluster.kubeconfig import from_kubeconfig
from shoal.cluster.kubernetes import KubernetesCluster, open_client
from shoal.kube import kinds
from shoal.kube.kinds import POD, SERVICE_ACCOUNT, Kind
from shoal.kube.objects import Obj, name_of

KEEP_AWAY = "shore.example.com/mine"


@asynccontextmanager
async def reached(plane: ControlPlane) -> AsyncIterator[tuple[KubernetesCluster, str]]:
    """The cluster, and a new namespace in it whose pods may be made."""
    async with open_client(from_kubeconfig(Path(plane.kubeconfig))) as cluster:
        namespace = f"t-{secrets.token_hex(5)}"
        await cluster.create(kinds.NAMESPACE, {"metadata": {"name": namespace}})
        async for event in cluster.watch(SERVICE_ACCOUNT, namespace, initial_events=True):
            if event.type is not WatchEventType.BOOKMARK and name_of(event.object) == "default":
                break
        yield cluster, namespace
        await cluster.delete(kinds.NAMESPACE, namespace)


def own_node(plane: ControlPlane, data: Path, *options: str) -> tuple[NodeProcess, str]:
    """A second node, for tests that hurt it, which only pods that say so come to; and its name."""
    name = f"n-{secrets.token_hex(4)}"
    credentials = node_kubeconfig(plane, name, data.with_name(f"{data.name}-credentials"))
    return NodeProcess(credentials, data, "--taint", f"{KEEP_AWAY}=yes:NoSchedule", *options), name


def pod(name: str, script: str, *, node: str = "", **spec: Any) -> Obj:
    """A shell script as a pod; on `node`, where that is named."""
    container = {"name": "main", "image": "any", "command": ["sh", "-c", script]}
    full: Obj = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 5, "containers": [container], **spec}
    if node:
        full["nodeSelector"] = {"kubernetes.io/hostname": node}
        full["tolerations"] = [{"key": KEEP_AWAY, "operator": "Exists"}]
    return {"metadata": {"name": name, "labels": {"app": name}}, "spec": full}


async def log_of(cluster: KubernetesCluster, namespace: str, name: str, *, lines: int = 0) -> list[str]:
    """The whole log of a pod that ends, or its first `lines`."""
    text = b""
    async for chunk in cluster.logs(name, namespace, LogOptions(follow=True)):
        text += chunk
        if lines and text.count(b"\n") >= lines:
            break
    return text.decode().splitlines()[: lines or None]


async def ended(cluster: KubernetesCluster, namespace: str, name: str) -> str:
    """The phase in which a pod ended."""
    async for event in cluster.watch(POD, namespace, fields=f"metadata.name={name}", initial_events=True):
        phase = (event.object.get("status") or {}).get("phase")
        if phase in ("Succeeded", "Failed"):
            return str(phase)
    raise AssertionError("the watch ended")


async def token_of(cluster: KubernetesCluster, namespace: str, account: str) -> str:
    kind = Kind("", "v1", "TokenRequest", f"serviceaccounts/{account}/token")
    wish = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": {}, "spec": {}}
    return str((await cluster.create(kind, wish, namespace))["status"]["token"])
