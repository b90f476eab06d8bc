from __future__ import annotations

from typing import Any

from kit.crd_builders import TEXT, definition, fields, spec_schema, version
from shoal.kube.kinds import Column, Kind, Scale
from shoal.kube.objects import Obj
from shoal.kube.schemas import schema_of
from shoal.kube.structural_schema import accepted, kinds_of


def text(**more: Any) -> Obj:
    return {"type": "string", **more}


def test_each_served_version_is_a_kind() -> None:
    columns = [{"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1}]
    scale = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size", "labelSelectorPath": ".status.who"}
    crd = definition(
        version(additionalPrinterColumns=columns, subresources={"status": {}, "scale": scale}),
        version(name="v2", storage=False, selectableFields=[{"jsonPath": ".spec.size"}]),
        version(name="v3", storage=False, served=False),
    )
    crd["spec"]["names"] |= {"shortNames": ["wd"], "categories": ["all"]}
    shared = ("Widget", "widgets", True, ("wd",), ("all",), "widget")
    assert kinds_of(crd) == (
        Kind(
            "example.com",
            "v1",
            *shared,
            subresources=frozenset({"status", "scale"}),
            custom=True,
            scale=Scale(".spec.size", ".status.size", ".status.who"),
            columns=(Column("Size", "integer", ".spec.size", "", 1),),
        ),
        Kind("example.com", "v2", *shared, custom=True, selectable=(".spec.size",)),
    )
    assert [kind.openapi for kind in kinds_of(crd)] == [spec_schema(fields(size=TEXT))] * 2


def test_a_new_schema_of_the_same_kind_replaces_the_old() -> None:
    (before,) = kinds_of(definition())
    (after,) = kinds_of(definition(version(spec_schema(fields(other=TEXT)))))
    assert before == after
    assert [set(schema_of(kind).fields["spec"].fields) for kind in (before, after)] == [{"size"}, {"other"}]


def test_an_accepted_definition_remembers_what_it_stored() -> None:
    crd = definition()
    crd["status"] = first = accepted(crd, now="2026-01-01T00:00:00Z")
    crd["spec"]["versions"] = [version(name="v2"), version(storage=False)]
    second = accepted(crd, now="2026-02-02T00:00:00Z")
    assert second == {**first, "storedVersions": ["v1", "v2"]}
    assert [(c["type"], c["status"]) for c in first["conditions"]] == [
        ("NamesAccepted", "True"),
        ("Established", "True"),
    ]
