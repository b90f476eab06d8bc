"""Crash equivalence: whatever prefix of a pass was carried out, the job ends up as if nobody had died."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from kit.engine_strategies import JOBS, LIVES, Move, happen, summary
from kit.engine_world import LOST_LEDGER, World


def lived(kind: str, life: list[Move], crashes: dict[int, int], *, lazy: bool = False) -> dict[str, Any]:
    """The life of a job that comes to rest after each move, with passes that die at the given moves."""
    world = World(JOBS[kind]())
    world.lazy = lazy
    world.step(crash_after=crashes.get(-1))
    world.settle()
    for number, move in enumerate(life):
        happen(world, move)
        world.step(crash_after=crashes.get(number))
        world.settle()
    return summary(world)


def as_bodies_show(summary: dict[str, Any]) -> dict[str, Any]:
    """Without the one thing a ledger may forget: that its run was ready before anybody stored it, and is no more.

    No decision rests on it, and where a body still runs the next look finds it again.
    """
    number, stage, intent = summary["run"]
    runs = any(phase == "RUNNING" for *_, phase in summary["pods"])
    return {**summary, "run": (number, "PREPARING" if stage == "RUNNING" and not runs else stage, intent)}


CRASHES = st.dictionaries(st.integers(-1, 11), st.integers(LOST_LEDGER, 8), min_size=1, max_size=4)


@pytest.mark.parametrize("kind", JOBS)
@given(life=LIVES, crashes=CRASHES)
@settings(
    max_examples=25,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow],
)
def test_a_crash_changes_nothing_in_the_end(kind: str, life: list[Move], crashes: dict[int, int]):
    assert lived(kind, life, crashes) == lived(kind, life, {})


@pytest.mark.parametrize("kind", JOBS)
@given(life=LIVES, crashes=CRASHES)
@example(life=[Move("run", 7, 2), Move("exit", 3, 4)], crashes={1: LOST_LEDGER})
@settings(
    max_examples=15,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow],
)
def test_a_ledger_that_need_not_be_stored_is_not_missed(kind: str, life: list[Move], crashes: dict[int, int]):
    assert as_bodies_show(lived(kind, life, crashes, lazy=True)) == as_bodies_show(lived(kind, life, {}))
