"""What jobs own besides pods, what they wait for, and the orders people give them: copies, and how they are written.

A language that has none of these costs nothing here. Copies are found by the job they belong to, as pods are; objects
that a job only waits for wake it when they come or go; an order wakes the job it is for.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from shoal.cluster.client import Cluster, OutcomeUnknown, PatchType
from shoal.cluster.clock import Clock
from shoal.cluster.informer import Change, Informer
from shoal.dialects.capabilities import Gangs, JobCommands, OwnedObjects, RequiredObject
from shoal.dialects.children import observe_children, open_gates
from shoal.dialects.dialect import Dialect
from shoal.engine import (
    Apply,
    Command,
    CommandRef,
    GroupRef,
    Notification,
    ObservedGroup,
    ObservedObject,
    OwnedObjectRef,
    Target,
)
from shoal.kube.errors import ApiError
from shoal.kube.kinds import Kind
from shoal.kube.messages import Message
from shoal.kube.objects import Key, Obj, annotations_of, is_terminating, key_of, name_of, namespace_of, uid_of
from shoal.operator.owned_informers import OwnedInformer, OwnerOf

ObjectRef = tuple[Kind, Key]
MANAGER = "shoal"


class NameConflict(OutcomeUnknown):
    """An object of another owner has the name of one of ours."""


@dataclass(frozen=True, slots=True)
class RelatedObjects:
    """The related objects of one job, as the engine observes them."""

    groups: Mapping[str, ObservedGroup] = field(default_factory=dict)
    owned_objects: Mapping[OwnedObjectRef, ObservedObject] = field(default_factory=dict)
    commands: tuple[Command, ...] = ()
    open_gates: frozenset[str] = frozenset()


_NO_OBJECTS = RelatedObjects()


class OwnedInformers:
    """Copies for the jobs of one dialect."""

    def __init__(
        self,
        cluster: Cluster,
        dialect: Dialect,
        owner: OwnerOf,
        *,
        namespace: str | None,
        wake: Callable[[Key], None],
        clock: Clock,
    ) -> None:
        self._owned = dialect.capability(OwnedObjects)
        self._gangs = dialect.capability(Gangs)
        self._commands = dialect.capability(JobCommands)
        self._wake = wake
        self._hoped: dict[ObjectRef, set[Key]] = {}  # objects that jobs wait for
        self._hopes: dict[Key, frozenset[ObjectRef]] = {}  # the same by job
        self._orders: Informer | None = None
        self._commands_of: dict[Key, dict[Key, None]] = {}
        children = self._owned.children if self._owned is not None else ()
        self._children = {
            child.kind: OwnedInformer(
                cluster, child.kind, owner,
                namespace=namespace, labels=child.labels, wake=wake, freed=lambda _: None, clock=clock,
            )
            for child in children
        }  # fmt: skip
        for copies in self._children.values():
            copies.reflector.subscribe(self._required_changed)
        if self._commands is not None:
            self._orders = Informer(
                cluster, self._commands.kind, namespace,
                on_change=self._command_changed, clock=clock,
            )  # fmt: skip

    @property
    def reflectors(self) -> tuple[Informer, ...]:
        orders = (self._orders,) if self._orders is not None else ()
        return (*(copies.reflector for copies in self._children.values()), *orders)

    def of(self, key: Key, manifest: Obj, gone: frozenset[str]) -> RelatedObjects:
        """`gone` are uids that copies may still show."""
        owned, commands = self._owned, self._read_commands(key, manifest)
        if owned is None:
            return RelatedObjects(commands=commands) if commands else _NO_OBJECTS
        there = (obj for copies in self._children.values() for obj in copies.of(key) if uid_of(obj) not in gone)
        groups, owned_objects = observe_children(owned, self._gangs, there, manifest)
        return RelatedObjects(groups, owned_objects, commands, self._opened(key, owned.required_objects(manifest)))

    def forget(self, key: Key) -> None:
        """A job that has gone waits for nothing; orders for it are remembered as long as they are there."""
        self._watch_for(key, frozenset())

    def copy_of(self, kind: Kind, key: Key) -> Obj | None:
        copies = self._children.get(kind)
        return copies.get(key) if copies is not None else None

    def of_kind(self, kind: Kind, job: Key) -> list[Obj]:
        copies = self._children.get(kind)
        return list(copies.of(job)) if copies is not None else []

    def await_end(self, kind: Kind, key: Key, job: Key) -> None:
        """Wake the job when another owner's object is deleted, where the informers show it."""
        if kind in self._children:
            self._children[kind].await_end(key, job)

    def name_of(self, uid: str) -> str | None:
        return next((name for copies in self._children.values() if (name := copies.name_of(uid)) is not None), None)

    def command_named(self, command: CommandRef) -> str | None:
        objects = self._orders.objects.values() if self._orders is not None else ()
        return next((name_of(each) for each in objects if uid_of(each) == command.uid), None)

    # Waiting for others

    def _opened(self, key: Key, awaits: tuple[RequiredObject, ...]) -> frozenset[str]:
        self._watch_for(key, frozenset((awaited.kind, Key(key.namespace, awaited.name)) for awaited in awaits))
        return open_gates(awaits, lambda kind, name: bool(_live_uid(self.copy_of(kind, Key(key.namespace, name)))))

    def _watch_for(self, job: Key, places: frozenset[ObjectRef]) -> None:
        """These and no others."""
        for place in self._hopes.pop(job, frozenset()) - places:
            self._hoped[place].discard(job)
            if not self._hoped[place]:
                del self._hoped[place]
        for place in places:
            self._hoped.setdefault(place, set()).add(job)
        if places:
            self._hopes[job] = places

    def _required_changed(self, change: Change) -> None:
        if _live_uid(change.old) != _live_uid(change.new):
            for job in self._hoped.get((change.kind, change.key), ()):
                self._wake(job)

    # Orders

    def _command_changed(self, change: Change) -> None:
        assert self._commands is not None
        for command, is_there in ((change.old, False), (change.new, True)):
            job = self._commands.target(command) if command is not None else None
            if job is None:
                continue
            if is_there:
                self._commands_of.setdefault(job, {})[change.key] = None
            else:
                self._commands_of[job].pop(change.key)
                if not self._commands_of[job]:
                    del self._commands_of[job]
            self._wake(job)

    def _read_commands(self, key: Key, manifest: Obj) -> tuple[Command, ...]:
        """In the order in which they were given."""
        if self._commands is None or key not in self._commands_of:
            return ()
        found = self.commands_for(key)
        found.sort(key=lambda command: (command["metadata"].get("creationTimestamp") or "", name_of(command)))
        return tuple(self._commands.read(command, manifest) for command in found)

    def commands_for(self, job: Key) -> list[Obj]:
        """The command objects whose target has this name."""
        return [self._orders.objects[command] for command in self._commands_of.get(job, ())] if self._orders else []


class CountedRequest(Protocol):
    def __call__(self, kind: Kind, verb: str, request: Awaitable[Obj]) -> Awaitable[Obj]: ...


class OwnedWriter:
    """Brings groups and owned objects to the state the engine requests."""

    def __init__(self, cluster: Cluster, dialect: Dialect, copies: OwnedInformers, counted: CountedRequest) -> None:
        self._cluster = cluster
        self._dialect = dialect
        self._owned = dialect.capability(OwnedObjects)
        self._gangs = dialect.capability(Gangs)
        self._copies = copies
        self._counted = counted

    async def apply(self, manifest: Obj, apply: Apply) -> None:
        owned = self._owned
        assert owned is not None
        kind, name = owned.locate_object(manifest, apply.target)
        where = Key(namespace_of(manifest), name)
        found = self._copies.copy_of(kind, where)
        if found is None:
            found = await self._create(manifest, apply, kind, where)
        if found is None or self._leaves(found, manifest):
            return  # created, or leaving: a watch event shows when the name is free
        if owned.observe_child(found, manifest) is None:
            self._copies.await_end(kind, where, key_of(manifest))
            raise NameConflict(
                f"there is a {kind.kind} {name} of another owner; delete or rename it, or rename the job"
            )
        patch = owned.build_object(manifest, apply, is_new=False)
        if shows(found, patch):
            return
        patch["metadata"] = {**patch["metadata"], "uid": uid_of(found)}
        await self._counted(kind, "patch", self._cluster.patch(kind, name, where.namespace, patch=patch))

    def _leaves(self, found: Obj, manifest: Obj) -> bool:
        """Whether it is being deleted and belongs to this job or an older one of its name, which its end wakes."""
        owner = self._dialect.owner_of(found)
        return is_terminating(found) and owner is not None and owner.key == key_of(manifest)

    async def _create(self, manifest: Obj, apply: Apply, kind: Kind, where: Key) -> Obj | None:
        """None where it was created; else the object that exists already, which our informers do not show yet."""
        assert self._owned is not None
        made = self._owned.build_object(manifest, apply, is_new=True)
        if isinstance(apply.target, GroupRef) and self._gangs is not None:
            await self._complete(self._gangs, made, self._copies.of_kind(kind, key_of(manifest)))
        try:
            await self._counted(kind, "create", self._cluster.create(kind, made, where.namespace))
        except ApiError as refused:
            if refused.reason != "AlreadyExists":
                raise
            return await self._cluster.get(kind, where.name, where.namespace)
        return None

    async def _complete(self, gangs: Gangs, made: Obj, others: list[Obj]) -> None:
        """Completes a new group with what it requires of other objects."""
        gangs.replace_group(made, others)
        if gangs.cluster_lookups is not None:
            gangs.cluster_lookups.complete(made, await self._cluster_objects(gangs.cluster_lookups.references(made)))

    async def make_pod_fitter(self, manifest: Obj, roles: Collection[str]) -> Callable[[Obj, str], None] | None:
        """What adapts pods of these roles to what their groups were granted; None where they need no change.

        Read from the cluster itself: informers keep no more of a group than its status.
        """
        owned, gangs = self._owned, self._gangs
        if owned is None or gangs is None or gangs.cluster_lookups is None:
            return None
        looks, granted, seen = gangs.cluster_lookups, {}, {}
        for key, gang in gangs.specs(manifest).items():
            members = [role for role in roles if gang.has(role)]
            if members:
                kind, name = owned.locate_object(manifest, GroupRef(key))
                group = await self._cluster.get(kind, name, namespace_of(manifest))
                seen.update(await self._cluster_objects(looks.references(group)))
                granted.update(dict.fromkeys(members, group))
        return lambda pod, role: looks.apply_to_pod(pod, role, granted[role], seen)

    async def acknowledge_pods(self, manifest: Obj, *, are_up: bool, now: str) -> None:
        """Write what the gang scheduler expects about the pods into their groups' status, where it is missing."""
        gangs = self._gangs
        if gangs is None or not gangs.acknowledges_pods:
            return
        for group in self._copies.of_kind(gangs.group, key_of(manifest)):
            status = gangs.acknowledge_pods(group, are_up, now) if not is_terminating(group) else None
            if status is None:
                continue
            place = {"name": name_of(group), "namespace": namespace_of(group), "uid": uid_of(group)}
            whole = {
                "apiVersion": gangs.group.api_version,
                "kind": gangs.group.kind,
                "metadata": place,
                "status": status,
            }
            request = self._cluster.patch(
                gangs.group, place["name"], place["namespace"], patch=whole, patch_type=PatchType.APPLY,
                field_manager=MANAGER, force=True, subresource="status",
            )  # fmt: skip
            await self._counted(gangs.group, "patch", request)

    async def _cluster_objects(self, places: tuple[tuple[Kind, str], ...]) -> dict[tuple[Kind, str], Obj]:
        return {place: await self._cluster.get(*place) for place in places}

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


def _live_uid(obj: Obj | None) -> str:
    """The uid of an object that is there to stay; '' where there is none."""
    return uid_of(obj) if obj is not None and not is_terminating(obj) else ""


def shows(found: Obj, wanted: Obj) -> bool:
    """Whether an object carries the very notes it should, its digest among them, and none that it should lose."""
    notes = annotations_of(found)
    return all(notes.get(name) == text for name, text in annotations_of(wanted).items())
