"""Volcano's Job language, put together: each method and capability in terms of the module that has the rules."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from shoal.dialects.capabilities import (
    ClusterValidation,
    DeletionMark,
    Lookup,
    ManifestWarnings,
    Scaling,
    StatusProgress,
)
from shoal.dialects.dialect import Dialect, Owner, StatePatch, StatusReport
from shoal.dialects.volcano import children, commands, crd, job_patches, job_spec, pod_builder, spec, status, validation
from shoal.dialects.volcano.settings import VolcanoSettings
from shoal.engine import Create, Job, JobState, Observed, ObservedPod, TaskRef
from shoal.kube.errors import Cause
from shoal.kube.objects import Obj
from shoal.scheduler.api.pod_groups import QUEUE


class _Replicas(Scaling):
    def patch(self, manifest: Obj, sizes: Mapping[str, int]) -> list[Obj]:
        return job_patches.scale_patch(manifest, sizes)


class _VolcanoWarnings(ManifestWarnings):
    def warn(self, new: Obj, old: Obj | None) -> list[str]:
        return job_patches.warn(new, old)


class _QueueValidation(ClusterValidation):
    kinds = (QUEUE,)

    def validate(self, manifest: Obj, lookup: Lookup) -> list[Cause]:
        return validation.validate_in_cluster(manifest, lookup)


class _VolcanoProgress(StatusProgress):
    def status_state(self, manifest: Obj) -> JobState:
        return status.status_state(manifest)


class VolcanoDialect(Dialect):
    kind = crd.kind()
    state_in_annotation = True
    capabilities = (
        children.JobChildren(),
        children.JobGangs(),
        commands.VolcanoCommands(),
        DeletionMark(pod_builder.MARK),
        _Replicas(),
        _VolcanoWarnings(),
        _QueueValidation(),
        _VolcanoProgress(),
    )

    def crd(self) -> Obj:
        return crd.crd()

    def settings(self, written: Mapping[str, Any] | None = None) -> VolcanoSettings:
        return VolcanoSettings.read(written)

    def default(self, manifest: Obj) -> Obj:
        return spec.default(manifest)

    def validate(self, new: Obj, old: Obj | None = None) -> list[Cause]:
        return validation.admit(new, old)

    def to_job(self, manifest: Obj, settings: VolcanoSettings) -> Job:
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

    def save_state(self, job: Job, state: JobState, settings: VolcanoSettings) -> StatePatch:
        return status.record(job, state, settings)

    def status(self, job: Job, state: JobState, observed: Observed, manifest: Obj, now: datetime) -> StatusReport:
        return status.report(job, state, observed, manifest, now)


DIALECT = VolcanoDialect()
