"""The Framework language, put together: each method and capability in terms of the module that has the rules."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from shoal.dialects.capabilities import (
    HistorySnapshots,
    ManifestWarnings,
    OperatorSettings,
    PodPreview,
    RunOwner,
    Scaling,
    Snapshot,
    StatusSchema,
    Suspension,
)
from shoal.dialects.dialect import Dialect, Owner, StatePatch, StatusReport
from shoal.dialects.framework import (
    crd,
    history,
    job_patches,
    job_spec,
    pod_builder,
    pod_preview,
    spec,
    status,
)
from shoal.dialects.framework.settings import FrameworkSettings, idle_settings, workers
from shoal.dialects.framework.settings import settings as read_settings
from shoal.engine import Create, Job, JobState, Notice, Observed, ObservedPod, ObservedRunOwner, TaskRef
from shoal.kube.errors import Cause
from shoal.kube.objects import Obj


class _AttemptConfigMap(RunOwner):
    def name(self, manifest: Obj) -> str:
        return pod_builder.run_owner_name(manifest)

    def build(self, manifest: Obj, create: Create) -> Obj:
        return pod_builder.build_run_owner(manifest, create)

    def observe(self, found: Obj, manifest: Obj) -> ObservedRunOwner:
        return pod_builder.run_owner(found, manifest)


class _TaskNumbers(Scaling):
    def patch(self, manifest: Obj, sizes: Mapping[str, int]) -> list[Obj]:
        return job_patches.scale_patch(manifest, sizes)


class _ExecutionType(Suspension):
    def stop_patch(self, manifest: Obj) -> list[Obj]:
        return job_patches.stop_patch(manifest)

    def start_patch(self, manifest: Obj) -> list[Obj]:
        return job_patches.start_patch(manifest)


class _FrameworkWarnings(ManifestWarnings):
    covers_idle_jobs = True

    def warn(self, new: Obj, old: Obj | None) -> list[str]:
        return job_patches.warn(new, old)


class _FrameworkPodPreview(PodPreview):
    def errors(self, manifest: Obj) -> list[Cause]:
        return pod_preview.preview_pods(manifest)


class _FrameworkHistory(HistorySnapshots):
    def snapshot(
        self, manifest: Obj, state: JobState, notice: Notice, settings: FrameworkSettings, now: datetime
    ) -> Snapshot | None:
        return history.snapshot(manifest, state, notice, settings, now)

    def deletion_snapshot(self, gone: Obj, settings: FrameworkSettings) -> Snapshot | None:
        return history.deletion_snapshot(gone, settings)


class _ControllerSettings(OperatorSettings):
    def workers(self, settings: FrameworkSettings) -> int:
        return workers(settings)

    def idle(self, settings: FrameworkSettings) -> Mapping[str, str]:
        return idle_settings(settings)


class _FrameworkStatusSchema(StatusSchema):
    def schema(self) -> Obj:
        return crd.status_model()


class FrameworkDialect(Dialect):
    kind = crd.kind()
    capabilities = (
        _AttemptConfigMap(),
        _TaskNumbers(),
        _ExecutionType(),
        _FrameworkWarnings(),
        _FrameworkPodPreview(),
        _FrameworkHistory(),
        _ControllerSettings(),
        _FrameworkStatusSchema(),
    )

    def crd(self) -> Obj:
        return crd.crd()

    def settings(self, written: Mapping[str, Any] | None = None) -> FrameworkSettings:
        return read_settings(written)

    def default(self, manifest: Obj) -> Obj:
        return spec.default(manifest)

    def validate(self, new: Obj, old: Obj | None = None) -> list[Cause]:
        return spec.admit(new, old)

    def to_job(self, manifest: Obj, settings: FrameworkSettings) -> Job:
        return job_spec.read(manifest, settings)

    def build_pod(self, manifest: Obj, create: Create) -> Obj:
        return pod_builder.build_pod(manifest, create)

    def pod_name(self, manifest: Obj, task: TaskRef) -> str:
        return pod_builder.pod_name(manifest, task)

    def owner_of(self, obj: Obj) -> Owner | None:
        return pod_builder.owner(obj)

    def observe_pod(self, pod: Obj, manifest: Obj) -> ObservedPod | None:
        return pod_builder.observe_pod(pod, manifest)

    def load_state(self, manifest: Obj) -> JobState:
        return status.restore(manifest)

    def save_state(self, job: Job, state: JobState, settings: FrameworkSettings) -> StatePatch:
        return status.record(job, state, settings)

    def status(self, job: Job, state: JobState, observed: Observed, manifest: Obj, now: datetime) -> StatusReport:
        """Nothing: the job state is the status."""
        del job, state, observed, manifest, now
        return StatusReport()


DIALECT = FrameworkDialect()
