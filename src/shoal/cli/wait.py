"""`shoal wait`: until a job has got somewhere; the exit code says where."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from shoal.cli.jobs import job_argument
from shoal.cli.reaching import Choice, cluster_options, with_cluster

if TYPE_CHECKING:
    from shoal.cli.jobs import Found
    from shoal.cluster.kubernetes import KubernetesCluster

TIMED_OUT = 124


@click.command("wait")
@job_argument
@click.option(
    "--for", "goal", type=click.Choice(["completed", "running", "deleted"]), default="completed", show_default=True
)
@click.option("--timeout", type=click.FloatRange(0), metavar="SECONDS", help="How long at most.  [default: for ever]")
@cluster_options
def command(choice: Choice, name: str, goal: str, timeout: float | None) -> None:
    """Wait until a job has ended, runs, or is gone.

    Ends with the job's own exit code when waiting for its end (0 where it succeeded, the failed task's where a process
    can have that code, else 1), with 1 where the goal cannot be reached any more, and with 124 when time is up.
    """
    from shoal.cli.jobs import NoSuchJob, job_named
    from shoal.cli.views import exit_code_of
    from shoal.cli.waiting import until

    async def work(cluster: KubernetesCluster, namespace: str) -> tuple[str, int]:
        try:
            job = await job_named(cluster, name, namespace)
        except NoSuchJob:
            if goal != "deleted":
                raise
            return f"There is no job {name} in namespace {namespace}: it is gone.", 0
        try:
            async with asyncio.timeout(timeout):
                found = await until(cluster, job, _reached(goal))
        except TimeoutError:
            return f"{job} is not {goal} after {timeout:g} s.", TIMED_OUT
        if found is None:
            return f"{job} is gone.", 0 if goal == "deleted" else 1
        code = exit_code_of(found.state) if goal == "completed" else int(found.state.is_ended)
        return _told(found), code

    sentence, code = with_cluster(choice, work)
    click.echo(sentence)
    raise SystemExit(code)


def _told(found: Found) -> str:
    """How the job stands; of one that failed, also why."""
    from shoal.cli.reasons import why_ended
    from shoal.cli.views import job_word

    state, word = found.state, job_word(found.state)
    verb = "is" if not state.is_ended else "was" if word == "stopped" else "has"
    outcome = state.run.outcome
    is_told = outcome is not None and (word == "failed" or (word == "stopped" and outcome.trigger is not None))
    why = f": {why_ended(state, outcome)}" if is_told and outcome is not None else ""
    return f"{found} {verb} {word}{why}."


def _reached(goal: str) -> Callable[[Found | None], bool]:
    from shoal.cli.views import job_word

    def is_so(found: Found | None) -> bool:
        if found is None:
            return True
        if goal == "deleted":
            return False
        return found.state.is_ended or (goal == "running" and job_word(found.state) == "running")

    return is_so
