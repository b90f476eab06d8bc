"""The same words about several tasks as one line: what befalls a gang befalls all of its members, a moment apart.

Only sentences whose plural is known are put together, and only within a minute: what happens later is another story.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from shoal.engine.state import named

Moment = tuple[datetime, str]

_TOGETHER = timedelta(minutes=1)
_MOST_FAILURES = 3  # of one task, each with its own lines
_FAILURE = re.compile(r"(?P<task>\S+-\d+) failed in attempt (?P<attempt>\d+): (?P<why>.+)", re.DOTALL)
_RETRY = re.compile(r"(?P<task>\S+-\d+) is tried again as attempt \d+.*", re.DOTALL)
_RUN_FAILURE = re.compile(r"Run (?P<attempt>\d+) of (?P<job>\S+) failed: (?P<why>.+)", re.DOTALL)
_RUN_OPENED = re.compile(r"Run (?P<attempt>\d+) of (?P<job>\S+) is open\.")
_ABOUT_A_TASK = re.compile(r"(?P<role>\S+)-(?P<index>\d+) (?P<words>.+)", re.DOTALL)
_OF_SEVERAL = {
    "was evicted": "were evicted",
    "was lost": "were lost",
    "failed in": "failed in",
    "is tried again": "are tried again",
    "is not tried again": "are not tried again",
}


@dataclass(slots=True)
class _Line:
    first: datetime
    sentence: str
    role: str = ""
    words: str = ""
    indexes: tuple[int, ...] = ()

    def takes(self, moment: datetime, index: int) -> bool:
        return moment - self.first <= _TOGETHER and index not in self.indexes

    def __str__(self) -> str:
        if len(self.indexes) < 2:
            return self.sentence
        said = next(beginning for beginning in _OF_SEVERAL if self.words.startswith(beginning))
        rest = self.words.removeprefix(said).replace(" charged)", " charged each)")
        return f"{named(self.role, sorted(self.indexes))} {_OF_SEVERAL[said]}{rest}"


def without_repeats(moments: Iterable[Moment]) -> list[Moment]:
    """A task, or a whole job, that failed again and again as one line, in the place of the last failure."""
    return _without_repeated_runs(_without_repeated_tasks(sorted(moments, key=lambda each: each[0])))


def _without_repeated_tasks(ordered: list[Moment]) -> list[Moment]:
    failures: dict[str, list[tuple[datetime, int, str]]] = {}
    for moment, sentence in ordered:
        if found := _FAILURE.fullmatch(sentence):
            failures.setdefault(found["task"], []).append((moment, int(found["attempt"]), found["why"]))
    kept: list[Moment] = []
    for moment, sentence in ordered:
        found = _FAILURE.fullmatch(sentence) or _RETRY.fullmatch(sentence)
        known = failures.get(found["task"], []) if found else []
        if found is None or len(known) <= _MOST_FAILURES:
            kept.append((moment, sentence))
            continue
        (first, lowest, _), (last, highest, why) = known[0], known[-1]
        if found.re is _FAILURE and (moment, int(found["attempt"])) == (last, highest):
            times = f"{highest - lowest + 1} times since {first.astimezone():%H:%M:%S}"
            kept.append((moment, f"{found['task']} failed {times}, the last time: {why}"))
    return kept


def _without_repeated_runs(ordered: list[Moment]) -> list[Moment]:
    """Runs of a whole job. Of a language that emits no Event for the failure of a run, the last start is left."""
    failed: dict[str, list[tuple[datetime, int]]] = {}
    opened: dict[str, list[tuple[datetime, int]]] = {}
    for moment, sentence in ordered:
        for pattern, runs in ((_RUN_FAILURE, failed), (_RUN_OPENED, opened)):
            if found := pattern.fullmatch(sentence):
                runs.setdefault(found["job"], []).append((moment, int(found["attempt"])))
    kept: list[Moment] = []
    for moment, sentence in ordered:
        found = _RUN_FAILURE.fullmatch(sentence) or _RUN_OPENED.fullmatch(sentence)
        job = found["job"] if found else ""
        is_folded = len(failed.get(job, ())) > _MOST_FAILURES
        known = (failed if is_folded else opened).get(job, [])
        if found is None or len(known) <= _MOST_FAILURES or (found.re is _RUN_FAILURE and not is_folded):
            kept.append((moment, sentence))
            continue
        (first, lowest), last = known[0], known[-1]
        if found.re is not (_RUN_FAILURE if is_folded else _RUN_OPENED) or (moment, int(found["attempt"])) != last:
            continue
        since = f"since {first.astimezone():%H:%M:%S}"
        if is_folded:
            times = f"{last[1] - lowest + 1} times {since}"
            kept.append((moment, f"{job} failed as a whole {times}, the last time: {found['why']}"))
        else:
            kept.append((moment, f"Run {last[1]} of {job} is open, the last of {last[1] - lowest + 1} {since}."))
    return kept


def folded(moments: Iterable[Moment]) -> list[Moment]:
    """In the order of time; each line stands where the first of its tasks was told of."""
    lines: list[_Line] = []
    latest: dict[tuple[str, str], _Line] = {}
    for moment, sentence in without_repeats(moments):
        found = _ABOUT_A_TASK.fullmatch(sentence)
        if found is None or not found["words"].startswith(tuple(_OF_SEVERAL)):
            lines.append(_Line(moment, sentence))
            continue
        about, index = (found["role"], found["words"]), int(found["index"])
        line = latest.get(about)
        if line is not None and line.takes(moment, index):
            line.indexes += (index,)
            continue
        latest[about] = _Line(moment, sentence, *about, (index,))
        lines.append(latest[about])
    return [(line.first, str(line)) for line in lines]
