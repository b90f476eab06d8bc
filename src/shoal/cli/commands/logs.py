"""`shoal logs`: what the tasks of a job print, each line behind its task's name."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from shoal.cli.context import KUBECONFIG, Choice, cluster_options, connection_of, local_folder, with_cluster
from shoal.cli.job_lookup import complete_tasks, job_argument
from shoal.local.data_dir import DataFolder

if TYPE_CHECKING:
    from shoal.cli.attempt_logs import Attempt
    from shoal.cli.follow import LogLine, PodView
    from shoal.cli.job_lookup import FoundJob
    from shoal.cli.line_filter import LineFilter
    from shoal.cluster.client import LogOptions
    from shoal.cluster.kubernetes import KubernetesCluster
    from shoal.engine import TaskRef
    from shoal.kube.objects import Obj
    from shoal.node.log_archive import ArchivedJob


@click.command("logs")
@job_argument
@click.argument("tasks", nargs=-1, metavar="[TASK]...", shell_complete=complete_tasks)
@click.option("-f", "--follow", is_flag=True, help="Follow until the job ends, new tasks and attempts included.")
@click.option("--tail", type=click.IntRange(0), metavar="LINES", help="Lines of recent log to print per task.")
@click.option("--since", metavar="TIME", help="Only lines newer than a duration (5m, 1h30m) or a time.")
@click.option("--grep", metavar="PATTERN", help="Only lines that match this regular expression.")
@click.option("-c", "--container", default="", metavar="NAME", help="Container name.  [default: the first]")
@click.option("--previous", is_flag=True, help="Logs of the attempt before the last.")
@click.option("--all-attempts", is_flag=True, help="Logs of every stored attempt, oldest first.")
@click.option("--timestamps", is_flag=True, help="Include the timestamp of each line.")
@click.option(
    "--prefix/--no-prefix",
    default=True,
    show_default=True,
    help="Prefix each line with the task's name, with several tasks.",
)
@cluster_options
def command(
    choice: Choice,
    name: str,
    tasks: tuple[str, ...],
    follow: bool,
    tail: int | None,
    since: str | None,
    grep: str | None,
    container: str,
    previous: bool,
    all_attempts: bool,
    timestamps: bool,
    prefix: bool,
) -> None:
    """Print the logs of a job's tasks.

    TASK is a role (worker), a task (worker-0) or the prefix of its log lines; the default is all tasks. A
    cluster on this machine keeps the logs of deleted pods and jobs, within the budget set by `logs:` in shoal.yaml; on
    Kubernetes a pod's logs are deleted with the pod. --all-attempts numbers the stored attempts from 0, as `shoal
    describe` and a Framework's status do.
    """
    from shoal.cli.job_lookup import JobNotFound, find_job
    from shoal.cli.line_filter import LineFilter
    from shoal.cli.pipes import PipeClosed, exit_on_closed_pipe, while_pipe_open
    from shoal.cluster.client import LogOptions

    if follow and previous:
        raise click.UsageError("--follow cannot be combined with --previous: the previous attempt has ended.")
    if previous and all_attempts:
        raise click.UsageError("--previous cannot be combined with --all-attempts, which includes it.")
    seconds, moment = parse_since(since)
    options = LogOptions(
        container, follow, tail_lines=tail, since_seconds=seconds, since_time=moment, timestamps=timestamps
    )
    selection = LogSelection(tasks, options, LineFilter(grep), prefix=prefix, is_previous=previous, is_all=all_attempts)

    async def work(cluster: KubernetesCluster, namespace: str) -> None:
        folder = local_folder(choice)
        archive = Archive(folder.path if folder is not None else None, namespace, name)
        try:
            job = await find_job(cluster, name, namespace)
        except JobNotFound:
            if not archive.jobs():
                raise
            await while_pipe_open(_print_archived(archive, selection))
            return
        is_followed = follow and not job.state.is_ended
        pods = await pods_by_head(cluster, job)
        kept = archive.of(job)
        heads = [*pods, *(log.task for log in (kept.logs if kept is not None else ()))]
        check_tasks(job, tasks, heads, is_followed=is_followed)
        if not is_followed or all_attempts:
            await while_pipe_open(print_logs(cluster, job, pods, archive, selection, is_followed=is_followed))
        if is_followed:
            await while_pipe_open(follow_logs(cluster, job, selection))

    try:
        if (stopped := stopped_archive(choice, name)) is not None:
            asyncio.run(while_pipe_open(_print_archived(stopped, selection)))
        else:
            with_cluster(choice, work)
    except PipeClosed:
        raise exit_on_closed_pipe() from None


def stopped_archive(choice: Choice, name: str) -> Archive | None:
    """The job's archived logs in the data folder, if its cluster is the chosen one and does not run."""
    try:
        connection_of(choice)
    except click.ClickException:
        is_there = False
    else:
        is_there = True
    names_another = choice.kubeconfig is not None or choice.context or os.environ.get(KUBECONFIG)
    if is_there or (names_another and not choice.names_folder):
        return None
    folder, namespace = DataFolder(choice.folder), choice.namespace or "default"
    if not folder.store.exists() or folder.running() is not None:
        return None
    from shoal.cli.attempt_logs import jobs_of_stopped_cluster

    jobs = jobs_of_stopped_cluster(folder, namespace, name)
    if not jobs:
        return None
    click.echo(f"(no cluster runs in {folder.path}: these are the logs it has kept)", err=True)
    return Archive(folder.path, namespace, name, jobs)


_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")


def parse_since(text: str | None) -> tuple[int | None, str | None]:
    """A duration in seconds, or a time in the format of the API."""
    from shoal.kube.times import parse

    if text is None:
        return None, None
    parts = _DURATION.fullmatch(text)
    if text and parts is not None:
        days, hours, minutes, seconds = (int(part or 0) for part in parts.groups())
        return ((days * 24 + hours) * 60 + minutes) * 60 + seconds, None
    try:
        parse(text)
    except ValueError:
        examples = "such as 30s, 5m or 1h30m, nor a time such as 2026-11-18T21:00:00Z"
        raise click.BadParameter(f"--since: {text!r} is neither a duration {examples}") from None
    return None, text


@dataclass(frozen=True, slots=True)
class LogSelection:
    """Which lines of which tasks, and how."""

    tasks: tuple[str, ...]
    options: LogOptions
    lines: LineFilter
    prefix: bool
    is_previous: bool
    is_all: bool

    def matches(self, task: str, head: str = "") -> bool:
        """Whether the task is selected by its name, its role or the name that its lines begin with."""
        return not self.tasks or any(name in self.tasks for name in (task, task.rpartition("-")[0], head))


@dataclass(frozen=True, slots=True)
class Archive:
    """The kept logs of jobs with one name; none where the cluster runs elsewhere."""

    data: Path | None
    namespace: str
    word: str
    of_stopped: Sequence[ArchivedJob] = ()  # all there are, of a cluster that does not run

    def jobs(self) -> Sequence[ArchivedJob]:
        from shoal.cli.attempt_logs import archived_jobs

        return self.of_stopped or archived_jobs(self.data, self.namespace, self.word)

    def of(self, job: FoundJob) -> ArchivedJob | None:
        from shoal.kube.objects import uid_of

        return next((each for each in self.jobs() if each.uid == uid_of(job.manifest)), None)


def _roles(job: FoundJob) -> list[str]:
    """As the manifest names them; a role that was taken out of it may still have pods."""
    read = job.job
    named = [role.name for role in read.roles] if read is not None else []
    return list(dict.fromkeys([*named, *(role.name for role in job.state.roles)]))


def check_tasks(job: FoundJob, tasks: tuple[str, ...], heads: Sequence[str], *, is_followed: bool) -> None:
    """Raise for a task that is in neither the manifest, the job state nor `heads`, the names of pods and archived
    logs; a task of a job that is followed may be created later."""
    from shoal.cli.job_table import tasks_of

    roles, manifest_roles = _roles(job), job.job.roles if job.job is not None else ()
    numbered = [f"{role.name}-{index}" for role in manifest_roles for index in range(role.size or 0)]
    numbered = list(dict.fromkeys([*numbered, *(view.name for view in tasks_of(job.state))]))
    known = list(heads) if job.names is not None else numbered  # some pods have names in place of numbers
    accepted = {*roles, *numbered, *heads, *(head.rpartition("-")[0] for head in heads)}
    for word in tasks:
        if word in accepted:
            continue
        if word.rpartition("-")[0] not in roles:
            raise click.ClickException(f"{job} has no task {word!r}. Its roles: {', '.join(roles) or 'none'}.")
        if not is_followed:
            raise click.ClickException(f"{job} has no task {word!r}. Its tasks: {', '.join(known) or 'none yet'}.")


async def follow_logs(cluster: KubernetesCluster, job: FoundJob, selection: LogSelection) -> None:
    """Follow every selected task as its output arrives, until the job has ended."""
    from shoal.cli.follow import Follower

    tasks = selection.tasks
    alone = len(tasks) == 1 and tasks[0] not in _roles(job)
    printer = Printer(selection.lines, prefix=selection.prefix and not alone)
    wait_reporter = _WaitReporter(tasks)
    follower = Follower(
        cluster, [job],
        on_change=wait_reporter.change,
        on_pod=wait_reporter.pod,
        on_gang=wait_reporter.gang,
        on_line=lambda _, source, line: printer.line(source.head, line),
        on_progress=lambda _, source, text: printer.progress(source.head, text),
        on_log_failure=lambda who, why: printer.log_failure(who, why),
        follows_log=lambda ref, head: selection.matches(str(ref), head),
        options=selection.options,
    )  # fmt: skip
    await follower.run()


class Printer:
    """Log lines on standard output. A progress bar moves in the last row of a terminal; elsewhere it is a line a
    second at most."""

    def __init__(self, lines: LineFilter, *, prefix: bool) -> None:
        from shoal.cli.progress import RateLimiter

        self._lines = lines
        self._prefix = prefix
        self._width = 0
        self._is_terminal = sys.stdout.isatty()
        self._has_bar = False  # in the row of the cursor
        self._rate_limiter = RateLimiter()

    def line(self, who: str, text: str) -> None:
        self._clear()
        if self._rate_limiter.is_new(who, text) and self._lines.matches(text):
            click.echo(f"{self._head(who)}{text}")

    def progress(self, who: str, text: str) -> None:
        from shoal.training_progress import plain

        if not self._lines.matches(text):
            return
        if self._is_terminal:
            self._clear()
            row = f"{self._head(who)}{plain(text)}"[: shutil.get_terminal_size().columns - 1]
            click.echo(row, nl=False)
            self._has_bar = True
        elif self._rate_limiter.is_due(who, text, time.monotonic()):
            click.echo(f"{self._head(who)}{plain(text)}")

    def log_failure(self, who: str, why: str) -> None:
        self._clear()
        click.echo(f"{self._head(who)}({why})", err=True)

    def _clear(self) -> None:
        if self._has_bar:
            click.echo("\r\x1b[K", nl=False)
            self._has_bar = False

    def _head(self, who: str) -> str:
        self._width = max(self._width, len(who))
        return f"{who.ljust(self._width)} | " if self._prefix else ""


class _WaitReporter:
    """Reports, once each, why a selected task has no output."""

    def __init__(self, tasks: tuple[str, ...]) -> None:
        from shoal.cli.progress import Board

        self._tasks = tasks
        self._board = Board()
        self._reported: set[tuple[str, str]] = set()
        self._reasons: set[str] = set()  # of tasks

    def change(self, found: FoundJob) -> None:
        self._board.update_job(found)
        why = self._board.why(found)
        if why and (found.name, why) not in self._reported:
            self._reported.add((found.name, why))
            click.echo(f"{found.name} waits: {why}", err=True)
        self._report_tasks()

    def pod(self, found: FoundJob, task: str, pod: PodView) -> None:
        self._board.update_pod(found, task, pod)
        self._report_tasks()

    def gang(self, found: FoundJob, why: str) -> None:
        from shoal.kube.objects import uid_of

        self._board.gangs[uid_of(found.manifest)] = why
        self.change(found)

    def _report_tasks(self) -> None:
        """One line per reason, with the tasks that wait for it now."""
        from shoal.cli.task_table import group_tasks

        waiting: dict[str, list[str]] = {}
        for _, view, _, why in self._board.rows():
            is_selected = not self._tasks or view.name in self._tasks or view.role in self._tasks
            if why and is_selected and view.role:
                waiting.setdefault(why, []).append(view.name)
        for why, names in waiting.items():
            if why not in self._reasons:
                self._reasons.add(why)
                verb = "waits" if len(names) == 1 else "wait"
                click.echo(f"{', '.join(group_tasks(names))} {verb}: {why}", err=True)


async def pods_by_head(cluster: KubernetesCluster, job: FoundJob) -> dict[str, tuple[TaskRef, Obj]]:
    """The job's pods with their tasks, by the name that their lines begin with."""
    from shoal.cli.follow import head_of, task_of
    from shoal.kube.kinds import POD

    found = {}
    for pod in (await cluster.list(POD, job.namespace)).items:
        ref = task_of(job, pod)
        if ref is not None:
            found[ref, head_of(job, ref, pod)] = pod
    return {head: (ref, found[ref, head]) for ref, head in sorted(found)}


async def print_logs(
    cluster: KubernetesCluster,
    job: FoundJob,
    pods: Mapping[str, tuple[TaskRef, Obj]],
    archive: Archive,
    selection: LogSelection,
    *,
    is_followed: bool,
) -> None:
    """Print what is there now; with `is_followed`, the attempts that have ended: the others are followed."""
    from shoal.cli.attempt_logs import archived_file, attempts_of
    from shoal.cli.follow import restarts_of

    container = selection.options.container
    selected = {head: pod for head, (ref, pod) in pods.items() if selection.matches(str(ref), head)}
    by_task = attempts_of(selected, archive.of(job), container, restarts_of)
    by_task = {task: several for task, several in by_task.items() if selection.matches(task) or task in selected}
    if not by_task and not is_followed:
        which = f" for {', '.join(selection.tasks)}" if selection.tasks else ""
        if not job.state.is_ended:
            raise click.ClickException(f"{job} has no pods{which} yet. `shoal logs -f` waits for them.")
        if archive.data is None:
            raise click.ClickException(
                f"{job} has no pods{which} any more, and on Kubernetes a pod's logs are deleted with it. If the "
                "cluster has a log system, look there."
            )
        raise click.ClickException(
            f"no logs of {job} are kept{which}: none of its pods ran, or they exceeded the budget under `logs:`."
        )

    def find_archived(attempt: Attempt) -> Path | None:
        if attempt.pod is None:
            return None
        return archived_file(archive.jobs(), attempt.pod, container, is_previous=attempt.is_previous)

    shown = _select_attempts(by_task, selection)
    if is_followed:
        shown = [each for each in shown if each.pod is None or each.is_previous]
    await _print_attempts(cluster, shown, selection, find_archived)


def _select_attempts(by_task: Mapping[str, Sequence[Attempt]], selection: LogSelection) -> list[Attempt]:
    if selection.is_all:
        return [attempt for several in by_task.values() for attempt in several]
    if not selection.is_previous:
        return [several[-1] for several in by_task.values()]
    previous = [several[-2] for several in by_task.values() if len(several) > 1]
    if not previous:
        raise click.ClickException(
            "there is no previous attempt: each task ran once, or the earlier logs exceeded the budget under `logs:`."
        )
    return previous


async def _print_archived(archive: Archive, selection: LogSelection) -> None:
    """Of a job that is no longer there."""
    from shoal.cli.attempt_logs import attempts_of

    kept = archive.jobs()[0]
    by_task = attempts_of({}, kept, selection.options.container, lambda *_: 0)
    selected = {task: several for task, several in by_task.items() if selection.matches(task)}
    if not selected:
        known = ", ".join(by_task) or "none"
        raise click.ClickException(f"{archive.word} has no logs for {', '.join(selection.tasks)}. Its tasks: {known}.")
    await _print_attempts(None, _select_attempts(selected, selection), selection, lambda _: None)


async def _print_attempts(
    cluster: KubernetesCluster | None,
    attempts: Sequence[Attempt],
    selection: LogSelection,
    find_archived: Callable[[Attempt], Path | None],
) -> None:
    """Of a task one after the other; those of different pods at once, since each may be far away."""
    from shoal.cli.reasons import why_waiting
    from shoal.kube.objects import at_path

    names = {id(each): f"{each.task} #{each.number}" if selection.is_all else each.task for each in attempts}
    width = max(map(len, names.values()), default=0)

    async def one(attempt: Attempt) -> None:
        name = names[id(attempt)]
        is_last = attempt.pod is not None and not attempt.is_previous
        pod = attempt.pod or {}
        # An init container may have output already; it is read with --container.
        if is_last and not selection.options.container and at_path(pod, "status", "phase") in (None, "Pending"):
            click.echo(f"{attempt.task} waits: {why_waiting(pod) or 'its containers are being created'}", err=True)
            return
        head = f"{name.ljust(width)} | " if selection.prefix and len(attempts) > 1 else ""
        await print_attempt(cluster, attempt, selection, head, find_archived)

    if selection.is_all:
        for attempt in attempts:
            await one(attempt)
        return
    for broken in await asyncio.gather(*map(one, attempts), return_exceptions=True):
        if broken is not None:
            raise broken  # when all the others were printed


async def print_attempt(
    cluster: KubernetesCluster | None,
    attempt: Attempt,
    selection: LogSelection,
    head: str,
    find_archived: Callable[[Attempt], Path | None],
) -> None:
    from shoal.cli.attempt_logs import read_file
    from shoal.cli.follow import lines
    from shoal.kube.errors import ApiError

    options = replace(selection.options, follow=False)
    try:
        # Closed here also where the output cannot be written, not by the event loop at its end.
        async with aclosing(cast("AsyncGenerator[bytes]", attempt.read(cluster, options))) as chunks:
            await _echo(lines(chunks, options), selection, head)
    except ApiError as refused:
        file = find_archived(attempt) if refused.code == 404 else None
        if file is None:
            click.echo(f"{head}({refused.message})", err=True)
        else:
            await _echo(lines(read_file(file, options), options), selection, head)


async def _echo(read: AsyncIterator[LogLine], selection: LogSelection, head: str) -> None:
    async for line in read:
        if line.is_whole and selection.lines.matches(line.text):
            click.echo(f"{head}{line.stamped}")
