"""PodGroups of `scheduling.volcano.sh`: the API of Volcano's own scheduler, adopted by Shoal's.

A group is admitted before any of its pods is created (`Inqueue`), and pods name their group in an annotation.
"""

from __future__ import annotations

from shoal.dialects.children import content_digest
from shoal.dialects.gang_backends.backend import Backend, GangStatus, condition_message, use_scheduler
from shoal.dialects.gang_backends.gang import GangRole, GangSpec, GangTopology
from shoal.engine import ObservedGroup
from shoal.engine.policies import GroupPlan, Opens, ReclaimLimits
from shoal.kube.conditions import condition_of, is_true
from shoal.kube.objects import Obj, annotations_of, at_path, is_terminating, uid_of
from shoal.scheduler.api.pod_groups import (
    ADMITTED,
    ELASTIC,
    GROUP_NAME,
    POD_GROUP,
    RECLAIM_REASON,
    reclaimed_uids,
    with_quota_names,
)

ROLE = "volcano.sh/task-spec"  # on a pod: its role
PARTITION = "volcano.sh/partition-id"


def spec(gang: GangSpec) -> Obj:
    made: Obj = {
        "minMember": gang.minimum,
        "minTaskMember": {part.role: part.minimum for part in gang.roles},
        "queue": gang.queue,
    }
    if gang.min_resources is not None:
        made["minResources"] = with_quota_names(gang.min_resources, gang.min_limits)
    if gang.priority_class:
        made["priorityClassName"] = gang.priority_class
    if gang.topology is not None:
        made["networkTopology"] = _topology(gang.topology)
    cut = [_subgroup(part) for part in gang.roles if part.partition_size]
    return made | ({"subGroupPolicy": cut} if cut else {})


def _subgroup(part: GangRole) -> Obj:
    made: Obj = {
        "name": part.role,
        "labelSelector": {"matchLabels": {ROLE: part.role}},
        "matchLabelKeys": [PARTITION],
        "subGroupSize": part.partition_size,
        "minSubGroups": part.min_partitions,
    }
    if part.partition_topology is not None:
        made["networkTopology"] = _topology(part.partition_topology)
    return made


def _topology(wanted: GangTopology) -> Obj:
    made: Obj = {"mode": "hard" if wanted.hard else "soft"}
    if wanted.tier is not None:
        made["highestTierAllowed"] = wanted.tier
    if wanted.tier_name:
        made["highestTierName"] = wanted.tier_name
    return made


def gang_status(group: Obj) -> GangStatus:
    phase = at_path(group, "status", "phase") or ""
    is_stuck = phase not in ADMITTED and is_true(group, "Unschedulable")
    if not is_stuck:
        return GangStatus(phase in ADMITTED, partially_placed=phase == "Unknown")
    condition = condition_of(group, "Unschedulable") or {}
    return GangStatus(message=condition_message(group, "Unschedulable"), reason=str(condition.get("reason") or ""))


def group_plan(key: str, gang: GangSpec, roles: frozenset[str]) -> GroupPlan:
    """The group as the engine plans it. Its digest changes with everything that is written into the PodGroup."""
    content = {**spec(gang), **({ELASTIC: True} if gang.is_elastic else {})}
    limits = ReclaimLimits(gang.minimum, gang.role_minimums) if gang.is_elastic else None
    return GroupPlan(key, content_digest(content), roles, limits)


def observe_group(group: Obj, key: str, digest: str) -> ObservedGroup:
    seen = gang_status(group)
    return ObservedGroup(
        uid_of(group),
        key,
        digest,
        admitted=seen.admitted,
        unknown=seen.partially_placed,
        leaving=is_terminating(group),
        asked=reclaimed_uids(group),
        reclaim_reason=annotations_of(group).get(RECLAIM_REASON, ""),
        pending_reason=seen.reason,
        pending_message=seen.message,
    )


def volcano(scheduler: str = "") -> Backend:
    return _of("volcano", scheduler or "volcano")


def shoal(scheduler: str = "") -> Backend:
    return _of("shoal", scheduler or "shoal", requests_shrink=True)


def _of(name: str, scheduler: str, *, requests_shrink: bool = False) -> Backend:
    def join(pod: Obj, gang: GangSpec) -> None:
        pod["metadata"].setdefault("annotations", {})[GROUP_NAME] = gang.name
        use_scheduler(pod, scheduler)

    return Backend(
        name,
        scheduler,
        POD_GROUP,
        spec,
        gang_status,
        join,
        opens_when=Opens.ADMITTED,
        requests_shrink=requests_shrink,
    )
