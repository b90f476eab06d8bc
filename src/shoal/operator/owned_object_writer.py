"""Brings groups and owned objects of a job to the state the engine requests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Protocol

from shoal.cluster.client import Cluster, OutcomeUnknown, PatchType
from shoal.dialects.capabilities import Gangs, OwnedObjects
from shoal.dialects.dialect import Dialect
from shoal.engine import Apply, GroupRef, Notification, Target
from shoal.kube.errors import ApiError
from shoal.kube.kinds import Kind
from shoal.kube.messages import Message
from shoal.kube.objects import Key, Obj, annotations_of, is_terminating, key_of, name_of, namespace_of, uid_of
from shoal.operator.related_objects import RelatedObjectIndex

MANAGER = "shoal"


class NameConflict(OutcomeUnknown):
    """An object of another owner has the name of one of ours."""


class CountedRequest(Protocol):
    def __call__(self, kind: Kind, verb: str, request: Awaitable[Obj]) -> Awaitable[Obj]: ...


class OwnedObjectWriter:
    """Of one dialect."""

    def __init__(
        self, cluster: Cluster, dialect: Dialect, related: RelatedObjectIndex, counted: CountedRequest
    ) -> None:
        self._cluster = cluster
        self._dialect = dialect
        self._owned = dialect.capability(OwnedObjects)
        self._gangs = dialect.capability(Gangs)
        self._related = related
        self._counted = counted

    async def apply(self, manifest: Obj, apply: Apply) -> None:
        owned = self._owned
        assert owned is not None
        kind, name = owned.locate_object(manifest, apply.target)
        where = Key(namespace_of(manifest), name)
        found = self._related.get(kind, where)
        if found is None:
            found = await self._create(manifest, apply, kind, where)
        if found is None:
            return  # created
        owner = self._dialect.owner_of(found)
        if is_terminating(found) and owner is not None and owner.key == key_of(manifest):
            return  # it was this job's, or that of an older one of its name: its deletion wakes the job
        if owned.observe_child(found, manifest) is None:
            self._related.await_end(kind, where, key_of(manifest))
            raise NameConflict(
                f"there is a {kind.kind} {name} of another owner; delete or rename it, or rename the job"
            )
        patch = owned.build_object(manifest, apply, is_new=False)
        if shows(found, patch):
            return
        patch["metadata"] = {**patch["metadata"], "uid": uid_of(found)}
        await self._counted(kind, "patch", self._cluster.patch(kind, name, where.namespace, patch=patch))

    async def _create(self, manifest: Obj, apply: Apply, kind: Kind, where: Key) -> Obj | None:
        """None where it was created; else the object that exists already, which our informers do not show yet."""
        assert self._owned is not None
        made = self._owned.build_object(manifest, apply, is_new=True)
        if isinstance(apply.target, GroupRef) and self._gangs is not None:
            gangs = self._gangs
            gangs.replace_group(made, self._related.of_kind(kind, key_of(manifest)))
            if gangs.cluster_lookups is not None:
                objects = await self._cluster_objects(gangs.cluster_lookups.references(made))
                gangs.cluster_lookups.complete(made, objects)
        try:
            await self._counted(kind, "create", self._cluster.create(kind, made, where.namespace))
        except ApiError as refused:
            if refused.reason != "AlreadyExists":
                raise
            return await self._cluster.get(kind, where.name, where.namespace)
        return None

    async def make_pod_fitter(self, manifest: Obj, roles: Collection[str]) -> Callable[[Obj, str], None] | None:
        """A function that adapts pods of these roles to what their groups were granted; None where they need no change.

        Groups are read live: informers cache no more of one than its status.
        """
        owned, gangs = self._owned, self._gangs
        if owned is None or gangs is None or gangs.cluster_lookups is None:
            return None
        lookups, granted, seen = gangs.cluster_lookups, {}, {}
        for key, gang in gangs.specs(manifest).items():
            members = [role for role in roles if gang.has(role)]
            if members:
                kind, name = owned.locate_object(manifest, GroupRef(key))
                group = await self._cluster.get(kind, name, namespace_of(manifest))
                seen.update(await self._cluster_objects(lookups.references(group)))
                granted.update(dict.fromkeys(members, group))
        return lambda pod, role: lookups.apply_to_pod(pod, role, granted[role], seen)

    async def acknowledge_pods(self, manifest: Obj, *, are_up: bool, now: str) -> None:
        """Write what the gang scheduler expects about the pods into their groups' status, where it is missing."""
        gangs = self._gangs
        if gangs is None or not gangs.acknowledges_pods:
            return
        for group in self._related.of_kind(gangs.group, key_of(manifest)):
            status = gangs.acknowledge_pods(group, are_up, now) if not is_terminating(group) else None
            if status is None:
                continue
            place = {"name": name_of(group), "namespace": namespace_of(group), "uid": uid_of(group)}
            type_meta = {"apiVersion": gangs.group.api_version, "kind": gangs.group.kind}
            whole = {**type_meta, "metadata": place, "status": status}
            request = self._cluster.patch(
                gangs.group, place["name"], place["namespace"], patch=whole, patch_type=PatchType.APPLY,
                field_manager=MANAGER, force=True, subresource="status",
            )  # fmt: skip
            await self._counted(gangs.group, "patch", request)

    async def _cluster_objects(self, refs: tuple[tuple[Kind, str], ...]) -> dict[tuple[Kind, str], Obj]:
        return {ref: await self._cluster.get(*ref) for ref in refs}

    def failure_message(self, manifest: Obj, target: Target, failure: Exception) -> Notification:
        """Why a group or owned object is unavailable, for users."""
        owned = self._owned
        assert owned is not None
        kind, name = owned.locate_object(manifest, target)
        why = failure.message if isinstance(failure, ApiError) else str(failure)
        is_rejected = isinstance(failure, ApiError) and failure.reason == "Invalid"
        code = "OwnedObjectUnavailable.Rejected" if is_rejected else "OwnedObjectUnavailable"
        message = Message(code, {"kind": kind.kind, "name": name, "cause": why})
        return Notification("", message, warning=True, own_reason=owned.describe_failure(target))


def shows(found: Obj, wanted: Obj) -> bool:
    """Whether an object has the wanted annotations, its digest among them, and none that it should lose."""
    annotations = annotations_of(found)
    return all(annotations.get(name) == text for name, text in annotations_of(wanted).items())
