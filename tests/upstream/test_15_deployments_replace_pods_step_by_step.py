"""A Deployment moves its pods from one ReplicaSet to the next within its limits, whatever happens in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from kit.fake_kubelet import FakeKubelet
from kit.native_world import replica_set
from kit.preloaded_cluster import founded
from kit.virtual_time import rested, settled
from shoal.cluster.client import PatchType, WatchEvent
from shoal.cluster.fault_injection import Faults, FaultTiming, WatchDisruption
from shoal.cluster.simulated import SimulatedCluster
from shoal.controller_runtime.metrics import Metrics
from shoal.controllers.deployments import rollout
from shoal.controllers.deployments.deployment_controller import DeploymentController
from shoal.controllers.deployments.replica_sets import DESIRED, MOST, REVISION, REVISION_HISTORY, revision_of, size_of
from shoal.dialects.native import replica_sets
from shoal.kube.conditions import condition_of
from shoal.kube.defaults import apply_defaults
from shoal.kube.kinds import DEPLOYMENT, EVENT, POD, REPLICA_SET, SERVICE_ACCOUNT
from shoal.kube.objects import Obj, annotations_of, at_path, is_terminating, labels_of, name_of
from shoal.kube.patching import merge_patch
from shoal.operator.embedded import JobReconciler

NS = "default"
NOW = datetime(2030, 1, 1, tzinfo=UTC)


def deployment(size: int = 3, image: str = "v1", **spec: Any) -> Obj:
    made = replica_set("d", size)
    made["spec"] |= spec
    made["spec"]["template"]["spec"]["containers"][0]["image"] = image
    return made


class Store:
    """What is stored: a Deployment, its ReplicaSets, and pods that are as fast as `become_available` says."""

    def __init__(self, obj: Obj) -> None:
        self.deployment: Obj = deepcopy(obj) | {"apiVersion": "apps/v1", "kind": "Deployment"}
        self.deployment["metadata"] |= {"uid": "u", "namespace": NS, "resourceVersion": "1", "generation": 1}
        apply_defaults(DEPLOYMENT, self.deployment)
        self.sets: dict[str, Obj] = {}
        self.now = NOW
        self.events: list[str] = []

    def step(self, most_writes: int | None = None) -> rollout.RolloutPlan:
        """One pass of the controller; cut after so many writes."""
        plan = rollout.plan_rollout(self.deployment, list(self.sets.values()), self.now)
        for write in plan.writes[:most_writes]:
            name = name_of(write.replica_set)
            if isinstance(write, rollout.CreateReplicaSet):
                made = deepcopy(write.replica_set)
                made["metadata"] |= {"uid": name, "resourceVersion": "1", "creationTimestamp": f"{len(self.sets):04}"}
                self.sets[name] = {**made, "status": {}}
            elif isinstance(write, rollout.PatchReplicaSet):
                self.sets[name] = merge_patch(self.sets[name], write.patch)
            else:
                del self.sets[name]
            if not isinstance(write, rollout.DeleteReplicaSet):
                self.events.append(write.event)
        if most_writes is None:
            self.deployment["status"] = plan.status
            self.deployment = merge_patch(self.deployment, {"metadata": {"annotations": dict(plan.annotations)}})
        return plan

    def make_pods(self, name: str) -> None:
        """The ReplicaSet has as many pods as it should, those that were available stay so."""
        found, size = self.sets[name], size_of(self.sets[name])
        available = min(at_path(found, "status", "availableReplicas", default=0), size)
        found["status"] = {"replicas": size, "availableReplicas": available, "readyReplicas": available}

    def become_available(self, name: str) -> None:
        status = self.sets[name]["status"]
        size = min(status.get("replicas", 0), size_of(self.sets[name]))
        if status.get("availableReplicas", 0) >= size:
            return
        count = status.get("availableReplicas", 0) + 1
        status |= {"availableReplicas": count, "readyReplicas": count}

    def rest(self) -> rollout.RolloutPlan:
        """Until nothing changes any more, with pods that become available at once."""
        while True:
            before = deepcopy((self.deployment, self.sets))
            plan = self.step()
            for name in self.sets:
                self.make_pods(name)
                for _ in range(size_of(self.sets[name])):
                    self.become_available(name)
            if before == (self.deployment, self.sets):
                return plan

    def write(self, **spec: Any) -> None:
        self.deployment["metadata"]["generation"] += 1
        self.deployment = merge_patch(self.deployment, {"spec": spec})

    def use(self, image: str) -> None:
        self.deployment["metadata"]["generation"] += 1
        self.deployment["spec"]["template"]["spec"]["containers"][0]["image"] = image

    def sizes(self) -> dict[str, int]:
        """Of the ReplicaSets that have pods, by image."""
        return {
            each["spec"]["template"]["spec"]["containers"][0]["image"]: size_of(each)
            for each in self.sets.values()
            if size_of(each)
        }

    def revisions(self) -> dict[str, str]:
        return {
            each["spec"]["template"]["spec"]["containers"][0]["image"]: annotations_of(each)[REVISION]
            for each in self.sets.values()
        }

    def progress(self) -> tuple[str, str]:
        found = condition_of(self.deployment, "Progressing") or {}
        return found["status"], found["reason"]


def at_rest(size: int = 3, **spec: Any) -> Store:
    store = Store(deployment(size, **spec))
    store.rest()
    store.events.clear()
    return store


def test_15_the_first_template_gets_a_replica_set():
    store = Store(deployment(3))
    store.step()
    (made,) = store.sets.values()
    letters = labels_of(made)["pod-template-hash"]
    assert (made["metadata"]["name"], made["spec"]["replicas"]) == (f"d-{letters}", 3)
    assert made["spec"]["selector"] == {"matchLabels": {"app": "d", "pod-template-hash": letters}}
    assert made["spec"]["template"]["metadata"]["labels"] == {"app": "d", "pod-template-hash": letters}
    assert annotations_of(made) == {REVISION: "1", DESIRED: "3", MOST: "4"}
    assert store.events == [f"Scaled up replica set d-{letters} from 0 to 3"]
    assert (store.progress(), annotations_of(store.deployment)) == (("True", "NewReplicaSetCreated"), {REVISION: "1"})


def test_15_a_rollout_is_complete_when_all_pods_are_new_and_available():
    store = at_rest(3)
    store.use("v2")
    store.rest()
    assert store.sizes() == {"v2": 3}
    status = store.deployment["status"]
    assert {name: value for name, value in status.items() if name != "conditions"} == {
        "observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3,
        "terminatingReplicas": 0,
    }  # fmt: skip
    assert store.progress() == ("True", "NewReplicaSetAvailable")


NUMBERS = st.integers(0, 6) | st.integers(0, 100).map(lambda number: f"{number}%")


ACTS = st.sampled_from(["pass", "cut", "make", "available", "v1", "v2", "v3"])


@given(st.integers(1, 10), NUMBERS, NUMBERS, st.lists(st.tuples(ACTS, st.integers(0, 9)), max_size=80))
def test_15_a_rolling_update_stays_within_its_limits(
    size: int, surge: int | str, unavailable: int | str, acts: list[tuple[str, int]]
):
    limits = {"maxSurge": surge, "maxUnavailable": unavailable}
    store = at_rest(size, strategy={"type": "RollingUpdate", "rollingUpdate": limits})
    bounds = rollout.limits_of(store.deployment)
    for act, number in acts:
        name = sorted(store.sets)[number % len(store.sets)]
        match act:
            case "pass":
                store.step()
            case "cut":
                store.step(number % 2)
            case "make":
                store.make_pods(name)
            case "available":
                store.become_available(name)
            case image:
                store.use(image)
        assert sum(store.sizes().values()) <= bounds.most
        counts = [
            (at_path(each, "status", "availableReplicas", default=0), size_of(each)) for each in store.sets.values()
        ]
        assert sum(min(pair) for pair in counts) >= bounds.least_available
    store.use("v4")
    store.rest()
    assert (store.sizes(), store.progress()) == ({"v4": size}, ("True", "NewReplicaSetAvailable"))


def test_15_recreate_starts_new_pods_after_the_last_old_one_has_ended():
    store = at_rest(2, strategy={"type": "Recreate"})
    store.use("v2")
    store.step()
    assert (store.sizes(), len(store.sets)) == ({}, 1)
    (old,) = store.sets.values()
    old["status"] = {"replicas": 0, "terminatingReplicas": 1}
    store.step()
    assert len(store.sets) == 1
    old["status"] = {"replicas": 0, "terminatingReplicas": 0}
    store.step()
    assert store.sizes() == {"v2": 2}


def test_15_a_rollback_reuses_the_replica_set_and_gives_it_the_next_revision():
    store = at_rest()
    store.use("v2")
    store.rest()
    store.use("v1")
    store.rest()
    assert (store.sizes(), store.revisions()) == ({"v1": 3}, {"v1": "3", "v2": "2"})
    (current,) = (each for each in store.sets.values() if size_of(each))
    assert annotations_of(current)[REVISION_HISTORY] == "1"
    assert annotations_of(store.deployment)[REVISION] == "3"


def test_15_a_template_that_a_typed_client_wrote_back_is_the_same():
    store = at_rest()
    template = store.deployment["spec"]["template"]
    template["metadata"] |= {"creationTimestamp": None, "annotations": template["metadata"].get("annotations") or {}}
    template["spec"]["containers"][0]["resources"] = {"limits": {}}
    store.rest()
    assert len(store.sets) == 1


def test_15_the_stored_state_of_one_replica_set_does_not_reach_another():
    store = at_rest()
    store.deployment["metadata"]["annotations"] |= {"shoal.dev/ledger": "{}", "kubernetes.io/change-cause": "b"}
    store.use("v2")
    store.step()
    causes = [annotations_of(each) for each in store.sets.values()]
    assert [(each.get("shoal.dev/ledger"), each.get("kubernetes.io/change-cause")) for each in causes] == [
        (None, None), (None, "b"),
    ]  # fmt: skip
    assert "shoal.dev/ledger" not in annotations_of(store.deployment)


def test_15_a_paused_deployment_is_scaled_and_not_rolled_out():
    store = at_rest()
    store.write(paused=True, replicas=5)
    store.use("v2")
    store.rest()
    assert (store.sizes(), store.progress()) == ({"v1": 5}, ("Unknown", "DeploymentPaused"))
    store.write(paused=False)
    store.step()
    assert store.progress() == ("True", "NewReplicaSetCreated")
    store.rest()
    assert store.sizes() == {"v2": 5}


def test_15_a_new_size_in_the_middle_of_a_rollout_is_shared():
    store = at_rest(10, strategy={"rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}})
    store.use("v2")
    store.step()
    assert store.sizes() == {"v1": 8, "v2": 3}
    store.step()
    assert store.sizes() == {"v1": 8, "v2": 5}
    store.write(replicas=15)
    store.step()
    assert store.sizes() == {"v1": 11, "v2": 7}
    assert {annotations_of(each)[DESIRED] for each in store.sets.values()} == {"15"}


def test_15_pods_that_are_not_available_go_first():
    store = at_rest(3, strategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}})
    store.use("broken")
    store.step()
    for name in store.sets:
        store.make_pods(name)
    store.step()
    assert store.sizes() == {"v1": 3, "broken": 1}
    store.use("v2")
    store.step()
    assert store.sizes() == {"v1": 3}
    store.step()
    assert store.sizes() == {"v1": 3, "v2": 1}


def test_15_old_replica_sets_beyond_the_limit_are_deleted():
    store = at_rest(1, revisionHistoryLimit=2)
    for image in ("v2", "v3", "v4", "v5"):
        store.use(image)
        store.rest()
    assert store.revisions() == {"v3": "3", "v4": "4", "v5": "5"}


def test_15_a_rollout_without_progress_times_out():
    store = at_rest(1, progressDeadlineSeconds=60)
    store.use("broken")
    for _ in range(3):
        plan = store.step()
    assert (store.progress(), plan.wake_at) == (("True", "NewReplicaSetCreated"), NOW + timedelta(seconds=61))
    store.now += timedelta(seconds=61)
    plan = store.step()
    assert (store.progress(), plan.wake_at) == (("False", "ProgressDeadlineExceeded"), None)
    store.rest()
    assert store.progress() == ("True", "NewReplicaSetAvailable")


def test_15_without_a_deadline_nothing_is_said_of_progress():
    store = at_rest(1, progressDeadlineSeconds=2**31 - 1)
    assert [each["type"] for each in store.deployment["status"]["conditions"]] == ["Available"]


# --- in a cluster --------------------------------------------------------------------------------------------------


class Ground:
    """A simulated cluster with a kubelet, ReplicaSets that run, and a Deployment controller that may die."""

    def __init__(self, cluster: SimulatedCluster, faults: Faults) -> None:
        self.cluster = cluster
        self.program = cluster.new_client(faults)
        self.deaths = 0
        self._life = self._start()

    def _start(self) -> asyncio.Task[None]:
        return asyncio.create_task(DeploymentController(self.program, clock=self.cluster.clock).run())

    async def rest(self, seconds: float = 60) -> None:
        """A controller that has died is started again."""
        for _ in range(int(seconds)):
            await rested(self.cluster.clock, 1, settled)
            if self.program.is_dead:
                self.deaths += 1
                await self.stop()
                self.program = self.cluster.new_client()
                self._life = self._start()

    async def stop(self) -> None:
        self._life.cancel()
        await asyncio.gather(self._life, return_exceptions=True)

    async def patch(self, patch: Obj) -> None:
        await self.cluster.patch(DEPLOYMENT, "d", NS, patch=patch, patch_type=PatchType.STRATEGIC)

    async def use(self, image: str) -> None:
        containers = [{"name": "main", "image": image}]
        await self.patch({"spec": {"template": {"spec": {"containers": containers}}}})

    async def sets(self) -> list[Obj]:
        return (await self.cluster.list(REPLICA_SET, NS)).items

    async def ending(self) -> Obj:
        found = await self.cluster.get(DEPLOYMENT, "d", NS)
        pods = (await self.cluster.list(POD, NS)).items
        status = {name: value for name, value in found["status"].items() if name != "conditions"}
        return {
            "status": status,
            "conditions": {each["type"]: each["reason"] for each in found["status"]["conditions"]},
            "revision": annotations_of(found)[REVISION],
            "sets": sorted((annotations_of(each)[REVISION], size_of(each)) for each in await self.sets()),
            "pods": sorted(str(is_terminating(pod)) for pod in pods),
        }


@asynccontextmanager
async def ground(faults: Faults | None = None) -> AsyncIterator[Ground]:
    cluster = founded(0, replica_sets.DIALECT)
    await cluster.create(SERVICE_ACCOUNT, {"metadata": {"name": "default"}}, NS)
    kubelet = FakeKubelet(cluster, cluster.clock)
    running = JobReconciler(cluster, replica_sets.DIALECT, clock=cluster.clock, metrics=Metrics(CollectorRegistry()))
    tasks = [asyncio.create_task(part.run()) for part in (kubelet, running)]
    it = Ground(cluster, faults or Faults())
    try:
        yield it
    finally:
        await it.stop()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def story(it: Ground) -> Obj:
    """A rollout, a rollback to the first version and a new size."""
    made = deployment(2, revisionHistoryLimit=1)
    made["spec"]["template"]["spec"]["containers"][0]["name"] = "main"
    await it.cluster.create(DEPLOYMENT, made, NS)
    await it.rest()
    for image in ("v2", "v3", "v2"):
        await it.use(image)
        await it.rest()
    await it.patch({"spec": {"replicas": 3}})
    await it.rest()
    return await it.ending()


ENDING = {
    "status": {
        "observedGeneration": 5, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3,
        "terminatingReplicas": 0,
    },
    "conditions": {"Available": "MinimumReplicasAvailable", "Progressing": "NewReplicaSetAvailable"},
    "revision": "4",
    "sets": [("3", 0), ("4", 3)],
    "pods": ["False"] * 3,
}  # fmt: skip


async def test_15_the_story_without_faults():
    async with ground() as it:
        assert await story(it) == ENDING
        events = (await it.cluster.list(EVENT, NS)).items
        reasons = {each["reason"] for each in events if each["involvedObject"]["kind"] == "Deployment"}
        assert reasons == {"ScalingReplicaSet"}


@pytest.mark.parametrize("when", list(FaultTiming), ids=str)
async def test_15_a_controller_may_die_at_any_write(when: FaultTiming):
    async with ground() as whole:
        await story(whole)
        writes = sum(call.is_write for call in whole.program.calls)
    for number in range(1, writes + 1):
        async with ground(Faults().kill_at_write(number, when=when)) as it:
            assert (number, await story(it), it.deaths) == (number, ENDING, 1)


def every_third(number: int, _: WatchEvent) -> bool:
    return number % 3 == 0


@pytest.mark.parametrize("what", [WatchDisruption.DUPLICATE, WatchDisruption.CUT], ids=str)
async def test_15_a_disturbed_watch_ends_alike(what: WatchDisruption):
    faults = Faults().lose_response(lambda call: call.is_write, times=5).disturb(what, every_third)
    async with ground(faults) as it:
        assert await story(it) == ENDING


async def test_15_a_name_that_is_taken_is_counted_as_a_collision():
    async with ground() as it:
        await it.cluster.create(DEPLOYMENT, deployment(1), NS)
        await it.rest()
        (taken,) = await it.sets()
        await it.cluster.delete(DEPLOYMENT, "d", NS)
        await it.rest()
        other = replica_set(name_of(taken), 0)
        await it.cluster.create(REPLICA_SET, other, NS)
        await it.cluster.create(DEPLOYMENT, deployment(1), NS)
        await it.rest()
        found = await it.cluster.get(DEPLOYMENT, "d", NS)
        assert (found["status"]["collisionCount"], found["status"]["availableReplicas"]) == (1, 1)


async def test_15_replica_sets_left_behind_are_adopted():
    async with ground() as it:
        await it.cluster.create(DEPLOYMENT, deployment(2), NS)
        await it.rest()
        (before,) = await it.sets()
        patch = {"metadata": {"ownerReferences": None}}
        await it.cluster.patch(REPLICA_SET, name_of(before), NS, patch=patch)
        await it.rest()
        (after,) = await it.sets()
        assert after["metadata"]["ownerReferences"] == before["metadata"]["ownerReferences"]


async def test_15_a_size_that_no_replica_set_may_have_is_reported():
    async with ground() as it:
        await it.cluster.create(DEPLOYMENT, deployment(2_000_000_000), NS)
        await it.rest()
        found = await it.cluster.get(DEPLOYMENT, "d", NS)
        assert (condition_of(found, "Progressing") or {})["reason"] == "ReplicaSetCreateError"


async def test_15_pods_are_available_when_they_have_been_ready_for_so_long():
    async with ground() as it:
        await it.cluster.create(DEPLOYMENT, deployment(2, minReadySeconds=30), NS)
        counts = []
        for _ in range(2):
            await it.rest(25)
            counts.append((await it.cluster.get(DEPLOYMENT, "d", NS))["status"].get("availableReplicas", 0))
        assert counts == [0, 2]


@pytest.mark.parametrize(
    ("text", "revision"), [("7", 7), ("", 0), ("-1", 0), ("x", 0), ("9" * 5000, 0)], ids=lambda value: str(value)[:5]
)
def test_15_a_revision_that_is_no_number_counts_as_none(text: str, revision: int) -> None:
    assert revision_of({"metadata": {"annotations": {REVISION: text}}}) == revision
