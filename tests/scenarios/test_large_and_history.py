"""Acceptance scenarios 47 and 48: large Frameworks, and what is told of the past."""

from __future__ import annotations

from base64 import b64decode
from gzip import decompress

import msgspec

from kit.fault_matrix import scenario
from kit.framework_notation import fw, role
from kit.pod_behavior import exits, runs
from kit.scenario import SimulatedWorld


async def test_scenario_47_compression() -> None:
    config = {"largeFrameworkCompression": True}
    async with SimulatedWorld(0, config=config) as world:
        await world.submit(fw("large", role("worker", 3000, -1, -1, fate=runs()), start="Create"))
        await world.until(lambda: bool(world.status("large")))
        attempt = world.attempt("large")
        assert attempt["taskRoleStatuses"] is None
        roles = msgspec.json.decode(decompress(b64decode(attempt["taskRoleStatusesCompressed"])))
        assert [task["index"] for task in roles[0]["taskStatuses"]] == list(range(3000))
        await world.restart_operator(large_framework_compression=False)
        written = world.writes
        await world.rest(60)
        assert world.writes == written
        await world.rescale("large", 100)
        await world.until(lambda: len(world.tasks("large")) == 100)
        assert [task["instanceUID"] for task in world.tasks("large")] == [
            task["instanceUID"] for task in roles[0]["taskStatuses"][:100]
        ]


@scenario(real=False)
async def test_scenario_48_history(world: SimulatedWorld) -> None:
    await world.submit(fw("past", role("worker", retry=(True, 1), fate=exits(1)), retry=(True, 1)))
    await world.completed("past")
    await world.submit(fw("less", role("worker", 2, fate=runs())))
    await world.running("less", 2)
    await world.rescale("less", 1)
    await world.until(lambda: len(world.tasks("less")) == 1)
    told = {trigger: [s for s in world.snapshots if s.trigger == trigger] for trigger in
            ("OnFrameworkRetry", "OnTaskRetry", "OnTaskDeletion")}  # fmt: skip
    if world.is_disturbed:  # at least once: readers drop what they have
        told = {trigger: list({_identity(s.object): s for s in several}.values()) for trigger, several in told.items()}
    (retry,) = told["OnFrameworkRetry"]
    assert (retry.object["apiVersion"], retry.object["kind"]) == ("frameworkcontroller.microsoft.com/v1", "Framework")
    assert retry.object["status"]["attemptStatus"]["id"] == 0
    assert retry.object["status"]["attemptStatus"]["completionStatus"]["code"] == 1
    assert [task.object["kind"] for task in told["OnTaskRetry"]] == ["Task", "Task"]
    (removed,) = told["OnTaskDeletion"]
    assert removed.object["metadata"]["name"] == "less-worker-1"
    assert removed.object["metadata"]["deletionTimestamp"]


def _identity(obj: dict) -> tuple[str, object]:
    attempt = obj["status"]["attemptStatus"]
    return obj["metadata"]["uid"], (obj["kind"], attempt["id"])
