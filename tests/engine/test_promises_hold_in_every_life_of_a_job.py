"""Random lives with crashes: each pass is held to the invariants, and every life comes to rest."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from kit.engine_strategies import JOBS, LIVES_WITH_ACCIDENTS, Move, play
from kit.engine_world import World
from shoal.engine.invariants import leftovers


@pytest.mark.parametrize("kind", JOBS)
@given(life=LIVES_WITH_ACCIDENTS)
@settings(
    max_examples=40,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow],
)
def test_promises_hold_in_every_life_of_a_job(kind: str, life: list[Move]):
    world = World(JOBS[kind]())
    for move in life:
        play(world, move)

    rest = world.settle()
    assert (rest.writes, rest.requeue) == ((), False)
    assert world.step().state is rest.state  # nothing to store
    if world.state.is_ended:
        assert leftovers(world.job, world.state, world.observed()) == []
