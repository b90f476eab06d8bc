"""The CustomResourceDefinition of Framework, made from the model of its spec."""

from __future__ import annotations

from copy import deepcopy
from functools import cache

import msgspec

from shoal.dialects.framework.names import GROUP, VERSION
from shoal.dialects.framework.spec import NAME_PATTERN, PREFIX_PATTERN, FrameworkSpec
from shoal.dialects.framework.status_types import FrameworkStatus
from shoal.kube.crd_schema import PRESERVED, crd_manifest, structural
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj
from shoal.kube.schema import Schema
from shoal.kube.structural_schema import kinds_of, schema_from

_COLUMNS: tuple[Obj, ...] = (
    {"name": "State", "type": "string", "jsonPath": ".status.state", "description": "What the Framework does now"},
    {
        "name": "Attempt",
        "type": "integer",
        "jsonPath": ".status.attemptStatus.id",
        "description": "The attempt, counted from 0",
    },
    {
        "name": "Type",
        "type": "string",
        "jsonPath": ".status.attemptStatus.completionStatus.type.name",
        "description": "How the attempt ended: Succeeded or Failed",
    },
    {
        "name": "Code",
        "type": "integer",
        "jsonPath": ".status.attemptStatus.completionStatus.code",
        "description": "The completion code of the attempt",
    },
    {
        "name": "Phrase",
        "type": "string",
        "jsonPath": ".status.attemptStatus.completionStatus.phrase",
        "description": "The completion code in a word",
        "priority": 1,
    },
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
)

# Only the controller writes it, in one piece and by a model of its own (status.py). A server that is given that model
# too walks through it for every field at every write, which then costs it nearly twice as much.
_STATUS: Obj = {
    **PRESERVED,
    "description": "What became of it. Written by the controller only.",
    "nullable": True,
    "x-kubernetes-map-type": "atomic",
}


def crd() -> Obj:
    """The definition, a fresh copy each time."""
    return deepcopy(_crd())


@cache
def kind() -> Kind:
    (served,) = kinds_of(_crd())
    return served


@cache
def status_model() -> Obj:
    return structural(msgspec.json.schema(FrameworkStatus), defaults=False)


@cache
def schema() -> Schema:
    return schema_from(_openapi())


@cache
def _crd() -> Obj:
    return crd_manifest(
        _openapi(),
        group=GROUP,
        version=VERSION,
        names={
            "kind": "Framework",
            "listKind": "FrameworkList",
            "plural": "frameworks",
            "singular": "framework",
            "shortNames": ["fw"],
        },
        columns=_COLUMNS,
    )


@cache
def _openapi() -> Obj:
    return {
        "type": "object",
        "description": "Roles of tasks that live and die together, retried as a whole and one by one",
        "properties": {
            "metadata": {
                "type": "object",
                "properties": {
                    "name": {"type": "string", "pattern": NAME_PATTERN},
                    "generateName": {"type": "string", "pattern": PREFIX_PATTERN},
                },
            },
            "spec": {**structural(FrameworkSpec.model_json_schema(by_alias=True)), "default": {}},
            "status": _STATUS,
        },
    }
