"""Acceptance scenarios 1 to 12: how tasks and Frameworks end, and when they are tried again."""

from __future__ import annotations

from kit.fault_matrix import scenario
from kit.framework_notation import fw, role
from kit.pod_behavior import exits, holding, runs
from kit.scenario import World
from shoal.kube.times import parse

NONE = {"totalRetriedCount": 0, "accountableRetriedCount": 0, "retryDelaySec": None}
DELAYS = {
    "frameworkMinRetryDelaySecForTransientConflictFailed": 3,
    "frameworkMaxRetryDelaySecForTransientConflictFailed": 5,
}


def all_of(count: int) -> str:
    return (
        f"CompletedTaskCount {count} has reached TotalTaskCount {count} and no user specified conditions in "
        f"FrameworkAttemptCompletionPolicy have ever been triggered"
    )


def retries(total: int, accountable: int) -> dict[str, int | None]:
    return {"totalRetriedCount": total, "accountableRetriedCount": accountable, "retryDelaySec": None}


@scenario()
async def test_scenario_01_success_default_policy(world: World) -> None:
    await world.submit(fw("one", role("worker", retry=(True, 1), grace=600, fate=exits(0)), retry=(True, 1)))
    status = await world.completed("one")
    assert status["attemptStatus"]["completionStatus"] == {
        "code": 0,
        "phrase": "Succeeded",
        "type": {"name": "Succeeded", "attributes": []},
        "diagnostics": all_of(1),
        "trigger": {"message": all_of(1), "taskRoleName": "worker", "taskIndex": 0},
    }
    task = world.task("one")
    assert task["attemptStatus"]["completionStatus"]["pod"]["containers"][0]["code"] == 0
    assert (status["retryPolicyStatus"], task["retryPolicyStatus"], world.codes("one")) == (NONE, NONE, [0])
    assert (world.pods, world.config_maps) == ({}, {})


@scenario()
async def test_scenario_02_two_roles_service_cut_off(world: World) -> None:
    server = role("server", 2, 1, -1, fate=runs(leaves_after=2))
    await world.submit(fw("two", server, role("worker", 3, 1, 3, fate=exits(0)), retry=(True, 1)))
    await world.completed("two")
    completion = world.attempt("two")["completionStatus"]
    assert (completion["code"], completion["type"]["name"]) == (0, "Succeeded")
    assert completion["trigger"]["taskRoleName"] == "worker"
    assert (
        completion["trigger"]["message"] == "SucceededTaskCount 3 has reached MinSucceededTaskCount 3 in the TaskRole"
    )
    assert (world.codes("two", "server"), world.codes("two", "worker")) == ([-220, -220], [0, 0, 0])
    cut = world.task("two", 0, "server")["attemptStatus"]["completionStatus"]
    assert cut == {
        "code": -220,
        "phrase": "FrameworkAttemptCompletion",
        "type": {"name": "Failed", "attributes": ["Permanent"]},
        "diagnostics": "Stop to complete current FrameworkAttempt",
    }
    assert (world.pods, world.config_maps) == ({}, {})


@scenario()
async def test_scenario_03_permanent_failure(world: World) -> None:
    await world.submit(fw("three", role("worker", retry=(True, 1), fate=exits(210)), retry=(True, 1)))
    status = await world.completed("three")
    for completion in (
        status["attemptStatus"]["completionStatus"],
        world.task("three")["attemptStatus"]["completionStatus"],
    ):
        assert (completion["code"], completion["phrase"]) == (210, "ContainerPermanentFailed")
        assert completion["diagnostics"].startswith("Pod failed: PodPattern matched: ")
        assert '"code":210' in completion["diagnostics"]
    assert (status["retryPolicyStatus"], world.task("three")["retryPolicyStatus"]) == (NONE, NONE)
    assert world.is_disturbed or len(world.uids["three-worker-0"]) == 1


@scenario()
async def test_scenario_04_transient_failure_is_unlimited(world: World) -> None:
    fails = dict.fromkeys(range(4), exits(200))
    await world.submit(fw("four", role("worker", retry=(True, 1), attempts=fails, fate=runs()), retry=(True, 1)))
    await world.until(lambda: world.task("four").get("attemptStatus", {}).get("id", 0) == 4)
    await world.running("four", 1)
    assert (world.task("four")["retryPolicyStatus"], world.attempt("four")["id"]) == (retries(4, 0), 0)
    assert world.state("four") in ("AttemptPreparing", "AttemptRunning")
    seen = {}
    for status in world.statuses["four"]:
        attempt = status["attemptStatus"]["taskRoleStatuses"][0]["taskStatuses"][0]["attemptStatus"]
        if attempt["podUID"]:
            assert attempt["podName"] == "four-worker-0"
            assert attempt["instanceUID"] == f"{attempt['id']}_{attempt['podUID']}"
            seen[attempt["id"]] = attempt["podUID"]
    assert len(set(seen.values())) == len(seen) >= 4
    await world.set("four", executionType="Stop")
    await world.completed("four")
    assert world.code("four") == -210


@scenario(config=DELAYS)
async def test_scenario_05_transient_conflict_delays_the_framework(world: World) -> None:
    fails = dict.fromkeys(range(2), exits(201))
    await world.submit(fw("five", role("worker", in_runs=fails, fate=runs()), retry=(True, 1)))
    await world.until(lambda: world.attempt("five").get("id", 0) == 2)
    waits = [s for s in world.statuses["five"] if s["retryPolicyStatus"]["retryDelaySec"] is not None]
    assert {status["state"] for status in waits} == {"AttemptCompleted"}
    by_attempt = {status["attemptStatus"]["id"]: status for status in waits}
    assert sorted(by_attempt) == [0, 1]
    for number, waiting in by_attempt.items():
        delay = waiting["retryPolicyStatus"]["retryDelaySec"]
        assert 3 <= delay <= 5
        following = next(s for s in world.statuses["five"] if s["attemptStatus"]["id"] == number + 1)
        waited = parse(following["attemptStatus"]["startTime"]) - parse(waiting["attemptStatus"]["completionTime"])
        assert waited.total_seconds() >= delay
        assert following["retryPolicyStatus"] == retries(number + 1, 0)
    await world.set("five", executionType="Stop")
    await world.completed("five")


@scenario()
async def test_scenario_06_unknown_failure_nested_budgets(world: World) -> None:
    await world.submit(fw("six", role("worker", retry=(True, 1), fate=exits(1)), retry=(True, 1)))
    status = await world.completed("six")
    completion = status["attemptStatus"]["completionStatus"]
    assert (completion["code"], completion["phrase"]) == (1, "ContainerUnrecognizedFailed")
    assert completion["type"] == {"name": "Failed", "attributes": []}
    assert status["retryPolicyStatus"] == world.task("six")["retryPolicyStatus"] == retries(1, 1)
    assert world.is_disturbed or len(world.uids["six-worker-0"]) == 4


@scenario()
async def test_scenario_07_unlimited_on_failure(world: World) -> None:
    fails = {0: exits(1), 1: exits(1)}
    await world.submit(fw("seven", role("worker", retry=(False, -1), attempts=fails, fate=exits(0))))
    await world.completed("seven")
    assert world.task("seven")["retryPolicyStatus"] == retries(2, 2)
    assert (world.code("seven"), world.codes("seven")) == (0, [0])


@scenario()
async def test_scenario_08_service_minus_two(world: World) -> None:
    server = role("server", retry=(False, -2), attempts=dict.fromkeys(range(3), exits(0)), fate=runs())
    await world.submit(fw("eight", server, retry=(False, -2)))
    await world.until(lambda: world.task("eight").get("attemptStatus", {}).get("id", 0) == 3)
    assert world.task("eight")["retryPolicyStatus"] == retries(3, 3)
    states = {
        task["state"]
        for status in world.statuses["eight"]
        for task in status["attemptStatus"]["taskRoleStatuses"][0]["taskStatuses"]
    }
    assert "Completed" not in states
    assert world.attempt("eight")["id"] == 0
    await world.set("eight", executionType="Stop")
    await world.completed("eight")


@scenario()
async def test_scenario_09_fancy_false_ignores_attributes(world: World) -> None:
    await world.submit(fw("nine", role("worker", retry=(False, 2), fate=exits(210))))
    await world.completed("nine")
    assert world.task("nine")["retryPolicyStatus"] == retries(2, 2)
    assert (world.code("nine"), world.status("nine")["retryPolicyStatus"]) == (210, NONE)
    assert world.is_disturbed or len(world.uids["nine-worker-0"]) == 3


@scenario()
async def test_scenario_10_all_tasks_fail_but_policy_disabled(world: World) -> None:
    await world.submit(fw("ten", role("worker", 2, -1, -1, of={0: exits(1), 1: exits(1, after=3)})))
    await world.completed("ten")
    completion = world.attempt("ten")["completionStatus"]
    assert (completion["code"], completion["type"]["name"], completion["diagnostics"]) == (0, "Succeeded", all_of(2))
    assert world.codes("ten") == [1, 1]


@scenario()
async def test_scenario_11_failure_threshold(world: World) -> None:
    with holding() as hold:
        fates = {1: exits(1, after=1), 3: exits(1, after=8, held=hold)}
        await world.submit(fw("eleven", role("worker", 4, 2, -1, of=fates, fate=runs())))
        await world.until(lambda: world.task("eleven", 1).get("state") == "Completed")
    await world.completed("eleven")
    completion = world.attempt("eleven")["completionStatus"]
    assert (completion["code"], completion["type"]["name"]) == (1, "Failed")
    assert completion["trigger"] == {
        "message": "FailedTaskCount 2 has reached MinFailedTaskCount 2 in the TaskRole",
        "taskRoleName": "worker",
        "taskIndex": 3,
    }
    assert world.codes("eleven") == [-220, 1, -220, 1]


@scenario()
async def test_scenario_12_master_dominated(world: World) -> None:
    worker = role("worker", 2, -1, -1, of={0: exits(1, after=0.5)}, fate=runs())
    with holding() as hold:
        master = role("master", 1, 1, 1, fate=exits(0, after=8, held=hold))
        await world.submit(fw("twelve", master, worker))
        await world.until(lambda: world.task("twelve", 0, "worker").get("state") == "Completed")
    await world.completed("twelve")
    completion = world.attempt("twelve")["completionStatus"]
    assert (completion["code"], completion["trigger"]["taskRoleName"]) == (0, "master")
    assert (world.codes("twelve", "master"), world.codes("twelve", "worker")) == ([0], [1, -220])
