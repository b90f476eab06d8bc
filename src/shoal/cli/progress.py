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

from shoal.cli.follow import LogSource, PodView
from shoal.cli.job_lookup import FoundJob
from shoal.cli.job_table import STYLES, TaskView, format_duration, job_status, tasks_of
from shoal.cli.reasons import status_with_reason, why_idle
from shoal.cli.task_table import group_tasks, status_rank
from shoal.kube.objects import uid_of
from shoal.training_progress import TrainingProgress, plain, progress_in

if TYPE_CHECKING:
    from rich.console import Console, Group
    from rich.live import Live
    from rich.table import Table

_UNKNOWN_POD = PodView("")
NO_TASKS = TaskView("-", "", -1, "waiting", 0, "", None, None)  # in the place of tasks, where a job has none
COLOURS = ("cyan", "magenta", "blue", "yellow", "green", "red")


@dataclass(slots=True)
class Board:
    """All followed jobs as they stand."""

    jobs: dict[str, FoundJob] = field(default_factory=dict)  # by uid, as everything here
    paces: dict[tuple[str, str], TrainingProgress] = field(default_factory=dict)  # by job and task
    pods: dict[tuple[str, str], PodView] = field(default_factory=dict)  # the last pod of each task
    gangs: dict[str, str] = field(default_factory=dict)  # why the gang of a job is not let in
    ran: set[tuple[str, str]] = field(default_factory=set)  # jobs, '', and tasks known by numbers, once they ran

    def update_job(self, found: FoundJob) -> None:
        self.jobs[uid_of(found.manifest)] = found

    def update_pod(self, found: FoundJob, task: str, pod: PodView) -> bool:
        """Whether it is news."""
        key = uid_of(found.manifest), task
        is_new = self.pods.get(key) != pod
        self.pods[key] = pod
        return is_new

    def update_pace(self, found: FoundJob, task: str, line: str) -> None:
        key = uid_of(found.manifest), task
        before = self.paces.get(key, TrainingProgress())
        after = progress_in(line, before)
        if after != before:
            self.paces[key] = after

    def name(self, found: FoundJob) -> str:
        """With its kind where several have that name."""
        return found.name if sum(job.name == found.name for job in self.jobs.values()) < 2 else str(found)

    def status(self, found: FoundJob) -> str:
        """The state of a job, and why it makes no progress if it does not."""
        why, status = self.why(found), self.job_status(found)
        return f"{status}: {why}" if why else status

    def job_status(self, found: FoundJob) -> str:
        """One word for the whole job."""
        status = job_status(found.state)
        return status if found.names is None else self._sticky_status(uid_of(found.manifest), "", status)

    def why(self, found: FoundJob) -> str:
        """Why a whole job does nothing: it rests, or its gang has no room."""
        starts = found.state.run.is_open and not found.state.is_ended and self.job_status(found) != "running"
        gang = self.gangs.get(uid_of(found.manifest), "") if starts else ""
        return why_idle(found, found.state) or gang

    def rows(self) -> Iterator[tuple[FoundJob, TaskView, TrainingProgress, str]]:
        """The job, the task, how far it is, and why it waits if it does."""
        for uid, found in self.jobs.items():
            views = tasks_of(found.state)
            if not views and (why := self.why(found)):
                yield found, NO_TASKS, TrainingProgress(), why
            for view in views:
                pod = self.pods.get((uid, view.name), _UNKNOWN_POD)
                pod = pod if view.pod_uid in (None, pod.pod_uid) else _UNKNOWN_POD
                status = self._sticky_status(uid, view.name, view.status) if found.names is not None else view.status
                shown = replace(view, status=status_with_reason(status, pod.why), node=view.node or pod.node)
                yield (
                    found,
                    shown,
                    self.paces.get((uid, view.name), TrainingProgress()),
                    pod.why * (shown.status == "waiting"),
                )

    def _sticky_status(self, uid: str, task: str, status: str) -> str:
        """The word where only numbers are known: how many pods are there, how many are ready. A pod that is about to
        end is no longer ready, and is not being prepared again either."""
        if status == "running":
            self.ran.add((uid, task))
        elif status not in ("pending", "preparing", "created"):
            self.ran.discard((uid, task))
        return "running" if (uid, task) in self.ran else status


class RateLimiter:
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

    def is_new(self, who: str, line: str) -> bool:
        """Whether the whole line differs from its last state that was printed; the next bar begins at once."""
        return self._printed.pop(who, (0.0, None))[1] != line


class LineDisplay:
    """Plain output: a line per change on the console, a line per log line on the output."""

    def __init__(self, console: Console, output: Console | None = None, *, logs: bool) -> None:
        self._console = console
        self._output = output or console
        self._logs = logs
        self._reasons: set[tuple[str, str]] = set()  # printed, by job
        self._printed_statuses: dict[tuple[str, str], str] = {}
        self._board = Board()
        self._widest = 0
        self._rate_limiter = RateLimiter()

    @contextmanager
    def shown(self) -> Iterator[None]:
        yield

    def change(self, found: FoundJob) -> None:
        self._board.update_job(found)
        self._print_status(found, "", self._board.status(found))
        self._print_tasks()

    def pod(self, found: FoundJob, task: str, pod: PodView) -> None:
        if self._board.update_pod(found, task, pod):
            self._print_tasks()

    def gang(self, found: FoundJob, why: str) -> None:
        self._board.gangs[uid_of(found.manifest)] = why
        if uid_of(found.manifest) in self._board.jobs:
            self._print_status(found, "", self._board.status(found))

    def create_failure(self, found: FoundJob, why: str) -> None:
        self._print(f"{datetime.now(UTC).astimezone():%H:%M:%S} {self._board.name(found)}: {why}")

    def _print_tasks(self) -> None:
        rows = list(self._board.rows())
        for job, view, _, why in rows:
            if view is NO_TASKS:
                continue  # shown at the job
            if why:
                key = uid_of(job.manifest), why
                if key not in self._reasons:  # once for all tasks of a job that wait for the same
                    self._reasons.add(key)
                    tasks = [other.name for found, other, _, reason in rows if found is job and reason == why]
                    who = f"{self._board.name(job)} {', '.join(group_tasks(tasks))}"
                    self._print(f"{datetime.now(UTC).astimezone():%H:%M:%S} {who}: waiting: {why}")
                self._printed_statuses[uid_of(job.manifest), view.name] = f"{view.status}: {why}"
                continue
            code = f" (code {view.code})" if view.status == "failed" else ""
            again = f", attempt {view.retries}" if view.retries and view.status in ("waiting", "running") else ""
            self._print_status(job, view.name, f"{view.status}{code}{again}")

    def _print_status(self, job: FoundJob, task: str, status: str) -> None:
        key = uid_of(job.manifest), task
        if self._printed_statuses.get(key) != status:
            self._printed_statuses[key] = status
            who = f"{self._board.name(job)} {task}".rstrip()
            self._print(f"{datetime.now(UTC).astimezone():%H:%M:%S} {who}: {status}")

    def line(self, found: FoundJob, source: LogSource, line: str) -> None:  # noqa: ARG002 - the same face as Screen
        self._widest = max(self._widest, len(source.head))
        if self._rate_limiter.is_new(source.head, line) and self._logs:
            self._print(f"{source.head.ljust(self._widest)} | {line}", self._output)

    def progress(self, found: FoundJob, source: LogSource, text: str) -> None:  # noqa: ARG002 - the same face as Screen
        self._widest = max(self._widest, len(source.head))
        if self._logs and self._rate_limiter.is_due(source.head, text, time.monotonic()):
            self._print(f"{source.head.ljust(self._widest)} | {plain(text)}", self._output)

    def log_failure(self, task: str, why: str) -> None:
        if self._logs:
            self._print(f"{task.ljust(self._widest)} | ({why})")

    def note(self, sentence: str) -> None:
        self._print(sentence)

    def _print(self, text: str, console: Console | None = None) -> None:
        (console or self._console).print(text, markup=False, highlight=False, soft_wrap=True)


class TableDisplay:
    """A terminal: log lines scroll above a table that stays, or go to an output that is no terminal."""

    def __init__(self, console: Console, output: Console | None = None, *, logs: bool) -> None:
        self._console = console
        self._output = console if output is None or output.is_terminal else output
        self._logs = logs
        self._board = Board()
        self._colours: dict[str, str] = {}
        self._bars: dict[str, str] = {}  # progress bars that move, by the prefix of their lines
        self._live: Live | None = None
        self._began = datetime.now(UTC)

    @contextmanager
    def shown(self) -> Iterator[None]:
        from rich.live import Live

        with Live(get_renderable=self._render, console=self._console, refresh_per_second=6) as live:
            self._live = live
            yield
            live.refresh()

    def change(self, found: FoundJob) -> None:
        self._board.update_job(found)

    def line(self, found: FoundJob, source: LogSource, line: str) -> None:
        from rich.text import Text

        self._board.update_pace(found, source.task, line)
        self._bars.pop(source.head, None)
        if self._logs:
            role = source.task.rpartition("-")[0]
            colour = self._colours.setdefault(role, COLOURS[len(self._colours) % len(COLOURS)])
            self._output.print(Text.assemble((f"{source.head} | ", colour), line), soft_wrap=True)

    def progress(self, found: FoundJob, source: LogSource, text: str) -> None:
        self._board.update_pace(found, source.task, text)
        if self._logs:
            self._bars[source.head] = plain(text)

    def pod(self, found: FoundJob, task: str, pod: PodView) -> None:
        self._board.update_pod(found, task, pod)

    def gang(self, found: FoundJob, why: str) -> None:
        self._board.gangs[uid_of(found.manifest)] = why

    def create_failure(self, found: FoundJob, why: str) -> None:
        self.note(f"{self._board.name(found)}: {why}")

    def log_failure(self, task: str, why: str) -> None:
        from rich.text import Text

        if self._logs:
            self._console.print(Text(f"{task} | ({why})"), soft_wrap=True)

    def note(self, sentence: str) -> None:
        from rich.text import Text

        self._console.print(Text(sentence))

    def _render(self) -> Group:
        from rich.console import Group
        from rich.text import Text

        max_rows = max(self._console.size.height // 3, 1)
        bars = [Text(f"{who} | {bar}", no_wrap=True, overflow="crop") for who, bar in self._bars.items()]
        return Group(self._table(reserved_rows=min(len(bars), max_rows)), *bars[:max_rows])

    def _table(self, reserved_rows: int) -> Table:
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, header_style="dim", title_justify="left", title_style="bold")
        names = ", ".join(f"{self._board.name(job)} {self._board.job_status(job)}" for job in self._board.jobs.values())
        passed = format_duration((datetime.now(UTC) - self._began).total_seconds())
        table.title = Text(f"{names or 'submitting'}  {passed}")
        rows = list(self.rows())
        several, some_wait = len(self._board.jobs) > 1, any(why for *_, why in rows)
        for head in (*(("job",) if several else ()), "task", "state", "retries", "step", "loss", "node"):
            table.add_column(head, no_wrap=True)
        if some_wait:
            table.add_column("why", overflow="fold")
        max_rows = max(self._console.size.height - 4 - reserved_rows, 6)
        for job, view, pace, why in rows[:max_rows]:
            # Text and no markup: what is printed above the table may turn markup off, for the table too.
            status = view.status if view.status != "failed" else f"failed ({view.code})"
            state = Text(status, STYLES.get(view.status, "default"))
            cells = [Text(view.name), state, *map(Text, (str(view.retries or ""), pace.step, pace.loss))]
            table.add_row(
                *([Text(self._board.name(job))] if several else []), *cells, Text(view.node), *([Text(why)] * some_wait)
            )
        if len(rows) > max_rows:
            table.add_row(f"... and {len(rows) - max_rows} more")
        return table

    def rows(self) -> Iterator[tuple[FoundJob, TaskView, TrainingProgress, str]]:
        """Failed tasks, waiting ones, then the others; tasks that wait for the same are one row."""
        grouped: dict[object, list[tuple[FoundJob, TaskView, TrainingProgress, str]]] = {}
        for number, row in enumerate(self._rows_with_reasons()):
            job, view, _, why = row
            key = (uid_of(job.manifest), view.role, why) if why and view is not NO_TASKS else number
            grouped.setdefault(key, []).append(row)
        rows = [(several[0], [view.name for _, view, _, _ in several]) for several in grouped.values()]
        for (job, view, pace, why), names in sorted(rows, key=lambda row: status_rank(row[0][1].status)):
            together = ", ".join(group_tasks(names)) if len(names) > 1 else view.name
            yield job, replace(view, name=together), pace, why

    def _rows_with_reasons(self) -> Iterator[tuple[FoundJob, TaskView, TrainingProgress, str]]:
        """The reason why a whole job waits is shown at the first of its tasks that do."""
        reasoned: set[str] = set()
        for job, view, pace, why in self._board.rows():
            uid = uid_of(job.manifest)
            if view.status == "waiting" and not why and uid not in reasoned:
                why = self._board.why(job)
            reasoned |= {uid} if why else set()
            yield job, view, pace, why


def make_display(console: Console, output: Console, *, plain: bool, logs: bool) -> LineDisplay | TableDisplay:
    """A screen on a terminal, unless plain lines are requested."""
    made = LineDisplay if plain or not console.is_terminal else TableDisplay
    return made(console, output, logs=logs)
