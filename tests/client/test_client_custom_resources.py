"""Custom resources through the official Python client: typed for the definition, dynamic for the objects."""

from __future__ import annotations

import secrets
from typing import Any

import pytest
from kubernetes import client, dynamic
from kubernetes.client.exceptions import ApiException

SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {"type": "object", "properties": {"replicas": {"type": "integer", "minimum": 0, "default": 1}}},
        "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
    },
}
SCALE = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}


@pytest.fixture
def group(api: client.ApiClient) -> str:
    """A group of its own with one kind, Gadget."""
    name = f"g{secrets.token_hex(4)}.example.com"
    version = {
        "name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA},
        "subresources": {"status": {}, "scale": SCALE},
    }  # fmt: skip
    names = {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"}
    spec = {"group": name, "scope": "Namespaced", "names": names, "versions": [version]}
    definition = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": spec}
    client.ApiextensionsV1Api(api).create_custom_resource_definition(
        {**definition, "metadata": {"name": f"gadgets.{name}"}}
    )
    return name


def gadget(group: str, name: str = "g", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": f"{group}/v1", "kind": "Gadget", "metadata": {"name": name}, "spec": spec}


def test_objects_of_a_new_kind_are_kept_with_their_defaults(api: client.ApiClient, space: str, group: str) -> None:
    objects = client.CustomObjectsApi(api)
    made = objects.create_namespaced_custom_object(group, "v1", space, "gadgets", gadget(group))
    assert made["spec"] == {"replicas": 1}
    assert objects.list_namespaced_custom_object(group, "v1", space, "gadgets")["items"] == [made]


def test_an_object_against_the_schema_is_refused(api: client.ApiClient, space: str, group: str) -> None:
    with pytest.raises(ApiException) as refused:
        client.CustomObjectsApi(api).create_namespaced_custom_object(
            group, "v1", space, "gadgets", gadget(group, replicas=-1)
        )
    assert refused.value.status == 422
    assert "spec.replicas in body should be greater than or equal to 0" in refused.value.body


def test_status_and_scale_are_apart(api: client.ApiClient, space: str, group: str) -> None:
    objects = client.CustomObjectsApi(api)
    where = (group, "v1", space, "gadgets", "g")
    objects.create_namespaced_custom_object(*where[:4], gadget(group))
    objects.patch_namespaced_custom_object_status(*where, {"status": {"replicas": 1}, "spec": {"replicas": 9}})
    objects.patch_namespaced_custom_object_scale(*where, {"spec": {"replicas": 3}})
    found = objects.get_namespaced_custom_object(*where)
    assert (found["spec"], found["status"]) == ({"replicas": 3}, {"replicas": 1})
    scale = objects.get_namespaced_custom_object_scale(*where)
    assert (scale["kind"], scale["spec"], scale["status"]) == ("Scale", {"replicas": 3}, {"replicas": 1})


def test_the_dynamic_client_finds_the_kind_and_watches_it(
    api: client.ApiClient, space: str, group: str, tmp_path: Any
) -> None:
    found = dynamic.DynamicClient(api, cache_file=str(tmp_path / "discovery"))
    gadgets = found.resources.get(api_version=f"{group}/v1", kind="Gadget")
    made = gadgets.create(body=gadget(group), namespace=space)
    applied = gadgets.server_side_apply(
        body=gadget(group, replicas=4), namespace=space, field_manager="tester", force_conflicts=True
    )
    assert applied.spec.replicas == 4
    version = made.metadata.resourceVersion
    event = next(gadgets.watch(namespace=space, resource_version=version, timeout=60))
    assert (event["type"], event["object"].spec.replicas) == ("MODIFIED", 4)
    gadgets.delete(name="g", namespace=space)
    assert gadgets.get(namespace=space).items == []
