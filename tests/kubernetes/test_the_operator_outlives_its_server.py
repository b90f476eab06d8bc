"""The API server is killed and comes back, or its etcd is paused for twenty seconds, in the middle of things.

Nothing is lost and nothing is doubled: a job that was being retried has every attempt once, one that runs keeps its
pods, and both go on. Meanwhile the operator says what it is waiting for, on its page and in its log.
"""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kit.control_plane import kept
from kit.control_plane_with_crds import PROGRAMS, DefinedKeeper
from kit.external_operator_world import OutsideWorld
from kit.framework_notation import fw, role
from kit.operator_process import OperatorProcess, operator
from kit.pod_behavior import exits, runs
from kit.run_folder import needs_a_control_plane
from shoal.cluster.kubeconfig import from_kubeconfig
from shoal.cluster.kubernetes import open_client
from shoal.kube.objects import uid_of

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(900)]

RETRIES = 8
HELD = (2, 3)  # attempts that end when they are told to, so that nothing was over before the server went away
PAUSE_SECONDS = 20


@pytest.fixture(scope="module")
def keeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DefinedKeeper]:
    needs_a_control_plane()
    with kept(DefinedKeeper, tmp_path_factory.mktemp("disturbed"), PROGRAMS) as keeper:
        yield keeper


async def test_it_goes_on_when_the_api_server_was_restarted(keeper: DefinedKeeper) -> None:
    async with in_the_middle(keeper) as (world, running):
        keeper.kill_apiserver()
        world.answers.clear()
        try:
            line = await running.says("watch broken")
            status, words = await ready(running)
        finally:
            keeper.begin_apiserver()
            await asyncio.to_thread(keeper.await_apiserver)
            world.answers.set()
        refused = f"{keeper.url} cannot be reached: Connection refused. Is the cluster up, and is this its address?"
        assert (line["error"], status, words[0]) == (refused, 503, f"cluster: {refused}")
        await ends_well(world)
        assert await ready(running) == (200, ["shard 0: leads"])


async def test_it_goes_on_when_etcd_was_paused(keeper: DefinedKeeper) -> None:
    async with in_the_middle(keeper) as (world, running):
        keeper.pause_etcd()
        try:
            paused = asyncio.create_task(asyncio.sleep(PAUSE_SECONDS))  # that is what this is about
            await running.says("lease not written")
            await running.says("no longer leading")
            status, words = await ready(running)
            await paused
        finally:
            keeper.resume_etcd()
        assert status == 503
        assert words[0].startswith(f"cluster: {keeper.url} has not answered ")
        await ends_well(world)
        assert await ready(running) == (200, ["shard 0: leads"])


@asynccontextmanager
async def in_the_middle(keeper: DefinedKeeper) -> AsyncIterator[tuple[OutsideWorld, OperatorProcess]]:
    """One job has been retried twice and is about to be again, another runs."""
    kubeconfig = Path(keeper.plane.kubeconfig)
    async with (
        open_client(from_kubeconfig(kubeconfig)) as cluster,
        OutsideWorld(keeper.plane, cluster, pace=0.1) as world,
        operator(kubeconfig, "--namespace", world.namespace, "--dialects", "framework") as running,
    ):
        failing = {**dict.fromkeys(range(RETRIES), exits(1)), **dict.fromkeys(HELD, runs())}
        await world.submit(fw("stays", role(number=2, fate=runs())))
        await world.submit(fw("busy", role(retry=(False, RETRIES), attempts=failing, fate=exits(0))))
        await world.running("stays", 2)
        await tell_to_go(world, HELD[0])
        yield world, running
        assert await running.stop() == 0


async def tell_to_go(world: OutsideWorld, attempt: int) -> None:
    """Once it runs; the next attempt follows."""

    def is_running() -> bool:
        if not world.are_running("busy", 1):
            return False
        told, pod = world.task("busy")["attemptStatus"], world.pods.get("busy-worker-0")
        return told["id"] == attempt and pod is not None and told["podUID"] == uid_of(pod)

    await world.until(is_running)
    await world.delete_pod("busy-worker-0")


async def ends_well(world: OutsideWorld) -> None:
    await tell_to_go(world, HELD[1])
    await world.completed("busy")
    assert (world.code("busy"), world.task("busy")["retryPolicyStatus"]["totalRetriedCount"]) == (0, RETRIES)
    kept = {name: list(world.uids[name]) for name in ("stays-worker-0", "stays-worker-1")}
    assert [len(uids) for uids in kept.values()] == [1, 1]
    await world.rescale("stays", 3)
    await world.running("stays", 3)
    assert {name: world.uids[name] for name in kept} == kept
    await world.set("stays", executionType="Stop")
    await world.completed("stays")
    assert (world.pods, world.config_maps) == ({}, {})


async def ready(running: OperatorProcess) -> tuple[int, list[str]]:
    page = f"http://127.0.0.1:{await running.port('health')}/readyz"

    def read() -> tuple[int, list[str]]:
        try:
            with urllib.request.urlopen(page, timeout=60) as answer:
                return answer.status, answer.read().decode().splitlines()
        except urllib.error.HTTPError as told:
            return told.code, told.read().decode().splitlines()

    return await asyncio.to_thread(read)
