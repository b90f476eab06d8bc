"""A program can complete, refuse and warn about objects of a custom kind when they are written."""

from __future__ import annotations

from typing import Any

import pytest

from kit.cluster_objects import define, obj
from shoal.cluster.admission import Admission
from shoal.cluster.apimachinery import MEMORY, Machinery
from shoal.cluster.client import PatchType
from shoal.kube.errors import ApiError, Cause
from shoal.kube.kinds import Kind
from shoal.kube.objects import Key, Obj


def complete(widget: Obj) -> Obj:
    return {**widget, "spec": {"replicas": 7, **(widget.get("spec") or {})}}


def mistakes(widget: Obj, _: Obj | None) -> list[Cause]:
    size = widget["spec"].get("size")
    return [Cause("FieldValueInvalid", "must be even: 2 would be", "spec.size")] if size and size % 2 else []


def warnings(widget: Obj, old: Obj | None) -> list[str]:
    return ["spec.size: shrinks"] if old and widget["spec"].get("size", 0) < old["spec"].get("size", 0) else []


@pytest.fixture
def cluster() -> tuple[Machinery, Kind]:
    machinery = Machinery.open(MEMORY)
    kind = define(machinery)
    machinery.admissions[kind.resource] = Admission(complete, mistakes, warnings)
    return machinery, kind


def change(machinery: Machinery, kind: Kind, patch: Any, subresource: str = "") -> Any:
    return machinery.patch(kind, Key("default", "w"), patch, PatchType.MERGE, None, subresource)


def test_what_is_missing_is_filled_in(cluster: tuple[Machinery, Kind]) -> None:
    machinery, kind = cluster
    made = machinery.create(kind, "default", obj("w", spec={"size": 2})).stored.obj()
    assert made["spec"] == {"size": 2, "replicas": 7, "colour": "blue"}


def test_mistakes_are_listed_beside_those_of_the_schema(cluster: tuple[Machinery, Kind]) -> None:
    machinery, kind = cluster
    with pytest.raises(ApiError) as caught:
        machinery.create(kind, "default", obj("w", spec={"size": -3, "colour": 5}))
    assert {cause.field: cause.message for cause in caught.value.causes} == {
        "spec.size": "must be even: 2 would be",  # instead of the schema's own word about -3
        "spec.colour": 'Invalid value: "integer": spec.colour in body must be of type string: "integer"',
    }


def test_a_change_of_the_spec_is_validated(cluster: tuple[Machinery, Kind]) -> None:
    machinery, kind = cluster
    machinery.create(kind, "default", obj("w", spec={"size": 4}))
    assert change(machinery, kind, {"spec": {"size": 2}}).warnings == ("spec.size: shrinks",)
    with pytest.raises(ApiError) as caught:
        change(machinery, kind, {"spec": {"size": 3}})
    assert caught.value.code == 422


def test_metadata_and_status_of_an_object_that_would_be_refused_today_can_be_written(
    cluster: tuple[Machinery, Kind],
) -> None:
    machinery, kind = cluster
    admission = machinery.admissions.pop(kind.resource)
    machinery.create(kind, "default", obj("w", spec={"size": 3}))
    machinery.admissions[kind.resource] = admission
    change(machinery, kind, {"metadata": {"labels": {"a": "b"}}})
    changed = change(machinery, kind, {"status": {"ready": True}}, "status").stored.obj()
    assert (changed["metadata"]["labels"], changed["status"], changed["spec"]["size"]) == (
        {"a": "b"},
        {"ready": True},
        3,
    )
