"""Lets PodGroups in on a cluster of our own: a group enters when its queue is open and the cluster has room for it.

The door before the scheduler: pods of a gang are not even made before there is room for the smallest set of them that
may run. First come, first served; a group that does not fit keeps nobody behind it waiting. Queues `root` and
`default` are always there, and Commands open and close queues. A pass runs after a change and never by the clock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable

from shoal.cluster.clock import Clock
from shoal.cluster.port import Cluster, OutcomeUnknown
from shoal.cluster.reflecting import Change, Reflector
from shoal.dialects.gangs import ADMITTED, COMMAND, POD_GROUP, QUEUE
from shoal.kube.conditions import condition_of, is_true
from shoal.kube.errors import ApiError
from shoal.kube.objects import Obj, at_path, is_leaving, key_of, labels_of, name_of, namespace_of, uid_of
from shoal.kube.times import rfc3339
from shoal.logs import Logger
from shoal.operator.loops import subscribed
from shoal.scheduling.requests import Amounts, add, amounts, requests_of, shown

log = Logger(__name__)

PAUSE_SECONDS = 1.0
ALWAYS = ("root", "default")
JOB, TASK = "volcano.sh/job-name", "volcano.sh/task-spec"
FINISHED = ("Succeeded", "Failed")
OPEN, CLOSING, CLOSED = "Open", "Closing", "Closed"
_ORDERS = {"OpenQueue": OPEN, "CloseQueue": CLOSING}


class GangsLoop:
    name = "pod groups"

    def __init__(self, cluster: Cluster, nodes: Reflector, pods: Reflector, *, clock: Clock) -> None:
        self._cluster = cluster
        self._nodes = nodes
        self._pods = pods
        self._clock = clock
        self._groups = Reflector(cluster, POD_GROUP, on_change=self._changed, clock=clock)
        self._queues = Reflector(cluster, QUEUE, on_change=self._changed, clock=clock)
        self._orders = Reflector(cluster, COMMAND, on_change=self._changed, clock=clock)
        self._news = asyncio.Event()

    async def run(self) -> None:
        copies = (self._groups, self._queues, self._orders)
        async with asyncio.TaskGroup() as group:
            for copy in copies:
                group.create_task(copy.run())
            with subscribed((self._nodes, self._changed), (self._pods, self._changed)):
                for copy in (*copies, self._nodes, self._pods):
                    await copy.synced.wait()
                await self._found_queues()
                while True:
                    await self._news.wait()
                    self._news.clear()
                    await self._pass()

    def _changed(self, change: Change) -> None:  # noqa: ARG002 - whatever it is, everything is looked at again
        self._news.set()

    async def _found_queues(self) -> None:
        for name in ALWAYS:
            if name not in {key.name for key in self._queues.objects}:
                queue = {"apiVersion": QUEUE.api_version, "kind": QUEUE.kind, "metadata": {"name": name}, "spec": {}}
                await self._try(self._cluster.create(QUEUE, queue))

    # One pass

    async def _pass(self) -> None:
        await self._obey()
        await self._close_queues()
        groups = [group for group in self._groups.objects.values() if not is_leaving(group)]
        if not groups:
            return
        members = {uid_of(group): self._members(group) for group in groups}
        admitted = [group for group in groups if at_path(group, "status", "phase") in ADMITTED]
        for group in admitted:
            await self._follow(group, members[uid_of(group)])
        free = self._room(admitted, members)
        waiting = [group for group in groups if at_path(group, "status", "phase") not in ADMITTED]
        for group in sorted(waiting, key=lambda each: (each["metadata"].get("creationTimestamp") or "", key_of(each))):
            least = amounts(at_path(group, "spec", "minResources"))
            why = self._queue_is_shut(group) or _missing(least, free)
            if why:
                await self._tell(group, why)
                continue
            free = add(free, {name: -amount for name, amount in least.items()})
            await self._set(group, {"phase": "Inqueue"})

    def _members(self, group: Obj) -> list[Obj]:
        job, tasks = labels_of(group).get(JOB), at_path(group, "spec", "minTaskMember", default={})
        return [
            pod
            for key, pod in self._pods.objects.items()
            if job and key.namespace == namespace_of(group)
            and labels_of(pod).get(JOB) == job and (not tasks or labels_of(pod).get(TASK) in tasks)
        ]  # fmt: skip

    def _room(self, admitted: Iterable[Obj], members: dict[str, list[Obj]]) -> Amounts:
        """What nobody uses and no group that was let in waits for."""
        usable = [node for node in self._nodes.objects.values() if _is_usable(node)]
        free = add(*(amounts(at_path(node, "status", "allocatable")) for node in usable))
        held = [requests_of(pod) for pod in self._pods.objects.values() if _is_placed(pod)]
        for group in admitted:
            least = amounts(at_path(group, "spec", "minResources"))
            there = add(*(requests_of(pod) for pod in members[uid_of(group)] if _is_placed(pod)))
            is_over = any(at_path(pod, "status", "phase") in FINISHED for pod in members[uid_of(group)])
            if not is_over:
                held.append({name: max(amount - there.get(name, 0), 0) for name, amount in least.items()})
        return add(free, *({name: -amount for name, amount in each.items()} for each in held))

    def _queue_is_shut(self, group: Obj) -> str:
        name = at_path(group, "spec", "queue", default="default")
        queue = next((queue for key, queue in self._queues.objects.items() if key.name == name), None)
        if queue is None:
            return f"there is no queue {name}"
        state = at_path(queue, "status", "state", default=OPEN)
        return "" if state == OPEN else f"queue {name} is {state}"

    async def _follow(self, group: Obj, members: list[Obj]) -> None:
        """Running once enough members have a place; what they do then is counted. A verdict of somebody else that the
        gang cannot be whole stays: the job's policies are about to answer it."""
        if at_path(group, "status", "phase") == "Unknown":
            return
        phases = [at_path(pod, "status", "phase") for pod in members]
        counts = {word.lower(): phases.count(word) for word in ("Running", *FINISHED)}
        placed = sum(1 for pod in members if at_path(pod, "spec", "nodeName"))
        need = at_path(group, "spec", "minMember", default=0)
        phase = "Running" if placed and placed >= need else at_path(group, "status", "phase")
        if phase == "Running" and phases and all(each in FINISHED for each in phases):
            phase = "Completed"
        before = group.get("status") or {}
        if phase != before.get("phase") or any(before.get(word, 0) != count for word, count in counts.items()):
            await self._set(group, {"phase": phase, **counts})

    async def _tell(self, group: Obj, why: str) -> None:
        """Why it waits, once."""
        known = condition_of(group, "Unschedulable")
        if known is not None and known.get("message") == why and at_path(group, "status", "phase") == "Pending":
            return
        condition = {
            "type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": why,
            "lastTransitionTime": rfc3339(self._clock.now()),
        }  # fmt: skip
        await self._set(group, {"phase": "Pending", "conditions": [condition]})

    async def _set(self, group: Obj, status: Obj) -> None:
        patch = {"metadata": {"uid": uid_of(group)}, "status": status}
        await self._try(self._cluster.patch(POD_GROUP, name_of(group), namespace_of(group), patch=patch))

    # Queues

    async def _obey(self) -> None:
        for order in list(self._orders.objects.values()):
            target, state = order.get("target") or {}, _ORDERS.get(str(order.get("action")))
            if target.get("kind") != QUEUE.kind:
                continue
            if state is not None:
                await self._set_queue(str(target.get("name")), state)
            await self._try(self._cluster.delete(COMMAND, name_of(order), namespace_of(order)))

    async def _close_queues(self) -> None:
        """One that closes is closed when the last of its groups has gone."""
        used = {at_path(group, "spec", "queue", default="default") for group in self._groups.objects.values()}
        for key, queue in list(self._queues.objects.items()):
            if at_path(queue, "status", "state") == CLOSING and key.name not in used:
                await self._set_queue(key.name, CLOSED)

    async def _set_queue(self, name: str, state: str) -> None:
        patch = {"status": {"state": state}}
        await self._try(self._cluster.patch(QUEUE, name, patch=patch, subresource="status"))

    async def _try(self, request: Awaitable[Obj]) -> None:
        """What fails is tried again after a moment, unless a change comes first."""
        try:
            await request
        except ApiError as refused:
            if refused.code not in (404, 409):
                log.warning("a group or queue was not written", message=refused.message)
                self._clock.call_later(PAUSE_SECONDS, self._news.set)
        except (OutcomeUnknown, OSError) as broken:
            log.warning("a group or queue may not be written", error=str(broken))
            self._clock.call_later(PAUSE_SECONDS, self._news.set)


def _is_usable(node: Obj) -> bool:
    return is_true(node, "Ready") and not at_path(node, "spec", "unschedulable")


def _is_placed(pod: Obj) -> bool:
    return bool(at_path(pod, "spec", "nodeName")) and at_path(pod, "status", "phase") not in FINISHED


def _missing(least: Amounts, free: Amounts) -> str:
    """The resource that is shortest, in a sentence; '' where all fit."""
    short = [(name, need, free.get(name, 0)) for name, need in least.items() if need > max(free.get(name, 0), 0)]
    if not short:
        return ""
    name, need, there = max(short, key=lambda each: each[1] / max(each[2], 1))
    return f"needs {shown(name, need)} of {name} at once, {shown(name, max(there, 0))} is free"
