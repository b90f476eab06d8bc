"""A new job is checked against what else there is, also where a webhook is asked: the queue it wants to enter."""

from __future__ import annotations

from typing import Any

from kit.scenario import NAMESPACE
from kit.volcano_jobs import task, vcjob
from kit.volcano_world import SimulatedVolcano
from shoal.cluster.client import Cluster
from shoal.dialects.volcano import DIALECT
from shoal.kube.errors import forbidden
from shoal.kube.objects import Obj
from shoal.operator.webhook import answer, validating_kinds
from shoal.scheduler.api.pod_groups import QUEUE

SUBJECTS = validating_kinds([DIALECT])


async def asked(cluster: Cluster, queue: str, *, is_new: bool = True) -> Obj:
    job = DIALECT.default(vcjob("a", task(), queue=queue))
    job["metadata"]["namespace"] = NAMESPACE
    kind = {"group": DIALECT.kind.group, "version": DIALECT.kind.version, "kind": "Job"}
    review = {"request": {"uid": "u", "kind": kind, "object": job, "oldObject": None if is_new else job}}
    response: Obj = (await answer(review, SUBJECTS, cluster))["response"]
    return response


async def test_a_queue_that_is_closed_or_missing_refuses_a_new_job() -> None:
    async with SimulatedVolcano() as world:
        await world.user.create(QUEUE, {"metadata": {"name": "shut"}, "spec": {}})
        await world.user.patch(QUEUE, "shut", patch={"status": {"state": "Closed"}}, subresource="status")
        answers = {queue: await asked(world.user, queue) for queue in ("default", "shut", "nowhere")}
        later = await asked(world.user, "shut", is_new=False)
    causes = {queue: each.get("status", {}).get("details", {}).get("causes") for queue, each in answers.items()}
    assert causes["default"] is None
    assert [(queue, causes[queue][0]["field"]) for queue in ("shut", "nowhere")] == [
        ("shut", "spec.queue"),
        ("nowhere", "spec.queue"),
    ]
    assert "`Closed`" in causes["shut"][0]["message"]
    assert later == {"uid": "u", "allowed": True}


class Blind:
    """A cluster whose queues nobody may see."""

    async def list(self, *_: Any, **__: Any) -> Any:
        raise forbidden(QUEUE, "", "they are none of your business")


async def test_what_cannot_be_seen_refuses_nobody() -> None:
    assert await asked(Blind(), "nowhere") == {"uid": "u", "allowed": True}  # type: ignore[arg-type]
