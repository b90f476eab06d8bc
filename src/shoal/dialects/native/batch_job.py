"""Job of batch/v1 as one value: its pods, what people do to it, and where the rest of the language is."""

from __future__ import annotations

from collections.abc import Mapping

from shoal.dialects.dialect import Dialect
from shoal.dialects.native import adoption, batch_job_status, pod_builder, pod_failure_policy
from shoal.dialects.native.batch_job_spec import FINALIZER, ROLE, admit, is_indexed, read
from shoal.dialects.native.settings import settings
from shoal.engine import Create, TaskRef
from shoal.kube.kinds import JOB
from shoal.kube.objects import Obj, name_of

INDEX = "batch.kubernetes.io/job-completion-index"
FAILURES = "batch.kubernetes.io/job-index-failure-count"
INDEX_VARIABLE = "JOB_COMPLETION_INDEX"


def build_pod(manifest: Obj, create: Create) -> Obj:
    """The pod keeps its finalizer until the ledger has counted it."""
    ref, spec = create.target, manifest["spec"]
    assert isinstance(ref, TaskRef)
    if not is_indexed(spec):
        pod = pod_builder.pod_from(manifest, JOB, create)
    else:
        own = {INDEX: str(ref.index)}
        completion_progress = {FAILURES: str(create.failures)} if spec.get("backoffLimitPerIndex") is not None else {}
        pod = pod_builder.pod_from(
            manifest, JOB, create, infix=f"{ref.index}-", labels=own, annotations={**own, **completion_progress}
        )
        if not pod["spec"].get("hostname"):
            pod["spec"]["hostname"] = f"{name_of(manifest)}-{ref.index}"
        for container in (*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"]):
            _add_index_variable(container)
    pod["metadata"]["finalizers"] = [FINALIZER]
    return pod


def _add_index_variable(container: Obj) -> None:
    """Unless the template has a word of its own for it."""
    variables = container.get("env") or []
    if all(each.get("name") != INDEX_VARIABLE for each in variables):
        source = {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX}']"}}
        container["env"] = [*variables, {"name": INDEX_VARIABLE, "valueFrom": source}]


def warn(manifest: Obj, _: Obj | None = None) -> list[str]:
    return [*pod_builder.unknown_fields(JOB, manifest), *pod_failure_policy.ignored_fields(manifest.get("spec") or {})]


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


def stop_patch(manifest: Obj) -> list[Obj]:
    """Suspend the Job: its pods are deleted and its successes kept."""
    del manifest
    return [{"op": "add", "path": "/spec/suspend", "value": True}]


def start_patch(manifest: Obj) -> list[Obj]:
    del manifest
    return [{"op": "add", "path": "/spec/suspend", "value": False}]


_display_name = pod_builder.display_name(ROLE)


def display_name(pod: Obj, manifest: Obj) -> str:
    return "" if is_indexed(manifest["spec"]) else _display_name(pod, manifest)


DIALECT = Dialect(
    kind=JOB,
    crd=None,
    settings=settings,
    default=pod_builder.default_of(JOB),
    admit=admit,
    preview_pods=pod_builder.preview_pods,
    warn=warn,
    read=read,
    build_pod=build_pod,
    pod_name=pod_builder.no_name,
    restore=batch_job_status.restore,
    record=batch_job_status.record,
    owner=pod_builder.owner_of(JOB),
    observe_pod=pod_builder.pod_observer(JOB, ROLE, FINALIZER),
    report=batch_job_status.report,
    finalizer=FINALIZER,
    orphans=adoption.orphans_of_job,
    adopt_patch=adoption.adopt_patch(JOB),
    scale_patch=scale_patch,
    stop_patch=stop_patch,
    stop_holds=True,
    start_patch=start_patch,
    display_name=display_name,
    status_state=batch_job_status.status_state,
    completion_progress=batch_job_status.completion_progress,
    embedded_only=True,
)
