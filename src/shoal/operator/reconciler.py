"""The reconciler: the loop that runs every job of one dialect.

Informers cache the jobs and what they own; every change wakes the job it belongs to. Each job has one pass at a time,
and changes that arrive during a pass are coalesced into one more. A pass calls the engine and executes its step in the
order that makes a crash harmless: history, the job state in one conditional write, the writes, the report, Events.

Between passes the job cache (`job_cache.py`) keeps the job state and the expectations. The last job state of this
process counts, not that of an informer, which may be stale; after a write that failed or got lost, the stored one
counts. Responses to the writes of a pass reach the very next pass (`expectations.py`).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from datetime import datetime

from shoal.cluster.client import Cluster, WatchEvent
from shoal.cluster.clock import Clock
from shoal.cluster.event_recorder import EventRecorder
from shoal.cluster.informer import Change, Informer
from shoal.controller_runtime.metrics import Metrics
from shoal.controller_runtime.workqueue import WORKERS, WorkQueue
from shoal.dialects.capabilities import Adoption, DialectSettings, OperatorSettings, PodFinalizer, RunOwner
from shoal.dialects.dialect import Dialect, ManifestInvalid, StateUnreadable
from shoal.engine import Create, Job, JobState, Notification, Stage, Step
from shoal.engine.advance import advance
from shoal.engine.run_lifecycle import give_up
from shoal.kube.errors import ApiError, is_too_large
from shoal.kube.kinds import CONFIG_MAP, POD
from shoal.kube.messages import Message
from shoal.kube.objects import Key, Obj, key_of, uid_of
from shoal.kube.times import rfc3339
from shoal.logs import Logger
from shoal.operator.job_cache import CreateBackoff, JobCache, JobCacheEntry, StoredState
from shoal.operator.job_events import EventEmitter, History, log_snapshot, withheld_messages
from shoal.operator.job_history import JobHistory
from shoal.operator.job_index import JobIndex
from shoal.operator.job_observer import JobObserver
from shoal.operator.job_writer import JobWriter
from shoal.operator.live_lookup import find
from shoal.operator.orphan_adoption import adopt_orphans
from shoal.operator.related_objects import RelatedObjectIndex
from shoal.operator.shared_informers import SharedInformers
from shoal.operator.write_executor import WriteExecutor
from shoal.operator.write_results import WriteResults
from shoal.scheduler.transforms import without_managed_fields

log = Logger(__name__)


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
        """Of all jobs those of `namespace` (None: of every one) that `labels` select and `serves` accepts.

        `informers`: those of the reconcilers of one process, for the same namespace and jobs, which run on their own;
        a reconciler that is alone has its own.

        `coalesce_seconds`: how long the change of a pod may wait for that of others of its job.
        """
        self._cluster = cluster
        self._dialect = dialect
        self._kind = dialect.kind
        self._finalizer = dialect.capability(PodFinalizer)
        self._adoption = dialect.capability(Adoption)
        self._settings = settings if settings is not None else dialect.settings(None)
        self._clock = clock
        self._metrics = metrics
        self._rng = rng or random.Random()  # noqa: S311 - names, delays and jitter; guards nothing
        self._serves = serves
        self.advance = advance  # the engine; tests wrap it to check every step
        self._history = JobHistory(cluster, dialect, self._settings, history, has_selector=bool(labels))
        self._cache = JobCache()
        tuning = dialect.capability(OperatorSettings)
        self._work = WorkQueue(
            self.name, self.reconcile,
            clock=clock, jitter=self._rng, coalesce_seconds=coalesce_seconds,
            workers=tuning.workers(self._settings) if tuning is not None else WORKERS,
            in_progress=self._cache.active.__contains__,
        )  # fmt: skip

        self._own_informers: SharedInformers | None = None
        if informers is None:
            informers = SharedInformers(cluster, [dialect], namespace=namespace, serves=serves, clock=clock)
            self._own_informers = informers
        self._jobs = Informer(
            cluster, self._kind, namespace,
            labels=labels, trim=self._trim_job, on_change=self._on_job_change, clock=clock, jitter=self._rng,
        )  # fmt: skip
        self._pods = JobIndex(
            informers.of(POD), dialect,
            wake=self._work.add_after_delay, on_name_freed=self._on_name_freed,
            on_deletion=self._on_pod_deletion, on_final_version=self._history.record_deletion,
        )  # fmt: skip
        self._run_owners: JobIndex | None = None
        if dialect.capability(RunOwner) is not None:
            self._run_owners = JobIndex(
                informers.of(CONFIG_MAP), dialect, wake=self._work.add, on_name_freed=self._on_name_freed
            )
        self._related = RelatedObjectIndex(
            cluster, dialect, informers, namespace=namespace, wake=self._wake_served, clock=clock
        )

        self._observer = JobObserver(cluster, dialect, self._pods, self._run_owners, self._related, self._rng)
        self._writer = JobWriter(
            cluster, dialect, self._jobs, metrics, self._settings,
            wake=self._work.add, coalesce_seconds=coalesce_seconds,
        )  # fmt: skip
        self._executor = WriteExecutor(cluster, dialect, self._pods, self._related, metrics, self._rng)
        self._events = EventEmitter(EventRecorder(cluster, component, clock=clock), metrics)

    @property
    def name(self) -> str:
        return f"{self._kind.kind} jobs"

    @property
    def idle(self) -> bool:
        """Whether no pass runs or is due at once; for tests."""
        return self._work.depth == 0

    @property
    def finished_jobs(self) -> frozenset[Key]:
        """The jobs that ended, of which little more than the name is kept."""
        return frozenset(self._cache.finished)

    @property
    def is_synced(self) -> bool:
        """Whether the informers have listed the cluster once."""
        return all(informer.synced.is_set() for informer in self._informers)

    @property
    def _informers(self) -> tuple[Informer, ...]:
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
                    group.create_task(self._events.run())
        finally:
            for cached in self._cache:
                cached.cancel_timer()
                self._metrics.count_state_change(self._kind, cached.reported_phase, "")
            await self._work.close()

    # What wakes a job

    def _trim_job(self, event: WatchEvent) -> Obj:
        job = event.object
        if self._serves is None or self._serves(key_of(job)):
            return without_managed_fields(job)
        # Another operator serves it.
        return {"metadata": {name: job["metadata"][name] for name in ("name", "namespace", "uid", "resourceVersion")}}

    def _wake_served(self, key: Key) -> None:
        if self._serves is None or self._serves(key):
            self._work.add(key)

    def _on_job_change(self, change: Change) -> None:
        if self._serves is not None and not self._serves(change.key):
            return
        if change.old is not None and (change.new is None or uid_of(change.new) != uid_of(change.old)):
            self._history.job_disappeared(change.old)
        entry = self._cache.active.get(change.key)
        if change.new is None or entry is None:
            self._work.add(change.key)
        elif entry.own_writes.is_pending:
            entry.own_writes.postpone_event()  # most likely the watch is faster than the response to our own write
        else:
            if entry.observe_event(change.new):
                self._work.add(change.key)
            if not self._work.is_pending(change.key):
                self._cache.release_finished(change.key, change.new)

    def _on_pod_deletion(self, key: Key, uid: str) -> None:
        entry = self._cache.active.get(key)
        if entry is not None:
            entry.expectations.deletion_observed(uid)

    def _on_name_freed(self, key: Key) -> None:
        entry = self._cache.active.get(key)
        if entry is not None:
            entry.backoff.reset()

    # One pass

    async def reconcile(self, key: Key) -> None:
        for informer in self._informers:
            await informer.synced.wait()
        with self._metrics.time_reconcile(self._kind):
            await self._pass(key)

    async def _pass(self, key: Key) -> None:
        # 1. Finish what deleted jobs of this name have left.
        await self._clean_up(key)

        # 2. Recall the job: its manifest, its state, and the writes that no informer shows yet.
        entry = await self._recall(key)
        job = entry.job(self._parse) if entry is not None else None
        if entry is None or job is None:
            return
        if entry.state.is_new and self._adoption is not None:
            # A new job counts the orphans it selects before it creates pods of its own.
            await adopt_orphans(self._cluster, self._adoption, entry.manifest, self._pods.informer)

        # 3. Observe its pods and other objects.
        now = self._clock.now()
        observed = await self._observer.observe(key, entry)

        # 4. Decide.
        step = self.advance(job, entry.state, observed, now)

        # 5. Record history, then store the state: from here on a crash repeats writes, but never decides otherwise.
        self._history.record(entry, job, observed, step, now)
        try:
            await self._writer.store(entry, job, step, now)
        except ApiError as refused:
            if not is_too_large(refused):
                raise
            await self._give_up(entry, job, refused, now)
            return

        # 6. Create, patch and delete objects, and expect what the responses promise.
        results = await self._write(key, entry, step, now)

        # 7. Report: status, Events, and what gang schedulers expect.
        report_due = await self._writer.report(entry, job, observed, now)
        self._emit_events(entry, step, results)

        # 8. Plan the next pass.
        store_due = self._writer.store_due(entry, step.state)
        refused_until = entry.backoff.next_end(now)  # since `now`: a short pause may have ended during the pass
        self._wake_at(key, entry, step.wake_at, report_due, refused_until, store_due)
        if step.requeue or results.is_urgent:
            self._work.add(key)

        are_up = entry.state.run.stage is Stage.RUNNING
        await self._executor.acknowledge_pods(entry.manifest, results, are_up=are_up, now=rfc3339(now))
        if results.failure is not None:
            raise results.failure
        if not step.requeue:
            self._cache.release_finished(key, self._jobs.objects.get(key))

    def _emit_events(self, entry: JobCacheEntry, step: Step, results: WriteResults) -> None:
        entry.events.add((*step.notifications, *withheld_messages(results), *results.failure_messages))
        entry.events.add_closed_gates(step.gate_statuses)
        if entry.stored.unwritten_since is None:  # no Event about a state that is not stored yet
            self._events.emit(entry.manifest, entry.events.take())

    def _wake_at(self, key: Key, entry: JobCacheEntry, *moments: datetime | None) -> None:
        """Run the next pass at the first of these moments, unless a change comes earlier."""
        timer = None
        if due := [moment for moment in moments if moment is not None]:
            seconds = max((min(due) - self._clock.now()).total_seconds(), 0.0)
            timer = self._clock.call_later(seconds, lambda: self._work.add(key))
        entry.set_timer(timer)

    async def _clean_up(self, key: Key) -> None:
        await self._history.confirm_deletions(key)
        job = self._jobs.objects.get(key)
        if self._finalizer is not None:
            # Pods of a deleted job are not counted any more, so no finalizer may hold them.
            for pod in list(self._pods.of(key)):
                owner = self._dialect.owner_of(pod)
                is_held = self._finalizer.name in (pod["metadata"].get("finalizers") or ())
                if owner is not None and is_held and (job is None or uid_of(job) != owner.uid):
                    await self._executor.remove_finalizer(pod, uid_of(pod))
        commands = self._related.commands_for(key) if job is None else []
        # A command for a job that does not exist is consumed without effect: a later job of that name is not meant.
        # The informer of the jobs may be late, or select only some of them, so the API server decides.
        if commands and await find(self._cluster, self._kind, key.name, key.namespace) is None:
            await self._executor.discard(commands)

    async def _recall(self, key: Key) -> JobCacheEntry | None:
        """The job under that key as far as it is known; None where it is deleted, or cannot be read."""
        manifest = self._jobs.objects.get(key)
        former = self._cache.remove_former(key, manifest)
        if former is not None:
            self._metrics.count_state_change(self._kind, former.reported_phase, "")
            self._related.forget(key)
        if manifest is None:
            return None
        entry = self._cache.active.get(key)
        if entry is not None:
            entry.observe(manifest)
            return await self._reload(entry) if entry.stored.is_unknown else entry
        finished = self._cache.finished.pop(key, None)
        phase, timer = (finished.reported_phase, finished.timer) if finished is not None else ("", None)
        state = self._load_state(manifest)
        if state is None:
            self._metrics.count_state_change(self._kind, phase, "")
            return None
        entry = self._cache.active[key] = JobCacheEntry(
            manifest, state, StoredState(state), CreateBackoff(self._rng), timer=timer, reported_phase=phase
        )
        return entry

    async def _reload(self, entry: JobCacheEntry) -> JobCacheEntry | None:
        """A write of the job state failed, or its response got lost: what is stored counts, and only a live read
        shows it."""
        key = key_of(entry.manifest)
        found = await find(self._cluster, self._kind, key.name, key.namespace)
        state = self._load_state(found) if found is not None and uid_of(found) == entry.uid else None
        if found is None or state is None:
            return None
        entry.reload(without_managed_fields(found), state)
        return entry

    def _load_state(self, manifest: Obj) -> JobState | None:
        try:
            return self._dialect.load_state(manifest)
        except StateUnreadable as problem:
            self._emit_invalid(manifest, "LedgerUnreadable", str(problem))
            return None

    def _parse(self, manifest: Obj) -> Job | None:
        try:
            return self._dialect.to_job(manifest, self._settings)
        except ManifestInvalid as problem:
            self._emit_invalid(manifest, "InvalidManifest", str(problem))
            return None

    def _emit_invalid(self, manifest: Obj, reason: str, text: str) -> None:
        log.warning("job cannot be run", job=str(key_of(manifest)), reason=reason, problem=text)
        self._events.emit(manifest, (Notification("", Message(reason, {"cause": text}), warning=True),))

    async def _give_up(self, entry: JobCacheEntry, job: Job, refused: ApiError, now: datetime) -> None:
        """The server does not store a state of this size, now or later: the job ends with that reason."""
        outcome = job.policies.completion.too_large
        await self._writer.store_last(entry, job, give_up(entry.state, outcome, now))
        message = Message("StateTooLarge", {"text": outcome.text, "cause": refused.message})
        self._events.emit(entry.manifest, (Notification("", message, warning=True),))
        self._work.add(key_of(entry.manifest))  # its objects are deleted, its status set

    async def _write(self, key: Key, entry: JobCacheEntry, step: Step, now: datetime) -> WriteResults:
        """Execute the step's writes, except creates that wait for the end of a backoff."""
        backoff, expectations = entry.backoff, entry.expectations
        writes = [
            write for write in step.writes if not isinstance(write, Create) or backoff.allow(write, step.state, now)
        ]
        results = await self._executor.carry_out(
            entry.manifest, writes, expectations=expectations, barred=backoff.barred
        )
        expectations.set_expectations(results.write_results, is_cached=self._observer.is_cached)
        backoff.record(results, now)
        for conflict in results.name_conflicts:
            self._pods.await_end(conflict, key)
        return results
