"""`shoal get`: the jobs of a cluster, a line each."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from shoal.cli.context import Choice, cluster_options, with_cluster
from shoal.cli.job_lookup import complete_jobs

if TYPE_CHECKING:
    from shoal.cli.job_lookup import FoundJob
    from shoal.cluster.kubernetes import KubernetesCluster


@click.command("get")
@click.argument("names", nargs=-1, metavar="[JOB]...", shell_complete=complete_jobs)
@click.option("-A", "--all-namespaces", is_flag=True, help="List the jobs of all namespaces.")
@click.option(
    "-o", "--output", type=click.Choice(["table", "yaml", "json", "name"]), default="table", show_default=True
)
@cluster_options
def command(choice: Choice, names: tuple[str, ...], all_namespaces: bool, output: str) -> None:
    """List jobs of every job language."""
    from shoal.cli.job_lookup import find_job, list_jobs
    from shoal.cli.job_table import JOB_COLUMNS, format_objects, format_table, job_row

    async def work(cluster: KubernetesCluster, namespace: str) -> list[FoundJob]:
        if names:
            return [await find_job(cluster, name, namespace) for name in names]
        return await list_jobs(cluster, None if all_namespaces else namespace)

    found = with_cluster(choice, work)
    if output in ("yaml", "json"):
        click.echo(format_objects([job.manifest for job in found], output))
    elif output == "name":
        for job in found:
            click.echo(f"{job.dialect.kind.kind.lower()}/{job.name}")
    elif not found:
        click.echo("No jobs found. `shoal submit FILE` submits one.", err=True)
    else:
        now = datetime.now(UTC)
        if all_namespaces:
            rows = [[job.namespace, *job_row(job, now)] for job in found]
            click.echo(format_table(rows, ("NAMESPACE", *JOB_COLUMNS)))
        else:
            click.echo(format_table([job_row(job, now) for job in found], JOB_COLUMNS))
