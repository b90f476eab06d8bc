"""The language that docs/writing-a-dialect.md builds does what the page says."""

from __future__ import annotations

from kit.capabilities import capability
from kit.fault_matrix import Worlds
from kit.fault_matrix import scenario as any_scenario
from kit.pod_behavior import exits, runs
from kit.toy_language import SwarmWorld, swarm, toy_dialect, toy_source
from shoal.dialects.capabilities import Scaling, Suspension
from shoal.kube.kinds import POD
from shoal.kube.objects import Obj

TOY = toy_dialect()
scenario = any_scenario(real=False, worlds=Worlds(SwarmWorld, kubernetes=None, watched=(TOY.kind, POD)))


def test_the_language_fits_on_a_page() -> None:
    assert len(toy_source().splitlines()) <= 150


@scenario
async def test_a_job_ends_when_all_its_workers_have_succeeded(world: SwarmWorld) -> None:
    await world.submit(swarm(workers=2))
    assert await world.ended("a") == "Succeeded"
    assert (sorted(world.pods), world.counts("a")) == (["a-worker-0", "a-worker-1"], {"succeeded": 2})


async def test_a_worker_that_fails_is_tried_again_as_often_as_the_spec_says() -> None:
    async with SwarmWorld() as world:
        await world.submit(swarm(fate=exits(1), retries=2))
        assert await world.ended("a") == "Failed"
        assert len(world.uids["a-worker-0"]) == 3


async def test_a_worker_whose_pod_is_deleted_gets_another_for_free() -> None:
    async with SwarmWorld() as world:
        await world.submit(swarm(fate=runs()))
        await world.until(lambda: world.counts("a") == {"running": 1})
        await world.delete_pod("a-worker-0")
        await world.until(lambda: len(world.uids["a-worker-0"]) == 2 and world.counts("a") == {"running": 1})
        assert world.phase("a") == "Running"


async def test_each_worker_is_told_its_place() -> None:
    async with SwarmWorld() as world:
        await world.submit(swarm(fate=runs(), workers=2))
        await world.until(lambda: world.counts("a") == {"running": 2})
        told = {name: environment(pod) for name, pod in world.pods.items()}
        assert told["a-worker-1"] == {"SWARM_INDEX": "1", "SWARM_SIZE": "2"}


async def test_a_job_is_scaled_while_it_runs() -> None:
    async with SwarmWorld() as world:
        await world.submit(swarm(fate=runs(), workers=2))
        for size in (3, 1):
            await world.patch("a", *capability(TOY, Scaling).patch(world.frameworks["a"], {"worker": size}))
            await world.until(lambda size=size: world.counts("a") == {"running": size})  # type: ignore[misc]


async def test_a_suspended_job_has_no_pods_and_goes_on_when_it_is_started() -> None:
    async with SwarmWorld() as world:
        suspension = capability(TOY, Suspension)
        await world.submit(swarm(fate=exits(0, after=60)))
        await world.until(lambda: world.counts("a") == {"running": 1})
        await world.patch("a", *suspension.stop_patch(world.frameworks["a"]))
        await world.until(lambda: world.phase("a") == "Suspended" and not world.pods)
        await world.patch("a", *suspension.start_patch(world.frameworks["a"]))
        assert await world.ended("a") == "Succeeded"


def environment(pod: Obj) -> dict[str, str]:
    return {each["name"]: each["value"] for each in pod["spec"]["containers"][0]["env"]}
