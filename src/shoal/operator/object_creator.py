"""Creates pods and run owners, so that neither a crash nor a rejection makes more of them than intended.

Names are generated here and not at the server: a create whose response was lost is repeated under the same name, and so
finds out whether the object exists already. Pods are created one at first, and one more at a time with each that is
created, and half as many after a rejection: a template that is never accepted does not flood the server. A rejection
keeps another task from its try only where it holds for the whole role: while a quota is full, and where such a pod is
forbidden until the engine has processed the first rejection, which may well end the job.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Container, Sequence
from functools import partial

from shoal.cluster.client import Cluster, OutcomeUnknown
from shoal.dialects.capabilities import DisplayNames, Gangs, RunOwner
from shoal.dialects.dialect import Dialect
from shoal.engine import Create, Created, Refused, RunOwnerRef, TaskRef
from shoal.kube import names
from shoal.kube.errors import ApiError
from shoal.kube.job_annotations import JOB, JOB_UID, PROJECT, TASK
from shoal.kube.kinds import CONFIG_MAP, POD, Kind
from shoal.kube.objects import Key, Obj, annotations_of, key_of, namespace_of, uid_of
from shoal.operator.live_lookup import find
from shoal.operator.owned_object_writer import CountedRequest, OwnedObjectWriter
from shoal.operator.write_results import TRANSIENT_ERRORS, UnsupportedWrite, WriteResults

AT_ONCE = 64
FORBIDDEN = 403
UNAVAILABLE = 503
QUOTA = "exceeded quota"  # text in the error of the quota admission


class ObjectCreator:
    """Of one dialect."""

    def __init__(
        self,
        cluster: Cluster,
        dialect: Dialect,
        owned_writer: OwnedObjectWriter,
        counted: CountedRequest,
        rng: random.Random,
        *,
        requests: asyncio.Semaphore,
    ) -> None:
        """`requests` bounds those of all jobs together."""
        self._cluster = cluster
        self._dialect = dialect
        self._run_owner = dialect.capability(RunOwner)
        self._gangs = dialect.capability(Gangs)
        self._display_names = dialect.capability(DisplayNames)
        self._owned_writer = owned_writer
        self._counted = counted
        self._rng = rng
        self._requests = requests

    async def create_pods(
        self,
        manifest: Obj,
        creates: Sequence[Create],
        results: WriteResults,
        *,
        barred: Container[str],
    ) -> None:
        """`barred` are roles whose rejection the engine has processed: each pod gets its own response."""
        if self._gangs is not None and self._gangs.cluster_lookups is not None:
            roles = {create.target.role for create in creates if isinstance(create.target, TaskRef)}
            try:
                results.pod_fitter = await self._owned_writer.make_pod_fitter(manifest, roles)
            except TRANSIENT_ERRORS as failure:
                # Each create counts as refused, and is requested again in the next pass.
                why = f"what its gang was granted cannot be read: {failure}"
                results.refused += creates
                results.write_results += [Refused(create.target, UNAVAILABLE, why) for create in creates]
                results.is_urgent = True
                return
        create = partial(self.create, manifest, results=results)
        await CreateWorkers(create, creates, results, barred=barred, requests=self._requests).run()

    async def create(self, manifest: Obj, create: Create, results: WriteResults) -> None:
        """One object; a request with an unknown outcome counts as refused with code 0."""
        if isinstance(create.target, TaskRef):
            kind, obj = POD, self._dialect.build_pod(manifest, create)
            if results.pod_fitter is not None:
                results.pod_fitter(obj, create.target.role)
        elif isinstance(create.target, RunOwnerRef) and self._run_owner is not None:
            kind, obj = CONFIG_MAP, self._run_owner.build(manifest, create)
        else:
            raise UnsupportedWrite(f"{self._dialect.kind} has no form for {create.target}")
        results.is_urgent = True
        meta = obj["metadata"]
        expected_name = results.expectations.expected_name(create.target)
        if meta.get("generateName") and not meta.get("name"):
            meta["name"] = expected_name or names.generate(meta["generateName"], self._rng)
        if isinstance(create.target, TaskRef):
            self._annotate(obj, manifest, create.target)
        try:
            made = await self._request(kind, obj, manifest, is_expected=bool(expected_name))
        except ApiError as refused:
            results.refused.append(create)
            answer = Refused(create.target, refused.code, refused.message)
            results.write_results.append(answer)
            if refused.code == FORBIDDEN and isinstance(create.target, TaskRef):
                same = results.quota_exceeded if QUOTA in refused.message else results.barred
                same.setdefault(create.target.role, answer)
            if refused.reason == "AlreadyExists":
                results.expectations.create_answered(create.target)  # it is another owner's
                if kind == POD:
                    results.name_conflicts.append(Key(namespace_of(manifest), meta["name"]))
        except (OutcomeUnknown, OSError) as unknown:
            if meta.get("generateName"):
                results.expectations.create_unanswered(create.target, meta["name"])
            results.refused.append(create)
            results.write_results.append(Refused(create.target, 0, str(unknown)))
        else:
            results.expectations.create_answered(create.target)
            results.made.append(create)
            results.write_results.append(Created(create.target, uid_of(made)))

    def _annotate(self, pod: Obj, manifest: Obj, ref: TaskRef) -> None:
        """Name the job and the task on the pod: its node keeps their logs together when the pod is gone."""
        kind, display_names = self._dialect.kind, self._display_names
        project = annotations_of(manifest).get(PROJECT)
        pod["metadata"]["annotations"] = {
            **annotations_of(pod),
            JOB: f"{'.'.join(filter(None, (kind.kind, kind.group)))}/{key_of(manifest).name}",
            JOB_UID: uid_of(manifest),
            **({PROJECT: project} if project is not None else {}),
            TASK: (display_names.of(pod, manifest) if display_names is not None else "") or str(ref),
        }

    async def _request(self, kind: Kind, obj: Obj, manifest: Obj, *, is_expected: bool) -> Obj:
        """The created object; where an earlier create got no response (`is_expected`), the one that this made."""
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


class CreateWorkers:
    """Workers that create the pods of one pass, more of them with each that is created.

    Batches would wait for their slowest request. Here a finished worker takes the next create.
    """

    def __init__(
        self,
        create: Callable[[Create], Awaitable[None]],
        creates: Sequence[Create],
        results: WriteResults,
        *,
        barred: Container[str],
        requests: asyncio.Semaphore,
    ) -> None:
        self._create = create
        self._left = deque(creates)
        self._results = results
        self._barred = barred
        self._requests = requests
        self._workers = 0
        self._wanted = 1

    async def run(self) -> None:
        async with asyncio.TaskGroup() as self._group:
            self._start_worker()

    def _start_worker(self) -> None:
        self._workers += 1
        self._group.create_task(self._work())

    async def _work(self) -> None:
        results = self._results
        while self._left:
            create = self._left.popleft()
            assert isinstance(create.target, TaskRef)
            role = create.target.role
            if role in results.quota_exceeded or (role in results.barred and role not in self._barred):
                results.withheld.append(create.target)
                continue
            async with self._requests:
                await self._create(create)
            is_refused = bool(results.refused) and results.refused[-1] is create
            self._wanted = max(self._wanted // 2, 1) if is_refused else min(self._wanted + 1, AT_ONCE)
            if self._workers > self._wanted:
                break
            while self._left and self._workers < self._wanted:
                self._start_worker()
        self._workers -= 1
