"""Acceptance scenarios of Volcano Jobs that a virtual world plays with a room of its own, on a whole cluster of ours:
without room for a gang nothing of it starts (7, 32)."""

from __future__ import annotations

from pathlib import Path

import pytest

from kit.pod_behavior import runs
from kit.volcano_jobs import task, vcjob
from kit.volcano_world import RealVolcano

pytestmark = pytest.mark.processes

CPU = {"cpu": "1"}


async def test_32_with_room_for_three_nothing_starts(tmp_path: Path) -> None:
    async with RealVolcano(tmp_path, capacity={"cpu": "3"}) as world:
        await world.submit(
            vcjob(
                "ctr",
                task("pserver", 2, fate=runs(), requests=CPU),
                task("trainer", 2, fate=runs(), requests=CPU),
                minAvailable=4,
            )
        )
        await world.until(lambda: bool((world.group("ctr").get("status") or {}).get("conditions")))
        await world.rest(10)
        assert (world.phase("ctr"), dict(world.uids)) == ("Pending", {})


async def test_7_a_gang_without_room_waits_and_starts_when_there_is_some(tmp_path: Path) -> None:
    async with RealVolcano(tmp_path, capacity={"cpu": "3"}) as world:
        await world.submit(vcjob("first", task(fate=runs(), requests=CPU)))
        await world.up("first", 1)
        await world.submit(vcjob("big", task(replicas=3, fate=runs(), requests=CPU)))
        await world.until(lambda: bool((world.group("big").get("status") or {}).get("conditions")))
        await world.rest(10)
        assert (world.phase("big"), world.pods_of("big")) == ("Pending", {})
        await world.command("first", "TerminateJob")
        await world.up("big", 3)
