"""Rules between the fields of a Job in CEL, for API servers that have nothing of it but its CRD.

They express what `admission` checks, as far as a CRD can: whether pods can be built from a template, and whether a
queue is open, takes a program. An omitted field means its default, here as there. Lists that are compared with
themselves are bounded, because an API server estimates the cost of a rule before it accepts it.
"""

from __future__ import annotations

from shoal.dialects.job_limits import WITHIN_LIMIT, within_limit
from shoal.kube.objects import Obj

MOST_TASKS, MOST_POLICIES, MOST_EVENTS, LONGEST_NAME = 200, 64, 16, 63
EVENTS = ("PodPending", "PodFailed", "PodEvicted", "TaskCompleted", "TaskFailed", "Unknown", "JobUpdated", "*")
ACTIONS = (
    "AbortJob", "RestartJob", "RestartTask", "RestartPod", "RestartPartition", "TerminateJob", "CompleteJob",
    "ResumeJob",
)  # fmt: skip
NO_TASK = "No task specified in job spec"
MUTABLE = (
    "job updates may not change fields other than `minAvailable`, `tasks[*].replicas`, `tasks[*].minAvailable`, "
    "`tasks[*].partitionPolicy.totalPartitions` and `priorityClassName` under spec"
)
SAME_TASKS = "job updates may not add or remove tasks"


def _rule(rule: str, message: str, *, at: str = "", reason: str = "FieldValueInvalid") -> Obj:
    made = {"rule": rule, "message": message, "reason": reason}
    return {**made, "fieldPath": f".{at}"} if at else made


def _or(field: str, otherwise: str, of: str = "self") -> str:
    """A field, or what its absence means."""
    return f"(has({of}.{field}) ? {of}.{field} : {otherwise})"


def _unchanged(field: str, otherwise: str, empty: str) -> str:
    """That it means the same as before; what is empty means the default too."""
    now, before = (f"(has({of}.{field}) && {of}.{field} != {empty} ? {of}.{field} : {otherwise})" for of in _BOTH)
    return f"{now} == {before}"


_BOTH = ("self", "oldSelf")


def _named(policy: str) -> str:
    """Whether a policy names events."""
    one, several = f"(has({policy}.event) && {policy}.event != '')", f"{policy}.events.size() > 0"
    return f"({one} || (has({policy}.events) && {several}))"


def of_job() -> list[Obj]:
    total = f"self.tasks.map(t, {_or('replicas', '0', 't')}).sum()"
    names = "{of}.tasks.map(t, " + _or("name", "''", "t") + ")"
    fixed = {
        "queue": ("'default'", "''"),
        "schedulerName": ("'volcano'", "''"),
        "maxRetry": ("3", "0"),
        "minSuccess": ("0", "0"),
        "ttlSecondsAfterFinished": ("-1", "-1"),
    }
    return [
        _rule("has(self.tasks) && self.tasks.size() > 0", NO_TASK, at="tasks", reason="FieldValueRequired"),
        _rule(
            f"!has(self.minAvailable) || !has(self.tasks) || self.minAvailable <= {total}",
            "job 'minAvailable' is greater than total replicas",
            at="minAvailable",
        ),
        _rule(
            f"!has(self.tasks) || !has(oldSelf.tasks) || {names.format(of='self')} == {names.format(of='oldSelf')}",
            SAME_TASKS,
            at="tasks",
            reason="FieldValueForbidden",
        ),
        _rule(
            " && ".join(_unchanged(field, *meant) for field, meant in fixed.items()),
            MUTABLE,
            reason="FieldValueForbidden",
        ),
    ]


def of_tasks() -> list[Obj]:
    """Of the list: no two of one name, and not too many pods in all."""
    alone = "self.exists_one(o, has(o.name) && o.name == t.name)"
    return [
        _rule(within_limit(_or("replicas", "0", "r")), WITHIN_LIMIT),
        _rule(
            f"self.all(t, {_or('name', repr(''), 't')} == '' || {alone})",
            "duplicated task name: give every task its own",
            reason="FieldValueDuplicate",
        ),
    ]


def of_task() -> list[Obj]:
    replicas, cut = _or("replicas", "0"), "self.partitionPolicy"
    product = f"{_or('totalPartitions', '0', cut)} * {_or('partitionSize', '0', cut)}"
    return [
        _rule(
            f"!has(self.minAvailable) || self.minAvailable <= {replicas}",
            "'minAvailable' is greater than 'replicas'",
            at="minAvailable",
        ),
        _rule(
            f"!has({cut}) || {product} == {replicas}",
            "totalPartitions x partitionSize must be the task's replicas",
            at="partitionPolicy",
        ),
    ]


def of_policies() -> list[Obj]:
    """Of a list: each event and each exit code once, and * alone."""
    anything = "((has(p.event) && p.event == '*') || (has(p.events) && '*' in p.events))"
    twice = "self.exists_one(o, has(o.{field}) && o.{field} == p.{field})"
    once = twice.format(field="event")
    return [
        _rule(
            f"!self.exists(p, {anything}) || self.filter(p, {_named('p')}).size() == 1",
            "if there is * here, there must be no other event beside it",
        ),
        _rule(
            f"self.all(p, {_or('event', repr(''), 'p')} == '' || {once})",
            "duplicate event: give each event one action",
            reason="FieldValueDuplicate",
        ),
        _rule(
            f"self.all(p, !has(p.exitCode) || {twice.format(field='exitCode')})",
            "duplicate exitCode",
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
