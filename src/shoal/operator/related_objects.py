"""What jobs have besides pods: the objects they own, those they wait for, and the commands for them.

Objects are found by the job they belong to, as pods are. An object that a job only waits for wakes it when it appears
or disappears, a command wakes the job it is for. A dialect that has none of these costs nothing here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from shoal.cluster.client import Cluster
from shoal.cluster.clock import Clock
from shoal.cluster.informer import Change, Informer
from shoal.dialects.capabilities import Gangs, JobCommands, OwnedObjects
from shoal.dialects.children import observe_children, open_gates
from shoal.dialects.dialect import Dialect
from shoal.engine import Command, CommandRef, ObservedGroup, ObservedObject, OwnedObjectRef
from shoal.kube.kinds import Kind
from shoal.kube.objects import Key, Obj, is_terminating, name_of, uid_of
from shoal.operator.job_index import JobIndex
from shoal.operator.shared_informers import SharedInformers

ObjectRef = tuple[Kind, Key]


@dataclass(frozen=True, slots=True)
class RelatedObjects:
    """The related objects of one job, as the engine observes them."""

    groups: Mapping[str, ObservedGroup] = field(default_factory=dict)
    owned_objects: Mapping[OwnedObjectRef, ObservedObject] = field(default_factory=dict)
    commands: tuple[Command, ...] = ()
    open_gates: frozenset[str] = frozenset()


_NO_OBJECTS = RelatedObjects()


class RelatedObjectIndex:
    """The related objects of the jobs of one dialect."""

    def __init__(
        self,
        cluster: Cluster,
        dialect: Dialect,
        informers: SharedInformers,
        *,
        namespace: str | None,
        wake: Callable[[Key], None],
        clock: Clock,
    ) -> None:
        self._owned = dialect.capability(OwnedObjects)
        self._gangs = dialect.capability(Gangs)
        self._commands = dialect.capability(JobCommands)
        self._wake = wake
        self._waiting_for: dict[ObjectRef, set[Key]] = {}  # required objects -> jobs that wait for them
        self._required_by: dict[Key, frozenset[ObjectRef]] = {}  # the same by job
        self._commands_for: dict[Key, dict[Key, None]] = {}  # by job
        self._indexes = {
            child.kind: JobIndex(
                informers.of(child.kind, child.labels), dialect, wake=wake, on_change=self._on_object_change
            )
            for child in (self._owned.children if self._owned is not None else ())
        }
        # No other dialect has commands of this kind, so their informer is not shared.
        self._command_informer: Informer | None = None
        if self._commands is not None:
            self._command_informer = Informer(
                cluster, self._commands.kind, namespace, on_change=self._on_command_change, clock=clock
            )

    @property
    def informers(self) -> tuple[Informer, ...]:
        commands = (self._command_informer,) if self._command_informer is not None else ()
        return (*(index.informer for index in self._indexes.values()), *commands)

    @property
    def command_informer(self) -> Informer | None:
        return self._command_informer

    def of(self, key: Key, manifest: Obj, deleted: frozenset[str]) -> RelatedObjects:
        """`deleted` are uids of objects that informers may still show."""
        owned = self._owned
        commands: tuple[Command, ...] = ()
        if self._commands is not None and key in self._commands_for:
            found = self.commands_for(key)
            # In the order in which they were given.
            found.sort(key=lambda command: (command["metadata"].get("creationTimestamp") or "", name_of(command)))
            commands = tuple(self._commands.read(command, manifest) for command in found)
        if owned is None:
            return RelatedObjects(commands=commands) if commands else _NO_OBJECTS
        there = (obj for index in self._indexes.values() for obj in index.of(key) if uid_of(obj) not in deleted)
        groups, owned_objects = observe_children(owned, self._gangs, there, manifest)
        required = owned.required_objects(manifest)
        self._wait_for(key, frozenset((each.kind, Key(key.namespace, each.name)) for each in required))
        gates = open_gates(required, lambda kind, name: bool(_live_uid(self.get(kind, Key(key.namespace, name)))))
        return RelatedObjects(groups, owned_objects, commands, gates)

    def forget(self, key: Key) -> None:
        """A deleted job waits for nothing. Commands for it stay indexed for as long as they exist."""
        self._wait_for(key, frozenset())

    def get(self, kind: Kind, key: Key) -> Obj | None:
        index = self._indexes.get(kind)
        return index.get(key) if index is not None else None

    def of_kind(self, kind: Kind, job: Key) -> list[Obj]:
        index = self._indexes.get(kind)
        return list(index.of(job)) if index is not None else []

    def await_end(self, kind: Kind, key: Key, job: Key) -> None:
        """Wake the job when another owner's object is deleted, where the informers show it."""
        if kind in self._indexes:
            self._indexes[kind].await_end(key, job)

    def name_of(self, uid: str) -> str | None:
        return next((name for index in self._indexes.values() if (name := index.name_of(uid)) is not None), None)

    def command_named(self, command: CommandRef) -> str | None:
        objects = self._command_informer.objects.values() if self._command_informer is not None else ()
        return next((name_of(each) for each in objects if uid_of(each) == command.uid), None)

    def commands_for(self, job: Key) -> list[Obj]:
        """The command objects whose target has this name."""
        if self._command_informer is None:
            return []
        return [self._command_informer.objects[command] for command in self._commands_for.get(job, ())]

    def _wait_for(self, job: Key, required: frozenset[ObjectRef]) -> None:
        """From now on the job waits for these objects and no others."""
        for ref in self._required_by.pop(job, frozenset()) - required:
            self._waiting_for[ref].discard(job)
            if not self._waiting_for[ref]:
                del self._waiting_for[ref]
        for ref in required:
            self._waiting_for.setdefault(ref, set()).add(job)
        if required:
            self._required_by[job] = required

    def _on_object_change(self, change: Change) -> None:
        if _live_uid(change.old) != _live_uid(change.new):
            for job in self._waiting_for.get((change.kind, change.key), ()):
                self._wake(job)

    def _on_command_change(self, change: Change) -> None:
        assert self._commands is not None
        for command, exists in ((change.old, False), (change.new, True)):
            job = self._commands.target(command) if command is not None else None
            if job is None:
                continue
            if exists:
                self._commands_for.setdefault(job, {})[change.key] = None
            else:
                self._commands_for[job].pop(change.key)
                if not self._commands_for[job]:
                    del self._commands_for[job]
            self._wake(job)


def _live_uid(obj: Obj | None) -> str:
    """The uid of an object that is there to stay; '' where there is none."""
    return uid_of(obj) if obj is not None and not is_terminating(obj) else ""
