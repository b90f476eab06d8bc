"""What people do to a job that is there, as the one patch its language has for it."""

from __future__ import annotations

from collections.abc import Mapping

import click

from shoal.cli.job_lookup import FoundJob
from shoal.cluster.client import Cluster, DeleteOptions, DeletionPropagation, PatchType, Preconditions
from shoal.dialects.capabilities import JobCommands, Scaling, Suspension
from shoal.engine import Intent
from shoal.kube.errors import ApiError
from shoal.kube.objects import Obj, key_of, uid_of


async def change(cluster: Cluster, job: FoundJob, operations: list[Obj]) -> FoundJob:
    """All operations or none, and only on the job that was looked at."""
    uid = {"op": "test", "path": "/metadata/uid", "value": uid_of(job.manifest)}
    changed = await cluster.patch(
        job.dialect.kind, job.name, job.namespace, patch=[uid, *operations], patch_type=PatchType.JSON
    )
    return FoundJob(changed, job.dialect)


async def scale(cluster: Cluster, job: FoundJob, sizes: Mapping[str, int]) -> bool:
    """Whether the job had another size before."""
    scaling = job.dialect.capability(Scaling)
    if scaling is None:
        raise click.ClickException(f"{job} cannot be scaled: its kind does not support it.")
    try:
        operations = scaling.patch(job.manifest, sizes)
    except LookupError as unknown:
        raise click.ClickException(f"{job}: {unknown.args[0]}.") from None
    return bool(operations) and _generation_changed(job, await change(cluster, job, operations))


def why_unstoppable(job: FoundJob) -> str | None:
    """Why a job cannot be stopped and stay; None where it can."""
    if job.dialect.capability(Suspension) is not None or job.dialect.capability(JobCommands) is not None:
        return None
    sizes = " ".join(f"{role.name}=0" for role in job.state.roles)
    return (
        f"{job} cannot be stopped: its kind never completes. `shoal scale {job.name} {sizes}` deletes its pods, "
        f"`shoal delete {job.name}` ends it."
    )


async def stop(cluster: Cluster, job: FoundJob) -> bool:
    """Stop the job by its own API; a language without a stop has only the deletion.
    Returns whether it was not requested before."""
    if (suspension := job.dialect.capability(Suspension)) is not None:
        return _generation_changed(job, await change(cluster, job, suspension.stop_patch(job.manifest)))
    if (commands := job.dialect.capability(JobCommands)) is not None:
        wanted = commands.stop(job.manifest)
        if job.state.run.intent is Intent.END or await _has_command(cluster, job, commands, wanted):
            return False
        await cluster.create(commands.kind, wanted, job.namespace)
        return True
    await delete(cluster, job, DeletionPropagation.FOREGROUND)
    return True


async def start(cluster: Cluster, job: FoundJob) -> bool:
    """Whether it was not started before."""
    if (commands := job.dialect.capability(JobCommands)) is not None:
        if not job.state.is_held:
            return False
        await cluster.create(commands.kind, commands.start(job.manifest), job.namespace)
        return True
    suspension = job.dialect.capability(Suspension)
    if suspension is None:
        raise click.ClickException(f"{job} needs no start: its kind starts when it is submitted.")
    return _generation_changed(job, await change(cluster, job, suspension.start_patch(job.manifest)))


async def is_resuming(cluster: Cluster, job: FoundJob) -> bool:
    """Whether a held job has since been commanded to resume or to end.

    The job state records a command before the command is deleted, so it is read last. Without the right to read
    commands there is only the job state.
    """
    commands = job.dialect.capability(JobCommands)
    if commands is None:
        return False
    try:
        if await _has_command(cluster, job, commands, commands.start(job.manifest), commands.stop(job.manifest)):
            return True
    except ApiError as refused:
        if refused.code not in (403, 404):
            raise
    try:
        now = await cluster.get(job.dialect.kind, job.name, job.namespace)
    except ApiError as refused:
        if refused.code != 404:
            raise
        return True  # there is no hold any more
    return uid_of(now) != uid_of(job.manifest) or not FoundJob(now, job.dialect).state.is_held


async def _has_command(cluster: Cluster, job: FoundJob, commands: JobCommands, *wanted: Obj) -> bool:
    """Whether an order to the same effect as one of these waits for the job's operator."""
    words = {commands.read(each, job.manifest).action for each in wanted}
    given = (await cluster.list(commands.kind, job.namespace)).items
    meant = [commands.read(each, job.manifest) for each in given if commands.target(each) == key_of(job.manifest)]
    return any(order.action in words and order.uid not in job.state.handled for order in meant)


def _generation_changed(before: FoundJob, after: FoundJob) -> bool:
    """Whether the job's spec differs from before; its status may change at any time."""
    return bool(before.manifest["metadata"].get("generation") != after.manifest["metadata"].get("generation"))


async def delete(cluster: Cluster, job: FoundJob, propagation: DeletionPropagation) -> None:
    exactly = Preconditions(uid=uid_of(job.manifest))
    await cluster.delete(
        job.dialect.kind, job.name, job.namespace, DeleteOptions(propagation=propagation, preconditions=exactly)
    )
