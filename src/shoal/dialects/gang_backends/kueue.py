"""Kueue: a Workload represents the gang, and no pod is created before it is admitted.

Kueue could also find the pods itself, by their labels. It then keeps each pod that ended until another replaces it,
which pods named by index never can; and it deletes pods beyond the count it was given first. So the job waits as a
whole, as Kueue's own job kinds do while they are suspended: it is admitted with all its pods, and when its quota is
revoked the run ends and queues again, at no cost of a retry.

The pod sets of a Workload are immutable once it is admitted. Each size of a gang is therefore a Workload of its own,
which names the one it replaces: Kueue counts the difference where it supports slices, and otherwise both until the old
one is deleted.
"""

from __future__ import annotations

from shoal.dialects.gang_backends.backend import (
    Backend,
    ClusterLookups,
    ClusterObjects,
    GangStatus,
    condition_message,
    use_scheduler,
)
from shoal.dialects.gang_backends.gang import GangRole, GangSpec
from shoal.engine.policies import Opens
from shoal.kube.conditions import is_true
from shoal.kube.kinds import PRIORITY_CLASS, Kind
from shoal.kube.objects import Obj, at_path
from shoal.kube.patching.json_values import clone

GROUP = "kueue.x-k8s.io"
VERSIONS = ("v1beta2", "v1beta1")  # newest first; what is written here is the same in both
LOCAL_QUEUE_LABEL = f"{GROUP}/queue-name"
ELASTIC_JOB = f"{GROUP}/elastic-job"
TAKES_OVER = f"{GROUP}/workload-slice-replacement-for"
MOST_SETS = 8
READY = "PodsReady"


def workload(version: str) -> Kind:
    return Kind(GROUP, version, "Workload", "workloads", subresources=frozenset({"status"}))


def spec(gang: GangSpec) -> Obj:
    return {
        "queueName": gang.labels.get(LOCAL_QUEUE_LABEL) or gang.queue,
        "podSets": [_pod_set(part, gang.priority_class) for part in gang.roles if part.size],
    }


def _pod_set(part: GangRole, priority_class: str) -> Obj:
    """Only what counts for admission; of a template's metadata Kueue takes labels and annotations alone."""
    written = part.template.get("metadata") or {}
    kept = {key: clone(written[key]) for key in ("labels", "annotations") if written.get(key)}
    template: Obj = {"spec": clone(part.template.get("spec") or {})}
    if priority_class and not template["spec"].get("priorityClassName"):
        template["spec"]["priorityClassName"] = priority_class
    return {"name": part.role, "count": part.size, "template": template | ({"metadata": kept} if kept else {})}


def gang_status(obj: Obj) -> GangStatus:
    if is_true(obj, "Evicted"):
        return GangStatus(evicted=True, message=condition_message(obj, "Evicted"))
    if is_true(obj, "Admitted"):
        return GangStatus(admitted=True)
    if is_true(obj, "QuotaReserved"):
        return GangStatus(
            message=condition_message(obj, "Admitted") or "its quota is reserved, and checks are under way"
        )
    return GangStatus(message=condition_message(obj, "QuotaReserved") or "Kueue has not looked at it yet")


def rejection_reason(gang: GangSpec) -> str:
    count = sum(1 for part in gang.roles if part.size)
    if count > MOST_SETS:
        return f"Kueue takes at most {MOST_SETS} kinds of pods in one gang, and this one has {count}: join some of them"
    return ""


def unsupported_fields(gang: GangSpec) -> tuple[str, ...]:
    found = []
    if gang.minimum < sum(part.size for part in gang.roles):
        found.append("that fewer pods would do: it waits for the quota of all")
    if gang.topology is not None or any(part.partition_size for part in gang.roles):
        found.append("how near to each other its pods have to be")
    return tuple(found)


# --- what else it takes --------------------------------------------------------------------------------------------


def flavor(version: str) -> Kind:
    return Kind(GROUP, version, "ResourceFlavor", "resourceflavors", namespaced=False)


def _cluster_lookups(version: str) -> ClusterLookups:
    kind = flavor(version)

    def at(obj: Obj) -> tuple[tuple[Kind, str], ...]:
        """The flavors that were granted; of a Workload that is yet to be made the class of its priority."""
        if "status" in obj:
            named = [name for given in _assignments(obj) for name in (given.get("flavors") or {}).values()]
            return tuple((kind, name) for name in dict.fromkeys(named))
        return tuple((PRIORITY_CLASS, name) for name in _classes(obj)[:1])

    def fit(pod: Obj, role: str, obj: Obj, sight: ClusterObjects) -> None:
        for given in _assignments(obj):
            if given.get("name") == role:
                names = dict.fromkeys((given.get("flavors") or {}).values())
                for name in names:
                    found = sight[kind, name].get("spec") or {}
                    _add(pod, {"nodeSelector": found.get("nodeLabels"), "tolerations": found.get("tolerations")})
        for check in at_path(obj, "status", "admissionChecks", default=()):
            for update in check.get("podSetUpdates") or ():
                if update.get("name") == role:
                    _add(pod, update)

    return ClusterLookups((kind, PRIORITY_CLASS), at, _set_priority, fit)


def _assignments(obj: Obj) -> list[Obj]:
    found: list[Obj] = at_path(obj, "status", "admission", "podSetAssignments", default=[])
    return found


def _classes(obj: Obj) -> list[str]:
    named = (at_path(pods, "template", "spec", "priorityClassName") for pods in obj["spec"]["podSets"])
    return list(dict.fromkeys(name for name in named if name))


def _set_priority(made: Obj, sight: ClusterObjects) -> None:
    """Kueue orders by a number that the creator of a Workload must resolve: that of the first class named."""
    for name in _classes(made)[:1]:
        made["spec"]["priority"] = sight[PRIORITY_CLASS, name].get("value", 0)


def _add(pod: Obj, more: Obj) -> None:
    """Add what Kueue's admission assigned; values of the template win."""
    spec, meta = pod["spec"], pod["metadata"]
    for place, key in ((spec, "nodeSelector"), (meta, "labels"), (meta, "annotations")):
        if more.get(key):
            place[key] = {**more[key], **(place.get(key) or {})}
    if more.get("tolerations"):
        known = spec.get("tolerations") or []
        spec["tolerations"] = [*known, *(each for each in more["tolerations"] if each not in known)]


def acknowledge_pods(obj: Obj, are_up: bool, now: str) -> Obj | None:
    """Kueue may be set up to take quota back from gangs whose pods do not start; None where it is up to date."""
    if not is_true(obj, "Admitted") or is_true(obj, "Evicted") or is_true(obj, READY) == are_up:
        return None
    words = ("PodsReady", "As many pods are up as the job needs") if are_up else ("PodsMissing", "Pods are missing")
    claim = {"type": READY, "status": str(are_up), "reason": words[0], "message": words[1], "lastTransitionTime": now}
    return {"conditions": [claim]}


def kueue(scheduler: str = "", version: str = "") -> Backend:
    spoken = version or VERSIONS[0]

    def join(pod: Obj, _: GangSpec) -> None:
        use_scheduler(pod, scheduler)

    return Backend(
        "kueue", scheduler, workload(spoken), spec, gang_status, join,
        opens_when=Opens.ADMITTED, replaces_annotation=TAKES_OVER, evicts=True, group_annotations={ELASTIC_JOB: "true"},
        cluster_lookups=_cluster_lookups(spoken), acknowledge_pods=acknowledge_pods,
        rejection_reason=rejection_reason, unsupported_fields=unsupported_fields,
    )  # fmt: skip
