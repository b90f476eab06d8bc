"""What a Queue or a PodGroup may say, asked before it is stored: on a cluster of our own by the cluster itself, and on
Kubernetes by the webhook.

Where nobody asks, the scheduler leaves out what makes no sense and says so. Only what changes is looked at, so that an
object from before a rule can still be told what became of it. Queues that cannot be seen refuse nobody.
"""

from __future__ import annotations

from collections.abc import Callable

from shoal.cluster.admission import Admission
from shoal.cluster.machinery import Machinery
from shoal.dialects.gangs import BELOW_ZERO, ONE_TIER, POD_GROUP, QUEUE
from shoal.kube.errors import Cause
from shoal.kube.objects import Obj, at_path, name_of
from shoal.scheduling.groups import Queue
from shoal.scheduling.opening import (
    DEFAULT,
    ROOT,
    QueueRefused,
    admit_alone,
    admit_deletion,
    admit_group,
    admit_queue,
)
from shoal.scheduling.reading import group_from, queue_from
from shoal.scheduling.requests import amounts

Check = Callable[[Obj, Obj | None], list[Cause]]


def admit(machinery: Machinery, *, sees_queues: bool = True) -> None:
    """Have the two kinds looked at from here on; alone, where the queues they will meet are not stored here."""

    def stored() -> list[Obj] | None:
        if not sees_queues:
            return None
        return [each.obj() for each in machinery.list(QUEUE).items]

    for kind, check, keep in (
        (QUEUE, lambda new, old: judge_queue(new, old, stored()), lambda old: why_kept(old, stored())),
        (POD_GROUP, lambda new, old: judge_group(new, old, stored()), lambda _: ""),
    ):
        machinery.admissions[kind.resource] = Admission(lambda obj: obj, check, lambda _, __: [], keep)


def judge_queue(new: Obj, old: Obj | None, stored: list[Obj] | None) -> list[Cause]:
    """`stored` are all queues; None where they cannot be seen."""
    if old is not None and old.get("spec") == new.get("spec"):
        return []
    try:
        queue = queue_from(new)
        if stored is None:
            admit_alone(queue)
        else:
            admit_queue({**_known(stored), queue.name: queue}, queue, holds_pods=_holding(stored))
    except (ValueError, TypeError) as wrong:  # QueueRefused is one
        return [_cause("spec", wrong)]
    return []


def why_kept(queue: Obj, stored: list[Obj] | None) -> str:
    """Why the queue may not be deleted; '' where it may."""
    try:
        admit_deletion(_known(stored or []), name_of(queue), holds_pods=_holding([queue, *(stored or [])]))
    except QueueRefused as refused:
        return str(refused)
    return ""


def _holding(queues: list[Obj]) -> list[str]:
    return [name_of(each) for each in queues if at_path(each, "status", "allocated", default={})]


def judge_group(new: Obj, old: Obj | None, stored: list[Obj] | None) -> list[Cause]:
    if old is not None and old.get("spec") == new.get("spec"):
        return []
    spec, found = new.get("spec") or {}, []
    near = spec.get("networkTopology") or {}
    if "highestTierAllowed" in near and near.get("highestTierName"):
        found.append(_cause("spec.networkTopology", ONE_TIER))
    try:
        group = group_from({**new, "status": {}})
        if any(amount < 0 for amount in (group.min_resources or amounts(None)).values()):
            found.append(_cause("spec.minResources", BELOW_ZERO))
        if old is None and stored is not None:
            admit_group(_known(stored), group.queue)
    except QueueRefused as refused:
        found.append(_cause("spec.queue", refused))
    except (ValueError, TypeError) as wrong:
        found.append(_cause("spec", wrong))
    return found


def _known(stored: list[Obj]) -> dict[str, Queue]:
    """All queues, those included that are made as soon as somebody looks."""
    found = {name: Queue(name) for name in (ROOT, DEFAULT)}
    for each in stored:
        try:
            found[name_of(each)] = queue_from(each)
        except (ValueError, TypeError):
            continue  # from before these rules
    return found


def _cause(field: str, why: object) -> Cause:
    return Cause("FieldValueInvalid", str(why), field)
