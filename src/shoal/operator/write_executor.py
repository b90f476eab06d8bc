"""Executes the engine's writes. Everything here happens after the job state is stored; nothing here decides.

A step's writes keep their order by phases: marks, deletes, what owns pods, pods, the job itself. Within a phase they
run in parallel, bounded for all jobs together. Pods are created one at first, and one more at a time with each that is
created, and half as many after a rejection: a template that is never accepted does not flood the server. A rejection
keeps another task from its try only where it holds for the whole role: while a quota is full, and where such a pod is
forbidden until the engine has processed the first rejection, which may well end the job. Every response becomes a
receipt for the next pass; a request with an unknown outcome counts as rejected with code 0.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import groupby
from typing import Any

from shoal.cluster.client import (
    Cluster,
    DeleteOptions,
    DeletionPropagation,
    OutcomeUnknown,
    PatchType,
    Preconditions,
)
from shoal.controller_runtime.metrics import Metrics
from shoal.dialects.capabilities import (
    DeletionMark,
    DisplayNames,
    Gangs,
    JobCommands,
    OwnedObjects,
    PodFinalizer,
    RunOwner,
)
from shoal.dialects.dialect import Dialect
from shoal.engine import (
    Accepted,
    Apply,
    CommandRef,
    Create,
    Created,
    Delete,
    Gone,
    GroupRef,
    JobRef,
    Mark,
    Notification,
    OwnedObjectRef,
    PatchPod,
    Refused,
    RemoveFinalizer,
    RunOwnerRef,
    TaskRef,
    Write,
    WriteResult,
)
from shoal.kube import names
from shoal.kube.errors import ApiError
from shoal.kube.job_annotations import JOB, JOB_UID, PROJECT, TASK
from shoal.kube.kinds import CONFIG_MAP, POD, Kind
from shoal.kube.objects import Key, Obj, annotations_of, key_of, name_of, namespace_of, uid_of
from shoal.operator.expectations import Expectations
from shoal.operator.owned_informers import OwnedInformer
from shoal.operator.related_objects import OwnedInformers, OwnedWriter

AT_ONCE = 64
TRANSIENT_ERRORS = (ApiError, OutcomeUnknown, OSError)
FORBIDDEN = 403
UNAVAILABLE = 503
QUOTA = "exceeded quota"  # text in the error of the quota admission


class UnsupportedWrite(Exception):
    """The engine requests something this dialect has no form for: a bug of Shoal."""


class DeletionPending(OutcomeUnknown):
    """A deletion that has to be confirmed is not over yet."""


class WritePhase(IntEnum):
    MARKS = 0
    DELETES = 1
    OWNERS = 2
    PODS = 3
    JOB = 4


@dataclass(slots=True)
class WriteResults:
    """What became of a step's writes."""

    expectations: Expectations  # of the job: a create whose response was lost is repeated under its name
    write_results: list[WriteResult] = field(default_factory=list)
    refused: list[Create] = field(default_factory=list)
    made: list[Create] = field(default_factory=list)
    quota_exceeded: dict[str, Refused] = field(default_factory=dict)  # roles with an exhausted quota
    barred: dict[str, Refused] = field(default_factory=dict)  # roles whose pods are forbidden
    withheld: list[TaskRef] = field(default_factory=list)  # not requested: they would be refused like another
    name_conflicts: list[Key] = field(default_factory=list)  # pod names that another owner's pods have
    failure_messages: list[Notification] = field(default_factory=list)  # what users should see
    pod_fitter: Callable[[Obj, str], None] | None = None  # a body of a role to what its group was granted
    failure: Exception | None = None  # the first request that failed; the pass is tried again
    is_urgent: bool = False  # the engine needs it at once: no watch event will follow


class WriteExecutor:
    """Carries out the writes of one dialect's jobs."""

    def __init__(
        self,
        cluster: Cluster,
        dialect: Dialect,
        pods: OwnedInformer,
        owned: OwnedInformers,
        metrics: Metrics,
        rng: random.Random,
    ) -> None:
        self._cluster = cluster
        self._rng = rng
        self._dialect = dialect
        self._run_owner = dialect.capability(RunOwner)
        self._owned_objects = dialect.capability(OwnedObjects)
        self._gangs = dialect.capability(Gangs)
        self._commands = dialect.capability(JobCommands)
        self._display_names = dialect.capability(DisplayNames)
        self._pods = pods
        self._owned = owned
        self._owned_writer = OwnedWriter(cluster, dialect, owned, self._counted)
        self._metrics = metrics
        self._at_once = asyncio.Semaphore(AT_ONCE)

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
        for phase, several in groupby(writes, _phase):
            if phase is WritePhase.PODS:
                creates = list(several)
                if await self._is_fitted(manifest, creates, results):
                    await self._create_slow_start(manifest, creates, results, barred)
            else:
                await self._side_by_side([self._one(manifest, write, results) for write in several])
            if results.failure is not None and phase is WritePhase.MARKS:
                break  # no pod is deleted without a mark with the reason
        return results

    async def _is_fitted(self, manifest: Obj, creates: Sequence[Write], results: WriteResults) -> bool:
        """Whether it could be read what pods have to be fitted to; else each create is refused, and requested again."""
        if self._gangs is None or self._gangs.cluster_lookups is None:
            return True
        asked = [write for write in creates if isinstance(write, Create)]
        roles = {create.target.role for create in asked if isinstance(create.target, TaskRef)}
        try:
            results.pod_fitter = await self._owned_writer.make_pod_fitter(manifest, roles)
        except TRANSIENT_ERRORS as failure:
            why = f"what its gang was granted cannot be read: {failure}"
            results.refused += asked
            results.write_results += [Refused(create.target, UNAVAILABLE, why) for create in asked]
            results.is_urgent = True
            return False
        return True

    async def _create_slow_start(
        self, manifest: Obj, creates: Sequence[Write], results: WriteResults, barred: Container[str]
    ) -> None:
        """No wait for the slowest of a batch: a finished worker takes the next create and starts another worker."""
        left, workers, wanted = deque(creates), 1, 1

        async def work() -> None:
            nonlocal workers, wanted
            while (create := _next_of(left, results, barred)) is not None:
                await self._one(manifest, create, results)
                is_refused = bool(results.refused) and results.refused[-1] is create
                wanted = max(wanted // 2, 1) if is_refused else min(wanted + 1, AT_ONCE)
                if workers > wanted:
                    break
                while left and workers < wanted:
                    workers += 1
                    group.create_task(work())
            workers -= 1

        async with asyncio.TaskGroup() as group:
            group.create_task(work())

    async def _side_by_side(self, requests: list[Awaitable[None]]) -> None:
        if len(requests) == 1:
            await requests[0]
            return
        async with asyncio.TaskGroup() as group:
            for request in requests:
                group.create_task(_run(request))

    async def _one(self, manifest: Obj, write: Write, results: WriteResults) -> None:
        async with self._at_once:
            try:
                match write:
                    case Create():
                        await self._create(manifest, write, results)
                    case Delete():
                        results.write_results.append(await self._delete(manifest, write))
                        results.is_urgent |= write.confirm
                    case PatchPod(uid, patch):
                        name = self._name_of(uid)
                        await self._patch(POD, manifest, name, {**patch, "metadata": _with_uid(patch, uid)})
                    case Apply():
                        await self._apply(manifest, write, results)
                    case Mark(_, uid):
                        await self._mark(manifest, uid)
                    case RemoveFinalizer(_, uid):
                        await self.free(manifest, uid)
            except TRANSIENT_ERRORS as failure:
                results.failure = results.failure or failure

    # Creating

    async def _create(self, manifest: Obj, create: Create, results: WriteResults) -> None:
        kind, obj = self._build(manifest, create)
        if results.pod_fitter is not None and isinstance(create.target, TaskRef):
            results.pod_fitter(obj, create.target.role)
        results.is_urgent = True
        expected_name = results.expectations.expected_name(create.target)
        self._set_name(obj, expected_name)
        if isinstance(create.target, TaskRef):
            self._annotate(obj, manifest, create.target)
        try:
            made = await self._made(kind, obj, manifest, is_expected=bool(expected_name))
        except ApiError as refused:
            results.refused.append(create)
            answer = Refused(create.target, refused.code, refused.message)
            results.write_results.append(answer)
            if refused.code == FORBIDDEN and isinstance(create.target, TaskRef):
                same = results.quota_exceeded if QUOTA in refused.message else results.barred
                same.setdefault(create.target.role, answer)
            if refused.reason == "AlreadyExists":
                results.expectations.creation_answered(create.target)  # it is another owner's
            if refused.reason == "AlreadyExists" and kind == POD:
                results.name_conflicts.append(Key(namespace_of(manifest), obj["metadata"]["name"]))
        except (OutcomeUnknown, OSError) as unknown:
            if obj["metadata"].get("generateName"):
                results.expectations.expect_creation(create.target, obj["metadata"]["name"])
            results.refused.append(create)
            results.write_results.append(Refused(create.target, 0, str(unknown)))
        else:
            results.expectations.creation_answered(create.target)
            results.made.append(create)
            results.write_results.append(Created(create.target, uid_of(made)))

    def _set_name(self, obj: Obj, expected_name: str) -> None:
        """Generate the rest of a name here and not at the server: a create whose response was lost is repeated under
        the same name, and so finds out whether the object exists already."""
        meta = obj["metadata"]
        if meta.get("generateName") and not meta.get("name"):
            meta["name"] = expected_name or names.generate(meta["generateName"], self._rng)

    def _annotate(self, pod: Obj, manifest: Obj, ref: TaskRef) -> None:
        """Name the job and the task on the pod: its node keeps their logs together when the pod is gone."""
        kind, names = self._dialect.kind, self._display_names
        project = annotations_of(manifest).get(PROJECT)
        pod["metadata"]["annotations"] = {
            **annotations_of(pod),
            JOB: f"{'.'.join(filter(None, (kind.kind, kind.group)))}/{key_of(manifest).name}",
            JOB_UID: uid_of(manifest),
            **({PROJECT: project} if project is not None else {}),
            TASK: (names.of(pod, manifest) if names is not None else "") or str(ref),
        }

    async def _made(self, kind: Kind, obj: Obj, manifest: Obj, *, is_expected: bool) -> Obj:
        namespace, name = namespace_of(manifest), obj["metadata"]["name"]
        try:
            return await self._counted(kind, "create", self._cluster.create(kind, obj, namespace))
        except ApiError as refused:
            found = None
            if is_expected and refused.reason == "AlreadyExists":
                found = await find(self._cluster, kind, name, namespace)
            owner = self._dialect.owner_of(found) if found is not None else None
            if found is None or owner is None or owner.uid != uid_of(manifest):
                raise
            return found

    def _build(self, manifest: Obj, create: Create) -> tuple[Kind, Obj]:
        if isinstance(create.target, TaskRef):
            return POD, self._dialect.build_pod(manifest, create)
        if isinstance(create.target, RunOwnerRef) and self._run_owner is not None:
            return CONFIG_MAP, self._run_owner.build(manifest, create)
        raise UnsupportedWrite(f"{self._dialect.kind} has no form for {create.target}")

    # Deleting

    async def _delete(self, manifest: Obj, delete: Delete) -> WriteResult:
        kind, name = self._target_of(manifest, delete)
        if not name:
            return Gone(delete.target, delete.uid)
        options = DeleteOptions(
            grace_seconds=delete.grace_seconds,
            propagation=DeletionPropagation(delete.propagation.value) if delete.propagation is not None else None,
            preconditions=Preconditions(uid=delete.uid or None),
        )
        if delete.confirm:
            return await self._delete_and_look(manifest, delete, kind, name, options)
        if delete.grace_seconds is None and self._pods.is_marked_deleting(delete.uid):
            return Accepted(delete.target, delete.uid)
        try:
            await self._counted(kind, "delete", self._cluster.delete(kind, name, namespace_of(manifest), options))
        except ApiError as refused:
            if refused.code not in (404, 409):
                raise
            return Gone(delete.target, delete.uid)  # or another one has its name
        self._pods.mark_deleting(delete.uid)
        return Accepted(delete.target, delete.uid)

    async def _delete_and_look(
        self, manifest: Obj, delete: Delete, kind: Kind, name: str, options: DeleteOptions
    ) -> WriteResult:
        """Until a live look finds nothing of ours; caches do not count."""
        gone, namespace = Gone(delete.target, delete.uid), namespace_of(manifest)
        found = await find(self._cluster, kind, name, namespace)
        if found is None or not self._is_meant(manifest, delete, found):
            return gone
        exact = DeleteOptions(options.grace_seconds, options.propagation, Preconditions(uid=uid_of(found)))
        try:
            await self._counted(kind, "delete", self._cluster.delete(kind, name, namespace, exact))
        except ApiError as refused:
            if refused.code not in (404, 409):
                raise
        left = await find(self._cluster, kind, name, namespace)
        if left is None or not self._is_meant(manifest, delete, left):
            return gone
        raise DeletionPending(f"{kind.kind} {name} is still there after its deletion")

    def _is_meant(self, manifest: Obj, delete: Delete, found: Obj) -> bool:
        if delete.uid:
            return uid_of(found) == delete.uid
        owner = self._dialect.owner_of(found)
        return owner is not None and owner.uid == uid_of(manifest)

    def _target_of(self, manifest: Obj, delete: Delete) -> tuple[Kind, str]:
        target = delete.target
        if isinstance(target, TaskRef):
            return POD, self._pods.name_of(delete.uid) or self._dialect.pod_name(manifest, target)
        if isinstance(target, RunOwnerRef) and self._run_owner is not None:
            return CONFIG_MAP, self._run_owner.name(manifest)
        if isinstance(target, JobRef):
            return self._dialect.kind, key_of(manifest).name
        if isinstance(target, GroupRef | OwnedObjectRef) and self._owned_objects is not None:
            kind, name = self._owned_objects.locate_object(manifest, target)
            return kind, self._owned.name_of(delete.uid) or name
        if isinstance(target, CommandRef) and self._commands is not None:
            return self._commands.kind, self._owned.command_named(target) or ""  # '': it no longer exists
        raise UnsupportedWrite(f"{self._dialect.kind} has no form for {target}")

    async def discard(self, commands: Iterable[Obj]) -> None:
        """Delete commands that have no job to act on."""
        assert self._commands is not None
        for command in commands:
            options = DeleteOptions(preconditions=Preconditions(uid=uid_of(command)))
            kind, name, namespace = self._commands.kind, name_of(command), namespace_of(command)
            try:
                await self._counted(kind, "delete", self._cluster.delete(kind, name, namespace, options))
            except ApiError as refused:
                if refused.code not in (404, 409):
                    raise

    # Groups, owned objects and marks

    async def acknowledge_pods(self, manifest: Obj, results: WriteResults, *, are_up: bool, now: str) -> None:
        """After everything else: report to the gang schedulers."""
        try:
            await self._owned_writer.acknowledge_pods(manifest, are_up=are_up, now=now)
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

    async def _mark(self, manifest: Obj, uid: str) -> None:
        """That the controller sends the pod away; one that has gone needs no mark."""
        name, mark = self._pods.name_of(uid), self._dialect.capability(DeletionMark)
        if mark is None:
            raise UnsupportedWrite(f"{self._dialect.kind} has no mark for doomed pods")
        if name is None:
            return
        try:
            await self._patch(POD, manifest, name, {**mark.patch, "metadata": _with_uid(mark.patch, uid)})
        except ApiError as refused:
            if refused.code not in (404, 409):
                raise

    async def free(self, manifest: Obj, uid: str) -> None:
        """Remove our finalizer from a pod whose end is counted, or that will not be counted any more."""
        name, finalizer = self._pods.name_of(uid), self._dialect.capability(PodFinalizer)
        if name is None or finalizer is None:
            return
        patch = {"metadata": {"uid": uid, "$deleteFromPrimitiveList/finalizers": [finalizer.name]}}
        request = self._cluster.patch(POD, name, namespace_of(manifest), patch=patch, patch_type=PatchType.STRATEGIC)
        try:
            await self._counted(POD, "patch", request)
        except ApiError as refused:
            if refused.code not in (404, 409):
                raise

    # Small ones

    def _name_of(self, uid: str) -> str:
        name = self._pods.name_of(uid)
        if name is None:
            raise OutcomeUnknown(f"the pod with uid {uid} is gone")
        return name

    async def _patch(self, kind: Kind, manifest: Obj, name: str, patch: Obj) -> None:
        await self._counted(kind, "patch", self._cluster.patch(kind, name, namespace_of(manifest), patch=patch))

    async def _counted(self, kind: Kind, verb: str, request: Awaitable[Obj]) -> Obj:
        self._metrics.count_write(kind, verb)
        return await request


def _next_of(left: deque[Write], results: WriteResults, barred: Container[str]) -> Create | None:
    """The next that has a chance; those that would be refused like another are noted."""
    while left:
        create = left.popleft()
        assert isinstance(create, Create)
        assert isinstance(create.target, TaskRef)
        role = create.target.role
        if role not in results.quota_exceeded and (role not in results.barred or role in barred):
            return create
        results.withheld.append(create.target)
    return None


async def find(cluster: Cluster, kind: Kind, name: str, namespace: str) -> Obj | None:
    """A live look."""
    try:
        return await cluster.get(kind, name, namespace)
    except ApiError as refused:
        if refused.code == 404:
            return None
        raise


def _phase(write: Write) -> WritePhase:
    if isinstance(write, Create):
        return WritePhase.PODS if isinstance(write.target, TaskRef) else WritePhase.OWNERS
    if isinstance(write, Delete):
        return WritePhase.JOB if isinstance(write.target, JobRef) else WritePhase.DELETES
    return WritePhase.OWNERS if isinstance(write, Apply) else WritePhase.MARKS


def _with_uid(patch: Mapping[str, Any], uid: str) -> Obj:
    return {**(patch.get("metadata") or {}), "uid": uid}


async def _run(request: Awaitable[None]) -> None:
    await request
