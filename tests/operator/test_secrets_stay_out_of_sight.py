"""What somebody wrote into a job as a secret reaches neither log, at any level, nor Events, nor status, nor history.

A whole life is played each time: retries, a refused pod, a broken answer, a job nobody can run, its deletion.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from kit.framework_notation import fw, role
from kit.pod_behavior import exits
from kit.scenario import FRAMEWORK, NAMESPACE, SimulatedWorld
from shoal.cluster.fault_injection import Call, Faults
from shoal.dialects.framework import DIALECT
from shoal.kube.errors import ApiError
from shoal.kube.kinds import EVENT, POD, SECRET
from shoal.kube.objects import Obj
from shoal.logs import JsonLines, KeyValues
from shoal.operator.history_redaction import log_redacted

WORDS = ("swordfish", "open-sesame", "902104711902")


class Heard(logging.Handler):
    """Everything that is logged, in both forms a log can have."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines += [KeyValues().format(record), JsonLines().format(record)]


@pytest.fixture
def heard() -> Iterator[Heard]:
    made, root = Heard(), logging.getLogger()
    before = root.level
    root.addHandler(made)
    root.setLevel(logging.DEBUG)
    yield made
    root.setLevel(before)
    root.removeHandler(made)


def careless(name: str, **variables: Any) -> Obj:
    """A job that fails and is tried again, with secrets where people put them."""
    made = role(number=2, retry=(False, 1), fate=exits(3))
    made["task"]["pod"]["spec"]["containers"][0]["env"] = [
        {"name": "PASSWORD", "value": "swordfish"},
        {"name": "PIN", "value": "902104711902"},
        {"name": "WORD", "valueFrom": {"secretKeyRef": {"name": "key", "key": "word"}}},
    ]
    return fw(name, made, retry=(False, 1), **variables)


async def told(world: SimulatedWorld) -> str:
    """Everything that people who may not read the job itself may see of it."""
    events = (await world.user.list(EVENT, NAMESPACE)).items
    assert events != []
    return str(events) + str(dict(world.statuses))


def leaked(*shown: str) -> list[str]:
    return [word for word in WORDS if any(word in text for text in shown)]


async def test_through_a_whole_life(heard: Heard) -> None:
    async with SimulatedWorld(1) as world:
        await world.user.create(SECRET, {"metadata": {"name": "key"}, "stringData": {"word": "open-sesame"}}, NAMESPACE)
        await world.submit(careless("careless"))
        await world.completed("careless")
        shown = await told(world)
        await world.delete("careless")
        await world.until(lambda: not world.frameworks)
        for snapshot in world.snapshots:
            log_redacted(snapshot)
    assert len(world.snapshots) > 4
    assert sum("ObjectSnapshot" in line for line in heard.lines) == 2 * len(world.snapshots)
    assert leaked(shown, *heard.lines) == []


async def test_through_refusals_and_answers_that_get_lost(heard: Heard) -> None:
    def creates_a_pod(call: Call) -> bool:
        return (call.verb, call.kind) == ("create", POD)

    def plan(life: int) -> Faults:
        return Faults() if life else Faults().lose_response(creates_a_pod, times=2).fail(creates_a_pod)

    async with SimulatedWorld(1, plan=plan) as world:
        await world.submit(careless("careless"))
        await world.completed("careless")
        world.pod_refusal = ApiError(403, "Forbidden", "pods are not allowed today")
        await world.submit(careless("forbidden"))
        await world.completed("forbidden")
        shown = await told(world)
    assert "pods are not allowed today" in shown
    assert leaked(shown, *heard.lines) == []


STORED = {
    "a map of variables": {"Env": {"PASSWORD": "swordfish"}},
    "a number for a variable": {"Env": [{"name": "PIN", "value": 902104711902}]},
    "a text for variables": {"Env": "PASSWORD=swordfish"},
}


@pytest.mark.parametrize("container", STORED.values(), ids=list(STORED))
async def test_a_job_that_cannot_be_run_is_told_without_its_variables(heard: Heard, container: Obj) -> None:
    """Written to a cluster whose definition takes any template: the operator is the first to look into it."""
    job = careless("odd")
    job["spec"]["taskRoles"][0]["task"]["pod"] = {"Spec": {"Containers": [{"name": "main", **container}]}}
    async with SimulatedWorld(1) as world:
        world.machinery.admissions.pop(FRAMEWORK.resource)
        await world.submit(job)
        await world.rest(5)
        shown = await told(world)
    assert "InvalidManifest" in shown
    assert ".env" in shown  # where it is, is said
    assert leaked(shown, *heard.lines) == []


def test_roles_of_a_wrong_shape_are_told_without_what_is_in_them() -> None:
    job = careless("odd")
    job["spec"]["taskRoles"] = {"worker": job["spec"]["taskRoles"][0]}
    assert [str(cause) for cause in DIALECT.validate(job)] == [
        'spec.taskRoles: Invalid value: "object": must be a list: a list of roles, each with a name and a task'
    ]
