"""Where a stop is an order of its own, asking again gives no second one."""

from __future__ import annotations

from kit.pod_behavior import runs
from kit.preloaded_cluster import founded
from kit.volcano_jobs import task, vcjob
from kit.volcano_world import SimulatedVolcano
from shoal.cli.job_actions import stop
from shoal.cli.job_lookup import find_job
from shoal.dialects.volcano import DIALECT
from shoal.dialects.volcano.commands import new_command
from shoal.kube.objects import Obj
from shoal.scheduler.api.pod_groups import COMMAND


async def test_an_order_that_waits_is_not_given_again() -> None:
    cluster = founded(0, DIALECT)
    made = await cluster.create(DIALECT.kind, vcjob("pet", task("worker", 1)), "default")
    await cluster.create(DIALECT.kind, vcjob("cat", task("worker", 1)), "default")
    older: Obj = {**made, "metadata": {**made["metadata"], "uid": "another"}}
    unowned: Obj = {**new_command(older, "TerminateJob"), "metadata": {"name": "stray"}}
    for others in (new_command(made, "AbortJob"), unowned):
        await cluster.create(COMMAND, others, "default")
    asked = [await stop(cluster, await find_job(cluster, name, "default")) for name in ("pet", "pet", "cat")]
    assert asked == [True, False, True]
    orders = (await cluster.list(COMMAND, "default")).items
    assert sorted((each["target"]["name"], each["action"]) for each in orders) == [
        ("cat", "TerminateJob"),
        ("pet", "AbortJob"),
        ("pet", "TerminateJob"),
        ("pet", "TerminateJob"),
    ]


async def test_a_job_that_ends_needs_no_order() -> None:
    async with SimulatedVolcano() as it:
        await it.submit(vcjob("pet", task("worker", 1, fate=runs())))
        await it.up("pet", 1)
        ordered = [await stop(it.user, await find_job(it.user, "pet", "default"))]
        await it.until(lambda: it.phase("pet") == "Terminating" and not it.commands)
        ordered.append(await stop(it.user, await find_job(it.user, "pet", "default")))
        assert (ordered, it.commands) == ([True, False], {})
