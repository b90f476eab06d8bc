"""What the table shows of a task's progress."""

from __future__ import annotations

import pytest

from shoal.cli.progress import Pace, pace_in

LINES = [
    ("Epoch: [0][ 10/782]\tTime  0.5 ( 0.6)\tLoss 5.3e+00 (5.4)\tAcc@1 1.00", Pace("0:10/782", "5.3e+00")),
    ("step: 17 loss: 0.25", Pace("17", "0.25")),
    ("{'loss': 0.125, 'step': 3}", Pace("3", "0.125")),
    ("global_step=400 train_loss=nan", Pace("400", "nan")),
    ("Step 12/100, Loss: 1.5", Pace("12", "1.5")),
    ("nothing to see", Pace("old", "older")),
    ("stepped over a lossy compression", Pace("old", "older")),
]


@pytest.mark.parametrize(("line", "expected"), LINES, ids=[line[:20] for line, _ in LINES])
def test_usual_forms_are_understood(line: str, expected: Pace) -> None:
    assert pace_in(line, Pace("old", "older")) == expected
