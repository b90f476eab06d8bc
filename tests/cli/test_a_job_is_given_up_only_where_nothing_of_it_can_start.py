"""Which part of a job can never start, and whether anything else is left: from its ledger, its pods and its groups."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from shoal.cli.feasibility import (
    FitResult,
    RequiredObject,
    Unschedulable,
    find_unschedulable,
    fit_of_event,
    fit_of_group,
    fit_of_pod,
)
from shoal.engine import Intent, JobState, RoleState, Run, Stage, Stamps, TaskState
from shoal.kube.kinds import CONFIG_MAP, PERSISTENT_VOLUME_CLAIM, SECRET
from shoal.kube.messages import Message
from shoal.kube.objects import Key, Obj

BEGUN = Stamps(started=datetime(2030, 1, 1, tzinfo=UTC))
PLACED, WAITS = FitResult("a-0", is_placed=True), FitResult("a-0")
LARGE, ALSO, GANG = FitResult("b-0", why="needs 3"), FitResult("b-1", why="needs 4"), FitResult(why="needs 6")
OBJECT = RequiredObject(CONFIG_MAP, Key("team", "settings"))
LATER = replace(GANG, before=frozenset({"a"}))


def ledger(*stages: Stage, run: Run | None = None, stamps: Stamps = BEGUN) -> JobState:
    tasks = tuple(TaskState(index, stage=stage) for index, stage in enumerate(stages))
    return JobState(run=run or Run(), roles=(RoleState("a", tasks=tasks),), stamps=stamps)


TWO = ledger(Stage.PREPARING, Stage.PREPARING)
ONE_DONE = ledger(Stage.DONE, Stage.PREPARING)
PART, ALL = Unschedulable("b-0", "needs 3", is_all=False), Unschedulable("b-0", "needs 3", is_all=True)

CASES: dict[str, tuple[JobState, list[FitResult], Unschedulable | None]] = {
    "everything fits": (TWO, [PLACED, WAITS], None),
    "another task has a place": (TWO, [LARGE, PLACED], PART),
    "of another task nobody knows yet": (TWO, [LARGE, WAITS], None),
    "another task has no pod yet": (ledger(Stage.WAITING, Stage.PREPARING), [LARGE], None),
    "another task ends, and may be all that was needed": (ledger(Stage.CLOSING, Stage.PREPARING), [LARGE], None),
    "another task has ended, and was not enough": (ONE_DONE, [LARGE], ALL),
    "no task fits": (TWO, [ALSO, LARGE], ALL),
    "more pods than the ledger knows of": (ledger(), [LARGE], ALL),
    "a ledger that was not seen yet": (ledger(stamps=Stamps()), [LARGE], None),
    "a run that is being closed": (ledger(Stage.DONE, Stage.PREPARING, run=Run(intent=Intent.END)), [LARGE], None),
    "another task is about to start": (TWO, [LARGE, replace(PLACED, is_starting=True)], None),
    "a claim that a pod of the gang lacks": (
        TWO,
        [replace(LARGE, waits_for_claim=True), FitResult("b-1", waits_for_claim=True)],
        ALL,
    ),
    "a claim, and it is not known which": (TWO, [FitResult("b-0", waits_for_claim=True)], None),
    "an object, and it is not known which": (TWO, [LARGE, FitResult("b-1", is_placed=True, required=(OBJECT,))], None),
    "a gang that is not let in": (
        ledger(Stage.WAITING, Stage.WAITING),
        [GANG],
        Unschedulable("", "needs 6", is_all=True),
    ),
    "a gang with pods": (TWO, [LARGE, GANG, ALSO], Unschedulable("", "needs 6", is_all=True)),
    "a gang whose pods nobody has told yet": (TWO, [GANG, WAITS], None),
    "a gang while an earlier stage runs": (TWO, [PLACED, LATER], Unschedulable("", "needs 6", is_all=False)),
    "a gang while an earlier stage ends": (ledger(Stage.CLOSING), [LATER], None),
    "a gang after an earlier stage has ended": (ledger(Stage.DONE), [LATER], Unschedulable("", "needs 6", is_all=True)),
}


@pytest.mark.parametrize("case", CASES)
def test_what_can_never_start(case: str) -> None:
    state, fits, expected = CASES[case]
    assert find_unschedulable(state, fits) == expected


def waiting(*conditions: Obj, phase: str = "Pending", **spec: Any) -> Obj:
    return {"spec": spec, "status": {"phase": phase, "conditions": list(conditions)}}


def claim(kind: str, status: str = "True", reason: str = "TooLarge") -> Obj:
    return {"type": kind, "status": status, "reason": reason, "message": "needs 3"}


OURS, PODS = claim("shoal.dev/TooLarge"), "pod"


def of_container(message: str, reason: str = "CreateContainerConfigError", **spec: Any) -> Obj:
    pod = waiting(nodeName="n", **spec)
    pod["metadata"] = {"namespace": "team"}
    pod["status"]["containerStatuses"] = [{"state": {"waiting": {"reason": reason, "message": message}}}]
    return pod


def initializing() -> Obj:
    pod = of_container("", "PodInitializing")
    pod["status"]["initContainerStatuses"] = [{"state": {"running": {}}}]
    return pod


SHOWN: dict[str, tuple[Obj, FitResult | None]] = {
    "too large": (waiting(OURS), FitResult(PODS, why="needs 3")),
    "no longer": (waiting(claim("shoal.dev/TooLarge", "Unknown", "WaitsOtherwise")), FitResult(PODS)),
    "has a node by now": (waiting(OURS, nodeName="n"), FitResult(PODS, is_placed=True, is_starting=True)),
    "runs": (waiting(phase="Running", nodeName="n"), FitResult(PODS, is_placed=True)),
    "an init container waits for others": (initializing(), FitResult(PODS, is_placed=True)),
    "has ended": (waiting(phase="Failed", nodeName="n"), None),
    "in the words of somebody else": (
        waiting(claim("example.com/ModelCheck"), claim("Unschedulable")),
        FitResult(PODS),
    ),
}


def of_scheduler(reason: str, **spec: Any) -> Obj:
    condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": "in any words"}
    return waiting(condition, **spec) | {"metadata": {"namespace": "team"}}


def env_from(**reference: Any) -> dict[str, Any]:
    return {"containers": [{"name": "main", "envFrom": [{"configMapRef": reference}]}]}


KEYS, DATA = RequiredObject(SECRET, Key("team", "keys")), RequiredObject(PERSISTENT_VOLUME_CLAIM, Key("team", "data"))
VOLUMES = [
    {"name": "keys", "secret": {"secretName": "keys"}},
    {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
    {"name": "more", "projected": {"sources": [{"configMap": {"name": "more", "optional": True}}]}},
]
REQUIRED: dict[str, tuple[Obj, FitResult]] = {
    "a ConfigMap": (
        of_container("not found", **env_from(name="settings")),
        FitResult(PODS, is_placed=True, required=(OBJECT,)),
    ),
    "an optional ConfigMap": (
        of_container("not found", **env_from(name="settings", optional=True)),
        FitResult(PODS, is_placed=True),
    ),
    "volumes": (
        of_container("not found", "ContainerCreating", volumes=VOLUMES),
        FitResult(PODS, is_placed=True, required=(KEYS, DATA)),
    ),
    "containers that are being created": (
        of_container("", "ContainerCreating", volumes=VOLUMES),
        FitResult(PODS, is_placed=True, is_starting=True),
    ),
    "containers that crash": (of_container("", "CrashLoopBackOff", volumes=VOLUMES), FitResult(PODS, is_placed=True)),
    "a claim": (
        of_scheduler("ClaimMissing", volumes=VOLUMES[1:]),
        FitResult(PODS, required=(DATA,), waits_for_claim=True),
    ),
    "a claim of another pod of the gang": (of_scheduler("ClaimMissing"), FitResult(PODS, waits_for_claim=True)),
    "room": (of_scheduler("Unschedulable", volumes=VOLUMES[1:]), FitResult(PODS)),
}


@pytest.mark.parametrize("case", REQUIRED)
def test_which_objects_a_pod_waits_for(case: str) -> None:
    pod, expected = REQUIRED[case]
    assert fit_of_pod(pod, PODS) == expected


@pytest.mark.parametrize("case", SHOWN)
def test_how_a_pod_fits(case: str) -> None:
    pod, expected = SHOWN[case]
    assert fit_of_pod(pod, PODS) == expected


GROUPS: dict[str, tuple[Obj, FitResult | None]] = {
    "too large": (waiting(claim("Unschedulable")), FitResult(why="needs 3")),
    "waits for room": (waiting(claim("Unschedulable", reason="NotEnoughResources")), None),
    "no longer": (waiting(claim("Unschedulable", "False")), None),
    "in the words of somebody else": (waiting(claim("example.com/ModelCheck"), OURS), None),
}


@pytest.mark.parametrize("case", GROUPS)
def test_how_a_group_fits(case: str) -> None:
    group, expected = GROUPS[case]
    assert fit_of_group(group) == expected


REJECTED = Message("OwnedObjectUnavailable.Rejected", {"kind": "PodGroup", "name": "x", "cause": "needs 3"})
EVENTS: dict[str, tuple[Obj, Message | None, FitResult | None]] = {
    "rejected": ({"lastTimestamp": "2030-01-01T00:00:01Z"}, REJECTED, FitResult(why="needs 3", is_size=False)),
    "rejected before all files were submitted": ({"lastTimestamp": "2030-01-01T00:00:00Z"}, REJECTED, None),
    "not rejected, and tried again": (
        {"lastTimestamp": "2030-01-01T00:00:01Z"},
        Message("OwnedObjectUnavailable", REJECTED.parameters),
        None,
    ),
    "without data": ({"lastTimestamp": "2030-01-01T00:00:01Z", "message": "PodGroup x is rejected"}, None, None),
    "without a time": ({}, REJECTED, None),
}


@pytest.mark.parametrize("case", EVENTS)
def test_how_an_owned_object_fits(case: str) -> None:
    event, message, expected = EVENTS[case]
    assert fit_of_event(event, message, BEGUN.started or datetime.now(UTC)) == expected


def test_a_job_whose_owned_object_is_rejected_is_given_up() -> None:
    rejected = FitResult(why="needs 3", is_size=False)
    waits = ledger(Stage.WAITING, Stage.WAITING)
    assert find_unschedulable(waits, [rejected]) == Unschedulable("", "needs 3", is_all=True, is_size=False)
