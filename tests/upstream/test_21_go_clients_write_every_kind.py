"""Go clients write built-in kinds as protobuf, and do not fall back to JSON: Volcano's own e2e suite is one of them."""

from __future__ import annotations

import pytest

from shoal.apiserver import protobuf
from shoal.kube.kinds import BUILT_IN, REPLICA_SET_V1BETA1, Kind


def field(number: int, data: bytes) -> bytes:
    assert len(data) < 128
    return bytes([number << 3 | 2, len(data)]) + data


def written(kind: Kind, body: bytes) -> bytes:
    return b"k8s\x00" + field(1, field(1, kind.api_version.encode()) + field(2, kind.kind.encode())) + field(2, body)


@pytest.mark.parametrize("kind", [kind for kind in BUILT_IN if kind != REPLICA_SET_V1BETA1], ids=str)
def test_21_every_kind_that_is_served_can_be_read_as_protobuf(kind: Kind):
    metadata = field(1, field(1, b"a"))
    expected = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "a"}}
    read = protobuf.decode(written(kind, metadata))
    assert {name: read[name] for name in expected} == expected
