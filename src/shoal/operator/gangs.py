"""Lets PodGroups in on a cluster of our own: a group enters when its queue is open and the cluster has room for it.

The door before the scheduler: pods of a gang are not even made before there is room for the smallest set of them that
may run. First come, first served; a group that does not fit keeps nobody behind it waiting. Queues `root` and
`default` are always there, and Commands open and close queues. A pass runs after a change and never by the clock. Where
it serves one namespace only, it does not see all groups of a queue, and leaves closing queues to whoever does.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Iterable

from shoal.cluster.clock import Clock
from shoal.cluster.port import Cluster, DeleteOptions, OutcomeUnknown, Preconditions
from shoal.cluster.reflecting import Change, Reflector
from shoal.dialects.gangs import ADMITTED, COMMAND, GROUP_NAME, POD_GROUP, QUEUE
from shoal.kube.conditions import condition_of, is_true
from shoal.kube.errors import ApiError
from shoal.kube.objects import Key, Obj, annotations_of, at_path, is_leaving, key_of, name_of, namespace_of, uid_of
from shoal.kube.times import rfc3339
from shoal.logs import Logger
from shoal.operator.loops import subscribed
from shoal.scheduling.requests import Amounts, add, amounts, requests_of, shown

log = Logger(__name__)

PAUSE_SECONDS = 1.0
ALWAYS = ("root", "default")
Why = tuple[str, str]  # a reason in one word, and a sentence
FINISHED = ("Succeeded", "Failed")
OPEN, CLOSING, CLOSED = "Open", "Closing", "Closed"
_ORDERS = {"OpenQueue": OPEN, "CloseQueue": CLOSING}


class GangsLoop:
    name = "pod groups"

    def __init__(
        self, cluster: Cluster, nodes: Reflector, pods: Reflector, *, namespace: str | None = None, clock: Clock
    ) -> None:
        self._cluster = cluster
        self._nodes = nodes
        self._pods = pods
        self._namespace = namespace
        self._clock = clock
        self._groups = Reflector(cluster, POD_GROUP, namespace, on_change=self._changed, clock=clock)
        self._queues = Reflector(cluster, QUEUE, on_change=self._changed, clock=clock)
        self._orders = Reflector(cluster, COMMAND, namespace, on_change=self._changed, clock=clock)
        self._news = asyncio.Event()

    async def run(self) -> None:
        copies = (self._groups, self._queues, self._orders)
        async with asyncio.TaskGroup() as group:
            for copy in copies:
                group.create_task(copy.run())
            with subscribed((self._nodes, self._changed), (self._pods, self._changed)):
                for copy in (*copies, self._nodes, self._pods):
                    await copy.synced.wait()
                self._news.set()  # an empty cluster has no news, and needs its queues all the same
                while True:
                    await self._news.wait()
                    self._news.clear()
                    await self._pass()

    def _changed(self, change: Change) -> None:  # noqa: ARG002 - whatever it is, everything is looked at again
        self._news.set()

    # One pass

    async def _pass(self) -> None:
        await self._found_queues()
        await self._obey()
        await self._close_queues()
        groups = [group for group in self._groups.objects.values() if not is_leaving(group)]
        if not groups:
            return
        members = self._members(groups)
        admitted = [group for group in groups if at_path(group, "status", "phase") in ADMITTED]
        for group in admitted:
            await self._follow(group, members[uid_of(group)])
        free = self._room(admitted, members)
        waiting = [group for group in groups if at_path(group, "status", "phase") not in ADMITTED]
        for group in sorted(waiting, key=lambda each: (each["metadata"].get("creationTimestamp") or "", key_of(each))):
            least = amounts(at_path(group, "spec", "minResources"))
            why = self._queue_is_shut(group) or _missing(least, free)
            if why is not None:
                await self._tell(group, *why)
                continue
            free = add(free, {name: -amount for name, amount in least.items()})
            await self._set(group, {"phase": "Inqueue"})

    def _members(self, groups: Iterable[Obj]) -> dict[str, list[Obj]]:
        """The pods that name each group, by its uid. A job made anew under an old name has a group of another name."""
        naming: defaultdict[Key, list[Obj]] = defaultdict(list)
        for key, pod in self._pods.objects.items():
            if named := annotations_of(pod).get(GROUP_NAME):
                naming[Key(key.namespace, named)].append(pod)
        return {uid_of(group): naming[key_of(group)] for group in groups}

    def _room(self, admitted: Iterable[Obj], members: dict[str, list[Obj]]) -> Amounts:
        """What nobody uses and no group that was let in waits for."""
        usable = [node for node in self._nodes.objects.values() if _is_usable(node)]
        free = add(*(amounts(at_path(node, "status", "allocatable")) for node in usable))
        held = [requests_of(pod) for pod in self._pods.objects.values() if _is_placed(pod)]
        for group in admitted:
            least = amounts(at_path(group, "spec", "minResources"))
            served = add(*(requests_of(pod) for pod in members[uid_of(group)] if _has_been_placed(pod)))
            if at_path(group, "status", "phase") != "Completed":
                held.append({name: max(amount - served.get(name, 0), 0) for name, amount in least.items()})
        return add(free, *({name: -amount for name, amount in each.items()} for each in held))

    def _queue_is_shut(self, group: Obj) -> Why | None:
        name = at_path(group, "spec", "queue", default="default")
        queue = next((queue for key, queue in self._queues.objects.items() if key.name == name), None)
        if queue is None:
            return "QueueNotFound", f"there is no queue {name}"
        state = at_path(queue, "status", "state", default=OPEN)
        return None if state == OPEN else ("QueueNotOpen", f"queue {name} is {state}")

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

    async def _tell(self, group: Obj, reason: str, why: str) -> None:
        """Why it waits, once."""
        known = condition_of(group, "Unschedulable")
        if known is not None and known.get("message") == why and at_path(group, "status", "phase") == "Pending":
            return
        condition = {
            "type": "Unschedulable", "status": "True", "reason": reason, "message": why,
            "lastTransitionTime": rfc3339(self._clock.now()),
        }  # fmt: skip
        await self._set(group, {"phase": "Pending", "conditions": [condition]})

    async def _set(self, group: Obj, status: Obj) -> None:
        """Only on the version that was looked at; where it has changed, the change brings the next pass."""
        seen = {"uid": uid_of(group), "resourceVersion": group["metadata"]["resourceVersion"]}
        patch = {"metadata": seen, "status": status}
        await self._try(self._cluster.patch(POD_GROUP, name_of(group), namespace_of(group), patch=patch))

    # Queues

    async def _found_queues(self) -> None:
        """Whoever deletes one of them shuts every group out that names no other."""
        there = {key.name for key in self._queues.objects}
        for name in (each for each in ALWAYS if each not in there):
            queue = {"apiVersion": QUEUE.api_version, "kind": QUEUE.kind, "metadata": {"name": name}, "spec": {}}
            await self._try(self._cluster.create(QUEUE, queue))

    async def _obey(self) -> None:
        for order in list(self._orders.objects.values()):
            target, state = order.get("target") or {}, _ORDERS.get(str(order.get("action")))
            if target.get("kind") != QUEUE.kind:
                continue
            if state is None or await self._set_queue(str(target.get("name")), state):
                exactly = DeleteOptions(preconditions=Preconditions(uid=uid_of(order)))
                await self._try(self._cluster.delete(COMMAND, name_of(order), namespace_of(order), exactly))

    async def _close_queues(self) -> None:
        """One that closes is closed when the last of its groups has gone."""
        if self._namespace is not None:
            return
        used = {at_path(group, "spec", "queue", default="default") for group in self._groups.objects.values()}
        for key, queue in list(self._queues.objects.items()):
            if at_path(queue, "status", "state") == CLOSING and key.name not in used:
                await self._set_queue(key.name, CLOSED)

    async def _set_queue(self, name: str, state: str) -> bool:
        patch = {"status": {"state": state}}
        return await self._try(self._cluster.patch(QUEUE, name, patch=patch, subresource="status"))

    async def _try(self, request: Awaitable[Obj]) -> bool:
        """Whether nothing is left to do. What fails is tried again after a moment, unless a change comes first."""
        try:
            await request
        except ApiError as refused:
            if refused.code == 404:
                return True
            if refused.code != 409:
                log.warning("a group or queue was not written", message=refused.message)
                self._clock.call_later(PAUSE_SECONDS, self._news.set)
        except (OutcomeUnknown, OSError) as broken:
            log.warning("a group or queue may not be written", error=str(broken))
            self._clock.call_later(PAUSE_SECONDS, self._news.set)
        else:
            return True
        return False


def _is_usable(node: Obj) -> bool:
    return is_true(node, "Ready") and not at_path(node, "spec", "unschedulable")


def _is_placed(pod: Obj) -> bool:
    return bool(at_path(pod, "spec", "nodeName")) and at_path(pod, "status", "phase") not in FINISHED


def _has_been_placed(pod: Obj) -> bool:
    """Whether it has, or has had, the room that was kept for it."""
    return bool(at_path(pod, "spec", "nodeName")) or at_path(pod, "status", "phase") in FINISHED


def _missing(least: Amounts, free: Amounts) -> Why | None:
    """The resource that is shortest, in a sentence; None where all fit."""
    short = [(name, need, free.get(name, 0)) for name, need in least.items() if need > max(free.get(name, 0), 0)]
    if not short:
        return None
    name, need, there = max(short, key=lambda each: each[1] / max(each[2], 1))
    return "NotEnoughResources", f"needs {shown(name, need)} of {name} at once, {shown(name, max(there, 0))} is free"
