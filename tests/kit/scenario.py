"""The stage on which scenarios are played: what a test may do to a cluster that runs Frameworks, and what it can see.

A scenario is written once, against `World`. `SimulatedWorld` plays it on the virtual clock with a fake node, and lets
the operator die or hear badly; `kit.embedded_world` plays it with real processes. What happens is recorded at every
write of the store, and every write must keep the promises in `kit.scenario_invariants`.
"""

from __future__ import annotations

import asyncio
import random
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Self

from prometheus_client import CollectorRegistry

from kit.fake_kubelet import FakeKubelet
from kit.preloaded_cluster import founded
from kit.scenario_invariants import Promises
from kit.virtual_time import rested, turn
from shoal.cluster.apimachinery import Machinery
from shoal.cluster.client import Cluster, DeleteOptions, DeletionPropagation, PatchType, Preconditions
from shoal.cluster.fault_injection import Call, Faults, FaultTiming, ProgramKilled, RequestFault, WatchDisruption
from shoal.cluster.simulated import SimulatedCluster
from shoal.cluster.store import Table
from shoal.cluster.types import Stored
from shoal.controller_runtime.metrics import Metrics
from shoal.dialects.dialect import Dialect
from shoal.dialects.framework import DIALECT, settings
from shoal.kube.errors import ApiError
from shoal.kube.kinds import CONFIG_MAP, POD
from shoal.kube.objects import Obj, uid_of
from shoal.operator.embedded import JobReconciler

FRAMEWORK = DIALECT.kind
NAMESPACE = "default"
MOST_TURNS = 20_000  # of everybody, between two ticks of the clock


class World(ABC):
    """A cluster with Frameworks, as the user of a scenario sees it."""

    is_real = False
    has_processes = False  # there are real worlds of hollow pods too
    is_disturbed = False
    namespace = NAMESPACE  # where its objects really are
    dialect: Dialect = DIALECT  # the language of its jobs

    def __init__(self) -> None:
        self.frameworks: dict[str, Obj] = {}
        self.pods: dict[str, Obj] = {}
        self.config_maps: dict[str, Obj] = {}
        self.uids: defaultdict[str, list[str]] = defaultdict(list)  # of every pod there has been, by name
        self.anchors: defaultdict[str, list[str]] = defaultdict(list)
        self.states: defaultdict[str, list[str]] = defaultdict(list)  # each Framework's states, as they changed
        self.statuses: defaultdict[str, list[Obj]] = defaultdict(list)
        self.snapshots: list[Any] = []
        self.promises = Promises(self)
        self._tables = {
            self.dialect.kind.resource: self.frameworks,
            POD.resource: self.pods,
            CONFIG_MAP.resource: self.config_maps,
        }

    def look_at(self, machinery: Machinery, user: Cluster) -> None:
        """The cluster this world is about; from here on every write is recorded."""
        self.machinery, self.user = machinery, user
        machinery.store.observers.append(self._observe)

    def look_away(self) -> None:
        """Record nothing more; for measurements."""
        self.machinery.store.observers.remove(self._observe)

    # What a user does

    async def submit(self, manifest: Obj) -> Obj:
        return await self.user.create(self.dialect.kind, manifest, NAMESPACE)

    async def patch(self, name: str, *operations: Obj) -> Obj:
        kind = self.dialect.kind
        return await self.user.patch(kind, name, NAMESPACE, patch=list(operations), patch_type=PatchType.JSON)

    async def set(self, name: str, **values: Any) -> Obj:
        """Replace parts of the spec: set("a", executionType="Stop"); `__` stands for / in the path."""
        paths = {path.replace("__", "/"): value for path, value in values.items()}
        return await self.patch(
            name, *({"op": "replace", "path": f"/spec/{path}", "value": value} for path, value in paths.items())
        )

    async def rescale(
        self, name: str, number: int, *, role: int = 0, failed: int | None = None, ok: int | None = None
    ) -> None:
        """One patch: the size and, where given, the completion policy."""
        path = f"/spec/taskRoles/{role}"
        policy = {"minFailedTaskCount": failed, "minSucceededTaskCount": ok}
        operations = [{"op": "replace", "path": f"{path}/taskNumber", "value": number}]
        for field, value in policy.items():
            if value is not None:
                operations.append(
                    {"op": "replace", "path": f"{path}/frameworkAttemptCompletionPolicy/{field}", "value": value}
                )
        await self.patch(name, *operations)

    async def delete(self, name: str, propagation: DeletionPropagation = DeletionPropagation.FOREGROUND) -> None:
        await self.user.delete(self.dialect.kind, name, NAMESPACE, DeleteOptions(propagation=propagation))

    async def delete_pod(self, name: str) -> str:
        """The uid of the pod that is told to go."""
        uid = uid_of(self.pods[name])
        self.promises.removed_by_user.add(uid)
        await self.user.delete(POD, name, NAMESPACE, DeleteOptions(preconditions=Preconditions(uid=uid)))
        return uid

    async def delete_config_map(self, name: str) -> None:
        await self.user.delete(CONFIG_MAP, name, NAMESPACE)

    # What a user sees

    def status(self, name: str) -> Obj:
        found: Obj = (self.frameworks.get(name) or {}).get("status") or {}
        return found

    def state(self, name: str) -> str:
        return str(self.status(name).get("state") or "")

    def attempt(self, name: str) -> Obj:
        found: Obj = self.status(name).get("attemptStatus") or {}
        return found

    def tasks(self, name: str, role: int | str = 0) -> list[Obj]:
        roles = self.attempt(name).get("taskRoleStatuses") or []
        if isinstance(role, str):
            found = next((each for each in roles if each["name"] == role), {"taskStatuses": []})
        else:
            found = roles[role] if role < len(roles) else {"taskStatuses": []}
        tasks: list[Obj] = found["taskStatuses"]
        return tasks

    def task(self, name: str, index: int = 0, role: int | str = 0) -> Obj:
        return next((task for task in self.tasks(name, role) if task["index"] == index), {})

    def codes(self, name: str, role: int | str = 0) -> list[int | None]:
        found = (task["attemptStatus"]["completionStatus"] for task in self.tasks(name, role))
        return [completion["code"] if completion else None for completion in found]

    def code(self, name: str) -> int | None:
        completion = self.attempt(name).get("completionStatus")
        return completion["code"] if completion else None

    def is_completed(self, name: str) -> bool:
        return self.state(name) == "Completed"

    def are_running(self, name: str, count: int, role: int | str = 0) -> bool:
        return [t["state"] for t in self.tasks(name, role)].count("AttemptRunning") == count

    def picture(self, varies: tuple[str, ...] = ()) -> Obj:
        """How everything stands, without names and times that differ from run to run, and without what `varies`."""
        statuses = {name: obj.get("status") for name, obj in sorted(self.frameworks.items())}
        return {
            "frameworks": {name: plain(status, varies) for name, status in statuses.items()},
            "pods": sorted(self.pods),
            "configMaps": sorted(self.config_maps),
        }

    # What a user waits for

    @abstractmethod
    async def until(self, is_so: Callable[[], bool]) -> None:
        """Until it is so, told by events and never by asking again after a while."""

    async def completed(self, name: str) -> Obj:
        await self.until(lambda: self.is_completed(name))
        return self.status(name)

    async def running(self, name: str, count: int, role: int | str = 0) -> None:
        await self.until(lambda: self.are_running(name, count, role))

    @abstractmethod
    async def rest(self, seconds: float) -> None:
        """Let time pass where it costs nothing; elsewhere until the operator has done all it has to do now.

        Either way, whatever an operator would do without being asked to, it has done by then.
        """

    # What is recorded

    def _observe(self, table: Table, before: Stored | None, after: Stored | None) -> None:
        stored = after or before
        if table.resource in self._tables and stored is not None and stored.key.namespace in (NAMESPACE, ""):
            self.wrote(table.resource, stored.key.name, after.obj() if after is not None else None)

    def wrote(self, resource: str, name: str, obj: Obj | None) -> None:
        """One write, in the order in which they were made; None where the object went."""
        objects = self._tables[resource]
        old = objects.pop(name, None)
        if obj is not None:
            objects[name] = obj
            self._record(objects, name, obj)
        self.promises.after_write(resource, name, old, obj)
        self._changed()

    def _record(self, objects: dict[str, Obj], name: str, obj: Obj) -> None:
        if objects is self.frameworks:
            status = obj.get("status") or {}
            if status and (not self.statuses[name] or self.statuses[name][-1] != status):
                self.statuses[name].append(status)
            state = status.get("state")
            if state and (not self.states[name] or self.states[name][-1] != state):
                self.states[name].append(state)
            return
        uids = (self.uids if objects is self.pods else self.anchors)[name]
        if uid_of(obj) not in uids:
            uids.append(uid_of(obj))

    @abstractmethod
    def _changed(self) -> None:
        """Something was written."""


class SimulatedWorld(World):
    """Virtual time; the operator may be killed by its faults and is started again at once."""

    def __init__(
        self, seed: int = 0, *, plan: Callable[[int], Faults] | None = None, config: Obj | None = None
    ) -> None:
        super().__init__()
        self.cluster = founded(seed, self.dialect)
        self.look_at(self.cluster.machinery, self.cluster)
        self.is_disturbed = plan is not None
        self._plan = plan or (lambda _: Faults())
        self._chance = random.Random(seed)
        self.config = self.settings(config)
        self.coalesce_seconds = 0.0  # of every life that starts from here on
        self.pod_refusal: ApiError | None = None  # how the API answers every creation of a pod, while it is set
        self.hidden: set[str] = set()  # uids of pods the operator's watches never show
        self.outage_seconds = 0.0  # between the death of an operator by its faults and the start of the next
        self.lives: list[SimulatedCluster] = []
        self.kubelet = FakeKubelet(self.cluster.new_client(), self.cluster.clock)
        self._tasks: list[asyncio.Task[None]] = []
        self._operator: asyncio.Task[None] | None = None

    def settings(self, config: Obj | None) -> Any:
        return settings({**(config or {})}, relaxed=True)

    async def __aenter__(self) -> Self:
        asyncio.get_running_loop().set_exception_handler(_pass_over_kills)
        self._tasks.append(asyncio.create_task(self.kubelet.run()))
        self.start_operator()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.kill_operator()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # The operator's lives

    def start_operator(self, **config: Any) -> None:
        """Another life, on what the last one left; `config` changes settings."""
        life = self.cluster.new_client(self._with_refusals(self._plan(len(self.lives))))
        self.lives.append(life)
        if config:
            self.config = self.config.model_copy(update=config)
        self.metrics = Metrics(CollectorRegistry())
        loop = self.loop = JobReconciler(
            life, self.dialect, settings=self.config, clock=self.cluster.clock, metrics=self.metrics,
            rng=random.Random(self._chance.getrandbits(32)), history=self.snapshots.append,
            coalesce_seconds=self.coalesce_seconds,
        )  # fmt: skip
        self.promises.watch_steps(loop)
        self._operator = asyncio.create_task(loop.run())

    def _with_refusals(self, faults: Faults) -> Faults:
        """What a scenario itself asks for, in every life."""

        def refused(call: Call) -> bool:
            return self.pod_refusal is not None and (call.verb, call.kind) == ("create", POD)

        faults.requests.append(
            RequestFault(refused, lambda: self.pod_refusal or AssertionError(), FaultTiming.BEFORE, None)
        )
        return faults.disturb(WatchDisruption.DROP, lambda _, event: uid_of(event.object) in self.hidden, POD)

    async def kill_operator(self) -> None:
        if self._operator is not None:
            self.lives[-1].is_dead = True
            self._operator.cancel()
            await asyncio.gather(self._operator, return_exceptions=True)
            self._operator = None

    async def restart_operator(self, **config: Any) -> None:
        await self.kill_operator()
        self.start_operator(**config)

    @property
    def writes(self) -> int:
        """Of the operator, in all its lives, Events left out."""
        return sum(call.kind.kind != "Event" for call in self._written())

    # Time

    async def settle(self) -> None:
        """Until everybody waits for the clock."""
        loop = asyncio.get_running_loop()
        while True:
            turns = 0
            while loop._ready:  # type: ignore[attr-defined]
                turns += 1
                assert turns < MOST_TURNS, f"no rest at one moment: {str(self.picture())[:3000]}"
                await turn()
            if self._operator is None or not self.lives[-1].is_dead:
                return
            await self.kill_operator()
            if self.outage_seconds:
                self.cluster.clock.call_later(self.outage_seconds, self._start_again)
                return
            self.start_operator()

    def _start_again(self) -> None:
        """Unless the scenario did so meanwhile."""
        if self._operator is None:
            self.start_operator()

    async def until(self, is_so: Callable[[], bool], *, limit_seconds: float = 7200) -> None:
        end = self.cluster.clock.now() + timedelta(seconds=limit_seconds)
        await self.settle()
        while not is_so():
            due = self.cluster.clock.next_due()
            if due is None or due > end:
                raise AssertionError(f"it does not come about within {limit_seconds} s: {str(self.picture())[:3000]}")
            self.cluster.clock.advance((due - self.cluster.clock.now()).total_seconds())
            await self.settle()
        self.promises.raise_broken()

    async def rest(self, seconds: float) -> None:
        await rested(self.cluster.clock, seconds, self.settle)
        self.promises.raise_broken()

    async def at_rest(self) -> None:
        """Nothing more happens, and nobody writes about it: no object, no status, no Event."""
        await self.rest(90)
        before = self._written()
        await self.rest(150)
        assert self._written() == before, f"writes at rest: {self._written()[len(before) :]}"

    def _written(self) -> list[Call]:
        return [call for life in self.lives for call in life.calls if call.is_write]

    def _changed(self) -> None:
        """Whoever waits looks after every turn anyway."""


# Which of several tasks came last is fleeting too, where they end at the same time; scenarios ask where it matters.
_FLEETING = ("Time", "UID", "podIP", "podHostIP", "podNodeName", "taskIndex", "taskRoleName")


# Whether an object was seen leaving or only found missing depends on when the operator looked.
_SAME = {f"{kind} was deleted by others": f"{kind} is being deleted by others" for kind in ("Pod", "ConfigMap")}


def plain(value: Any, varies: tuple[str, ...] = ()) -> Any:
    if isinstance(value, dict):
        kept = {key: each for key, each in value.items() if not key.endswith(_FLEETING) and key not in varies}
        return {key: plain(each, varies) for key, each in kept.items()}
    if isinstance(value, list):
        return [plain(each, varies) for each in value]
    return _SAME.get(value, value) if isinstance(value, str) else value


def _pass_over_kills(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    failure = context.get("exception")
    if isinstance(failure, BaseExceptionGroup):
        failure = failure.split(ProgramKilled)[1]
    if failure is not None and not isinstance(failure, ProgramKilled):
        loop.default_exception_handler(context)
