"""`shoal describe`: what happened to a job, and what happens next."""

from __future__ import annotations

import shutil
import sys
import textwrap
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from shoal.cli.context import Choice, cluster_options, local_folder, with_cluster
from shoal.cli.job_lookup import job_argument

if TYPE_CHECKING:
    from pathlib import Path

    from shoal.cli.describe_page import DescribeContext
    from shoal.cli.job_lookup import FoundJob, JobCluster
    from shoal.cluster.client import Cluster
    from shoal.kube.objects import Obj


@click.command("describe")
@job_argument
@cluster_options
def command(choice: Choice, name: str) -> None:
    """Show what happened to a job, when and why, and what happens next."""
    from shoal.cli.describe_page import describe_job
    from shoal.cli.job_lookup import find_job

    async def work(cluster: JobCluster, namespace: str) -> str:
        job = await find_job(cluster, name, namespace)
        folder = local_folder(choice)
        return describe_job(job, await load_context(cluster, job, data=folder.path if folder is not None else None))

    page = with_cluster(choice, work)
    click.echo(wrapped(page, shutil.get_terminal_size().columns) if sys.stdout.isatty() else page)


def wrapped(page: str, width: int) -> str:
    """The page for a terminal of that width, its lines broken at spaces and continued below their text."""
    lines: list[str] = []
    for line in page.splitlines():
        margin = " " * (len(line) - len(line.lstrip()) + 2)
        long = textwrap.wrap(line, width, subsequent_indent=margin, break_on_hyphens=False, drop_whitespace=True)
        lines += [line] if len(line) <= width else long
    return "\n".join(lines)


async def load_context(cluster: Cluster, job: FoundJob, *, data: Path | None = None) -> DescribeContext:
    """What the description needs besides the job itself. `data`: where a cluster on this machine keeps logs of pods."""
    from shoal.cli.describe_page import DescribeContext
    from shoal.cli.last_failure import last_failure
    from shoal.kube.kinds import EVENT, POD
    from shoal.kube.objects import uid_of

    uid = uid_of(job.manifest)
    events = await cluster.list(EVENT, job.namespace, fields=f"involvedObject.uid={uid}")
    pods = (await cluster.list(POD, job.namespace)).items
    pods = [pod for pod in pods if job.dialect.observe_pod(pod, job.manifest) is not None]
    failure = await last_failure(cluster, job, pods, data)
    run_owner, owned = await find_run_owner(cluster, job), await list_owned_objects(cluster, job)
    return DescribeContext(pods, events.items, run_owner, datetime.now(UTC), owned, failure)


async def list_owned_objects(cluster: Cluster, job: FoundJob) -> tuple[Obj, ...]:
    """What the job owns besides pods, and what it may wait for, except Secrets."""
    from shoal.dialects.capabilities import OwnedObjects
    from shoal.kube.errors import ApiError
    from shoal.kube.kinds import SECRET

    found: list[Obj] = []
    owned = job.dialect.capability(OwnedObjects)
    for child in owned.children if owned is not None else ():
        if child.kind == SECRET:
            continue
        try:
            page = await cluster.list(child.kind, job.namespace, labels=child.labels)
        except ApiError as refused:
            if refused.code not in (403, 404):
                raise
            continue
        found += [{**item, "kind": child.kind.kind} for item in page.items]
    return tuple(found)


async def find_run_owner(cluster: Cluster, job: FoundJob) -> Obj | None:
    from shoal.dialects.capabilities import RunOwner
    from shoal.kube.errors import ApiError
    from shoal.kube.kinds import CONFIG_MAP

    owner = job.dialect.capability(RunOwner)
    if owner is None:
        return None
    try:
        return await cluster.get(CONFIG_MAP, owner.name(job.manifest), job.namespace)
    except ApiError as refused:
        if refused.code == 404:
            return None
        raise
