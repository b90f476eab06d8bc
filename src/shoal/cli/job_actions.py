"""What people do to a job that is there, as the one patch its language has for it."""

from __future__ import annotations

from collections.abc import Mapping

import click

from shoal.cli.job_lookup import FoundJob
from shoal.cluster.client import Cluster, DeleteOptions, DeletionPropagation, PatchType, Preconditions
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
    if job.dialect.scale_patch is None:
        raise click.ClickException(f"{job} cannot be scaled: its language has no word for it.")
    try:
        operations = job.dialect.scale_patch(job.manifest, sizes)
    except LookupError as unknown:
        raise click.ClickException(f"{job}: {unknown.args[0]}.") from None
    return bool(operations) and _generation_changed(job, await change(cluster, job, operations))


def why_unstoppable(job: FoundJob) -> str | None:
    """Why a job cannot be stopped and stay; None where it can."""
    if job.dialect.stop_patch is not None or job.dialect.commands is not None:
        return None
    sizes = " ".join(f"{role.name}=0" for role in job.state.roles)
    return (
        f"{job} cannot be stopped: its kind has no end. `shoal scale {job.name} {sizes}` sends its pods away, "
        f"`shoal delete {job.name}` ends it."
    )


async def stop(cluster: Cluster, job: FoundJob) -> bool:
    """Stop the job by its own API; a language without a stop has only the deletion.
    Returns whether it was not requested before."""
    if job.dialect.stop_patch is not None:
        return _generation_changed(job, await change(cluster, job, job.dialect.stop_patch(job.manifest)))
    if job.dialect.commands is not None:
        wanted = job.dialect.commands.stop(job.manifest)
        if job.state.run.intent is Intent.END or await _has_command(cluster, job, wanted):
            return False
        await _create_command(cluster, job, wanted)
        return True
    await delete(cluster, job, DeletionPropagation.FOREGROUND)
    return True


async def start(cluster: Cluster, job: FoundJob) -> bool:
    """Whether it was not started before."""
    if job.dialect.commands is not None:
        if not job.state.is_held:
            return False
        await _create_command(cluster, job, job.dialect.commands.start(job.manifest))
        return True
    if job.dialect.start_patch is None:
        raise click.ClickException(f"{job} needs no start: its language starts jobs when they are submitted.")
    return _generation_changed(job, await change(cluster, job, job.dialect.start_patch(job.manifest)))


async def is_resuming(cluster: Cluster, job: FoundJob) -> bool:
    """Whether a held job has since been commanded to resume or to end.

    The job state records a command before the command is deleted, so it is read last. Without the right to read
    commands there is only the job state.
    """
    commands = job.dialect.commands
    if commands is None:
        return False
    try:
        if await _has_command(cluster, job, commands.start(job.manifest), commands.stop(job.manifest)):
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


async def _create_command(cluster: Cluster, job: FoundJob, order: Obj) -> None:
    assert job.dialect.commands is not None
    await cluster.create(job.dialect.commands.kind, order, job.namespace)


async def _has_command(cluster: Cluster, job: FoundJob, *wanted: Obj) -> bool:
    """Whether an order to the same effect as one of these waits for the job's operator."""
    commands = job.dialect.commands
    assert commands is not None
    words = {commands.read(each, job.manifest).action for each in wanted}
    given = (await cluster.list(commands.kind, job.namespace)).items
    meant = [commands.read(each, job.manifest) for each in given if commands.target(each) == key_of(job.manifest)]
    return any(order.action in words and order.uid not in job.state.handled for order in meant)


def _generation_changed(before: FoundJob, after: FoundJob) -> bool:
    """Whether the job asks for something else than before; its status may change at any time."""
    return bool(before.manifest["metadata"].get("generation") != after.manifest["metadata"].get("generation"))


async def delete(cluster: Cluster, job: FoundJob, propagation: DeletionPropagation) -> None:
    exactly = Preconditions(uid=uid_of(job.manifest))
    await cluster.delete(
        job.dialect.kind, job.name, job.namespace, DeleteOptions(propagation=propagation, preconditions=exactly)
    )
