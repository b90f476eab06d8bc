"""What the engine asks for, carried out. Everything here happens after the ledger is stored; nothing here decides.

A step's writes keep their order by phases: marks, deletes, what owns bodies, bodies, the job itself. Within a phase
they run side by side, bounded for all jobs together. Bodies are made one at first, and one more at a time with each
that is made, and half as many after a refusal: a template nobody accepts does not flood the server. A refusal keeps
another task from its try only where it holds for the whole role: while a quota is full, and where nobody may make such
a body until the engine has heard of the first, which may well end the job.
Every answer becomes a receipt for the next pass; a request whose fate is unknown is refused with code 0.
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
from shoal.dialects.dialect import Dialect
from shoal.engine import (
    Accepted,
    AnchorRef,
    Apply,
    CommandRef,
    CompanionRef,
    Create,
    Created,
    Delete,
    Free,
    Gone,
    GroupRef,
    JobRef,
    Mark,
    Notification,
    PatchBody,
    Receipt,
    Refused,
    Target,
    TaskRef,
    Write,
)
from shoal.kube import names
from shoal.kube.errors import ApiError
from shoal.kube.job_annotations import JOB, JOB_UID, PROJECT, TASK
from shoal.kube.kinds import CONFIG_MAP, POD, Kind
from shoal.kube.objects import Key, Obj, annotations_of, key_of, name_of, namespace_of, uid_of
from shoal.operator.owned_informers import Children
from shoal.operator.related_objects import KinCopies, KinWriter

AT_ONCE = 64
TOUCHING = (ApiError, OutcomeUnknown, OSError)
FORBIDDEN = 403
UNAVAILABLE = 503
QUOTA = "exceeded quota"  # in the words of the admission that keeps quotas


class Undressed(Exception):
    """The engine asks for something this job language has no form for: a mistake of ours."""


class StillThere(OutcomeUnknown):
    """A deletion that has to be confirmed is not over yet."""


class Phase(IntEnum):
    MARKS = 0
    DELETES = 1
    OWNERS = 2
    BODIES = 3
    THE_JOB = 4


@dataclass(slots=True)
class Carried:
    """What became of a step's writes."""

    receipts: list[Receipt] = field(default_factory=list)
    refused: list[Create] = field(default_factory=list)
    made: list[Create] = field(default_factory=list)
    full: dict[str, Refused] = field(default_factory=dict)  # roles that meet a full quota
    barred: dict[str, Refused] = field(default_factory=dict)  # roles nobody may make bodies of
    withheld: list[TaskRef] = field(default_factory=list)  # not asked for: they would be refused like another
    in_the_way: list[Key] = field(default_factory=list)  # names of bodies that somebody else holds
    complaints: list[Notification] = field(default_factory=list)  # what people should hear of
    fit: Callable[[Obj, str], None] | None = None  # a body of a role to what its group was granted
    failure: Exception | None = None  # the first request that failed; the pass is tried again
    is_urgent: bool = False  # the engine should hear of it at once: no watch will tell


class Executor:
    """Carries out the writes of one dialect's jobs."""

    def __init__(
        self,
        cluster: Cluster,
        dialect: Dialect,
        pods: Children,
        kin: KinCopies,
        metrics: Metrics,
        rng: random.Random,
    ) -> None:
        self._cluster = cluster
        self._chance = rng
        self._unanswered: dict[str, dict[Target, str]] = {}  # by job: names asked for, and no answer heard
        self._dialect = dialect
        self._pods = pods
        self._kin = kin
        self._kin_writer = KinWriter(cluster, dialect, kin, self._counted)
        self._metrics = metrics
        self._at_once = asyncio.Semaphore(AT_ONCE)

    async def carry_out(
        self, manifest: Obj, writes: Iterable[Write], *, barred: Container[str] = frozenset()
    ) -> Carried:
        """`barred` are roles of which the engine has heard that they are refused: each body gets its own answer."""
        carried = Carried()
        for phase, several in groupby(writes, _phase):
            if phase is Phase.BODIES:
                creates = list(several)
                if await self._is_fitted(manifest, creates, carried):
                    await self._in_a_growing_stream(manifest, creates, carried, barred)
            else:
                await self._side_by_side([self._one(manifest, write, carried) for write in several])
            if carried.failure is not None and phase is Phase.MARKS:
                break  # nobody is deleted without the mark that says why
        return carried

    async def _is_fitted(self, manifest: Obj, creates: Sequence[Write], carried: Carried) -> bool:
        """Whether it is known what bodies have to be fitted to; else each is refused, and asked for again."""
        if self._dialect.kin is None or self._dialect.kin.looks is None:
            return True
        asked = [write for write in creates if isinstance(write, Create)]
        roles = {create.target.role for create in asked if isinstance(create.target, TaskRef)}
        try:
            carried.fit = await self._kin_writer.fitting(manifest, roles)
        except TOUCHING as failure:
            why = f"what its gang was granted cannot be read: {failure}"
            carried.refused += asked
            carried.receipts += [Refused(create.target, UNAVAILABLE, why) for create in asked]
            carried.is_urgent = True
            return False
        return True

    async def _in_a_growing_stream(
        self, manifest: Obj, creates: Sequence[Write], carried: Carried, barred: Container[str]
    ) -> None:
        """Nobody waits for the slowest of a batch: whoever is done takes the next one, and fetches another to help."""
        left, hands, wanted = deque(creates), 1, 1

        async def work() -> None:
            nonlocal hands, wanted
            while (create := _next_of(left, carried, barred)) is not None:
                await self._one(manifest, create, carried)
                is_refused = bool(carried.refused) and carried.refused[-1] is create
                wanted = max(wanted // 2, 1) if is_refused else min(wanted + 1, AT_ONCE)
                if hands > wanted:
                    break
                while left and hands < wanted:
                    hands += 1
                    group.create_task(work())
            hands -= 1

        async with asyncio.TaskGroup() as group:
            group.create_task(work())

    async def _side_by_side(self, requests: list[Awaitable[None]]) -> None:
        if len(requests) == 1:
            await requests[0]
            return
        async with asyncio.TaskGroup() as group:
            for request in requests:
                group.create_task(_run(request))

    async def _one(self, manifest: Obj, write: Write, carried: Carried) -> None:
        async with self._at_once:
            try:
                match write:
                    case Create():
                        await self._create(manifest, write, carried)
                    case Delete():
                        carried.receipts.append(await self._delete(manifest, write))
                        carried.is_urgent |= write.confirm
                    case PatchBody(uid, patch):
                        name = self._name_of(uid)
                        await self._patch(POD, manifest, name, {**patch, "metadata": _with_uid(patch, uid)})
                    case Apply():
                        await self._apply(manifest, write, carried)
                    case Mark(_, uid):
                        await self._mark(manifest, uid)
                    case Free(_, uid):
                        await self.free(manifest, uid)
            except TOUCHING as failure:
                carried.failure = carried.failure or failure

    # Creating

    async def _create(self, manifest: Obj, create: Create, carried: Carried) -> None:
        kind, obj = self._dressed(manifest, create)
        if carried.fit is not None and isinstance(create.target, TaskRef):
            carried.fit(obj, create.target.role)
        carried.is_urgent = True
        asked = self._named(manifest, create, obj)
        if isinstance(create.target, TaskRef):
            self._annotate(obj, manifest, create.target)
        try:
            made = await self._made(kind, obj, manifest, asked_before=create.target in asked)
        except ApiError as refused:
            carried.refused.append(create)
            answer = Refused(create.target, refused.code, refused.message)
            carried.receipts.append(answer)
            if refused.code == FORBIDDEN and isinstance(create.target, TaskRef):
                same = carried.full if QUOTA in refused.message else carried.barred
                same.setdefault(create.target.role, answer)
            if refused.reason == "AlreadyExists":
                asked.pop(create.target, None)  # somebody else's
            if refused.reason == "AlreadyExists" and kind == POD:
                carried.in_the_way.append(Key(namespace_of(manifest), obj["metadata"]["name"]))
        except (OutcomeUnknown, OSError) as unknown:
            if obj["metadata"].get("generateName"):
                asked[create.target] = obj["metadata"]["name"]
            carried.refused.append(create)
            carried.receipts.append(Refused(create.target, 0, str(unknown)))
        else:
            asked.pop(create.target, None)
            carried.made.append(create)
            carried.receipts.append(Created(create.target, uid_of(made)))

    def _named(self, manifest: Obj, create: Create, obj: Obj) -> dict[Target, str]:
        """Draw the rest of a name here and not at the server: a request whose answer got lost is then made again under
        the same name, and finds out whether there is a body already. Gives the names of such requests."""
        asked = self._unanswered.setdefault(uid_of(manifest), {})
        meta = obj["metadata"]
        if meta.get("generateName") and not meta.get("name"):
            meta["name"] = asked.get(create.target) or names.generate(meta["generateName"], self._chance)
        return asked

    def _annotate(self, pod: Obj, manifest: Obj, ref: TaskRef) -> None:
        """Name the job and the task on the pod: its node keeps their logs together when the pod is gone."""
        kind, called = self._dialect.kind, self._dialect.called
        project = annotations_of(manifest).get(PROJECT)
        pod["metadata"]["annotations"] = {
            **annotations_of(pod),
            JOB: f"{'.'.join(filter(None, (kind.kind, kind.group)))}/{key_of(manifest).name}",
            JOB_UID: uid_of(manifest),
            **({PROJECT: project} if project is not None else {}),
            TASK: (called(pod, manifest) if called is not None else "") or str(ref),
        }

    async def _made(self, kind: Kind, obj: Obj, manifest: Obj, *, asked_before: bool) -> Obj:
        namespace, name = namespace_of(manifest), obj["metadata"]["name"]
        try:
            return await self._counted(kind, "create", self._cluster.create(kind, obj, namespace))
        except ApiError as refused:
            found = None
            if asked_before and refused.reason == "AlreadyExists":
                found = await find(self._cluster, kind, name, namespace)
            owner = self._dialect.owner(found) if found is not None else None
            if found is None or owner is None or owner.uid != uid_of(manifest):
                raise
            return found

    def forget(self, uid: str) -> None:
        """The job is gone."""
        self._unanswered.pop(uid, None)

    def _dressed(self, manifest: Obj, create: Create) -> tuple[Kind, Obj]:
        if isinstance(create.target, TaskRef):
            return POD, self._dialect.render(manifest, create)
        if isinstance(create.target, AnchorRef) and self._dialect.dress_anchor is not None:
            return CONFIG_MAP, self._dialect.dress_anchor(manifest, create)
        raise Undressed(f"{self._dialect.kind} has no form for {create.target}")

    # Deleting

    async def _delete(self, manifest: Obj, delete: Delete) -> Receipt:
        kind, name = self._aimed_at(manifest, delete)
        if not name:
            return Gone(delete.target, delete.uid)
        options = DeleteOptions(
            grace_seconds=delete.grace_seconds,
            propagation=DeletionPropagation(delete.propagation.value) if delete.propagation is not None else None,
            preconditions=Preconditions(uid=delete.uid or None),
        )
        if delete.confirm:
            return await self._delete_and_look(manifest, delete, kind, name, options)
        if delete.grace_seconds is None and self._pods.is_doomed(delete.uid):
            return Accepted(delete.target, delete.uid)
        try:
            await self._counted(kind, "delete", self._cluster.delete(kind, name, namespace_of(manifest), options))
        except ApiError as refused:
            if refused.code not in (404, 409):
                raise
            return Gone(delete.target, delete.uid)  # or another stands under its name
        self._pods.doom(delete.uid)
        return Accepted(delete.target, delete.uid)

    async def _delete_and_look(
        self, manifest: Obj, delete: Delete, kind: Kind, name: str, options: DeleteOptions
    ) -> Receipt:
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
        raise StillThere(f"{kind.kind} {name} is still there after its deletion")

    def _is_meant(self, manifest: Obj, delete: Delete, found: Obj) -> bool:
        if delete.uid:
            return uid_of(found) == delete.uid
        owner = self._dialect.owner(found)
        return owner is not None and owner.uid == uid_of(manifest)

    def _aimed_at(self, manifest: Obj, delete: Delete) -> tuple[Kind, str]:
        target = delete.target
        if isinstance(target, TaskRef):
            return POD, self._pods.name_of(delete.uid) or self._dialect.pod_name(manifest, target)
        if isinstance(target, AnchorRef) and self._dialect.anchor_name is not None:
            return CONFIG_MAP, self._dialect.anchor_name(manifest)
        if isinstance(target, JobRef):
            return self._dialect.kind, key_of(manifest).name
        if isinstance(target, GroupRef | CompanionRef) and self._dialect.kin is not None:
            kind, name = self._dialect.kin.place(manifest, target)
            return kind, self._kin.name_of(delete.uid) or name
        if isinstance(target, CommandRef) and self._dialect.orders is not None:
            return self._dialect.orders.kind, self._kin.order_named(target) or ""  # '': it has gone meanwhile
        raise Undressed(f"{self._dialect.kind} has no form for {target}")

    async def discard(self, commands: Iterable[Obj]) -> None:
        """Delete commands that have no job to act on."""
        assert self._dialect.orders is not None
        for command in commands:
            options = DeleteOptions(preconditions=Preconditions(uid=uid_of(command)))
            kind, name, namespace = self._dialect.orders.kind, name_of(command), namespace_of(command)
            try:
                await self._counted(kind, "delete", self._cluster.delete(kind, name, namespace, options))
            except ApiError as refused:
                if refused.code not in (404, 409):
                    raise

    # Groups, companions and marks

    async def answer(self, manifest: Obj, carried: Carried, *, are_up: bool, now: str) -> None:
        """After everything else: what schedulers of gangs are told."""
        try:
            await self._kin_writer.answer(manifest, are_up=are_up, now=now)
        except TOUCHING as failure:
            carried.failure = carried.failure or failure

    async def _apply(self, manifest: Obj, apply: Apply, carried: Carried) -> None:
        if self._dialect.kin is None:
            raise Undressed(f"{self._dialect.kind} has no form for {apply}")
        try:
            await self._kin_writer.apply(manifest, apply)
        except TOUCHING as failure:
            carried.complaints.append(self._kin_writer.complaint(manifest, apply.target, failure))
            raise

    async def _mark(self, manifest: Obj, uid: str) -> None:
        """That the controller sends the pod away; one that has gone needs no mark."""
        name, mark = self._pods.name_of(uid), self._dialect.mark
        if mark is None:
            raise Undressed(f"{self._dialect.kind} has no mark for doomed pods")
        if name is None:
            return
        try:
            await self._patch(POD, manifest, name, {**mark, "metadata": _with_uid(mark, uid)})
        except ApiError as refused:
            if refused.code not in (404, 409):
                raise

    async def free(self, manifest: Obj, uid: str) -> None:
        """Take our finalizer off a pod whose end is counted, or whom nobody will count any more."""
        name = self._pods.name_of(uid)
        if name is None:
            return
        patch = {"metadata": {"uid": uid, "$deleteFromPrimitiveList/finalizers": [self._dialect.finalizer]}}
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
            raise OutcomeUnknown(f"the pod with uid {uid} has gone meanwhile")
        return name

    async def _patch(self, kind: Kind, manifest: Obj, name: str, patch: Obj) -> None:
        await self._counted(kind, "patch", self._cluster.patch(kind, name, namespace_of(manifest), patch=patch))

    async def _counted(self, kind: Kind, verb: str, request: Awaitable[Obj]) -> Obj:
        self._metrics.count_write(kind, verb)
        return await request


def _next_of(left: deque[Write], carried: Carried, barred: Container[str]) -> Create | None:
    """The next that has a chance; those that would be refused like another are noted."""
    while left:
        create = left.popleft()
        assert isinstance(create, Create)
        assert isinstance(create.target, TaskRef)
        role = create.target.role
        if role not in carried.full and (role not in carried.barred or role in barred):
            return create
        carried.withheld.append(create.target)
    return None


async def find(cluster: Cluster, kind: Kind, name: str, namespace: str) -> Obj | None:
    """A live look."""
    try:
        return await cluster.get(kind, name, namespace)
    except ApiError as refused:
        if refused.code == 404:
            return None
        raise


def _phase(write: Write) -> Phase:
    if isinstance(write, Create):
        return Phase.BODIES if isinstance(write.target, TaskRef) else Phase.OWNERS
    if isinstance(write, Delete):
        return Phase.THE_JOB if isinstance(write.target, JobRef) else Phase.DELETES
    return Phase.OWNERS if isinstance(write, Apply) else Phase.MARKS


def _with_uid(patch: Mapping[str, Any], uid: str) -> Obj:
    return {**(patch.get("metadata") or {}), "uid": uid}


async def _run(request: Awaitable[None]) -> None:
    await request
