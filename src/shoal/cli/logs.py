"""`shoal logs`: what the tasks of a job print, each line behind its task's name."""

from __future__ import annotations

import asyncio
import shutil
import sys
import time
from typing import TYPE_CHECKING

import click

from shoal.cli.jobs import complete_tasks, job_argument
from shoal.cli.reaching import Choice, cluster_options, with_cluster

if TYPE_CHECKING:
    from shoal.cli.following import Sight
    from shoal.cli.jobs import Found
    from shoal.cluster.kubernetes import KubernetesCluster
    from shoal.cluster.port import LogOptions
    from shoal.engine import TaskRef
    from shoal.kube.objects import Key, Obj


@click.command("logs")
@job_argument
@click.argument("tasks", nargs=-1, metavar="[TASK]...", shell_complete=complete_tasks)
@click.option("-f", "--follow", is_flag=True, help="Go on until the job ends, with tasks and attempts to come.")
@click.option("--tail", type=click.IntRange(0), metavar="LINES", help="Only the last lines of each task.")
@click.option("-c", "--container", default="", metavar="NAME", help="Another container than the first.")
@click.option("--previous", is_flag=True, help="Of the container's run before its last restart.")
@click.option("--timestamps", is_flag=True, help="With the time of each line.")
@click.option(
    "--prefix/--no-prefix",
    default=True,
    show_default=True,
    help="The task's name before each line, where several may speak.",
)
@cluster_options
def command(
    choice: Choice,
    name: str,
    tasks: tuple[str, ...],
    follow: bool,
    tail: int | None,
    container: str,
    previous: bool,
    timestamps: bool,
    prefix: bool,
) -> None:
    """Print the logs of a job's tasks.

    TASK is a role (worker) or one of its tasks (worker-0); without one, all of them. Pods that are gone have taken
    their logs with them. Lines of several tasks stand behind the task's name, those of a single one alone.
    """
    from shoal.cli.jobs import job_named
    from shoal.cli.listeners import Unheard, leave_unheard, while_heard
    from shoal.cluster.port import LogOptions

    if follow and previous:
        raise click.UsageError("--follow and --previous do not go together: a container's last run is over.")
    options = LogOptions(container, follow, previous, tail, timestamps=timestamps)

    async def work(cluster: KubernetesCluster, namespace: str) -> None:
        job = await job_named(cluster, name, namespace)
        is_followed = follow and not job.state.is_ended
        _check(job, tasks, is_followed=is_followed)
        shown = _follow if is_followed else _print
        await while_heard(shown(cluster, job, tasks, options, prefix=prefix))

    try:
        with_cluster(choice, work)
    except Unheard:
        raise leave_unheard() from None


def _roles(job: Found) -> list[str]:
    """As the manifest names them; a role that was taken out of it may still have pods."""
    read = job.job
    named = [role.name for role in read.roles] if read is not None else []
    return list(dict.fromkeys([*named, *(role.name for role in job.state.roles)]))


def _check(job: Found, tasks: tuple[str, ...], *, is_followed: bool) -> None:
    """Of a job that is followed, tasks may be meant that are still to come."""
    roles = _roles(job)
    for word in tasks:
        if word not in roles and word.rpartition("-")[0] not in roles:
            example = f"{roles[0]} or {roles[0]}-0" if roles else "none: it has no roles"
            raise click.ClickException(f"{job} has no task {word!r}. Its roles: {', '.join(roles)}; say {example}.")
        there = _tasks(job)
        if word not in roles and word not in there and not is_followed:
            raise click.ClickException(f"{job} has no task {word!r}. Its tasks: {', '.join(there) or 'none yet'}.")


def _tasks(job: Found) -> list[str]:
    """Those that are there, and those that the manifest asks for."""
    from shoal.cli.views import tasks_of

    asked = job.job.roles if job.job is not None else ()
    named = [f"{role.name}-{index}" for role in asked for index in range(role.size or 0)]
    return list(dict.fromkeys([*named, *(view.name for view in tasks_of(job.state))]))


async def _follow(
    cluster: KubernetesCluster, job: Found, tasks: tuple[str, ...], options: LogOptions, *, prefix: bool
) -> None:
    """Every task that is meant, as it comes, until the job has ended."""
    from shoal.cli.following import Follower

    alone = len(tasks) == 1 and tasks[0] not in _roles(job)
    printer = Printer(prefix=prefix and not alone)
    waits = _Waits(tasks)
    follower = Follower(
        cluster, [job],
        on_change=waits.change,
        on_pod=waits.pod,
        on_gang=waits.gang,
        on_line=lambda _, voice, line: printer.line(voice.head, line),
        on_progress=lambda _, voice, text: printer.progress(voice.head, text),
        on_trouble=lambda who, why: printer.trouble(who, why),
        hears=lambda ref: _is_meant(ref, tasks),
        options=options,
    )  # fmt: skip
    await follower.run()


class Printer:
    """Log lines on standard output. A progress bar moves in the last row of a terminal; elsewhere it is a line a
    second at most."""

    def __init__(self, *, prefix: bool) -> None:
        from shoal.cli.progress import Pacer

        self._prefix = prefix
        self._width = 0
        self._is_terminal = sys.stdout.isatty()
        self._has_bar = False  # in the row of the cursor
        self._pacer = Pacer()

    def line(self, who: str, text: str) -> None:
        self._clear()
        if self._pacer.is_news(who, text):
            click.echo(f"{self._head(who)}{text}")

    def progress(self, who: str, text: str) -> None:
        from shoal.log_signals import plain

        if self._is_terminal:
            self._clear()
            row = f"{self._head(who)}{plain(text)}"[: shutil.get_terminal_size().columns - 1]
            click.echo(row, nl=False)
            self._has_bar = True
        elif self._pacer.is_due(who, text, time.monotonic()):
            click.echo(f"{self._head(who)}{plain(text)}")

    def trouble(self, who: str, why: str) -> None:
        self._clear()
        click.echo(f"{self._head(who)}({why})", err=True)

    def _clear(self) -> None:
        if self._has_bar:
            click.echo("\r\x1b[K", nl=False)
            self._has_bar = False

    def _head(self, who: str) -> str:
        self._width = max(self._width, len(who))
        return f"{who.ljust(self._width)} | " if self._prefix else ""


class _Waits:
    """Tells, once each, why a task that is meant says nothing."""

    def __init__(self, tasks: tuple[str, ...]) -> None:
        from shoal.cli.progress import Board

        self._tasks = tasks
        self._board = Board()
        self._told: set[tuple[str, str]] = set()

    def change(self, found: Found) -> None:
        self._board.put(found)
        if why := self._board.why(found):
            self._say(found.name, why)
        self._tell()

    def pod(self, found: Found, task: str, pod: Sight) -> None:
        self._board.see(found, task, pod)
        self._tell()

    def gang(self, found: Found, why: str) -> None:
        from shoal.kube.objects import uid_of

        self._board.gangs[uid_of(found.manifest)] = why
        self.change(found)

    def _tell(self) -> None:
        for _, view, _, why in self._board.rows():
            is_meant = not self._tasks or view.name in self._tasks or view.role in self._tasks
            if why and is_meant and view.role:
                self._say(view.name, why)

    def _say(self, who: str, why: str) -> None:
        if (who, why) not in self._told:
            self._told.add((who, why))
            click.echo(f"{who} waits: {why}", err=True)


async def _print(
    cluster: KubernetesCluster, job: Found, tasks: tuple[str, ...], options: LogOptions, *, prefix: bool
) -> None:
    from shoal.kube.objects import key_of

    pods = await _pods(cluster, job, tasks)
    if not pods:
        which = f" for {', '.join(tasks)}" if tasks else ""
        why = "logs go with their pods" if job.state.is_ended else "`shoal logs -f` waits for them"
        raise click.ClickException(f"{job} has no pods{which} now; {why}.")
    width = max(len(task) for task in pods)
    heads = {task: f"{task.ljust(width)} | " if prefix and len(pods) > 1 else "" for task in pods}
    told = [
        _one(cluster, key_of(pod), options, heads[task])
        for task, pod in pods.items()
        if options.container or not _is_waiting(task, pod)  # a container that prepares the others may have spoken
    ]
    for broken in await asyncio.gather(*told, return_exceptions=True):
        if broken is not None:
            raise broken  # when all the others have been heard


def _is_waiting(task: str, pod: Obj) -> bool:
    """A pod that has said nothing yet; the reader is told so."""
    from shoal.cli.reasons import why_waiting

    if (pod.get("status") or {}).get("phase", "Pending") != "Pending":
        return False
    click.echo(f"{task} waits: {why_waiting(pod) or 'its pod is being prepared'}", err=True)
    return True


async def _pods(cluster: KubernetesCluster, job: Found, tasks: tuple[str, ...]) -> dict[str, Obj]:
    from shoal.cli.following import head_of, task_of
    from shoal.kube.kinds import POD

    found = {}
    for pod in (await cluster.list(POD, job.namespace)).items:
        ref = task_of(job, pod)
        if ref is not None and _is_meant(ref, tasks):
            found[ref, head_of(job, ref, pod)] = pod
    return {head: found[ref, head] for ref, head in sorted(found)}


def _is_meant(ref: TaskRef, tasks: tuple[str, ...]) -> bool:
    return not tasks or str(ref) in tasks or ref.role in tasks


async def _one(cluster: KubernetesCluster, key: Key, options: LogOptions, head: str) -> None:
    from shoal.cli.following import lines
    from shoal.kube.errors import ApiError

    try:
        async for line in lines(cluster, key, options):
            if line.is_whole:
                click.echo(f"{head}{line.stamped}")
    except ApiError as refused:
        click.echo(f"{head}({refused.message})", err=True)
