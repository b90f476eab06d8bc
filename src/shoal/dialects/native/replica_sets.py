"""ReplicaSet: as many pods as requested. No pod is ever done, nothing is ever charged, and there is no end.

A pod that is lost, ends or is deleted is simply created again; of surplus pods, those easiest to lose are deleted
first. Only the set of pods chosen for deletion must survive a crash; it is in the annotation all dialects share.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from shoal.dialects import state_annotation
from shoal.dialects.capabilities import Scaling, StatusProgress
from shoal.dialects.dialect import ManifestInvalid, StatePatch, StatusReport
from shoal.dialects.job_limits import LARGEST_JOB, size_error
from shoal.dialects.memo import memoize
from shoal.dialects.native import pod_builder
from shoal.dialects.native.settings import NativeSettings
from shoal.dialects.native.template_dialect import (
    GeneratedNames,
    SelectorAdoption,
    TemplateDialect,
    TemplateWarnings,
)
from shoal.engine import Create, Job, JobState, Observed, ObservedPod, Policies, Role, RoleState, Stage, TaskState
from shoal.engine.policies import (
    Bound,
    Completion,
    CountCondition,
    ExternalDeletion,
    Memory,
    PodEndPolicy,
    PodNames,
    PodPolicy,
    Ready,
    Retry,
    ShrinkPolicy,
    SlotRelease,
    Tally,
    Timeouts,
    VictimOrder,
)
from shoal.kube.errors import Cause
from shoal.kube.kinds import REPLICA_SET, REPLICA_SET_V1BETA1
from shoal.kube.objects import Obj, at_path, is_terminating, name_of, namespace_of, uid_of
from shoal.kube.validation.errors import invalid

ROLE = "replica"
CREATION_SECONDS = 300  # a pod that was made and shows nowhere for so long is made again

_POLICIES = Policies(
    pod_policy=PodPolicy(names=PodNames.RANDOM, memory=Memory.LEVEL),
    pod_end=PodEndPolicy(external_deletion=ExternalDeletion.NOTHING, release=SlotRelease.LEAVING),
    completion=Completion(order=()),
    ready=Ready((CountCondition(Tally.RUNNING, at_least=Bound.SIZE),), sticky=False),
    shrink=ShrinkPolicy(victims=VictimOrder.RANKED),
    clock=Timeouts(creation_seconds=CREATION_SECONDS),
)


def admit(manifest: Obj) -> list[Cause]:
    """What the API server refuses; and more pods than are made, which it does not."""
    if mistakes := pod_builder.template_errors(REPLICA_SET, manifest):
        return mistakes
    wrong = size_error(_wanted_replicas(manifest))
    return [invalid("spec.replicas", _wanted_replicas(manifest), wrong)] if wrong else []


def read(manifest: Obj, settings: NativeSettings) -> Job:
    def read_afresh() -> int:
        if mistakes := admit(manifest):
            raise ManifestInvalid(mistakes)
        return _wanted_replicas(manifest)

    size: int = memoize(settings.understood, manifest.get("spec"), read_afresh)
    return Job(
        uid=uid_of(manifest),
        name=name_of(manifest),
        namespace=namespace_of(manifest),
        roles=(Role(ROLE, size, retry=Retry.from_letters("fffff")),),
        policies=_POLICIES,
        deleting=is_terminating(manifest),
    )


def _wanted_replicas(manifest: Obj) -> int:
    return int(at_path(manifest, "spec", "replicas", default=1))


def scale_patch(manifest: Obj, sizes: Mapping[str, int]) -> list[Obj]:
    del manifest
    for name in sizes:
        if name != ROLE:
            raise LookupError(f"there is no role {name!r}; a ReplicaSet has one, {ROLE}")
    return [{"op": "add", "path": "/spec/replicas", "value": size} for size in sizes.values()]


# --- what became of it ---------------------------------------------------------------------------------------------


def record(job: Job, state: JobState, _: NativeSettings) -> StatePatch:
    return state_annotation.record(job, state)


def restore(manifest: Obj) -> JobState:
    return state_annotation.restore(manifest) or JobState()


def status_state(manifest: Obj) -> JobState:
    """The job state, which names no pods, with as many members as the status counts."""
    state, status = restore(manifest), manifest.get("status") or {}
    ready, size = int(status.get("readyReplicas") or 0), min(int(status.get("replicas") or 0), LARGEST_JOB)
    stages = [Stage.RUNNING if index < ready else Stage.PREPARING for index in range(size)]
    tasks = tuple(TaskState(index, stage=stage) for index, stage in enumerate(stages))
    return replace(state, roles=(RoleState(ROLE, tasks=tasks),))


def report(job: Job, state: JobState, observed: Observed, previous: Obj, now: datetime) -> StatusReport:
    del job, state
    here = [each for each in observed.pods if each.owned and not each.leaving and not each.is_finished]
    long_enough = timedelta(seconds=int(at_path(previous, "spec", "minReadySeconds", default=0)))
    due_times = [_available_at(each, long_enough) for each in here]
    counts = {
        "fullyLabeledReplicas": len(here),
        "readyReplicas": sum(each.ready for each in here),
        "availableReplicas": sum(due is not None and due <= now for due in due_times),
        "terminatingReplicas": sum(each.leaving for each in observed.pods if each.owned and not each.is_finished),
    }
    status: Obj = {"replicas": len(here), **{name: count for name, count in counts.items() if count}}
    status.setdefault("terminatingReplicas", 0)
    generation = previous["metadata"].get("generation")
    status |= {"observedGeneration": generation} if generation else {}
    ahead = [due for due in due_times if due is not None and due > now]
    return StatusReport(status=status, wake_at=min(ahead, default=None))


def _available_at(pod: ObservedPod, long_enough: timedelta) -> datetime | None:
    """None where it is not ready."""
    if not pod.ready:
        return None
    if not long_enough:
        return datetime.min.replace(tzinfo=UTC)
    return pod.ready_since + long_enough if pod.ready_since is not None else None


class _Replicas(Scaling):
    def patch(self, manifest: Obj, sizes: Mapping[str, int]) -> list[Obj]:
        return scale_patch(manifest, sizes)


class _ReplicaSetProgress(StatusProgress):
    def status_state(self, manifest: Obj) -> JobState:
        return status_state(manifest)


class ReplicaSetDialect(TemplateDialect):
    kind = REPLICA_SET
    other_versions = (REPLICA_SET_V1BETA1,)
    role = ROLE
    never_completes = True
    capabilities = (
        _Replicas(),
        TemplateWarnings(REPLICA_SET),
        _ReplicaSetProgress(),
        GeneratedNames(ROLE),
        SelectorAdoption(REPLICA_SET),
    )

    def validate(self, new: Obj, old: Obj | None = None) -> list[Cause]:
        del old
        return admit(new)

    def to_job(self, manifest: Obj, settings: NativeSettings) -> Job:
        return read(manifest, settings)

    def build_pod(self, manifest: Obj, create: Create) -> Obj:
        return pod_builder.pod_from(manifest, REPLICA_SET, create)

    def load_state(self, manifest: Obj) -> JobState:
        return restore(manifest)

    def save_state(self, job: Job, state: JobState, settings: NativeSettings) -> StatePatch:
        return record(job, state, settings)

    def status(self, job: Job, state: JobState, observed: Observed, manifest: Obj, now: datetime) -> StatusReport:
        return report(job, state, observed, manifest, now)


DIALECT = ReplicaSetDialect()
