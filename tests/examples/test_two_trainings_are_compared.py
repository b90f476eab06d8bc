"""What compare.py says of two trainings."""

from __future__ import annotations

from compare import apart, told
from picture import Step


def training(*steps: tuple[int, int, float]) -> list[Step]:
    """Of (workers, number, loss)."""
    return [Step(time=when, world=world, epoch=0, step=at, loss=loss) for when, (world, at, loss) in enumerate(steps)]


UNDISTURBED = training((4, 0, 4.0), (4, 1, 2.0), (4, 2, 1.0))


def test_of_a_step_made_twice_the_second_time_counts() -> None:
    assert apart(UNDISTURBED, training((4, 0, 4.0), (4, 1, 9.0), (2, 1, 2.0), (2, 2, 1.0))) == 0


def test_the_largest_difference_is_relative_to_the_loss() -> None:
    assert apart(UNDISTURBED, training((4, 0, 4.0), (2, 1, 2.5), (2, 2, 1.1))) == 0.25


def test_steps_missing_in_one_log_are_skipped() -> None:
    assert apart(UNDISTURBED, training((4, 0, 4.0), (2, 2, 1.0))) == 0


def test_a_training_in_a_line() -> None:
    resized = training((4, 0, 4.0), (4, 1, 9.0), (2, 1, 2.0), (2, 2, 1.0))
    assert told(resized) == "4 → 2 workers: 3 steps, final loss 1.0"
