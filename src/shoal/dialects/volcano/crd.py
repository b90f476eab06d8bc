"""The CustomResourceDefinition of Job, made from the models of its spec and status."""

from __future__ import annotations

from copy import deepcopy
from functools import cache

import msgspec

from shoal.dialects.volcano.names import GROUP, VERSION
from shoal.dialects.volcano.spec import JobSpec
from shoal.dialects.volcano.status_types import VolcanoJobStatus
from shoal.kube.crd_schema import crd_manifest, structural
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj
from shoal.kube.structural_schema import kinds_of

_COLUMNS: tuple[Obj, ...] = (
    {"name": "STATUS", "type": "string", "jsonPath": ".status.state.phase", "description": "What the Job does now"},
    {"name": "minAvailable", "type": "integer", "jsonPath": ".status.minAvailable"},
    {"name": "RUNNINGS", "type": "integer", "jsonPath": ".status.running"},
    {"name": "AGE", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    {"name": "QUEUE", "type": "string", "jsonPath": ".spec.queue", "priority": 1},
)


def crd() -> Obj:
    """The definition, a fresh copy each time."""
    return deepcopy(_crd())


@cache
def kind() -> Kind:
    (served,) = kinds_of(_crd())
    return served


@cache
def _crd() -> Obj:
    openapi = {
        "type": "object",
        "description": "Tasks of pods that are placed together, with policies for what happens to them",
        # Without defaults: what is left out means different things at creation and later, so admission fills it in.
        "properties": {
            "spec": structural(JobSpec.model_json_schema(by_alias=True), defaults=False),
            "status": structural(msgspec.json.schema(VolcanoJobStatus), defaults=False),
        },
    }
    return crd_manifest(
        openapi,
        group=GROUP,
        version=VERSION,
        names={
            "kind": "Job",
            "listKind": "JobList",
            "plural": "jobs",
            "singular": "job",
            "shortNames": ["vcjob", "vj"],
        },
        columns=_COLUMNS,
    )
