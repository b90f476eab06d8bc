"""The reconciler: the loop that runs every job of one dialect.

Informers keep copies of the jobs and of what they own; every change wakes the job it belongs to. Each job has one pass
at a time, and changes that arrive during a pass are coalesced into one more. A pass calls the engine and executes its
step in the order that makes a crash harmless: history, the job state in one conditional write, the writes, the report,
Events.

Between passes the job cache (`job_cache.py`) keeps the job state and the expectations. The last job state of this
process counts, not that of an informer, which may be stale; after a write that failed or got lost, the stored one
counts. Responses to the writes of a pass reach the very next pass (`expectations.py`).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from datetime import datetime, timedelta

from msgspec.structs import replace

from shoal.cluster.client import Cluster, PatchType, WatchEvent
from shoal.cluster.clock import Clock
from shoal.cluster.event_recorder import EventRecorder
from shoal.cluster.informer import Change, Informer
from shoal.controller_runtime.metrics import Metrics
from shoal.controller_runtime.workqueue import WORKERS, WorkQueue
from shoal.dialects.capabilities import (
    Adoption,
    DialectSettings,
    HistorySnapshots,
    OperatorSettings,
    PodFinalizer,
    RunOwner,
    Snapshot,
)
from shoal.dialects.dialect import Dialect, ManifestInvalid, StateUnreadable
from shoal.engine import (
    Create,
    Job,
    JobState,
    Notification,
    Observed,
    ObservedPod,
    Stage,
    StateChange,
    Step,
)
from shoal.engine.advance import advance
from shoal.engine.run_closing import give_up
from shoal.kube.errors import ApiError, is_too_large
from shoal.kube.kinds import CONFIG_MAP, POD
from shoal.kube.messages import Message
from shoal.kube.objects import Key, Obj, key_of, uid_of
from shoal.kube.times import rfc3339
from shoal.logs import Logger
from shoal.operator.job_cache import CreateBackoff, JobCache, JobCacheEntry, StoredState, job_inputs, phase_label
from shoal.operator.job_events import EventEmitter, History, log_snapshot, withheld_messages
from shoal.operator.job_index import OBSERVED_POD, JobIndex
from shoal.operator.orphan_adoption import adopt_orphans
from shoal.operator.related_objects import RelatedObjectIndex
from shoal.operator.shared_informers import SharedInformers
from shoal.operator.write_executor import WriteExecutor, WriteResults, find
from shoal.scheduler.transforms import without_managed_fields

log = Logger(__name__)

ON_JOB_END = "OnJobEnd"  # the trigger of the snapshot of a job that has ended

# Status-only changes (pod created, scheduled, running) are coalesced for up to this long before the state is stored.
STATUS_COALESCE = timedelta(milliseconds=300)
# While tasks of the job are starting there is more to come: then it may be as many times the time of gathering.
STARTING_COALESCE_FACTOR = 10


class JobReconciler:
    """`run` until cancelled; may be cut anywhere."""

    def __init__(
        self,
        cluster: Cluster,
        dialect: Dialect,
        *,
        settings: DialectSettings = None,
        clock: Clock,
        metrics: Metrics,
        rng: random.Random | None = None,
        history: History = log_snapshot,
        component: str = "shoal",
        namespace: str | None = None,
        labels: str = "",
        serves: Callable[[Key], bool] | None = None,
        coalesce_seconds: float = 0.0,
        informers: SharedInformers | None = None,
    ) -> None:
        """Of all jobs those of `namespace` (None: of every one) that `labels` select and `serves` agrees to.

        `informers`: those of the reconcilers of one process, for the same namespace and jobs, which run on their own;
        a reconciler that is alone has its own.

        `coalesce_seconds`: how long news of a pod may wait for that of others of its job.
        """
        self._cluster = cluster
        self._dialect = dialect
        self._kind = dialect.kind
        self._run_owner = dialect.capability(RunOwner)
        self._snapshots = dialect.capability(HistorySnapshots)
        self._finalizer = dialect.capability(PodFinalizer)
        self._adoption = dialect.capability(Adoption)
        self._settings = settings if settings is not None else dialect.settings(None)
        tuning = dialect.capability(OperatorSettings)
        self._clock = clock
        self._metrics = metrics
        self._rng = rng or random.Random()  # noqa: S311 - names, delays and jitter; guards nothing
        self._history = history
        self._serves = serves or _serves_all
        self._selects = bool(labels)
        self._out_of_sight: list[Obj] = []  # jobs that are no longer among ours, gone or not
        self.advance = advance  # the engine; tests look over its shoulder
        self._cache = JobCache()
        self._work = WorkQueue(
            self.name,
            self._timed_pass,
            clock=clock,
            jitter=self._rng,
            coalesce_seconds=coalesce_seconds,
            workers=tuning.workers(self._settings) if tuning is not None else WORKERS,
            in_progress=self._cache.active.__contains__,
        )
        self._starting_wait = max(STATUS_COALESCE, STARTING_COALESCE_FACTOR * timedelta(seconds=coalesce_seconds))
        self._jobs = Informer(
            cluster, self._kind, namespace,
            labels=labels, trim=self._trimmed, on_change=self._job_changed, clock=clock, jitter=self._rng,
        )  # fmt: skip
        self._own_informers: SharedInformers | None = None
        if informers is None:
            informers = SharedInformers(cluster, [dialect], namespace=namespace, serves=serves, clock=clock)
            self._own_informers = informers
        self._pods = JobIndex(
            informers.of(POD), dialect,
            wake=self._work.add_after_delay, freed=self._name_freed, gone=self._child_gone, went=self._pod_vanished,
        )  # fmt: skip
        self._run_owners: JobIndex | None = None
        if self._run_owner is not None:
            self._run_owners = JobIndex(informers.of(CONFIG_MAP), dialect, wake=self._work.add, freed=self._name_freed)
        self._related = RelatedObjectIndex(
            cluster, dialect, informers, namespace=namespace, wake=self._wake_served, clock=clock
        )
        self._executor = WriteExecutor(cluster, dialect, self._pods, self._related, metrics, self._rng)
        self._teller = EventEmitter(EventRecorder(cluster, component, clock=clock), metrics)

    @property
    def name(self) -> str:
        return f"{self._kind.kind} jobs"

    @property
    def idle(self) -> bool:
        """Whether no pass runs or is due at once; for tests."""
        return self._work.depth == 0

    @property
    def finished_jobs(self) -> frozenset[Key]:
        """The jobs that ended and are remembered by little more than their names."""
        return frozenset(self._cache.finished)

    @property
    def is_synced(self) -> bool:
        """Whether the copies have caught up with the cluster once."""
        return all(copies.synced.is_set() for copies in self._copies)

    @property
    def _copies(self) -> tuple[Informer, ...]:
        run_owners = (self._run_owners.informer,) if self._run_owners is not None else ()
        return self._pods.informer, *run_owners, *self._related.informers, self._jobs

    async def run(self) -> None:
        try:
            with self._metrics.observe_depth(self._kind, lambda: self._work.depth):
                async with asyncio.TaskGroup() as group:
                    if self._own_informers is not None:
                        group.create_task(self._own_informers.run())
                    if (commands := self._related.command_informer) is not None:
                        group.create_task(commands.run())
                    group.create_task(self._jobs.run())
                    group.create_task(self._teller.run())
        finally:
            for cached in self._cache:
                cached.cancel_timer()
                self._metrics.count_state_change(self._kind, cached.reported_phase, "")
            await self._work.close()

    # What wakes a job

    def _trimmed(self, event: WatchEvent) -> Obj:
        """Of a job that another operator serves, keep only its identity."""
        job = event.object
        if self._serves(key_of(job)):
            return without_managed_fields(job)
        return {"metadata": {name: job["metadata"][name] for name in ("name", "namespace", "uid", "resourceVersion")}}

    def _wake_served(self, key: Key) -> None:
        if self._serves(key):
            self._work.add(key)

    def _job_changed(self, change: Change) -> None:
        if not self._serves(change.key):
            return
        if change.old is not None and (change.new is None or uid_of(change.new) != uid_of(change.old)):
            if self._selects:
                self._out_of_sight.append(change.old)
            else:
                self._child_gone(change.old)
        entry = self._cache.active.get(change.key)
        if change.new is None or entry is None:
            self._work.add(change.key)
        elif entry.expectations.is_write_pending:
            entry.expectations.postpone_event()  # most likely the watch is faster than the response to our own write
        else:
            self._take_copy(entry, change.new)
            if not self._work.is_pending(change.key):
                self._cache.release_finished(change.key, change.new)

    def _take_copy(self, entry: JobCacheEntry, job: Obj) -> None:
        if entry.expectations.is_own_version(job["metadata"]["resourceVersion"]):
            entry.observe(job)  # one object instead of two that are equal
        else:
            self._work.add(key_of(job))

    def _child_gone(self, obj: Obj) -> None:
        """A job or pod that is no longer there leaves its last version in the history."""
        if self._snapshots is not None:
            self._log_snapshot(self._snapshots.deletion_snapshot(obj, self._settings))

    def _pod_vanished(self, key: Key, uid: str) -> None:
        entry = self._cache.active.get(key)
        if entry is not None:
            entry.expectations.deletion_observed(uid)

    def _name_freed(self, key: Key) -> None:
        """What stood in a job's way has gone."""
        entry = self._cache.active.get(key)
        if entry is not None:
            entry.backoff.reset()

    # One pass

    async def _timed_pass(self, key: Key) -> None:
        for copies in self._copies:
            await copies.synced.wait()
        with self._metrics.time_reconcile(self._kind):
            await self._pass(key)

    async def _job_deleted(self, key: Key) -> None:
        """A job that left the selection may be served by another operator now: only a live read shows it."""
        for job in [job for job in self._out_of_sight if key_of(job) == key]:
            found = await find(self._cluster, self._kind, key.name, key.namespace)
            self._out_of_sight.remove(job)
            if found is None or uid_of(found) != uid_of(job):
                self._child_gone(job)

    async def _discard_commands(self, key: Key) -> None:
        """A command for a job that does not exist is consumed without effect: a later job of that name is not meant.

        The copy of the jobs may be behind, or select only some of them, so the API server decides.
        """
        commands = self._related.commands_for(key)
        if commands and await find(self._cluster, self._kind, key.name, key.namespace) is None:
            await self._executor.discard(commands)

    async def _free_left_behind(self, key: Key, finalizer: str) -> None:
        """Release the pods of a deleted job: they are not counted any more, so no finalizer may hold them."""
        job = self._jobs.objects.get(key)
        for pod in list(self._pods.of(key)):
            owner = self._dialect.owner_of(pod)
            is_held = finalizer in (pod["metadata"].get("finalizers") or ())
            if owner is not None and is_held and (job is None or uid_of(job) != owner.uid):
                await self._executor.free(pod, uid_of(pod))

    async def _pass(self, key: Key) -> None:
        if self._out_of_sight:
            await self._job_deleted(key)
        if self._finalizer is not None:
            await self._free_left_behind(key, self._finalizer.name)
        if key not in self._jobs.objects:
            await self._discard_commands(key)
        entry = await self._recall(key)  # 1. the job, its state, and what is expected
        job = entry.job(self._read_afresh) if entry is not None else None
        if entry is None or job is None:
            return
        if entry.state.is_new and self._adoption is not None:
            await self._adopt_orphans(entry, self._adoption)
        now = self._clock.now()
        observed = await self._confirm_run_owner(entry, self._observe(key, entry))  # 2. what is observed
        step = self.advance(job, entry.state, observed, now)  # 3. the decision
        self._record_history(entry, job, observed, step, now)  # 4. history, then the job state
        try:
            await self._store(entry, job, step, now)
        except ApiError as refused:
            if not is_too_large(refused):
                raise
            await self._give_up(key, entry, job, refused, now)
            return
        results = await self._write(key, entry, step, now)  # 5. the writes, and what is expected of them
        report_due = await self._report(entry, job, observed, now)  # 6. status and Events
        self._emit_messages(entry, step, results)
        again = step.requeue or results.is_urgent
        self._plan_next(key, entry, step, since=now, report_due=report_due, again=again)  # 7. when the next is due
        are_up = entry.state.run.stage is Stage.RUNNING
        await self._executor.acknowledge_pods(entry.manifest, results, are_up=are_up, now=rfc3339(now))
        if results.failure is not None:
            raise results.failure
        if not step.requeue:
            self._cache.release_finished(key, self._jobs.objects.get(key))

    # 1. Recalling

    async def _recall(self, key: Key) -> JobCacheEntry | None:
        """The job under that key as far as it is known; None where it is deleted, or cannot be read."""
        seen = self._jobs.objects.get(key)
        former = self._cache.remove_former(key, seen)
        if former is not None:
            self._metrics.count_state_change(self._kind, former.reported_phase, "")
            self._related.forget(key)
        if seen is None:
            return None
        entry = self._cache.active.get(key)
        if entry is None:
            return self._add(key, seen)
        entry.observe(seen)
        return await self._reload(entry) if entry.stored.is_unknown else entry

    def _add(self, key: Key, manifest: Obj) -> JobCacheEntry | None:
        finished = self._cache.finished.pop(key, None)
        reported_phase, timer = (finished.reported_phase, finished.timer) if finished is not None else ("", None)
        state = self._restore_state(manifest)
        if state is None:
            self._metrics.count_state_change(self._kind, reported_phase, "")
            return None
        entry = self._cache.active[key] = JobCacheEntry(
            manifest, state, StoredState(state), CreateBackoff(self._rng), timer=timer, reported_phase=reported_phase
        )
        return entry

    async def _reload(self, entry: JobCacheEntry) -> JobCacheEntry | None:
        """A write of the job state failed, or its response got lost: what is stored counts, and only a live read
        shows it."""
        key = key_of(entry.manifest)
        found = await find(self._cluster, self._kind, key.name, key.namespace)
        state = self._restore_state(found) if found is not None and uid_of(found) == entry.uid else None
        if found is None or state is None:
            return None
        entry.reload(without_managed_fields(found), state)
        return entry

    def _restore_state(self, manifest: Obj) -> JobState | None:
        try:
            return self._dialect.load_state(manifest)
        except StateUnreadable as problem:
            self._emit_invalid(manifest, "LedgerUnreadable", str(problem))
            return None

    def _read_afresh(self, manifest: Obj) -> Job | None:
        try:
            return self._dialect.to_job(manifest, self._settings)
        except ManifestInvalid as problem:
            self._emit_invalid(manifest, "InvalidManifest", str(problem))
            return None

    def _emit_invalid(self, manifest: Obj, reason: str, text: str) -> None:
        log.warning("job cannot be run", job=str(key_of(manifest)), reason=reason, problem=text)
        self._teller.emit(manifest, (Notification("", Message(reason, {"cause": text}), warning=True),))

    # 2. Observing

    async def _adopt_orphans(self, entry: JobCacheEntry, adoption: Adoption) -> None:
        """What a new job finds that is nobody's: counted before it makes pods of its own."""
        if (version := await adopt_orphans(self._cluster, adoption, entry.manifest)) is not None:
            await self._pods.informer.wait_for_version(version)

    def _observe(self, key: Key, entry: JobCacheEntry) -> Observed:
        manifest = entry.manifest
        copies = [
            observed_pod for pod in self._pods.of(key) if (observed_pod := self._observe_pod(pod, entry)) is not None
        ]
        deleted = entry.expectations.deleted_uids
        pods = tuple([observed_pod for observed_pod in copies if observed_pod.uid not in deleted])
        run_owner = None
        if self._run_owner is not None and self._run_owners is not None:
            place = Key(key.namespace, self._run_owner.name(manifest))
            if (found := self._run_owners.get(place)) is not None and uid_of(found) not in deleted:
                run_owner = self._run_owner.observe(found, manifest)
                if not run_owner.owned:
                    self._run_owners.await_end(place, key)
        relatives = self._related.of(key, manifest, deleted)
        return Observed(
            pods=pods,
            run_owner=run_owner,
            groups=relatives.groups,
            owned_objects=relatives.owned_objects,
            commands=relatives.commands,
            open_gates=relatives.open_gates,
            write_results=entry.expectations.begin_pass(entry.state),
            nonce=f"{self._rng.getrandbits(64):016x}",
        )

    async def _confirm_run_owner(self, entry: JobCacheEntry, observed: Observed) -> Observed:
        """Pods may be terminating because their run owner is, and its copy may be late: then a live read decides.

        The end of the run must not depend on which of two watches is faster.
        """
        run_owner = observed.run_owner
        if self._run_owner is None or run_owner is None or run_owner.leaving or not run_owner.owned:
            return observed
        if not entry.state.run.is_open or not _is_pod_missing(entry.state, observed):
            return observed
        found = await find(
            self._cluster, CONFIG_MAP, self._run_owner.name(entry.manifest), key_of(entry.manifest).namespace
        )
        seen = self._run_owner.observe(found, entry.manifest) if found is not None else None
        return replace(observed, run_owner=seen)

    def _observe_pod(self, pod: Obj, entry: JobCacheEntry) -> ObservedPod | None:
        """Kept beside the copy of the pod: the same version of it, looked at for the same job, is the same body."""
        kept: tuple[str, ObservedPod | None] | None = pod.get(OBSERVED_POD)
        if kept is None or kept[0] != entry.uid:
            kept = pod[OBSERVED_POD] = (entry.uid, self._dialect.observe_pod(pod, entry.manifest))
        return kept[1]

    # 4. Storing

    def _record_history(self, entry: JobCacheEntry, job: Job, observed: Observed, step: Step, now: datetime) -> None:
        if self._snapshots is None:
            if step.state.is_ended and not entry.state.is_ended:
                self._log_snapshot(self._end_snapshot(entry.manifest, job, observed, step, now))
        else:
            for notice in step.notices:
                self._log_snapshot(self._snapshots.snapshot(entry.manifest, entry.state, notice, self._settings, now))

    def _end_snapshot(self, manifest: Obj, job: Job, observed: Observed, step: Step, now: datetime) -> Snapshot:
        """The job as it ended, for languages that define no snapshots of their own."""
        status = self._dialect.status(job, step.state, observed, manifest, now).status
        whole = {"apiVersion": self._kind.api_version, "kind": self._kind.kind, **manifest}
        return Snapshot(str(key_of(manifest)), ON_JOB_END, whole if status is None else {**whole, "status": status})

    def _log_snapshot(self, snapshot: Snapshot | None) -> None:
        if snapshot is not None:
            self._history(snapshot)

    async def _store(self, entry: JobCacheEntry, job: Job, step: Step, now: datetime) -> None:
        """Store the job state, in one write that fails if the job has changed. Some changes may wait a moment.

        The job is counted first, so that a client that reads of its end finds it among the ended ones.
        """
        self._count(entry, phase_label(step.state))
        if entry.stored.includes(step.state, job.policies.pod_policy.memory):
            entry.stored.unwritten_since = None
        elif self._may_wait(entry, step, now):
            entry.stored.unwritten_since = entry.stored.unwritten_since or now
        else:
            await self._write_state(entry, job, step.state)
        entry.end_pass(step.state)

    async def _give_up(self, key: Key, entry: JobCacheEntry, job: Job, refused: ApiError, now: datetime) -> None:
        """The server does not store a state of this size, now or after a pause: the job ends with that reason."""
        outcome = job.policies.completion.too_large
        state = give_up(entry.state, outcome, now)
        await self._write_state(entry, job, state)
        entry.state = state
        entry.expectations.abandon_pass()
        entry.events.take()
        self._count(entry, phase_label(state))
        message = Message("StateTooLarge", {"text": outcome.text, "cause": refused.message})
        self._teller.emit(entry.manifest, (Notification("", message, warning=True),))
        self._work.add(key)  # its objects are deleted, its status set

    def _count(self, entry: JobCacheEntry, reported_phase: str) -> None:
        self._metrics.count_state_change(self._kind, entry.reported_phase, reported_phase)
        entry.reported_phase = reported_phase

    def _may_wait(self, entry: JobCacheEntry, step: Step, now: datetime) -> bool:
        """No decision, and for a moment only: what a crash leaves unstored is read from the objects again."""
        if step.state_change is StateChange.DECISIONS or step.notices:
            return False
        due = self._facts_due(entry, step.state)
        return due is None or now < due

    def _facts_due(self, entry: JobCacheEntry, state: JobState) -> datetime | None:
        """When what waits for company has waited enough; None where nothing waits."""
        if entry.stored.unwritten_since is None:
            return None
        return entry.stored.unwritten_since + (self._starting_wait if _is_starting(state) else STATUS_COALESCE)

    async def _write_state(self, entry: JobCacheEntry, job: Job, state: JobState) -> None:
        version = entry.manifest["metadata"]["resourceVersion"]
        state_patch = self._dialect.save_state(job, state, self._settings)
        condition = {"op": "replace", "path": "/metadata/resourceVersion", "value": version}
        entry.stored.is_unknown = True  # until the response is here, also where the pass is cancelled before it
        patch = [condition, *state_patch.patch(entry.manifest)]
        entry.manifest = await self._patch_job(entry, patch, PatchType.JSON, state_patch.subresource)
        entry.stored = StoredState(state)

    async def _patch_job(self, entry: JobCacheEntry, patch: Obj | list[Obj], form: PatchType, subresource: str) -> Obj:
        """The job as the write leaves it.
        The write's own watch event is no change, even if it precedes the response; what the write found and this
        process had not seen is one."""
        key = key_of(entry.manifest)
        self._metrics.count_write(self._kind, "patch")
        entry.expectations.write_sent()
        try:
            answer = await self._cluster.patch(
                self._kind, key.name, key.namespace, patch=patch, patch_type=form, subresource=self._served(subresource)
            )
            if job_inputs(answer) == job_inputs(entry.manifest):
                entry.expectations.expect_version(answer["metadata"]["resourceVersion"])
        finally:
            if entry.expectations.write_ended() and (seen := self._jobs.objects.get(key)) is not None:
                self._take_copy(entry, seen)
        seen = self._jobs.objects.get(key)
        if seen is not None and seen["metadata"]["resourceVersion"] == answer["metadata"]["resourceVersion"]:
            return seen  # one object instead of two that are equal
        return without_managed_fields(answer)

    def _served(self, subresource: str) -> str:
        """Definitions of other people may have none: then the status is a field like any other."""
        return subresource if subresource in self._kind.subresources else ""

    # 5. to 7. Writes, status, the next pass

    async def _write(self, key: Key, entry: JobCacheEntry, step: Step, now: datetime) -> WriteResults:
        """Execute the step's writes, except creates that wait for the end of a backoff."""
        backoff, expectations = entry.backoff, entry.expectations
        writes = [
            write for write in step.writes if not isinstance(write, Create) or backoff.allow(write, step.state, now)
        ]
        results = await self._executor.carry_out(
            entry.manifest, writes, expectations=expectations, barred=backoff.barred
        )
        expectations.set_expectations(results.write_results, is_cached=self._is_cached)
        backoff.record(results, now)
        for conflict in results.name_conflicts:
            self._pods.await_end(conflict, key)
        return results

    def _is_cached(self, uid: str) -> bool:
        indexes = (self._pods, self._run_owners, self._related)
        return any(index is not None and index.name_of(uid) is not None for index in indexes)

    async def _report(self, entry: JobCacheEntry, job: Job, observed: Observed, now: datetime) -> datetime | None:
        """Write the status where it is not the job state itself, and only if it differs from the stored one.
        Returns when it changes by time alone."""
        manifest = entry.manifest
        report = self._dialect.status(job, entry.state, observed, manifest, now)
        operations: list[Obj] = []
        if report.status is not None and report.status != manifest.get("status"):
            operations = [{"op": "add", "path": "/status", "value": report.status}]
            await self._project(entry, operations, PatchType.JSON, "status")
        standing = manifest["metadata"].get("annotations") or {}
        changed = {name: text for name, text in report.annotations.items() if standing.get(name) != text}
        if changed:
            await self._project(entry, {"metadata": {"annotations": changed}}, PatchType.MERGE, "")
        if report.spec:
            uid = {"op": "test", "path": "/metadata/uid", "value": entry.uid}
            await self._project(entry, [uid, *report.spec], PatchType.JSON, "")
        return report.wake_at

    async def _project(self, entry: JobCacheEntry, patch: Obj | list[Obj], form: PatchType, subresource: str) -> None:
        entry.observe(await self._patch_job(entry, patch, form, subresource))

    def _emit_messages(self, entry: JobCacheEntry, step: Step, results: WriteResults) -> None:
        """Emit Events, but not about a job state that is not stored yet."""
        entry.events.add((*step.notifications, *withheld_messages(results), *results.failure_messages))
        entry.events.add_closed_gates(step.gate_statuses)
        if entry.stored.unwritten_since is None:
            self._teller.emit(entry.manifest, entry.events.take())

    def _plan_next(
        self, key: Key, entry: JobCacheEntry, step: Step, *, since: datetime, report_due: datetime | None, again: bool
    ) -> None:
        now = self._clock.now()
        facts = self._facts_due(entry, step.state)
        refused = entry.backoff.next_end(since)  # a short pause may have ended while the pass went on
        moments = [moment for moment in (step.wake_at, report_due, refused, facts) if moment is not None]
        timer = None
        if moments:
            seconds = max((min(moments) - now).total_seconds(), 0.0)
            timer = self._clock.call_later(seconds, lambda: self._work.add(key))
        entry.set_timer(timer)
        if again:
            self._work.add(key)


def _serves_all(_: Key) -> bool:
    return True


def _is_starting(state: JobState) -> bool:
    """Whether a task has no address yet; once all have one, persisting the state may wait."""
    return any(task.outcome is None and not task.attempt.ip for role in state.roles for task in role.tasks)


def _is_pod_missing(state: JobState, observed: Observed) -> bool:
    """Whether a pod the job state relies on is leaving or absent without a decision of the operator."""
    there = {observed_pod.uid: observed_pod.leaving for observed_pod in observed.pods}
    return any(
        there.get(task.uid, True)
        for role in state.roles
        for task in role.tasks
        if task.uid is not None and task.outcome is None and Stage.PREPARING <= task.stage <= Stage.RUNNING
    )
