r"""Step, loss and step time as trainers print them: read from log lines, and from progress bars while they move.

Pure. Understood are the ImageNet example's `Epoch: [0][ 10/782]  Time 0.5 ( 0.6)  Loss 5.3e+00`, `epoch: 0,
iteration: 1`, nanoGPT's `iter 10: loss 4.28, time 123.45ms`, tqdm's bars, also those of Lightning and of Hugging Face's
Trainer with its `{'loss': 0.69, ...}`, and `step: 17 loss: 0.25` in its usual spellings. Of several values in one line
the last one counts.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, replace

MAX_CHARACTERS = 4096  # of a line that are searched, from its end: bounds the time spent on any line

# No expression may take more than linear time, since any program can print any line: repetitions that
# can match the same text in several ways are bounded, and a run of characters is entered at its first one alone.
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|nan|-?inf"
_EPOCH = re.compile(r"\bEpoch:? *\[(\d+)\]\[ *(\d+)/ *(\d+)\]")
_ITERATION = re.compile(r"\bepoch: *(\d+), *iteration: *(\d+)", re.IGNORECASE)
_STEP = re.compile(r"\b(?:global[_ ]?)?(?:step|iter)\b[\"' ]{0,8}[:=# ]\s{0,16}[\"']?(\d+)", re.IGNORECASE)
_BAR = re.compile(r"(?:\bEpoch (\d+)(?:/\d+)?:? *)?(?:(?<!\d)\d{1,3}%\|[^|]*\||(?<![━╸╺])[━╸╺]{2,}) *(\d+)/(\d+)\b")
_LOSS = re.compile(
    r"(?<!val )(?<!valid )(?<!validation )(?<!eval )(?<!test )\b(?:train(?:ing)?[_ ])?loss(?:_step)?\b"
    rf"[\"' ]{{0,8}}[:= ]\s{{0,16}}[\"']?({_NUMBER})",
    re.IGNORECASE,
)
_RATE = re.compile(r"(?<![\d.])(\d+(?:\.\d*)?) ?(?:it|step|steps|batch|batches)/s\b")
_SECONDS = re.compile(r"(?<![\d.])(\d+(?:\.\d*)?) ?s/(?:it|step|batch)\b")
_TIME = re.compile(r"\bTime:? +(\d+(?:\.\d*)?) ?(ms\b|s\b|\()", re.IGNORECASE)
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")  # moves of the cursor and colours


@dataclass(frozen=True, slots=True)
class TrainingProgress:
    """How far a task is, according to its log."""

    step: str = ""
    loss: str = ""
    step_seconds: float | None = None


def progress_in(line: str, before: TrainingProgress) -> TrainingProgress:
    """Step, loss and step time after a log line; values it does not contain stay."""
    text = _CONTROL.sub("", line[-MAX_CHARACTERS:])
    step, loss, seconds = _step(text), _last(_LOSS, text), _step_seconds(text)
    if step:
        before = replace(before, step=step)
    if loss is not None:
        before = replace(before, loss=loss[1])
    return before if seconds is None else replace(before, step_seconds=seconds)


def visible(line: str) -> str:
    """What a terminal shows in the end of a line in which carriage returns overwrote earlier text."""
    if "\r" not in line:
        return line
    return next((text for text in reversed(line.split("\r")) if _CONTROL.sub("", text).strip()), "")


def plain(text: str) -> str:
    """Without colours and moves of the cursor."""
    return _CONTROL.sub("", text)


def _step(text: str) -> str:
    if (epoch := _last(_EPOCH, text)) is not None:
        return f"{epoch[1]}:{epoch[2]}/{epoch[3]}"
    if (bar := _last(_BAR, text)) is not None:
        return f"{bar[1]}:{bar[2]}/{bar[3]}" if bar[1] else f"{bar[2]}/{bar[3]}"
    if (iteration := _last(_ITERATION, text)) is not None:
        return f"{iteration[1]}:{iteration[2]}"
    step = _last(_STEP, text)
    return step[1] if step is not None else ""


def _step_seconds(text: str) -> float | None:
    if (rate := _last(_RATE, text)) is not None and float(rate[1]):
        return round(1 / float(rate[1]), 6)
    if (seconds := _last(_SECONDS, text)) is not None:
        return float(seconds[1])
    if (time := _last(_TIME, text)) is not None:
        return float(time[1]) / (1000 if time[2].lower() == "ms" else 1)
    return None


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    return next(iter(deque(pattern.finditer(text), maxlen=1)), None)
