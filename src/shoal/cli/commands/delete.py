"""`shoal delete`: delete jobs, their pods first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from shoal.cli.context import Choice, cluster_options, connection_of, print_cluster, with_cluster
from shoal.cli.job_lookup import complete_jobs

if TYPE_CHECKING:
    from shoal.cluster.kubernetes import KubernetesCluster


@click.command("delete")
@click.argument("names", nargs=-1, required=True, metavar="JOB...", shell_complete=complete_jobs)
@click.option(
    "--cascade", type=click.Choice(["foreground", "background", "orphan"]), default="foreground", show_default=True,
    help="Delete the pods first, the job first, or the job only.",
)  # fmt: skip
@click.option("--wait/--no-wait", "waits", default=True, show_default=True, help="Wait until the jobs are deleted.")
@cluster_options
def command(choice: Choice, names: tuple[str, ...], cascade: str, waits: bool) -> None:
    """Delete jobs."""
    from shoal.cli.job_actions import delete
    from shoal.cli.job_lookup import find_job
    from shoal.cli.wait_for import wait_until_gone
    from shoal.cluster.client import DeletionPropagation

    async def work(cluster: KubernetesCluster, namespace: str) -> None:
        for number, name in enumerate(names):
            job = await find_job(cluster, name, namespace)
            await delete(cluster, job, DeletionPropagation(cascade.capitalize()))
            if number == 0:  # before the first result, as other commands do
                print_cluster(connection_of(choice))
            if waits:
                await wait_until_gone(cluster, job)
            click.echo(f"{job} {'deleted' if waits else 'is being deleted'}.")

    with_cluster(choice, work)
