"""Completion: counts per role, the lead, thresholds; who triggered it, and who is cut off."""

from __future__ import annotations

import pytest

from kit.engine_jobs import fc_role, framework, t9, volcano
from kit.engine_world import World, started
from shoal.engine import Outcome, Stage, Trigger

Exits = list[tuple[str, int]]


def ended(world: World, exits: Exits) -> Outcome | None:
    """The outcome after these exits, two seconds apart."""
    for name, code in exits:
        world.tick(2)
        world.exits(name, code)
        world.settle()
    return world.state.run.outcome if world.state.is_ended else None


FAILED_2 = "FailedTaskCount 2 has reached MinFailedTaskCount 2 in the TaskRole"
FAILED_3 = FAILED_2.replace("Count 2 has", "Count 3 has")
OK_1 = "SucceededTaskCount 1 has reached MinSucceededTaskCount 1 in the TaskRole"
ALL_2 = "CompletedTaskCount 2 has reached TotalTaskCount 2"

FRAMEWORKS = {
    "threshold of failures": ({"a": 4}, {"a": (2, -1)}, [("a-1", 1), ("a-3", 1)], (1, Trigger("a", 3, FAILED_2))),
    "below the threshold": ({"a": 4}, {"a": (2, -1)}, [("a-1", 1)], None),
    "threshold of successes": ({"a": 2}, {"a": (-1, 1)}, [("a-0", 1), ("a-1", 0)], (0, Trigger("a", 1, OK_1))),
    "all done, rules off": ({"a": 2}, {"a": (-1, -1)}, [("a-1", 1), ("a-0", 1)], (0, Trigger("a", 0, ALL_2))),
    "a master decides": (
        {"m": 1, "w": 2},
        {"m": (1, 1), "w": (-1, -1)},
        [("w-0", 1), ("m-0", 0)],
        (0, Trigger("m", 0, OK_1)),
    ),
    "nobody counts across roles": ({"a": 2, "b": 2}, {"a": (2, -1), "b": (2, -1)}, [("a-0", 1), ("b-0", 1)], None),
}


@pytest.mark.parametrize("case", FRAMEWORKS)
def test_a_framework_ends_by_its_rules(case: str):
    sizes, rules, exits, expected = FRAMEWORKS[case]
    world = started(framework(*(fc_role(name, size) for name, size in sizes.items()), rules=rules))
    outcome = ended(world, exits)

    assert (None if outcome is None else (outcome.code, outcome.trigger)) == expected


SAME_SECOND = {
    "the later one decides, whatever its index": ({"a": (2, -1)}, ["a-3", "a-1"], Trigger("a", 1, FAILED_2)),
    "of two seen together the second in order": ({"a": (2, -1)}, ["a-3 a-1"], Trigger("a", 3, FAILED_2)),
    "the one that made it enough": ({"a": (2, -1)}, ["a-2", "a-0 a-3"], Trigger("a", 0, FAILED_3)),
    "the last one of all": ({}, ["a-3 a-2", "a-0", "a-1"], Trigger("a", 1, ALL_2.replace("2", "4"))),
}


@pytest.mark.parametrize("case", SAME_SECOND)
def test_within_one_second_the_task_that_was_done_last_is_the_trigger(case: str):
    rules, moments, trigger = SAME_SECOND[case]
    world = started(framework(fc_role("a", 4), rules=rules))
    for names in moments:
        for name in names.split():
            world.exits(name, 1)
        world.settle()

    assert world.state.run.outcome.trigger == trigger


def test_a_rule_that_an_edit_satisfies_takes_the_order_of_time_then_of_index():
    world = started(framework(fc_role("a", 4), rules={}))
    for name in ("a-3", "a-1"):
        world.exits(name, 1)
        world.settle()
    world.job = framework(fc_role("a", 4), rules={"a": (2, -1)})
    world.settle()

    assert world.state.run.outcome.trigger == Trigger("a", 3, FAILED_2)


def test_tasks_that_did_nothing_wrong_are_cut_off():
    world = started(framework(fc_role("a", 3), rules={"a": (1, -1)}))
    ended(world, [("a-1", 7)])

    assert world.story() == {"a-0": "done 0 -220", "a-1": "done 0 7", "a-2": "done 0 -220"}


@pytest.mark.parametrize(
    ("exits", "code"),
    [
        ([("a-0", 3), ("b-0", 1), ("b-1", 2), ("a-1", 4)], 2),
        ([("b-0", 1), ("a-0", 3), ("a-1", 4), ("b-1", 2)], 4),
    ],
    ids=["the second role was earlier", "the first role was earlier"],
)
def test_of_two_rules_satisfied_at_once_the_earlier_trigger_wins(exits: Exits, code: int):
    roles = (fc_role("a", 2), fc_role("b", 2), fc_role("c", 1))
    world = started(framework(*roles, rules={}))
    assert ended(world, exits) is None
    world.job = framework(*roles, rules={"a": (2, -1), "b": (2, -1)})
    world.settle()

    assert world.state.run.outcome.code == code


def test_only_the_lead_decides_about_a_training_job():
    world = started(t9(3))
    assert ended(world, [("worker-1", 1), ("worker-2", 0)]) is None
    outcome = ended(world, [("worker-0", 0)])

    assert outcome is not None
    assert outcome.is_ok


def test_a_lead_that_fails_for_good_fails_the_job_at_once():
    world = started(t9(3))
    world.exits("worker-0", 1)
    step = world.step()

    assert (world.state.run.stage, world.state.run.outcome.is_ok) == (Stage.DONE, False)
    assert {str(write.target) for write in step.writes} == {"worker-1", "worker-2"}


@pytest.mark.parametrize(
    ("minimum", "codes", "ok"),
    [(2, (0, 0), True), (1, (0, 1), True), (2, (0, 1), False)],
    ids=["all ok", "enough ok", "too few ok"],
)
def test_a_volcano_job_without_reactions_ends_when_all_are_done(minimum: int, codes: tuple[int, int], ok: bool):
    job = volcano(minimum=minimum, reactions=())
    job = type(job)(job.uid, job.name, (job.roles[0],), job.policies, minimum=minimum)
    world = started(job)
    outcome = ended(world, [(f"pserver-{index}", code) for index, code in enumerate(codes)])

    assert outcome is not None
    assert outcome.is_ok is ok
