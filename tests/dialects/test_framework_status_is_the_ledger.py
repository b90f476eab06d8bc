"""What is stored is the status; whoever restarts knows exactly what was known before."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.frameworks import DEFAULTS, UID, FrameworkWorld, framework, role, running
from shoal.dialects.dialect import StateUnreadable
from shoal.dialects.framework import DIALECT
from shoal.dialects.framework.controller_outcomes import failure_class_of, is_final
from shoal.dialects.framework.crd import schema
from shoal.dialects.framework.status import status_of
from shoal.engine import (
    AttemptState,
    ContainerEnd,
    Detail,
    Intent,
    JobState,
    Outcome,
    RoleState,
    Run,
    Stage,
    Stamps,
    TaskState,
    Trigger,
)
from shoal.kube.structural_schema import prune, validate

MOMENTS = st.integers(0, 10**9).map(lambda n: datetime(2020, 1, 1, tzinfo=UTC) + timedelta(seconds=n))
MAYBE = st.none() | MOMENTS
TEXT = st.text(max_size=20)
UIDS = st.uuids().map(str)
SMALL = st.integers(0, 50)
ATTRIBUTES = st.sampled_from([(), ("Transient",), ("Permanent",), ("Transient", "Conflict")])
CODES = st.sampled_from([-101, -100, -110, -210, -220, -230, -300, -1000, 1, 137, 200, 201])


@st.composite
def outcomes(draw: st.DrawFn, *, of_task: bool) -> Outcome:
    succeeded = draw(st.booleans())
    attributes = () if succeeded else draw(ATTRIBUTES)
    code = 0 if succeeded else draw(CODES)
    return Outcome(
        failure_class_of(attributes, code, succeeded=succeeded),
        code=code,
        phrase=draw(TEXT),
        text=draw(TEXT),
        attributes=attributes,
        final=not succeeded and is_final(code),
        trigger=None if of_task else draw(st.none() | st.builds(Trigger, st.just("worker"), SMALL, TEXT)),
        detail=draw(st.none() | DETAILS) if of_task else None,
    )


ENDS = st.builds(ContainerEnd, TEXT, st.integers(-1, 255), TEXT, TEXT, SMALL)
DETAILS = st.builds(Detail, TEXT, TEXT, st.lists(ENDS, max_size=3).map(tuple))


@st.composite
def tasks(draw: st.DrawFn, index: int) -> TaskState:
    uid = draw(st.none() | UIDS)
    number = draw(SMALL)
    return TaskState(
        index,
        instance=draw(UIDS),
        stage=draw(st.sampled_from(Stage)),
        since=draw(MOMENTS),
        started=draw(MOMENTS),
        ran=draw(MAYBE),
        completed=draw(MAYBE),
        dropped=draw(st.booleans()),
        charged=draw(st.integers(0, number)),
        had_pod=uid is not None,
        attempt=AttemptState(
            number=number,
            started=draw(MOMENTS),
            ran=draw(MAYBE),
            completed=draw(MAYBE),
            uid=uid,
            node=draw(st.none() | TEXT),
            ip=draw(st.none() | TEXT),
            host_ip=draw(st.none() | TEXT),
            outcome=draw(st.none() | outcomes(of_task=True)),
        ),
    )


@st.composite
def roles(draw: st.DrawFn, name: str) -> RoleState:
    size = draw(st.integers(0, 3))
    return RoleState(
        name, draw(UIDS), draw(st.none() | st.integers(0, 3600)), tuple(draw(tasks(index)) for index in range(size))
    )


@st.composite
def ledgers(draw: st.DrawFn) -> JobState:
    outcome = draw(st.none() | outcomes(of_task=False))
    charged = draw(SMALL)
    return JobState(
        run=Run(
            number=draw(SMALL),
            stage=draw(st.sampled_from(Stage)),
            since=draw(MOMENTS),
            started=draw(MOMENTS),
            ran=draw(MAYBE),
            completed=draw(MAYBE),
            run_owner=draw(st.none() | UIDS),
            intent=None if outcome is None else Intent.END,
            outcome=outcome,
            delay_seconds=draw(st.none() | SMALL),
        ),
        roles=tuple(draw(roles(name)) for name in draw(st.sampled_from([(), ("etcd",), ("etcd", "worker")]))),
        charges={"": charged} if charged else {},
        stamps=Stamps(started=draw(MOMENTS), ran=draw(MAYBE), ended=draw(MAYBE)),
    )


@given(ledgers())
def test_reading_what_was_written_gives_the_same_ledger(state: JobState):
    status = status_of("pet", state)

    assert DIALECT.load_state({"metadata": {"uid": UID}, "status": status}) == state
    assert status_of("pet", DIALECT.load_state({"metadata": {"uid": UID}, "status": status})) == status


@given(ledgers())
def test_whatever_is_written_fits_the_definition(state: JobState):
    manifest = {**framework(role()), "status": status_of("fw", state)}

    assert validate(schema(), manifest) == []
    assert prune(schema(), manifest) == manifest


def test_a_framework_nobody_has_looked_at_has_an_empty_ledger():
    assert DIALECT.load_state(framework(role())) == JobState()
    assert DIALECT.load_state({**framework(role()), "status": None}) == JobState()
    assert DIALECT.load_state({**framework(role()), "status": {}}) == JobState()


def test_every_key_is_there_from_the_first_pass():
    world = FrameworkWorld(framework(role(number=1, grace=600), start="Create"))
    world.step()

    uids = iter(["role-uid", "task-uid"])
    status = with_uids(world.status, uids)
    start = "2026-11-16T04:00:00Z"
    nothing_retried = {"totalRetriedCount": 0, "accountableRetriedCount": 0, "retryDelaySec": None}
    assert status == {
        "startTime": start,
        "runTime": None,
        "completionTime": None,
        "state": "AttemptCreationPending",
        "transitionTime": start,
        "retryPolicyStatus": nothing_retried,
        "attemptStatus": {
            "id": 0,
            "startTime": start,
            "runTime": None,
            "completionTime": None,
            "instanceUID": None,
            "configMapName": "fw-attempt",
            "configMapUID": None,
            "completionStatus": None,
            "taskRoleStatuses": [
                {
                    "name": "worker",
                    "instanceUID": "role-uid",
                    "podGracefulDeletionTimeoutSec": 600,
                    "taskStatuses": [
                        {
                            "index": 0,
                            "instanceUID": "task-uid",
                            "startTime": start,
                            "runTime": None,
                            "completionTime": None,
                            "state": "AttemptCreationPending",
                            "transitionTime": start,
                            "deletionPending": False,
                            "retryPolicyStatus": nothing_retried,
                            "attemptStatus": {
                                "id": 0,
                                "startTime": start,
                                "runTime": None,
                                "completionTime": None,
                                "instanceUID": None,
                                "podName": "fw-worker-0",
                                "podUID": None,
                                "podNodeName": None,
                                "podIP": None,
                                "podHostIP": None,
                                "completionStatus": None,
                            },
                        }
                    ],
                }
            ],
        },
    }


def with_uids(value: Any, uids: Any) -> Any:
    """Generated uuids replaced by words, in the order they appear."""
    if isinstance(value, dict):
        return {key: with_uids(below, uids) for key, below in value.items()}
    if isinstance(value, list):
        return [with_uids(below, uids) for below in value]
    return next(uids) if isinstance(value, str) and re.fullmatch(r"[0-9a-f-]{36}", value) else value


def test_the_ledger_is_stored_as_the_whole_status_so_that_nulls_stay():
    world = running(framework(role()))
    patch = DIALECT.save_state(world.job, world.state, DEFAULTS)

    assert patch.subresource == "status"
    assert patch.operations == ({"op": "add", "path": "/status", "value": world.status},)


def test_instances_an_older_controller_did_not_name_get_a_lasting_name():
    world = running(framework(role(number=2)))
    status = world.status
    for each in status["attemptStatus"]["taskRoleStatuses"]:
        del each["instanceUID"]
        for task in each["taskStatuses"]:
            del task["instanceUID"], task["runTime"]
    first, again = (DIALECT.load_state({**world.manifest, "status": status}) for _ in range(2))

    assert first == again
    named = [first.roles[0].instance, *(task.instance for task in first.roles[0].tasks)]
    assert len({*named}) == 3
    assert all(re.fullmatch(r"[0-9a-f-]{36}", name) for name in named)


@pytest.mark.parametrize(
    "status",
    [
        {"startTime": "yesterday"},
        {"startTime": "2026-11-16T04:00:00Z", "state": "Asleep"},
        {"startTime": "2026-11-16T04:00:00Z", "attemptStatus": {"taskRoleStatusesCompressed": "???"}},
    ],
    ids=["time", "state", "packed"],
)
def test_a_status_nobody_wrote_is_left_alone(status: dict[str, Any]):
    with pytest.raises(StateUnreadable, match="default/fw was not written by a controller"):
        DIALECT.load_state({**framework(role()), "status": status})
