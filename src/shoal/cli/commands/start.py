"""`shoal start`: let a job run that was only created, or go on that is held."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from shoal.cli.context import Choice, cluster_options, with_cluster
from shoal.cli.job_lookup import job_argument

if TYPE_CHECKING:
    from shoal.cluster.kubernetes import KubernetesCluster


@click.command("start")
@job_argument
@cluster_options
def command(choice: Choice, name: str) -> None:
    """Start a job that was created without being started, or resume one that is held.

    Starts a Framework with executionType Create; resumes a Volcano Job that was aborted and a batch Job that is
    suspended. Tasks that have succeeded are not run again.
    """
    from shoal.cli.job_actions import start
    from shoal.cli.job_lookup import find_job
    from shoal.cli.job_table import job_status

    async def work(cluster: KubernetesCluster, namespace: str) -> str:
        job = await find_job(cluster, name, namespace)
        if job.state.is_ended:
            raise click.ClickException(
                f"{job} has ended; to run it again, `shoal delete {job.name}` and submit it again."
            )
        if await start(cluster, job):
            return f"{job} {'is resumed' if job.state.is_held else 'starts'}."
        return f"{job} needs no start: it is {job_status(job.state)}."

    click.echo(with_cluster(choice, work, is_change=True))
