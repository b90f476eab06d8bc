"""Every sentence here was given by a Kubernetes 1.36 API server for the same value."""

from __future__ import annotations

import pytest

from kit.manifests import changed
from shoal.kube.kinds import CUSTOM_RESOURCE_DEFINITION, LEASE, POD, SECRET, Kind
from shoal.kube.objects import Obj
from shoal.kube.schema import is_clean, type_problem
from shoal.kube.schemas import schema_of

OBJECTS: dict[Kind, Obj] = {
    POD: {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "x"}], "volumes": [{"name": "v"}]},
    },
    SECRET: {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "YQ=="}},
    LEASE: {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": {}},
    CUSTOM_RESOURCE_DEFINITION: {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "d"},
        "spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"type": "object"}}}]},
    },
}
CONTAINER = "spec.containers[0]"
SCHEMA = "spec.versions[0].schema.openAPIV3Schema"
NOT_A_QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def struct(found: str, where: str, wanted: str) -> str:
    return f"json: cannot unmarshal {found} into Go struct field {where} of type {wanted}"


def time(text: str, message: str) -> str:
    return f'parsing time "{text}"{message}'


MICRO = ' as "2006-01-02T15:04:05.000000Z07:00": cannot parse'
PORT = "ContainerPort.spec.containers.ports.containerPort"
CASES = [
    ("text for a list", POD, "spec.containers", "x", struct("string", "PodSpec.spec.containers", "[]v1.Container")),
    ("text for a number", POD, f"{CONTAINER}.ports", [{"containerPort": "80"}], struct("string", PORT, "int32")),
    ("too large", POD, f"{CONTAINER}.ports", [{"containerPort": 99999999999}],
     struct("number 99999999999", PORT, "int32")),
    ("not whole", POD, f"{CONTAINER}.ports", [{"containerPort": 1.5}], struct("number 1.5", PORT, "int32")),
    ("number in labels", POD, "metadata.labels", {"a": 1}, struct("number", "ObjectMeta.metadata.labels", "string")),
    ("named text", POD, "spec.restartPolicy", 1, struct("number", "PodSpec.spec.restartPolicy", "v1.RestartPolicy")),
    ("text for a boolean", POD, "spec.hostNetwork", "yes", struct("string", "PodSpec.spec.hostNetwork", "bool")),
    ("number in a list", POD, f"{CONTAINER}.args", [1], struct("number", "Container.spec.containers.args", "string")),
    ("object for text", POD, f"{CONTAINER}.env", [{"name": "a", "value": {}}],
     struct("object", "EnvVar.spec.containers.env.value", "string")),
    ("object for a list", POD, f"{CONTAINER}.env", {"a": "b"},
     struct("object", "Container.spec.containers.env", "[]v1.EnvVar")),
    ("text for a map", POD, f"{CONTAINER}.resources", {"limits": "a"},
     struct("string", "ResourceRequirements.spec.containers.resources.limits", "v1.ResourceList")),
    ("list for a map", POD, "spec.nodeSelector", ["a"],
     struct("array", "PodSpec.spec.nodeSelector", "map[string]string")),
    ("text for an embedded struct", POD, "spec.volumes[0].hostPath", "x",
     struct("string", "Volume.spec.volumes.VolumeSource.hostPath", "v1.HostPathVolumeSource")),
    ("boolean for a port", POD, f"{CONTAINER}.livenessProbe", {"httpGet": {"port": True}},
     struct("bool", "HTTPGetAction.spec.containers.livenessProbe.ProbeHandler.httpGet.port", "int32")),
    ("number for a uid", POD, "metadata.uid", 5, struct("number", "ObjectMeta.metadata.uid", "types.UID")),
    ("list for metadata", POD, "metadata", [], struct("array", "Pod.metadata", "v1.ObjectMeta")),
    ("not a quantity", POD, f"{CONTAINER}.resources", {"limits": {"cpu": "1x"}}, NOT_A_QUANTITY),
    ("empty quantity", POD, f"{CONTAINER}.resources", {"limits": {"cpu": ""}}, NOT_A_QUANTITY),
    ("boolean quantity", POD, f"{CONTAINER}.resources", {"limits": {"cpu": True}}, NOT_A_QUANTITY),
    ("suffix of a quantity", POD, f"{CONTAINER}.resources", {"limits": {"cpu": "1KK"}},
     "unable to parse quantity's suffix"),
    ("not a time", POD, "metadata.creationTimestamp", "foo",
     time("foo", ' as "2006-01-02T15:04:05Z07:00": cannot parse "foo" as "2006"')),
    ("half a time", POD, "metadata.creationTimestamp", "2024-01-01",
     time("2024-01-01", ' as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T"')),
    ("month 13", POD, "metadata.creationTimestamp", "2024-13-01T00:00:00Z",
     time("2024-13-01T00:00:00Z", ": month out of range")),
    ("day 31 of June", POD, "metadata.creationTimestamp", "2024-06-31T00:00:00Z",
     time("2024-06-31T00:00:00Z", ": day out of range")),
    ("more than a time", POD, "metadata.creationTimestamp", "2024-01-01T00:00:00Zx",
     time("2024-01-01T00:00:00Zx", ': extra text: "x"')),
    ("number for a time", POD, "metadata.creationTimestamp", 5,
     struct("number", "ObjectMeta.metadata.creationTimestamp", "string")),
    ("no microseconds", LEASE, "spec.renewTime", "2024-01-01T00:00:00Z",
     time("2024-01-01T00:00:00Z", f'{MICRO} "Z" as ".000000"')),
    ("seven digits", LEASE, "spec.renewTime", "2024-01-01T00:00:00.1234567Z",
     time("2024-01-01T00:00:00.1234567Z", f'{MICRO} "7Z" as "Z07:00"')),
    ("foreign bytes", SECRET, "data.a", "!!", "illegal base64 data at input byte 0"),
    ("no padding", SECRET, "data.a", "abc", "illegal base64 data at input byte 0"),
    ("short padding", SECRET, "data.a", "YQ=", "illegal base64 data at input byte 3"),
    ("padding too soon", SECRET, "data.a", "Y=Q=", "illegal base64 data at input byte 1"),
    ("after padding", SECRET, "data.a", "YQ==x", "illegal base64 data at input byte 4"),
    ("number for bytes", SECRET, "data.a", 5, struct("number", "Secret.data", "[]uint8")),
    ("within a schema", CUSTOM_RESOURCE_DEFINITION, f"{SCHEMA}.items", {"type": 5},
     struct("number", "JSONSchemaProps.spec.versions.schema.openAPIV3Schema.items.type", "string")),
    ("neither schema nor boolean", CUSTOM_RESOURCE_DEFINITION, f"{SCHEMA}.additionalProperties", "x",
     "boolean or JSON schema expected"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "path", "value", "message"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_a_wrong_type_is_named(kind: Kind, path: str, value: object, message: str) -> None:
    schema, obj = schema_of(kind), changed(OBJECTS[kind], {path: value})
    assert type_problem(schema, obj) == message
    assert not is_clean(schema, obj)


RIGHT = [
    ("number for a quantity", f"{CONTAINER}.resources", {"limits": {"cpu": 2, "memory": 1.5}}),
    ("exponent of a quantity", f"{CONTAINER}.resources", {"limits": {"cpu": "1e3", "memory": "+.5Gi"}}),
    ("number for a port", f"{CONTAINER}.livenessProbe", {"httpGet": {"port": 80}}),
    ("name for a port", f"{CONTAINER}.livenessProbe", {"httpGet": {"port": "http"}}),
    ("fraction of a second", "metadata.creationTimestamp", "2024-02-29T23:59:59.5+01:00"),
    ("null for a list", "spec.containers", None),
    ("null for an object", "metadata", None),
]


@pytest.mark.parametrize(("path", "value"), [case[1:] for case in RIGHT], ids=[case[0] for case in RIGHT])
def test_a_right_type_is_passed(path: str, value: object) -> None:
    assert type_problem(schema_of(POD), changed(OBJECTS[POD], {path: value})) is None


def test_a_value_that_decodes_itself_stops_the_decoder() -> None:
    obj = changed(OBJECTS[POD], {"spec.restartPolicy": 1, f"{CONTAINER}.resources": {"limits": {"cpu": "x"}}})
    assert type_problem(schema_of(POD), obj) == NOT_A_QUANTITY


@pytest.mark.parametrize(("value", "found"), [([], "array"), ("x", "string"), (5, "number"), (True, "bool")])
def test_something_else_than_an_object_has_no_field_to_name(value: object, found: str) -> None:
    assert type_problem(schema_of(POD), value) == f"json: cannot unmarshal {found} into Go value of type v1.Pod"


def test_nesting_without_end_is_refused() -> None:
    schema: Obj = {}
    for _ in range(5000):
        schema = {"type": "array", "items": schema}
    obj = changed(OBJECTS[CUSTOM_RESOURCE_DEFINITION], {})
    obj["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema
    assert type_problem(schema_of(CUSTOM_RESOURCE_DEFINITION), obj) == "exceeded max depth"
