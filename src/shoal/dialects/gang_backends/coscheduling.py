"""The coscheduling plugin of scheduler-plugins: a PodGroup of `scheduling.x-k8s.io`, and a label on each pod.

Pods are created at once and wait at the scheduler, which permits them together. It supports no queues, no minima of
roles and no topology. Its PodGroups have a phase and no reasons; reasons are on the pods.
"""

from __future__ import annotations

from collections.abc import Iterator

from shoal.dialects.gang_backends.backend import Backend, GangStatus, share_priority, use_scheduler
from shoal.dialects.gang_backends.gang import GangSpec
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj, at_path

GROUP = "scheduling.x-k8s.io"
LABEL = f"{GROUP}/pod-group"
SCHEDULER = "scheduler-plugins-scheduler"  # as its chart calls it
POD_GROUP = Kind(GROUP, "v1alpha1", "PodGroup", "podgroups", subresources=frozenset({"status"}))

_ADMITTED_PHASES = frozenset({"Scheduled", "Running", "Finished", "Failed"})


def spec(gang: GangSpec) -> Obj:
    made: Obj = {"minMember": max(gang.minimum, 1)}  # fewer are refused, and one is as good as none
    if gang.min_resources:
        made["minResources"] = dict(gang.min_resources)
    if gang.schedule_timeout_seconds is not None:
        made["scheduleTimeoutSeconds"] = gang.schedule_timeout_seconds
    return made


def gang_status(group: Obj) -> GangStatus:
    phase = at_path(group, "status", "phase") or ""
    if phase in _ADMITTED_PHASES:
        return GangStatus(admitted=True)
    if phase == "Unknown":
        return GangStatus(partially_placed=True, message="a part of its pods is placed, and the rest cannot be")
    return GangStatus(message="its pods wait for each other" if phase else "its scheduler has not looked at it yet")


def unsupported_fields(gang: GangSpec) -> tuple[str, ...]:
    return tuple(_unsupported(gang))


def _unsupported(gang: GangSpec) -> Iterator[str]:
    if gang.queue and gang.queue != "default":
        yield f"its queue {gang.queue}"
    minima = sum(part.minimum for part in gang.roles)
    if (
        len(gang.roles) > 1
        and minima
        and minima <= gang.minimum
        and any(part.size > part.minimum for part in gang.roles)
    ):
        yield "how many of each task it needs"
    if gang.topology is not None or any(part.partition_size for part in gang.roles):
        yield "how near to each other its pods have to be"


def coscheduling(scheduler: str = "") -> Backend:
    placer = scheduler or SCHEDULER

    def join(pod: Obj, gang: GangSpec) -> None:
        pod["metadata"].setdefault("labels", {})[LABEL] = gang.name
        use_scheduler(pod, placer)
        share_priority(pod, gang)

    return Backend(
        "coscheduling",
        placer,
        POD_GROUP,
        spec,
        gang_status,
        join,
        longest_name=63,
        unsupported_fields=unsupported_fields,
    )
