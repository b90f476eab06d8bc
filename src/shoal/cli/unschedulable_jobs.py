"""Jobs of `shoal run` that can never end there, because a task or gang of them can never start: reported, and stopped
where nothing else is left of them. `feasibility` decides; this looks up the objects it names, and acts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from shoal.kube.objects import Key, uid_of

if TYPE_CHECKING:
    from shoal.cli.feasibility import FitResult, RequiredObject
    from shoal.cli.job_lookup import FoundJob
    from shoal.cli.progress import LineDisplay, TableDisplay
    from shoal.cluster.client import Cluster

ADD_CAPACITY_HINT = (
    "A cluster of `shoal run` gets its nodes and resources at its start: repeat the command with --nodes or "
    "--capacity, or let the job request less."
)


class UnschedulableJobs:
    """Jobs with a task or gang that can never start here: reported once, stopped if nothing else is left of them.
    The others continue."""

    def __init__(self, cluster: Cluster, shown: LineDisplay | TableDisplay) -> None:
        self._cluster = cluster
        self._shown = shown
        self._fits: dict[str, dict[str, FitResult]] = {}  # by uid of the job, then by pod or group
        self._reported: set[str] = set()  # jobs that partly continue
        self._lookups: dict[tuple[str, str], asyncio.Task[None]] = {}  # by uid, and pod; '' for the whole job
        self.stopping: dict[str, asyncio.Task[None]] = {}  # by uid; a task without a reference may vanish

    def has(self, job: FoundJob) -> bool:
        return uid_of(job.manifest) in self.stopping

    def fit(self, job: FoundJob, which: str, fit: FitResult | None) -> None:
        """Store how a pod or group of the job fits; None when it needs no place any more."""
        fits = self._fits.setdefault(uid_of(job.manifest), {})
        if fit is None:
            fits.pop(which, None)
        else:
            fits[which] = fit
            if fit.required:
                self._look_up(job, which, self._check_required_by_pod(job, which, fit))
        self.check(job)

    def check_required(self, job: FoundJob) -> None:
        """Look once whether the objects that a job waits for before it makes pods exist: those of the files do."""
        from shoal.dialects.capabilities import OwnedObjects

        if job.dialect.capability(OwnedObjects) is not None and (uid_of(job.manifest), "") not in self._lookups:
            self._look_up(job, "", self._stop_without_required(job))

    def _look_up(self, job: FoundJob, which: str, lookup: Coroutine[Any, Any, None]) -> None:
        """A later look replaces the one before: the pod has changed."""
        place = uid_of(job.manifest), which
        if place in self._lookups:
            self._lookups[place].cancel()
        self._lookups[place] = asyncio.get_running_loop().create_task(lookup)

    async def _check_required_by_pod(self, job: FoundJob, which: str, fit: FitResult) -> None:
        """Look which objects exist now: the pod may have been created before them."""
        missing = [each for each in fit.required if await self._is_missing(each)]
        fits = self._fits[uid_of(job.manifest)]
        if fits.get(which) is fit:  # else the pod has changed since
            looked_up = replace(fit, required=())
            fits[which] = replace(looked_up, why=missing[0].why_missing, is_size=False) if missing else looked_up
            self.check(job)

    async def _stop_without_required(self, job: FoundJob) -> None:
        from shoal.cli.feasibility import RequiredObject
        from shoal.dialects.capabilities import OwnedObjects

        owned = job.dialect.capability(OwnedObjects)
        for each in owned.required_objects(job.manifest) if owned is not None else ():
            required = RequiredObject(each.kind, Key(job.namespace, each.name))
            if not job.state.is_ended and await self._is_missing(required):
                self.stop(job, required.why_missing, "")
                return

    async def _is_missing(self, each: RequiredObject) -> bool:
        from shoal.kube.errors import ApiError

        try:
            await self._cluster.get(each.kind, each.key.name, each.key.namespace)
        except ApiError as refused:
            return refused.code == 404
        return False

    def stop(self, job: FoundJob, why: str, hint: str) -> None:
        """Stop a job that waits for something that cannot happen here; once."""
        if self.has(job):
            return
        what = str(job) if job.state.stamps.ran is None else f"What is left of {job}"
        if uid_of(job.manifest) in self._reported:  # with the reason
            self._shown.note(f"{what} is stopped: no other task of it can start any more.")
        else:
            self._shown.note(f"{what} can never start here and is stopped: {why.rstrip('.')}. {hint}".rstrip())
        self.stopping[uid_of(job.manifest)] = asyncio.get_running_loop().create_task(
            stop_job(self._cluster, job, self._shown, "Ctrl-C stops everything.")
        )

    def check(self, job: FoundJob) -> None:
        """Whether the job can still come to its end."""
        from shoal.cli.feasibility import find_unschedulable

        uid = uid_of(job.manifest)
        found = None if self.has(job) else find_unschedulable(job.state, self._fits.get(uid, {}).values())
        if found is None:
            return
        hint = ADD_CAPACITY_HINT if found.is_size else ""
        why = f"{found.why.rstrip('.')}. {hint}".rstrip()
        if found.is_all:
            self.stop(job, found.why, hint)
        elif uid not in self._reported:
            self._reported.add(uid)
            self._shown.note(f"{job} continues, but {found.task or 'one of its gangs'} can never start here: {why}")


async def stop_job(cluster: Cluster, job: FoundJob, shown: LineDisplay | TableDisplay, hint: str) -> None:
    """Report here what could not be stopped, because no caller awaits the task that stops a job."""
    from shoal.cli.job_actions import stop
    from shoal.cluster.client import OutcomeUnknown
    from shoal.kube.errors import ApiError

    try:
        await stop(cluster, job)
    except (ApiError, OutcomeUnknown, OSError) as refused:
        why = refused.message if isinstance(refused, ApiError) else refused
        shown.note(f"{job} was not stopped: {why}. {hint}")
