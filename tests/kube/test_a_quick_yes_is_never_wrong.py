"""Types made of a schema never let pass what the walks over the schema complain about, and let the usual pass."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.kube import fast_validation, kinds
from shoal.kube.schema import _is_clean
from shoal.kube.schemas import schema_of
from shoal.kube.structural_schema import validate
from shoal.kube.structural_schema.schema_parser import schema_below

NOW = "2026-02-28T23:59:59Z"
POD = {
    "apiVersion": "v1", "kind": "Pod",
    "metadata": {
        "name": "a", "namespace": "b", "uid": "x", "labels": {"a": "b"}, "creationTimestamp": NOW,
        "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "u", "controller": True}],
    },
    "spec": {
        "restartPolicy": "Never", "terminationGracePeriodSeconds": 30,
        "containers": [{
            "name": "main", "image": "x", "command": ["true"], "env": [{"name": "A", "value": "1"}],
            "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}},
            "ports": [{"containerPort": 80}], "readinessProbe": {"tcpSocket": {"port": "web"}},
        }],
    },
    "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": NOW}]},
}  # fmt: skip
POD_SCHEMA = schema_of(kinds.POD)

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**65), 2**65), st.floats(allow_nan=False), st.text(max_size=5),
    st.sampled_from([
        NOW, "2026-02-30T00:00:00Z", "2024-02-29T00:00:00Z", "2026-13-01T00:00:00Z", "2026-04-31T10:00:00Z", f"{NOW}\n",
        "1Gi", "1.5", "-1", "1e3", "0x1", "٣", "Always", "aGk=", "aGkh", "", {}, [], {"a": 1}, [None], [1],
    ]),
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, child in inside for place in places(child, (*path, key)))]


def changed(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    if not place:
        return new
    value = deepcopy(value)
    holder = value
    for step in place[:-1]:
        holder = holder[step]
    holder[place[-1]] = new
    return value


LISTED: dict[str, Any] = {
    "type": "object", "required": ["n", "when"],
    "properties": {
        "n": {"type": "integer", "format": "int32", "minimum": 0, "maximum": 9},
        "when": {"type": "string", "format": "date-time", "nullable": True},
        "how": {"type": "string", "enum": ["one", "two"]},
        "is": {"type": "boolean"},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "all": {"type": "array", "items": {"type": "object", "additionalProperties": {"type": "integer"}}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}  # fmt: skip
GOOD = {"n": 3, "when": NOW, "how": "one", "is": True, "set": ["a"], "all": [{"x": 1}], "free": {"y": [1]}}


CUSTOM = schema_below(LISTED)


def is_sure(quick: fast_validation.FastValidator, value: Any) -> bool:
    return any(quick.accepts(value) for _ in range(fast_validation.COMPILE_AFTER))


POD_TYPE, CUSTOM_TYPE = fast_validation.decode_validator(POD_SCHEMA), fast_validation.schema_validator(CUSTOM)
assert is_sure(POD_TYPE, POD), "from here on its types are asked"
assert is_sure(CUSTOM_TYPE, GOOD)


@settings(max_examples=400)
@given(st.data())
def test_what_decodes_quickly_decodes(data: st.DataObject) -> None:
    place = data.draw(st.sampled_from(places(POD)))
    value = changed(POD, place, data.draw(scalars))
    if data.draw(st.booleans()) and isinstance(value, dict):
        value = {**value, data.draw(st.sampled_from(["spek", "metadata", "spec"])): data.draw(scalars)}
    if POD_TYPE.accepts(value):
        assert _is_clean(POD_SCHEMA, value)


@settings(max_examples=400)
@given(st.data())
def test_what_fits_quickly_fits(data: st.DataObject) -> None:
    value = changed(GOOD, data.draw(st.sampled_from(places(GOOD))), data.draw(scalars))
    if isinstance(value, dict):
        value = {name: child for name, child in value.items() if data.draw(st.integers(0, 9))}
    if CUSTOM_TYPE.accepts(value):
        assert not validate(CUSTOM, value)


@pytest.mark.parametrize(
    ("quick", "value"), [(POD_TYPE, POD), (CUSTOM_TYPE, GOOD), (CUSTOM_TYPE, {**GOOD, "when": None})]
)
def test_the_usual_is_sure_once_its_schema_is_busy(quick: fast_validation.FastValidator, value: Any) -> None:
    assert is_sure(quick, value)


BAD = [
    {"n": 10}, {"n": -1}, {"n": 1.0}, {"n": True}, {"n": None}, {"when": "2026-02-30T00:00:00Z"}, {"how": "three"},
    {"is": 1}, {"set": ["a", "a"]}, {"all": [{"x": "1"}]}, {"all": {}},
]  # fmt: skip


@pytest.mark.parametrize("part", BAD, ids=str)
def test_what_is_wrong_is_never_sure(part: Any) -> None:
    assert is_sure(CUSTOM_TYPE, GOOD)
    assert not CUSTOM_TYPE.accepts({**GOOD, **part})


def test_a_schema_that_contains_itself_is_left_to_the_slow_walk() -> None:
    quick = fast_validation.decode_validator(schema_of(kinds.CUSTOM_RESOURCE_DEFINITION))
    assert not is_sure(quick, {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"})
