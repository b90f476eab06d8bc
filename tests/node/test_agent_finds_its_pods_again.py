"""What an agent makes of the pods of an earlier life."""

from __future__ import annotations

import shutil
from pathlib import Path

from kit.fake_sandbox import FakeSandboxes
from kit.pods import config, container, is_gone, phase_is, pod, running_agent, wait_for_pod
from shoal.cluster.client import DeleteOptions
from shoal.cluster.embedded import EmbeddedCluster
from shoal.kube.kinds import POD
from shoal.kube.objects import Obj

AT_ONCE = DeleteOptions(grace_seconds=0)


async def start(cluster: EmbeddedCluster, sandboxes: FakeSandboxes, data: Path, obj: Obj) -> Obj:
    """One life in which the pod comes to run."""
    async with running_agent(cluster, sandboxes, config(data)):
        await cluster.create(POD, obj, "default")
        found = await wait_for_pod(cluster, obj["metadata"]["name"], phase_is("Running"))
    assert found is not None
    return found


async def another_ends(cluster: EmbeddedCluster) -> None:
    """The agent has made something of the pods it found once it has run one that came after them to its end."""
    await cluster.create(POD, pod("another", container("main", "exit", "0"), restartPolicy="Never"), "default")
    await wait_for_pod(cluster, "another", phase_is("Succeeded"))


def starts_of(obj: Obj, sandboxes: FakeSandboxes) -> int:
    return [uid for uid, _ in sandboxes.started].count(obj["metadata"]["uid"])


async def test_a_running_pod_is_adopted_as_it_is(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    sandboxes = FakeSandboxes()
    before = await start(cluster, sandboxes, tmp_path, pod("p"))
    async with running_agent(cluster, sandboxes, config(tmp_path)):
        await another_ends(cluster)
        after = await cluster.get(POD, "p", "default")
    assert after == before
    assert starts_of(before, sandboxes) == 1


async def test_an_exit_while_the_agent_was_away_is_reported_with_its_code(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    sandboxes = FakeSandboxes()
    await start(cluster, sandboxes, tmp_path, pod("p", restartPolicy="Never"))
    (sandbox,) = sandboxes.sandboxes.values()
    sandbox.end("main.0", 5)
    async with running_agent(cluster, sandboxes, config(tmp_path)):
        done = await wait_for_pod(cluster, "p", phase_is("Failed"))
    assert done is not None
    assert done["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 5


async def test_a_pod_deleted_in_the_meantime_is_torn_down(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    sandboxes = FakeSandboxes()
    await start(cluster, sandboxes, tmp_path, pod("p"))
    await cluster.delete(POD, "p", "default", AT_ONCE)
    async with running_agent(cluster, sandboxes, config(tmp_path)):
        assert sandboxes.sandboxes == {}
        assert not list((tmp_path / "nodes/n1/pods").iterdir())


async def test_a_pod_made_anew_under_the_old_name_is_another_pod(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    sandboxes = FakeSandboxes()
    before = await start(cluster, sandboxes, tmp_path, pod("p"))
    await cluster.delete(POD, "p", "default", AT_ONCE)
    created = await cluster.create(POD, pod("p"), "default")
    async with running_agent(cluster, sandboxes, config(tmp_path)):
        await wait_for_pod(cluster, "p", phase_is("Running"))
        assert set(sandboxes.sandboxes) == {created["metadata"]["uid"]}
    assert created["metadata"]["uid"] != before["metadata"]["uid"]


async def test_a_node_that_lost_its_folder_still_counts_restarts(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    sandboxes = FakeSandboxes()
    await start(cluster, sandboxes, tmp_path, pod("p", container("main", "exits", "1,1,never")))
    shutil.rmtree(tmp_path / "nodes")
    sandboxes.sandboxes.clear()

    def is_back(obj: Obj | None) -> bool:
        (told,) = (obj or {})["status"]["containerStatuses"]
        return "running" in told["state"] and told["restartCount"] == 3

    async with running_agent(cluster, sandboxes, config(tmp_path)):
        back = await wait_for_pod(cluster, "p", is_back)
    assert back is not None
    lost = back["status"]["containerStatuses"][0]["lastState"]["terminated"]
    assert (lost["exitCode"], lost["reason"]) == (137, "ContainerStatusUnknown")


async def test_a_node_that_lost_its_records_adopts_what_runs(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    sandboxes = FakeSandboxes()
    before = await start(cluster, sandboxes, tmp_path, pod("p"))
    shutil.rmtree(tmp_path / "nodes")
    async with running_agent(cluster, sandboxes, config(tmp_path)):
        await another_ends(cluster)
        after = await cluster.get(POD, "p", "default")
        await cluster.delete(POD, "p", "default")
        await wait_for_pod(cluster, "p", is_gone)
    assert after["status"]["containerStatuses"] == before["status"]["containerStatuses"]
    assert starts_of(before, sandboxes) == 1


async def test_a_pod_that_is_over_is_not_run_again(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    sandboxes = FakeSandboxes()
    async with running_agent(cluster, sandboxes, config(tmp_path)):
        await cluster.create(POD, pod("p", container("main", "exit", "0"), restartPolicy="Never"), "default")
        done = await wait_for_pod(cluster, "p", phase_is("Succeeded"))
    assert done is not None
    shutil.rmtree(tmp_path / "nodes")
    async with running_agent(cluster, sandboxes, config(tmp_path)):
        await another_ends(cluster)
        assert await cluster.get(POD, "p", "default") == done
        await cluster.delete(POD, "p", "default")
        await wait_for_pod(cluster, "p", is_gone)
    assert starts_of(done, sandboxes) == 1
