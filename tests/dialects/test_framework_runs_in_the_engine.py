"""The dialect and the engine together: whole stories, each pass through the stored status and back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from kit.frameworks import FrameworkWorld, framework, pet, role, running, task_states
from shoal.dialects.framework import settings
from shoal.engine import Refused, Stage, TaskRef
from shoal.kube.objects import Obj


def resized(manifest: Obj, number: int) -> list[Obj]:
    """The roles of the story with so many workers, and success when all of them succeed."""
    etcd, worker = manifest["spec"]["taskRoles"]
    policy = {**worker["frameworkAttemptCompletionPolicy"], "minSucceededTaskCount": number}
    return [etcd, {**worker, "taskNumber": number, "frameworkAttemptCompletionPolicy": policy}]


def completion(status: Obj) -> Obj:
    found: Obj = status["attemptStatus"]["completionStatus"]
    return found


def end(world: FrameworkWorld, name: str, code: int) -> None:
    world.exits(name, code)
    world.settle()


def test_the_elastic_story_ends_with_the_status_of_the_original():
    world = running(pet())
    survivors = {index: world.task("worker", index).uid for index in (0, 1)}
    first = world.task("worker", 2).instance
    world.tick(60)
    world.submit(taskRoles=resized(world.manifest, 2))
    world.step()
    assert task_states(world.status)["pet-worker-3"] == "AttemptDeletionPending 0 -230 deletionPending"
    world.settle()
    assert sorted(world.pods) == ["etcd-0", "worker-0", "worker-1"]

    world.tick(60)
    world.submit(taskRoles=resized(world.manifest, 3))
    world.settle()
    world.run()
    world.settle()
    assert {index: world.task("worker", index).uid for index in (0, 1)} == survivors
    assert world.task("worker", 2).instance != first

    for name in ("worker-0", "worker-2", "worker-1"):
        world.tick(10)
        end(world, name, 0)
    status = world.status

    assert status["state"] == "Completed"
    assert status["completionTime"] == status["transitionTime"] == status["attemptStatus"]["completionTime"]
    assert status["retryPolicyStatus"] == NOT_RETRIED
    assert completion(status) == SUCCEEDED | {
        "trigger": {
            "message": "SucceededTaskCount 3 has reached MinSucceededTaskCount 3 in the TaskRole",
            "taskRoleName": "worker",
            "taskIndex": 1,
        }
    }
    etcd, worker = status["attemptStatus"]["taskRoleStatuses"]
    assert [shape(task) for task in etcd["taskStatuses"]] == [
        done(
            0,
            "pet-etcd-0",
            {
                "code": -220,
                "phrase": "FrameworkAttemptCompletion",
                "type": {"name": "Failed", "attributes": ["Permanent"]},
                "diagnostics": "Stop to complete current FrameworkAttempt",
            },
        )
    ]
    pod = {"containers": [{"name": "python", "code": 0}]}
    assert [shape(task) for task in worker["taskStatuses"]] == [
        done(index, f"pet-worker-{index}", SUCCEEDED | {"pod": pod}) for index in range(3)
    ]
    assert (world.pods, world.run_owner) == ({}, None)


NOT_RETRIED = {"totalRetriedCount": 0, "accountableRetriedCount": 0, "retryDelaySec": None}
SUCCEEDED = {
    "code": 0,
    "phrase": "Succeeded",
    "type": {"name": "Succeeded", "attributes": []},
    "diagnostics": "Pod succeeded",
}


def shape(task: Obj) -> Obj:
    """A task without its ids, times and addresses."""
    attempt = task["attemptStatus"]
    assert attempt["instanceUID"] == f"{attempt['id']}_{attempt['podUID']}"
    return {
        **{key: task[key] for key in ("index", "state", "deletionPending", "retryPolicyStatus")},
        "attemptStatus": {key: attempt[key] for key in ("id", "podName", "completionStatus")},
    }


def done(index: int, pod: str, ended: Obj) -> Obj:
    return {
        "index": index,
        "state": "Completed",
        "deletionPending": False,
        "retryPolicyStatus": NOT_RETRIED,
        "attemptStatus": {"id": 0, "podName": pod, "completionStatus": ended},
    }


def test_all_done_is_a_success_even_if_tasks_failed():
    world = running(framework(role("worker", 2, -1, -1)))
    end(world, "worker-0", 1)
    end(world, "worker-1", 1)
    text = (
        "CompletedTaskCount 2 has reached TotalTaskCount 2 and no user specified conditions in "
        "FrameworkAttemptCompletionPolicy have ever been triggered"
    )

    assert completion(world.status) == SUCCEEDED | {
        "diagnostics": text,
        "trigger": {"message": text, "taskRoleName": "worker", "taskIndex": 1},
    }


def test_the_count_of_failures_fails_it_with_the_failure_that_reached_it():
    world = running(framework(role("worker", 4, 2, -1)))
    end(world, "worker-1", 1)
    world.tick(2)
    end(world, "worker-3", 210)
    status = world.status

    assert completion(status)["code"] == 210
    assert completion(status)["type"] == {"name": "Failed", "attributes": ["Permanent"]}
    assert completion(status)["diagnostics"].startswith("Pod failed: PodPattern matched: ")
    assert completion(status)["trigger"] == {
        "message": "FailedTaskCount 2 has reached MinFailedTaskCount 2 in the TaskRole",
        "taskRoleName": "worker",
        "taskIndex": 3,
    }
    assert task_states(status) == {
        "fw-worker-0": "Completed 0 -220",
        "fw-worker-1": "Completed 0 1",
        "fw-worker-2": "Completed 0 -220",
        "fw-worker-3": "Completed 0 210",
    }


def test_nested_budgets_run_four_pods():
    world = running(framework(role("worker", 1, retry=(True, 1)), retry=(True, 1)))
    pods = []
    while world.pods:
        pods.append(world.task("worker", 0).uid)
        end(world, "worker-0", 1)
        world.run()
        world.settle()
    status = world.status

    assert len(set(pods)) == 4
    assert status["retryPolicyStatus"] == {
        "totalRetriedCount": 1,
        "accountableRetriedCount": 1,
        "retryDelaySec": None,
    }
    assert task_states(status) == {"fw-worker-0": "Completed 1 1"}
    assert (completion(status)["code"], completion(status)["phrase"]) == (1, "ContainerUnrecognizedFailed")


def test_a_conflict_delays_the_next_attempt_and_a_stop_ends_the_wait():
    world = running(framework(role("worker", 1), retry=(True, 1)), DELAYED)
    end(world, "worker-0", 201)
    waiting = world.status
    assert (waiting["state"], waiting["retryPolicyStatus"]["retryDelaySec"]) == ("AttemptCompleted", 600)

    world.submit(executionType="Stop")
    world.settle()
    status = world.status

    assert (status["state"], status["attemptStatus"]["id"], completion(status)["code"]) == ("Completed", 1, -210)
    assert status["retryPolicyStatus"] == {"totalRetriedCount": 1, "accountableRetriedCount": 0, "retryDelaySec": None}
    assert status["attemptStatus"]["configMapUID"] is None


DELAYED = settings(
    {
        "frameworkMinRetryDelaySecForTransientConflictFailed": 600,
        "frameworkMaxRetryDelaySecForTransientConflictFailed": 600,
    }
)


def test_created_then_stopped_leaves_nothing_behind():
    world = FrameworkWorld(framework(role("worker", 2), start="Create"))
    world.settle()
    assert (world.status["state"], world.run_owner) == ("AttemptCreationPending", None)
    world.submit(executionType="Stop")
    world.settle()
    status = world.status

    assert (status["state"], completion(status)["code"]) == ("Completed", -210)
    assert status["attemptStatus"]["instanceUID"] is None
    assert task_states(status) == {"fw-worker-0": "Completed 0 -220", "fw-worker-1": "Completed 0 -220"}


REFUSED = [
    (422, "spec.containers[0].name: Invalid value", "Completed 0 -200"),
    (403, "is forbidden: because", "Completed 0 -310"),
    (403, "is forbidden: exceeded quota", "AttemptCreationPending 0"),
]


@pytest.mark.parametrize(("code", "text", "state"), REFUSED, ids=["invalid", "forbidden", "quota"])
def test_a_refused_pod(code: int, text: str, state: str):
    world = FrameworkWorld(framework(role("worker", 1, -1, -1, retry=(False, 0))))
    for _ in range(8):
        world.refusals[TaskRef("worker", 0)] = Refused(TaskRef("worker", 0), code, text)
        world.step()

    assert task_states(world.status) == {"fw-worker-0": state}


def test_a_lost_pod_is_retried_free_of_charge():
    world = running(framework(role("worker", 2, retry=(True, 0))))
    world.leave("worker-1")
    world.step()
    assert task_states(world.status)["fw-worker-1"] == "AttemptDeleting 0 -101"
    world.settle()
    (_, second) = world.status["attemptStatus"]["taskRoleStatuses"][0]["taskStatuses"]

    assert second["retryPolicyStatus"] == {"totalRetriedCount": 1, "accountableRetriedCount": 0, "retryDelaySec": None}


def test_zero_tasks_rest():
    world = running(framework(role("worker", 0)))

    assert world.status["state"] == "AttemptPreparing"


# --- anything may happen ---------------------------------------------------------------------------------------------

ROLE = st.fixed_dictionaries(
    {
        "number": st.integers(0, 3),
        "failed": st.integers(-1, 3),
        "succeeded": st.integers(-1, 3),
        "retry": st.tuples(st.booleans(), st.integers(-2, 2)),
        "grace": st.none() | st.just(30),
    }
)
DEED = st.one_of(
    st.tuples(st.just("end"), st.integers(0, 5), st.sampled_from([0, 1, 137, 200, 201, 210])),
    st.tuples(st.just("delete"), st.integers(0, 5), st.just(0)),
    st.tuples(st.just("scale"), st.integers(0, 1), st.integers(0, 4)),
    st.tuples(st.just("anchor"), st.just(0), st.just(0)),
    st.tuples(st.just("stop"), st.just(0), st.just(0)),
    st.tuples(st.just("wait"), st.integers(1, 1000), st.just(0)),
    st.tuples(st.just("crash"), st.integers(-1, 3), st.just(0)),
)


@hypothesis_settings(max_examples=60, deadline=None)
@given(
    st.lists(ROLE, min_size=1, max_size=2), st.tuples(st.booleans(), st.integers(-2, 1)), st.lists(DEED, max_size=12)
)
def test_whatever_happens_the_stored_status_is_enough(
    written: list[dict[str, Any]], retry: tuple[bool, int], deeds: list[tuple[str, int, int]]
):
    roles = [role(name, **parts) for name, parts in zip("ab", written, strict=False)]
    world = FrameworkWorld(framework(*roles, retry=retry))
    for deed in deeds:
        happen(world, deed)
        for _ in range(4):
            world.step()
            world.reap()
        world.run()
    assert world.remembered(world.state) == world.state
    if world.state.run.stage is Stage.DONE:
        assert all(state.startswith("Completed") for state in task_states(world.status).values())


def happen(world: FrameworkWorld, deed: tuple[str, int, int]) -> None:
    word, number, other = deed
    alive = [name for name, pod in world.pods.items() if not pod.leaving and not pod.is_finished]
    if word in ("end", "delete") and alive:
        name = alive[number % len(alive)]
        if word == "end":
            world.exits(name, other)
        else:
            world.leave(name)
    elif word == "scale":
        roles = [dict(each) for each in world.manifest["spec"]["taskRoles"]]
        roles[number % len(roles)]["taskNumber"] = other
        world.submit(taskRoles=roles)
    elif word == "anchor" and world.run_owner is not None and not world.run_owner.leaving:
        world.delete_anchor()
    elif word == "stop":
        world.submit(executionType="Stop")
    elif word == "wait":
        world.tick(number)
    elif word == "crash":
        world.step(crash_after=number)
