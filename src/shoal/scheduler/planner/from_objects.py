"""API objects as the planner's types: pods with their neighbours and gangs, PodGroups, Queues, HyperNodes.

Only what the planner uses is read. What an object does not contain itself (the value of a priority class, the state of
a claim, the nodes a HyperNode's pattern means) is passed in by the component that watches those.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from shoal.kube.objects import Key, Obj, key_of, labels_of, name_of, uid_of
from shoal.kube.owners import controller_of, owners_of
from shoal.kube.quantity_format import Amounts, amounts, requests_of
from shoal.kube.selectors import NOTHING, from_label_selector
from shoal.kube.times import parse
from shoal.scheduler.api.implicit_pod_groups import PREFIX
from shoal.scheduler.api.pod_groups import ELASTIC, GROUP_NAME, QUEUE_ANNOTATION
from shoal.scheduler.planner.gang_types import (
    NamespaceQuota,
    PodGroup,
    PodGroupPhase,
    Queue,
    SubgroupPolicy,
    TopologyConstraint,
)
from shoal.scheduler.planner.node_and_pod_types import AffinityTerm, Pod, PodState, SpreadConstraint

TASK = "volcano.sh/task-spec"
INDEX = "volcano.sh/task-index"
PREEMPTABLE = "volcano.sh/preemptable"
OUT_OF_SYNC = "volcano.sh/controller-out-of-sync"  # set by the controller of a job on a pod before it deletes the pod
CLOSED_BY_PARENT = "volcano.sh/closed-by-parent"
SLA = ("volcano.sh/sla-waiting-time", "sla-waiting-time")  # Volcano reads both
HIERARCHY = ("volcano.sh/hierarchy", "volcano.sh/hierarchy-weights")  # of a queue: its path, and a weight per step
DOES_NOT_RECREATE = ("ConfigMap", "Node")  # controllers of a Framework's pods and of static pods
READ = (GROUP_NAME, QUEUE_ANNOTATION, TASK, INDEX, PREEMPTABLE, OUT_OF_SYNC)  # annotations of pods
PODS = "pods"
OF_PODS = ("cpu", "memory", "ephemeral-storage", PODS)  # besides those with a slash in their names
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


NamespaceLabels = Mapping[str, Mapping[str, str]]  # by name


def pod_from(obj: Obj, namespaces: NamespaceLabels = MappingProxyType({})) -> Pod:
    """A pod with everything a plan needs of it, in whatever phase it is."""
    spec, notes, labels = obj.get("spec") or {}, _annotations(obj), labels_of(obj)
    group = notes.get(GROUP_NAME)
    index = notes.get(INDEX) or labels.get(INDEX) or "0"
    node_affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    preferred = node_affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    ports = [port for container in spec.get("containers") or () for port in container.get("ports") or ()]
    host_ports = [port for port in ports if port.get("hostPort")]
    key = key_of(obj)
    preemptable = notes.get(PREEMPTABLE) or labels.get(PREEMPTABLE)
    together, apart = affinity_terms(obj, namespaces)
    return Pod(
        key=key,
        uid=uid_of(obj),
        requests=requests_of(obj),
        priority=spec.get("priority") or 0,
        created=obj["metadata"].get("creationTimestamp") or "",
        node_selector=spec.get("nodeSelector") or {},
        node_terms=tuple(required.get("nodeSelectorTerms") or ()) if required else None,
        tolerations=tuple(spec.get("tolerations") or ()),
        labels=labels,
        group=Key(key.namespace, group) if group else None,
        role=notes.get(TASK) or labels.get(TASK) or "",
        index=int(index) if index.isdecimal() else 0,
        queue=notes.get(QUEUE_ANNOTATION) or "",
        node=spec.get("nodeName") or "",
        state=state_of(obj),
        since=_moment((obj.get("status") or {}).get("startTime")),
        evicted_by_controller=notes.get(OUT_OF_SYNC) == "true",
        gated=bool(spec.get("schedulingGates")),
        preemptable={"true": True, "false": False}.get(preemptable or ""),
        recreated=_is_recreated(obj),
        never_preempts=spec.get("preemptionPolicy") == "Never",
        preferred_nodes=tuple((term.get("weight") or 1, term.get("preference") or {}) for term in preferred),
        ports=frozenset(f"{port.get('protocol') or 'TCP'}/{port['hostPort']}" for port in host_ports),
        together=together,
        apart=apart,
        spreads=_spreads(obj, spec),
    )


def group_from(obj: Obj, *, priority: int = 0) -> PodGroup:
    spec, status, notes = obj.get("spec") or {}, obj.get("status") or {}, _annotations(obj)
    phase = PodGroupPhase(status.get("phase") or PodGroupPhase.PENDING)
    least = spec.get("minResources")
    # A group is named after its job and the job's uid. Messages about it outlive it and are read by the job's users,
    # so they name the job alone.
    name = name_of(obj)
    uids = (uid for owner in owners_of(obj) if (uid := owner.get("uid")) and name != f"{PREFIX}{uid}")
    title = next((name.replace(f"-{uid}", "", 1) for uid in uids if f"-{uid}" in name), "")
    return PodGroup(
        key_of(obj),
        uid=uid_of(obj),
        title=title,
        created=_moment(obj["metadata"].get("creationTimestamp")),
        min_member=spec.get("minMember") or 0,
        min_roles=dict(spec.get("minTaskMember") or {}),
        min_resources=None if least is None else amounts(least),
        queue=spec.get("queue") or "default",
        priority=priority,
        phase=phase,
        closeness=_topology_constraint(spec.get("networkTopology")),
        subgroups=tuple(
            SubgroupPolicy(
                policy.get("name") or "",
                size=policy.get("subGroupSize") or 1,
                minimum=policy.get("minSubGroups") or 0,
                selector=from_label_selector(policy.get("labelSelector") or {}),
                label_keys=tuple(policy.get("matchLabelKeys") or ()),
                closeness=_topology_constraint(policy.get("networkTopology")),
            )
            for policy in spec.get("subGroupPolicy") or ()
        ),
        elastic=notes.get(ELASTIC) == "true",
        preemptable=notes.get(PREEMPTABLE) != "false",
        preemptible_guest=notes.get(PREEMPTABLE) == "true",
        sla_seconds=next((seconds(notes[name]) for name in SLA if name in notes), None),
        ran=phase in (PodGroupPhase.RUNNING, PodGroupPhase.UNKNOWN, PodGroupPhase.COMPLETED),
    )


def queue_from(obj: Obj) -> Queue:
    spec = obj.get("spec") or {}
    return Queue(
        name_of(obj),
        created=_moment(obj["metadata"].get("creationTimestamp")),
        weight=max(spec.get("weight") or 1, 1),
        capability=amounts(spec.get("capability")),
        deserved=amounts(spec.get("deserved")),
        guarantee=amounts((spec.get("guarantee") or {}).get("resource")),
        reclaimable=spec.get("reclaimable") is not False,
        priority=spec.get("priority") or 0,
        parent=spec.get("parent") or "root",
        fifo=spec.get("dequeueStrategy") == "fifo",
        open=((obj.get("status") or {}).get("state") or "Open") == "Open",
        closed_by_parent=_annotations(obj).get(CLOSED_BY_PARENT) == "true",
    )


def namespace_quota(obj: Obj) -> NamespaceQuota | None:
    """None where it is for some of the pods only: which of them a group will make is not known beforehand."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    if spec.get("scopes") or spec.get("scopeSelector"):
        return None
    return quota_from(amounts(spec.get("hard")), amounts(status.get("used")))


def quota_from(hard: Mapping[str, int], used: Mapping[str, int]) -> NamespaceQuota:
    """By the names that pods use; of two aliases the stricter counts."""
    limits: Amounts = {}
    for name, amount in hard.items():
        if plain := plain_name(name):
            limits[plain] = min(limits.get(plain, amount), amount)
    taken: Amounts = {}
    for name, amount in used.items():
        if plain := plain_name(name):
            taken[plain] = max(taken.get(plain, 0), amount)
    return NamespaceQuota(limits, taken)


def plain_name(name: str) -> str:
    """The resource of pods that is meant; '' where it is none: limits, other objects, storage of claims."""
    if name == "count/pods":
        return PODS
    if name.startswith("requests."):
        name = name.removeprefix("requests.")
        return "" if name == "storage" else name
    is_resource = name in OF_PODS or name.startswith("hugepages-") or ("/" in name and not name.startswith("count/"))
    return name if is_resource and ".storageclass." not in name else ""


def seconds(text: str) -> float | None:
    """`1h30m` as a number; None where it is not a duration, which then promises nothing."""
    total, number, unit = 0.0, "", ""
    for letter in f"{text} ":
        if unit and not letter.isalpha():
            if unit not in UNITS or not number:
                return None
            total, number, unit = total + float(number) * UNITS[unit], "", ""
        if letter.isdecimal() or letter == ".":
            number += letter
        elif letter.isalpha():
            unit += letter
        elif letter != " ":
            return None
    return None if number or not text.strip() else total


def _is_recreated(pod: Obj) -> bool:
    """Whether an evicted pod costs its time only: a bare pod is lost, and a Framework counts the loss as a failure."""
    controller = controller_of(pod)
    return controller is not None and controller.get("kind") not in DOES_NOT_RECREATE


def _annotations(obj: Obj) -> Mapping[str, str]:
    return (obj.get("metadata") or {}).get("annotations") or {}


def _moment(text: str | None) -> float:
    return parse(text).timestamp() if text else 0.0


def state_of(obj: Obj) -> PodState:
    phase = (obj.get("status") or {}).get("phase")
    if phase in (PodState.SUCCEEDED, PodState.FAILED):
        return PodState(phase)
    if obj["metadata"].get("deletionTimestamp"):
        return PodState.RELEASING
    if phase == "Running":
        return PodState.RUNNING
    return PodState.BOUND if (obj.get("spec") or {}).get("nodeName") else PodState.PENDING


def _topology_constraint(wanted: Mapping[str, Any] | None) -> TopologyConstraint | None:
    if not wanted:
        return None
    return TopologyConstraint(
        hard=wanted.get("mode") != "soft",
        tier=wanted.get("highestTierAllowed") or 1,
        tier_name=wanted.get("highestTierName") or "",
    )


def affinity_terms(obj: Obj, namespaces: NamespaceLabels) -> tuple[tuple[AffinityTerm, ...], tuple[AffinityTerm, ...]]:
    """The pod's required affinity and anti-affinity."""
    affinity, own = (obj.get("spec") or {}).get("affinity") or {}, key_of(obj).namespace
    together, apart = (
        tuple(
            _affinity_term(term, own, namespaces)
            for term in (affinity.get(name) or {}).get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        )
        for name in ("podAffinity", "podAntiAffinity")
    )
    return together, apart


def _affinity_term(term: Mapping[str, Any], own: str, namespaces: NamespaceLabels) -> AffinityTerm:
    """About the pod's `own` namespace where the term states neither names nor a selector."""
    by_labels, named = from_label_selector(term.get("namespaceSelector")), term.get("namespaces") or ()
    return AffinityTerm(
        from_label_selector(term.get("labelSelector")),
        term.get("topologyKey") or "",
        frozenset(named or ((own,) if by_labels == NOTHING else ())),
        by_labels,
        # Of a selector that matches every namespace none: it needs no update for each new namespace.
        frozenset(name for name, labels in namespaces.items() if by_labels.matches(labels))
        if by_labels.requirements
        else frozenset(),
    )


def _spreads(obj: Obj, spec: Mapping[str, Any]) -> tuple[SpreadConstraint, ...]:
    own = frozenset({key_of(obj).namespace})
    return tuple(
        SpreadConstraint(
            AffinityTerm(from_label_selector(rule.get("labelSelector")), rule.get("topologyKey") or "", own),
            rule.get("maxSkew") or 1,
        )
        for rule in spec.get("topologySpreadConstraints") or ()
        if rule.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule"
    )
