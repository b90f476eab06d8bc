"""The addresses behind a Service: EndpointSlices, and the older Endpoints, kept as the pods come and go.

`slices_for` and `endpoints_for` decide; `EndpointSliceController` writes the difference, one pass per Service.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from shoal.cluster.client import Cluster
from shoal.cluster.informer import Change, Informer
from shoal.controller_runtime.runnables import subscribe_all
from shoal.controller_runtime.workqueue import WorkQueue
from shoal.kube.conditions import is_true
from shoal.kube.errors import ApiError
from shoal.kube.kinds import ENDPOINT_SLICE, ENDPOINTS, SERVICE, Kind
from shoal.kube.objects import Key, Obj, is_terminating, key_of, labels_of, name_of, namespace_of, uid_of
from shoal.kube.owners import owner_reference

MANAGED_BY = {"endpointslice.kubernetes.io/managed-by": "endpoints.shoal.dev"}
SERVICE_NAME = "kubernetes.io/service-name"
LARGEST_SLICE = 1000
PARTS = ("endpoints", "ports", "subsets")

Ports = tuple[tuple[str, int, str], ...]  # name, number, protocol


def selects(service: Obj, pod: Obj) -> bool:
    selector = (service.get("spec") or {}).get("selector")
    labels = labels_of(pod)
    return bool(selector) and all(labels.get(k) == v for k, v in (selector or {}).items())


def ports_of(service: Obj, pod: Obj) -> Ports:
    """The service's ports as this pod serves them; a named target the pod does not have is left out."""
    found = []
    for port in service["spec"].get("ports") or ():
        number = _target(port, pod)
        if number is not None:
            found.append((port.get("name") or "", number, port.get("protocol") or "TCP"))
    return tuple(found)


def _target(port: Mapping[str, Any], pod: Obj) -> int | None:
    target = port.get("targetPort") or port["port"]
    if isinstance(target, int):
        return target
    for container in pod["spec"].get("containers") or ():
        for offered in container.get("ports") or ():
            if offered.get("name") == target:
                return int(offered["containerPort"])
    return None


def _endpoint(service: Obj, pod: Obj) -> Obj:
    spec, leaving = pod["spec"], is_terminating(pod)
    ready = is_true(pod, "Ready")
    publishes_all = bool(service["spec"].get("publishNotReadyAddresses"))
    endpoint: Obj = {
        "addresses": [pod["status"]["podIP"]],
        "conditions": {
            "ready": publishes_all or (ready and not leaving),
            "serving": ready or publishes_all,
            "terminating": leaving,
        },
        "targetRef": {"kind": "Pod", "namespace": namespace_of(pod), "name": name_of(pod), "uid": uid_of(pod)},
        "nodeName": spec["nodeName"],
    }
    if spec.get("hostname") and spec.get("subdomain") == name_of(service):
        endpoint["hostname"] = spec["hostname"]
    return endpoint


def slices_for(service: Obj, pods: Iterable[Obj]) -> list[Obj]:
    """The slices a Service should have: pods that serve the same ports share one, up to its largest size."""
    members = []
    for pod in pods:
        status = pod.get("status") or {}
        is_over = status.get("phase") in ("Succeeded", "Failed")
        if selects(service, pod) and status.get("podIP") and not is_over:
            members.append(pod)
    groups: dict[Ports, list[Obj]] = defaultdict(list)
    for pod in sorted(members, key=key_of):
        groups[ports_of(service, pod)].append(_endpoint(service, pod))
    slices: list[Obj] = []
    for ports, endpoints in sorted(groups.items()) or [((), [])]:
        for start in range(0, max(len(endpoints), 1), LARGEST_SLICE):
            metadata = {
                "name": f"{name_of(service)}-{len(slices)}",
                "namespace": namespace_of(service),
                "labels": {**labels_of(service), SERVICE_NAME: name_of(service), **MANAGED_BY},
                "ownerReferences": [owner_reference(service, controller=True, block=True)],
            }
            slices.append(
                {
                    "apiVersion": ENDPOINT_SLICE.api_version,
                    "kind": ENDPOINT_SLICE.kind,
                    "metadata": metadata,
                    "addressType": "IPv4",
                    "endpoints": endpoints[start : start + LARGEST_SLICE],
                    "ports": [{"name": name, "port": port, "protocol": protocol} for name, port, protocol in ports],
                }
            )
    return slices


def endpoints_for(service: Obj, slices: Iterable[Obj]) -> Obj:
    """The same addresses as one Endpoints object, for programs that still read it."""
    subsets = []
    for piece in slices:
        ready = [_address(e) for e in piece["endpoints"] if e["conditions"]["ready"]]
        waiting = [_address(e) for e in piece["endpoints"] if not e["conditions"]["ready"]]
        if ready or waiting:
            parts = {"addresses": ready, "notReadyAddresses": waiting, "ports": piece["ports"]}
            subsets.append({name: value for name, value in parts.items() if value})
    return {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {
            "name": name_of(service),
            "namespace": namespace_of(service),
            "labels": {**labels_of(service), **MANAGED_BY},
            "ownerReferences": [owner_reference(service, controller=True, block=True)],
        },
        "subsets": subsets,
    }


def _address(endpoint: Obj) -> Obj:
    address: Obj = {
        "ip": endpoint["addresses"][0],
        "nodeName": endpoint["nodeName"],
        "targetRef": endpoint["targetRef"],
    }
    return {**address, "hostname": endpoint["hostname"]} if "hostname" in endpoint else address


class EndpointSliceController:
    name = "endpoints"

    def __init__(self, cluster: Cluster, pods: Informer) -> None:
        self._cluster = cluster
        self._pods = pods
        self._work = WorkQueue(self.name, self.reconcile)
        self._services = Informer(cluster, SERVICE, on_change=lambda change: self._work.add(change.key))
        managed = ",".join(f"{k}={v}" for k, v in MANAGED_BY.items())
        self._slices = Informer(cluster, ENDPOINT_SLICE, labels=managed, on_change=self._ours_changed)
        self._endpoints = Informer(cluster, ENDPOINTS, labels=managed, on_change=self._ours_changed)

    async def run(self) -> None:
        with subscribe_all((self._pods, self.on_pod_change)):
            try:
                async with asyncio.TaskGroup() as group:
                    for informer in (self._slices, self._endpoints, self._services):
                        group.create_task(informer.run())
            finally:
                await self._work.close()

    def on_pod_change(self, change: Change) -> None:
        seen = [pod for pod in (change.old, change.new) if pod is not None]
        if len(seen) == 2 and _as_endpoint(seen[0]) == _as_endpoint(seen[1]):
            return
        for key, service in self._services.objects.items():
            if key.namespace == change.key.namespace and any(selects(service, pod) for pod in seen):
                self._work.add(key)

    def _ours_changed(self, change: Change) -> None:
        obj = change.new or change.old or {}
        self._work.add(Key(change.key.namespace, labels_of(obj).get(SERVICE_NAME) or change.key.name))

    async def reconcile(self, key: Key) -> None:
        for informer in (self._slices, self._endpoints, self._pods):
            await informer.synced.wait()
        service = self._services.objects.get(key)
        if service is None or not service["spec"].get("selector") or is_terminating(service):
            return  # without a selector the addresses are the user's own; what we made is deleted with its owner
        pods = (pod for pod in self._pods.objects.values() if namespace_of(pod) == key.namespace)
        wanted = slices_for(service, pods)
        mine = {
            name: piece
            for name, piece in self._slices.objects.items()
            if name.namespace == key.namespace and labels_of(piece).get(SERVICE_NAME) == key.name
        }
        for piece in wanted:
            await self._put(ENDPOINT_SLICE, mine.pop(key_of(piece), None), piece)
        await self._put(ENDPOINTS, self._endpoints.objects.get(key), endpoints_for(service, wanted))
        for surplus in mine:
            try:
                await self._cluster.delete(ENDPOINT_SLICE, surplus.name, surplus.namespace)
            except ApiError as refused:
                if refused.code != 404:
                    raise

    async def _put(self, kind: Kind, found: Obj | None, wanted: Obj) -> None:
        key = key_of(wanted)
        if found is None:
            try:
                await self._cluster.create(kind, wanted, key.namespace)
            except ApiError as refused:
                if refused.reason != "AlreadyExists" or kind != ENDPOINTS:
                    raise  # a slice of that name may belong to any client
                # Endpoints of a Service with a selector are ours, whatever made them.
                ours = {part: wanted["metadata"][part] for part in ("labels", "ownerReferences")}
                patch = {"metadata": ours, "subsets": wanted["subsets"]}
                await self._cluster.patch(kind, key.name, key.namespace, patch=patch)
            return
        changed: Obj = {part: wanted[part] for part in PARTS if part in wanted and found.get(part) != wanted[part]}
        if changed:
            changed["metadata"] = {"resourceVersion": found["metadata"]["resourceVersion"]}
            await self._cluster.patch(kind, key.name, key.namespace, patch=changed)


def _as_endpoint(pod: Obj) -> tuple[Any, ...]:
    """What of a pod can matter to a Service: most status changes do not."""
    status = pod.get("status") or {}
    over = status.get("phase") in ("Succeeded", "Failed")
    return (uid_of(pod), labels_of(pod), status.get("podIP"), over, is_true(pod, "Ready"), is_terminating(pod))
