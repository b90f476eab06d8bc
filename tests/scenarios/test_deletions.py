"""Acceptance scenarios 17 to 23: pods, ConfigMaps and Frameworks deleted by somebody."""

from __future__ import annotations

from copy import deepcopy

from kit.fault_matrix import scenario
from kit.framework_notation import fw, role
from kit.pod_behavior import holding, runs, would_take_its_time
from kit.scenario import SimulatedWorld, World
from shoal.cluster.client import DeletionPropagation
from shoal.kube.objects import uid_of

GRACE = "taskRoles__0__task__podGracefulDeletionTimeoutSec"


def attempts_of(world: World, name: str, index: int = 0) -> list[dict]:
    """Every attempt of a task the status ever showed, in its last form."""
    found = {}
    for status in world.statuses[name]:
        for role_status in status["attemptStatus"]["taskRoleStatuses"][:1]:
            for task in role_status["taskStatuses"]:
                if task["index"] == index:
                    found[task["attemptStatus"]["id"]] = task
    return [found[number] for number in sorted(found)]


def states_of(world: World, name: str, index: int) -> list[str]:
    """Every state of a task the status ever showed."""
    roles = [role for status in world.statuses[name] for role in status["attemptStatus"]["taskRoleStatuses"][:1]]
    return [task["state"] for role in roles for task in role["taskStatuses"] if task["index"] == index]


@scenario()
async def test_scenario_17_pod_deleted_by_user_retry(world: World) -> None:
    with holding() as hold:
        await world.submit(fw("again", role("worker", 2, retry=(True, 0), fate=runs(leaves_after=1, held=hold))))
        await world.running("again", 2)
        kept = world.task("again", 0)["attemptStatus"]["podUID"]
        await would_take_its_time(world, "again-worker-1")
        gone = await world.delete_pod("again-worker-1")
        if not world.is_disturbed:
            await world.until(lambda: "AttemptDeleting" in states_of(world, "again", 1))
    await world.until(lambda: world.task("again", 1)["attemptStatus"]["id"] == 1 and world.are_running("again", 2))
    task = world.task("again", 1)
    assert (task["retryPolicyStatus"]["totalRetriedCount"], task["retryPolicyStatus"]["accountableRetriedCount"]) == (
        1,
        0,
    )
    assert task["attemptStatus"]["podUID"] != gone
    assert world.task("again", 0)["attemptStatus"]["podUID"] == kept
    if not world.is_disturbed:
        lost = attempts_of(world, "again", 1)[0]["attemptStatus"]["completionStatus"]
        assert (lost["code"], lost["phrase"]) == (-101, "PodExternalDeleted")


@scenario()
async def test_scenario_18_pod_deleted_by_user_no_retry(world: World) -> None:
    await world.submit(fw("lost", role("worker", 1, 1, -1, fate=runs())))
    await world.running("lost", 1)
    await world.delete_pod("lost-worker-0")
    await world.completed("lost")
    completion = world.attempt("lost")["completionStatus"]
    assert (completion["code"], completion["type"]["name"]) == (-101, "Failed")
    # Which of the two it was depends on when the operator looked.
    assert completion["diagnostics"] in ("Pod is being deleted by others", "Pod was deleted by others")


@scenario()
async def test_scenario_19_deleted_pod_exits_0_in_its_grace_period(world: World) -> None:
    await world.submit(fw("polite", role("worker", fate=runs(leaves_after=1, leaves_with=0))))
    await world.running("polite", 1)
    await world.delete_pod("polite-worker-0")
    await world.completed("polite")
    assert (world.code("polite"), world.codes("polite")) == (-101, [-101])


@scenario()
async def test_scenario_20_config_map_deleted_externally(world: World) -> None:
    for name, retry in (("heals", (True, 0)), ("falls", (False, 0))):
        await world.submit(fw(name, role("worker", 2, fate=runs(leaves_after=2)), retry=retry))
        await world.running(name, 2)
    old = world.attempt("heals")["configMapUID"]
    for name in ("heals", "falls"):
        await world.delete_config_map(f"{name}-attempt")
    await world.completed("falls")
    assert (world.code("falls"), world.attempt("falls")["id"]) == (-100, 0)
    await world.until(lambda: world.attempt("heals")["id"] == 1 and world.are_running("heals", 2))
    assert world.status("heals")["retryPolicyStatus"] == {
        "totalRetriedCount": 1, "accountableRetriedCount": 0, "retryDelaySec": None,
    }  # fmt: skip
    assert world.attempt("heals")["configMapUID"] != old


@scenario()
async def test_scenario_21_foreground_delete(world: World) -> None:
    with holding() as hold:
        await world.submit(fw("goes", role("worker", 2, fate=runs(leaves_after=3, held=hold)), retry=(True, 5)))
        await world.running("goes", 2)
        anchors, pods = deepcopy(dict(world.anchors)), deepcopy(dict(world.uids))
        await would_take_its_time(world, *world.pods)
        await world.delete("goes", DeletionPropagation.FOREGROUND)
        assert world.frameworks["goes"]["metadata"]["deletionTimestamp"]
        if not world.is_disturbed:
            await world.until(lambda: "AttemptDeleting" in world.states["goes"])
    await world.until(lambda: "goes" not in world.frameworks)
    assert (world.pods, world.config_maps) == ({}, {})
    await world.rest(30)
    assert (dict(world.anchors), dict(world.uids)) == (anchors, pods)
    if not world.is_disturbed:
        # Where owners are collected by a program of its own, there may be time to tell that all its objects are gone.
        told = [state for state in world.states["goes"] if state != "AttemptCompleted"]
        assert told[-1] == "AttemptDeleting"


@scenario()
async def test_scenario_22_background_delete_and_same_name_re_create(world: World) -> None:
    manifest = fw("same", role("worker", 2, fate=runs(leaves_after=20)))
    await world.submit(manifest)
    await world.running("same", 2)
    old, pods = uid_of(world.frameworks["same"]), {uid_of(pod) for pod in world.pods.values()}
    anchor = uid_of(world.config_maps["same-attempt"])
    await world.delete("same", DeletionPropagation.BACKGROUND)
    await world.until(lambda: "same" not in world.frameworks)
    await world.submit(manifest)
    new = uid_of(world.frameworks["same"])
    assert new != old
    if not world.is_real:
        await world.until(lambda: world.state("same") != "")
        await world.rest(5)
        assert (world.state("same"), world.attempt("same")["configMapUID"]) == ("AttemptCreationPending", None)
        assert {uid_of(pod) for pod in world.pods.values()} == pods
    await world.running("same", 2)
    assert (world.attempt("same")["id"], uid_of(world.config_maps["same-attempt"]) != anchor) == (0, True)
    assert not pods & {uid_of(pod) for pod in world.pods.values()}


@scenario(real=False)
async def test_scenario_23_forced_deletion(world: SimulatedWorld) -> None:
    await world.submit(fw("forced", role("worker", grace=5, retry=(False, 0), fate=runs())))
    await world.submit(fw("waits", role("worker", grace=None, retry=(False, 0), fate=runs())))
    await world.running("forced", 1)
    await world.running("waits", 1)
    world.kubelet.is_silent = True
    for name in ("forced", "waits"):
        await world.delete_pod(f"{name}-worker-0")
    await world.rest(4)
    assert "forced-worker-0" in world.pods
    await world.rest(20)
    assert "forced-worker-0" not in world.pods
    await world.completed("forced")
    assert (world.code("forced"), world.codes("forced")) == (-101, [-101])
    await world.rest(300)
    assert world.task("waits")["state"] == "AttemptDeleting"
    await world.set("waits", **{GRACE: 5})
    await world.completed("waits")
    assert world.codes("waits") == [-101]
