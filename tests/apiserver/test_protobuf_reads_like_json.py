"""An object in Kubernetes' protobuf form becomes the dictionary its JSON form would give."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.apiserver import protobuf
from shoal.kube import kinds


def number(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def field(at: int, value: int | str | bytes) -> bytes:
    if isinstance(value, int):
        return number(at << 3) + number(value)
    data = value.encode() if isinstance(value, str) else value
    return number(at << 3 | 2) + number(len(data)) + data


def message(*fields: tuple[int, int | str | bytes]) -> bytes:
    return b"".join(field(at, value) for at, value in fields)


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    return b"k8s\x00" + message((1, message((1, api_version), (2, kind))), (2, raw))


QUANTITY = message((1, "500m"))
CONTAINER = message(
    (1, "main"),
    (3, "python"),
    (3, "-V"),
    (6, message((1, ""), (2, 0), (3, 8000), (4, "TCP"))),
    (7, message((1, "A"), (2, ""))),
    (8, message((1, message((1, "cpu"), (2, QUANTITY))))),
)
NAMED_PORT = message((1, 1), (2, 0), (3, "http"))
POD_SPEC = message(
    (1, message((1, "scratch"), (2, message((2, b""))))), (2, CONTAINER), (4, 30), (7, message((1, "k"), (2, "v")))
)

OBJECTS: dict[str, tuple[bytes, dict[str, Any]]] = {
    # As kubectl sends it: Go writes every field that is no pointer, also the empty ones.
    "namespace": (
        bytes.fromhex("6b3873000a0f0a02763112094e616d657370616365121b0a130a03666f6f12001a0022002a003200380042001200"
                      "1a020a001a002200"),
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "foo"}},
    ),
    "secret": (
        envelope("v1", "Secret", message((1, message((1, "s"))), (2, message((1, "a"), (2, b"b"))), (3, ""))),
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "Yg=="}},
    ),
    "pod": (
        envelope("v1", "Pod", message((1, message((1, "p"), (11, message((1, "app"), (2, "x"))))), (2, POD_SPEC))),
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "labels": {"app": "x"}},
            "spec": {
                "volumes": [{"name": "scratch", "emptyDir": {}}],
                "containers": [
                    {
                        "name": "main",
                        "command": ["python", "-V"],
                        "ports": [{"containerPort": 8000, "protocol": "TCP"}],
                        "env": [{"name": "A"}],
                        "resources": {"limits": {"cpu": "500m"}},
                    }
                ],
                "terminationGracePeriodSeconds": 30,
                "nodeSelector": {"k": "v"},
            },
        },
    ),
    "lease": (
        envelope(
            "coordination.k8s.io/v1",
            "Lease",
            message((1, message((1, "l"))), (2, message((1, "me"), (2, 40), (3, message((1, 1893456000), (2, 5000)))))),
        ),
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "l"},
            "spec": {"holderIdentity": "me", "leaseDurationSeconds": 40, "acquireTime": "2030-01-01T00:00:00.000005Z"},
        },
    ),
    "service": (
        envelope(
            "v1",
            "Service",
            message((1, message((1, "s"))), (2, message((1, message((3, 80), (4, NAMED_PORT)))))),
        ),
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "s"},
            "spec": {"ports": [{"port": 80, "targetPort": "http"}]},
        },
    ),
    "delete options": (
        envelope("coordination.k8s.io/v1", "DeleteOptions", message((1, 0), (4, "Foreground"), (2, message((1, "u"))))),
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "DeleteOptions",
            "gracePeriodSeconds": 0,
            "propagationPolicy": "Foreground",
            "preconditions": {"uid": "u"},
        },
    ),
    "negative number": (
        envelope("scheduling.k8s.io/v1", "PriorityClass", message((1, message((1, "low"))), (2, -5))),
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "low"}, "value": -5},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("data", "expected"), OBJECTS.values(), ids=OBJECTS)
def test_an_object_reads_as_its_json_form(data: bytes, expected: dict[str, Any]) -> None:
    assert protobuf.decode(data) == expected


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "empty data"),
        (b"{}", "does not appear to be a protobuf message"),
        (envelope("v1", "Sandwich", b""), 'no kind "Sandwich" is registered for version "v1"'),
        (envelope("v1", "Pod", b"\x0a\xff"), "ends in the middle of a number"),
        (envelope("v1", "Pod", b"\x0b"), "unknown wire type 3"),
        (envelope("v1", "Pod", field(1, 5)), "wrong wire type"),
        (envelope("v1", "Pod", b"\xff" * 11), "longer than 64 bits"),
    ],
    ids=["empty", "json", "unknown kind", "cut", "wire type", "number for message", "overflow"],
)
def test_an_unreadable_message_is_an_error(data: bytes, problem: str) -> None:
    with pytest.raises(protobuf.Malformed, match=problem):
        protobuf.decode(data)


@given(st.sampled_from(["Pod", "Event", "Service", "Node", "DeleteOptions"]), st.binary(max_size=80))
def test_any_bytes_are_an_object_or_malformed(kind: str, raw: bytes) -> None:
    try:
        assert protobuf.decode(envelope("v1", kind, raw))["kind"] == kind
    except protobuf.Malformed:
        return


def test_every_message_named_is_there_to_be_read() -> None:
    shapes = set(protobuf.well_known_types.SPECIAL) | {"text", "int", "bool", "double", "bytes"}
    known = set(protobuf._messages())
    named = {field.shape for name in known for field in protobuf._fields_of(name).values()}
    assert named - shapes <= known


@pytest.mark.parametrize("kind", kinds.BUILT_IN, ids=lambda kind: f"{kind.api_version} {kind.kind}")
def test_every_kind_that_is_served_can_be_read(kind: kinds.Kind) -> None:
    named = envelope(kind.api_version, kind.kind, message((1, message((1, "x")))))
    assert protobuf.decode(named)["metadata"] == {"name": "x"}
