"""Request bodies: what they may be, and what is said of those that are not."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.apiserver import request_body
from shoal.apiserver.request_body import DecodedBody
from shoal.kube.errors import ApiError
from shoal.kube.kinds import POD

DUPLICATES = {
    b'{"a":1,"b":{"c":2}}': (),
    b'{ "a" : 1 }': (),
    b'{"a":1,"a":2}': ("a",),
    b'{"spec":{"x":1,"x":2}}': ("spec.x",),
    b'{"spec":{"containers":[{"name":"a"},{"name":"b","name":"c"}]}}': ("spec.containers[1].name",),
    b'{"a":{"b":1},"a":{"c":1,"c":2}}': ("a", "a.c"),
    b'{"a":1.50,"a":1e5}': ("a",),
}


@pytest.mark.parametrize(("data", "paths"), DUPLICATES.items(), ids=[d.decode() for d in DUPLICATES])
def test_keys_that_stand_twice_are_found(data: bytes, paths: tuple[str, ...]) -> None:
    assert request_body.decode_json(data).duplicates == paths


YAML = {
    "a: yes": {"a": True},
    "a: 012": {"a": 10},
    "a: 2020-01-01": {"a": "2020-01-01"},
    "1: x\ntrue: w\n~: z": {"1": "x", "true": "w", "null": "z"},
    "base: &b {x: 1}\nderived:\n  <<: *b\n  z: 2": {"base": {"x": 1}, "derived": {"x": 1, "z": 2}},
    '{"a": "json"}': {"a": "json"},
}


@pytest.mark.parametrize(("text", "value"), YAML.items(), ids=YAML)
def test_yaml_is_read_as_kubectl_reads_it(text: str, value: object) -> None:
    assert request_body.decode_yaml(text.encode()) == DecodedBody(value)


def test_a_yaml_key_that_stands_twice_is_found() -> None:
    assert request_body.decode_yaml(b"a: 1\na: 2") == DecodedBody({"a": 2}, ("a",))


BOMB = "\n".join(
    ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"] + [f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
)


@pytest.mark.parametrize("text", [BOMB, "&a [*a]", "a: [", "%", "a: !!python/none x", "\x00"], ids=range(6))
def test_harmful_or_broken_yaml_is_refused(text: str) -> None:
    with pytest.raises(request_body.MalformedBody, match=r"^line \d+"):
        request_body.decode_yaml(text.encode())


def outcome(data: bytes, content_type: bytes) -> type | int:
    try:
        return type(request_body.decode_object(data, content_type, POD).value)
    except ApiError as refused:
        return refused.code


@given(st.binary(max_size=60))
def test_any_bytes_are_an_object_or_a_bad_request(data: bytes) -> None:
    for content_type in (b"application/json", b"application/yaml", b"application/vnd.kubernetes.protobuf"):
        assert outcome(data, content_type) in (dict, 400)


REFUSALS = {
    b"": "invalid JSON: line 1 column 1: expecting value, found the end of the document",
    b"hi": "invalid JSON: line 1 column 1: expecting value, found 'h'",
    b"[" * 4000 + b"]" * 4000: "invalid JSON: nested deeper than 128 levels",
    b"[]": "must be an object, not a list",
    b'{"kind":7}': "kind: must be a string, not an integer",
}


@pytest.mark.parametrize(("data", "message"), REFUSALS.items(), ids=["empty", "words", "deep", "list", "kind"])
def test_a_body_that_is_no_object_names_the_kind_expected(data: bytes, message: str) -> None:
    with pytest.raises(ApiError) as refused:
        request_body.decode_object(data, b"application/json", POD)
    assert refused.value.code == 400
    assert refused.value.message == f"the object provided is unrecognized (must be of type Pod): {message}"


POSITIONS = {
    b'{"a":1,\n "b" 2}': "line 2 column 6: expecting ':' delimiter, found '2'",
    b'{"a":1,\n}': "line 2 column 1: expecting property name enclosed in double quotes, found '}'",
    b'{"a":\n"b\nc"}': "line 2 column 3: invalid control character at",
    b'{"a":"b': "line 1 column 6: unterminated string starting at",
    b"{} x": "line 1 column 4: extra data",
    b'"\xff"': "byte 1 is not UTF-8",
}


@pytest.mark.parametrize(("data", "message"), POSITIONS.items(), ids=range(len(POSITIONS)))
def test_malformed_json_is_located(data: bytes, message: str) -> None:
    with pytest.raises(request_body.MalformedBody) as malformed:
        request_body.decode_json(data)
    assert str(malformed.value) == message


@given(st.text(alphabet='{}[]",:0-1.eE+tfn ulras\\', max_size=20))
def test_whatever_a_parser_rejects_is_located(text: str) -> None:
    try:
        json.loads(text)
    except ValueError:
        with pytest.raises(request_body.MalformedBody, match=r"^line 1 column \d+: "):
            request_body.decode_json(text.encode())


def test_an_unknown_content_type_is_refused() -> None:
    with pytest.raises(ApiError) as refused:
        request_body.decode_object(b"{}", b"text/csv", POD)
    assert (refused.value.code, refused.value.message) == (
        415,
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json, application/yaml, application/vnd.kubernetes.protobuf",
    )
