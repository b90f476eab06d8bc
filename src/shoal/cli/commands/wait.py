"""`shoal wait`: wait until a job has reached a state; the exit code reports which."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from shoal.cli.context import Choice, cluster_options, with_cluster
from shoal.cli.job_lookup import job_argument

if TYPE_CHECKING:
    from shoal.cli.job_lookup import FoundJob
    from shoal.cluster.client import Cluster
    from shoal.cluster.kubernetes import KubernetesCluster

TIMED_OUT = 124


@click.command("wait")
@job_argument
@click.option(
    "--for", "goal", type=click.Choice(["completed", "running", "deleted"]), default="completed", show_default=True
)
@click.option(
    "--timeout", type=click.FloatRange(0), metavar="SECONDS", help="Maximum time to wait.  [default: no limit]"
)
@cluster_options
def command(choice: Choice, name: str, goal: str, timeout: float | None) -> None:
    """Wait until a job has completed, is running, or is deleted.

    Exit code when waiting for completion: 0 if the job succeeded, the exit code of the task that failed it if a
    process can have that code, else 1. Exit code 1 if the condition can no longer be met, 124 on timeout. An aborted
    Volcano Job counts as completed until it is resumed.
    """
    from shoal.cli.job_lookup import JobNotFound, find_job
    from shoal.cli.job_table import exit_code_of

    async def work(cluster: KubernetesCluster, namespace: str) -> tuple[str, int]:
        try:
            job = await find_job(cluster, name, namespace)
        except JobNotFound:
            if goal != "deleted":
                raise
            return f"There is no job {name} in namespace {namespace}: it is gone.", 0
        try:
            async with asyncio.timeout(timeout):
                found = await wait_for_goal(cluster, job, goal)
        except TimeoutError:
            return f"{job} is not {goal} after {timeout:g} s.", TIMED_OUT
        if found is None:
            return f"{job} is gone.", 0 if goal == "deleted" else 1
        code = exit_code_of(found.state) if goal == "completed" else int(found.state.is_ended)
        return describe_result(found), code

    sentence, code = with_cluster(choice, work)
    click.echo(sentence)
    raise SystemExit(code)


async def wait_for_goal(cluster: Cluster, job: FoundJob, goal: str) -> FoundJob | None:
    """The job at its goal, or where it cannot come to it by itself; None for one that is gone."""
    from shoal.cli.job_actions import is_resuming
    from shoal.cli.job_table import job_status
    from shoal.cli.wait_for import until

    def is_reached(found: FoundJob | None) -> bool:
        if found is None:
            return True
        if goal == "deleted":
            return False
        if goal == "running" and job_status(found.state) == "running":
            return True
        return found.state.is_ended or (goal == "completed" and is_aborted(found))

    while True:
        found = await until(cluster, job, is_reached)
        if found is None or not is_aborted(found) or not await is_resuming(cluster, found):
            return found
        await until(cluster, job, lambda seen: seen is None or not is_aborted(seen))


def is_aborted(found: FoundJob) -> bool:
    """Held with a verdict, and at rest; a job whose file requests a pause has no verdict, and is waited for."""
    from shoal.engine import Stage

    state = found.state
    return state.is_held and state.run.outcome is not None and state.run.stage is Stage.OVER


def describe_result(found: FoundJob) -> str:
    """The state of the job; for one that failed or is held, also why, and what can be done."""
    from shoal.cli.describe_page import resume_hint
    from shoal.cli.job_table import job_status
    from shoal.cli.reasons import why_ended

    state, status = found.state, job_status(found.state)
    verb = "is" if not state.is_ended else "was" if status == "stopped" else "has"
    outcome = state.run.outcome
    has_reason = status in ("failed", "held") or (
        status == "stopped" and outcome is not None and outcome.trigger is not None
    )
    why = f": {why_ended(state, outcome)}" if has_reason and outcome is not None else ""
    hint = f" {resume_hint(found)}." if status == "held" else ""
    return f"{found} {verb} {status}{why}.{hint}"
