"""The stages for scenarios of Volcano Jobs, simulated and real: `kit.scenario` with the words of this language.

Groups are let in by the program that does so on every cluster of our own; it is disturbed only where a scenario is
about it, and then begins another life at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from prometheus_client import CollectorRegistry

from kit.embedded_world import RealWorld
from kit.fault_matrix import Worlds
from kit.fault_matrix import scenario as any_scenario
from kit.kubernetes_world import KubernetesWorld, Retold
from kit.scenario import NAMESPACE, SimulatedWorld, World, plain
from shoal.cluster.client import Cluster
from shoal.cluster.clock import Clock, SystemClock
from shoal.cluster.event_recorder import EventRecorder
from shoal.cluster.fault_injection import Faults
from shoal.cluster.informer import Informer
from shoal.cluster.simulated import SimulatedCluster
from shoal.dialects.volcano import DIALECT, settings
from shoal.dialects.volcano.commands import new_command
from shoal.kube.kinds import CONFIG_MAP, EVENT, NODE, PERSISTENT_VOLUME_CLAIM, POD, SECRET, SERVICE
from shoal.kube.objects import Obj, annotations_of, uid_of
from shoal.scheduler.api.pod_groups import COMMAND, POD_GROUP, QUEUE
from shoal.scheduler.metrics import SchedulerMetrics
from shoal.scheduler.planner import planner
from shoal.scheduler.scheduler import Scheduler
from shoal.scheduler.scope import SchedulerScope

FINAL = ("Completed", "Failed", "Terminated")
ROOM = {"cpu": "64", "memory": "256Gi", "pods": "200"}


def door(
    cluster: Cluster,
    nodes: Informer,
    pods: Informer,
    clock: Clock,
    namespace: str | None = None,
    *,
    places: bool = False,
) -> Scheduler:
    """Our scheduler, which lets groups in and, unless it `places` them, leaves pods to whoever does in this world."""
    assert planner  # loaded with this module, so that a virtual clock never runs ahead of it
    return Scheduler(
        cluster, nodes, pods,
        scope=SchedulerScope(schedulers=None if places else frozenset(), namespace=namespace), clock=clock,
        recorder=EventRecorder(cluster, "scheduler", clock=clock), metrics=SchedulerMetrics(CollectorRegistry()),
    )  # fmt: skip


class VolcanoWorld(World):
    """What a user of Volcano Jobs does and sees."""

    dialect = DIALECT

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.groups: dict[str, Obj] = {}
        self.services: dict[str, Obj] = {}
        self.secrets: dict[str, Obj] = {}
        self.claims: dict[str, Obj] = {}
        self.commands: dict[str, Obj] = {}
        self.queues: dict[str, Obj] = {}
        self.events: dict[str, Obj] = {}
        self.births: dict[str, list[Obj]] = {}  # pods as they were made, by name
        self.went: list[str] = []  # names of groups and companions that have gone
        self._told: dict[str, tuple[str, Obj]] = {}  # the last status of each job, with the uid it was told of
        self._tables |= {
            POD_GROUP.resource: self.groups,
            SERVICE.resource: self.services,
            SECRET.resource: self.secrets,
            PERSISTENT_VOLUME_CLAIM.resource: self.claims,
            COMMAND.resource: self.commands,
            QUEUE.resource: self.queues,
            EVENT.resource: self.events,
        }

    # What a user does

    async def command(self, name: str, action: str) -> Obj:
        return await self.user.create(COMMAND, new_command(self.frameworks[name], action), NAMESPACE)

    async def resize(self, name: str, replicas: int, *, task: int = 0, least: int | None = None) -> None:
        """The task's size and minimum and the job's minimum, in one patch."""
        minimum = least if least is not None else replicas
        path = f"/spec/tasks/{task}"
        await self.patch(
            name,
            {"op": "replace", "path": f"{path}/replicas", "value": replicas},
            {"op": "replace", "path": f"{path}/minAvailable", "value": minimum},
            {"op": "replace", "path": "/spec/minAvailable", "value": minimum},
        )

    # What a user sees

    def job(self, name: str) -> Obj:
        return self.frameworks.get(name) or {}

    def phase(self, name: str) -> str:
        return str((self.status(name).get("state") or {}).get("phase") or "")

    def phases(self, name: str) -> list[str]:
        """As they changed."""
        found: list[str] = []
        for status in self.statuses[name]:
            phase = (status.get("state") or {}).get("phase")
            if phase and (not found or found[-1] != phase):
                found.append(phase)
        return found

    def counts(self, name: str) -> dict[str, int]:
        words = ("pending", "running", "succeeded", "failed", "terminating", "unknown")
        return {word: self.status(name)[word] for word in words if self.status(name).get(word)}

    def group(self, name: str) -> Obj:
        return next((g for g in self.groups.values() if g["metadata"]["name"].startswith(f"{name}-")), {})

    def pods_of(self, name: str) -> dict[str, str]:
        """Names and phases, leaving ones included."""
        return {
            pod: str((obj.get("status") or {}).get("phase") or "Pending")
            for pod, obj in sorted(self.pods.items())
            if annotations_of(obj).get("volcano.sh/job-name") == name
        }

    def uids_of(self, name: str) -> dict[str, str]:
        return {pod: uid_of(self.pods[pod]) for pod in self.pods_of(name)}

    def reasons(self, name: str) -> list[str]:
        """Of Events about the job, in the order of their first time."""
        uid = uid_of(self.job(name))
        about = [event for event in self.events.values() if event["involvedObject"].get("uid") == uid]
        return [str(event["reason"]) for event in about]

    # What a user waits for

    async def in_phase(self, name: str, phase: str) -> Obj:
        await self.until(lambda: self.phase(name) == phase)
        return self.status(name)

    async def up(self, name: str, count: int) -> None:
        """Running, with so many running pods."""
        await self.until(lambda: self.phase(name) == "Running" and self.counts(name) == {"running": count})

    # What is recorded

    def wrote(self, resource: str, name: str, obj: Obj | None) -> None:
        if obj is None and resource in (SERVICE.resource, SECRET.resource, CONFIG_MAP.resource):
            self.went.append(name)
        super().wrote(resource, name, obj)
        if resource == self.dialect.kind.resource and obj is not None:
            self.promises.broken += self._of_job(name)

    def _record(self, objects: dict[str, Obj], name: str, obj: Obj) -> None:
        if objects is self.pods and uid_of(obj) not in self.uids[name]:
            self.births.setdefault(name, []).append(obj)
        super()._record(objects, name, obj)

    def _of_job(self, name: str) -> Iterator[str]:
        """What must hold of every Job after every write; one made anew under an old name begins a new story."""
        after, uid = self.status(name), uid_of(self.job(name))
        if not after.get("state"):
            return
        told_of, before = self._told.get(name, (uid, after))
        self._told[name] = uid, after
        if told_of != uid:
            return
        if before["state"]["phase"] in FINAL and after["state"]["phase"] != before["state"]["phase"]:
            yield f"{name} was {before['state']['phase']} and is {after['state']['phase']}"
        for word in ("version", "retryCount"):
            if after.get(word, 0) < before.get(word, 0):
                yield f"the {word} of {name} fell"

    def _of_world(self, varies: tuple[str, ...]) -> Obj:
        """Everything the operator made, without what differs from run to run."""
        fleeting = (*varies, "runningDuration", "conditions")
        statuses = {name: obj.get("status") for name, obj in sorted(self.frameworks.items())}
        return {
            "jobs": {name: plain(status, fleeting) for name, status in statuses.items()},
            "pods": {name: (obj.get("status") or {}).get("phase") for name, obj in sorted(self.pods.items())},
            "groups": [plain(group.get("spec"), fleeting) for _, group in sorted(self.groups.items())],
            "services": sorted(self.services),
            "configMaps": {name: obj.get("data") for name, obj in sorted(self.config_maps.items())},
            "secrets": sorted(self.secrets),
            "claims": len(self.claims),
            "commands": sorted(self.commands),
        }


class SimulatedVolcano(VolcanoWorld, SimulatedWorld):
    """Virtual time, one node of ample size unless a scenario makes it smaller."""

    room: Mapping[str, str] = ROOM
    scheduler_faults: Faults | None = None  # of its first life
    is_crowded = False  # our scheduler places the pods, and so decides who gives way

    def __init__(
        self, seed: int = 0, *, plan: Callable[[int], Faults] | None = None, config: Obj | None = None
    ) -> None:
        super().__init__(seed, plan=plan, config=config)
        self.gate = self.cluster.new_client()
        self.schedulers: list[SimulatedCluster] = []  # the lives of ours
        self.kubelet.places = not self.is_crowded

    def settings(self, config: Obj | None) -> Any:
        return settings(config or {})

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        await self.gate.create(NODE, {"metadata": {"name": "node-1"}})
        await self.set_room(self.room)
        self.start_scheduler(self.scheduler_faults)
        await self.until(lambda: len(self.queues) == 2)
        return self

    def start_scheduler(self, faults: Faults | None = None) -> None:
        life, clock = self.cluster.new_client(faults), self.cluster.clock
        nodes, pods = Informer(life, NODE, clock=clock), Informer(life, POD, clock=clock)
        gangs = door(life, nodes, pods, clock, places=self.is_crowded)
        self.schedulers.append(life)
        self._tasks += [asyncio.create_task(part.run()) for part in (nodes, pods, gangs)]

    async def settle(self) -> None:
        await super().settle()
        while self.schedulers and self.schedulers[-1].is_dead:  # all its requests fail from here on, and its loops end
            self.start_scheduler()
            await super().settle()

    async def set_room(self, amounts: Mapping[str, str]) -> None:
        ready = {"type": "Ready", "status": "True"}
        status = {"allocatable": dict(amounts), "capacity": dict(amounts), "conditions": [ready]}
        await self.gate.patch(NODE, "node-1", patch={"status": status}, subresource="status")

    def picture(self, varies: tuple[str, ...] = ()) -> Obj:
        return self._of_world(varies)


class RealVolcano(VolcanoWorld, RealWorld):
    def settings(self, config: Obj | None) -> Mapping[str, Any]:
        return {"volcano": settings(config or {})}


class RetoldVolcano(VolcanoWorld, Retold):
    """What was heard of Volcano Jobs, told again in its order."""


class KubernetesVolcano(VolcanoWorld, KubernetesWorld):
    """On a real Kubernetes, whose own scheduler places the pods; groups are let in by our program."""

    watched = (DIALECT.kind, POD, CONFIG_MAP, POD_GROUP, SERVICE, SECRET, PERSISTENT_VOLUME_CLAIM, COMMAND, EVENT)
    retold = RetoldVolcano

    def settings(self, config: Obj | None) -> Any:
        return settings(config or {})

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        clock = SystemClock()
        nodes = Informer(self.cluster, NODE, clock=clock)
        # Other scenarios play beside this one: their groups have a program of their own, and their pods go soon.
        pods = Informer(self.cluster, POD, self.namespace, clock=clock)
        gangs = door(self.cluster, nodes, pods, clock, self.namespace)
        self._tasks += [asyncio.create_task(part.run()) for part in (nodes, pods, gangs)]
        return self

    async def submit(self, manifest: Obj) -> Obj:
        spec = {**manifest["spec"], "schedulerName": "default-scheduler"}
        # Where nobody asks our admission the defaults are the manifest's own business.
        return await super().submit(self.dialect.default({**manifest, "spec": spec}))


WORLDS = Worlds(
    SimulatedVolcano,
    RealVolcano,
    KubernetesVolcano,
    watched=(DIALECT.kind, POD, POD_GROUP, COMMAND, CONFIG_MAP, SERVICE),
)


class CrowdedSimulation(SimulatedVolcano):
    """Room for four pods of one cpu each, and a scheduler that makes room for those who deserve it."""

    room = ROOM | {"cpu": "4"}
    is_crowded = True


class CrowdedMachine(RealVolcano):
    def __init__(self, folder: Path, *, config: Obj | None = None) -> None:
        super().__init__(folder, config=config, capacity={"cpu": "4"})


CROWDED = replace(WORLDS, simulated=CrowdedSimulation, embedded=CrowdedMachine, kubernetes=None)


def scenario(
    *,
    real: bool = True,
    kubernetes: bool = False,
    varies: tuple[str, ...] = (),
    thorough: bool = False,
    outages: bool = True,
) -> Any:
    """As for Frameworks; only a few are disturbed at every single write and event, the others by chance, and a chosen
    third plays on Kubernetes."""
    worlds = WORLDS if kubernetes else replace(WORLDS, kubernetes=None)
    return any_scenario(real=real, varies=varies, worlds=worlds, thorough=thorough, outages=outages)
