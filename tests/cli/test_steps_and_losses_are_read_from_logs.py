"""What the table shows of a task's progress."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from shoal.training_progress import TrainingProgress, progress_in, visible

BEFORE = TrainingProgress("old", "older", 9.0)
LINES = [
    (
        "Epoch: [0][ 10/782]\tTime  0.5 ( 0.6)\tLoss 5.3e+00 (5.4)\tAcc@1 1.00",
        TrainingProgress("0:10/782", "5.3e+00", 0.5),
    ),
    ("[2018-08] main: epoch: 0, iteration: 1, data_idx: 96", TrainingProgress("0:1", "older", 9.0)),
    ("step: 17 loss: 0.25", TrainingProgress("17", "0.25", 9.0)),
    ("{'loss': 0.125, 'step': 3}", TrainingProgress("3", "0.125", 9.0)),
    ("global_step=400 train_loss=nan", TrainingProgress("400", "nan", 9.0)),
    ("Step 12/100, Loss: 1.5", TrainingProgress("12", "1.5", 9.0)),
    ("iter 250: loss 2.4873, time 1534.29ms, mfu 12.10%", TrainingProgress("250", "2.4873", 1.53429)),
    ("step 500: train loss 1.9012, val loss 2.0341", TrainingProgress("500", "1.9012", 9.0)),
    (" 45%|████▌     | 45/100 [00:04<00:05, 10.00it/s, loss=0.31]", TrainingProgress("45/100", "0.31", 0.1)),
    ("  2%|▏ | 2/100 [00:05<04:00,  2.50s/it]", TrainingProgress("2/100", "older", 2.5)),
    (
        "Epoch 3:  10%|█  | 94/938 [00:01<00:08, 50.00it/s, v_num=0, train_loss_step=0.123, val_loss=0.9]",
        TrainingProgress("3:94/938", "0.123", 0.02),
    ),
    (
        "Epoch 0/9 ━━━━━╸━━━ 94/938 0:00:01 • 0:00:08 50.00it/s v_num: 0 train_loss: 0.5",
        TrainingProgress("0:94/938", "0.5", 0.02),
    ),
    (
        "{'loss': 0.6932, 'grad_norm': 1.25, 'learning_rate': 4.5e-05, 'epoch': 0.32}",
        TrainingProgress("old", "0.6932", 9.0),
    ),
    ("{'loss': '0.6932', 'epoch': '0.32'}", TrainingProgress("old", "0.6932", 9.0)),
    ("{'eval_loss': 0.5, 'eval_runtime': 3.1}", BEFORE),
    ("step 1 loss 3.0 step 2 loss 2.0 step 3 loss 1.0", TrainingProgress("3", "1.0", 9.0)),
    ("nothing to see", BEFORE),
    ("stepped over a lossy compression", BEFORE),
    ("it took a Time of 3 years", BEFORE),
]


@pytest.mark.parametrize(("line", "expected"), LINES, ids=[line[:20] for line, _ in LINES])
def test_usual_forms_are_understood(line: str, expected: TrainingProgress) -> None:
    assert progress_in(line, BEFORE) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("\r 1/3\r 2/3\r 3/3", " 3/3", id="returns before each state"),
        pytest.param(" 1/3\r 2/3\r", " 2/3", id="returns after each state"),
        pytest.param("\r 3/3\r     \rdone", "done", id="a bar that was cleared"),
        pytest.param("\r 3/3\r\x1b[K", " 3/3", id="a bar that was cleared with a sequence"),
        pytest.param("no bar", "no bar", id="no bar"),
    ],
)
def test_the_last_state_of_a_progress_bar_counts(line: str, expected: str) -> None:
    assert visible(line) == expected


@pytest.mark.parametrize("text", ["1", " ", "loss ", "1%|", "━", "\x1b[m", "Epoch: [1][ "])
def test_the_time_for_a_line_does_not_depend_on_its_length(text: str) -> None:
    """Only its end is searched, so that a megabyte costs what four kilobytes cost."""
    assert progress_in(text * 1_000_000 + " loss 1.0", TrainingProgress()).loss == "1.0"


@pytest.mark.parametrize(
    "text", ["loss" + " " * 4000 + "x", "step" + " " * 4000 + "x", "━" * 4096], ids=lambda text: text[:4]
)
def test_no_line_takes_long(text: str) -> None:
    """A pod prints what it likes, and its node reads thousands of such lines. The limit is of processor time."""
    program = (
        "import sys\n"
        "from shoal.training_progress import TrainingProgress, progress_in\n"
        "for _ in range(1000): progress_in(sys.argv[1], TrainingProgress())"
    )

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (60, 60))

    assert subprocess.run([sys.executable, "-c", program, text], preexec_fn=limit).returncode == 0
