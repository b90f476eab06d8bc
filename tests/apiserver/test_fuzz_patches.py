"""Any value as a patch, of any type: a changed object or a refusal, never a 500 and nothing half-written."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.asgi_client import Asgi
from shoal.apiserver.app import build_application
from shoal.cluster.embedded import EmbeddedCluster

CONTAINER = {"name": "main", "image": "i", "ports": [{"containerPort": 80}], "env": [{"name": "A", "value": "1"}]}
POD = {
    "metadata": {"name": "x", "labels": {"a": "b"}},
    "spec": {"containers": [CONTAINER], "volumes": [{"name": "v", "emptyDir": {}}]},
}
SERVICE = {"metadata": {"name": "x"}, "spec": {"ports": [{"port": 80, "name": "http"}], "selector": {"a": "b"}}}
NODE = {"metadata": {"name": "x"}, "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}
OBJECTS = {
    "pod": ("/api/v1/namespaces/default/pods", POD),
    "service": ("/api/v1/namespaces/default/services", SERVICE),
    "node": ("/api/v1/nodes", NODE),
    "config map": ("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "x"}, "data": {"a": "b"}}),
}
TYPES = ["application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json",
         "application/apply-patch+yaml"]  # fmt: skip

NAMES = st.sampled_from([
    "metadata", "spec", "status", "containers", "name", "image", "ports", "port", "env", "volumes", "labels", "a",
    "data", "taints", "finalizers", "ownerReferences", "kind", "apiVersion", "uid", "resourceVersion", "generation",
    "deletionTimestamp", "managedFields", "annotations", "$patch", "$setElementOrder/containers",
    "$deleteFromPrimitiveList/finalizers", "$retainKeys", "main", "0", "-", "resources", "limits", "cpu",
    "conditions", "type", "selector", "emptyDir", "value",
])  # fmt: skip
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False, allow_infinity=False), NAMES,
    st.sampled_from(["delete", "replace", "merge", "", "1Gi", "-1", "2030-01-01T00:00:00Z", "x" * 300, "\u0000", "ü"]),
)  # fmt: skip
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=12
)
POINTERS = st.lists(NAMES, max_size=5).map(lambda steps: "".join(f"/{step}" for step in steps)) | st.text(max_size=5)
OPERATIONS = st.lists(
    st.fixed_dictionaries(
        {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "jump"]), "path": POINTERS},
        optional={"from": POINTERS, "value": VALUES},
    ),
    max_size=4,
)


async def patched(name: str, part: str, patch_type: str, body: Any) -> tuple[int, Any, Any, Any]:
    """The answer, and the object before and after."""
    folder, given_ = OBJECTS[name]
    cluster = await EmbeddedCluster.open(":memory:")
    try:
        http = Asgi(build_application(cluster, token="t"), "t")
        before = (await http("POST", folder, copy.deepcopy(given_))).json
        query = {"fieldManager": "fuzz", "force": "true"} if "apply" in patch_type else {}
        answer = await http("PATCH", f"{folder}/x{part}", body, {"content-type": patch_type}, **query)
        after = await http("GET", f"{folder}/x")
        return answer.status, answer.json, before, after.json
    finally:
        await cluster.close()


@pytest.mark.parametrize("name", OBJECTS)
@settings(max_examples=120, derandomize=True, deadline=None)
@given(part=st.sampled_from(["", "", "/status"]), patch_type=st.sampled_from(TYPES), data=st.data())
def test_any_patch_is_taken_whole_or_refused(name: str, part: str, patch_type: str, data: st.DataObject) -> None:
    if name == "config map":
        part = ""
    body = data.draw(OPERATIONS | VALUES if "json-patch" in patch_type else VALUES)
    logging.disable()  # what is refused here is expected to be
    try:
        code, answer, before, after = asyncio.run(patched(name, part, patch_type, json.dumps(body).encode()))
    finally:
        logging.disable(logging.NOTSET)
    assert code < 500, (patch_type, body, answer)
    if code >= 400:
        assert (answer["kind"], answer["code"], bool(answer["message"])) == ("Status", code, True)
        assert after == before
    elif after.get("kind") != "Status":
        assert answer == after
