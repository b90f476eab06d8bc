"""Rules between the fields of a Job, in CEL: part of its CRD, and evaluated by every API server and by `validation`.

What CEL cannot express, whether pods can be built from a template and whether a queue is open, is in `validation`. An
omitted field means its default. Lists are bounded, because an API server estimates the cost of a rule before it accepts
it (which leaves no room for messages with numbers), and the loops of a rule have at most 9,999 iterations in Shoal.
"""

from __future__ import annotations

from typing import Literal, get_args

from shoal.dialects.job_limits import within_limit
from shoal.kube.objects import Obj

# What is empty counts as absent.
Event = Literal["PodPending", "PodFailed", "PodEvicted", "TaskCompleted", "TaskFailed", "Unknown", "JobUpdated", "*"]
Action = Literal[
    "AbortJob", "RestartJob", "RestartTask", "RestartPod", "RestartPartition", "TerminateJob", "CompleteJob",
    "ResumeJob",
]  # fmt: skip
EVENTS: tuple[str, ...] = get_args(Event)

MOST_TASKS, MOST_POLICIES, MOST_EVENTS, LONGEST_NAME = 200, 64, 16, 63
NO_TASK = "No task specified in job spec"
MUTABLE = (
    "job updates may not change fields other than `minAvailable`, `tasks[*].replicas`, `tasks[*].minAvailable`, "
    "`tasks[*].partitionPolicy.totalPartitions` and `priorityClassName` under spec"
)
SAME_TASKS = "job updates may not add or remove tasks"


# Of these a Job keeps its value; a field that is absent or empty has the first value here.
UNCHANGED = {
    "queue": ("'default'", "''"),
    "schedulerName": ("'volcano'", "''"),
    "maxRetry": ("3", "0"),
    "minSuccess": ("0", "0"),
    "ttlSecondsAfterFinished": ("-1", "-1"),
}


def _rule(rule: str, message: str, *, at: str = "", reason: str = "FieldValueInvalid") -> Obj:
    made = {"rule": rule, "message": message, "reason": reason}
    return {**made, "fieldPath": f".{at}"} if at else made


def _or(field: str, otherwise: str, of: str = "self") -> str:
    """A field, or what its absence means."""
    return f"(has({of}.{field}) ? {of}.{field} : {otherwise})"


def _named(policy: str) -> str:
    """Whether a policy names events."""
    one, several = f"(has({policy}.event) && {policy}.event != '')", f"{policy}.events.size() > 0"
    return f"({one} || (has({policy}.events) && {several}))"


def of_job() -> list[Obj]:
    total = f"self.tasks.map(t, {_or('replicas', '0', 't')}).sum()"
    names = "{of}.tasks.map(t, " + _or("name", "''", "t") + ")"
    unchanged = []
    for field, (otherwise, empty) in UNCHANGED.items():
        same = "(has({0}.{1}) && {0}.{1} != {2} ? {0}.{1} : {3})"
        now, before = (same.format(of, field, empty, otherwise) for of in ("self", "oldSelf"))
        unchanged.append(f"{now} == {before}")
    return [
        _rule("has(self.tasks) && self.tasks.size() > 0", NO_TASK, at="tasks", reason="FieldValueRequired"),
        _rule(
            f"!has(self.minAvailable) || !has(self.tasks) || self.minAvailable <= {total} || {total} < 0",
            "job 'minAvailable' is greater than total replicas: lower it or raise replicas",
            at="minAvailable",
        ),
        _rule(
            f"!has(self.tasks) || !has(oldSelf.tasks) || {names.format(of='self')} == {names.format(of='oldSelf')}",
            SAME_TASKS,
            at="tasks",
            reason="FieldValueForbidden",
        ),
        _rule(
            " && ".join(unchanged),
            MUTABLE,
            reason="FieldValueForbidden",
        ),
    ]


def of_tasks() -> list[Obj]:
    """Of the list: no two of one name, and not too many pods in all."""
    names = f"self.map(t, {_or('name', repr(''), 't')})"
    return [
        within_limit(_or("replicas", "0", "r")),
        _rule(
            # A list of one list gives it a name: to compare every task with every other would be too many iterations.
            f"[{names}].all(names, names.all(n, n == '' || names.indexOf(n) == names.lastIndexOf(n)))",
            "duplicated task name: give every task its own",
            reason="FieldValueDuplicate",
        ),
    ]


def of_task() -> list[Obj]:
    replicas, cut = _or("replicas", "0"), "self.partitionPolicy"
    product = f"{_or('totalPartitions', '0', cut)} * {_or('partitionSize', '0', cut)}"
    return [
        _rule(
            # A size below zero is what the schema refuses.
            f"!has(self.minAvailable) || self.minAvailable <= {replicas} || {replicas} < 0",
            "'minAvailable' is greater than 'replicas': lower it or raise replicas",
            at="minAvailable",
        ),
        _rule(
            f"!has({cut}) || {product} == {replicas}",
            "totalPartitions x partitionSize must be the task's replicas",
            at="partitionPolicy",
        ),
    ]


def of_partitions() -> list[Obj]:
    return [
        _rule(
            f"{_or('minPartitions', '0')} <= {_or('totalPartitions', '0')}",
            "is more than totalPartitions",
            at="minPartitions",
        )
    ]


def of_policies() -> list[Obj]:
    """Of a list: each event and each exit code once, and * alone."""
    named = "((has(p.event) && p.event == {0}) || (has(p.events) && {0} in p.events))"
    return [
        _rule(
            f"!self.exists(p, {named.format(repr('*'))}) || self.filter(p, {_named('p')}).size() == 1",
            "if there is * here, there must be no other event beside it",
        ),
        _rule(
            f"{list(EVENTS)}.all(e, self.filter(p, {named.format('e')}).size() <= 1)",
            "duplicate event: give each event one action",
            reason="FieldValueDuplicate",
        ),
        _rule(
            "self.all(p, !has(p.exitCode) || self.exists_one(o, has(o.exitCode) && o.exitCode == p.exitCode))",
            "duplicate exitCode: give each exit code one action",
            reason="FieldValueDuplicate",
        ),
    ]


def of_policy() -> list[Obj]:
    return [
        _rule(f"!({_named('self')} && has(self.exitCode))", "must not specify event and exitCode simultaneously"),
        _rule(
            f"{_named('self')} || has(self.exitCode)",
            "either event, events or exitCode must be specified",
            reason="FieldValueRequired",
        ),
        _rule("!has(self.exitCode) || self.exitCode != 0", "0 is not a valid error code", at="exitCode"),
        _rule(
            "has(self.action) && self.action != ''", "say what should happen", at="action", reason="FieldValueRequired"
        ),
    ]


def of_topology() -> list[Obj]:
    both = "has(self.highestTierAllowed) && has(self.highestTierName) && self.highestTierName != ''"
    return [_rule(f"!({both})", "highestTierAllowed and highestTierName exclude each other: say one of them")]


def of_volume() -> list[Obj]:
    named = f"{_or('volumeClaimName', repr(''))} != ''"
    return [
        _rule(
            f"{_or('mountPath', repr(''))} != ''",
            "say where the volume is mounted",
            at="mountPath",
            reason="FieldValueRequired",
        ),
        _rule(
            f"has(self.volumeClaim) || {named}",
            "either volumeClaim or volumeClaimName must be specified",
            reason="FieldValueRequired",
        ),
    ]
