"""What the manifest of a training job says that has no effect, or probably not the one that is meant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from shoal.dialects.template_validation import unknown_fields
from shoal.dialects.training.replicas import Replicas
from shoal.kube.objects import Obj, at_path
from shoal.kube.schema_errors import FieldWarning


def without_effect(manifest: Obj, reasons: Mapping[str, str]) -> Iterator[str]:
    """`reasons` by the path of a field below the spec: why it is accepted, and what to use instead."""
    for path, reason in reasons.items():
        if at_path(manifest, "spec", *path.split(".")) not in (None, "", {}, []):
            yield FieldWarning(f"spec.{path}", f"has no effect: {reason}")


def of_templates(replicas: Replicas, path: str) -> Iterator[str]:
    yield from unknown_fields(replicas.template, f"{path}.template")
    if written := at_path(replicas.template, "spec", "restartPolicy"):
        text = f"{written} has no effect: the restartPolicy of the replicas decides, {replicas.restart_policy}"
        yield FieldWarning(f"{path}.template.spec.restartPolicy", text)
