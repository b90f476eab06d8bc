"""What scenarios rely on when they say that something does not happen: after a rest the operator has nothing to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from kit.embedded_world import RealWorld
from kit.fault_matrix import embedded, kubernetes, simulated
from kit.framework_notation import fw, role
from kit.kubernetes_world import KubernetesWorld
from kit.pod_behavior import exits, runs
from kit.scenario import SimulatedWorld, World


@pytest.mark.parametrize("tier", [simulated, embedded, kubernetes])
async def test_what_was_asked_for_is_seen_and_stored_after_a_rest(
    tier: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    worlds = {
        "simulated": SimulatedWorld,
        "embedded": lambda: RealWorld(tmp_path),
        "kubernetes": lambda: KubernetesWorld(request.getfixturevalue("kubernetes_plane")),
    }
    async with worlds[tier]() as world:
        await play(world)


async def play(world: World) -> None:
    await world.submit(fw("later", role("worker", 2, fate=exits(0)), start="Create"))
    await world.rest(1)
    assert (world.state("later"), len(world.tasks("later"))) == ("AttemptCreationPending", 2)
    await world.submit(fw("many", role("worker", 3, fate=runs())))
    await world.running("many", 3)
    await world.rescale("many", 1, failed=1)
    await world.rescale("later", 5)
    await world.rest(1)
    flags = [task["deletionPending"] for task in world.tasks("many")]
    assert (flags[:1], all(flags[1:]), len(world.tasks("later"))) == ([False], True, 5)
