"""PodGroup and Queue (`scheduling.volcano.sh/v1beta1`), with which dialects request gangs, and Command.

Command (`bus.volcano.sh/v1alpha1`) is a one-shot instruction to a job or a queue. Several dialects create PodGroups,
and a scheduler responds in their status; neither belongs to the other. Their definitions are written out here because
Shoal reads no manifest through them: how a scheduler interprets a group is up to the scheduler.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy

from shoal.kube.crd_schema import crd_manifest
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj, annotations_of
from shoal.kube.structural_schema import kinds_of

GROUP = "scheduling.volcano.sh"
VERSION = "v1beta1"
GROUP_NAME = "scheduling.k8s.io/group-name"  # on a pod: the PodGroup of its namespace that it is a member of
QUEUE_ANNOTATION = "scheduling.volcano.sh/queue-name"  # on a pod or its namespace
ELASTIC = "shoal.dev/elastic"  # on a PodGroup, "true": its job gives pods beyond the minimum back on request
RECLAIM = "shoal.dev/give-back"  # on a PodGroup: NAME=UID,... of pods that our scheduler reclaims from its job
RECLAIM_REASON = "shoal.dev/give-back-why"  # beside it: for which group, and why
ADMITTED = frozenset({"Inqueue", "Running", "Unknown", "Completed"})  # phases in which controllers may make pods
LIMITED = ("cpu", "memory", "ephemeral-storage")  # quotas on limits exist for these

# Rules about one object alone are included in its definition, so that every API server enforces them.
ONE_TIER = "highestTierAllowed and highestTierName say the same in two ways; give one of them"
BELOW_ZERO = "an amount is below zero; give zero or more"

_TEXT: Obj = {"type": "string"}
_CHOICE: Obj = {"type": "boolean"}
_COUNT: Obj = {"type": "integer", "format": "int32", "minimum": 0}
_AMOUNTS: Obj = {
    "type": "object",
    "additionalProperties": {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": True,
    },
}
_ASKED: Obj = {
    **_AMOUNTS,
    "maxProperties": 128,  # a rule over a map is refused where the map may be of any size
    "x-kubernetes-validations": [
        {
            "rule": "self.all(name, type(self[name]) == int ? self[name] >= 0 : !self[name].startsWith('-'))",
            "message": BELOW_ZERO,
        }
    ],
}
_TOPOLOGY: Obj = {
    "type": "object",
    "properties": {
        "mode": {"type": "string", "enum": ["hard", "soft"], "default": "hard"},
        "highestTierAllowed": _COUNT,
        "highestTierName": _TEXT,
    },
    "x-kubernetes-validations": [
        {
            "rule": "!has(self.highestTierAllowed) || !has(self.highestTierName) || self.highestTierName == ''",
            "message": ONE_TIER,
        }
    ],
}
_CONDITIONS: Obj = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            **dict.fromkeys(("type", "status", "transitionID", "reason", "message"), _TEXT),
            "lastTransitionTime": {"type": "string", "format": "date-time"},
        },
    },
}
_ANYTHING: Obj = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_SUBGROUPS: Obj = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "name": _TEXT,
            "labelSelector": _ANYTHING,
            "matchLabelKeys": {"type": "array", "items": _TEXT},
            "subGroupSize": _COUNT,
            "minSubGroups": _COUNT,
            "networkTopology": _TOPOLOGY,
        },
    },
}
_POD_GROUP: Obj = {
    "type": "object",
    "description": "Pods that are placed together or not at all",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "minMember": {**_COUNT, "description": "Pods that must be placeable together"},
                "minTaskMember": {"type": "object", "additionalProperties": _COUNT},
                "minResources": _ASKED,
                "queue": {**_TEXT, "default": "default"},
                "priorityClassName": _TEXT,
                "networkTopology": _TOPOLOGY,
                "subGroupPolicy": _SUBGROUPS,
            },
        },
        "status": {
            "type": "object",
            "properties": {
                "phase": _TEXT,
                "conditions": _CONDITIONS,
                **dict.fromkeys(("running", "succeeded", "failed"), _COUNT),
            },
        },
    },
}
_QUEUE: Obj = {
    "type": "object",
    "description": "A share of the cluster",
    "x-kubernetes-validations": [
        {
            "rule": "!has(self.spec) || !has(self.spec.parent) || self.metadata.name == 'root' "
            "|| self.spec.parent != self.metadata.name",
            "fieldPath": ".spec.parent",
            "messageExpression": "'queue ' + self.metadata.name + ' would be below itself; "
            "choose another parent than ' + self.metadata.name",
        }
    ],
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "weight": {**_COUNT, "minimum": 1, "maximum": 65535, "default": 1},
                "capability": _ASKED,
                "deserved": _ASKED,
                "guarantee": {"type": "object", "properties": {"resource": _ASKED}},
                "reclaimable": {"type": "boolean", "default": True},
                "priority": _COUNT,
                "parent": _TEXT,
                "dequeueStrategy": {"type": "string", "enum": ["fifo", "traverse"], "default": "traverse"},
                "type": _TEXT,
                "affinity": _ANYTHING,
                "extendClusters": {"type": "array", "items": _ANYTHING},
            },
        },
        "status": {
            "type": "object",
            "properties": {
                "state": _TEXT,
                **dict.fromkeys(("pending", "inqueue", "running", "unknown", "completed"), _COUNT),
                "allocated": _AMOUNTS,
                "reservation": _ANYTHING,
            },
        },
    },
}


_COMMAND: Obj = {
    "type": "object",
    "description": "A one-shot order to a Job or a Queue",
    "properties": {
        "action": {**_TEXT, "description": "AbortJob, ResumeJob, TerminateJob, ...; OpenQueue, CloseQueue"},
        "reason": _TEXT,
        "message": _TEXT,
        "target": {
            "type": "object",
            "description": "The object it is for, as an owner reference",
            "required": ["apiVersion", "kind", "name"],
            "properties": {
                **dict.fromkeys(("apiVersion", "kind", "name", "uid"), _TEXT),
                **dict.fromkeys(("controller", "blockOwnerDeletion"), _CHOICE),
            },
        },
    },
}


def _column(name: str, path: str, form: str = "string") -> Obj:
    return {"name": name, "type": form, "jsonPath": path}


def _definition(
    schema: Obj, *, scope: str, names: Obj, columns: list[Obj], status: bool, group: str = GROUP, version: str = VERSION
) -> Obj:
    shown = [*columns, _column("Age", ".metadata.creationTimestamp", "date")]
    return crd_manifest(schema, group=group, version=version, names=names, columns=shown, scope=scope, status=status)


_DEFINITIONS = (
    _definition(
        _POD_GROUP,
        scope="Namespaced",
        names={
            "kind": "PodGroup", "listKind": "PodGroupList", "plural": "podgroups", "singular": "podgroup",
            "shortNames": ["pg", "podgroup-v1beta1"],
        },
        columns=[
            _column("Status", ".status.phase"),
            _column("minMember", ".spec.minMember", "integer"),
            _column("Running", ".status.running", "integer"),
            _column("Queue", ".spec.queue"),
        ],
        status=False,  # as everybody's definition has it: the status is a field like any other
    ),
    _definition(
        _QUEUE,
        scope="Cluster",
        names={
            "kind": "Queue", "listKind": "QueueList", "plural": "queues", "singular": "queue",
            "shortNames": ["q", "queue-v1beta1"],
        },
        columns=[_column("Parent", ".spec.parent"), _column("State", ".status.state")],
        status=True,
    ),
    _definition(
        _COMMAND,
        scope="Namespaced",
        names={"kind": "Command", "listKind": "CommandList", "plural": "commands", "singular": "command"},
        columns=[_column("Action", ".action"), _column("Target", ".target.name")],
        status=False,
        group="bus.volcano.sh",
        version="v1alpha1",
    ),
)  # fmt: skip


def with_quota_names(requests: Mapping[str, str], limits: Mapping[str, str]) -> Obj:
    """A group's minResources: Volcano writes each amount also under the name that a ResourceQuota has for it."""
    made: Obj = dict(requests)
    for name, amount in requests.items():
        made["count/pods" if name == "pods" else f"requests.{name}"] = amount
    made.update({f"limits.{name}": limits[name] for name in LIMITED if name in limits})
    return made


def reclaimed_uids(group: Obj) -> tuple[str, ...]:
    """The uids of the pods that a scheduler requests back; an unreadable entry requests none."""
    entries = annotations_of(group).get(RECLAIM, "").split(",")
    return tuple(uid for entry in entries if (uid := entry.partition("=")[2].strip()))


POD_GROUP: Kind
QUEUE: Kind
COMMAND: Kind
((POD_GROUP,), (QUEUE,), (COMMAND,)) = (kinds_of(each) for each in _DEFINITIONS)


def definitions() -> tuple[Obj, ...]:
    """Of all three kinds; fresh copies."""
    return deepcopy(_DEFINITIONS)
