"""What picture.py makes of a metrics file, before anything is drawn."""

from __future__ import annotations

import json

import pytest
from picture import NothingToDraw, Step, groups, read, speeds, trainings, worlds


def step(time: float, world: int, number: int) -> Step:
    return Step(time=time, world=world, epoch=0, step=number, loss=1.0)


# Four workers make steps 0 to 2, two seconds each; two go on from step 2, four seconds each.
STORY = [step(10, 4, 0), step(12, 4, 1), step(14, 4, 2), step(24, 2, 2), step(28, 2, 3)]


def written(steps: list[Step]) -> list[str]:
    return [
        json.dumps({"time": s.time, "world": s.world, "epoch": s.epoch, "step": s.step, "loss": s.loss, "acc1": 0.0})
        for s in steps
    ]


def test_only_the_last_training_of_a_file_is_read() -> None:
    assert read(written([step(1, 4, 0), step(2, 4, 1), *STORY])) == STORY


def test_every_training_of_a_file_can_be_had() -> None:
    before = [step(1, 4, 0), step(2, 4, 1)]
    assert trainings(written([*before, *STORY])) == [before, STORY]


def test_nothing_written_is_nothing_to_draw() -> None:
    with pytest.raises(NothingToDraw):
        read([""])


def test_a_group_ends_where_the_size_changes_or_steps_repeat() -> None:
    again = [step(30, 2, 3), step(31, 2, 4)]
    assert groups([*STORY, *again]) == [STORY[:3], STORY[3:], again]


def test_speed_is_counted_within_groups_and_zero_between() -> None:
    assert speeds(STORY, every=5) == [(0.0, 0.5), (4.0, 0.0), (14.0, 0.25), (18.0, 0.0)]


def test_the_number_of_workers_changes_with_the_first_step_of_the_new_group() -> None:
    assert worlds(STORY) == [(0.0, 4), (14.0, 2), (18.0, 2)]
