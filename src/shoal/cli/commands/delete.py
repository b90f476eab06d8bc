"""`shoal delete`: take a job away, its pods first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from shoal.cli.context import Choice, cluster_options, with_cluster
from shoal.cli.job_lookup import complete_jobs

if TYPE_CHECKING:
    from shoal.cli.job_lookup import FoundJob
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

    changed: list[FoundJob] = []

    async def work(cluster: KubernetesCluster, namespace: str) -> None:
        for name in names:
            job = await find_job(cluster, name, namespace)
            await delete(cluster, job, DeletionPropagation(cascade.capitalize()))
            changed.append(job)
            if waits:
                await wait_until_gone(cluster, job)
            click.echo(f"{job} {'is gone' if waits else 'is being deleted'}.")

    with_cluster(choice, work, is_change=True, changed=changed)
