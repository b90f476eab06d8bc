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
from shoal.dialects.children import opened, relatives
from shoal.dialects.dialect import Awaited, Dialect, Kin
from shoal.engine import Apply, Command, CommandRef, CompanionRef, Group, GroupRef, Notification, Seen, Target
from shoal.kube.errors import ApiError
from shoal.kube.kinds import Kind
from shoal.kube.messages import Message
from shoal.kube.objects import Key, Obj, annotations_of, is_terminating, key_of, name_of, namespace_of, uid_of
from shoal.operator.owned_informers import Children, OwnerOf

Place = tuple[Kind, Key]
MANAGER = "shoal"


class InTheWay(OutcomeUnknown):
    """Somebody else's object stands under the name of one of ours."""


@dataclass(frozen=True, slots=True)
class Relatives:
    """What one job has of all this, as the engine hears of it."""

    groups: Mapping[str, Group] = field(default_factory=dict)
    companions: Mapping[CompanionRef, Seen] = field(default_factory=dict)
    commands: tuple[Command, ...] = ()
    opened: frozenset[str] = frozenset()


_NOBODY = Relatives()


class KinCopies:
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
        self._dialect = dialect
        self._wake = wake
        self._hoped: dict[Place, set[Key]] = {}  # objects that jobs wait for
        self._hopes: dict[Key, frozenset[Place]] = {}  # the same by job
        self._orders: Informer | None = None
        self._orders_of: dict[Key, dict[Key, None]] = {}
        children = dialect.kin.children if dialect.kin is not None else ()
        self._children = {
            child.kind: Children(
                cluster, child.kind, owner,
                namespace=namespace, labels=child.labels, wake=wake, freed=lambda _: None, clock=clock,
            )
            for child in children
        }  # fmt: skip
        for copies in self._children.values():
            copies.reflector.subscribe(self._came_or_went)
        if dialect.orders is not None:
            self._orders = Informer(
                cluster, dialect.orders.kind, namespace,
                on_change=self._order_changed, clock=clock,
            )  # fmt: skip

    @property
    def reflectors(self) -> tuple[Informer, ...]:
        orders = (self._orders,) if self._orders is not None else ()
        return (*(copies.reflector for copies in self._children.values()), *orders)

    def of(self, key: Key, manifest: Obj, gone: frozenset[str]) -> Relatives:
        """`gone` are uids that copies may still show."""
        kin, commands = self._dialect.kin, self._commands(key, manifest)
        if kin is None:
            return Relatives(commands=commands) if commands else _NOBODY
        there = (obj for copies in self._children.values() for obj in copies.of(key) if uid_of(obj) not in gone)
        groups, companions = relatives(kin, there, manifest)
        return Relatives(groups, companions, commands, self._opened(key, kin.awaits(manifest)))

    def forget(self, key: Key) -> None:
        """A job that has gone waits for nothing; orders for it are remembered as long as they are there."""
        self._hope(key, frozenset())

    def copy_of(self, kind: Kind, key: Key) -> Obj | None:
        copies = self._children.get(kind)
        return copies.get(key) if copies is not None else None

    def of_kind(self, kind: Kind, job: Key) -> list[Obj]:
        copies = self._children.get(kind)
        return list(copies.of(job)) if copies is not None else []

    def await_end(self, kind: Kind, key: Key, job: Key) -> None:
        """Wake the job when an object of somebody else goes, where the copies show it."""
        if kind in self._children:
            self._children[kind].await_end(key, job)

    def name_of(self, uid: str) -> str | None:
        return next((name for copies in self._children.values() if (name := copies.name_of(uid)) is not None), None)

    def order_named(self, order: CommandRef) -> str | None:
        objects = self._orders.objects.values() if self._orders is not None else ()
        return next((name_of(each) for each in objects if uid_of(each) == order.uid), None)

    # Waiting for others

    def _opened(self, key: Key, awaits: tuple[Awaited, ...]) -> frozenset[str]:
        self._hope(key, frozenset((awaited.kind, Key(key.namespace, awaited.name)) for awaited in awaits))
        return opened(awaits, lambda kind, name: bool(_standing(self.copy_of(kind, Key(key.namespace, name)))))

    def _hope(self, job: Key, places: frozenset[Place]) -> None:
        """These and no others."""
        for place in self._hopes.pop(job, frozenset()) - places:
            self._hoped[place].discard(job)
            if not self._hoped[place]:
                del self._hoped[place]
        for place in places:
            self._hoped.setdefault(place, set()).add(job)
        if places:
            self._hopes[job] = places

    def _came_or_went(self, change: Change) -> None:
        if _standing(change.old) != _standing(change.new):
            for job in self._hoped.get((change.kind, change.key), ()):
                self._wake(job)

    # Orders

    def _order_changed(self, change: Change) -> None:
        assert self._dialect.orders is not None
        for order, is_there in ((change.old, False), (change.new, True)):
            job = self._dialect.orders.target(order) if order is not None else None
            if job is None:
                continue
            if is_there:
                self._orders_of.setdefault(job, {})[change.key] = None
            else:
                self._orders_of[job].pop(change.key)
                if not self._orders_of[job]:
                    del self._orders_of[job]
            self._wake(job)

    def _commands(self, key: Key, manifest: Obj) -> tuple[Command, ...]:
        """In the order in which they were given."""
        if self._dialect.orders is None or key not in self._orders_of:
            return ()
        found = self.orders_for(key)
        found.sort(key=lambda order: (order["metadata"].get("creationTimestamp") or "", name_of(order)))
        return tuple(self._dialect.orders.read(order, manifest) for order in found)

    def orders_for(self, job: Key) -> list[Obj]:
        """The command objects whose target has this name."""
        return [self._orders.objects[order] for order in self._orders_of.get(job, ())] if self._orders else []


class Counted(Protocol):
    def __call__(self, kind: Kind, verb: str, request: Awaitable[Obj]) -> Awaitable[Obj]: ...


class KinWriter:
    """Brings groups and companions to what the engine asks for."""

    def __init__(self, cluster: Cluster, dialect: Dialect, copies: KinCopies, counted: Counted) -> None:
        self._cluster = cluster
        self._dialect = dialect
        self._copies = copies
        self._counted = counted

    async def apply(self, manifest: Obj, apply: Apply) -> None:
        kin = self._dialect.kin
        assert kin is not None
        kind, name = kin.place(manifest, apply.target)
        where = Key(namespace_of(manifest), name)
        found = self._copies.copy_of(kind, where)
        if found is None:
            found = await self._create(manifest, apply, kind, where)
        if found is None or self._leaves(found, manifest):
            return  # made, or about to go: the watch tells when its name is free
        if kin.recognise(found, manifest) is None:
            self._copies.await_end(kind, where, key_of(manifest))
            raise InTheWay(f"there is a {kind.kind} {name} of somebody else; delete or rename it, or rename the job")
        patch = kin.dress(manifest, apply, False)
        if shows(found, patch):
            return
        patch["metadata"] = {**patch["metadata"], "uid": uid_of(found)}
        await self._counted(kind, "patch", self._cluster.patch(kind, name, where.namespace, patch=patch))

    def _leaves(self, found: Obj, manifest: Obj) -> bool:
        """Whether it is about to go and belongs to this job or an older one of its name, which hears of its end."""
        owner = self._dialect.owner(found)
        return is_terminating(found) and owner is not None and owner.key == key_of(manifest)

    async def _create(self, manifest: Obj, apply: Apply, kind: Kind, where: Key) -> Obj | None:
        """None where it was made; else what stands there already, which our copies do not show yet."""
        assert self._dialect.kin is not None
        made = self._dialect.kin.dress(manifest, apply, True)
        if isinstance(apply.target, GroupRef):
            await self._complete(self._dialect.kin, made, self._copies.of_kind(kind, key_of(manifest)))
        try:
            await self._counted(kind, "create", self._cluster.create(kind, made, where.namespace))
        except ApiError as refused:
            if refused.reason != "AlreadyExists":
                raise
            return await self._cluster.get(kind, where.name, where.namespace)
        return None

    async def _complete(self, kin: Kin, made: Obj, others: list[Obj]) -> None:
        """What a new group has to know of others."""
        if kin.succeed is not None:
            kin.succeed(made, others)
        if kin.looks is not None:
            kin.looks.complete(made, await self._sight(kin.looks.at(made)))

    async def fitting(self, manifest: Obj, roles: Collection[str]) -> Callable[[Obj, str], None] | None:
        """What fits pods of these roles to what their groups were granted; None where they are made as they are.

        Asked of the cluster itself: copies keep no more of a group than how it stands.
        """
        kin = self._dialect.kin
        if kin is None or kin.looks is None or kin.gangs is None:
            return None
        looks, granted, seen = kin.looks, {}, {}
        for key, gang in kin.gangs(manifest).items():
            members = [role for role in roles if gang.has(role)]
            if members:
                kind, name = kin.place(manifest, GroupRef(key))
                group = await self._cluster.get(kind, name, namespace_of(manifest))
                seen.update(await self._sight(looks.at(group)))
                granted.update(dict.fromkeys(members, group))
        return lambda pod, role: looks.fit(pod, role, granted[role], seen)

    async def answer(self, manifest: Obj, *, are_up: bool, now: str) -> None:
        """Tell the scheduler of gangs what it wants to hear of their pods, where it does not know yet."""
        kin = self._dialect.kin
        if kin is None or kin.answer is None:
            return
        for group in self._copies.of_kind(kin.group, key_of(manifest)):
            status = kin.answer(group, are_up, now) if not is_terminating(group) else None
            if status is None:
                continue
            place = {"name": name_of(group), "namespace": namespace_of(group), "uid": uid_of(group)}
            whole = {"apiVersion": kin.group.api_version, "kind": kin.group.kind, "metadata": place, "status": status}
            request = self._cluster.patch(
                kin.group, place["name"], place["namespace"], patch=whole, patch_type=PatchType.APPLY,
                field_manager=MANAGER, force=True, subresource="status",
            )  # fmt: skip
            await self._counted(kin.group, "patch", request)

    async def _sight(self, places: tuple[tuple[Kind, str], ...]) -> dict[tuple[Kind, str], Obj]:
        return {place: await self._cluster.get(*place) for place in places}

    def complaint(self, manifest: Obj, target: Target, failure: Exception) -> Notification:
        """Why a group or companion cannot be had, for people."""
        kin = self._dialect.kin
        assert kin is not None
        kind, name = kin.place(manifest, target)
        why = failure.message if isinstance(failure, ApiError) else str(failure)
        message = Message("OwnedObjectUnavailable", {"kind": kind.kind, "name": name, "cause": why})
        return Notification("", message, warning=True, own_reason=kin.trouble(target))


def _standing(obj: Obj | None) -> str:
    """The uid of an object that is there to stay; '' where there is none."""
    return uid_of(obj) if obj is not None and not is_terminating(obj) else ""


def shows(found: Obj, wanted: Obj) -> bool:
    """Whether an object carries the very notes it should, its digest among them, and none that it should lose."""
    notes = annotations_of(found)
    return all(notes.get(name) == text for name, text in annotations_of(wanted).items())
