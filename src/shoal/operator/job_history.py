"""Records the history of jobs: what their job state is about to drop, and the last version of what was deleted.

A record is emitted before the job state drops its subject, so at least once: a crash in between repeats it.
"""

from __future__ import annotations

from datetime import datetime

from shoal.cluster.client import Cluster
from shoal.dialects.capabilities import DialectSettings, HistorySnapshots, Snapshot
from shoal.dialects.dialect import Dialect
from shoal.engine import Job, Observed, Step
from shoal.kube.objects import Key, Obj, key_of, uid_of
from shoal.operator.job_cache import JobCacheEntry
from shoal.operator.job_events import History
from shoal.operator.live_lookup import find

ON_JOB_END = "OnJobEnd"  # the trigger of the snapshot of a job that has ended


class JobHistory:
    """Of the jobs of one dialect."""

    def __init__(
        self, cluster: Cluster, dialect: Dialect, settings: DialectSettings, history: History, *, has_selector: bool
    ) -> None:
        """`has_selector`: jobs are selected by labels, so that one that disappears may be another operator's now."""
        self._cluster = cluster
        self._dialect = dialect
        self._kind = dialect.kind
        self._snapshots = dialect.capability(HistorySnapshots)
        self._settings = settings
        self._history = history
        self._has_selector = has_selector
        self._disappeared: list[Obj] = []  # jobs that are no longer selected, deleted or not

    def record(self, entry: JobCacheEntry, job: Job, observed: Observed, step: Step, now: datetime) -> None:
        """What the state of a step drops; of a dialect that defines no snapshots, the job as it ended."""
        manifest = entry.manifest
        if self._snapshots is not None:
            for notice in step.notices:
                self._emit(self._snapshots.snapshot(manifest, entry.state, notice, self._settings, now))
        elif step.state.is_ended and not entry.state.is_ended:
            status = self._dialect.status(job, step.state, observed, manifest, now).status
            whole = {"apiVersion": self._kind.api_version, "kind": self._kind.kind, **manifest}
            shown = whole if status is None else {**whole, "status": status}
            self._emit(Snapshot(str(key_of(manifest)), ON_JOB_END, shown))

    def record_deletion(self, obj: Obj) -> None:
        """The last version of a job or pod that was deleted."""
        if self._snapshots is not None:
            self._emit(self._snapshots.deletion_snapshot(obj, self._settings))

    def job_disappeared(self, job: Obj) -> None:
        if self._has_selector:
            self._disappeared.append(job)
        else:
            self.record_deletion(job)

    async def confirm_deletions(self, key: Key) -> None:
        """Record those of the jobs with that name that were deleted: only a live read shows it."""
        for job in [job for job in self._disappeared if key_of(job) == key]:
            found = await find(self._cluster, self._kind, key.name, key.namespace)
            self._disappeared.remove(job)
            if found is None or uid_of(found) != uid_of(job):
                self.record_deletion(job)

    def _emit(self, snapshot: Snapshot | None) -> None:
        if snapshot is not None:
            self._history(snapshot)
