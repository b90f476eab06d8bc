"""What a Queue or a PodGroup may say, asked on a cluster of our own before it is stored.

Elsewhere nobody asks: there the scheduler leaves out what makes no sense and says so. Only what changes is looked at,
so that an object from before a rule can still be told what became of it.
"""

from __future__ import annotations

from collections.abc import Callable

from shoal.cluster.admission import Admission
from shoal.cluster.machinery import Machinery
from shoal.dialects.gangs import POD_GROUP, QUEUE
from shoal.kube.errors import Cause
from shoal.kube.objects import Obj, at_path, name_of
from shoal.scheduling.groups import Queue
from shoal.scheduling.opening import DEFAULT, ROOT, QueueRefused, admit_group, admit_queue
from shoal.scheduling.reading import group_from, queue_from
from shoal.scheduling.requests import amounts

Check = Callable[[Obj, Obj | None], list[Cause]]


def admit(machinery: Machinery) -> None:
    """Have the two kinds looked at from here on."""

    def stored() -> list[Obj]:
        return [each.obj() for each in machinery.list(QUEUE).items]

    for kind, check in (
        (QUEUE, lambda new, old: judge_queue(new, old, stored())),
        (POD_GROUP, lambda new, old: judge_group(new, old, stored())),
    ):
        machinery.admissions[kind.resource] = Admission(lambda obj: obj, check, lambda _, __: [])


def judge_queue(new: Obj, old: Obj | None, stored: list[Obj]) -> list[Cause]:
    if old is not None and old.get("spec") == new.get("spec"):
        return []
    try:
        queue = queue_from(new)
        holding = [name_of(each) for each in stored if at_path(each, "status", "allocated", default={})]
        admit_queue({**_known(stored), queue.name: queue}, queue, holds_pods=holding)
    except (ValueError, TypeError) as wrong:  # QueueRefused is one
        return [_cause("spec", wrong)]
    return []


def judge_group(new: Obj, old: Obj | None, stored: list[Obj]) -> list[Cause]:
    if old is not None and old.get("spec") == new.get("spec"):
        return []
    spec, found = new.get("spec") or {}, []
    near = spec.get("networkTopology") or {}
    if "highestTierAllowed" in near and near.get("highestTierName"):
        both = "highestTierAllowed and highestTierName say the same in two ways; give one of them"
        found.append(_cause("spec.networkTopology", both))
    try:
        group = group_from({**new, "status": {}})
        if any(amount < 0 for amount in (group.min_resources or amounts(None)).values()):
            found.append(_cause("spec.minResources", "an amount is below zero; give zero or more"))
        if old is None:
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
