"""The leader is killed (kill -9) and cannot give its Lease back: whoever waits takes over when it has run out."""

from __future__ import annotations

import signal

import pytest

from kit.framework_notation import fw, role
from kit.hollow_nodes import HollowNodes
from kit.operator_namespace import Ground
from kit.operator_process import operator
from kit.pod_behavior import exits, runs
from shoal.kube.kinds import LEASE
from shoal.kube.objects import Obj

pytestmark = pytest.mark.kubernetes


async def test_whoever_waits_takes_over_when_the_lease_of_a_killed_leader_has_run_out(ground: Ground) -> None:
    await ground.install()
    words = [*ground.flags, "--lease-duration", "3"]
    async with (
        HollowNodes(ground.admin, namespace=ground.jobs).running() as nodes,
        operator(ground.kubeconfig(), *words) as first,
    ):
        await first.says("leading")
        async with operator(ground.kubeconfig(), *words) as second:
            await second.says("prepared")
            job = await ground.submit(fw("stays", role(number=2, fate=runs())))
            await ground.becomes(job, lambda found: states(found) == ["AttemptRunning"] * 2)
            first.signal(signal.SIGKILL)
            await first.process.wait()
            successor = (await second.says("leading"))["identity"]
            await ground.ends(await ground.submit(fw("next", role(fate=exits(0, after=0.05)))))
            lease = await ground.admin.get(LEASE, f"{ground.options.name}-0", ground.own)
            assert lease["spec"]["holderIdentity"] == successor
            assert await second.stop() == 0
    assert len(nodes.lived) == 3  # the pods of the first job ran on


def states(framework: Obj | None) -> list[str]:
    attempt = ((framework or {}).get("status") or {}).get("attemptStatus") or {}
    return [task["state"] for each in attempt.get("taskRoleStatuses") or () for task in each["taskStatuses"]]
