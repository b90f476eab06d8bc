"""`shoal run`: a cluster for as long as a job takes, and nothing left of either afterwards."""

from __future__ import annotations

import asyncio
import shutil
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import click

from shoal.cli.commands.up import capacity_of, configured
from shoal.cli.manifest_files import Manifest, files_argument, job_file, load, set_option
from shoal.cli.signals import HangupSafeStream, termination_signals
from shoal.kube.objects import uid_of
from shoal.local import gc_tuning
from shoal.local.data_dir import DataFolder
from shoal.local.orphan_cleanup import end_throwaways, make_throwaway, marked_run

if TYPE_CHECKING:
    from shoal.cli.follow import Follower
    from shoal.cli.job_lookup import FoundJob
    from shoal.cli.progress import LineDisplay, TableDisplay
    from shoal.cluster.client import Cluster
    from shoal.local.cluster import ClusterConfig, RunningCluster

INTERRUPTED = 130
CHANGE_FILE_HINT = (
    "The cluster of `shoal run` exists only while its jobs run: change the file, or submit it to a cluster of "
    "`shoal up`."
)
_FIXED = {"bind": "127.0.0.1", "port": 0, "tls_cert": None, "tls_key": None}


@click.command("run")
@files_argument
@set_option
@click.option("--plain", is_flag=True, help="Print lines instead of a table, also on a terminal.")
@click.option("--logs/--no-logs", default=True, show_default=True, help="Show the output of the tasks.")
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), help="Print the final object to stdout.")
@click.option("--nodes", type=click.IntRange(1, 64), help="Divide the machine into this many nodes.  [default: 1]")
@click.option(
    "--capacity", multiple=True, metavar="NAME=AMOUNT", callback=capacity_of,
    help="Declare the capacity of a resource per node, for tests: --capacity nvidia.com/gpu=4",
)  # fmt: skip
@click.option("--network", type=click.Choice(["auto", "isolated", "loopback"]), help="Network of the pods.")
@click.option(
    "--config", "file", type=click.Path(dir_okay=False, path_type=Path), envvar="SHOAL_CONFIG", show_envvar=True,
    help="Configuration file.  [default: ./shoal.yaml, then shoal.yaml beside the first FILE, then "
    "~/.config/shoal/shoal.yaml]",
)  # fmt: skip
@click.option("-n", "--namespace", default="default", show_default=True, metavar="NAME")
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), metavar="DIRECTORY",
    envvar="SHOAL_OUT", show_envvar=True,
    help="Where to create output folders: logs, final object, description, metrics.  [default: ./shoal-out]",
)  # fmt: skip
@click.option("--no-out", is_flag=True, help="Write no output folder.")
@click.option("--keep", is_flag=True, help="Keep the cluster's data folder; `shoal up --data` opens it.")
def command(
    files: tuple[Path, ...],
    changes: tuple[str, ...],
    plain: bool,
    logs: bool,
    output: str | None,
    namespace: str,
    out: Path | None,
    no_out: bool,
    keep: bool,
    **options: Any,
) -> None:
    """Run jobs on a temporary cluster and wait for them.

    Exit code: 0 if the job succeeded; the exit code of the task that failed it, if a process can have that code; 1
    otherwise; 130 after Ctrl-C. The first Ctrl-C stops the job by the rules of its job language, the second terminates
    everything at once. SIGTERM and SIGHUP (loss of the terminal) act like Ctrl-C.

    A job is stopped, with the reason and exit code 1, if none of its remaining tasks can start in this cluster: it
    needs more nodes than exist, has no tasks, is suspended or was created without being started, belongs to another
    controller, its queue is closed, its image has no command, or a ConfigMap, Secret or claim that it needs is not
    in the files. It continues as long as any of its tasks or gangs can be placed.

    If the files have mistakes that `shoal validate` reports, the command prints them and starts nothing. The output
    of tasks goes to stdout (with -o, to stderr), the table and all messages about jobs to stderr. For each job a
    folder ./shoal-out/JOB-TIME is created, with a log per task and attempt, the final object, its description and
    its metrics.

    \b
    shoal run pet.yaml
    shoal run job.yaml --set spec.taskRoles[worker].taskNumber=2 --capacity nvidia.com/gpu=4
    """
    _treat_as_interrupts()
    from rich.console import Console

    from shoal.cli.job_table import format_objects
    from shoal.cli.lint import deviation_warnings_of
    from shoal.cli.offline_validation import reject_invalid
    from shoal.cli.progress import make_display
    from shoal.cli.project import warn_of_images

    manifests = load(files, changes)
    reject_invalid(manifests)
    config = configured({**options, **_FIXED}, job_file=job_file(files))
    config = replace(config, images=replace(config.images, retry_hint="run the job again"))
    warn_of_images(manifests, config.images)
    for manifest in manifests:
        for remark in deviation_warnings_of(manifest):
            click.echo(f"{manifest.where}: warning: {remark}", err=True)
    console = Console(file=cast("IO[str]", HangupSafeStream(sys.stderr)))
    # With -o standard output holds the job alone.
    printed_lines = console if output else Console(file=cast("IO[str]", HangupSafeStream(sys.stdout)))
    shown = make_display(console, printed_lines, plain=plain, logs=logs)
    end_throwaways()
    data = make_throwaway(is_kept=keep)
    try:
        parent = None if no_out else out or Path("shoal-out")
        code, final = run_in_folder(data, config, manifests, namespace, shown, Output(parent))
        if output is not None:
            click.echo(format_objects([job.manifest for job in final], output))
    finally:
        if keep:
            click.echo(f"The cluster's folder is kept: {data.path}", err=True)
        else:
            shutil.rmtree(data.path, ignore_errors=True)
    raise SystemExit(code)


def _treat_as_interrupts() -> None:
    """Handle SIGTERM and SIGHUP as SIGINT: before the job exists or after it, everything is cleaned up."""
    handler = signal.getsignal(signal.SIGINT)
    for number in termination_signals():
        signal.signal(number, handler if callable(handler) else signal.default_int_handler)


def run_in_folder(
    data: DataFolder,
    config: ClusterConfig,
    manifests: Sequence[Manifest],
    namespace: str,
    shown: LineDisplay | TableDisplay,
    output: Output,
) -> tuple[int, list[FoundJob]]:
    from shoal.cli.context import report_errors
    from shoal.cluster.store.sqlite import StoreBroken
    from shoal.local.log_setup import log_to
    from shoal.node.sandbox.sandbox_manager import NetworkUnavailable

    data.make()
    with data.locked(), marked_run(data), log_to(data.log), report_errors():
        try:
            return asyncio.run(run_jobs(data, config, manifests, namespace, shown, output))
        except (NetworkUnavailable, StoreBroken) as refused:
            raise click.ClickException(str(refused)) from None
        finally:
            output.write(data)


@dataclass(slots=True)
class Output:
    """The folders that a run leaves, and their contents."""

    parent: Path | None  # None: nothing is kept
    folders: dict[str, Path] = field(default_factory=dict)  # by uid of the job
    jobs: list[FoundJob] = field(default_factory=list)
    descriptions: dict[str, str] = field(default_factory=dict)

    def begin(self, jobs: Sequence[FoundJob], shown: LineDisplay | TableDisplay) -> None:
        from shoal.cli.run_output import new_folder

        self.jobs = list(jobs)
        for job in jobs if self.parent is not None else ():
            folder = new_folder(self.parent or Path(), job, datetime.now(UTC))
            if folder is None:
                return
            self.folders[uid_of(job.manifest)] = folder
            shown.note(f"Logs and results of {job.name} are kept in {folder}.")

    async def collect(self, cluster: Cluster, jobs: Sequence[FoundJob]) -> None:
        """Store the jobs as they ended, and their descriptions while a cluster that holds them still exists."""
        from shoal.cli.commands.describe import load_context
        from shoal.cli.describe_page import describe_job

        self.jobs = list(jobs)
        for job in jobs if self.folders else ():
            self.descriptions[uid_of(job.manifest)] = describe_job(job, await load_context(cluster, job))

    def write(self, data: DataFolder) -> None:
        from shoal.cli import run_output

        if self.folders:
            run_output.write(self.folders, data.path, self.jobs, self.descriptions)


async def run_jobs(
    data: DataFolder,
    config: ClusterConfig,
    manifests: Sequence[Manifest],
    namespace: str,
    shown: LineDisplay | TableDisplay,
    output: Output,
) -> tuple[int, list[FoundJob]]:
    from shoal.cli.follow import Follower
    from shoal.cli.job_table import exit_code_of
    from shoal.cli.reasons import why_idle
    from shoal.cli.submit_client import submit
    from shoal.cli.unschedulable_jobs import UnschedulableJobs
    from shoal.local.cluster import start_cluster

    _treat_as_interrupts()  # as the event loop does, which ends its tasks in order
    async with start_cluster(data, config) as hosted:
        gc_tuning.serve()
        if namespace != "default":
            await make_namespace(hosted.cluster, namespace)
        jobs = [found for _, found in await submit(hosted.cluster, manifests, namespace) if found is not None]
        if not jobs:
            raise click.ClickException(f"there is no job in {', '.join(dict.fromkeys(m.where for m in manifests))}.")
        output.begin(jobs, shown)
        some_end = not all(job.dialect.never_completes for job in jobs)
        unschedulable = UnschedulableJobs(hosted.cluster, shown)

        def changed(job: FoundJob) -> None:
            shown.change(job)
            is_checked = not interrupts.count and not (some_end and job.dialect.never_completes)
            if is_checked and (why := why_idle(job, job.state)):
                unschedulable.stop(job, why, CHANGE_FILE_HINT)
            unschedulable.check_required(job)
            unschedulable.check(job)

        follower = Follower(
            hosted.cluster, jobs,
            on_change=changed, on_line=shown.line, on_progress=shown.progress, on_log_failure=shown.log_failure,
            on_pod=shown.pod, on_gang=shown.gang, on_create_failure=shown.create_failure, on_fit=unschedulable.fit,
            is_over=lambda job: (
                is_over(job) or bool(job.other_controller) or (some_end and job.dialect.never_completes)
            ),
        )  # fmt: skip
        interrupts = InterruptHandler(hosted.cluster, follower, shown)
        await follow_jobs(hosted, follower, interrupts, shown)
        final = list(follower.jobs.values())
        await output.collect(hosted.cluster, final)
        print_failures([job for job in final if not unschedulable.has(job)], shown)
        # Servers that were there for the others have done their work when the others have ended.
        if interrupts.count:
            return INTERRUPTED, final
        codes = (exit_code_of(job.state) for job in final if not job.dialect.never_completes)
        return next((code for code in codes if code), 1 if unschedulable.stopping else 0), final


async def follow_jobs(
    hosted: RunningCluster, follower: Follower, interrupts: InterruptHandler, shown: LineDisplay | TableDisplay
) -> None:
    """Show the jobs until all are over, everything is to end at once, or the cluster breaks."""
    with shown.shown(), interrupts.handling():
        following = asyncio.create_task(follower.run())
        force_stop = asyncio.create_task(interrupts.force_stop.wait())
        await asyncio.wait((following, force_stop, hosted.broken), return_when=asyncio.FIRST_COMPLETED)
        if hosted.broken.done():
            hosted.broken.result()
    if following.done():
        following.result()
        await hosted.stop_pods()
    for task in (following, force_stop):
        task.cancel()


def is_over(job: FoundJob) -> bool:
    """True also for a suspended job whose pods are deleted: no other client reaches this cluster to resume it."""
    from shoal.engine import Stage

    return job.state.is_ended or (job.state.is_held and job.state.run.stage is Stage.OVER)


def print_failures(final: Sequence[FoundJob], shown: LineDisplay | TableDisplay) -> None:
    """Print why each failed, in one line; the cluster that could describe it in full is about to end."""
    from shoal.cli.describe_page import headline, last_message, resume_hint
    from shoal.cli.job_table import exit_code_of

    for job in final:
        if is_over(job) and exit_code_of(job.state):
            shown.note(headline(job, job.state, datetime.now(UTC)))
            if message := last_message(job.state):
                shown.note(message)
            if job.state.is_held:
                shown.note(f"`shoal run` ends here. In a cluster of `shoal up`, {resume_hint(job)}.")


async def make_namespace(cluster: Cluster, name: str) -> None:
    from shoal.kube.errors import ApiError
    from shoal.kube.kinds import NAMESPACE

    try:
        await cluster.create(NAMESPACE, {"metadata": {"name": name}})
    except ApiError as refused:
        if refused.code != 409:  # else it is one that every cluster has
            raise


class InterruptHandler:
    """Ctrl-C, once and twice; SIGTERM as well. A lost terminal counts once: two senders may report it."""

    def __init__(self, cluster: Cluster, follower: Follower, shown: LineDisplay | TableDisplay) -> None:
        self._cluster = cluster
        self._follower = follower
        self._shown = shown
        self._stopping: asyncio.Task[None] | None = None
        self.force_stop = asyncio.Event()
        self.count = 0

    def handling(self) -> Any:
        from contextlib import contextmanager

        @contextmanager
        def handlers() -> Any:
            loop = asyncio.get_running_loop()
            before = {number: signal.getsignal(number) for number in (signal.SIGINT, *termination_signals())}
            for number in before:
                loop.add_signal_handler(number, self._interrupt, number)
            try:
                yield
            finally:
                for number, handler in before.items():
                    loop.remove_signal_handler(number)
                    signal.signal(number, signal.SIG_IGN if number is signal.SIGHUP and self.count else handler)

        return handlers()

    def _interrupt(self, number: signal.Signals) -> None:
        if self.count and number is signal.SIGHUP:
            return
        self.count += 1
        if self.count == 1:
            self._shown.note("Stopping. Ctrl-C again ends everything at once.")
            self._stopping = asyncio.get_running_loop().create_task(self._stop())
        else:
            self.force_stop.set()

    async def _stop(self) -> None:
        """Every job that has not ended."""
        from shoal.cli.unschedulable_jobs import stop_job

        for job in list(self._follower.jobs.values()):
            if not job.state.is_ended:
                await stop_job(self._cluster, job, self._shown, "Ctrl-C again ends everything at once.")
