"""Acceptance scenarios 24 to 32: tasks and roles added and removed while a Framework runs."""

from __future__ import annotations

from kit.fault_matrix import scenario
from kit.framework_notation import fw, role
from kit.pod_behavior import exits, holding, runs, would_take_its_time
from kit.scenario import World
from shoal.kube.objects import Obj

FAILED = "taskRoles__0__frameworkAttemptCompletionPolicy__minFailedTaskCount"


def indexes(world: World, name: str) -> list[int]:
    return [task["index"] for task in world.tasks(name)]


def uids(world: World, name: str) -> list[str]:
    return [task["attemptStatus"]["podUID"] for task in world.tasks(name)]


def instances(world: World, name: str) -> dict[int, str]:
    return {task["index"]: task["instanceUID"] for task in world.tasks(name)}


def flagged(world: World, name: str, *which: int) -> bool:
    """Whether the status ever showed exactly these tasks flagged."""
    return any(
        [t["index"] for t in status["attemptStatus"]["taskRoleStatuses"][0]["taskStatuses"] if t["deletionPending"]]
        == list(which)
        for status in world.statuses[name]
        if status["attemptStatus"]["taskRoleStatuses"]
    )


async def four_running(world: World, name: str, **fates: Obj) -> None:
    await world.submit(fw(name, role("a", 4, 4, 1, fate=runs(), **fates)))
    await world.running(name, 4)


@scenario()
async def test_scenario_24_rescale_4_2_3_running(world: World) -> None:
    await four_running(world, "elastic")
    before, old = uids(world, "elastic"), instances(world, "elastic")
    await world.rescale("elastic", 2, failed=2)
    await world.until(lambda: indexes(world, "elastic") == [0, 1])
    assert flagged(world, "elastic", 2, 3)
    assert uids(world, "elastic") == before[:2]
    await world.rescale("elastic", 3, failed=3)
    await world.until(lambda: world.are_running("elastic", 3))
    task = world.task("elastic", 2)
    assert task["instanceUID"] != old[2]
    assert task["retryPolicyStatus"] == {"totalRetriedCount": 0, "accountableRetriedCount": 0, "retryDelaySec": None}
    assert (uids(world, "elastic")[:2], world.state("elastic")) == (before[:2], "AttemptRunning")
    dropped = [
        task["attemptStatus"]["completionStatus"]["code"]
        for status in world.statuses["elastic"]
        for task in status["attemptStatus"]["taskRoleStatuses"][0]["taskStatuses"]
        if task["deletionPending"]
    ]
    assert set(dropped) == {-230}


async def fail_by_deletion(world: World, name: str, *which: int) -> None:
    for index in which:
        await world.delete_pod(f"{name}-a-{index}")
    await world.until(lambda: all(world.task(name, index)["state"] == "Completed" for index in which))


@scenario()
async def test_scenario_25_sg1_failed_tasks_dropped_with_the_policy(world: World) -> None:
    await four_running(world, "drops")
    before = uids(world, "drops")
    await fail_by_deletion(world, "drops", 2, 3)
    assert world.codes("drops") == [None, None, -101, -101]
    await world.rescale("drops", 2, failed=2)
    await world.until(lambda: indexes(world, "drops") == [0, 1])
    await world.rest(10)
    assert (world.state("drops"), uids(world, "drops")) == ("AttemptRunning", before[:2])


@scenario()
async def test_scenario_26_sg2_scale_up_while_scale_down_is_in_progress(world: World) -> None:
    await four_running(world, "both", of={3: runs(leaves_after=20)})
    old = instances(world, "both")
    await fail_by_deletion(world, "both", 2)
    await world.rescale("both", 2, failed=2)
    await world.until(lambda: flagged(world, "both", 2, 3))
    await world.rescale("both", 3, failed=3)
    await world.until(lambda: instances(world, "both").get(2, old[2]) != old[2])
    if not world.is_disturbed and not world.is_real:
        assert world.task("both", 3)["state"] == "AttemptDeleting"
    await world.until(lambda: indexes(world, "both") == [0, 1, 2] and world.are_running("both", 3))
    assert "Completed" not in world.states["both"]
    assert "AttemptCompleted" not in world.states["both"]


@scenario()
async def test_scenario_27_sg2_beyond_the_old_size(world: World) -> None:
    await four_running(world, "beyond", of={3: runs(leaves_after=20)})
    old = instances(world, "beyond")
    await fail_by_deletion(world, "beyond", 2)
    await world.rescale("beyond", 2, failed=2)
    await world.until(lambda: flagged(world, "beyond", 2, 3))
    await world.rescale("beyond", 5, failed=5)
    await world.until(
        lambda: {2, 4} <= {t["index"] for t in world.tasks("beyond") if t["instanceUID"] != old.get(t["index"])}
    )
    if not world.is_disturbed and not world.is_real:
        assert instances(world, "beyond")[3] == old[3]
    await world.until(lambda: world.are_running("beyond", 5))
    new = instances(world, "beyond")
    assert [new[i] == old[i] for i in range(4)] == [True, True, False, False]
    assert not set(old.values()) & {new[2], new[3], new[4]}


@scenario()
async def test_scenario_28_rescale_during_completion_is_ignored(world: World) -> None:
    with holding() as hold:
        slow = runs(leaves_after=10, held=hold)
        await world.submit(fw("stops", role("a", 4, 4, 1, fate=slow)))
        await world.submit(fw("heals", role("a", 4, 4, 1, fate=slow), retry=(True, 0)))
        await world.running("stops", 4)
        await world.running("heals", 4)
        await would_take_its_time(world, *world.pods)
        await world.set("stops", executionType="Stop")
        await world.until(lambda: world.state("stops") == "AttemptDeleting")
        await world.rescale("stops", 8)
        await world.delete_config_map("heals-attempt")
        await world.until(lambda: world.state("heals") == "AttemptDeleting")
        await world.rescale("heals", 8)
    await world.completed("stops")
    assert (indexes(world, "stops"), world.code("stops")) == ([0, 1, 2, 3], -210)
    await world.until(lambda: world.attempt("heals")["id"] == 1 and world.are_running("heals", 8))


@scenario()
async def test_scenario_29_scale_to_zero_pauses(world: World) -> None:
    await world.submit(fw("pauses", role("worker", 3, fate=runs())))
    await world.submit(fw("empty", role("worker", 0)))
    await world.running("pauses", 3)
    await world.rescale("pauses", 0)
    await world.until(lambda: world.tasks("pauses") == [] and not world.pods)
    await world.until(lambda: world.state("empty") == "AttemptPreparing")
    await world.rest(60)
    assert (world.state("pauses"), world.state("empty")) == ("AttemptRunning", "AttemptPreparing")
    await world.rescale("pauses", 2)
    await world.running("pauses", 2)


@scenario()
async def test_scenario_30_add_and_delete_a_task_role(world: World) -> None:
    await world.submit(fw("roles", role("a", 2, fate=runs())))
    await world.running("roles", 2, "a")
    of_a = [task["attemptStatus"]["podUID"] for task in world.tasks("roles", "a")]
    with holding() as hold:
        added = role("b", 2, 1, -1, fate=exits(0, after=60, held=hold))
        await world.patch("roles", {"op": "add", "path": "/spec/taskRoles/-", "value": added})
        await world.running("roles", 2, "b")
        assert [task["attemptStatus"]["podUID"] for task in world.tasks("roles", "a")] == of_a
        of_b = [task["attemptStatus"]["podUID"] for task in world.tasks("roles", "b")]
        test = {"op": "test", "path": "/spec/taskRoles/0/name", "value": "a"}
        await world.patch("roles", test, {"op": "remove", "path": "/spec/taskRoles/0"})
        await world.until(lambda: [r["name"] for r in world.attempt("roles")["taskRoleStatuses"]] == ["b"])
        assert [task["attemptStatus"]["podUID"] for task in world.tasks("roles", "b")] == of_b
    await world.completed("roles")
    assert world.attempt("roles")["completionStatus"]["trigger"]["taskRoleName"] == "b"


@scenario()
async def test_scenario_31_scale_down_completes_the_job(world: World) -> None:
    await world.submit(fw("done", role("worker", 3, -1, -1, of={2: runs()}, fate=exits(0))))
    await world.until(lambda: world.codes("done")[:2] == [0, 0] and world.task("done", 1)["state"] == "Completed"
                      and world.task("done", 0)["state"] == "Completed")  # fmt: skip
    await world.running("done", 1)
    await world.rescale("done", 2)
    await world.completed("done")
    assert world.code("done") == 0
    assert world.attempt("done")["completionStatus"]["trigger"]["message"].startswith(
        "CompletedTaskCount 2 has reached"
    )


@scenario()
async def test_scenario_32_policy_edited_alone(world: World) -> None:
    with holding() as hold:
        fates = {1: exits(1, after=1), 2: exits(1, after=9, held=hold)}
        await world.submit(fw("edited", role("worker", 4, 3, -1, of=fates, fate=runs())))
        await world.until(lambda: world.task("edited", 1).get("state") == "Completed")
    await world.until(lambda: [t["state"] for t in world.tasks("edited")].count("Completed") == 2)
    await world.rest(5)
    assert world.state("edited") == "AttemptRunning"
    await world.set("edited", **{FAILED: 2})
    await world.completed("edited")
    trigger = world.attempt("edited")["completionStatus"]["trigger"]
    assert trigger == {
        "message": "FailedTaskCount 2 has reached MinFailedTaskCount 2 in the TaskRole",
        "taskRoleName": "worker",
        "taskIndex": 2,
    }
