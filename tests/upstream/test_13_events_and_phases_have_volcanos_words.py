"""The phase of a PodGroup that lost a pod, and the reasons of Events about Volcano Jobs."""

from __future__ import annotations

from kit.pod_behavior import exits, runs
from kit.scenario import NAMESPACE
from kit.scheduled_cluster import NS, Scheduled, scheduled
from kit.volcano_jobs import policy, task, vcjob
from kit.volcano_world import ROOM, SimulatedVolcano, VolcanoWorld, scenario
from shoal.kube.kinds import POD
from shoal.kube.objects import uid_of

MARK = {"metadata": {"annotations": {"volcano.sh/controller-out-of-sync": "true"}}}


async def running_gang(it: Scheduled) -> None:
    await it.node("node-1")
    await it.gang("a", 3)
    await it.rest(2)
    assert await it.phase("a") == "Running"
    it.pods_leave = False


async def test_13_a_running_gang_that_loses_a_pod_is_unknown_until_another_has_its_place() -> None:
    async with scheduled() as it:
        await running_gang(it)
        await it.cluster.delete(POD, "a-0", NS)
        await it.rest()
        assert await it.phase("a") == "Unknown"
        await it.pods("a", 1, first=3)
        await it.rest(2)
        assert await it.phase("a") == "Running"


async def test_13_a_pod_that_its_own_controller_deletes_is_not_lost() -> None:
    async with scheduled() as it:
        await running_gang(it)
        await it.cluster.patch(POD, "a-0", NS, patch=MARK)
        await it.cluster.delete(POD, "a-0", NS)
        await it.rest(2)
        assert await it.phase("a") == "Running"


async def test_13_a_gang_that_lost_all_its_pods_keeps_its_room_from_groups_that_wait() -> None:
    async with scheduled() as it:
        await it.node("node-1", cpu=4)
        await it.group("a", 4, minResources={"cpu": "4"})
        await it.pods("a", 4)
        await it.group("b", 4, minResources={"cpu": "4"})
        await it.rest(2)
        assert (await it.phase("a"), await it.phase("b")) == ("Running", "Pending")
        for number in range(4):
            await it.cluster.delete(POD, f"a-{number}", NS)
            await it.rest(2)
        assert (await it.phase("a"), await it.phase("b")) == ("Inqueue", "Pending")
        await it.pods("a", 4, first=4)
        await it.rest(2)
        assert (await it.phase("a"), await it.phase("b")) == ("Running", "Pending")


async def test_13_a_pod_beyond_the_minimum_is_not_lost() -> None:
    async with scheduled() as it:
        await it.node("node-1")
        await it.gang("a", 3, least=2)
        it.pods_leave = False
        await it.cluster.delete(POD, "a-0", NS)
        await it.rest(2)
        assert await it.phase("a") == "Running"


@scenario(real=False)
async def test_13_a_deleted_pod_raises_unknown(world: SimulatedVolcano) -> None:
    worker = task(replicas=2, fate=runs(leaves_after=5))
    await world.submit(vcjob("a", worker, policies=[policy("Unknown", "RestartJob")]))
    await world.up("a", 2)
    await world.user.delete(POD, "a-worker-0", NAMESPACE)
    await world.until(lambda: world.status("a").get("retryCount") == 1)
    await world.up("a", 2)


@scenario(real=False)
async def test_13_a_job_that_is_scaled_down_raises_no_unknown(world: SimulatedVolcano) -> None:
    worker = task(replicas=3, fate=runs(leaves_after=5))
    await world.submit(vcjob("a", worker, policies=[policy("Unknown", "RestartJob")]))
    await world.up("a", 3)
    await world.resize("a", 1)
    await world.up("a", 1)
    assert not world.status("a").get("retryCount")


@scenario(real=False)
async def test_13_an_action_is_an_event(world: SimulatedVolcano) -> None:
    worker = task(replicas=2, of={0: exits(1)}, fate=runs(), in_runs={1: runs()})
    await world.submit(vcjob("a", worker, policies=[policy("PodFailed", "RestartJob")]))
    await world.until(lambda: world.status("a").get("retryCount") == 1)
    await world.up("a", 2)
    await world.command("a", "TerminateJob")
    await world.in_phase("a", "Terminated")
    if world.is_disturbed:
        return  # Events of an operator that was killed may be missing
    await world.until(lambda: len(texts(world, "ExecuteAction")) == 2)
    restart, end = texts(world, "ExecuteAction")
    assert restart.startswith("Start to execute action RestartJob: ")
    assert end.startswith("Start to execute action TerminateJob: ")


@scenario(real=False)
async def test_13_a_group_that_is_not_admitted_is_an_event_about_its_job(world: SimulatedVolcano) -> None:
    """One for each reason, not for each figure in it."""
    await world.submit(vcjob("a", task(replicas=2, requests={"cpu": "40"}, fate=runs())))
    await world.until(lambda: bool(texts(world, "PodGroupPending")) or world.is_disturbed)
    await world.set_room(ROOM | {"cpu": "65"})
    await world.rest(5)
    if not world.is_disturbed:
        (text,) = texts(world, "PodGroupPending")
        assert text.startswith("The PodGroup is not admitted: needs 80 cpu")
    await world.set_room(ROOM | {"cpu": "80"})
    await world.up("a", 2)


def texts(world: VolcanoWorld, reason: str) -> list[str]:
    uid = uid_of(world.job("a"))
    about = [event for event in world.events.values() if event["involvedObject"].get("uid") == uid]
    return [str(event["message"]) for event in about if event["reason"] == reason]
