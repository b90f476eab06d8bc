"""Whatever the documents allow, and much that they do not, is answered: never a 500, every refusal a Status.

schemathesis makes requests from the OpenAPI documents the server itself publishes, with right and wrong values in
every place. The examples are the same on every run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis import Case, GenerationMode

from kit.embedded_api_server import Running, serve
from shoal.cluster.embedded import EmbeddedCluster
from shoal.kube import kinds, openapi, structural_schema

GADGETS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gadgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
                },
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["replicas"],
                                "properties": {
                                    "replicas": {"type": "integer", "minimum": 0, "maximum": 9},
                                    "mode": {"type": "string", "enum": ["a", "b"]},
                                    "tags": {"type": "array", "items": {"type": "string", "pattern": "^[a-z]+$"}},
                                    "any": {"x-kubernetes-int-or-string": True},
                                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                                },
                            },
                            "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
                        },
                    }
                },
            }
        ],
    },
}

# Requests that never end by themselves are for other tests.
_ENDLESS = ("watch", "follow", "timeoutSeconds")
_BOUNDS = settings(
    max_examples=8,
    derandomize=True,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def described(group: str, version: str, *members: kinds.Kind) -> Any:
    schema = schemathesis.openapi.from_dict(openapi.document(members, group, version))
    schema.config.generation.update(modes=list(GenerationMode), max_examples=8)
    return schema


core = described("", "v1", kinds.POD, kinds.CONFIG_MAP, kinds.NODE)
[GADGET] = structural_schema.kinds_of(GADGETS)
custom = described("example.com", "v1", GADGET)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serve(tmp_path_factory.mktemp("server")) as running:
        running.call(prepared)
        yield running


async def prepared(cluster: EmbeddedCluster) -> None:
    """One object of each kind, so that not every request is about nothing."""
    pod = {"metadata": {"name": "x"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    await cluster.create(kinds.CUSTOM_RESOURCE_DEFINITION, GADGETS)
    await cluster.create(kinds.POD, pod, "default")
    await cluster.create(kinds.CONFIG_MAP, {"metadata": {"name": "x"}}, "default")
    await cluster.create(kinds.NODE, {"metadata": {"name": "x"}})
    gadget = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "x"}, "spec": {"replicas": 1}}
    await cluster.create(GADGET, gadget, "default")


def answered(server: Running, case: Case) -> None:
    for name in _ENDLESS:
        (case.query or {}).pop(name, None)
    if "namespace" in case.path_parameters:
        case.path_parameters["namespace"] = "default"
    if "name" in case.path_parameters and case.method != "DELETE":
        case.path_parameters["name"] = "x"
    headers = {"Authorization": f"Bearer {server.token}"}
    response = case.call(base_url=server.url, headers=headers, verify=str(server.ca_file), timeout=60)
    assert response.status_code < 500 or response.status_code == 503, response.text
    if response.status_code >= 400:
        status = response.json()
        assert (status["kind"], status["apiVersion"], status["status"]) == ("Status", "v1", "Failure")
        assert (status["code"], bool(status["reason"]), bool(status["message"])) == (response.status_code, True, True)


@core.parametrize()
@_BOUNDS
def test_any_request_to_the_core_group_is_answered(case: Case, server: Running) -> None:
    answered(server, case)


@custom.parametrize()
@_BOUNDS
def test_any_request_to_a_custom_group_is_answered(case: Case, server: Running) -> None:
    answered(server, case)
