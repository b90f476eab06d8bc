"""Tasks come from records or are rebuilt from bodies; only recognising may know, and the story is the same."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from kit.engine_strategies import JOBS, LIVES, Move, happen, summary
from kit.engine_world import World
from shoal.engine import compact_state


@pytest.mark.parametrize("kind", ["training job", "volcano", "batch by index"])
@given(life=LIVES)
@settings(
    max_examples=25,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow],
)
def test_records_and_rebuilt_tasks_tell_one_story(kind: str, life: list[Move]):
    kept, rebuilt = World(JOBS[kind]()), World(JOBS[kind]())
    for move in life:
        for world in (kept, rebuilt):
            happen(world, move)
            world.settle()
        rebuilt.state = compact_state(rebuilt.state, rebuilt.job.policies.pod_policy.memory)
        rebuilt.settle()

    assert summary(rebuilt) == summary(kept)
