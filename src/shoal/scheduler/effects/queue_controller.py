"""The controller of Queue objects: the queues that always exist, what each holds, and whether it is open.

`root` and `default` always exist. Commands open and close queues by the rules of
`shoal.scheduler.planner.queue_state` and are deleted once executed; a rejected Command is explained in an Event. A
closing queue is closed when its last group is gone. A scheduler that watches a single namespace leaves Commands and the
status of queues to the scheduler that watches all; where another scheduler admits groups, it owns the queues as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable

from shoal.cluster.client import Cluster, DeleteOptions, Preconditions
from shoal.cluster.clock import Clock
from shoal.cluster.event_recorder import WARNING, EventRecorder
from shoal.cluster.informer import Change, Informer
from shoal.controller_runtime.workqueue import WorkQueue
from shoal.kube.errors import ApiError
from shoal.kube.kinds import Kind
from shoal.kube.messages import Message
from shoal.kube.objects import Key, Obj, annotations_of, at_path, name_of, namespace_of, uid_of
from shoal.scheduler.api.pod_groups import COMMAND, QUEUE
from shoal.scheduler.cache.scheduler_cache import SchedulerCache
from shoal.scheduler.channels import Channel, Event, QueueUpdated
from shoal.scheduler.effects.events import record
from shoal.scheduler.planner.from_objects import CLOSED_BY_PARENT
from shoal.scheduler.planner.gang_types import INQUEUE, UNKNOWN, PodGroupPhase, Queue
from shoal.scheduler.planner.queue_state import DEFAULT, ROOT, QueueInvalid, close, reopen, state
from shoal.scheduler.scope import SchedulerScope

COALESCE_SECONDS = 1.0
TRANSIENT_PHASES = (INQUEUE, UNKNOWN)  # phases that groups usually leave again within that time
_COMMANDS = {"OpenQueue": reopen, "CloseQueue": close}


async def ensure_default_queues(cluster: Cluster) -> None:
    """The queues that always exist, created before any request: where no queue is seen, none can be called missing."""
    for name in (ROOT, DEFAULT):
        await ensure_queue(cluster, name)


async def ensure_queue(cluster: Cluster, name: str, kind: Kind = QUEUE) -> None:
    queue = {"apiVersion": QUEUE.api_version, "kind": QUEUE.kind, "metadata": {"name": name}, "spec": {}}
    try:
        await cluster.create(kind, queue)
    except ApiError as refused:
        if refused.reason != "AlreadyExists":
            raise


class QueueController:
    def __init__(
        self,
        cluster: Cluster,
        queues: Informer,
        commands: Informer,
        *,
        cache: SchedulerCache,
        events: Channel[Event],
        scope: SchedulerScope,
        recorder: EventRecorder,
        clock: Clock,
    ) -> None:
        self._cluster = cluster
        self._queues = queues
        self._commands = commands
        self._cache = cache
        self._events = events
        self._scope = scope
        self._recorder = recorder
        self._work = WorkQueue("queues", self._sync, clock=clock, coalesce_seconds=COALESCE_SECONDS)
        self._command_work = WorkQueue("commands to queues", self._execute_command, clock=clock)

    def begin(self) -> None:
        if self._scope.gangs and self._scope.all_groups:
            for name in (ROOT, DEFAULT):
                self._work.add(Key("", name))

    def command_changed(self, change: Change) -> None:
        is_for_queue = change.new is not None and (change.new.get("target") or {}).get("kind") == QUEUE.kind
        if is_for_queue and self._scope.manages_queues:
            self._command_work.add(change.key)

    def queue_changed(self, change: Change) -> None:
        if not self._scope.all_groups:
            return
        if change.new is None and change.key.name in (ROOT, DEFAULT):
            self._work.add(change.key)  # deleting one of them shuts every group out that names no other
        elif change.new is not None:
            self._work.add_after_delay(change.key)

    def mark_dirty(self, name: str, phase: PodGroupPhase | None = None) -> None:
        """What it holds may have changed, or one of its groups has this phase now. A short phase that its status does
        not count yet is written at once: gathered with the phase after it, it would never be in the status."""
        if not self._scope.manages_queues:
            return
        key = Key("", name)
        if phase in TRANSIENT_PHASES and not at_path(self._queues.objects.get(key) or {}, "status", phase.lower()):
            self._work.add(key)
        else:
            self._work.add_after_delay(key)

    async def close(self) -> None:
        await self._work.close()
        await self._command_work.close()

    # Status

    async def _sync(self, key: Key) -> None:
        stored = self._queues.objects.get(key)
        if stored is None:
            if key.name in (ROOT, DEFAULT):
                await ensure_queue(self._cluster, key.name, self._scope.queue_kind)
            return
        queue = self._cache.view.queues.get(key.name)
        if queue is None or not self._scope.manages_queues:
            return
        account = self._cache.view.accounts.get(queue.name)
        groups = [gang for gang in account.groups.values() if not gang.lone] if account else []
        counts = Counter(gang.group.phase.lower() for gang in groups if gang.known)
        allocated = {name: amount for name, amount in (account.allocated if account else {}).items() if amount}
        wanted: Obj = {
            "state": state(queue, len(groups)),
            **{phase: counts[phase] for phase in ("pending", "inqueue", "running", "unknown", "completed")},
            "allocated": {
                name: f"{milli // 1000}" if milli % 1000 == 0 else f"{milli}m"
                for name, milli in sorted(allocated.items())
            },
        }
        before = stored.get("status") or {}
        changes = {name: value for name, value in wanted.items() if (before.get(name) or None) != (value or None)}
        if not changes:
            return
        if held := before.get("allocated"):  # a merge patch keeps what it does not drop
            gone = {name: None for name in held if name not in wanted["allocated"]}
            changes["allocated"] = {**gone, **wanted["allocated"]}
        await self._patch_status(key.name, changes)

    async def _patch_status(self, name: str, status: Obj) -> None:
        await self._unless_gone(
            self._cluster.patch(self._scope.queue_kind, name, patch={"status": status}, subresource="status")
        )

    # Commands

    async def _execute_command(self, key: Key) -> None:
        command = self._commands.objects.get(key)
        if command is None:
            return
        action, name = str(command.get("action")), str((command.get("target") or {}).get("name"))
        try:
            if action not in _COMMANDS:
                parameters = {"queue": name, "command": action, "known": list(_COMMANDS)}
                raise QueueInvalid(Message("Queue.UnknownCommand", parameters))
            for queue in _COMMANDS[action](self._cache.view.queues, name):
                await self._set(queue)
        except QueueInvalid as refused:
            # About the queue; where there is none of that name, about the Command, though it is deleted next.
            regarding = self._queues.objects.get(Key("", name), command)
            await record(self._recorder, regarding, WARNING, "OrderRefused", refused.message)
        exactly = DeleteOptions(preconditions=Preconditions(uid=uid_of(command)))
        await self._unless_gone(self._cluster.delete(COMMAND, name_of(command), namespace_of(command), exactly))

    async def _set(self, queue: Queue) -> None:
        stored = self._queues.objects.get(Key("", queue.name), {})
        is_marked = annotations_of(stored).get(CLOSED_BY_PARENT) == "true"
        if is_marked != queue.closed_by_parent:
            annotations = {CLOSED_BY_PARENT: "true" if queue.closed_by_parent else None}
            patch = {"metadata": {"annotations": annotations}}
            await self._unless_gone(self._cluster.patch(self._scope.queue_kind, queue.name, patch=patch))
        account = self._cache.view.accounts.get(queue.name)
        groups = sum(not gang.lone for gang in account.groups.values()) if account else 0
        await self._patch_status(queue.name, {"state": state(queue, groups)})
        self._events.put(QueueUpdated(queue))

    async def _unless_gone(self, request: Awaitable[Obj]) -> None:
        try:
            await request
        except ApiError as refused:
            if refused.code not in (404, 409):
                raise
