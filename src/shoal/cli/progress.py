"""What a person sees while jobs run: a compact table that stays in place on a terminal, plain lines elsewhere.

Steps and losses are read from the logs of the tasks, in the forms trainers usually print them. Progress bars stand
below the table while they move; on plain output a line of one is printed once a second at most.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from shoal.cli.follow import Sight, Voice
from shoal.cli.job_lookup import Found
from shoal.cli.job_table import STYLES, TaskView, job_word, span, tasks_of
from shoal.cli.reasons import why_at_rest, word_with
from shoal.cli.task_table import grouped_tasks, urgency
from shoal.kube.objects import uid_of
from shoal.log_signals import Pace, pace_in, plain

if TYPE_CHECKING:
    from rich.console import Console, Group
    from rich.live import Live
    from rich.table import Table
    from rich.text import Text

_UNSEEN = Sight("")
NOBODY = TaskView("-", "", -1, "waiting", 0, "", None, None)  # in the place of tasks, where a job has none
COLOURS = ("cyan", "magenta", "blue", "yellow", "green", "red")


@dataclass(slots=True)
class Board:
    """All followed jobs as they stand."""

    jobs: dict[str, Found] = field(default_factory=dict)  # by uid, as everything here
    paces: dict[tuple[str, str], Pace] = field(default_factory=dict)  # by job and task
    pods: dict[tuple[str, str], Sight] = field(default_factory=dict)  # the last pod of each task
    gangs: dict[str, str] = field(default_factory=dict)  # why the gang of a job is not let in
    ran: set[tuple[str, str]] = field(default_factory=set)  # jobs, '', and tasks known by numbers, once they ran

    def put(self, found: Found) -> None:
        self.jobs[uid_of(found.manifest)] = found

    def see(self, found: Found, task: str, pod: Sight) -> bool:
        """Whether it is news."""
        key = uid_of(found.manifest), task
        is_news = self.pods.get(key) != pod
        self.pods[key] = pod
        return is_news

    def hear(self, found: Found, task: str, line: str) -> None:
        key = uid_of(found.manifest), task
        before = self.paces.get(key, Pace())
        after = pace_in(line, before)
        if after != before:
            self.paces[key] = after

    def name(self, found: Found) -> str:
        """With its kind where several have that name."""
        return found.name if sum(job.name == found.name for job in self.jobs.values()) < 2 else str(found)

    def word(self, found: Found) -> str:
        """How a job stands, and why it does nothing if it does not."""
        why, word = self.why(found), self.standing(found)
        return f"{word}: {why}" if why else word

    def standing(self, found: Found) -> str:
        """One word for the whole job."""
        word = job_word(found.state)
        return word if found.dialect.display_name is None else self._onwards(uid_of(found.manifest), "", word)

    def why(self, found: Found) -> str:
        """Why a whole job does nothing: it rests, or its gang has no room."""
        starts = found.state.run.is_open and not found.state.is_ended and self.standing(found) != "running"
        gang = self.gangs.get(uid_of(found.manifest), "") if starts else ""
        return why_at_rest(found, found.state) or gang

    def rows(self) -> Iterator[tuple[Found, TaskView, Pace, str]]:
        """The job, the task, how far it is, and why it waits if it does."""
        for uid, found in self.jobs.items():
            views = tasks_of(found.state)
            if not views and (why := self.why(found)):
                yield found, NOBODY, Pace(), why
            for view in views:
                pod = self.pods.get((uid, view.name), _UNSEEN)
                pod = pod if view.pod_uid in (None, pod.pod_uid) else _UNSEEN
                word = self._onwards(uid, view.name, view.word) if found.dialect.display_name is not None else view.word
                shown = replace(view, word=word_with(word, pod.why), node=view.node or pod.node)
                yield found, shown, self.paces.get((uid, view.name), Pace()), pod.why * (shown.word == "waiting")

    def _onwards(self, uid: str, task: str, word: str) -> str:
        """The word where only numbers are known: how many pods are there, how many are ready. A pod that is about to
        end is no longer ready, and is not being prepared again either."""
        if word == "running":
            self.ran.add((uid, task))
        elif word not in ("pending", "preparing", "created"):
            self.ran.discard((uid, task))
        return "running" if (uid, task) in self.ran else word


class Pacer:
    """Which states of progress bars become lines where nothing can be overwritten: one a second of each bar."""

    SECONDS = 1.0

    def __init__(self) -> None:
        self._printed: dict[str, tuple[float, str]] = {}

    def is_due(self, who: str, text: str, now: float) -> bool:
        printed = self._printed.get(who)
        if printed is not None and now - printed[0] < self.SECONDS:
            return False
        self._printed[who] = now, text
        return True

    def is_news(self, who: str, line: str) -> bool:
        """Whether the whole line says more than its last state that was printed; the next bar begins at once."""
        return self._printed.pop(who, (0.0, None))[1] != line


class Lines:
    """Plain output: a line per change on the console, a line per log line on the output."""

    def __init__(self, console: Console, output: Console | None = None, *, logs: bool) -> None:
        self._console = console
        self._output = output or console
        self._logs = logs
        self._reasons: set[tuple[str, str]] = set()  # printed, by job
        self._words: dict[tuple[str, str], str] = {}
        self._board = Board()
        self._widest = 0
        self._pacer = Pacer()

    @contextmanager
    def shown(self) -> Iterator[None]:
        yield

    def change(self, found: Found) -> None:
        self._board.put(found)
        self._say(found, "", self._board.word(found))
        self._say_tasks()

    def pod(self, found: Found, task: str, pod: Sight) -> None:
        if self._board.see(found, task, pod):
            self._say_tasks()

    def gang(self, found: Found, why: str) -> None:
        self._board.gangs[uid_of(found.manifest)] = why
        if uid_of(found.manifest) in self._board.jobs:
            self._say(found, "", self._board.word(found))

    def hindrance(self, found: Found, why: str) -> None:
        self._print(f"{datetime.now(UTC).astimezone():%H:%M:%S} {self._board.name(found)}: {why}")

    def _say_tasks(self) -> None:
        rows = list(self._board.rows())
        for job, view, _, why in rows:
            if view is NOBODY:
                continue  # said of the job
            if why:
                self._say_reason(job, why, rows)
                self._words[uid_of(job.manifest), view.name] = f"{view.word}: {why}"
                continue
            code = f" (code {view.code})" if view.word == "failed" else ""
            again = f", attempt {view.retries}" if view.retries and view.word in ("waiting", "running") else ""
            self._say(job, view.name, f"{view.word}{code}{again}")

    def _say_reason(self, job: Found, why: str, rows: list[tuple[Found, TaskView, Pace, str]]) -> None:
        """Once for all tasks of a job that wait for the same."""
        key = uid_of(job.manifest), why
        if key not in self._reasons:
            self._reasons.add(key)
            tasks = [view.name for other, view, _, its in rows if other is job and its == why]
            who = f"{self._board.name(job)} {', '.join(name for name, _ in grouped_tasks(tasks))}"
            self._print(f"{datetime.now(UTC).astimezone():%H:%M:%S} {who}: waiting: {why}")

    def _say(self, job: Found, task: str, word: str) -> None:
        key = uid_of(job.manifest), task
        if self._words.get(key) != word:
            self._words[key] = word
            who = f"{self._board.name(job)} {task}".rstrip()
            self._print(f"{datetime.now(UTC).astimezone():%H:%M:%S} {who}: {word}")

    def line(self, found: Found, voice: Voice, line: str) -> None:  # noqa: ARG002 - the same face as Screen
        self._widest = max(self._widest, len(voice.head))
        if self._pacer.is_news(voice.head, line) and self._logs:
            self._print(f"{voice.head.ljust(self._widest)} | {line}", self._output)

    def progress(self, found: Found, voice: Voice, text: str) -> None:  # noqa: ARG002 - the same face as Screen
        self._widest = max(self._widest, len(voice.head))
        if self._logs and self._pacer.is_due(voice.head, text, time.monotonic()):
            self._print(f"{voice.head.ljust(self._widest)} | {plain(text)}", self._output)

    def trouble(self, task: str, why: str) -> None:
        if self._logs:
            self._print(f"{task.ljust(self._widest)} | ({why})")

    def note(self, sentence: str) -> None:
        self._print(sentence)

    def _print(self, text: str, console: Console | None = None) -> None:
        (console or self._console).print(text, markup=False, highlight=False, soft_wrap=True)


class Screen:
    """A terminal: log lines scroll above a table that stays, or go to an output that is no terminal."""

    def __init__(self, console: Console, output: Console | None = None, *, logs: bool) -> None:
        self._console = console
        self._output = console if output is None or output.is_terminal else output
        self._logs = logs
        self._board = Board()
        self._colours: dict[str, str] = {}
        self._bars: dict[str, str] = {}  # progress bars that move, by what stands before their lines
        self._live: Live | None = None
        self._began = datetime.now(UTC)

    @contextmanager
    def shown(self) -> Iterator[None]:
        from rich.live import Live

        with Live(get_renderable=self._rendered, console=self._console, refresh_per_second=6) as live:
            self._live = live
            yield
            live.refresh()

    def change(self, found: Found) -> None:
        self._board.put(found)

    def line(self, found: Found, voice: Voice, line: str) -> None:
        from rich.text import Text

        self._board.hear(found, voice.task, line)
        self._bars.pop(voice.head, None)
        if self._logs:
            role = voice.task.rpartition("-")[0]
            colour = self._colours.setdefault(role, COLOURS[len(self._colours) % len(COLOURS)])
            self._output.print(Text.assemble((f"{voice.head} | ", colour), line), soft_wrap=True)

    def progress(self, found: Found, voice: Voice, text: str) -> None:
        self._board.hear(found, voice.task, text)
        if self._logs:
            self._bars[voice.head] = plain(text)

    def pod(self, found: Found, task: str, pod: Sight) -> None:
        self._board.see(found, task, pod)

    def gang(self, found: Found, why: str) -> None:
        self._board.gangs[uid_of(found.manifest)] = why

    def hindrance(self, found: Found, why: str) -> None:
        self.note(f"{self._board.name(found)}: {why}")

    def trouble(self, task: str, why: str) -> None:
        from rich.text import Text

        if self._logs:
            self._console.print(Text(f"{task} | ({why})"), soft_wrap=True)

    def note(self, sentence: str) -> None:
        from rich.text import Text

        self._console.print(Text(sentence))

    def _rendered(self) -> Group:
        from rich.console import Group
        from rich.text import Text

        room = max(self._console.size.height // 3, 1)
        bars = [Text(f"{who} | {bar}", no_wrap=True, overflow="crop") for who, bar in self._bars.items()]
        return Group(self._table(beside=min(len(bars), room)), *bars[:room])

    def _table(self, beside: int) -> Table:
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, header_style="dim", title_justify="left", title_style="bold")
        names = ", ".join(f"{self._board.name(job)} {self._board.standing(job)}" for job in self._board.jobs.values())
        passed = span((datetime.now(UTC) - self._began).total_seconds())
        table.title = Text(f"{names or 'submitting'}  {passed}")
        rows = list(self.rows())
        several, some_wait = len(self._board.jobs) > 1, any(why for *_, why in rows)
        for head in (*(("job",) if several else ()), "task", "state", "retries", "step", "loss", "node"):
            table.add_column(head, no_wrap=True)
        if some_wait:
            table.add_column("why", overflow="fold")
        room = max(self._console.size.height - 4 - beside, 6)
        for job, view, pace, why in rows[:room]:
            cells = [Text(view.name), _state_cell(view), *map(Text, (str(view.retries or ""), pace.step, pace.loss))]
            table.add_row(
                *([Text(self._board.name(job))] if several else []), *cells, Text(view.node), *([Text(why)] * some_wait)
            )
        if len(rows) > room:
            table.add_row(f"... and {len(rows) - room} more")
        return table

    def rows(self) -> Iterator[tuple[Found, TaskView, Pace, str]]:
        """Failed tasks, waiting ones, then the others; tasks that wait for the same are one row."""
        grouped: dict[object, list[tuple[Found, TaskView, Pace, str]]] = {}
        for number, row in enumerate(self._reasoned()):
            job, view, _, why = row
            key = (uid_of(job.manifest), view.role, why) if why and view is not NOBODY else number
            grouped.setdefault(key, []).append(row)
        rows = [(several[0], [view.name for _, view, _, _ in several]) for several in grouped.values()]
        for (job, view, pace, why), names in sorted(rows, key=lambda row: urgency(row[0][1].word)):
            together = ", ".join(name for name, _ in grouped_tasks(names)) if len(names) > 1 else view.name
            yield job, replace(view, name=together), pace, why

    def _reasoned(self) -> Iterator[tuple[Found, TaskView, Pace, str]]:
        """Why a whole job waits stands beside the first of its tasks that do."""
        said: set[str] = set()
        for job, view, pace, why in self._board.rows():
            uid = uid_of(job.manifest)
            if view.word == "waiting" and not why and uid not in said:
                why = self._board.why(job)
            said |= {uid} if why else set()
            yield job, view, pace, why


def _state_cell(view: TaskView) -> Text:
    """Text and no markup: what is printed above the table may turn markup off, for the table too."""
    from rich.text import Text

    word = view.word if view.word != "failed" else f"failed ({view.code})"
    return Text(word, STYLES.get(view.word, "default"))


def face(console: Console, output: Console, *, plain: bool, logs: bool) -> Lines | Screen:
    """A screen where there is one and nobody asked for plain lines."""
    made = Lines if plain or not console.is_terminal else Screen
    return made(console, output, logs=logs)
