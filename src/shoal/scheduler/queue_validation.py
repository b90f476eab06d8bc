"""Admission of Queues and PodGroups, before they are stored.

The embedded cluster calls it itself, Kubernetes through the webhook. Without admission, the scheduler ignores what
makes no sense and reports it. Only changes are checked, so that the status of an object older than a rule can still be
written. Queues that cannot be seen reject nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from shoal.cluster.admission import Admission
from shoal.cluster.apimachinery import Machinery
from shoal.kube.errors import ApiError, Cause
from shoal.kube.kinds import POD, Kind
from shoal.kube.objects import Obj, annotations_of, at_path, key_of, name_of
from shoal.kube.schema_errors import SchemaMismatch, Steps, find_mismatches
from shoal.kube.schemas import named, schema_of
from shoal.kube.structural_schema import broken_rules
from shoal.scheduler.api.hypernodes import HYPER_NODE
from shoal.scheduler.api.hypernodes import check as check_hypernode
from shoal.scheduler.api.implicit_pod_groups import SCHEDULER
from shoal.scheduler.api.pod_groups import POD_GROUP, QUEUE
from shoal.scheduler.messages import text
from shoal.scheduler.planner.from_objects import HIERARCHY, group_from, pod_from, queue_from
from shoal.scheduler.planner.gang_types import Queue
from shoal.scheduler.planner.node_and_pod_types import OVER
from shoal.scheduler.planner.queue_state import (
    DEFAULT,
    ROOT,
    QueueInvalid,
    admit_alone,
    admit_deletion,
    admit_group,
    admit_queue,
    check_hierarchy,
)

BUDGETS = ("volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable")
BUDGET = re.compile(r"0*[1-9][0-9]*|0*[1-9][0-9]?%", re.ASCII)
Check = Callable[[Obj, Obj | None], list[Cause]]


def admit(machinery: Machinery, *, sees_queues: bool = True) -> None:
    """Check these kinds from here on; each object alone, where the queues it refers to are not stored here."""

    def stored() -> list[Obj] | None:
        if not sees_queues:
            return None
        return [each.obj() for each in machinery.list(QUEUE).items]

    def why_queue_kept(queue: Obj) -> str:
        # The status of a queue follows its pods with a delay. Here the pods themselves can be listed.
        allocated = at_path(queue, "status", "allocated", default={})
        if allocated:
            name = name_of(queue)
            groups = {
                key_of(group)
                for group in _listed(machinery, POD_GROUP)
                if str(at_path(group, "spec", "queue") or DEFAULT) == name
            }
            has_bound_pods = any(
                pod.node and pod.state not in OVER and (pod.group in groups if pod.group else pod.queue == name)
                for pod in map(pod_from, _listed(machinery, POD))
            )
            if not has_bound_pods:
                queue = {**queue, "status": {}}
        return deletion_blocker(queue, stored())

    checks: tuple[tuple[Kind, Check, Callable[[Obj], str] | None], ...] = (
        (QUEUE, lambda new, old: queue_errors(new, old, stored()), why_queue_kept),
        (POD_GROUP, lambda new, old: group_errors(new, old, stored()), None),
        (HYPER_NODE, check_hypernode, None),
        (POD, pod_errors, None),
    )
    for kind, check, keep in checks:
        machinery.admissions[kind.resource] = Admission(lambda obj: obj, check, lambda _, __: [], keep)


def _listed(machinery: Machinery, kind: Kind) -> Iterator[Obj]:
    return (each.obj() for each in machinery.list(kind).items)


def queue_errors(new: Obj, old: Obj | None, stored: list[Obj] | None) -> list[Cause]:
    """`stored` are all queues; None where they cannot be seen."""
    hierarchy = hierarchy_errors(new, old, stored or [])
    if old is not None and old.get("spec") == new.get("spec"):
        return hierarchy
    if odd := _type_errors(QUEUE, new):
        return [*hierarchy, *odd]
    if broken := broken_rules(QUEUE, new):
        return [*hierarchy, *broken]
    try:
        queue = queue_from(new)
        if stored is None:
            admit_alone(queue)
        else:
            admit_queue({**_known(stored), queue.name: queue}, queue, holds_pods=_holding(stored))
    except (ValueError, TypeError) as wrong:  # QueueRefused is one
        return [*hierarchy, _cause("spec", wrong)]
    return hierarchy


def hierarchy_errors(new: Obj, old: Obj | None, stored: list[Obj]) -> list[Cause]:
    """Mistakes in the hierarchy annotations of Volcano's hdrf plugin, where they are new."""
    path, weights = (annotations_of(new).get(name, "") for name in HIERARCHY)
    if old is not None and all(annotations_of(old).get(name) == annotations_of(new).get(name) for name in HIERARCHY):
        return []
    others = {name_of(each): annotations_of(each).get(HIERARCHY[0], "") for each in stored}
    others.pop(name_of(new), None)
    found = check_hierarchy(path, weights, others)
    named = zip(HIERARCHY, found, strict=True)
    return [_cause(f"metadata.annotations[{name}]", text(why)) for name, why in named if why is not None]


def deletion_blocker(queue: Obj, stored: list[Obj] | None) -> str:
    """Why the queue may not be deleted; '' where it may."""
    try:
        admit_deletion(_known(stored or []), name_of(queue), holds_pods=_holding([queue]))
    except QueueInvalid as refused:
        return text(refused.message)
    return ""


def _holding(queues: list[Obj]) -> list[str]:
    return [name_of(each) for each in queues if at_path(each, "status", "allocated", default={})]


def group_errors(new: Obj, old: Obj | None, stored: list[Obj] | None) -> list[Cause]:
    if old is not None and old.get("spec") == new.get("spec"):
        return []
    if odd := _type_errors(POD_GROUP, new):
        return odd
    found = broken_rules(POD_GROUP, new)
    try:
        group = group_from({**new, "status": {}})
        if old is None and stored is not None:
            admit_group(_known(stored), group.queue)
    except QueueInvalid as refused:
        found.append(_cause("spec.queue", refused))
    except ApiError as refused:  # a selector with an unknown operator, and the like
        found.append(_cause("spec.subGroupPolicy", refused.message))
    except (ValueError, TypeError) as wrong:
        found.append(_cause("spec", wrong))
    return found


def pod_errors(new: Obj, old: Obj | None) -> list[Cause]:
    """Mistakes in the budget of a new pod of Volcano's scheduler."""
    if old is not None or new["spec"].get("schedulerName") != SCHEDULER:
        return []
    given = {name: annotations_of(new)[name] for name in BUDGETS if name in annotations_of(new)}
    found = [
        _cause(f"metadata.annotations[{name}]", f'"{value}" is neither a count above zero nor 1% to 99%')
        for name, value in given.items()
        if not BUDGET.fullmatch(value)
    ]
    if len(given) > 1:
        found.append(_cause("metadata.annotations", f"give {BUDGETS[0]} or {BUDGETS[1]}, not both"))
    return found


def _type_errors(kind: Kind, obj: Obj) -> list[Cause]:
    """Values of a type their place does not have: no rule applies to them, and the schema names only the type."""
    spec = schema_of(kind).fields["spec"]
    found = list(find_mismatches(spec, obj.get("spec"), ("spec",)))
    policies = at_path(obj, "spec", "subGroupPolicy", default=[]) if not found and kind == POD_GROUP else []
    for index, policy in enumerate(policies):
        at: Steps = ("spec", "subGroupPolicy", index)
        if policy is None:
            found.append(SchemaMismatch(at, None, "must be an object"))
            continue
        # Selectors are only defined as objects; and null is neither a group nor a label.
        selector = policy.get("labelSelector")
        odd = list(find_mismatches(named("LabelSelector"), selector, (*at, "labelSelector")))
        found += odd or _nulls(selector, (*at, "labelSelector"))
    return [misfit.cause() for misfit in found]


def _nulls(value: Any, at: Steps) -> Iterator[SchemaMismatch]:
    """Nulls in a selector where something is needed."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, below in inner:
        if below is None and step not in ("matchLabels", "matchExpressions", "values"):
            yield SchemaMismatch((*at, step), None, "must not be null")
        yield from _nulls(below, (*at, step))


def _known(stored: list[Obj]) -> dict[str, Queue]:
    """All queues, including those that are created on demand."""
    found = {name: Queue(name) for name in (ROOT, DEFAULT)}
    for each in stored:
        try:
            found[name_of(each)] = queue_from(each)
        except (ValueError, TypeError):
            continue  # from before these rules
    return found


def _cause(field: str, why: object) -> Cause:
    return Cause("FieldValueInvalid", text(why.message) if isinstance(why, QueueInvalid) else str(why), field)
