"""`shoal events`: the Events of a namespace, or of one job and its pods, the latest last."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from shoal.cli.context import Choice, cluster_options, with_cluster
from shoal.cli.job_lookup import complete_jobs

if TYPE_CHECKING:
    from shoal.cli.job_lookup import FoundJob
    from shoal.cluster.kubernetes import KubernetesCluster
    from shoal.kube.objects import Obj

COLUMNS = ("LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE")


@click.command("events")
@click.argument("name", required=False, metavar="[JOB]", shell_complete=complete_jobs)
@cluster_options
def command(choice: Choice, name: str | None) -> None:
    """List Events, the latest last.

    Lists all Events of the namespace, or those of one job and its pods, including pods that were deleted. `shoal
    describe JOB` explains them.
    """
    from shoal.cli.job_table import age, format_table

    async def work(cluster: KubernetesCluster, namespace: str) -> list[Obj]:
        from shoal.cli.job_lookup import find_job
        from shoal.kube.kinds import EVENT, POD

        events = (await cluster.list(EVENT, namespace)).items
        if name is None:
            return events
        job = await find_job(cluster, name, namespace)
        return events_of(job, events, (await cluster.list(POD, job.namespace)).items)

    found = sorted(with_cluster(choice, work), key=_last_seen)
    if not found:
        click.echo("No Events found.", err=True)
        return
    now, rows = datetime.now(UTC), []
    for event in found:
        about, count = event["involvedObject"], int(event.get("count") or 1)
        rows.append(
            [
                f"{age(_last_seen(event), now)}{f' (x{count})' if count > 1 else ''}",
                str(event.get("type") or ""),
                str(event.get("reason") or ""),
                f"{str(about.get('kind')).lower()}/{about.get('name')}",
                " ".join(str(event.get("message") or "").split()),
            ]
        )
    click.echo(format_table(rows, COLUMNS))


def events_of(job: FoundJob, events: Iterable[Obj], pods: Iterable[Obj]) -> list[Obj]:
    """The Events about the job and its pods. A deleted pod is recognized by its name: those of a job are
    JOB-ROLE-INDEX, or JOB and letters that the API server has drawn."""
    from shoal.cli.follow import task_of
    from shoal.kube.objects import uid_of

    owned = {uid_of(pod): task_of(job, pod) is not None for pod in pods}
    owned[uid_of(job.manifest)] = True
    roles = "|".join(re.escape(role.name) for role in job.state.roles)
    suffix = r"(\d+-)?[a-z0-9]{5}" if job.names is not None else rf"({roles})-\d+"
    pod_name = re.compile(rf"{re.escape(job.name)}-{suffix}")
    created = str(job.manifest["metadata"].get("creationTimestamp") or "")

    def is_about(event: Obj) -> bool:
        about = event["involvedObject"]
        is_deleted_pod = about.get("kind") == "Pod" and about.get("uid") not in owned
        if is_deleted_pod and pod_name.fullmatch(str(about.get("name"))):
            return _last_seen(event) >= created  # else of an earlier job with this name
        return owned.get(about.get("uid"), False)

    return [event for event in events if is_about(event)]


def _last_seen(event: Obj) -> str:
    meta = event["metadata"]
    return str(event.get("lastTimestamp") or event.get("eventTime") or meta.get("creationTimestamp") or "")
