"""`shoal stop`: end a job for good, or suspend it where its language can; what it left stays to be looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from shoal.cli.context import Choice, cluster_options, with_cluster
from shoal.cli.job_lookup import job_argument

if TYPE_CHECKING:
    from shoal.cluster.kubernetes import KubernetesCluster


@click.command("stop")
@job_argument
@cluster_options
def command(choice: Choice, name: str) -> None:
    """Stop a job and keep its object.

    Its pods are terminated with their grace periods. A stopped job does not run again: delete it and submit it again. A
    batch Job is suspended instead: it keeps its successes, and `shoal start` resumes it. A ReplicaSet never completes
    and cannot be stopped: scale it to 0, or delete it.
    """
    from shoal.cli.job_actions import stop, why_unstoppable
    from shoal.cli.job_lookup import find_job
    from shoal.cli.job_table import job_status

    async def work(cluster: KubernetesCluster, namespace: str) -> str:
        job = await find_job(cluster, name, namespace)
        if job.state.is_ended:
            return f"{job} has ended already: {job_status(job.state)}."
        if (why := why_unstoppable(job)) is not None:
            raise click.ClickException(why)
        is_new = await stop(cluster, job)
        if job.stop_keeps_work:
            return f"{job} is {'' if is_new else 'already '}suspended. `shoal start {job.name}` resumes it."
        return f"{job} {'stops' if is_new else 'is stopping already'}. `shoal wait {job.name}` waits until it has."

    click.echo(with_cluster(choice, work, is_change=True))
