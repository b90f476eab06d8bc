"""Jobs by name: whatever language they are written in, people call them by their name alone."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from typing import Protocol

    from shoal.cluster.client import Cluster
    from shoal.cluster.kubeconfig import ConnectionConfig
    from shoal.dialects.capabilities import CompletionProgress, DisplayNames
    from shoal.dialects.dialect import Dialect
    from shoal.engine import Job, JobState
    from shoal.kube.objects import Obj

    class JobCluster(Cluster, Protocol):
        """A cluster that tells apart whose controllers run Kubernetes' own kinds of jobs."""

        async def is_embedded(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class FoundJob:
    """A job with its language."""

    manifest: Obj
    dialect: Dialect

    @property
    def name(self) -> str:
        return str(self.manifest["metadata"]["name"])

    @property
    def namespace(self) -> str:
        return str(self.manifest["metadata"]["namespace"])

    @property
    def state(self) -> JobState:
        """Raises StateUnreadable if another program wrote the status."""
        from shoal.dialects.capabilities import StatusProgress

        progress = self.dialect.capability(StatusProgress)
        return progress.status_state(self.manifest) if progress is not None else self.dialect.load_state(self.manifest)

    @property
    def job(self) -> Job | None:
        """What the manifest requests; None if it cannot be read, which the operator reports with an Event."""
        from shoal.dialects.dialect import ManifestInvalid

        try:
            return self.dialect.to_job(self.manifest, self.dialect.settings(None))
        except ManifestInvalid:
            return None

    @property
    def other_controller(self) -> str:
        """The controller that `spec.managedBy` names where that is not Shoal's; '' where Shoal runs the job."""
        from shoal.dialects.dialect import ManifestInvalid

        try:
            is_ours = self.dialect.to_job(self.manifest, self.dialect.settings(None)) is not None
        except ManifestInvalid:
            return ""
        return "" if is_ours else str(self.manifest["spec"]["managedBy"])

    @property
    def sizes(self) -> dict[str, int]:
        """How many tasks each role is to have."""
        job = self.job
        return {role.name: role.size for role in job.roles} if job is not None else {}

    @property
    def counts(self) -> CompletionProgress | None:
        """The progress of a job that requires a number of successes; None for all others. Raises like `state`."""
        from shoal.dialects.capabilities import StatusProgress

        progress = self.dialect.capability(StatusProgress)
        return progress.completion(self.manifest) if progress is not None else None

    @property
    def names(self) -> DisplayNames | None:
        """The display names of its pods where users identify them by something else than role and index."""
        from shoal.dialects.capabilities import DisplayNames

        return self.dialect.capability(DisplayNames)

    @property
    def stop_keeps_work(self) -> bool:
        """Whether a stopped job can be started again where it was."""
        from shoal.dialects.capabilities import Suspension

        suspension = self.dialect.capability(Suspension)
        return suspension is not None and suspension.keeps_work

    def __str__(self) -> str:
        return f"{self.dialect.kind.kind} {self.name}"


async def list_jobs(cluster: JobCluster, namespace: str | None) -> list[FoundJob]:
    """Every job of every language the cluster serves; languages it does not serve have none."""
    from shoal.dialects import dialects
    from shoal.dialects.gang_backends.delegate import with_recorded_backend
    from shoal.kube.errors import ApiError

    found: list[FoundJob] = []
    is_embedded = await cluster.is_embedded()
    for dialect in dialects():
        if dialect.embedded_only and not is_embedded:
            continue
        try:
            page = await cluster.list(dialect.kind, namespace)
        except ApiError as refused:
            if refused.code != 404:
                raise
            continue
        found += [FoundJob(item, with_recorded_backend(dialect, item)) for item in page.items]
    return found


class JobNotFound(click.ClickException):
    """No job of that name exists."""


async def find_job(cluster: JobCluster, word: str, namespace: str) -> FoundJob:
    """`pet`, or `framework/pet` where two languages have a job of that name."""
    kind, slash, name = word.rpartition("/")
    matching = []
    for job in await list_jobs(cluster, namespace):
        known = job.dialect.kind
        names = {known.kind.lower(), known.plural, known.singular, known.resource, *known.short_names}
        if job.name == name and (not slash or kind.lower() in names):
            matching.append(job)
    if not matching:
        raise JobNotFound(f"there is no job {word!r} in namespace {namespace}. `shoal get` lists them.")
    if len(matching) > 1:
        kinds = [job.dialect.kind for job in matching]
        words = [kind.kind.lower() for kind in kinds]
        if len(set(words)) < len(words):  # two languages with one word for a job
            words = [kind.resource for kind in kinds]
        choices = " or ".join(f"{word}/{name}" for word in words)
        raise click.ClickException(f"several jobs are called {name!r}: name one of them as {choices}.")
    return matching[0]


def complete_jobs(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Names for the shell; where there is no cluster there are none."""
    return [job.name for job in _listed(ctx) if job.name.startswith(incomplete)]


def complete_sizes(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """`worker=` for every role of the job that was named before."""
    words = (f"{role}=" for job in _named_before(ctx) for role in job.sizes)
    return [word for word in words if word.startswith(incomplete)]


def complete_tasks(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """The roles and tasks of the job that was named before."""
    words: list[str] = []
    for job in _named_before(ctx):
        for role, size in job.sizes.items():
            words += [role, *(f"{role}-{index}" for index in range(size))]
    return [word for word in words if word.startswith(incomplete)]


def _named_before(ctx: click.Context) -> list[FoundJob]:
    name = str(ctx.params.get("name") or "").rpartition("/")[2]
    return [job for job in _listed(ctx) if job.name == name]


def _listed(ctx: click.Context) -> list[FoundJob]:
    from click.core import ParameterSource

    from shoal.cli.context import Choice, connection_of
    from shoal.cluster.kubernetes import open_client
    from shoal.local.data_dir import default_folder

    params = ctx.params
    choice = Choice(
        params.get("folder") or default_folder(),
        params.get("kubeconfig"),
        params.get("context") or "",
        params.get("namespace") or "",
        ctx.get_parameter_source("folder") or ParameterSource.DEFAULT,
    )

    async def list_with(connection: ConnectionConfig) -> list[FoundJob]:
        async with open_client(connection) as cluster:
            return await list_jobs(cluster, choice.namespace or connection.namespace)

    try:
        return asyncio.run(list_with(connection_of(choice)))
    except Exception:  # the shell shows no message: there are no suggestions
        return []


job_argument = click.argument("name", metavar="JOB", shell_complete=complete_jobs)
