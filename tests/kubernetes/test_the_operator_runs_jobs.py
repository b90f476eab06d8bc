"""`shoal operator` with the rights that `shoal install` gives it: jobs run, and it comes and goes cleanly."""

from __future__ import annotations

import urllib.request

import pytest

from kit.framework_notation import fw, role
from kit.hollow_nodes import HollowNodes
from kit.operator_namespace import Ground
from kit.operator_process import operator
from kit.pod_behavior import exits
from shoal.kube.kinds import LEASE

pytestmark = pytest.mark.kubernetes


def page(port: int, path: str) -> tuple[int, str]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
        return answer.status, answer.read().decode()


async def test_one_that_waits_for_its_turn_is_ready_too(ground: Ground) -> None:
    await ground.install()
    async with operator(ground.kubeconfig(), *ground.flags) as leader:
        identity = (await leader.says("leading"))["identity"]
        async with operator(ground.kubeconfig(), *ground.flags) as waiting:
            health = await waiting.port("health")
            await waiting.says("waiting for its turn")
            assert page(health, "/readyz") == (
                200,
                f"shard 0: waiting for the leader election lease; {identity} leads\n",
            )
            assert await waiting.stop() == 0
        lease = await ground.admin.get(LEASE, f"{ground.options.name}-0", ground.own)
        assert lease["spec"]["holderIdentity"] == identity


async def test_a_framework_runs_to_its_end_and_the_lease_is_given_back(ground: Ground) -> None:
    await ground.install()
    async with (
        HollowNodes(ground.admin, namespace=ground.jobs).running(),
        operator(ground.kubeconfig(), *ground.flags) as running,
    ):
        job = await ground.submit(fw("first", role(number=2, fate=exits(0, after=0.1))))
        ended = await ground.ends(job)
        assert ended["status"]["attemptStatus"]["completionStatus"]["type"]["name"] == "Succeeded"
        health, metrics = await running.port("health"), await running.port("metrics")
        assert page(health, "/healthz") == (200, "ok\n")
        assert page(health, "/readyz") == (200, "shard 0: leads\n")
        assert 'shoal_jobs{kind="Framework",state="succeeded"} 1.0' in page(metrics, "/metrics")[1]
        assert await running.stop() == 0
    lease = await ground.admin.get(LEASE, f"{ground.options.name}-0", ground.own)
    assert not lease["spec"].get("holderIdentity")


async def test_without_an_election_there_is_no_lease(ground: Ground) -> None:
    await ground.install()
    async with (
        HollowNodes(ground.admin, namespace=ground.jobs).running(),
        operator(ground.kubeconfig(), *ground.flags, "--no-leader-election") as running,
    ):
        await ground.ends(await ground.submit(fw("alone", role(fate=exits(0, after=0.05)))))
        assert page(await running.port("health"), "/readyz") == (200, "shard 0: leads\n")
        assert await running.stop() == 0
    assert (await ground.admin.list(LEASE, ground.own)).items == []
