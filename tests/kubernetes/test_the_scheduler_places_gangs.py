"""`shoal scheduler` on a real control plane: gangs whole or not at all, with exactly the rights it is installed with.

Tests share the control plane, so each has a scheduler name, a namespace and a kind of resource of its own.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from prometheus_client import CollectorRegistry

from kit import audited_control_plane
from kit.eventually import answer_becomes
from kit.hollow_nodes import HollowNodes
from kit.operator_namespace import Ground, until
from kit.operator_process import OperatorProcess, kubeconfig_of, operator, user_of
from kit.pod_behavior import runs
from kit.volcano_jobs import task, vcjob
from shoal.cluster.clock import SystemClock
from shoal.cluster.kubeconfig import from_kubeconfig
from shoal.cluster.kubernetes import open_client
from shoal.controller_runtime.metrics import Metrics
from shoal.controller_runtime.preflight import PreflightError, check_permissions
from shoal.controller_runtime.rights import Permission, lease_permissions
from shoal.dialects.volcano import DIALECT as VOLCANO
from shoal.install.scheduler_deployment import SCHEDULER_LEASE
from shoal.kube.kinds import (
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    POD_DISRUPTION_BUDGET,
    PRIORITY_CLASS,
    STORAGE_CLASS,
)
from shoal.kube.objects import Obj, at_path, name_of
from shoal.operator.embedded import JobReconciler
from shoal.scheduler.api.pod_groups import GROUP_NAME, POD_GROUP, QUEUE
from shoal.scheduler.rbac import scheduler_rights

pytestmark = pytest.mark.kubernetes


class Place:
    """Two hollow nodes with so many slots that nobody else asks for."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.word = ground.jobs.removeprefix("jobs-")
        self.scheduler = f"shoal-{self.word}"
        self.slot = f"test.shoal.dev/slot-{self.word}"
        self.account = f"{ground.options.name}-scheduler"

    @asynccontextmanager
    async def nodes(self, slots: int) -> AsyncIterator[None]:
        admin = self.ground.admin
        hollow = HollowNodes(admin, 2, places=False, prefix=f"hollow-{self.word}", namespace=self.ground.jobs)
        async with hollow.running():
            try:
                for number, name in enumerate(hollow.names):
                    await self.give(name, slots // 2 + (slots % 2 if number == 0 else 0))
                yield
            finally:
                for name in hollow.names:
                    await admin.delete(NODE, name)

    async def give(self, node: str, slots: int) -> None:
        amounts = {self.slot: str(slots)}
        await self.ground.admin.patch(
            NODE, node, patch={"status": {"capacity": amounts, "allocatable": amounts}}, subresource="status"
        )

    @asynccontextmanager
    async def scheduling(self, kubeconfig: Path | None = None, *more: str) -> AsyncIterator[OperatorProcess]:
        """The program, as the account that was installed."""
        known = kubeconfig or kubeconfig_of(self.ground.plane, self.ground.folder, self.account, self.ground.own)
        flags = ["--scheduler-name", self.scheduler, "--namespace", self.ground.jobs, "--volcano", "yes"]
        flags += ["--name", SCHEDULER_LEASE, *more]
        async with operator(known, *flags, program="scheduler") as process:
            yield process

    async def group(self, name: str, least: int, **spec: str) -> None:
        await self.ground.admin.create(
            POD_GROUP, {"metadata": {"name": name}, "spec": {"minMember": least, **spec}}, self.ground.jobs
        )

    async def gang(self, name: str, count: int, **spec: str) -> None:
        await self.group(name, count, **spec)
        for number in range(count):
            await self.ground.admin.create(POD, self.pod(f"{name}-{number}", name), self.ground.jobs)

    def pod(self, name: str, group: str = "") -> Obj:
        limits = {self.slot: "1"}
        container = {"name": "main", "image": "x", "resources": {"limits": limits, "requests": limits}}
        return {
            "metadata": {"name": name, "annotations": {GROUP_NAME: group} if group else {}},
            "spec": {"schedulerName": self.scheduler, "containers": [container]},
        }

    async def phase(self, group: str, phase: str) -> Obj:
        found = await until(
            self.ground.admin, POD_GROUP, group, self.ground.jobs,
            lambda seen: at_path(seen or {}, "status", "phase") == phase,
        )  # fmt: skip
        assert found is not None
        return found

    async def told(self, group: str, reason: str) -> str:
        """The sentence, once it has that reason: before all pods of a gang are there, it may have another."""

        def is_told(seen: Obj | None) -> bool:
            return [each["reason"] for each in at_path(seen or {}, "status", "conditions", default=[])] == [reason]

        found = await until(self.ground.admin, POD_GROUP, group, self.ground.jobs, is_told)
        return str(at_path(found or {}, "status", "conditions")[0]["message"])

    async def placed(self) -> list[str]:
        pods = (await self.ground.admin.list(POD, self.ground.jobs)).items
        return sorted(name_of(pod) for pod in pods if pod["spec"].get("nodeName"))


@pytest.fixture
async def place(ground: Ground) -> Place:
    made = Place(ground)
    await ground.install(scheduler=True)
    await granted(made)
    return made


async def granted(place: Place) -> None:
    """The server learns of roles a moment after they are written, and tells nobody when."""
    wanted = [("", right) for right in scheduler_rights(POD_GROUP, QUEUE)]
    wanted += [(place.ground.own, right) for right in lease_permissions([SCHEDULER_LEASE])]
    known = kubeconfig_of(place.ground.plane, place.ground.folder, place.account, place.ground.own)
    async with open_client(from_kubeconfig(known)) as account:
        while True:
            try:
                return await check_permissions(account, wanted)
            except PreflightError:
                continue


async def test_a_gang_that_fits_is_bound_and_of_one_that_does_not_not_one_pod(place: Place) -> None:
    async with place.nodes(5), place.scheduling() as process:
        await process.says("leading")
        await place.gang("fits", 3)
        await place.phase("fits", "Running")
        await place.gang("large", 3)
        said = await place.told("large", "NotEnoughResources")
        assert said.startswith("needs 3 pods at once, 2 would fit, 1 missing: ")
        assert await place.placed() == ["fits-0", "fits-1", "fits-2"]
        await place.ground.admin.delete(POD, "fits-0", place.ground.jobs)
        await place.phase("large", "Running")
        placed = [name for name in await place.placed() if name != "fits-0"]  # which may still be on its way out
        assert placed == ["fits-1", "fits-2", "large-0", "large-1", "large-2"]


async def test_a_gang_is_finished_by_the_next_scheduler_when_one_dies_in_the_middle(place: Place) -> None:
    """Half of it was bound when the first one was killed; that nobody else binds the rest is what the pause is for."""
    async with place.nodes(4):
        async with place.scheduling(None, "--lease-duration", "3") as first:
            await first.says("leading")
            first.signal(signal.SIGKILL)
        await place.group("four", 4)
        for number in range(4):
            await place.ground.admin.create(POD, place.pod(f"four-{number}", "four"), place.ground.jobs)
        for number in range(2):
            node = f"hollow-{place.word}-{number}"
            await place.ground.admin.bind(f"four-{number}", place.ground.jobs, node=node)
        async with place.scheduling(None, "--lease-duration", "3"):  # it waits until the Lease of the dead one is over
            await place.phase("four", "Running")
        assert await place.placed() == [f"four-{number}" for number in range(4)]


async def test_a_volcano_job_runs_all_or_nothing(place: Place) -> None:
    ground = place.ground
    loop = JobReconciler(
        ground.admin, VOLCANO,
        settings=None, clock=SystemClock(), metrics=Metrics(CollectorRegistry()), namespace=ground.jobs,
    )  # fmt: skip
    limits = {place.slot: "1"}
    worker = task(replicas=3, fate=runs(), requests=limits)
    worker["template"]["spec"]["containers"][0]["resources"]["limits"] = limits
    job = vcjob("ctr", worker)
    job["spec"]["schedulerName"] = place.scheduler
    async with place.nodes(2), place.scheduling() as process:
        await process.says("leading")
        running = asyncio.create_task(loop.run())
        try:
            made = await ground.admin.create(VOLCANO.kind, VOLCANO.default(job), ground.jobs)
            group = f"ctr-{made['metadata']['uid']}"
            assert (await place.told(group, "TooLarge")).startswith(f"needs 3 {place.slot}, and ")
            assert (await ground.admin.list(POD, ground.jobs)).items == []
            await place.give(f"hollow-{place.word}-0", 2)
            await place.phase(group, "Running")
            assert await place.placed() == ["ctr-worker-0", "ctr-worker-1", "ctr-worker-2"]
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def test_its_pages_say_that_it_leads_and_what_it_did(place: Place) -> None:
    async with place.nodes(2), place.scheduling() as process:
        await process.says("leading")
        await place.gang("two", 2)
        await place.phase("two", "Running")
        health, metrics = await process.port("health"), await process.port("metrics")
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{health}/readyz") as answer:
                assert (answer.status, await answer.text()) == (200, "scheduler: leads\n")

            async def page() -> str:
                async with session.get(f"http://127.0.0.1:{metrics}/metrics") as answer:
                    return await answer.text()

            # A bind counts when it is answered, which may be after the watch has shown it.
            counted = 'volcano_schedule_attempts_total{result="scheduled"} 2.0'
            await answer_becomes(page, lambda text: counted in text)


async def test_a_disk_is_chosen_with_the_node_and_a_budget_is_asked_before_a_pod_goes(place: Place) -> None:
    """The controllers that bind claims and count budgets do not run here; the test plays them."""
    admin, jobs = place.ground.admin, place.ground.jobs
    async with place.nodes(3), tidied(place), place.scheduling() as process:
        await process.says("leading")
        claim = await disk_and_claim(place, on=f"hollow-{place.word}-1")
        disk = await until(admin, PERSISTENT_VOLUME, f"disk-{place.word}", "", _is_chosen)
        assert at_path(disk or {}, "spec", "claimRef", "uid") == claim["metadata"]["uid"]
        assert await place.placed() == []
        await admin.patch(PERSISTENT_VOLUME_CLAIM, "data", jobs, patch={"spec": {"volumeName": f"disk-{place.word}"}})
        await admin.patch(
            PERSISTENT_VOLUME_CLAIM, "data", jobs, patch={"status": {"phase": "Bound"}}, subresource="status"
        )
        await place.phase("reads", "Running")
        reader = await admin.get(POD, "reads-0", jobs)
        assert reader["spec"]["nodeName"] == f"hollow-{place.word}-1"

        await budget(place)
        await allows(place, 0)
        for number in range(2):
            low = place.pod(f"low-{number}")
            low["metadata"]["labels"] = {"app": "low", "volcano.sh/preemptable": "true"}
            await admin.create(POD, low, jobs)
            await until(admin, POD, f"low-{number}", jobs, _runs)
        await place.gang("high", 1, priorityClassName=f"high-{place.word}")
        assert (await place.told("high", "NotEnoughResources")).startswith(f"needs 1 {place.slot}, ")
        await allows(place, 1)
        await place.phase("high", "Running")
        assert len(await place.placed()) == 3
        spent = (await admin.get(POD_DISRUPTION_BUDGET, "few", jobs))["status"]
        assert (spent["disruptionsAllowed"], len(spent["disruptedPods"])) == (0, 1)


@asynccontextmanager
async def tidied(place: Place) -> AsyncIterator[None]:
    """What lies in no namespace goes with the test."""
    try:
        yield
    finally:
        for kind, word in ((PERSISTENT_VOLUME, "disk"), (STORAGE_CLASS, "late"), (PRIORITY_CLASS, "high")):
            await place.ground.admin.delete(kind, f"{word}-{place.word}")


async def disk_and_claim(place: Place, *, on: str) -> Obj:
    """A disk on one node, a claim of its class, which waits for the first pod, and that pod."""
    admin, jobs, storage = place.ground.admin, place.ground.jobs, f"late-{place.word}"
    late = {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"}
    await admin.create(STORAGE_CLASS, {"metadata": {"name": storage}, **late})
    here = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [on]}]}
    common = {"accessModes": ["ReadWriteOnce"], "storageClassName": storage}
    disk = {
        **common,
        "capacity": {"storage": "1Gi"},
        "local": {"path": "/disk"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [here]}},
    }
    await admin.create(PERSISTENT_VOLUME, {"metadata": {"name": f"disk-{place.word}"}, "spec": disk})
    wanted = {**common, "resources": {"requests": {"storage": "1Gi"}}}
    claim = await admin.create(PERSISTENT_VOLUME_CLAIM, {"metadata": {"name": "data"}, "spec": wanted}, jobs)
    await place.group("reads", 1)
    reader = place.pod("reads-0", "reads")
    reader["metadata"]["annotations"]["volcano.sh/preemptable"] = "false"
    reader["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    await admin.create(POD, reader, jobs)
    return claim


async def budget(place: Place) -> None:
    """For pods of no importance; others may be of more."""
    admin, jobs = place.ground.admin, place.ground.jobs
    await admin.create(PRIORITY_CLASS, {"metadata": {"name": f"high-{place.word}"}, "value": 1000})
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "low"}}}
    await admin.create(POD_DISRUPTION_BUDGET, {"metadata": {"name": "few"}, "spec": spec}, jobs)


async def allows(place: Place, allowed: int) -> None:
    status = {"disruptionsAllowed": allowed, "observedGeneration": 1}
    await place.ground.admin.patch(
        POD_DISRUPTION_BUDGET, "few", place.ground.jobs, patch={"status": status}, subresource="status"
    )


def _is_chosen(disk: Obj | None) -> bool:
    return bool(at_path(disk or {}, "spec", "claimRef"))


def _runs(pod: Obj | None) -> bool:
    return bool(at_path(pod or {}, "status", "phase") == "Running")


async def test_it_uses_no_right_but_those_it_was_given(place: Place) -> None:
    async with place.nodes(2), place.scheduling() as process:
        await process.says("leading")
        await place.gang("two", 2)
        await place.phase("two", "Running")
        await place.gang("more", 2)
        await place.told("more", "NotEnoughResources")
    user = user_of(place.account, place.ground.own)
    asked = audited_control_plane.requests(place.ground.plane, user)
    forbidden = [entry["requestURI"] for entry in asked if entry["responseStatus"]["code"] == 403]
    allowed = {_right(right) for right in (*scheduler_rights(POD_GROUP, QUEUE), *lease_permissions([SCHEDULER_LEASE]))}
    used = {_call(entry["verb"], entry["objectRef"]) for entry in asked if "objectRef" in entry}
    assert [uri for uri in forbidden if "customresourcedefinitions" not in uri] == []
    assert {call for call in used if call[1] not in REVIEWS} <= allowed


REVIEWS = ("selfsubjectaccessreviews", "customresourcedefinitions")


def _right(right: Permission) -> tuple[str, str]:
    return right.verb, right.resource


def _call(verb: str, target: Obj) -> tuple[str, str]:
    below = target.get("subresource")
    return verb, f"{target['resource']}/{below}" if below else target["resource"]
