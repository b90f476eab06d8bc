"""The coscheduling plugin of scheduler-plugins: a PodGroup of `scheduling.x-k8s.io`, and a label on each pod.

Pods are made at once and gather in front of the scheduler, which lets them through together. It knows no queues, no
minima of roles and no topology. Its PodGroups have a phase and no reasons; reasons stand on the pods.
"""

from __future__ import annotations

from collections.abc import Iterator

from shoal.dialects.gang_backends.backend import Backend, Standing, share_priority, use_scheduler
from shoal.dialects.gang_backends.gang import Gang
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj, at_path

GROUP = "scheduling.x-k8s.io"
LABEL = f"{GROUP}/pod-group"
SCHEDULER = "scheduler-plugins-scheduler"  # as its chart calls it
POD_GROUP = Kind(GROUP, "v1alpha1", "PodGroup", "podgroups", subresources=frozenset({"status"}))

_TOGETHER = frozenset({"Scheduled", "Running", "Finished", "Failed"})


def spec(gang: Gang) -> Obj:
    made: Obj = {"minMember": max(gang.least, 1)}  # fewer are refused, and one is as good as none
    if gang.least_resources:
        made["minResources"] = dict(gang.least_resources)
    if gang.patience_seconds is not None:
        made["scheduleTimeoutSeconds"] = gang.patience_seconds
    return made


def standing(group: Obj) -> Standing:
    phase = at_path(group, "status", "phase") or ""
    if phase in _TOGETHER:
        return Standing(admitted=True)
    if phase == "Unknown":
        return Standing(broken=True, why="a part of its pods is placed, and the rest cannot be")
    return Standing(why="its pods wait for each other" if phase else "its scheduler has not looked at it yet")


def leaves_out(gang: Gang) -> tuple[str, ...]:
    return tuple(_unsaid(gang))


def _unsaid(gang: Gang) -> Iterator[str]:
    if gang.queue and gang.queue != "default":
        yield f"its queue {gang.queue}"
    minima = sum(part.least for part in gang.parts)
    if len(gang.parts) > 1 and minima and minima <= gang.least and any(part.size > part.least for part in gang.parts):
        yield "how many of each task it needs"
    if gang.topology is not None or any(part.partition_size for part in gang.parts):
        yield "how near to each other its pods have to be"


def coscheduling(scheduler: str = "") -> Backend:
    placer = scheduler or SCHEDULER

    def join(pod: Obj, gang: Gang) -> None:
        pod["metadata"].setdefault("labels", {})[LABEL] = gang.name
        use_scheduler(pod, placer)
        share_priority(pod, gang)

    return Backend("coscheduling", placer, POD_GROUP, spec, standing, join, longest_name=63, leaves_out=leaves_out)
