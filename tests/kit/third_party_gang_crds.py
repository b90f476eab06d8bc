"""The APIs of other people's gang schedulers, as far as a gang is told to them: definitions reduced to that.

Fields that Shoal writes and reads are named, and nothing else is let in, so that a field under a wrong name is lost
and missed.
"""

from __future__ import annotations

from shoal.cluster.client import Cluster, PatchType
from shoal.controller_runtime.crd_installer import wait_established
from shoal.dialects.gang_backends import coscheduling, kueue, native
from shoal.kube.crd_schema import crd_manifest
from shoal.kube.kinds import CUSTOM_RESOURCE_DEFINITION, Kind
from shoal.kube.objects import Obj, name_of

_TEXT: Obj = {"type": "string"}
_COUNT: Obj = {"type": "integer", "format": "int32", "minimum": 0}
_ANYTHING: Obj = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_AMOUNTS: Obj = {"type": "object", "additionalProperties": {"x-kubernetes-int-or-string": True}}
_TIME: Obj = {"type": "string", "format": "date-time"}
_CONDITIONS: Obj = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["type", "status", "reason", "message", "lastTransitionTime"],
        "properties": {
            **dict.fromkeys(("type", "status", "reason", "message"), _TEXT),
            "lastTransitionTime": _TIME,
            "observedGeneration": {"type": "integer", "format": "int64"},
        },
    },
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
}


def _object(**properties: Obj) -> Obj:
    return {"type": "object", "properties": properties}


def _whole(spec: Obj, **status: Obj) -> Obj:
    return _object(spec=spec, status=_object(**status))


_POD_SET: Obj = {
    **_object(name=_TEXT, count=_COUNT, minCount=_COUNT, template=_object(metadata=_ANYTHING, spec=_ANYTHING)),
    "required": ["name", "count", "template"],
}
_WORKLOAD = _whole(
    _object(
        queueName=_TEXT,
        active={"type": "boolean", "default": True},
        priority={"type": "integer", "format": "int32"},
        podSets={
            "type": "array",
            "minItems": 1,
            "maxItems": 8,
            "items": _POD_SET,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
    ),
    conditions=_CONDITIONS,
    admission=_ANYTHING,
    admissionChecks={"type": "array", "items": _ANYTHING},
)
_GATHERED = _whole(
    _object(
        minMember={**_COUNT, "minimum": 1},
        minResources=_AMOUNTS,
        scheduleTimeoutSeconds={**_COUNT, "minimum": 1},
    ),
    phase=_TEXT,
    **dict.fromkeys(("running", "succeeded", "failed"), _COUNT),
)
_PLACED = _whole(
    {
        **_object(
            schedulingPolicy=_object(basic=_object(), gang=_object(minCount={**_COUNT, "minimum": 1})),
            priorityClassName=_TEXT,
        ),
        "required": ["schedulingPolicy"],
    },
    conditions=_CONDITIONS,
)
NUMA = Kind("nodeinfo.volcano.sh", "v1alpha1", "Numatopology", "numatopologies", namespaced=False)
SCHEMAS: dict[Kind, Obj] = {
    **{kueue.workload(version): _WORKLOAD for version in kueue.VERSIONS},
    **{
        kueue.flavor(version): _object(
            spec=_object(nodeLabels=_ANYTHING, tolerations={"type": "array", "items": _ANYTHING})
        )
        for version in kueue.VERSIONS
    },
    coscheduling.POD_GROUP: _GATHERED,
    **{native.pod_group(version): _PLACED for version in native.VERSIONS},
    NUMA: _object(spec=_ANYTHING),
}


def defined(kind: Kind) -> Obj:
    made = crd_manifest(
        SCHEMAS[kind],
        group=kind.group,
        version=kind.version,
        names={
            "kind": kind.kind, "listKind": f"{kind.kind}List", "plural": kind.plural, "singular": kind.kind.lower(),
        },
        columns=[],
        scope="Namespaced" if kind.namespaced else "Cluster",
        status="status" in kind.subresources,
    )  # fmt: skip
    # Groups that end so belong to the community, and a server wants to see that it agreed.
    made["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, a test"}
    return made


async def define(cluster: Cluster, *kinds: Kind) -> None:
    """Have the cluster serve them."""
    for made in map(defined, kinds):
        await cluster.patch(
            CUSTOM_RESOURCE_DEFINITION, name_of(made),
            patch=made, patch_type=PatchType.APPLY, field_manager="test", force=True,
        )  # fmt: skip
        await wait_established(cluster, name_of(made))
