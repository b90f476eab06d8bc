"""Pod templates: errors an API server would return for their pods, reported when the job is written."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.kube.defaults import apply_defaults
from shoal.kube.errors import Cause
from shoal.kube.kinds import POD
from shoal.kube.objects import Obj
from shoal.kube.patching.json_values import clone
from shoal.kube.schema import drop_unknown
from shoal.kube.schema_errors import find_mismatches, find_unknown_fields, is_at_or_below, path_of, remove_mismatches
from shoal.kube.schemas import named
from shoal.kube.validation import validate_create
from shoal.kube.validation.errors import required

_STAND_IN = {"name": "pod", "namespace": "default", "uid": "u", "creationTimestamp": "2020-01-01T00:00:00Z"}


def template_errors(template: Obj, path: str) -> Iterator[Cause]:
    """Every mistake. What the controller adds is left out, so that each path refers to what the user wrote."""
    if not template.get("spec"):
        yield required(f"{path}.spec", "the template of the task's pods")
        return
    schema = named("PodTemplateSpec")
    wrong = list(find_mismatches(schema, template))
    yield from (misfit.cause(path) for misfit in wrong)
    said = [path_of("", misfit.steps) for misfit in wrong]
    sound = drop_unknown(
        schema, clone(remove_mismatches(template, wrong) or {})
    )  # filled in below, and others read the template
    written = {key: value for key, value in (sound.get("metadata") or {}).items() if key != "generateName"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {**written, **_STAND_IN}, "spec": sound.get("spec") or {}}
    apply_defaults(POD, pod)
    for cause in validate_create(POD, pod):
        if not is_at_or_below(cause.field, said):
            yield Cause(cause.reason, cause.message, f"{path}.{cause.field}" if cause.field else path)


def unknown_fields(template: Obj, path: str) -> Iterator[str]:
    yield from find_unknown_fields(named("PodTemplateSpec"), template, path)
