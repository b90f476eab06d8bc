"""Lines about scheduling (1 and 4 to 10) on a whole cluster of ours, whose pods are processes. Lines 2 and 3 are
played there by the scenarios of their own files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from kit.framework_notation import fw, role
from kit.pod_behavior import Rule, exits, pod_with, runs
from kit.scenario import FRAMEWORK, NAMESPACE
from kit.volcano_jobs import task, vcjob
from kit.volcano_world import RealVolcano
from shoal.cluster.client import PatchType
from shoal.kube.kinds import POD, PRIORITY_CLASS
from shoal.kube.objects import Obj, at_path, name_of, uid_of
from shoal.scheduler.api.hypernodes import HYPER_NODE
from shoal.scheduler.api.pod_groups import GROUP_NAME, POD_GROUP, QUEUE
from shoal.scheduler.planner.gang_types import PlannerSettings

pytestmark = [pytest.mark.processes, pytest.mark.timeout(90)]

CPU = {"cpu": "1"}
HOST = "kubernetes.io/hostname"
WEB = {"app": "web"}
BESIDE_WEB = {
    "requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": {"matchLabels": WEB}, "topologyKey": HOST}]
}


def gang(
    name: str, count: int, *, least: int | None = None, labels: Obj | None = None, spec: Obj | None = None, **pod: Any
) -> Obj:
    """A Job of so many pods of one cpu; `spec` are fields of the Job, the others of its pods."""
    made = task(replicas=count, least=least, fate=runs(), requests=CPU, pod=pod)
    made["template"]["metadata"]["labels"] = labels or {}
    return vcjob(name, made, **{"minAvailable": count if least is None else least, **(spec or {})})


def bare(name: str, **metadata: Any) -> Obj:
    made = pod_with(Rule(runs()))
    made["spec"]["containers"][0]["resources"] = {"requests": CPU}
    return {"metadata": {"name": name, **metadata}, "spec": made["spec"]}


def message(world: RealVolcano, job: str) -> str:
    """What its group waits for."""
    conditions = at_path(world.group(job), "status", "conditions", default=[])
    return str(conditions[0]["message"]) if conditions else ""


def evictions(world: RealVolcano) -> list[str]:
    return [str(event["message"]) for event in world.events.values() if event["reason"] == "Evicted"]


async def create(world: RealVolcano, *pods: Obj) -> None:
    for pod in pods:
        await world.user.create(POD, pod, NAMESPACE)


async def queue(world: RealVolcano, name: str, **spec: Any) -> None:
    await world.user.create(QUEUE, {"metadata": {"name": name}, "spec": spec})


async def are_running(world: RealVolcano, *pods: str) -> None:
    await world.until(lambda: all(at_path(world.pods.get(pod, {}), "status", "phase") == "Running" for pod in pods))


async def hypernode(world: RealVolcano, name: str, tier: int, *nodes: str) -> None:
    members = [{"type": "Node", "selector": {"exactMatch": {"name": node}}} for node in nodes]
    await world.user.create(HYPER_NODE, {"metadata": {"name": name}, "spec": {"tier": tier, "members": members}})


async def test_01_a_gang_that_reclaims_is_in_one_domain(tmp_path: Path) -> None:
    async with RealVolcano(tmp_path, nodes=4, capacity={"cpu": "2"}) as world:
        nodes = [node.name for node in world.hosted.nodes]
        domains = [set(nodes[:2]), set(nodes[2:])]
        for number, domain in enumerate(domains):
            await hypernode(world, f"s{number}", 1, *sorted(domain))
        for name in ("a", "b"):
            await queue(world, name)
        await world.submit(gang("low", 8, least=1, spec={"queue": "a"}))
        await world.up("low", 8)
        near = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}
        await world.submit(gang("near", 3, spec={"queue": "b", **near}))
        await world.up("near", 3)
        used = {world.pods[pod]["spec"]["nodeName"] for pod in world.pods_of("near")}
        assert any(used <= domain for domain in domains)


async def test_04_reclaim_takes_neither_bare_pods_nor_those_of_a_framework(tmp_path: Path) -> None:
    async with RealVolcano(tmp_path, capacity={"cpu": "4"}) as world:
        await create(world, bare("plain-0"), bare("plain-1"))
        old = role(number=2, fate=runs())
        old["task"]["pod"]["spec"]["containers"][0]["resources"] = {"requests": CPU}
        await world.user.create(FRAMEWORK, fw("old", old), NAMESPACE)
        pods = ["old-worker-0", "old-worker-1", "plain-0", "plain-1"]
        await are_running(world, *pods)
        before = {name: uid_of(world.pods[name]) for name in pods}
        await queue(world, "new")
        await world.submit(gang("job", 2, spec={"queue": "new"}))
        await world.until(lambda: bool(message(world, "job")))  # by the plan that would have evicted
        assert ({name: uid_of(pod) for name, pod in world.pods.items()}, evictions(world)) == (before, [])
        assert not any("deletionTimestamp" in pod["metadata"] for pod in world.pods.values())


async def test_05_a_gated_job_keeps_nothing_from_others_and_starts_when_its_gates_are_removed(tmp_path: Path) -> None:
    async with RealVolcano(tmp_path, capacity={"cpu": "2"}) as world:
        await world.submit(gang("gated", 2, schedulingGates=[{"name": "example.com/data"}]))
        await world.until(lambda: len(world.pods_of("gated")) == 2)
        await world.submit(gang("other", 2))
        await world.up("other", 2)
        await world.command("other", "CompleteJob")
        await world.in_phase("other", "Completed")
        assert set(world.pods_of("gated").values()) == {"Pending"}
        for pod in list(world.pods_of("gated")):
            await world.user.patch(POD, pod, NAMESPACE, patch={"spec": {"schedulingGates": None}})
        await world.up("gated", 2)


async def test_06_required_affinity_ends_when_the_match_is_bound(tmp_path: Path) -> None:
    async with RealVolcano(tmp_path) as world:
        await world.submit(gang("waits", 1, affinity={"podAffinity": BESIDE_WEB}))
        await world.until(lambda: "app=web" in message(world, "waits"))
        await create(world, bare("web", labels=WEB))
        await world.up("waits", 1)


@pytest.mark.parametrize("annotation", ["sla-waiting-time", "volcano.sh/sla-waiting-time"])
async def test_06_the_deadline_itself_admits_a_job_although_the_cluster_is_full(
    tmp_path: Path, annotation: str
) -> None:
    async with RealVolcano(tmp_path, capacity={"cpu": "2"}) as world:
        await world.submit(gang("old", 2))
        await world.up("old", 2)
        promised = gang("promised", 2)
        promised["metadata"]["annotations"] = {annotation: "2s"}
        await world.submit(promised)
        await world.until(lambda: at_path(world.group("promised"), "status", "phase") == "Inqueue")


async def test_07_a_queue_that_reserves_all_of_the_cluster_keeps_others_out(tmp_path: Path) -> None:
    async with RealVolcano(tmp_path, capacity={"cpu": "2"}) as world:
        await queue(world, "reserved", guarantee={"resource": {"cpu": "2"}}, deserved={"cpu": "2"})
        await queue(world, "other")
        await world.submit(gang("job", 1, spec={"queue": "other"}))
        await world.until(lambda: "guarantees of other queues" in message(world, "job"))
        await world.submit(gang("own", 2, spec={"queue": "reserved"}))
        await world.up("own", 2)
        await world.command("own", "CompleteJob")
        await world.in_phase("own", "Completed")
        await world.rest(10)
        assert world.pods_of("job") == {}
        less = {"spec": {"guarantee": {"resource": {"cpu": "1"}}}}
        await world.user.patch(QUEUE, "reserved", patch=less, patch_type=PatchType.MERGE)
        await world.up("job", 1)


async def test_07_a_preemption_that_would_not_make_enough_room_leaves_everybody_alone(tmp_path: Path) -> None:
    async with RealVolcano(tmp_path, capacity={"cpu": "3"}) as world:
        await world.user.create(PRIORITY_CLASS, {"metadata": {"name": "high"}, "value": 100})
        await queue(world, "other", reclaimable=False)
        await world.submit(gang("kept", 1, spec={"queue": "other"}))
        await world.up("kept", 1)
        await world.submit(gang("low", 1))
        await world.up("low", 1)
        group = {"minMember": 3, "priorityClassName": "high"}
        await world.user.create(POD_GROUP, {"metadata": {"name": "high-1"}, "spec": group}, NAMESPACE)
        for number in range(3):
            pod = bare(f"high-{number}", annotations={GROUP_NAME: "high-1"})
            pod["spec"]["priorityClassName"] = "high"
            await create(world, pod)
        too_little = "evicting all preemptible pods of lower priority in the same queue would not free enough"
        await world.until(lambda: message(world, "high").endswith(too_little))
        assert (world.counts("low"), world.counts("kept"), evictions(world)) == ({"running": 1}, {"running": 1}, [])


@asynccontextmanager
async def endless_stream(world: RealVolcano) -> AsyncIterator[None]:
    """Small jobs that together ask for more than there is, and a new one for each that ends."""

    def unfinished() -> int:
        return len(
            [name for name in world.frameworks if name.startswith("small-") and world.phase(name) != "Completed"]
        )

    async def submit() -> None:
        number = 0
        while True:
            small = task(fate=exits(0, after=5.0), requests={"cpu": "2"})
            await world.submit(vcjob(f"small-{number}", small))
            number += 1
            await world.until(lambda: unfinished() < 8)

    streaming = asyncio.create_task(submit())
    try:
        yield
    finally:
        streaming.cancel()
        with suppress(asyncio.CancelledError):
            await streaming


async def test_08_a_gang_of_8_of_12_cores_starts_behind_an_endless_stream(tmp_path: Path) -> None:
    settings = PlannerSettings(starving_seconds=2.0)
    async with RealVolcano(tmp_path, capacity={"cpu": "12"}, scheduler=settings) as world, endless_stream(world):
        await world.until(lambda: world.phase("small-5") == "Running")
        await world.submit(gang("big", 8))
        async with asyncio.timeout(60):
            await world.up("big", 8)


async def test_09_a_hard_topology_without_domains_is_waited_for(tmp_path: Path) -> None:
    async with RealVolcano(tmp_path, nodes=2) as world:
        await world.submit(gang("near", 2, spec={"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}))
        unknown = "needs 2 pods in one topology domain, but the cluster has no topology"
        await world.until(lambda: message(world, "near").startswith(unknown))
        assert set(world.pods_of("near").values()) == {"Pending"}
        await hypernode(world, "s0", 1, *(node.name for node in world.hosted.nodes))
        await world.up("near", 2)


async def test_10_anti_affinity_of_4_pods_on_3_nodes_is_named(tmp_path: Path) -> None:
    async with RealVolcano(tmp_path, nodes=3, capacity={"cpu": "4"}) as world:
        await world.submit(gang("job", 4, labels=WEB, affinity={"podAntiAffinity": BESIDE_WEB}))
        named = (
            "needs 4 pods of worker at once, 3 would fit, 1 missing: "
            f"required pod anti-affinity to pod with app=web, per {HOST}, excludes all 3 nodes"
        )
        await world.until(lambda: message(world, "job").startswith(named))
        await world.resize("job", 3)
        await world.up("job", 3)


async def test_10_a_host_port_that_is_taken_everywhere_is_named(tmp_path: Path) -> None:
    async with RealVolcano(tmp_path, nodes=3, capacity={"cpu": "4"}) as world:
        for name, count in (("old", 3), ("job", 1)):
            made = gang(name, count)
            container = made["spec"]["tasks"][0]["template"]["spec"]["containers"][0]
            container["ports"] = [{"containerPort": 8080, "hostPort": 8080}]
            await world.submit(made)
            if name == "old":
                await world.up(name, count)
        await world.until(lambda: message(world, "job").endswith("1 missing: host port 8080 is taken on all 3 nodes"))
        await world.command("old", "CompleteJob")
        await world.up("job", 1)


async def test_10_too_few_pods_of_a_gang_are_named(tmp_path: Path) -> None:
    async with RealVolcano(tmp_path) as world:
        await world.user.create(POD_GROUP, {"metadata": {"name": "few-1"}, "spec": {"minMember": 3}}, NAMESPACE)
        await create(world, *(bare(f"few-{number}", annotations={GROUP_NAME: "few-1"}) for number in range(2)))
        await world.until(lambda: message(world, "few") == "2 of the 3 pods the gang needs at once exist")
        await create(world, bare("few-2", annotations={GROUP_NAME: "few-1"}))
        await are_running(world, "few-0", "few-1", "few-2")
        assert sorted(name_of(pod) for pod in world.pods.values()) == ["few-0", "few-1", "few-2"]
