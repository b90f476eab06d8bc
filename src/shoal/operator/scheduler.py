"""Places pods: keeps what `shoal.scheduling` needs ready, asks it for a plan when something changed, carries it out.

A pass runs after a change and never by the clock. Placements just made are remembered until the watch shows
them, so a late event never lets one hole be given away twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from shoal.cluster.clock import Clock
from shoal.cluster.port import Cluster, OutcomeUnknown, PatchType
from shoal.cluster.recording import Recorder
from shoal.cluster.reflecting import Change, Reflector
from shoal.kube.conditions import condition_of
from shoal.kube.errors import ApiError
from shoal.kube.kinds import POD
from shoal.kube.objects import Key, Obj, uid_of
from shoal.kube.times import rfc3339
from shoal.logs import Logger
from shoal.operator.loops import subscribed
from shoal.scheduling import Bind, Plan, Pod, Snapshot, Wait, plan
from shoal.scheduling.requests import requests_of
from shoal.scheduling.snapshot import FINISHED, Node, node_from, pod_from

log = Logger(__name__)

BINDS_AT_ONCE = 16
PAUSE_SECONDS = 1.0


class Scheduler:
    name = "scheduler"

    def __init__(
        self, cluster: Cluster, nodes: Reflector, pods: Reflector, *, recorder: Recorder, clock: Clock
    ) -> None:
        self._cluster = cluster
        self._node_copies = nodes
        self._pods = pods
        self._recorder = recorder
        self._clock = clock
        self._nodes: dict[Key, Node] = {}
        self._waiting: dict[Key, Pod] = {}
        self._placed: dict[Key, tuple[str, Mapping[str, int]]] = {}
        self._told: dict[Key, str] = {}
        self._news = asyncio.Event()
        self._at_once = asyncio.Semaphore(BINDS_AT_ONCE)

    async def run(self) -> None:
        with subscribed((self._node_copies, self._node_changed), (self._pods, self._pod_changed)):
            await self._node_copies.synced.wait()
            await self._pods.synced.wait()
            while True:
                await self._news.wait()
                self._news.clear()
                await self._carry_out(plan(self._snapshot()))

    def _snapshot(self) -> Snapshot:
        return Snapshot(
            tuple(sorted(self._nodes.values(), key=lambda node: node.name)),
            tuple(self._placed.values()),
            tuple(self._waiting.values()),
        )

    def _node_changed(self, change: Change) -> None:
        seen = node_from(change.new) if change.new else None
        if seen == self._nodes.get(change.key):
            return  # a heartbeat changes nothing here
        if seen is None:
            del self._nodes[change.key]
        else:
            self._nodes[change.key] = seen
        self._news.set()

    def _pod_changed(self, change: Change) -> None:
        pod = change.new
        held = self._placed.pop(change.key, None)
        self._waiting.pop(change.key, None)
        if pod is None or (pod.get("status") or {}).get("phase") in FINISHED:
            self._told.pop(change.key, None)
            if held:
                self._news.set()
        elif node := pod["spec"].get("nodeName"):
            self._placed[change.key] = held or (node, requests_of(pod))
        elif held and change.old and uid_of(change.old) == uid_of(pod):
            self._placed[change.key] = held  # bound by us, and the watch has not got there yet
        elif not pod["spec"].get("schedulingGates") and not pod["metadata"].get("deletionTimestamp"):
            self._waiting[change.key] = pod_from(pod)
            self._news.set()

    async def _carry_out(self, made: Plan) -> None:
        pods = self._pods.objects
        for bind in made.binds:
            self._placed[bind.pod] = (bind.node, self._waiting.pop(bind.pod).requests)
        async with asyncio.TaskGroup() as group:
            for bind in made.binds:
                group.create_task(self._bind(bind, pods.get(bind.pod)))
            for wait in made.waits:
                group.create_task(self._tell(wait, pods.get(wait.pod)))

    async def _bind(self, bind: Bind, pod: Obj | None) -> None:
        try:
            async with self._at_once:
                await self._cluster.bind(bind.pod.name, bind.pod.namespace, node=bind.node, uid=bind.uid)
        except ApiError as refused:
            log.info("bind refused", pod=str(bind.pod), node=bind.node, message=refused.message)
            self._placed.pop(bind.pod, None)
            if refused.code not in (404, 409):  # gone or placed by somebody: the watch tells
                self._try_again(bind, pod)
        except OutcomeUnknown:
            self._try_again(bind, pod)
        else:
            self._told.pop(bind.pod, None)
            if pod:
                where = f"Successfully assigned {bind.pod} to {bind.node}"
                with suppress(ApiError, OutcomeUnknown):  # the pod has its place, whoever hears of it
                    await self._recorder.record(pod, "Normal", "Scheduled", where)

    def _try_again(self, bind: Bind, pod: Obj | None) -> None:
        """After a moment, unless the watch has shown a placement by then. Binding twice does no harm: 409."""
        if pod is not None:
            change = Change(POD, bind.pod, None, pod)
            self._clock.call_later(PAUSE_SECONDS, lambda: self._unless_placed(change))

    def _unless_placed(self, change: Change) -> None:
        seen = self._pods.objects.get(change.key)
        if seen and change.new and uid_of(seen) == uid_of(change.new):
            self._placed.pop(change.key, None)
            self._pod_changed(Change(POD, change.key, None, seen))

    async def _tell(self, wait: Wait, pod: Obj | None) -> None:
        if pod is None or self._told.get(wait.pod) == wait.sentence:
            return
        known = condition_of(pod, "PodScheduled")
        self._told[wait.pod] = wait.sentence
        if known and known.get("message") == wait.sentence:
            return
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": wait.sentence,
            "lastTransitionTime": (known or {}).get("lastTransitionTime") or rfc3339(self._clock.now()),
        }
        try:
            await self._cluster.patch(
                POD,
                wait.pod.name,
                wait.pod.namespace,
                patch={"metadata": {"uid": wait.uid}, "status": {"conditions": [condition]}},
                patch_type=PatchType.STRATEGIC,
                subresource="status",
            )
            await self._recorder.record(pod, "Warning", "FailedScheduling", wait.sentence)
        except (ApiError, OutcomeUnknown):
            self._told.pop(wait.pod, None)  # gone meanwhile, or told again after the next change
