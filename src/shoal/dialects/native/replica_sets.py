"""ReplicaSet: as many pods as are wished for. Nobody is ever done, nothing is ever charged, and there is no end.

A pod that goes, ends or is taken away is simply made again; where there are too many, those easiest to lose go first.
What must survive a crash is only who was told to go, and that stands in the annotation all languages share.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from shoal.dialects import state_annotation
from shoal.dialects.dialect import Dialect, LedgerPatch, ManifestInvalid, Report
from shoal.dialects.job_limits import LARGEST_JOB, too_many
from shoal.dialects.memo import remembered
from shoal.dialects.native import adoption, pod_builder
from shoal.dialects.native.settings import Settings, settings
from shoal.engine import Body, Create, Job, JobState, Observed, Policies, Role, RoleState, Stage, TaskState
from shoal.engine.policies import (
    Bound,
    Claim,
    Clock,
    Completion,
    Deleted,
    Embodiment,
    Ending,
    Memory,
    Names,
    Ready,
    Release,
    Retry,
    Shrink,
    Tally,
    Victims,
)
from shoal.kube.errors import Cause
from shoal.kube.kinds import REPLICA_SET, REPLICA_SET_V1BETA1
from shoal.kube.objects import Obj, at_path, is_terminating, name_of, namespace_of, uid_of
from shoal.kube.validation.errors import invalid

ROLE = "replica"
CREATION_SECONDS = 300  # a pod that was made and shows nowhere for so long is made again

_POLICIES = Policies(
    embodiment=Embodiment(names=Names.RANDOM, memory=Memory.LEVEL),
    ending=Ending(by_others=Deleted.NOTHING, release=Release.LEAVING),
    completion=Completion(order=()),
    ready=Ready((Claim(Tally.RUNNING, at_least=Bound.SIZE),), sticky=False),
    shrink=Shrink(victims=Victims.RANKED),
    clock=Clock(creation_seconds=CREATION_SECONDS),
)

_mistakes = pod_builder.mistakes_of(REPLICA_SET)
body = pod_builder.body_of(REPLICA_SET, ROLE)


def admit(manifest: Obj) -> list[Cause]:
    """What the API server refuses; and more pods than are made, which it does not."""
    if mistakes := _mistakes(manifest):
        return mistakes
    wrong = too_many(_wished(manifest))
    return [invalid("spec.replicas", _wished(manifest), wrong)] if wrong else []


def read(manifest: Obj, settings: Settings) -> Job:
    size: int = remembered(settings.understood, manifest.get("spec"), lambda: _size(manifest))
    return Job(
        uid=uid_of(manifest),
        name=name_of(manifest),
        namespace=namespace_of(manifest),
        roles=(Role(ROLE, size, retry=Retry.word("fffff")),),
        policies=_POLICIES,
        deleting=is_terminating(manifest),
    )


def _size(manifest: Obj) -> int:
    mistakes = admit(manifest)
    if mistakes:
        raise ManifestInvalid(mistakes)
    return _wished(manifest)


def _wished(manifest: Obj) -> int:
    return int(at_path(manifest, "spec", "replicas", default=1))


def render(manifest: Obj, create: Create) -> Obj:
    return pod_builder.pod_from(manifest, REPLICA_SET, create)


def warn(manifest: Obj, _: Obj | None = None) -> list[str]:
    return pod_builder.unknown_fields(REPLICA_SET, manifest)


def scale_patch(manifest: Obj, sizes: Mapping[str, int]) -> list[Obj]:
    del manifest
    for name in sizes:
        if name != ROLE:
            raise LookupError(f"there is no role {name!r}; a ReplicaSet has one, {ROLE}")
    return [{"op": "add", "path": "/spec/replicas", "value": size} for size in sizes.values()]


# --- what became of it ---------------------------------------------------------------------------------------------


def record(job: Job, state: JobState, _: Settings) -> LedgerPatch:
    return state_annotation.record(job, state)


def restore(manifest: Obj) -> JobState:
    return state_annotation.restore(manifest) or JobState()


def shown(manifest: Obj) -> JobState:
    """The ledger, which names nobody, with as many members as the status counts."""
    state, status = restore(manifest), manifest.get("status") or {}
    ready, size = int(status.get("readyReplicas") or 0), min(int(status.get("replicas") or 0), LARGEST_JOB)
    stages = [Stage.RUNNING if index < ready else Stage.PREPARING for index in range(size)]
    tasks = tuple(TaskState(index, stage=stage) for index, stage in enumerate(stages))
    return replace(state, roles=(RoleState(ROLE, tasks=tasks),))


def report(job: Job, state: JobState, observed: Observed, previous: Obj, now: datetime) -> Report:
    del job, state
    here = [each for each in observed.bodies if each.owned and not each.leaving and not each.is_finished]
    long_enough = timedelta(seconds=int(at_path(previous, "spec", "minReadySeconds", default=0)))
    counts = {
        "fullyLabeledReplicas": len(here),
        "readyReplicas": sum(each.ready for each in here),
        "availableReplicas": sum(_is_available(each, long_enough, now) for each in here),
        "terminatingReplicas": sum(each.leaving for each in observed.bodies if each.owned and not each.is_finished),
    }
    status: Obj = {"replicas": len(here), **{name: count for name, count in counts.items() if count}}
    status.setdefault("terminatingReplicas", 0)
    generation = previous["metadata"].get("generation")
    status |= {"observedGeneration": generation} if generation else {}
    ahead = [due for each in here if (due := _available_at(each, long_enough)) is not None and due > now]
    return Report(status=status, wake_at=min(ahead, default=None))


def _is_available(pod: Body, long_enough: timedelta, now: datetime) -> bool:
    due = _available_at(pod, long_enough)
    return due is not None and due <= now


def _available_at(pod: Body, long_enough: timedelta) -> datetime | None:
    """None where it is not ready."""
    if not pod.ready:
        return None
    if not long_enough:
        return datetime.min.replace(tzinfo=UTC)
    return pod.ready_since + long_enough if pod.ready_since is not None else None


DIALECT = Dialect(
    kind=REPLICA_SET,
    also=(REPLICA_SET_V1BETA1,),
    crd=None,
    settings=settings,
    default=pod_builder.default_of(REPLICA_SET),
    admit=admit,
    foresee=pod_builder.foresee,
    warn=warn,
    read=read,
    render=render,
    pod_name=pod_builder.no_name,
    restore=restore,
    record=record,
    owner=pod_builder.owner_of(REPLICA_SET),
    body=body,
    report=report,
    scale_patch=scale_patch,
    shown=shown,
    embedded_only=True,
    endless=True,
    called=pod_builder.called(ROLE),
    orphans=adoption.orphans_of,
    take=adoption.take(REPLICA_SET),
)
