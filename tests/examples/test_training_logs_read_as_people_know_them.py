"""The trainer's lines have the form of the PyTorch ImageNet example, which people and `shoal run` know how to read."""

from __future__ import annotations

import re

import pytest
from trainer.lines import Board

NUMBER = r"\d+\.\d+"
PROGRESS = re.compile(
    rf"^(?:Epoch: \[(?P<epoch>\d+)\]|Test: )\[\s*(?P<step>\d+)/(?P<steps>\d+)\]\tTime\s+{NUMBER} \(\s*{NUMBER}\)"
    rf"(?:\tData\s+{NUMBER} \(\s*{NUMBER}\))?\tLoss (?P<loss>{NUMBER}e[+-]\d\d) \({NUMBER}e[+-]\d\d\)"
    rf"\tAcc@1\s+(?P<top1>{NUMBER}) \(\s*{NUMBER}\)\tAcc@5\s+{NUMBER} \(\s*{NUMBER}\)$"
)
SUMMARY = re.compile(rf"^ \* Acc@1 (?P<top1>{NUMBER}) Acc@5 {NUMBER}$")

# As the example of 2020 wrote them.
KNOWN = {
    "first": "Epoch: [0][  0/782]\tTime  3.613 ( 3.613)\tData  0.079 ( 0.079)\tLoss 7.0412e+00 (7.0412e+00)"
    "\tAcc@1   0.00 (  0.00)\tAcc@5   0.00 (  0.00)",
    "later": "Epoch: [1][1450/1563]\tTime  0.563 ( 0.783)\tData  0.108 ( 0.177)\tLoss 4.0248e+00 (4.2794e+00)"
    "\tAcc@1  12.50 ( 10.54)\tAcc@5  37.50 ( 28.52)",
    "validation": "Test: [310/313]\tTime  0.281 ( 0.177)\tLoss 8.7371e+00 (8.1767e+00)"
    "\tAcc@1   0.00 (  1.14)\tAcc@5   6.25 (  3.86)",
}


@pytest.mark.parametrize("line", KNOWN.values(), ids=KNOWN)
def test_the_pattern_reads_the_lines_people_know(line: str) -> None:
    assert PROGRESS.match(line)


def board(*, with_data: bool) -> Board:
    made = Board(with_data=with_data)
    for seconds, loss, right in ((3.613, 7.0412, 0.0), (1.638, 5.764, 12.5)):
        made.time.update(seconds)
        made.data.update(seconds / 10)
        made.loss.update(loss, 128)
        made.top1.update(right, 128)
        made.top5.update(2 * right, 128)
    return made


def test_a_training_line() -> None:
    line = board(with_data=True).line("Epoch: [0]", 10, 782)
    assert line == (
        "Epoch: [0][ 10/782]\tTime  1.638 ( 2.625)\tData  0.164 ( 0.263)\tLoss 5.7640e+00 (6.4026e+00)"
        "\tAcc@1  12.50 (  6.25)\tAcc@5  25.00 ( 12.50)"
    )
    assert PROGRESS.match(line)


def test_a_validation_line_and_its_summary() -> None:
    made = board(with_data=False)
    assert PROGRESS.match(made.line("Test: ", 3, 40))
    assert made.summary() == " * Acc@1 6.250 Acc@5 12.500"
    assert SUMMARY.match(made.summary())


def test_means_weigh_by_samples() -> None:
    made = Board(with_data=False)
    made.loss.update(1.0, 128)
    made.loss.update(4.0, 64)
    assert (made.loss.value, made.loss.mean) == (4.0, 2.0)
