"""The story of a gang that made room for somebody else: one line says for whom, and one that it cost nothing."""

from __future__ import annotations

import re

import pytest

from kit.pod_behavior import exits, runs
from kit.scenario import NAMESPACE
from kit.volcano_jobs import policy, task, vcjob
from kit.volcano_world import CrowdedSimulation
from shoal.cli.commands.describe import load_context
from shoal.cli.describe_page import describe_job
from shoal.cli.job_lookup import FoundJob
from shoal.dialects.volcano import DIALECT
from shoal.kube.kinds import PRIORITY_CLASS
from shoal.kube.objects import Obj

CPU = {"cpu": "1"}
EVICTED = (
    "worker-0 to worker-3 were evicted in attempt 0: train was preempted by urgent of higher priority in queue default."
)
WAITS = "train is not ready: 0 of 4 tasks run or have ended."
NOT_ADMITTED = (
    "The PodGroup is not admitted: needs 4 cpu; admitted groups may request 4 in this cluster and already request 2."
)


async def happened(policies: list[Obj]) -> list[str]:
    """What is told of a gang on all of the room when somebody more important came."""
    async with CrowdedSimulation() as world:
        await world.user.create(PRIORITY_CLASS, {"metadata": {"name": "high"}, "value": 100})
        await world.submit(vcjob("train", task(replicas=4, fate=runs(), requests=CPU), policies=policies))
        await world.up("train", 4)
        great = task(replicas=2, fate=exits(0, 30), requests=CPU)
        await world.submit(vcjob("urgent", great, priorityClassName="high"))
        await world.up("urgent", 2)
        await world.up("train", 4)
        found = FoundJob(await world.user.get(DIALECT.kind, "train", NAMESPACE), DIALECT)
        page = describe_job(found, await load_context(world.user, found))
    lines = page.split("What happened:\n")[1].split("\n\n")[0].splitlines()
    return [re.sub(r".*ago\)  ", "", line) for line in lines]


@pytest.mark.parametrize(
    ("policies", "answer"),
    [
        pytest.param([], ["worker-0 to worker-3 are retried as attempt 1 (not counted).", WAITS], id="one by one"),
        pytest.param(
            [policy("PodEvicted", "RestartJob")],
            [
                WAITS,
                "train restarts with all its tasks, because the pod of worker-0 was deleted or evicted.",
                "Run 1 of train started.",
                NOT_ADMITTED,
            ],
            id="as a whole",
        ),
    ],
)
async def test_describe_an_evicted_gang(policies: list[Obj], answer: list[str]) -> None:
    assert await happened(policies) == ["It was submitted.", "Its first task started.", EVICTED, *answer]
