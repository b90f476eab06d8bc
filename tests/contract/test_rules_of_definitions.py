"""Rules in CEL: what a definition may ask of its objects, on every server alike."""

from __future__ import annotations

import pytest

from kit.api_objects import boat, crd, serve
from kit.raw_api import Api, Obj, Space

NUMBER: Obj = {"type": "integer"}


def ruled(group: str, spec: Obj, *rules: Obj) -> Obj:
    schema = {"type": "object", "properties": {"spec": {**spec, "x-kubernetes-validations": list(rules)}}}
    return crd(group, schema)


def hull(**more: Obj) -> Obj:
    return {"type": "object", "properties": {"low": NUMBER, "high": NUMBER, **more}}


ORDERED: Obj = {"rule": "self.low <= self.high", "message": "low is above high"}
CASES: dict[str, tuple[Obj, Obj, list[tuple[str, str, str]]]] = {
    "kept": (ORDERED, {"low": 1, "high": 2}, []),
    "broken": (ORDERED, {"low": 3, "high": 2}, [("FieldValueInvalid", "Invalid value: low is above high", "spec")]),
    "without a message": (
        {"rule": "self.low <= self.high"},
        {"low": 3, "high": 2},
        [("FieldValueInvalid", "Invalid value: failed rule: self.low <= self.high", "spec")],
    ),
    "with a reason and a place": (
        {**ORDERED, "reason": "FieldValueForbidden", "fieldPath": ".high"},
        {"low": 3, "high": 2},
        [("FieldValueForbidden", "Forbidden: low is above high", "spec.high")],
    ),
    "with a made message": (
        {"rule": "self.low <= self.high", "messageExpression": "'wrong in ' + self.name"},
        {"low": 3, "high": 2, "name": "x"},
        [("FieldValueInvalid", "Invalid value: wrong in x", "spec")],
    ),
    "absent fields": ({"rule": "!has(self.low) || self.low > 0"}, {"high": 1}, []),
    "lists": ({"rule": "self.name in ['a', 'b'] && [3, 4].sum() == 7"}, {"name": "b"}, []),
    "quantities": ({"rule": "quantity(self.name).isLessThan(quantity('2Gi'))"}, {"name": "1.5Gi"}, []),
    "urls": ({"rule": "url(self.name).getHostname() == 'example.com'"}, {"name": "https://example.com:8/p"}, []),
    "expressions": ({"rule": "self.name.find('[0-9]+') == '12'"}, {"name": "ab12c"}, []),
    "optional fields": ({"rule": "self.?low.orValue(7) == 7"}, {}, []),
}


@pytest.mark.parametrize("case", CASES)
def test_objects_are_held_to_the_rules(server: Api, space: Space, group: str, case: str) -> None:
    rule, spec, causes = CASES[case]
    serve(server, ruled(group, hull(name={"type": "string", "maxLength": 64}), rule))
    answer = space.post("boats", boat(group, "a", spec=spec), group=f"{group}/v1")
    if not causes:
        answer.ok()
    else:
        found = answer.failure()["details"]["causes"]
        assert [(each["reason"], each["message"], each["field"]) for each in found] == causes


def test_a_rule_compares_with_what_was(server: Api, space: Space, group: str) -> None:
    serve(server, ruled(group, hull(), {"rule": "self.low >= oldSelf.low", "message": "low only rises"}))
    space.post("boats", boat(group, "a", spec={"low": 2}), group=f"{group}/v1").ok()
    space.patch("boats/a", {"spec": {"low": 3}}, group=f"{group}/v1").ok()
    refused = space.patch("boats/a", {"spec": {"low": 1}}, group=f"{group}/v1").failure()
    assert [each["message"] for each in refused["details"]["causes"]] == ["Invalid value: low only rises"]


@pytest.mark.parametrize("rule", ["self.low >", "nothing(self.low)", "self.low + 1", "'a' < 1", ""])
def test_a_definition_whose_rule_is_none_is_refused(server: Api, group: str, rule: str) -> None:
    refused = server.post(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", ruled(group, hull(), {"rule": rule})
    )
    (cause,) = refused.failure()["details"]["causes"]
    field = "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule"
    assert (refused.status, cause["field"]) == (422, field)
