"""The agent against the embedded cluster: a bound pod becomes processes and its status tells."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from kit.fake_sandbox import FakeSandboxes
from kit.pods import config, container, is_gone, phase_is, pod, running_agent, wait_for_pod

from shoal.cluster.embedded import EmbeddedCluster
from shoal.kube.kinds import POD


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    opened = await EmbeddedCluster.open(":memory:")
    yield opened
    await opened.close()


async def test_a_pod_that_succeeds_is_succeeded(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    async with running_agent(cluster, FakeSandboxes(), config(tmp_path)):
        await cluster.create(POD, pod("p", container("main", "exit", "0"), restartPolicy="Never"), "default")
        done = await wait_for_pod(cluster, "p", phase_is("Succeeded", "Failed"))
    assert done is not None
    assert done["status"]["phase"] == "Succeeded"
    print(done["status"])


async def test_a_deleted_pod_is_stopped_and_goes(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    sandboxes = FakeSandboxes()
    async with running_agent(cluster, sandboxes, config(tmp_path)):
        await cluster.create(POD, pod("p"), "default")
        await wait_for_pod(cluster, "p", phase_is("Running"))
        await cluster.delete(POD, "p", "default")
        await wait_for_pod(cluster, "p", is_gone)
    assert [s for _, _, s in sandboxes.signals] == [15]
    assert sandboxes.sandboxes == {}
