"""Acceptance scenario 51: what is refused when it is written, with every mistake at once."""

from __future__ import annotations

from typing import Any

import pytest

from kit.framework_notation import fw, role
from kit.scenario import SimulatedWorld
from shoal.kube.errors import ApiError
from shoal.kube.objects import Obj


def changed(path: str, value: Any) -> Obj:
    """A good Framework with one part changed; the path as the mistake names it."""
    manifest = fw("good", role("worker", 1))
    here: Any = manifest
    steps = path.replace("[0]", ".0").split(".")
    for step in steps[:-1]:
        here = here[int(step)] if step == "0" else here[step]
    here[steps[-1]] = value
    return manifest


MISTAKES = [
    ("metadata.name", "my-job"),
    ("spec.taskRoles[0].taskNumber", -1),
    ("spec.taskRoles[0].taskNumber", 10001),
    ("spec.retryPolicy.maxRetryCount", -3),
    ("spec.taskRoles[0].frameworkAttemptCompletionPolicy.minFailedTaskCount", -2),
    ("spec.executionType", "Pause"),
]


@pytest.mark.parametrize(
    ("path", "value"), MISTAKES, ids=[f"{path.rpartition('.')[2]}={value}" for path, value in MISTAKES]
)
async def test_scenario_51_validation(path: str, value: Any) -> None:
    async with SimulatedWorld(0) as world:
        with pytest.raises(ApiError) as caught:
            await world.submit(changed(path, value))
        assert (caught.value.code, [cause.field for cause in caught.value.causes]) == (422, [path])


async def test_scenario_51_every_mistake_is_listed() -> None:
    manifest = fw("my-job", role("a", -1), role("a", 1), start="Pause")
    async with SimulatedWorld(0) as world:
        with pytest.raises(ApiError) as caught:
            await world.submit(manifest)
        assert sorted(cause.field for cause in caught.value.causes) == [
            "metadata.name",
            "spec.executionType",
            "spec.taskRoles[0].taskNumber",
            "spec.taskRoles[1]",
        ]


async def test_scenario_51_a_change_is_judged_like_a_new_framework() -> None:
    async with SimulatedWorld(0) as world:
        await world.submit(fw("good", role("worker", 1), start="Create"))
        with pytest.raises(ApiError) as caught:
            await world.set("good", executionType="Pause")
        assert (caught.value.code, [cause.field for cause in caught.value.causes]) == (422, ["spec.executionType"])


async def test_scenario_51_null_grace_is_accepted() -> None:
    async with SimulatedWorld(0) as world:
        stored = await world.submit(changed("spec.taskRoles[0].task.podGracefulDeletionTimeoutSec", None))
        assert stored["spec"]["taskRoles"][0]["task"]["podGracefulDeletionTimeoutSec"] is None


async def test_scenario_51_what_is_left_out_gets_its_default() -> None:
    bare = {"apiVersion": "frameworkcontroller.microsoft.com/v1", "kind": "Framework", "metadata": {"name": "bare"}}
    async with SimulatedWorld(0) as world:
        stored = await world.submit({**bare, "spec": {"taskRoles": [{"name": "worker"}]}})
        role_spec = stored["spec"]["taskRoles"][0]
        assert stored["spec"]["executionType"] == "Start"
        assert role_spec["taskNumber"] == 0
        assert role_spec["frameworkAttemptCompletionPolicy"] == {"minFailedTaskCount": 1, "minSucceededTaskCount": -1}
