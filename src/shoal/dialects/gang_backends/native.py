"""The gang API of Kubernetes itself: a PodGroup of `scheduling.k8s.io`, named in `spec.schedulingGroup` of each pod.

The cluster's own scheduler holds pods until as many exist as the gang needs, and places them in one go. In its first
version a PodGroup cannot be changed: there a gang keeps the minimum its run began with, and pods that come later are
placed one by one. Since v1beta1 the minimum follows.
"""

from __future__ import annotations

from shoal.dialects.gang_backends.backend import Backend, GangStatus, condition_message, share_priority, use_scheduler
from shoal.dialects.gang_backends.coscheduling import unsupported_fields
from shoal.dialects.gang_backends.gang import GangSpec
from shoal.kube.conditions import is_true
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj

GROUP = "scheduling.k8s.io"
VERSIONS = ("v1beta1", "v1alpha2")  # newest first
_CONDITIONS = {"v1beta1": "PodGroupInitiallyScheduled", "v1alpha2": "PodGroupScheduled"}


def pod_group(version: str) -> Kind:
    return Kind(GROUP, version, "PodGroup", "podgroups", subresources=frozenset({"status"}))


def spec(gang: GangSpec) -> Obj:
    if gang.minimum < 1:
        return {"schedulingPolicy": {"basic": {}}}
    return {"schedulingPolicy": {"gang": {"minCount": gang.minimum}}}


def native(scheduler: str = "", version: str = "") -> Backend:
    spoken = version or VERSIONS[0]

    def standing(group: Obj) -> GangStatus:
        condition = _CONDITIONS[spoken]
        if is_true(group, condition):
            return GangStatus(admitted=True)
        return GangStatus(message=condition_message(group, condition) or "its scheduler has not looked at it yet")

    def join(pod: Obj, gang: GangSpec) -> None:
        pod["spec"]["schedulingGroup"] = {"podGroupName": gang.name}
        use_scheduler(pod, scheduler)
        share_priority(pod, gang)

    return Backend(
        "native", scheduler, pod_group(spoken), spec, standing, join,
        follows=spoken != "v1alpha2", unsupported_fields=unsupported_fields,
    )  # fmt: skip
