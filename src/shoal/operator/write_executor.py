"""Executes the engine's writes. Everything here happens after the job state is stored; nothing here decides.

A step's writes keep their order by phases: marks, deletes, what owns pods, pods, the job itself. Within a phase they
run in parallel, bounded for all jobs together; pods are created with care (`object_creator.py`). Every response goes
into the next pass.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Container, Iterable, Mapping
from enum import IntEnum
from itertools import groupby
from typing import Any

from shoal.cluster.client import Cluster, DeleteOptions, DeletionPropagation, OutcomeUnknown, PatchType, Preconditions
from shoal.controller_runtime.metrics import Metrics
from shoal.dialects.capabilities import DeletionMark, JobCommands, OwnedObjects, PodFinalizer, RunOwner
from shoal.dialects.dialect import Dialect
from shoal.engine import (
    Accepted,
    Apply,
    CommandRef,
    Create,
    Delete,
    Gone,
    GroupRef,
    JobRef,
    Mark,
    OwnedObjectRef,
    PatchPod,
    RemoveFinalizer,
    RunOwnerRef,
    TaskRef,
    Write,
    WriteResult,
)
from shoal.kube.errors import ApiError
from shoal.kube.kinds import CONFIG_MAP, POD, Kind
from shoal.kube.objects import Obj, key_of, name_of, namespace_of, uid_of
from shoal.operator.expectations import Expectations
from shoal.operator.job_index import JobIndex
from shoal.operator.live_lookup import find
from shoal.operator.object_creator import AT_ONCE, ObjectCreator
from shoal.operator.owned_object_writer import OwnedObjectWriter
from shoal.operator.related_objects import RelatedObjectIndex
from shoal.operator.write_results import TRANSIENT_ERRORS, DeletionPending, UnsupportedWrite, WriteResults


class WritePhase(IntEnum):
    MARKS = 0
    DELETES = 1
    OWNERS = 2
    PODS = 3
    JOB = 4


class WriteExecutor:
    """Executes the writes of one dialect's jobs."""

    def __init__(
        self,
        cluster: Cluster,
        dialect: Dialect,
        pods: JobIndex,
        related: RelatedObjectIndex,
        metrics: Metrics,
        rng: random.Random,
    ) -> None:
        self._cluster = cluster
        self._dialect = dialect
        self._run_owner = dialect.capability(RunOwner)
        self._owned_objects = dialect.capability(OwnedObjects)
        self._commands = dialect.capability(JobCommands)
        self._mark = dialect.capability(DeletionMark)
        self._finalizer = dialect.capability(PodFinalizer)
        self._pods = pods
        self._related = related
        self._metrics = metrics
        self._requests = asyncio.Semaphore(AT_ONCE)
        self._owned_writer = OwnedObjectWriter(cluster, dialect, related, self._counted)
        self._creator = ObjectCreator(cluster, dialect, self._owned_writer, self._counted, rng, requests=self._requests)

    async def carry_out(
        self,
        manifest: Obj,
        writes: Iterable[Write],
        *,
        expectations: Expectations,
        barred: Container[str] = frozenset(),
    ) -> WriteResults:
        """`barred` are roles whose rejection the engine has processed: each pod gets its own response."""
        results = WriteResults(expectations)
        for phase, several in groupby(writes, phase_of):
            if phase is WritePhase.PODS:
                creates = [write for write in several if isinstance(write, Create)]
                await self._creator.create_pods(manifest, creates, results, barred=barred)
            else:
                requests = [self._execute(manifest, write, results) for write in several]
                if len(requests) == 1:
                    await requests[0]  # the usual case needs no task
                else:
                    async with asyncio.TaskGroup() as group:
                        for request in requests:
                            group.create_task(request)
            if results.failure is not None and phase is WritePhase.MARKS:
                break  # no pod is deleted without a mark with the reason
        return results

    async def _execute(self, manifest: Obj, write: Write, results: WriteResults) -> None:
        async with self._requests:
            try:
                match write:
                    case Create():
                        await self._creator.create(manifest, write, results)
                    case Delete():
                        results.write_results.append(await self._delete(manifest, write))
                        results.is_urgent |= write.confirm
                    case PatchPod(uid, patch):
                        name = self._pods.name_of(uid)
                        if name is None:
                            raise OutcomeUnknown(f"the pod with uid {uid} is gone")
                        await self._patch_pod(manifest, name, _with_uid(patch, uid))
                    case Apply():
                        await self._apply(manifest, write, results)
                    case Mark(_, uid):
                        if self._mark is None:
                            raise UnsupportedWrite(f"{self._dialect.kind} has no mark for pods to be deleted")
                        if (name := self._pods.name_of(uid)) is not None:
                            await _unless_gone(self._patch_pod(manifest, name, _with_uid(self._mark.patch, uid)))
                    case RemoveFinalizer(_, uid):
                        await self.remove_finalizer(manifest, uid)
            except TRANSIENT_ERRORS as failure:
                results.failure = results.failure or failure

    async def _apply(self, manifest: Obj, apply: Apply, results: WriteResults) -> None:
        if self._owned_objects is None:
            raise UnsupportedWrite(f"{self._dialect.kind} has no form for {apply}")
        try:
            await self._owned_writer.apply(manifest, apply)
        except TRANSIENT_ERRORS as failure:
            results.failure_messages.append(self._owned_writer.failure_message(manifest, apply.target, failure))
            raise

    # Deleting

    async def _delete(self, manifest: Obj, delete: Delete) -> WriteResult:
        kind, name = self.locate(manifest, delete)
        if not name:
            return Gone(delete.target, delete.uid)
        options = DeleteOptions(
            grace_seconds=delete.grace_seconds,
            propagation=DeletionPropagation(delete.propagation.value) if delete.propagation is not None else None,
            preconditions=Preconditions(uid=delete.uid or None),
        )
        if delete.confirm:
            return await self._delete_and_confirm(manifest, delete, kind, name, options)
        if delete.grace_seconds is None and self._pods.is_marked_deleting(delete.uid):
            return Accepted(delete.target, delete.uid)
        request = self._cluster.delete(kind, name, namespace_of(manifest), options)
        if not await _unless_gone(self._counted(kind, "delete", request)):
            return Gone(delete.target, delete.uid)
        self._pods.mark_deleting(delete.uid)
        return Accepted(delete.target, delete.uid)

    async def _delete_and_confirm(
        self, manifest: Obj, delete: Delete, kind: Kind, name: str, options: DeleteOptions
    ) -> WriteResult:
        """Until a live read finds nothing of ours; caches do not count."""
        gone, namespace = Gone(delete.target, delete.uid), namespace_of(manifest)
        found = await find(self._cluster, kind, name, namespace)
        if found is None or not self._is_meant(manifest, delete, found):
            return gone
        exact = DeleteOptions(options.grace_seconds, options.propagation, Preconditions(uid=uid_of(found)))
        await _unless_gone(self._counted(kind, "delete", self._cluster.delete(kind, name, namespace, exact)))
        left = await find(self._cluster, kind, name, namespace)
        if left is None or not self._is_meant(manifest, delete, left):
            return gone
        raise DeletionPending(f"{kind.kind} {name} is still there after its deletion")

    def _is_meant(self, manifest: Obj, delete: Delete, found: Obj) -> bool:
        if delete.uid:
            return uid_of(found) == delete.uid
        owner = self._dialect.owner_of(found)
        return owner is not None and owner.uid == uid_of(manifest)

    def locate(self, manifest: Obj, delete: Delete) -> tuple[Kind, str]:
        """The kind and name of what is to be deleted; the name is '' where it no longer exists."""
        target = delete.target
        if isinstance(target, TaskRef):
            return POD, self._pods.name_of(delete.uid) or self._dialect.pod_name(manifest, target)
        if isinstance(target, RunOwnerRef) and self._run_owner is not None:
            return CONFIG_MAP, self._run_owner.name(manifest)
        if isinstance(target, JobRef):
            return self._dialect.kind, key_of(manifest).name
        if isinstance(target, GroupRef | OwnedObjectRef) and self._owned_objects is not None:
            kind, name = self._owned_objects.locate_object(manifest, target)
            return kind, self._related.name_of(delete.uid) or name
        if isinstance(target, CommandRef) and self._commands is not None:
            return self._commands.kind, self._related.command_named(target) or ""
        raise UnsupportedWrite(f"{self._dialect.kind} has no form for {target}")

    async def discard(self, commands: Iterable[Obj]) -> None:
        """Delete commands that have no job to act on."""
        assert self._commands is not None
        for command in commands:
            options = DeleteOptions(preconditions=Preconditions(uid=uid_of(command)))
            request = self._cluster.delete(self._commands.kind, name_of(command), namespace_of(command), options)
            await _unless_gone(self._counted(self._commands.kind, "delete", request))

    # Patching

    async def acknowledge_pods(self, manifest: Obj, results: WriteResults, *, are_up: bool, now: str) -> None:
        """After everything else: report to the gang schedulers."""
        try:
            await self._owned_writer.acknowledge_pods(manifest, are_up=are_up, now=now)
        except TRANSIENT_ERRORS as failure:
            results.failure = results.failure or failure

    async def remove_finalizer(self, manifest: Obj, uid: str) -> None:
        """Release a pod whose end is counted, or that will not be counted any more."""
        name = self._pods.name_of(uid)
        if name is None or self._finalizer is None:
            return
        patch = {"metadata": {"uid": uid, "$deleteFromPrimitiveList/finalizers": [self._finalizer.name]}}
        await _unless_gone(self._patch_pod(manifest, name, patch, PatchType.STRATEGIC))

    async def _patch_pod(self, manifest: Obj, name: str, patch: Obj, patch_type: PatchType = PatchType.MERGE) -> Obj:
        request = self._cluster.patch(POD, name, namespace_of(manifest), patch=patch, patch_type=patch_type)
        return await self._counted(POD, "patch", request)

    async def _counted(self, kind: Kind, verb: str, request: Awaitable[Obj]) -> Obj:
        self._metrics.count_write(kind, verb)
        return await request


def phase_of(write: Write) -> WritePhase:
    if isinstance(write, Create):
        return WritePhase.PODS if isinstance(write.target, TaskRef) else WritePhase.OWNERS
    if isinstance(write, Delete):
        return WritePhase.JOB if isinstance(write.target, JobRef) else WritePhase.DELETES
    return WritePhase.OWNERS if isinstance(write, Apply) else WritePhase.MARKS


async def _unless_gone(request: Awaitable[Obj]) -> bool:
    """Whether the object was still there; another one of its name does not count."""
    try:
        await request
    except ApiError as refused:
        if refused.code not in (404, 409):
            raise
        return False
    return True


def _with_uid(patch: Mapping[str, Any], uid: str) -> Obj:
    """The patch for the pod with that uid and no later one of its name."""
    return {**patch, "metadata": {**(patch.get("metadata") or {}), "uid": uid}}
