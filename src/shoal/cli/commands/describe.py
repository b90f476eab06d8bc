"""`shoal describe`: the story of a job."""

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
    return "\n".join(line for each in page.splitlines() for line in _wrapped_line(each, width))


def _wrapped_line(line: str, width: int) -> list[str]:
    if len(line) <= width:
        return [line]
    margin = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.wrap(line, width, subsequent_indent=margin, break_on_hyphens=False, drop_whitespace=True)


async def load_context(cluster: Cluster, job: FoundJob, *, data: Path | None = None) -> DescribeContext:
    """What the story needs besides the job itself. `data`: where a cluster on this machine keeps logs of pods."""
    from shoal.cli.describe_page import DescribeContext
    from shoal.cli.last_failure import last_failure
    from shoal.kube.kinds import EVENT, POD
    from shoal.kube.objects import uid_of

    uid = uid_of(job.manifest)
    events = await cluster.list(EVENT, job.namespace, fields=f"involvedObject.uid={uid}")
    pods = [pod for pod in (await cluster.list(POD, job.namespace)).items if _is_of(pod, job)]
    failure = await last_failure(cluster, job, pods, data)
    anchor, owned = await _find_run_owner(cluster, job), await _list_owned_objects(cluster, job)
    return DescribeContext(pods, events.items, anchor, datetime.now(UTC), owned, failure)


def _is_of(pod: Obj, job: FoundJob) -> bool:
    return job.dialect.observe_pod(pod, job.manifest) is not None


async def _list_owned_objects(cluster: Cluster, job: FoundJob) -> tuple[Obj, ...]:
    """What the job owns besides pods, and what it may wait for; Secrets are nobody's business here."""
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


async def _find_run_owner(cluster: Cluster, job: FoundJob) -> Obj | None:
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
