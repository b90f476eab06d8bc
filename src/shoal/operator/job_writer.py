"""Writes the job object itself: the job state before everything else of a pass, the status after it.

The job state is stored in one conditional write that fails if the job has changed. A write that failed, or whose
response got lost, leaves open what is stored; the next pass then begins with a live read.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from shoal.cluster.client import Cluster, PatchType
from shoal.cluster.informer import Informer
from shoal.controller_runtime.metrics import Metrics
from shoal.dialects.capabilities import DialectSettings
from shoal.dialects.dialect import Dialect
from shoal.engine import Job, JobState, Observed, StateChange, Step
from shoal.kube.objects import Key, Obj, key_of
from shoal.operator.job_cache import JobCacheEntry, StoredState, job_inputs, phase_label
from shoal.scheduler.transforms import without_managed_fields

# Status-only changes (pod created, scheduled, running) are coalesced for up to this long before the state is stored.
STATUS_COALESCE = timedelta(milliseconds=300)
# While tasks of the job are starting more changes follow soon: then for this many times the coalescing time of events.
STARTING_COALESCE_FACTOR = 10


class JobWriter:
    """Of the jobs of one dialect, which `jobs` caches."""

    def __init__(
        self,
        cluster: Cluster,
        dialect: Dialect,
        jobs: Informer,
        metrics: Metrics,
        settings: DialectSettings,
        *,
        wake: Callable[[Key], None],
        coalesce_seconds: float,
    ) -> None:
        self._cluster = cluster
        self._dialect = dialect
        self._kind = dialect.kind
        self._jobs = jobs
        self._metrics = metrics
        self._settings = settings
        self._wake = wake
        self._starting_wait = max(STATUS_COALESCE, STARTING_COALESCE_FACTOR * timedelta(seconds=coalesce_seconds))

    async def store(self, entry: JobCacheEntry, job: Job, step: Step, now: datetime) -> None:
        """Store the state of a step, or note that it may wait: what holds no decision is read from the objects again
        after a crash."""
        # The job is counted first, so that a client that reads of its end finds it among the ended ones.
        self._count(entry, step.state)
        due = self.store_due(entry, step.state)
        is_decision = step.state_change is StateChange.DECISIONS or bool(step.notices)
        if entry.stored.includes(step.state, job.policies.pod_policy.memory):
            entry.stored.unwritten_since = None
        elif is_decision or (due is not None and now >= due):
            await self._write_state(entry, job, step.state)
        else:
            entry.stored.unwritten_since = entry.stored.unwritten_since or now
        entry.end_pass(step.state)

    async def store_last(self, entry: JobCacheEntry, job: Job, state: JobState) -> None:
        """Store the state of a job that is given up, instead of the one its pass has computed."""
        await self._write_state(entry, job, state)
        entry.state = state
        entry.expectations.abandon_pass()
        entry.events.take()
        self._count(entry, state)

    def store_due(self, entry: JobCacheEntry, state: JobState) -> datetime | None:
        """When a change that waits to be coalesced has to be stored; None where nothing waits."""
        if entry.stored.unwritten_since is None:
            return None
        # Once every task has an address, storing it may no longer wait as long.
        is_starting = any(task.outcome is None and not task.attempt.ip for role in state.roles for task in role.tasks)
        return entry.stored.unwritten_since + (self._starting_wait if is_starting else STATUS_COALESCE)

    async def report(self, entry: JobCacheEntry, job: Job, observed: Observed, now: datetime) -> datetime | None:
        """Write the status where it is not the job state itself, and only if it differs from the stored one.
        Returns when it changes by time alone."""
        manifest = entry.manifest
        report = self._dialect.status(job, entry.state, observed, manifest, now)
        stored = manifest["metadata"].get("annotations") or {}
        changed = {name: text for name, text in report.annotations.items() if stored.get(name) != text}
        if report.status is not None and report.status != manifest.get("status"):
            status = [{"op": "add", "path": "/status", "value": report.status}]
            entry.observe(await self._patch(entry, status, PatchType.JSON, "status"))
        if changed:
            entry.observe(await self._patch(entry, {"metadata": {"annotations": changed}}, PatchType.MERGE, ""))
        if report.spec:
            uid = {"op": "test", "path": "/metadata/uid", "value": entry.uid}
            entry.observe(await self._patch(entry, [uid, *report.spec], PatchType.JSON, ""))
        return report.wake_at

    def _count(self, entry: JobCacheEntry, state: JobState) -> None:
        phase = phase_label(state)
        self._metrics.count_state_change(self._kind, entry.reported_phase, phase)
        entry.reported_phase = phase

    async def _write_state(self, entry: JobCacheEntry, job: Job, state: JobState) -> None:
        version = entry.manifest["metadata"]["resourceVersion"]
        state_patch = self._dialect.save_state(job, state, self._settings)
        condition = {"op": "replace", "path": "/metadata/resourceVersion", "value": version}
        entry.stored.is_unknown = True  # until the response is here, also where the pass is cancelled before it
        patch = [condition, *state_patch.patch(entry.manifest)]
        entry.manifest = await self._patch(entry, patch, PatchType.JSON, state_patch.subresource)
        entry.stored = StoredState(state)

    async def _patch(self, entry: JobCacheEntry, patch: Obj | list[Obj], form: PatchType, subresource: str) -> Obj:
        """The job as the write leaves it.
        The write's own watch event is no change, even if it precedes the response; what the write found and this
        process had not seen is one."""
        key = key_of(entry.manifest)
        # CRDs that others installed may have no status subresource: then the status is a field like any other.
        subresource = subresource if subresource in self._kind.subresources else ""
        self._metrics.count_write(self._kind, "patch")
        entry.own_writes.write_sent()
        try:
            answer = await self._cluster.patch(
                self._kind, key.name, key.namespace, patch=patch, patch_type=form, subresource=subresource
            )
            if job_inputs(answer) == job_inputs(entry.manifest):
                entry.own_writes.expect_version(answer["metadata"]["resourceVersion"])
        finally:
            was_postponed = entry.own_writes.write_ended()
            cached = self._jobs.objects.get(key)
            if was_postponed and cached is not None and entry.observe_event(cached):
                self._wake(key)
        if cached is not None and cached["metadata"]["resourceVersion"] == answer["metadata"]["resourceVersion"]:
            return cached  # one object instead of two that are equal
        return without_managed_fields(answer)
