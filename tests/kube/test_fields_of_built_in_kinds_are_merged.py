"""Strategic merge patch and server-side apply join the same fields of built-in kinds differently."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.kube import kinds
from shoal.kube.apply import apply
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj, at_path
from shoal.kube.patching import strategic_merge
from shoal.kube.schemas import schema_of

TCP, UDP = {"protocol": "TCP"}, {"protocol": "UDP"}
# The field, its value in the object, in the patch, and after a strategic merge patch and a server-side apply of it.
CASES: dict[str, tuple[Kind, str, Any, Any, Any, Any]] = {
    "containers are joined by name": (
        kinds.POD,
        "spec.containers",
        [{"name": "a", "image": "1"}],
        [{"name": "a", "tty": True}],
        [{"name": "a", "image": "1", "tty": True}],
        [{"name": "a", "image": "1", "tty": True}],
    ),
    "a volume may end up with two sources": (
        kinds.POD,
        "spec.volumes",
        [{"name": "v", "emptyDir": {}}],
        [{"name": "v", "hostPath": {"path": "/x"}}],
        [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/x"}}],
        [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/x"}}],
    ),
    "tolerations are replaced": (
        kinds.POD, "spec.tolerations", [{"key": "a"}], [{"key": "b"}], [{"key": "b"}], [{"key": "b"}],
    ),
    "ports of a container: only apply counts the protocol as a key": (
        kinds.POD,
        "spec.containers",
        [{"name": "a", "ports": [{"containerPort": 53, **TCP}]}],
        [{"name": "a", "ports": [{"containerPort": 53, **UDP}]}],
        [{"name": "a", "ports": [{"containerPort": 53, **UDP}]}],
        [{"name": "a", "ports": [{"containerPort": 53, **TCP}, {"containerPort": 53, **UDP}]}],
    ),
    "a container port without a protocol is one of TCP": (
        kinds.POD,
        "spec.containers",
        [{"name": "a", "ports": [{"containerPort": 53, **TCP}]}],
        [{"name": "a", "ports": [{"containerPort": 53, "name": "dns"}]}],
        [{"name": "a", "ports": [{"containerPort": 53, **TCP, "name": "dns"}]}],
        [{"name": "a", "ports": [{"containerPort": 53, **TCP, "name": "dns"}]}],
    ),
    "ports of a Service: only apply counts the protocol as a key": (
        kinds.SERVICE,
        "spec.ports",
        [{"port": 53, **TCP}],
        [{"port": 53, **UDP}],
        [{"port": 53, **UDP}],
        [{"port": 53, **TCP}, {"port": 53, **UDP}],
    ),
    "addresses of a host are joined by address": (
        kinds.POD,
        "status.hostIPs",
        [{"ip": "10.0.0.1"}],
        [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}],
        [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}],
        [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}],
    ),
    "address ranges of a node are a set": (
        kinds.NODE,
        "spec.podCIDRs",
        ["10.0.0.0/24"],
        ["fd00::/64"],
        ["fd00::/64", "10.0.0.0/24"],
        ["10.0.0.0/24", "fd00::/64"],
    ),
    "labels are joined": (
        kinds.POD, "metadata.labels", {"a": "1"}, {"b": "2"}, {"a": "1", "b": "2"}, {"a": "1", "b": "2"},
    ),
    "apply replaces a selector whole": (
        kinds.SERVICE, "spec.selector", {"a": "1"}, {"b": "2"}, {"a": "1", "b": "2"}, {"b": "2"},
    ),
    "apply replaces the source of a claim whole": (
        kinds.PERSISTENT_VOLUME_CLAIM,
        "spec.dataSource",
        {"apiGroup": "g.dev", "kind": "A", "name": "a"},
        {"kind": "B", "name": "b"},
        {"apiGroup": "g.dev", "kind": "B", "name": "b"},
        {"kind": "B", "name": "b"},
    ),
    "the claim of a volume is joined": (
        kinds.PERSISTENT_VOLUME,
        "spec.claimRef",
        {"name": "a", "uid": "1"},
        {"name": "b"},
        {"name": "b", "uid": "1"},
        {"name": "b", "uid": "1"},
    ),
}  # fmt: skip


def with_field(kind: Kind, path: str, value: Any) -> Obj:
    obj: Obj = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "x"}}
    top, _, name = path.partition(".")
    obj[top] = {**obj.get(top, {}), name: value}
    return obj


@pytest.mark.parametrize(("kind", "path", "live", "patch", "patched", "applied"), CASES.values(), ids=CASES)
def test_a_field_is_merged(kind: Kind, path: str, live: Any, patch: Any, patched: Any, applied: Any) -> None:
    schema, obj, change = schema_of(kind), with_field(kind, path, live), with_field(kind, path, patch)
    after_apply = apply(schema, obj, change, manager="m", force=True, now="2026-11-16T04:00:00Z")
    assert at_path(strategic_merge(schema, obj, change), *path.split(".")) == patched
    assert at_path(after_apply, *path.split(".")) == applied
