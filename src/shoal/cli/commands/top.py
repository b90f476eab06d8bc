"""`shoal top`: what the tasks of jobs use now, the busiest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from shoal.cli.context import Choice, cluster_options, with_cluster
from shoal.cli.job_lookup import complete_jobs

if TYPE_CHECKING:
    from shoal.cluster.kubernetes import KubernetesCluster

COLUMNS = ("JOB", "TASK", "CPU", "MEMORY", "NODE")


@click.command("top")
@click.argument("name", required=False, metavar="[JOB]", shell_complete=complete_jobs)
@cluster_options
def command(choice: Choice, name: str | None) -> None:
    """Show the CPU and memory usage of the tasks of jobs.

    Lists all jobs of the namespace, or one job; the busiest task first. CPU is in millicores, MEMORY in MiB, as in
    `kubectl top`.
    """
    from shoal.cli.job_table import format_table

    rows = with_cluster(choice, lambda cluster, namespace: usage_rows(cluster, namespace, name))
    if not rows:
        click.echo("No metrics available: no task is running, or none has been measured yet.", err=True)
        return
    shown = [[job, task, f"{cpu}m", f"{memory >> 20}Mi", node] for cpu, memory, job, task, node in rows]
    click.echo(format_table(shown, COLUMNS))


async def usage_rows(
    cluster: KubernetesCluster, namespace: str, name: str | None
) -> list[tuple[int, int, str, str, str]]:
    from shoal.cli.follow import head_of, task_of
    from shoal.cli.job_lookup import find_job, list_jobs
    from shoal.kube.errors import ApiError
    from shoal.kube.kinds import POD, Kind
    from shoal.kube.objects import name_of
    from shoal.kube.quantity import Quantity

    jobs = [await find_job(cluster, name, namespace)] if name is not None else await list_jobs(cluster, namespace)
    try:
        metrics = (await cluster.list(Kind("metrics.k8s.io", "v1beta1", "PodMetrics", "pods", True), namespace)).items
    except ApiError as refused:
        if refused.code not in (404, 503):
            raise
        raise click.ClickException(
            "the Metrics API is not available: this cluster does not serve metrics.k8s.io. On Kubernetes install "
            "metrics-server."
        ) from None
    used: dict[str, tuple[int, int]] = {}  # thousandths of a core, and bytes, of all containers
    for each in metrics:
        usage = [container["usage"] for container in each["containers"]]
        cpu = sum(Quantity.parse(str(one["cpu"])).milli() for one in usage)
        used[name_of(each)] = cpu, sum(Quantity.parse(str(one["memory"])).value() for one in usage)
    rows = []
    for pod in (await cluster.list(POD, namespace)).items:
        for job in jobs:
            ref = task_of(job, pod)
            if ref is not None and name_of(pod) in used:
                node = str(pod["spec"].get("nodeName") or "")
                rows.append((*used[name_of(pod)], job.name, head_of(job, ref, pod), node))
    return sorted(rows, key=lambda row: (-row[0], -row[1], *row[2:]))
