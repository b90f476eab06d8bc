"""PodGroups for pods of the scheduler `volcano` that name no PodGroup, as Volcano's podgroup controller makes them.

The name follows from the pod alone, so that the scheduler has the group before it exists: pods of one controller
share `podgroup-<uid of the controller>`, a bare pod has `podgroup-<its own uid>`. The object is owned by the same
controller, or by the pod.
"""

from __future__ import annotations

from collections.abc import Mapping

from shoal.kube.counts import parse_count
from shoal.kube.kinds import POD
from shoal.kube.objects import Obj, annotations_of, labels_of, uid_of
from shoal.kube.owners import controller_of, owner_reference
from shoal.kube.pod_resources import limits_of, requests_of
from shoal.kube.quantity import Quantity
from shoal.scheduler.api.pod_groups import GROUP_NAME, POD_GROUP, QUEUE_ANNOTATION, with_quota_names

SCHEDULER = "volcano"
PREFIX = "podgroup-"
MIN_MEMBER = "scheduling.volcano.sh/group-min-member"  # on the controller of pods
INHERITED = "scheduling.volcano.sh/"  # annotations of the controller with this prefix are copied
POD_ANNOTATIONS = (
    "volcano.sh/preemptable", "volcano.sh/cooldown-time", "volcano.sh/revocable-zone",
    "volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable",
)  # fmt: skip
POD_LABELS = ("volcano.sh/preemptable", "volcano.sh/cooldown-time")

_MAX_INT32 = 2**31 - 1


def lacks_group(pod: Obj) -> bool:
    return pod["spec"].get("schedulerName") == SCHEDULER and not annotations_of(pod).get(GROUP_NAME)


def group_name_of(pod: Obj) -> str:
    """Of a pod that lacks a group."""
    controller = controller_of(pod)
    return f"{PREFIX}{controller['uid'] if controller is not None else uid_of(pod)}"


def group_of(pod: Obj, owner_notes: Mapping[str, str], namespace_notes: Mapping[str, str]) -> Obj:
    """The PodGroup of a pod that lacks one, with annotations of its controller and of its namespace."""
    spec, notes, labels = pod["spec"], annotations_of(pod), labels_of(pod)
    count = parse_count(owner_notes.get(MIN_MEMBER, ""))
    # 1 where the annotation is missing or no count that the field can hold, as in Volcano.
    least = count if count is not None and count <= _MAX_INT32 else 1
    inherited = {name: text for name, text in owner_notes.items() if name.startswith(INHERITED)}
    controller = controller_of(pod)
    return {
        "apiVersion": POD_GROUP.api_version,
        "kind": POD_GROUP.kind,
        "metadata": {
            "name": group_name_of(pod),
            "namespace": pod["metadata"]["namespace"],
            "annotations": {**inherited, **{name: notes[name] for name in POD_ANNOTATIONS if name in notes}},
            "labels": {name: labels[name] for name in POD_LABELS if name in labels},
            "ownerReferences": [controller if controller is not None else owner_reference({**_POD, **pod})],
        },
        "spec": {
            "minMember": least,
            "minResources": with_quota_names(_times(requests_of(pod), least), _times(limits_of(pod), least)),
            "queue": notes.get(QUEUE_ANNOTATION) or namespace_notes.get(QUEUE_ANNOTATION) or "default",
            **({"priorityClassName": spec["priorityClassName"]} if spec.get("priorityClassName") else {}),
        },
    }


_POD = {"apiVersion": POD.api_version, "kind": POD.kind}


def _times(milli: Mapping[str, int], count: int) -> dict[str, str]:
    """What `count` such pods have together."""
    return {name: str(Quantity.of_milli(amount * count)) for name, amount in sorted(milli.items()) if amount}
