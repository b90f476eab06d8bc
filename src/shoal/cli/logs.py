"""`shoal logs`: what the tasks of a job print, each line behind its task's name."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from shoal.cli.jobs import job_argument
from shoal.cli.reaching import Choice, cluster_options, with_cluster

if TYPE_CHECKING:
    from shoal.cluster.kubernetes import KubernetesCluster
    from shoal.cluster.port import LogOptions
    from shoal.kube.objects import Key


@click.command("logs")
@job_argument
@click.argument("tasks", nargs=-1, metavar="[TASK]...")
@click.option("-f", "--follow", is_flag=True, help="Go on until the tasks end.")
@click.option("--tail", type=click.IntRange(0), metavar="LINES", help="Only the last lines of each task.")
@click.option("-c", "--container", default="", metavar="NAME", help="Another container than the first.")
@click.option("--previous", is_flag=True, help="Of the container's run before its last restart.")
@click.option("--timestamps", is_flag=True, help="With the time of each line.")
@click.option("--prefix/--no-prefix", default=True, show_default=True, help="The task's name before each line.")
@cluster_options
def command(
    choice: Choice,
    name: str,
    tasks: tuple[str, ...],
    follow: bool,
    tail: int | None,
    container: str,
    previous: bool,
    timestamps: bool,
    prefix: bool,
) -> None:
    """Print the logs of a job's tasks.

    TASK is a role (worker) or one of its tasks (worker-0); without one, all of them. Pods that are gone have taken
    their logs with them.
    """
    from shoal.cluster.port import LogOptions

    options = LogOptions(container, follow, previous, tail, timestamps=timestamps)

    async def work(cluster: KubernetesCluster, namespace: str) -> None:
        await _print(cluster, namespace, name, tasks, options, prefix=prefix)

    with_cluster(choice, work)


async def _print(
    cluster: KubernetesCluster, namespace: str, name: str, tasks: tuple[str, ...], options: LogOptions, *, prefix: bool
) -> None:
    from shoal.cli.jobs import job_named

    job = await job_named(cluster, name, namespace)
    pods = await _pods(cluster, job, tasks)
    if not pods:
        which = f" for {', '.join(tasks)}" if tasks else ""
        raise click.ClickException(f"{job} has no pods{which} now; logs go with their pods.")
    width = max(len(task) for task in pods)
    async with asyncio.TaskGroup() as group:
        for task, key in pods.items():
            head = f"{task.ljust(width)} | " if prefix and len(pods) > 1 else ""
            group.create_task(_one(cluster, key, options, head))


async def _pods(cluster: KubernetesCluster, job: object, tasks: tuple[str, ...]) -> dict[str, Key]:
    from shoal.cli.following import task_of
    from shoal.cli.jobs import Found
    from shoal.kube.kinds import POD
    from shoal.kube.objects import key_of

    assert isinstance(job, Found)
    found = {}
    for pod in (await cluster.list(POD, job.namespace)).items:
        ref = task_of(job, pod)
        if ref is not None and (not tasks or str(ref) in tasks or ref.role in tasks):
            found[ref] = key_of(pod)
    return {str(ref): found[ref] for ref in sorted(found)}


async def _one(cluster: KubernetesCluster, key: Key, options: LogOptions, head: str) -> None:
    from shoal.cli.following import lines
    from shoal.kube.errors import ApiError

    try:
        async for line in lines(cluster, key, options):
            click.echo(f"{head}{line}")
    except ApiError as refused:
        click.echo(f"{head}({refused.message})", err=True)
