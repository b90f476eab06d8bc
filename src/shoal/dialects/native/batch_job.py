"""Job of batch/v1 as one value: its pods, what people do to it, and where the rest of the language is."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from shoal.dialects.capabilities import CompletionProgress, PodFinalizer, Scaling, StatusProgress, Suspension
from shoal.dialects.dialect import StatePatch, StatusReport
from shoal.dialects.native import adoption, batch_job_status, pod_builder, pod_failure_policy
from shoal.dialects.native.batch_job_spec import FINALIZER, ROLE, admit, is_indexed, read
from shoal.dialects.native.settings import NativeSettings
from shoal.dialects.native.template_dialect import (
    GeneratedNames,
    SelectorAdoption,
    TemplateDialect,
    TemplateWarnings,
)
from shoal.engine import Create, Job, JobState, Observed, TaskRef
from shoal.kube.errors import Cause
from shoal.kube.kinds import JOB
from shoal.kube.objects import Obj, name_of

INDEX = "batch.kubernetes.io/job-completion-index"
FAILURES = "batch.kubernetes.io/job-index-failure-count"
INDEX_VARIABLE = "JOB_COMPLETION_INDEX"


def build_pod(manifest: Obj, create: Create) -> Obj:
    """The pod keeps its finalizer until the job state has counted it."""
    ref, spec = create.target, manifest["spec"]
    assert isinstance(ref, TaskRef)
    if not is_indexed(spec):
        pod = pod_builder.pod_from(manifest, JOB, create)
    else:
        own = {INDEX: str(ref.index)}
        failure_annotations = {FAILURES: str(create.failures)} if spec.get("backoffLimitPerIndex") is not None else {}
        pod = pod_builder.pod_from(
            manifest, JOB, create, infix=f"{ref.index}-", labels=own, annotations={**own, **failure_annotations}
        )
        if not pod["spec"].get("hostname"):
            pod["spec"]["hostname"] = f"{name_of(manifest)}-{ref.index}"
        for container in (*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"]):
            variables = container.get("env") or []
            if all(each.get("name") != INDEX_VARIABLE for each in variables):  # else the template sets it
                source = {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX}']"}}
                container["env"] = [*variables, {"name": INDEX_VARIABLE, "valueFrom": source}]
    pod["metadata"]["finalizers"] = [FINALIZER]
    return pod


def scale_patch(manifest: Obj, sizes: Mapping[str, int]) -> list[Obj]:
    """More or fewer at once. How many successes are wanted stays, but for a job by index whose numbers go together."""
    spec = manifest["spec"]
    operations: list[Obj] = []
    for name, size in sizes.items():
        if name != ROLE:
            raise LookupError(f"there is no role {name!r}; a Job has one, {ROLE}")
        operations.append({"op": "add", "path": "/spec/parallelism", "value": size})
        if is_indexed(spec) and spec.get("completions") == spec.get("parallelism"):
            operations.append({"op": "add", "path": "/spec/completions", "value": size})
    return operations


class _Parallelism(Scaling):
    def patch(self, manifest: Obj, sizes: Mapping[str, int]) -> list[Obj]:
        return scale_patch(manifest, sizes)


class _Suspend(Suspension):
    """A suspended Job has no pods and keeps its successes."""

    keeps_work = True

    def stop_patch(self, manifest: Obj) -> list[Obj]:
        del manifest
        return [{"op": "add", "path": "/spec/suspend", "value": True}]

    def start_patch(self, manifest: Obj) -> list[Obj]:
        del manifest
        return [{"op": "add", "path": "/spec/suspend", "value": False}]


class _BatchJobWarnings(TemplateWarnings):
    def warn(self, new: Obj, old: Obj | None) -> list[str]:
        return [*super().warn(new, old), *pod_failure_policy.ignored_fields(new.get("spec") or {})]


class _BatchJobProgress(StatusProgress):
    def status_state(self, manifest: Obj) -> JobState:
        return batch_job_status.status_state(manifest)

    def completion(self, manifest: Obj) -> CompletionProgress | None:
        return batch_job_status.completion_progress(manifest)


class _BatchJobNames(GeneratedNames):
    def of(self, pod: Obj, manifest: Obj) -> str:
        return "" if is_indexed(manifest["spec"]) else super().of(pod, manifest)


class _ManualSelectorAdoption(SelectorAdoption):
    def orphans(self, manifest: Obj) -> str:
        return adoption.orphans_of_job(manifest)


class BatchJobDialect(TemplateDialect):
    kind = JOB
    role = ROLE
    finalizer = FINALIZER
    capabilities = (
        _Parallelism(),
        _Suspend(),
        _BatchJobWarnings(JOB),
        _BatchJobProgress(),
        _BatchJobNames(ROLE),
        PodFinalizer(FINALIZER),
        _ManualSelectorAdoption(JOB),
    )

    def validate(self, new: Obj, old: Obj | None = None) -> list[Cause]:
        del old
        return admit(new)

    def to_job(self, manifest: Obj, settings: NativeSettings) -> Job | None:
        return read(manifest, settings)

    def build_pod(self, manifest: Obj, create: Create) -> Obj:
        return build_pod(manifest, create)

    def load_state(self, manifest: Obj) -> JobState:
        return batch_job_status.restore(manifest)

    def save_state(self, job: Job, state: JobState, settings: NativeSettings) -> StatePatch:
        return batch_job_status.record(job, state, settings)

    def status(self, job: Job, state: JobState, observed: Observed, manifest: Obj, now: datetime) -> StatusReport:
        return batch_job_status.report(job, state, observed, manifest, now)


DIALECT = BatchJobDialect()
