"""The node's own objects: what it offers, and that it is alive."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kit.fake_sandbox import FakeSandboxes
from kit.pods import config, container, machine, phase_is, pod, running_agent, wait_for_pod
from shoal.cluster.embedded import EmbeddedCluster
from shoal.kube.kinds import LEASE, NODE, POD, SERVICE
from shoal.kube.times import rfc3339_micro
from shoal.node.agent import Agent
from shoal.node.config import split
from shoal.node.heartbeat import NodeRefused
from shoal.node.shared_state import SharedState


async def test_the_node_reports_its_capacity(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    settings = config(tmp_path, capacity={"nvidia.com/gpu": "4"}, labels={"zone": "a"})
    async with running_agent(cluster, FakeSandboxes(), settings):
        node = await cluster.get(NODE, "n1")
        lease = await cluster.get(LEASE, "n1", "kube-node-lease")
    assert node["status"]["allocatable"] == {
        "cpu": "64",
        "memory": "256Gi",
        "ephemeral-storage": "100Gi",
        "pods": "110",
        "nvidia.com/gpu": "4",
    }
    assert {(c["type"], c["status"]) for c in node["status"]["conditions"]} == {
        ("MemoryPressure", "False"),
        ("DiskPressure", "False"),
        ("PIDPressure", "False"),
        ("Ready", "True"),
    }
    assert node["metadata"]["labels"].items() >= {
        ("kubernetes.io/hostname", "n1"),
        ("kubernetes.io/os", "linux"),
        ("zone", "a"),
    }
    assert node["spec"]["podCIDR"] == "10.77.1.0/24"
    assert node["status"]["addresses"][0] == {"type": "InternalIP", "address": "127.0.0.1"}
    assert (lease["spec"]["holderIdentity"], lease["spec"]["leaseDurationSeconds"]) == ("n1", 40)
    assert lease["metadata"]["ownerReferences"][0]["uid"] == node["metadata"]["uid"]


async def test_the_lease_is_renewed_by_the_clock(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    async with running_agent(cluster, FakeSandboxes(), config(tmp_path, renew_seconds=0.01)):
        times = set()
        async for event in cluster.watch(LEASE, "kube-node-lease", initial_events=True):
            times.add(event.object.get("spec", {}).get("renewTime"))
            if len(times - {None}) == 3:
                break


async def test_an_agent_ends_when_another_one_holds_its_lease(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    agent = Agent(cluster, FakeSandboxes(), config(tmp_path, renew_seconds=0.01, holder="n1_own"))
    running = asyncio.create_task(agent.run())
    await agent.ready.wait()
    until = rfc3339_micro(datetime.now(UTC) + timedelta(hours=1))
    await cluster.patch(
        LEASE, "n1", "kube-node-lease", patch={"spec": {"holderIdentity": "n1_other", "renewTime": until}}
    )
    with pytest.raises(ExceptionGroup) as ended:
        await asyncio.wait_for(running, 60)
    assert ended.group_contains(NodeRefused, match="another agent runs as node n1 and holds its Lease as n1_other")


async def test_a_deleted_node_is_registered_again(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    async with running_agent(cluster, FakeSandboxes(), config(tmp_path)):
        first = await cluster.get(NODE, "n1")
        await cluster.delete(NODE, "n1")
        async for event in cluster.watch(NODE, initial_events=True):
            if event.type != "BOOKMARK" and event.object["metadata"]["uid"] != first["metadata"]["uid"]:
                break


async def test_a_node_that_will_never_be_taken_ends_with_a_sentence(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    declared = config(tmp_path, capacity={"example.com/licence": "500m"})
    with pytest.raises(NodeRefused) as refused:
        await asyncio.wait_for(Agent(cluster, FakeSandboxes(), declared).run(), 60)
    assert str(refused.value).startswith('the API server rejected node n1: Node "n1" is invalid: [status.capacity')
    assert str(refused.value).endswith("declared in --capacity, --label and --taint, and in `capacity:` of shoal.yaml.")


async def test_nodes_of_one_machine_share_names_and_split_the_rest(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    sandboxes = FakeSandboxes()
    whole = config(tmp_path, machine=machine(cores=5, gpus=(0, 1, 2)))
    host = SharedState(cluster, sandboxes)
    agents = [Agent(cluster, sandboxes, part, host=host) for part in split(whole, 2)]
    await cluster.create(SERVICE, {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}}, "default")
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(work) for work in (host.run(), *(agent.run() for agent in agents))]
        for name in ("n1-0", "n1-1"):
            await cluster.create(POD, pod(name, container(), node=name), "default")
        found = [await wait_for_pod(cluster, name, phase_is("Running")) for name in ("n1-0", "n1-1")]
        nodes = {n["metadata"]["name"]: n["status"]["capacity"] for n in (await cluster.list(NODE)).items}
        for task in running:
            task.cancel()
    assert {name: (c["cpu"], c["nvidia.com/gpu"]) for name, c in nodes.items()} == {
        "n1-0": ("3", "2"),
        "n1-1": ("2", "1"),
    }
    assert [(p or {})["status"]["podIP"] for p in found] == ["10.77.1.1", "10.77.2.1"]
    assert len(sandboxes.tables) == 1


async def test_pods_of_a_node_that_is_no_longer_here_end(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    sandboxes = FakeSandboxes()
    async with running_agent(cluster, sandboxes, config(tmp_path, name="old")):
        await cluster.create(POD, pod("p", node="old"), "default")
        await wait_for_pod(cluster, "p", phase_is("Running"))
    async with running_agent(cluster, sandboxes, config(tmp_path, name="new")):
        assert sandboxes.sandboxes == {}
        assert [path.name for path in (tmp_path / "nodes").iterdir()] == ["new"]
