"""In which order several workers take up the tests of a run: every one begins with its share of the long ones.

The scheduler (`--dist worksteal`) gives each worker the same number of tests, one row after the other, and who is done
takes from the end of another's row. A test of minutes that comes late in its row is begun when all else is over, and
one worker runs it while the others have nothing left to take. What is left for the end should be short, and neighbours
should stay together, so that a module's fixtures are made once: only the long ones are taken out of their place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import TypeVar

Test = TypeVar("Test")


def dealt(tests: Sequence[Test], hands: int, is_long: Callable[[Test], bool]) -> list[Test]:
    """The tests, so ordered that the row of each hand begins with its share of the long ones."""
    long = [test for test in tests if is_long(test)]
    others = (test for test in tests if not is_long(test))
    order: list[Test] = []
    for hand in range(hands):
        size = (len(tests) - len(order)) // (hands - hand)  # as the scheduler shares them out
        row = long[hand::hands]
        order += [*row, *islice(others, max(0, size - len(row)))]
    return [*order, *others]
