"""HyperNode (`topology.volcano.sh/v1alpha1`): a topology domain, its tier and the nodes or HyperNodes within it.

The definition rejects what has the wrong shape, and selectors that are ambiguous. `check` does what CEL cannot express:
whether a pattern compiles.
"""

from __future__ import annotations

from shoal.kube.crd_schema import crd_manifest
from shoal.kube.errors import Cause
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj, at_path
from shoal.kube.re2 import BadPattern, compiled
from shoal.kube.structural_schema import broken_rules, kinds_of

MAX_MEMBERS = 1024  # bounds the cost of the CEL rules, which the API server estimates before it accepts them
MAX_PATTERN_LENGTH = 1024
ONE_SELECTOR = "exactly one of exactMatch, regexMatch and labelMatch is required"

_NAME: Obj = {"type": "string", "minLength": 1, "maxLength": 253}
_SELECTOR: Obj = {
    "type": "object",
    "properties": {
        "exactMatch": {"type": "object", "required": ["name"], "properties": {"name": _NAME}},
        "regexMatch": {
            "type": "object",
            "required": ["pattern"],
            "properties": {"pattern": {"type": "string", "minLength": 1, "maxLength": MAX_PATTERN_LENGTH}},
        },
        "labelMatch": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
    "x-kubernetes-validations": [
        {
            "rule": "[has(self.exactMatch), has(self.regexMatch), has(self.labelMatch)]"
            ".filter(given, given).size() == 1",
            "message": ONE_SELECTOR,
        }
    ],
}
_MEMBER: Obj = {
    "type": "object",
    "required": ["type", "selector"],
    "properties": {"type": {"type": "string", "enum": ["Node", "HyperNode"]}, "selector": _SELECTOR},
}
_HYPER_NODE: Obj = {
    "type": "object",
    "description": "Nodes that are near each other in the network",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "required": ["members"],
            "properties": {
                "tier": {
                    "type": "integer", "format": "int32", "minimum": 1, "default": 1,
                    "description": "1 is the nearest",
                },
                "tierName": {"type": "string", "maxLength": 253},
                "members": {"type": "array", "minItems": 1, "maxItems": MAX_MEMBERS, "items": _MEMBER},
            },
        },
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}  # fmt: skip


def hypernode_definition() -> Obj:
    """The CustomResourceDefinition; a fresh copy."""
    return crd_manifest(
        _HYPER_NODE,
        group="topology.volcano.sh",
        version="v1alpha1",
        scope="Cluster",
        names={
            "kind": "HyperNode", "listKind": "HyperNodeList", "plural": "hypernodes", "singular": "hypernode",
            "shortNames": ["hn"],
        },
        columns=[
            {"name": "Tier", "type": "integer", "jsonPath": ".spec.tier"},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ],
    )  # fmt: skip


HYPER_NODE: Kind
(HYPER_NODE,) = kinds_of(hypernode_definition())


def check(hypernode: Obj, _: Obj | None = None) -> list[Cause]:
    """Broken rules and patterns that cannot be compiled, each with its path."""
    members = at_path(hypernode, "spec", "members", default=[])
    if not isinstance(members, list) or len(members) > MAX_MEMBERS:
        return []  # the schema rejects it
    broken = broken_rules(HYPER_NODE, hypernode) if all(isinstance(member, dict) for member in members) else []
    causes = [*broken]
    for index, member in enumerate(members):
        selector = member.get("selector") if isinstance(member, dict) else None
        pattern = at_path(selector, "regexMatch", "pattern") if isinstance(selector, dict) else None
        if isinstance(pattern, str) and len(pattern) <= MAX_PATTERN_LENGTH:
            try:
                compiled(pattern)
            except BadPattern as problem:
                field = f"spec.members[{index}].selector.regexMatch.pattern"
                causes.append(Cause("FieldValueInvalid", f'Invalid value: "{pattern}": {problem}', field))
    return causes
