"""Events: one plain message about an object, for `kubectl describe` and `kubectl events`.

The same message about the same object is one event with a count, not many events: a repetition is a patch of the
count and the time. A recorder caches only what it emitted lately; an event that no longer exists is created again.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shoal.cluster.client import Cluster, PatchType
from shoal.cluster.clock import Clock, SystemClock
from shoal.kube import kinds
from shoal.kube.errors import ApiError
from shoal.kube.objects import Obj, name_of, namespace_of, uid_of
from shoal.kube.times import rfc3339

CACHE_SIZE = 4096
NORMAL = "Normal"
WARNING = "Warning"


@dataclass(slots=True)
class _Emitted:
    name: str
    namespace: str
    count: int
    first: datetime


class EventRecorder:
    """Emits events for one component, on one host if that is of interest."""

    def __init__(self, cluster: Cluster, component: str, *, host: str = "", clock: Clock | None = None) -> None:
        self._cluster = cluster
        self._component = component
        self._host = host
        self._clock = clock or SystemClock()
        self._emitted: OrderedDict[tuple[str, ...], _Emitted] = OrderedDict()

    async def record(
        self,
        regarding: Mapping[str, Any],
        severity: str,
        reason: str,
        message: str,
        *,
        field_path: str = "",
        at: datetime | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        """`regarding` is the object itself or a reference to it; `severity` is Normal or Warning; `at` is when it
        happened where that was before now.

        Raises what the cluster raises. Events are best effort, so most callers ignore a failure.
        """
        reference = object_reference(regarding, field_path)
        event_key = (
            reference.get("uid") or reference["name"],
            reference["kind"],
            field_path,
            severity,
            reason,
            message,
        )
        now = at or self._clock.now()
        emitted = self._emitted.get(event_key)
        if emitted is not None and await self._increment_count(emitted, now):
            self._emitted.move_to_end(event_key)
            return
        self._emitted[event_key] = await self._create_event(reference, severity, reason, message, now, annotations)
        while len(self._emitted) > CACHE_SIZE:
            self._emitted.popitem(last=False)

    async def _increment_count(self, emitted: _Emitted, now: datetime) -> bool:
        patch = {"count": emitted.count + 1, "lastTimestamp": rfc3339(now)}
        try:
            await self._cluster.patch(
                kinds.EVENT, emitted.name, emitted.namespace,
                patch=patch, patch_type=PatchType.MERGE, field_manager=self._component,
            )  # fmt: skip
        except ApiError as error:
            if error.code == 404:
                return False
            raise
        emitted.count += 1
        return True

    async def _create_event(
        self,
        reference: Obj,
        severity: str,
        reason: str,
        message: str,
        now: datetime,
        annotations: Mapping[str, str] | None,
    ) -> _Emitted:
        namespace = reference.get("namespace") or "default"
        moment = f"{int(now.timestamp() * 1e6):x}"
        identity = f"{reference.get('uid')}{severity}{reason}{message}{self._component}{self._host}"
        # Named by its message and time, so that a retry of the same message is the same event.
        digest = hashlib.blake2b(identity.encode(), digest_size=4).hexdigest()
        source = {"component": self._component}
        if self._host:
            source["host"] = self._host
        event: Obj = {
            "apiVersion": kinds.EVENT.api_version,
            "kind": kinds.EVENT.kind,
            "metadata": {"name": f"{reference['name']}.{moment}{digest}", "namespace": namespace},
            "involvedObject": reference,
            "type": severity,
            "reason": reason,
            "message": message[:1024],
            "source": source,
            "reportingComponent": self._component,
            "reportingInstance": self._host,
            "count": 1,
            "firstTimestamp": rfc3339(now),
            "lastTimestamp": rfc3339(now),
        }
        if annotations:
            event["metadata"]["annotations"] = dict(annotations)
        try:
            await self._cluster.create(kinds.EVENT, event, namespace, field_manager=self._component)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise  # else an earlier attempt succeeded and its response was lost
        return _Emitted(event["metadata"]["name"], namespace, 1, now)


def object_reference(regarding: Mapping[str, Any], field_path: str = "") -> Obj:
    """An ObjectReference to an object; a reference is returned as it is."""
    if "metadata" not in regarding:
        return dict(regarding)
    reference: Obj = {
        "apiVersion": regarding.get("apiVersion") or "v1",
        "kind": regarding.get("kind") or "",
        "name": name_of(regarding),
        "uid": uid_of(regarding),
    }
    if namespace := namespace_of(regarding):
        reference["namespace"] = namespace
    if version := (regarding.get("metadata") or {}).get("resourceVersion"):
        reference["resourceVersion"] = version
    if field_path:
        reference["fieldPath"] = field_path
    return reference
