"""Every mistake in a new object is found, all at once, in the words and the order of a real API server."""

from __future__ import annotations

import pytest

from kit import manifests
from kit.manifests import changed
from kit.validation_tables import KINDS, Mistake, fresh, mistakes
from shoal.kube import kinds
from shoal.kube.defaults import apply_defaults
from shoal.kube.errors import invalid
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj
from shoal.kube.validation import validate_binding, validate_create

TABLES = (
    "containers", "environments", "volumes", "resources", "probes", "placement", "pods", "services", "config",
    "storage", "cluster", "events",
)  # fmt: skip
BOAT = Kind("sea.dev", "v1", "Boat", "boats", custom=True)


def causes(kind: Kind, obj: Obj, *, allow_loopback: bool = False) -> list[str]:
    stored = fresh(obj)
    apply_defaults(kind, stored)
    return [str(cause) for cause in validate_create(kind, stored, allow_loopback=allow_loopback)]


@pytest.mark.parametrize("mistake", [pytest.param(each, id=each.id) for each in mistakes(*TABLES)])
def test_a_mistake_is_named_as_kubernetes_names_it(mistake: Mistake) -> None:
    assert causes(mistake.kind, mistake.second) == mistake.causes


@pytest.mark.parametrize("builder", sorted(KINDS))
def test_an_ordinary_object_has_no_mistakes(builder: str) -> None:
    assert causes(KINDS[builder], getattr(manifests, builder)()) == []


def test_the_answer_lists_all_mistakes_in_brackets() -> None:
    pod = changed(manifests.pod(), {"spec.containers[0].image": "", "spec.restartPolicy": "Maybe"})
    apply_defaults(kinds.POD, pod)
    assert invalid(kinds.POD, "web", validate_create(kinds.POD, pod)).message == (
        'Pod "web" is invalid: [spec.containers[0].image: Required value, '
        'spec.restartPolicy: Unsupported value: "Maybe": supported values: "Always", "OnFailure", "Never"]'
    )


LOOPBACK = {
    "endpoints": (kinds.ENDPOINTS, changed(manifests.endpoints(), {"subsets[0].addresses[0].ip": "127.0.3.9"})),
    "slice": (kinds.ENDPOINT_SLICE, changed(manifests.endpoint_slice(), {"endpoints[0].addresses": ["127.0.3.9"]})),
}


@pytest.mark.parametrize(("kind", "obj"), LOOPBACK.values(), ids=LOOPBACK)
def test_loopback_endpoints_are_allowed_with_allow_loopback(kind: Kind, obj: Obj) -> None:
    assert len(causes(kind, obj)) == 1
    assert causes(kind, obj, allow_loopback=True) == []


def test_an_endpoint_has_at_most_a_hundred_addresses() -> None:
    many = changed(manifests.endpoint_slice(), {"endpoints[0].addresses": [f"10.0.0.{i}" for i in range(101)]})
    assert causes(kinds.ENDPOINT_SLICE, many) == ["endpoints[0].addresses: Too many: 101: must have at most 100 items"]


def test_a_generated_name_is_validated_with_its_prefix() -> None:
    meta = {"generateName": "A_", "name": "A_x2k4z", "namespace": "default"}
    found = validate_create(kinds.SERVICE_ACCOUNT, {"metadata": meta})
    assert [cause.field for cause in found] == ["metadata.generateName", "metadata.name"]


def test_a_prefix_may_end_in_a_dash() -> None:
    meta = {"generateName": "web-", "name": "web-x2k4z", "namespace": "default"}
    assert validate_create(kinds.SERVICE_ACCOUNT, {"metadata": meta}) == []


def test_a_registry_secret_holds_json() -> None:
    secret = changed(
        manifests.secret(), {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": "eA=="}}
    )
    assert causes(kinds.SECRET, secret) == [
        'data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": must be a JSON object'
    ]


CUSTOM = {
    "good": ({"name": "a.b", "namespace": "default", "finalizers": ["mine"]}, []),
    "no name": ({"namespace": "default"}, ["metadata.name: Required value: name or generateName is required"]),
    "no namespace": ({"name": "a"}, ["metadata.namespace: Required value"]),
}


@pytest.mark.parametrize(("meta", "expected"), CUSTOM.values(), ids=CUSTOM)
def test_custom_objects_have_their_metadata_checked(meta: Obj, expected: list[str]) -> None:
    assert causes(BOAT, {"metadata": meta}) == expected


def test_a_cluster_wide_object_has_no_namespace() -> None:
    meta = {"name": "n", "namespace": "default"}
    assert causes(kinds.PRIORITY_CLASS, {"metadata": meta}) == [
        "metadata.namespace: Forbidden: not allowed on this type"
    ]


BINDINGS = {
    "good": ({"target": {"kind": "Node", "name": "n"}}, []),
    "empty": ({}, ["target.name: Required value"]),
    "to a pod": (
        {"target": {"kind": "Pod", "name": "n"}},
        ['target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>"'],
    ),
}


@pytest.mark.parametrize(("binding", "expected"), BINDINGS.values(), ids=BINDINGS)
def test_a_binding_names_a_node(binding: Obj, expected: list[str]) -> None:
    assert [str(cause) for cause in validate_binding(binding)] == expected
