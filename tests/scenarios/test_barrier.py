"""Acceptance scenarios 44 to 46: tasks that wait for each other's addresses before they begin."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kit.embedded_world import RealWorld
from kit.fault_matrix import scenario
from kit.framework_notation import fw, role
from kit.frameworks import role as plain_role
from kit.pod_behavior import Rule, holding, pod_with, runs
from kit.scenario import NAMESPACE, World
from shoal.cluster.client import LogOptions
from shoal.dialects.framework.barrier import addresses, injector
from shoal.kube.objects import Obj

SPEAK = ". ./injector.sh >/dev/null; echo $FB_SERVER_IPS; echo $FB_WORKER_ADDRESSES; exec sleep 100000"
DELAYS = {
    "frameworkMinRetryDelaySecForTransientConflictFailed": 3,
    "frameworkMaxRetryDelaySecForTransientConflictFailed": 5,
}


# The barrier as it is but for its patience, which people may not make shorter than a minute.
IMPATIENT = """
import dataclasses
from shoal.launch.framework_barrier import environment, barrier
from shoal.cli.commands.barrier import command
read, barrier.LAST_READ_SECONDS = environment.read, 60
environment.read = lambda variables: dataclasses.replace(read(variables), timeout_seconds=2)
command()
"""
BARRIER = ("-m", "shoal", "barrier")


def waiting(name: str, number: int, *, run: Sequence[str] = BARRIER, hold: str = "/nowhere", **spec: Any) -> Obj:
    """A role whose tasks begin behind the barrier; its files lie in a volume all containers see. The barrier itself
    begins once there is no `hold`."""
    pod = pod_with(Rule(runs()), **spec)
    place = [{"name": "barrier", "mountPath": "/mnt/frameworkbarrier"}]
    env = [
        {"name": "BARRIER_CHECK_INTERVAL_SEC", "value": "60"},
        {"name": "FB_WORKER_PORT", "value": "4001"},
    ]
    barrier = {"name": "barrier", "image": "b", "command": [sys.executable, *run], "env": env}
    held = {"name": "held", "image": "b", "command": ["sh", "-c", f"while [ -e {hold} ]; do sleep 0.1; done"]}
    pod["spec"]["initContainers"] = [held, {**barrier, "workingDir": "/mnt/frameworkbarrier", "volumeMounts": place}]
    main = {"command": ["sh", "-c", SPEAK], "workingDir": "/mnt/frameworkbarrier", "env": env, "volumeMounts": place}
    pod["spec"]["containers"][0] |= main
    pod["spec"]["volumes"] = [{"name": "barrier", "emptyDir": {}}]
    return plain_role(name, number, pod=pod)


async def first_lines(world: World, pod: str, count: int, *, container: str = "main") -> list[str]:
    text = b""
    async for chunk in world.user.logs(pod, NAMESPACE, LogOptions(container=container, follow=True)):
        text += chunk
        if text.count(b"\n") >= count:
            break
    return text.decode().splitlines()[:count]


def has_begun(world: World, pod: str, *, among: str = "containerStatuses", name: str = "main") -> bool:
    statuses = (world.pods.get(pod, {}).get("status") or {}).get(among) or []
    return any(status["name"] == name and (status.get("state") or {}).get("running") for status in statuses)


def stands_at_the_barrier(world: World, pod: str) -> bool:
    return has_begun(world, pod, among="initContainerStatuses", name="barrier")


def is_running(world: World, pod: str) -> bool:
    return (world.pods.get(pod, {}).get("status") or {}).get("phase") == "Running"


@scenario(real=False)
async def test_scenario_44_barrier_pass(world: World) -> None:
    behind = runs(barrier_seconds=600)
    await world.submit(fw("gang", role("server", 2, fate=behind), role("worker", 2, fate=behind)))
    pods = [f"gang-{name}-{index}" for name in ("server", "worker") for index in (0, 1)]
    await world.until(lambda: any(is_running(world, pod) for pod in pods))
    found = addresses(world.frameworks["gang"])
    assert {name: len(ips) for name, ips in found.items()} == {"server": 2, "worker": 2}
    await world.running("gang", 2, "server")
    await world.running("gang", 2, "worker")
    script = injector(world.frameworks["gang"])
    assert f"export FB_SERVER_IPS={','.join(found['server'])}\n" in script
    workers = ",".join(f"{address}:${{FB_WORKER_PORT}}" for address in found["worker"])
    assert f"export FB_WORKER_ADDRESSES={workers}\n" in script


@pytest.mark.processes
async def test_scenario_44_barrier_pass_with_real_pods(tmp_path: Path) -> None:
    async with RealWorld(tmp_path) as world:
        await world.submit(fw("gang", waiting("server", 2), waiting("worker", 2)))
        pods = [f"gang-{name}-{index}" for name in ("server", "worker") for index in (0, 1)]
        await world.until(lambda: any(has_begun(world, pod) for pod in pods))
        addresses = [
            world.task("gang", index, name)["attemptStatus"]["podIP"]
            for name in ("server", "worker")
            for index in (0, 1)
        ]
        assert all(addresses)
        servers, workers = addresses[:2], addresses[2:]
        await world.until(lambda: all(has_begun(world, pod) for pod in pods))
        for pod in pods:
            assert await first_lines(world, pod, 2) == [
                ",".join(servers),
                ",".join(f"{address}:4001" for address in workers),
            ]


@scenario(real=False, config=DELAYS)
async def test_scenario_45_barrier_gang_timeout(world: World) -> None:
    gang = role("worker", 3, of={2: runs(unplaced=True)}, fate=runs(barrier_seconds=60))
    await world.submit(fw("gang", gang, retry=(True, 0)))
    await is_retried_at_no_cost(world)


@pytest.mark.processes
async def test_scenario_45_barrier_gang_timeout_with_real_pods(tmp_path: Path) -> None:
    async with RealWorld(tmp_path, config=DELAYS) as world:
        gang = waiting("worker", 2, run=("-c", IMPATIENT))
        unplaced = waiting("server", 1, nodeSelector={"there": "none"})
        await world.submit(fw("gang", gang, unplaced, retry=(True, 0)))
        await is_retried_at_no_cost(world)


async def is_retried_at_no_cost(world: World) -> None:
    """The gang gives up waiting; all of it goes, and comes again after a while without being charged."""
    await world.until(lambda: world.status("gang").get("retryPolicyStatus", {}).get("retryDelaySec") is not None)
    completion = world.attempt("gang")["completionStatus"]
    assert (completion["code"], completion["type"]["attributes"]) == (201, ["Transient", "Conflict"])
    assert 3 <= world.status("gang")["retryPolicyStatus"]["retryDelaySec"] <= 5
    assert (world.pods, world.config_maps) == ({}, {})
    await world.until(lambda: world.attempt("gang")["id"] == 1)
    assert world.status("gang")["retryPolicyStatus"]["accountableRetriedCount"] == 0
    await world.set("gang", executionType="Stop")
    await world.completed("gang")


@scenario(real=False)
async def test_scenario_46_barrier_and_scale_down(world: World) -> None:
    behind = runs(barrier_seconds=600)
    await world.submit(fw("gang", role("worker", 2, fate=behind), role("server", 1, fate=runs(unplaced=True))))
    await world.until(lambda: len(addresses(world.frameworks["gang"])["worker"]) == 2)
    await world.rest(60)
    assert not any(is_running(world, f"gang-worker-{index}") for index in (0, 1))
    await world.rescale("gang", 0, role=1)
    await world.running("gang", 2, "worker")


@pytest.mark.processes
async def test_scenario_46_barrier_and_scale_down_with_real_pods(tmp_path: Path) -> None:
    async with RealWorld(tmp_path) as world:
        server, pods = waiting("server", 1, nodeSelector={"there": "none"}), ("gang-worker-0", "gang-worker-1")
        with holding() as hold:
            await world.submit(fw("gang", waiting("worker", 2, hold=hold), server))
            await world.until(
                lambda: (
                    all(task["attemptStatus"]["podIP"] for task in world.tasks("gang", "worker"))
                    and len(world.tasks("gang", "worker")) == 2
                )
            )
        waits = "barrier: 2 of 3 tasks have an address"
        await world.until(lambda: all(stands_at_the_barrier(world, pod) for pod in pods))
        for pod in pods:
            assert await first_lines(world, pod, 1, container="barrier") == [waits]
        assert not any(has_begun(world, pod) for pod in pods)
        await world.rescale("gang", 0, role=1)
        await world.until(lambda: all(has_begun(world, pod) for pod in pods))
        for pod in pods:  # it waited for the scaling down, and for nothing else
            passed = "barrier: passed: 2 of 2 tasks have an address"
            assert await first_lines(world, pod, 2, container="barrier") == [waits, passed]
