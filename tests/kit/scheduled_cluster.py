"""A simulated cluster with our scheduler at work: nodes, queues, groups and pods in one line each.

Time is virtual. Pods run as soon as they are bound and go as soon as they are told to, unless a test says otherwise.
`calls` are the scheduler's requests; it can be disturbed by faults, killed and started again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

from prometheus_client import CollectorRegistry

from kit.preloaded_cluster import founded
from kit.virtual_time import rested, settled
from shoal.cluster.client import DeleteOptions, PatchType
from shoal.cluster.event_recorder import EventRecorder
from shoal.cluster.fault_injection import Call, Faults
from shoal.cluster.informer import Change, Informer
from shoal.cluster.simulated import SimulatedCluster
from shoal.dialects.volcano import DIALECT
from shoal.kube.conditions import condition_of
from shoal.kube.errors import ApiError
from shoal.kube.kinds import CUSTOM_RESOURCE_DEFINITION, EVENT, NODE, POD, REPLICA_SET, SERVICE_ACCOUNT, Kind
from shoal.kube.objects import Obj, annotations_of, at_path, is_terminating, name_of
from shoal.kube.owners import owner_reference
from shoal.scheduler.api.pod_groups import COMMAND, GROUP_NAME, POD_GROUP, QUEUE
from shoal.scheduler.metrics import SchedulerMetrics
from shoal.scheduler.planner import planner
from shoal.scheduler.planner.gang_types import PlannerSettings
from shoal.scheduler.scheduler import Scheduler
from shoal.scheduler.scope import SchedulerScope
from shoal.scheduler.transforms import slim_pod

NS = "default"
TASK = "volcano.sh/task-spec"


def _drop_rules(schema: Any) -> None:
    if isinstance(schema, dict):
        schema.pop("x-kubernetes-validations", None)
    for below in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        _drop_rules(below)


class Scheduled:
    def __init__(
        self,
        *,
        faults: Faults | None = None,
        scope: SchedulerScope | None = None,
        quiet_seconds: float = 0.0,
        **settings: Any,
    ) -> None:
        assert planner  # loaded with this module, so that a virtual clock never runs ahead of it
        self._founded = founded(0, DIALECT)
        self.cluster = self._founded.embedded
        self.clock = self._founded.clock
        self.lives: list[SimulatedCluster] = []
        self.scope = scope or SchedulerScope()
        self.settings = PlannerSettings(**settings)
        self._quiet_seconds = quiet_seconds
        self.registry = CollectorRegistry()
        self._metrics = SchedulerMetrics(self.registry)
        self.reborn = False  # whether one that died starts again at once
        self.pods_run = True  # as soon as they are bound
        self.pods_leave = True  # as soon as they are told to
        self._faults = faults
        self._controllers: list[Obj] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._playing: set[asyncio.Task[None]] = set()
        self.scheduler: Scheduler

    # The scheduler's lives

    async def start(self, faults: Faults | None = None) -> None:
        self.begin(faults)
        await self.rest()

    def begin(self, faults: Faults | None) -> None:
        program = self._founded.new_client(faults)
        self.lives.append(program)
        nodes = Informer(program, NODE, clock=self.clock)
        pods = Informer(program, POD, trim=lambda event: slim_pod(event.object), clock=self.clock)
        self.scheduler = Scheduler(
            program, nodes, pods,
            scope=self.scope, settings=self.settings, clock=self.clock,
            recorder=EventRecorder(program, "scheduler", clock=self.clock), metrics=self._metrics,
            quiet_seconds=self._quiet_seconds,
        )  # fmt: skip
        self._tasks = [asyncio.create_task(part.run()) for part in (nodes, pods, self.scheduler)]

    async def kill(self) -> None:
        self.lives[-1].is_dead = True
        await self.stop()

    async def stop(self) -> None:
        """As a loop that broke: the process, and what it may write, lives on."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def written(self) -> list[Call]:
        """Everything any life wrote, Events left out."""
        calls = [call for life in self.lives for call in life.calls]
        return [call for call in calls if call.is_write and call.kind != EVENT]

    # What there is

    async def node(self, name: str, *, cpu: int = 4, labels: Mapping[str, str] | None = None, **more: str) -> None:
        room = {"cpu": str(cpu), "memory": "8Gi", "pods": "110", **more}
        status = {"allocatable": room, "capacity": room, "conditions": [{"type": "Ready", "status": "True"}]}
        await self.cluster.create(NODE, {"metadata": {"name": name, "labels": dict(labels or {})}, "status": status})
        await self.rest()

    async def queue(self, name: str, **spec: Any) -> None:
        await self.cluster.create(QUEUE, {"metadata": {"name": name}, "spec": spec})
        await self.rest()

    async def forget_rules(self, kind: Kind) -> None:
        """Serve the kind by a definition that has no rules in CEL, as other projects' have none."""
        definition = await self.cluster.get(CUSTOM_RESOURCE_DEFINITION, kind.resource)
        _drop_rules(definition)
        await self.cluster.patch(
            CUSTOM_RESOURCE_DEFINITION,
            kind.resource,
            patch={"spec": {"versions": definition["spec"]["versions"]}},
            patch_type=PatchType.MERGE,
        )

    async def group(self, name: str, least: int, *, notes: Mapping[str, str] | None = None, **spec: Any) -> None:
        metadata = {"name": name, "annotations": dict(notes or {})}
        await self.cluster.create(POD_GROUP, {"metadata": metadata, "spec": {"minMember": least, **spec}}, NS)
        await self.rest()

    async def pods(self, group: str, count: int, *, first: int = 0, cpu: int = 1, role: str = "", **spec: Any) -> None:
        """Members of a group; of none where its name is ''."""
        for number in range(first, first + count):
            notes = {GROUP_NAME: group} if group else {}
            notes |= {TASK: role} if role else {}
            name = "-".join(word for word in (group or "lone", role, str(number)) if word)
            await self.pod(name, notes=notes, cpu=cpu, **spec)
        await self.rest()

    async def pod(
        self,
        name: str,
        *,
        notes: Mapping[str, str] | None = None,
        cpu: int | str = 1,
        controlled: bool = True,
        **spec: Any,
    ) -> None:
        """`controlled`: some controller would recreate it."""
        container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": str(cpu)}}}
        metadata = {
            "name": name,
            "annotations": dict(notes or {}),
            "ownerReferences": self._controllers if controlled else [],
        }
        await self.cluster.create(POD, {"metadata": metadata, "spec": {"containers": [container], **spec}}, NS)

    async def gang(self, name: str, count: int, *, cpu: int = 1, least: int | None = None, **spec: Any) -> None:
        """A group and its pods, as if nobody waited for it to be let in."""
        await self.group(name, count if least is None else least, **spec)
        await self.pods(name, count, cpu=cpu)

    async def order(self, action: str, queue: str) -> None:
        target = {"apiVersion": QUEUE.api_version, "kind": "Queue", "name": queue}
        made = {"metadata": {"name": f"{action.lower()}-{queue}"}, "action": action, "target": target}
        await self.cluster.create(COMMAND, made, NS)
        await self.rest(2)

    async def becomes(self, name: str, phase: str, **status: Any) -> None:
        patch = {"status": {"phase": phase, **status}}
        await self.cluster.patch(POD, name, NS, patch=patch, patch_type=PatchType.STRATEGIC, subresource="status")
        await self.rest()

    async def ends(self, *names: str) -> None:
        for name in names:
            await self.becomes(name, "Succeeded")

    # What can be seen

    async def places(self) -> dict[str, str]:
        """Each pod and its node; '' where it has none."""
        found = (await self.cluster.list(POD, NS)).items
        return {name_of(pod): pod["spec"].get("nodeName") or "" for pod in sorted(found, key=name_of)}

    async def placed(self) -> list[str]:
        return [name for name, node in (await self.places()).items() if node]

    async def phase(self, group: str) -> str:
        return str(at_path(await self.cluster.get(POD_GROUP, group, NS), "status", "phase", default=""))

    async def told(self, group: str) -> tuple[str, str, str]:
        """The type, reason and message of the group's condition."""
        found = at_path(await self.cluster.get(POD_GROUP, group, NS), "status", "conditions", default=[])
        assert len(found) < 2, found
        return tuple(found[0][word] for word in ("type", "reason", "message")) if found else ("", "", "")

    async def pod_told(self, name: str) -> tuple[str, str, str]:
        found = condition_of(await self.cluster.get(POD, name, NS), "PodScheduled") or {}
        return found.get("status", ""), found.get("reason", ""), found.get("message", "")

    async def queues(self) -> dict[str, str]:
        found = (await self.cluster.list(QUEUE)).items
        return {name_of(queue): at_path(queue, "status", "state", default="") for queue in found}

    async def orders(self) -> list[str]:
        return [name_of(order) for order in (await self.cluster.list(COMMAND)).items]

    async def events(self, reason: str) -> list[tuple[str, str]]:
        found = (await self.cluster.list(EVENT)).items
        return sorted((e["involvedObject"]["name"], e["message"]) for e in found if e["reason"] == reason)

    async def group_notes(self, name: str) -> dict[str, str]:
        return annotations_of(await self.cluster.get(POD_GROUP, name, NS))

    # Time

    async def rest(self, seconds: float = 0) -> None:
        await rested(self.clock, seconds, self._settled)

    async def _settled(self) -> None:
        await settled()
        while self.reborn and self.lives[-1].is_dead:
            await self.kill()
            self.begin(None)
            await settled()

    # The nodes

    def _pod_changed(self, change: Change) -> None:
        pod = change.new
        if pod is None or not pod["spec"].get("nodeName"):
            return
        phase = at_path(pod, "status", "phase")
        if is_terminating(pod):
            if self.pods_leave:
                self._play(self._leave(pod))
        elif phase == "Pending" and self.pods_run:
            self._play(self._runs(pod))

    def _play(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._playing.add(task)
        task.add_done_callback(self._playing.discard)

    async def _runs(self, pod: Obj) -> None:
        status = {"phase": "Running", "startTime": _moment(self.clock)}
        await self.cluster.patch(POD, name_of(pod), NS, patch={"status": status}, subresource="status")

    async def _leave(self, pod: Obj) -> None:
        with suppress(ApiError):  # it was told to go twice, and has gone
            await self.cluster.delete(POD, name_of(pod), NS, DeleteOptions(grace_seconds=0))

    async def opened(self) -> None:
        await self.cluster.create(SERVICE_ACCOUNT, {"metadata": {"name": "default"}}, NS)
        selector, template = {"matchLabels": {"app": "rs"}}, {"metadata": {"labels": {"app": "rs"}}}
        template["spec"] = {"containers": [{"name": "main", "image": "x"}]}
        spec = {"replicas": 0, "selector": selector, "template": template}
        controller = await self.cluster.create(REPLICA_SET, {"metadata": {"name": "rs"}, "spec": spec}, NS)
        self._controllers = [owner_reference(controller)]
        watching = Informer(self._founded.new_client(), POD, on_change=self._pod_changed, clock=self.clock)
        self._play(watching.run())
        await self.start(self._faults)

    async def closed(self) -> None:
        await self.kill()
        for task in list(self._playing):
            task.cancel()
        await asyncio.gather(*self._playing, return_exceptions=True)


def _moment(clock: Any) -> str:
    from shoal.kube.times import rfc3339

    return rfc3339(clock.now())


@asynccontextmanager
async def scheduled(
    faults: Faults | None = None, scope: SchedulerScope | None = None, *, quiet_seconds: float = 0.0, **settings: Any
) -> AsyncIterator[Scheduled]:
    made = Scheduled(faults=faults, scope=scope, quiet_seconds=quiet_seconds, **settings)
    await made.opened()
    try:
        yield made
    finally:
        await made.closed()
