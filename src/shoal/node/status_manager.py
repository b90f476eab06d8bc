"""Writing a pod's status to the API: one patch a pass, only what changed, only to the very pod it is about.

The patch carries the pod's uid, so that another pod of the same name never receives it, and merges conditions by type,
so that those other programs wrote stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto

from shoal.cluster.client import Cluster, DeleteOptions, OutcomeUnknown, PatchType, Preconditions
from shoal.kube.errors import ApiError
from shoal.kube.kinds import POD
from shoal.kube.objects import Key, Obj, uid_of
from shoal.logs import Logger

log = Logger(__name__)

INITIAL_BACKOFF_SECONDS = 0.2
MAX_BACKOFF_SECONDS = 30.0


async def find_bound_pod(cluster: Cluster, key: Key, node: str) -> Obj | None:
    """The pod of that name as the API has it now, where it is bound to `node`. A list with a selector, because the Node
    authorizer answers a `get` of a pod that is gone with 403 instead of 404."""
    fields = f"metadata.name={key.name},spec.nodeName={node}"
    return next(iter((await cluster.list(POD, key.namespace, fields=fields)).items), None)


class PublishResult(Enum):
    DONE = auto()
    GONE = auto()  # there seems to be no such pod any more: look
    RETRY = auto()  # unknown, or not now: retry after `pause`


def status_patch(before: Mapping[str, object], after: Obj) -> Obj:
    """The changes that make `before` contain what `after` contains; empty where it does already."""
    changed: Obj = {name: value for name, value in after.items() if before.get(name) != value}
    if "conditions" in changed:
        current = before.get("conditions")
        old = {c["type"]: c for c in current} if isinstance(current, list) else {}
        # Fields that are gone are set to null, because a merge removes only those.
        changed["conditions"] = [
            {**{name: None for name in old.get(c["type"], {}) if name not in c}, **c}
            for c in after["conditions"]
            if old.get(c["type"]) != c
        ]
        if not changed["conditions"]:
            del changed["conditions"]
    return changed


class StatusPublisher:
    """The status last written to the API for one pod, and the back-off while the API does not answer."""

    def __init__(self, cluster: Cluster, pod: Obj) -> None:
        self._cluster = cluster
        self._key = Key(pod["metadata"]["namespace"], pod["metadata"]["name"])
        self._uid = uid_of(pod)
        self._node = str(pod["spec"].get("nodeName") or "")
        self._published: Obj = dict(pod.get("status") or {})
        self._failures = 0

    @property
    def published(self) -> Obj:
        return self._published

    @property
    def backoff_seconds(self) -> float:
        """How long to wait before asking again; nothing where the last question was answered."""
        if not self._failures:
            return 0.0
        return min(INITIAL_BACKOFF_SECONDS * 2.0 ** (self._failures - 1), MAX_BACKOFF_SECONDS)

    async def publish(self, status: Obj) -> PublishResult:
        patch = status_patch(self._published, status)
        if not patch:
            return PublishResult.DONE
        try:
            await self._cluster.patch(
                POD,
                self._key.name,
                self._key.namespace,
                patch={"metadata": {"uid": self._uid}, "status": patch},
                patch_type=PatchType.STRATEGIC,
                subresource="status",
                field_manager="shoal-node",
            )
        except (ApiError, OutcomeUnknown, OSError) as refused:
            return self._classify_error(refused)
        self._failures = 0
        self._published = {**self._published, **status}
        return PublishResult.DONE

    async def delete_pod(self) -> PublishResult:
        """The pod's containers have ended: take it out of the API, this very pod and no other."""
        options = DeleteOptions(grace_seconds=0, preconditions=Preconditions(uid=self._uid))
        try:
            await self._cluster.delete(POD, self._key.name, self._key.namespace, options)
        except (ApiError, OutcomeUnknown, OSError) as refused:
            return self._classify_error(refused)
        self._failures = 0
        return PublishResult.DONE

    async def get_pod(self) -> tuple[PublishResult, Obj | None]:
        """The pod as the API has it now. A list may be old: nothing is torn down because of a list alone."""
        try:
            pod = await find_bound_pod(self._cluster, self._key, self._node)
        except (ApiError, OutcomeUnknown, OSError) as refused:
            return self._classify_error(refused), None
        return (PublishResult.DONE, pod) if pod is not None and uid_of(pod) == self._uid else (PublishResult.GONE, None)

    def _classify_error(self, refused: Exception) -> PublishResult:
        if isinstance(refused, ApiError) and refused.code == 404:
            return PublishResult.GONE
        self._failures += 1
        if isinstance(refused, ApiError) and refused.code == 409:
            # The uid is the only condition these writes carry: most likely it is another pod by now.
            return PublishResult.GONE
        log.warning("pod status not written", pod=str(self._key), error=str(refused))
        return PublishResult.RETRY
