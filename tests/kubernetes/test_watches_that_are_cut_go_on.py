"""All watches of an operator are cut every second for a minute, while jobs run, grow and shrink.

Nothing is lost and nothing is doubled, and a watch that was cut goes on where it was: nothing is listed again.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from kit.control_plane import ControlPlane
from kit.external_operator_world import OutsideWorld
from kit.fault_proxy import Between, between, kubeconfig_by, to_server
from kit.framework_notation import fw, role
from kit.operator_process import operator
from kit.pod_behavior import exits, runs
from shoal.cluster.kubeconfig import from_kubeconfig
from shoal.cluster.kubernetes import open_client

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(900)]

SECONDS = 60
COPIES = ("configmaps", "frameworks", "leases", "pods")


async def test_watches_cut_every_second_for_a_minute_list_nothing_again(
    littered_plane: ControlPlane, tmp_path: Path
) -> None:
    plane, file = littered_plane, tmp_path / "kubeconfig"
    async with (
        open_client(from_kubeconfig(Path(plane.kubeconfig))) as cluster,
        to_server(plane) as server,
        between(server) as way,
        OutsideWorld(plane, cluster, pace=0.02) as world,
    ):
        file.write_text(json.dumps(kubeconfig_by(way.url, plane.token)))
        async with operator(file, "--namespace", world.namespace, "--dialects", "framework") as running:
            await world.submit(fw("elastic", role("worker", 4, 4, 1, fate=runs())))
            await world.running("elastic", 4)
            listed = lists(way)
            assert max(listed.values()) == 1
            cutting = asyncio.create_task(cut_every_second(way))
            jobs = await live_on(world, cutting)
            assert lists(way) == listed
            assert cutting.result() >= SECONDS
            assert await running.stop() == 0
    assert [len(world.uids[f"{name}-worker-0"]) for name in jobs] == [1] * len(jobs)
    assert [len(world.uids[f"elastic-worker-{index}"]) for index in range(2)] == [1, 1]


async def cut_every_second(way: Between) -> int:
    """How many were cut. The minute is what this is about."""
    cut = 0
    for _ in range(SECONDS):
        await asyncio.sleep(1)
        cut += way.cut_watches()
    return cut


async def live_on(world: OutsideWorld, cutting: asyncio.Task[int]) -> list[str]:
    """One short job after the other, and the elastic one smaller and larger with each; the names of the short ones."""
    jobs: list[str] = []
    while not cutting.done():
        jobs.append(f"job{len(jobs)}")
        await world.submit(fw(jobs[-1], role(fate=exits(0))))
        size = 2 if len(jobs) % 2 else 4
        await world.rescale("elastic", size)
        await world.completed(jobs[-1])
        await world.until(lambda: len(world.tasks("elastic")) == size and world.are_running("elastic", size))  # noqa: B023
        assert (world.code(jobs[-1]), world.codes(jobs[-1])) == (0, [0])
    return jobs


def lists(way: Between) -> dict[tuple[str, str], int]:
    """How often everything was read, by resource."""
    return {
        (what, resource): count
        for (what, resource), count in way.asked.items()
        if what in ("list", "streaming list") and resource in COPIES
    }
