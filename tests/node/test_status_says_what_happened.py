"""The status of a pod, as people read it, from the record."""

from __future__ import annotations

from typing import Any

import pytest

from kit.pods import T0, container, pod, stored
from shoal.kube.objects import Obj
from shoal.node.checkpoint import ContainerRecord, ContainerRun, Ended, PodOutcome, PodRecord, new_record
from shoal.node.pod_lifecycle import BackOff, RuntimeState, Waiting
from shoal.node.pod_status import PodAddresses, pod_status

AT = "2030-03-17T17:46:40Z"
LATER = "2030-03-17T17:46:45Z"
PLACE = PodAddresses("192.0.2.1", "10.77.1.4")


def told(obj: Obj, containers: dict[str, ContainerRecord], *, now: float = T0 + 5, **more: Any) -> Obj:
    made = stored(obj)
    record: PodRecord = new_record(made, T0)
    record.sandboxed_at = T0
    record.containers = containers
    record.outcome = more.pop("outcome", None)
    record.finished = more.pop("finished", False)
    return pod_status(made, record, RuntimeState(**more), PLACE, now=now, backoff=BackOff())


def runs(**more: Any) -> ContainerRecord:
    return ContainerRecord(attempts=1, run=ContainerRun(0, T0, started_at=T0, **more))


def ended(code: int, attempt: int = 0, backoff: float = 0.0, **more: Any) -> ContainerRecord:
    run = ContainerRun(attempt, T0, started_at=T0, ended=Ended(T0 + 5, code, **more))
    return ContainerRecord(attempts=attempt + 1, run=run, backoff_seconds=backoff)


def terminated(code: int, reason: str, attempt: int = 0, **more: Any) -> Obj:
    return {
        "exitCode": code,
        "reason": reason,
        "startedAt": AT,
        "finishedAt": LATER,
        "containerID": f"shoal://u1/a.{attempt}",
        **more,
    }


def brief(status: Obj) -> tuple[str, dict[str, tuple[str, str]], dict[str, Obj]]:
    """The phase, the conditions (status and reason), the states."""
    conditions = {c["type"]: (c["status"], c.get("reason", "")) for c in status["conditions"]}
    listed = [*status.get("initContainerStatuses", ()), *status["containerStatuses"]]
    return status["phase"], conditions, {c["name"]: c["state"] for c in listed}


def test_the_whole_status_of_a_running_pod() -> None:
    assert told(pod("p", container("a")), {"a": runs()}) == {
        "phase": "Running",
        "conditions": [
            {"type": claim, "status": "True", "lastTransitionTime": LATER}
            for claim in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
        ],
        "hostIP": "192.0.2.1",
        "hostIPs": [{"ip": "192.0.2.1"}],
        "podIP": "10.77.1.4",
        "podIPs": [{"ip": "10.77.1.4"}],
        "startTime": AT,
        "containerStatuses": [
            {
                "name": "a",
                "image": "any",
                "imageID": "",
                "containerID": "shoal://u1/a.0",
                "ready": True,
                "started": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": AT}},
                "lastState": {},
            }
        ],
    }


ALWAYS = pod("p", container("a"))
NEVER = pod("p", container("a"), restartPolicy="Never")
WITH_INIT = pod("p", container("a"), inits=(container("i"),))
LATE = PodOutcome("Failed", "DeadlineExceeded", "too late")
BACKOFF = "back-off 10s restarting failed container=a pod=p_default(u1)"

STATES: dict[str, tuple[Obj, dict[str, ContainerRecord], dict[str, Any], str, dict[str, Obj]]] = {
    "not started": (ALWAYS, {}, {}, "Pending", {"a": {"waiting": {"reason": "ContainerCreating"}}}),
    "waiting for its init container": (
        WITH_INIT,
        {"i": runs()},
        {},
        "Pending",
        {"i": {"running": {"startedAt": AT}}, "a": {"waiting": {"reason": "PodInitializing"}}},
    ),
    "blocked": (
        ALWAYS,
        {},
        {"blocked": {"a": Waiting("CreateContainerConfigError", "no cm")}},
        "Pending",
        {"a": {"waiting": {"reason": "CreateContainerConfigError", "message": "no cm"}}},
    ),
    "held by a volume": (
        ALWAYS,
        {},
        {"pod_blocked": Waiting("ContainerCreating", "no disk")},
        "Pending",
        {"a": {"waiting": {"reason": "ContainerCreating", "message": "no disk"}}},
    ),
    "succeeded": (NEVER, {"a": ended(0)}, {}, "Succeeded", {"a": {"terminated": terminated(0, "Completed")}}),
    "failed": (NEVER, {"a": ended(3)}, {}, "Failed", {"a": {"terminated": terminated(3, "Error")}}),
    "killed by a signal": (
        NEVER,
        {"a": ended(139, signal=11)},
        {},
        "Failed",
        {"a": {"terminated": terminated(139, "Error", signal=11)}},
    ),
    "out of memory": (
        NEVER,
        {"a": ended(137, signal=9, reason="OOMKilled")},
        {},
        "Failed",
        {"a": {"terminated": terminated(137, "OOMKilled", signal=9)}},
    ),
    "lost": (
        NEVER,
        {"a": ended(137, reason="ContainerStatusUnknown", message="gone")},
        {},
        "Failed",
        {"a": {"terminated": terminated(137, "ContainerStatusUnknown", message="gone")}},
    ),
    "waiting to be restarted": (
        ALWAYS,
        {"a": ended(1, 1, backoff=10)},
        {},
        "Running",
        {"a": {"waiting": {"reason": "CrashLoopBackOff", "message": BACKOFF}}},
    ),
    "too late": (
        ALWAYS,
        {"a": ended(143)},
        {"outcome": LATE},
        "Failed",
        {"a": {"terminated": terminated(143, "Error")}},
    ),
    "too late, still ending": (
        ALWAYS,
        {"a": runs()},
        {"outcome": LATE},
        "Running",
        {"a": {"running": {"startedAt": AT}}},
    ),
}


@pytest.mark.parametrize("case", STATES, ids=str)
def test_phase_and_states_follow_from_the_record(case: str) -> None:
    obj, containers, more, phase, states = STATES[case]
    found, _, shown = brief(told(obj, containers, **more))
    assert (found, shown) == (phase, states)


def test_a_restarted_container_shows_its_last_end_and_its_count() -> None:
    known = ended(1)
    known.last, known.run, known.attempts = known.run, ContainerRun(1, T0 + 6, started_at=T0 + 6), 2
    (status,) = told(ALWAYS, {"a": known})["containerStatuses"]
    assert (status["lastState"], status["restartCount"]) == ({"terminated": terminated(1, "Error")}, 1)


CONDITIONS: dict[str, tuple[Obj, dict[str, ContainerRecord], dict[str, tuple[str, str]]]] = {
    "waiting for init": (
        WITH_INIT,
        {},
        {"Initialized": ("False", "ContainersNotInitialized"), "Ready": ("False", "ContainersNotReady")},
    ),
    "not ready by its probe": (
        pod("p", container("a", readinessProbe={"exec": {}})),
        {"a": runs()},
        {"Ready": ("False", "ContainersNotReady"), "ContainersReady": ("False", "ContainersNotReady")},
    ),
    "ready by its probe": (
        pod("p", container("a", readinessProbe={"exec": {}})),
        {"a": runs(ready=True)},
        {"Ready": ("True", "")},
    ),
    "not started yet": (
        pod("p", container("a", startupProbe={"exec": {}})),
        {"a": runs()},
        {"Ready": ("False", "ContainersNotReady")},
    ),
    "a gate nobody opened": (
        pod("p", container("a"), readinessGates=[{"conditionType": "x/y"}]),
        {"a": runs()},
        {"Ready": ("False", "ReadinessGatesNotReady"), "ContainersReady": ("True", "")},
    ),
    "completed": (
        NEVER,
        {"a": ended(0)},
        {"Initialized": ("True", "PodCompleted"), "Ready": ("False", "PodCompleted")},
    ),
    "failed": (NEVER, {"a": ended(1)}, {"Ready": ("False", "PodFailed")}),
}


@pytest.mark.parametrize("case", CONDITIONS, ids=str)
def test_conditions_have_status_and_reason(case: str) -> None:
    obj, containers, expected = CONDITIONS[case]
    _, conditions, _ = brief(told(obj, containers))
    assert {claim: conditions[claim] for claim in expected} == expected


def test_the_time_of_a_condition_moves_only_with_its_status() -> None:
    before = told(ALWAYS, {"a": runs()})
    after = told({**ALWAYS, "status": before}, {"a": runs()}, now=T0 + 60)
    assert after["conditions"] == before["conditions"]
