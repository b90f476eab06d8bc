"""Acceptance scenarios 33 to 36: pods that are refused, and what a failed pod means."""

from __future__ import annotations

from typing import Any

import pytest

from kit.fault_matrix import scenario
from kit.framework_notation import fw, role
from kit.pod_behavior import exits, runs
from kit.scenario import SimulatedWorld, World
from shoal.dialects.framework import SettingsInvalid, settings
from shoal.kube.errors import forbidden
from shoal.kube.kinds import POD

OOM = {
    "podFailureSpec": [
        {
            "code": 221,
            "phrase": "TensorflowOOM",
            "type": {"attributes": ["Permanent"]},
            "podPatterns": [{"containers": [{"messageRegex": "(?msi)tensorflow.*OOM", "codeRange": {"min": 1}}]}],
        }
    ]
}


def ends(world: World, name: str, which: str) -> tuple[int, str, list[str]]:
    completion = world.task(name, 0, which)["attemptStatus"]["completionStatus"]
    return completion["code"], completion["phrase"], completion["type"]["attributes"]


@scenario()
async def test_scenario_33_invalid_pod(world: World) -> None:
    bad = role("worker", retry=(True, 3))
    bad["task"]["pod"]["spec"]["containers"][0]["name"] = "Not_A_Name"
    await world.submit(fw("invalid", bad))
    await world.completed("invalid")
    task = world.task("invalid")
    assert ends(world, "invalid", "worker") == (-200, "PodCreationPermanentError", ["Permanent"])
    assert task["attemptStatus"]["completionStatus"]["diagnostics"].startswith("Failed to create Pod: ")
    assert (task["attemptStatus"]["podUID"], task["retryPolicyStatus"]["totalRetriedCount"]) == (None, 0)
    assert (world.code("invalid"), world.uids) == (-200, {})


@scenario(real=False)
async def test_scenario_34_forbidden_vs_quota(world: SimulatedWorld) -> None:
    world.pod_refusal = forbidden(POD, "quota-worker-0", "exceeded quota: compute, requested: pods=1")
    await world.submit(fw("quota", role("worker", retry=(True, 1), fate=runs())))
    await world.rest(60)
    assert (world.task("quota")["state"], world.task("quota")["attemptStatus"]["id"]) == ("AttemptCreationPending", 0)
    world.pod_refusal = None
    await world.running("quota", 1)
    assert world.task("quota")["attemptStatus"]["id"] == 0
    world.pod_refusal = forbidden(POD, "denied-worker-0", "nobody may run this")
    await world.submit(fw("denied", role("worker", retry=(True, 1))))
    await world.completed("denied")
    assert ends(world, "denied", "worker") == (-310, "PodCreationUnknownError", [])
    retries = world.task("denied")["retryPolicyStatus"]
    assert (retries["totalRetriedCount"], retries["accountableRetriedCount"]) == (1, 1)


@scenario(real=False)
async def test_scenario_35_evicted_oom_unmatched(world: World) -> None:
    await world.submit(
        fw(
            "ends",
            role("evicted", 1, -1, -1, fate=exits(1, pod_reason="Evicted")),
            role("oom", 1, -1, -1, fate=exits(137, reason="OOMKilled")),
            role("killed", 1, -1, -1, fate=exits(137)),
            role("strange", 1, -1, -1, fate=exits(1, pod_reason="Foo")),
        )
    )
    await world.completed("ends")
    assert {name: ends(world, "ends", name) for name in ("evicted", "oom", "killed", "strange")} == {
        "evicted": (-1000, "PodEvicted", ["Transient"]),
        "oom": (-1200, "ContainerDockerOOMKilled", ["Permanent"]),
        "killed": (137, "ContainerSigKillReceived", ["Transient"]),
        "strange": (-300, "PodFailedWithoutFailedContainer", []),
    }


@scenario(config=OOM)
async def test_scenario_36_custom_pod_failure_spec(world: World) -> None:
    await world.submit(fw("custom", role("worker", fate=exits(1, message="TensorFlow ran into OOM"))))
    await world.completed("custom")
    assert ends(world, "custom", "worker") == (221, "TensorflowOOM", ["Permanent"])
    told = world.task("custom")["attemptStatus"]["completionStatus"]["diagnostics"]
    assert told == ('Pod failed: PodPattern matched: {"containers":[{"message":"TensorFlow ran into OOM","code":1}]}')


def entry(**changed: Any) -> dict[str, Any]:
    return {"podFailureSpec": [{**OOM["podFailureSpec"][0], **changed}]}


@pytest.mark.parametrize(
    "refused",
    [
        pytest.param(entry(code=205), id="205 is the controller's"),
        pytest.param(entry(code=-5), id="-5 is the controller's"),
        pytest.param({"podFailureSpec": OOM["podFailureSpec"] * 2}, id="a code twice"),
        pytest.param(entry(podPatterns=[]), id="no patterns"),
        pytest.param(entry(type={"name": "Succeeded"}), id="no failure"),
    ],
)
def test_scenario_36_a_wrong_pod_failure_spec_keeps_the_controller_from_starting(refused: dict[str, Any]) -> None:
    with pytest.raises(SettingsInvalid):
        settings(refused)
