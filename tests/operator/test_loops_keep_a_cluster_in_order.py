"""The loops together on a simulated cluster: what they leave behind, also when requests and watches go wrong."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from shoal.cluster.client import PatchType, WatchEvent
from shoal.cluster.fault_injection import Call, Faults, WatchDisruption, calls
from shoal.cluster.simulated import SimulatedCluster
from shoal.cluster.types import ListOptions
from shoal.controller_runtime.runnables import run_all
from shoal.kube.conditions import condition_of
from shoal.kube.kinds import (
    ENDPOINT_SLICE,
    ENDPOINTS,
    EVENT,
    NAMESPACE,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    SERVICE,
    SERVICE_ACCOUNT,
    Kind,
)
from shoal.kube.objects import Obj, at_path, name_of, uid_of
from shoal.local.embedded_controllers import standard_loops
from shoal.scheduler.planner import planner

PATIENCE_SECONDS = 240


@asynccontextmanager
async def loops(cluster: SimulatedCluster, folder: Path) -> AsyncIterator[None]:
    assert planner  # loaded with this module, and not in a thread beside the busy `until`
    running = asyncio.create_task(run_all(standard_loops(cluster, volumes=folder, clock=cluster.clock)))
    try:
        yield
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def until(cluster: SimulatedCluster, kind: Kind, is_so: Callable[[dict[str, Obj]], bool]) -> dict[str, Obj]:
    """The objects of a kind by name, once they are as expected; told by a watch, while the clock moves on."""
    seen: dict[str, Obj] = {}

    async def watch() -> None:
        is_complete = False
        async for event in cluster.embedded.watch(kind, initial_events=True):
            is_complete = is_complete or event.ends_initial_list
            if event.type == "DELETED":
                seen.pop(name_of(event.object), None)
            elif event.type != "BOOKMARK":
                seen[name_of(event.object)] = event.object
            if is_complete and is_so(seen):
                return

    watching = asyncio.create_task(watch())
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not watching.done():
                cluster.clock.advance(0.05)  # pauses after failures pass quickly
                await asyncio.sleep(0)
        await watching
    finally:
        watching.cancel()
    return seen


def node(name: str, **allocatable: str) -> Obj:
    room = {"cpu": "4", "memory": "8Gi", "pods": "110", **allocatable}
    ready = {"type": "Ready", "status": "True"}
    return {"metadata": {"name": name}, "status": {"capacity": room, "allocatable": room, "conditions": [ready]}}


def pod(name: str, *, cpu: str = "1", **labels: str) -> Obj:
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    return {"metadata": {"name": name, "labels": labels}, "spec": {"containers": [container]}}


async def running(cluster: SimulatedCluster, name: str, ip: str) -> None:
    """What a node would report."""
    conditions = [{"type": "Ready", "status": "True"}]
    status = {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}], "conditions": conditions}
    await cluster.embedded.patch(
        POD, name, "default", patch={"status": status}, patch_type=PatchType.STRATEGIC, subresource="status"
    )


def node_of(pod: Obj) -> Any:
    return at_path(pod, "spec", "nodeName")


def writes(call: Call) -> bool:
    return call.is_write


def every_third(number: int, _: WatchEvent) -> bool:
    return number % 3 == 0


def third_of_twenty_streams() -> Callable[[int, WatchEvent], bool]:
    """For a while only: a list of three that is always cut at the third never ends."""
    left = iter(range(20))
    return lambda number, _: number == 3 and next(left, None) is not None


NO_ROOM = ("False", "Unschedulable", "needs 5 cpu, the most free is 0 of 4 on node a")


def told(pod: Obj | None) -> tuple[str, str, str]:
    condition = condition_of(pod or {}, "PodScheduled") or {}
    return condition.get("status", ""), condition.get("reason", ""), condition.get("message", "")


FAULTS = [
    pytest.param(Faults, id="all well"),
    pytest.param(lambda: Faults().fail(writes, times=3), id="writes refused"),
    pytest.param(lambda: Faults().lose_response(writes, times=3), id="answers lost"),
    pytest.param(lambda: Faults().disturb(WatchDisruption.DUPLICATE, every_third), id="events twice"),
    pytest.param(lambda: Faults().disturb(WatchDisruption.CUT, third_of_twenty_streams()), id="watches cut"),
]


@pytest.mark.parametrize("faults", FAULTS)
async def test_pods_are_placed_once_and_told_why_not(faults: Callable[[], Faults], tmp_path: Path) -> None:
    cluster = SimulatedCluster(faults=faults())
    await cluster.embedded.create(NODE, node("a"))
    async with loops(cluster, tmp_path):
        for name, cpu in (("p1", "3"), ("p2", "5"), ("p3", "1")):
            await cluster.embedded.create(POD, pod(name, cpu=cpu), "default")
        pods = await until(cluster, POD, lambda seen: told(seen.get("p2")) == NO_ROOM)
        assert {name: node_of(p) for name, p in pods.items()} == {"p1": "a", "p2": None, "p3": "a"}

        await cluster.embedded.create(NODE, node("b", cpu="8"))
        pods = await until(cluster, POD, lambda seen: bool(node_of(seen["p2"])))
        assert node_of(pods["p2"]) == "b"


async def test_the_wait_is_an_event_too(tmp_path: Path) -> None:
    cluster = SimulatedCluster()
    async with loops(cluster, tmp_path):
        await cluster.embedded.create(POD, pod("p"), "default")
        events = await until(cluster, EVENT, lambda seen: len(seen) == 1)
    (event,) = events.values()
    assert (event["reason"], event["message"]) == ("FailedScheduling", "waiting: the cluster has no node yet")


@pytest.mark.parametrize("faults", FAULTS)
async def test_a_service_follows_its_pods(faults: Callable[[], Faults], tmp_path: Path) -> None:
    cluster = SimulatedCluster(faults=faults())
    await cluster.embedded.create(NODE, node("a"))
    service = {"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}

    def addresses(seen: dict[str, Obj]) -> list[str]:
        return [e["addresses"][0] for piece in seen.values() for e in piece.get("endpoints") or ()]

    async with loops(cluster, tmp_path):
        await cluster.embedded.create(SERVICE, service, "default")
        await cluster.embedded.create(POD, pod("w1", app="web"), "default")
        await until(cluster, POD, lambda seen: bool(node_of(seen["w1"])))
        await running(cluster, "w1", "10.77.0.2")
        await until(cluster, ENDPOINT_SLICE, lambda seen: addresses(seen) == ["10.77.0.2"])
        old = await until(cluster, ENDPOINTS, lambda seen: bool(seen) and bool(seen["web"].get("subsets")))
        assert old["web"]["subsets"][0]["addresses"][0]["ip"] == "10.77.0.2"

        await cluster.embedded.patch(POD, "w1", "default", patch={"metadata": {"labels": {"app": "other"}}})
        await until(cluster, ENDPOINT_SLICE, lambda seen: bool(seen) and addresses(seen) == [])

        await cluster.embedded.delete(SERVICE, "web", "default")
        await until(cluster, ENDPOINT_SLICE, lambda seen: not seen)
        await until(cluster, ENDPOINTS, lambda seen: not seen)


async def test_endpoints_somebody_made_are_taken_over(tmp_path: Path) -> None:
    cluster = SimulatedCluster()
    stale = {"metadata": {"name": "web"}, "subsets": [{"addresses": [{"ip": "10.1.1.1"}]}]}
    await cluster.embedded.create(ENDPOINTS, stale, "default")
    service = {"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}
    async with loops(cluster, tmp_path):
        await cluster.embedded.create(SERVICE, service, "default")
        taken = await until(cluster, ENDPOINTS, lambda seen: not seen["web"].get("subsets"))
    assert taken["web"]["metadata"]["ownerReferences"][0]["name"] == "web"


@pytest.mark.parametrize("faults", FAULTS)
async def test_a_claim_gets_a_folder_and_gives_it_back(faults: Callable[[], Faults], tmp_path: Path) -> None:
    cluster = SimulatedCluster(faults=faults())
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    async with loops(cluster, tmp_path):
        await cluster.embedded.create(PERSISTENT_VOLUME_CLAIM, {"metadata": {"name": "data"}, "spec": spec}, "default")
        claims = await until(
            cluster, PERSISTENT_VOLUME_CLAIM, lambda seen: at_path(seen["data"], "status", "phase") == "Bound"
        )
        volume = claims["data"]["spec"]["volumeName"]
        volumes = await until(
            cluster, PERSISTENT_VOLUME, lambda seen: at_path(seen[volume], "status", "phase") == "Bound"
        )
        folder = Path(volumes[volume]["spec"]["hostPath"]["path"])
        assert (folder.is_dir(), folder.stat().st_mode & 0o777) == (True, 0o777)

        await cluster.embedded.delete(PERSISTENT_VOLUME_CLAIM, "data", "default")
        await until(cluster, PERSISTENT_VOLUME, lambda seen: not seen)
        assert not folder.exists()


async def test_a_claim_that_cannot_be_served_keeps_no_other_waiting(tmp_path: Path) -> None:
    faults = Faults()
    cluster = SimulatedCluster(faults=faults)
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    for name in ("a", "b"):
        made = {"metadata": {"name": name}, "spec": spec}
        claim = await cluster.embedded.create(PERSISTENT_VOLUME_CLAIM, made, "default")
        if name == "a":
            faults.fail(calls("create", PERSISTENT_VOLUME, f"pvc-{uid_of(claim)}"), times=None)
    async with loops(cluster, tmp_path):
        claims = await until(
            cluster, PERSISTENT_VOLUME_CLAIM, lambda seen: at_path(seen["b"], "status", "phase") == "Bound"
        )
    assert at_path(claims["a"], "status", "phase") == "Pending"


async def test_an_event_that_is_refused_does_not_disturb_the_scheduler(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = SimulatedCluster(faults=Faults().fail(calls("create", EVENT), times=None))
    await cluster.embedded.create(NODE, node("a"))
    async with loops(cluster, tmp_path):
        for name in ("p1", "p2"):
            await cluster.embedded.create(POD, pod(name), "default")
        await until(cluster, POD, lambda seen: all(node_of(p) for p in seen.values()))
    assert [record for record in caplog.records if record.getMessage().startswith("loop broke")] == []


async def test_every_namespace_has_its_account_again_and_again(tmp_path: Path) -> None:
    cluster = SimulatedCluster()
    async with loops(cluster, tmp_path):
        await cluster.embedded.create(NAMESPACE, {"metadata": {"name": "team"}})
        accounts = await until(cluster, SERVICE_ACCOUNT, lambda seen: "default" in seen)
        first = (await cluster.embedded.get(SERVICE_ACCOUNT, "default", "team"))["metadata"]["uid"]
        await cluster.embedded.delete(SERVICE_ACCOUNT, "default", "team")
        await until(
            cluster,
            SERVICE_ACCOUNT,
            lambda _: any(
                s["metadata"]["namespace"] == "team" and s["metadata"]["uid"] != first
                for s in cluster_accounts(cluster)
            ),
        )
    assert set(accounts) == {"default"}


def cluster_accounts(cluster: SimulatedCluster) -> list[Obj]:
    page = cluster.machinery.list(SERVICE_ACCOUNT, None, ListOptions())
    return [stored.obj() for stored in page.items]


async def test_pods_of_a_node_that_left_end(tmp_path: Path) -> None:
    cluster = SimulatedCluster()
    await cluster.embedded.create(NODE, node("a"))
    async with loops(cluster, tmp_path):
        await cluster.embedded.create(POD, pod("p"), "default")
        await until(cluster, POD, lambda seen: bool(node_of(seen["p"])))
        await running(cluster, "p", "10.77.0.2")
        await cluster.embedded.delete(NODE, "a")
        await until(cluster, POD, lambda seen: not seen)


async def test_at_rest_nothing_is_written(tmp_path: Path) -> None:
    cluster = SimulatedCluster()
    await cluster.embedded.create(NODE, node("a"))
    async with loops(cluster, tmp_path):
        await cluster.embedded.create(POD, pod("p"), "default")
        await until(cluster, POD, lambda seen: bool(node_of(seen["p"])))
        await until(cluster, EVENT, lambda seen: len(seen) == 1)
        settled = cluster.machinery.revision
        for _ in range(200):
            cluster.clock.advance(10)
            await asyncio.sleep(0)
        assert cluster.machinery.revision == settled
