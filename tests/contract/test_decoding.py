"""Bodies that are wrong: malformed, mistyped, misspelt, too large."""

from __future__ import annotations

from typing import Any

import pytest

from kit.api_objects import cause, config_map, container, failure, invalid, names, pod, required
from kit.raw_api import Obj, Space

MALFORMED: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "invalid JSON: line 1 column 1: expecting value, found the end of the document"),
    "half": (
        b"{",
        "invalid JSON: line 1 column 2: expecting property name enclosed in double quotes, "
        "found the end of the document",
    ),
    "a list": (b"[]", "must be an object, not a list"),
    "a text": (b'"x"', "must be an object, not a string"),
    "a word": (b"x", "invalid JSON: line 1 column 1: expecting value, found 'x'"),
    "something after": (
        b'{"apiVersion":"v1","kind":"ConfigMap"} more',
        "invalid JSON: line 1 column 40: extra data",
    ),
    "a kind that is no text": (b'{"kind":7}', "kind: must be a string, not an integer"),
}


@pytest.mark.parametrize(("body", "embedded"), MALFORMED.values(), ids=MALFORMED.keys())
def test_what_is_no_json_object_is_refused(space: Space, body: bytes, embedded: str) -> None:
    refused = space.post("configmaps", body).failure()
    prefix = "the object provided is unrecognized (must be of type ConfigMap): "
    assert refused["message"].startswith(prefix)
    assert refused == failure(400, "BadRequest", space.own_words(refused, embedded=prefix + embedded))


def test_null_is_an_object_without_a_name(space: Space) -> None:
    refused = space.post("configmaps", b"null").failure()
    assert refused == invalid("ConfigMap", "", required("metadata.name", "name or generateName is required"))


WRONG_TYPES: dict[str, tuple[Obj, str]] = {
    "metadata": ({"metadata": "x"}, "string into Go struct field ConfigMap.metadata of type v1.ObjectMeta"),
    "name": ({"metadata": {"name": 7}}, "number into Go struct field ObjectMeta.metadata.name of type string"),
    "value of data": ({"data": {"x": 7}}, "number into Go struct field ConfigMap.data of type string"),
    "value of a label": (
        {"metadata": {"labels": {"x": True}}},
        "bool into Go struct field ObjectMeta.metadata.labels of type string",
    ),
}


@pytest.mark.parametrize(("body", "message"), WRONG_TYPES.values(), ids=WRONG_TYPES.keys())
def test_a_field_of_the_wrong_type_is_named(space: Space, body: Obj, message: str) -> None:
    refused = space.post("configmaps", body).failure()
    prefix = 'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal '
    assert refused == failure(400, "BadRequest", prefix + message)


QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
JSON_TYPE = "json: cannot unmarshal "
WRONG_POD_TYPES: dict[str, tuple[Obj, str]] = {
    "containers": (
        {"containers": "x"},
        f"{JSON_TYPE}string into Go struct field PodSpec.spec.containers of type []v1.Container",
    ),
    "container name": (
        {"containers": [{"name": 7}]},
        f"{JSON_TYPE}number into Go struct field Container.spec.containers.name of type string",
    ),
    "port": (
        {"containers": [{"name": "a", "ports": [{"containerPort": "80"}]}]},
        f"{JSON_TYPE}string into Go struct field ContainerPort.spec.containers.ports.containerPort of type int32",
    ),
    "fraction": (
        {"activeDeadlineSeconds": 1.5},
        f"{JSON_TYPE}number 1.5 into Go struct field PodSpec.spec.activeDeadlineSeconds of type int64",
    ),
    "boolean": (
        {"hostNetwork": "yes"},
        f"{JSON_TYPE}string into Go struct field PodSpec.spec.hostNetwork of type bool",
    ),
    "map": (
        {"nodeSelector": []},
        f"{JSON_TYPE}array into Go struct field PodSpec.spec.nodeSelector of type map[string]string",
    ),
    "quantity": ({"containers": [{"name": "a", "resources": {"limits": {"cpu": "x"}}}]}, QUANTITY),
}


@pytest.mark.parametrize(("spec", "message"), WRONG_POD_TYPES.values(), ids=WRONG_POD_TYPES.keys())
def test_a_field_of_a_pod_of_the_wrong_type_is_named(space: Space, spec: Obj, message: str) -> None:
    refused = space.post("pods", pod("a") | {"spec": spec}).failure()
    assert refused == failure(400, "BadRequest", f'Pod in version "v1" cannot be handled as a Pod: {message}')


def misspelt() -> Obj:
    return pod("a", containers=[container("main", what={"x": 1})], bogus=1) | {"metadta": {}}


UNKNOWN = ['unknown field "spec.containers[0].what"', 'unknown field "spec.bogus"', 'unknown field "metadta"']


@pytest.mark.parametrize("how", [None, "Warn"])
def test_unknown_fields_are_dropped_with_a_warning(space: Space, how: str | None) -> None:
    answer = space.post("pods", misspelt(), fieldValidation=how)
    assert "bogus" not in answer.ok()["spec"]
    quoted = [text.replace('"', '\\"') for text in UNKNOWN]
    assert sorted(answer.warnings) == sorted(f'299 - "{text}"' for text in quoted)


def test_unknown_fields_can_be_ignored(space: Space) -> None:
    answer = space.post("pods", misspelt(), fieldValidation="Ignore")
    assert (answer.status, answer.warnings) == (201, [])


def test_unknown_fields_can_be_refused(space: Space) -> None:
    refused = space.post("pods", misspelt(), fieldValidation="Strict").failure()
    prefix = 'Pod in version "v1" cannot be handled as a Pod: strict decoding error: '
    assert refused == failure(400, "BadRequest", prefix + ", ".join(UNKNOWN))
    assert names(space.get("pods").ok()) == []


def test_unknown_fields_of_an_update_can_be_refused(space: Space) -> None:
    space.post("configmaps", config_map("a")).ok()
    refused = space.put("configmaps/a", config_map("a") | {"nope": 1}, fieldValidation="Strict").failure()
    message = 'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "nope"'
    assert refused == failure(400, "BadRequest", message)


def test_unknown_fields_of_a_patch_can_be_refused(space: Space) -> None:
    space.post("configmaps", config_map("a")).ok()
    refused = space.patch("configmaps/a", {"nope": 1}, fieldValidation="Strict").failure()
    (found,) = refused["details"]["causes"]
    assert (refused["code"], found["field"]) == (422, "patch")
    assert found["message"].endswith('strict decoding error: unknown field "nope"')


def test_unknown_fields_of_a_patch_are_dropped_with_a_warning(space: Space) -> None:
    made = space.post("configmaps", config_map("a")).ok()
    answer = space.patch("configmaps/a", {"nope": 1})
    assert (answer.json, answer.warnings) == (made, ['299 - "unknown field \\"nope\\""'])


def test_another_way_of_checking_is_refused(space: Space) -> None:
    refused = space.post("configmaps", config_map("a"), fieldValidation="Maybe").failure()
    message = 'Unsupported value: "Maybe": supported values: "", "Ignore", "Strict", "Warn"'
    wrong = cause("fieldValidation", message, "FieldValueNotSupported")
    assert refused == invalid("CreateOptions", "", wrong, group="meta.k8s.io")


TWICE = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":"1","x":"2"}}'


def test_the_last_of_two_keys_counts_with_a_warning(space: Space) -> None:
    answer = space.post("configmaps", TWICE)
    assert (answer.ok()["data"], answer.warnings) == ({"x": "2"}, ['299 - "duplicate field \\"data.x\\""'])


def test_a_key_twice_can_be_refused(space: Space) -> None:
    refused = space.post("configmaps", TWICE, fieldValidation="Strict").failure()
    message = (
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: duplicate field "data.x"'
    )
    assert refused == failure(400, "BadRequest", message)


def test_a_request_over_3_mib_is_refused(space: Space) -> None:
    refused = space.post("configmaps", config_map("a", {"x": "y" * (3 << 20)})).failure()
    message = "Request entity too large: limit is 3145728"
    assert refused == failure(413, "RequestEntityTooLarge", message)


def test_data_over_1_mib_is_refused(space: Space) -> None:
    refused = space.post("configmaps", config_map("a", {"x": "y" * ((1 << 20) + 1)})).failure()
    wrong = cause("[]", "Too long: may not be more than 1048576 bytes", "FieldValueTooLong")
    assert (refused["code"], refused["details"]["causes"]) == (422, [wrong])


def test_a_body_in_yaml_is_understood(space: Space) -> None:
    body = b"kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\ndata: {x: 'yes'}\n"
    assert space.post("configmaps", body, type="application/yaml").ok()["data"] == {"x": "yes"}


def test_a_body_of_another_type_is_refused(space: Space) -> None:
    refused = space.post("configmaps", b"x", type="text/plain").failure()
    message = "the body of the request was in an unknown format - accepted media types include: "
    assert (refused["code"], refused["reason"]) == (415, "UnsupportedMediaType")
    assert refused["message"].startswith(f"{message}application/json, application/yaml")


@pytest.mark.parametrize("kind", ["application/json", "text/plain"])
def test_a_patch_of_another_type_is_refused(space: Space, kind: str) -> None:
    space.post("configmaps", config_map("a")).ok()
    refused = space.patch("configmaps/a", {}, kind).failure()
    assert refused == failure(415, "UnsupportedMediaType", "415: Unsupported Media Type", about={})


def deep(levels: int) -> Any:
    return b'{"metadata":{"name":"a"},"data":' + b"[" * levels + b"]" * levels + b"}"


def test_a_body_of_many_levels_is_refused(space: Space) -> None:
    assert space.post("configmaps", deep(20_000)).status == 400
