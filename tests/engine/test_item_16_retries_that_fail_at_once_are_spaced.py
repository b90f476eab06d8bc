"""After the third failure a task, or a whole run, is created again at most once a second. Counts do not change."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from kit.engine_jobs import fc_role, framework, t9
from kit.engine_world import T0, World, started

SECOND = timedelta(seconds=1)


def crash_loop(world: World, name: str, *, failures: int, code: int = 1) -> list[datetime]:
    """When each pod was created; every pod fails in the moment it is seen, and the clock moves to `wake_at` only."""
    created = []
    for _ in range(failures):
        while name not in world.pods:
            wake_at = world.settle().wake_at
            if name not in world.pods:
                assert wake_at is not None, "the next attempt is never created"
                assert wake_at > world.now
                world.now = wake_at
        created.append(world.now)
        world.exits(name, code)
        world.settle()
    return created


def spaced(failures: int) -> list[datetime]:
    return [T0, T0, *(T0 + SECOND * max(number - 2, 0) for number in range(2, failures))]


TASKS = {
    "charged": (framework(fc_role("a", 1, task=(False, -1))), 1),
    "free": (framework(fc_role("a", 1, task=(True, 0))), 200),
    "a service that ends well": (framework(fc_role("a", 1, task=(False, -2))), 0),
}


@pytest.mark.parametrize("case", TASKS)
def test_a_task_that_fails_at_once_is_created_once_a_second_after_its_third_failure(case: str) -> None:
    job, code = TASKS[case]
    world = started(job)
    assert crash_loop(world, "a-0", failures=17, code=code) == spaced(17)
    assert world.task("a", 0).attempt.number == 17


def test_a_run_that_fails_at_once_is_created_once_a_second_after_its_third_failure() -> None:
    world = started(framework(fc_role("a", 1), run=(False, -1)))
    assert crash_loop(world, "a-0", failures=17) == spaced(17)
    assert (world.state.run.number, world.state.charged) == (17, 17)


def test_a_state_that_stores_no_numbers_spaces_attempts_as_long_as_the_operator_runs() -> None:
    world = started(t9(1, minimum=1, backoff=None))
    assert crash_loop(world, "worker-0", failures=6, code=137) == spaced(6)


def test_a_language_may_ask_for_no_spacing() -> None:
    job = framework(fc_role("a", 1, task=(False, -1)))
    clock = replace(job.policies.clock, retry_spacing_seconds=0)
    world = started(replace(job, policies=replace(job.policies, clock=clock)))
    assert crash_loop(world, "a-0", failures=17) == [T0] * 17


def test_spacing_is_no_fresh_second_after_a_crash_of_the_operator() -> None:
    world = started(framework(fc_role("a", 1, task=(False, -1))))
    crash_loop(world, "a-0", failures=5)
    wake_at = world.settle().wake_at
    assert wake_at is not None
    world._crash(world.durable)
    assert world.settle().wake_at == wake_at
