"""`shoal scale`: more or fewer tasks, in the one patch the job's language requires."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from shoal.cli.context import Choice, cluster_options, with_cluster
from shoal.cli.job_lookup import complete_sizes, job_argument

if TYPE_CHECKING:
    from shoal.cluster.kubernetes import KubernetesCluster


@click.command("scale")
@job_argument
@click.argument("sizes", nargs=-1, required=True, metavar="ROLE=NUMBER...", shell_complete=complete_sizes)
@cluster_options
def command(choice: Choice, name: str, sizes: tuple[str, ...]) -> None:
    """Set a new number of tasks for a role.

    Counts that depend on the number change in the same patch: if a Framework required all of its workers to
    succeed, the required count becomes the new number; if minAvailable of a Job equalled the number of its pods, it
    becomes the new number. A minimum larger than the number of pods is lowered, and restored when the number rises
    again.

    \b
    shoal scale pet worker=2
    """
    from shoal.cli.job_actions import scale
    from shoal.cli.job_lookup import find_job

    wanted: dict[str, int] = {}
    for pair in sizes:
        role, separator, number = pair.partition("=")
        if not separator or not role or not number.isascii() or not number.isdigit():
            raise click.UsageError(f"{pair!r} should be ROLE=NUMBER, for example worker=2.")
        wanted[role] = int(number)

    async def work(cluster: KubernetesCluster, namespace: str) -> str:
        job = await find_job(cluster, name, namespace)
        if job.state.is_ended:
            raise click.ClickException(
                f"{job} has ended and cannot be scaled. To run it again, `shoal delete {job.name}` and submit it again."
            )
        is_new = await scale(cluster, job, wanted)
        sizes = ", ".join(f"{number} x {role}" for role, number in wanted.items())
        return f"{job} scaled to {sizes}." if is_new else f"{job} already has {sizes}: nothing was changed."

    click.echo(with_cluster(choice, work, is_change=True))
