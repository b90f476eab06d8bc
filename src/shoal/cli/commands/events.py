"""`shoal events`: the Events of a namespace, or of one job and its pods, the latest last."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from shoal.cli.context import Choice, cluster_options, with_cluster
from shoal.cli.job_lookup import complete_jobs

if TYPE_CHECKING:
    from shoal.cluster.kubernetes import KubernetesCluster
    from shoal.kube.objects import Obj

COLUMNS = ("LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE")


@click.command("events")
@click.argument("name", required=False, metavar="[JOB]", shell_complete=complete_jobs)
@cluster_options
def command(choice: Choice, name: str | None) -> None:
    """List Events, the latest last.

    Lists all Events of the namespace, or those of one job and its pods. `shoal describe JOB` explains them.
    """
    from shoal.cli.job_table import format_table

    async def work(cluster: KubernetesCluster, namespace: str) -> list[Obj]:
        from shoal.cli.follow import task_of
        from shoal.cli.job_lookup import find_job
        from shoal.kube.kinds import EVENT, POD
        from shoal.kube.objects import uid_of

        events = (await cluster.list(EVENT, namespace)).items
        if name is None:
            return events
        job = await find_job(cluster, name, namespace)
        pods = (await cluster.list(POD, job.namespace)).items
        uids = {uid_of(job.manifest), *(uid_of(pod) for pod in pods if task_of(job, pod) is not None)}
        return [event for event in events if event["involvedObject"].get("uid") in uids]

    found = sorted(with_cluster(choice, work), key=_last_seen)
    if not found:
        click.echo("There are no Events.", err=True)
        return
    now = datetime.now(UTC)
    click.echo(format_table([_row(event, now) for event in found], COLUMNS))


def _last_seen(event: Obj) -> str:
    meta = event["metadata"]
    return str(event.get("lastTimestamp") or event.get("eventTime") or meta.get("creationTimestamp") or "")


def _row(event: Obj, now: datetime) -> list[str]:
    from shoal.cli.job_table import age

    about, count = event["involvedObject"], int(event.get("count") or 1)
    often = f" (x{count})" if count > 1 else ""
    message = " ".join(str(event.get("message") or "").split())
    return [
        f"{age(_last_seen(event), now)}{often}",
        str(event.get("type") or ""),
        str(event.get("reason") or ""),
        f"{str(about.get('kind')).lower()}/{about.get('name')}",
        message,
    ]
