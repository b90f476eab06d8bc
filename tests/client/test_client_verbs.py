"""Every verb through the official Python client."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes import client, watch
from kubernetes.client.exceptions import ApiException


def config(name: str = "c", data: dict[str, str] | None = None, **labels: str) -> client.V1ConfigMap:
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, labels=labels or None), data=data)


def pod(name: str = "p") -> client.V1Pod:
    container = client.V1Container(name="main", image="python", command=["sleep", "1d"])
    spec = client.V1PodSpec(containers=[container], restart_policy="Never")
    return client.V1Pod(metadata=client.V1ObjectMeta(name=name), spec=spec)


def test_create_and_read_back(core: client.CoreV1Api, space: str) -> None:
    made = core.create_namespaced_config_map(space, config(data={"a": "1"}))
    assert made.metadata.uid
    assert core.read_namespaced_config_map("c", space) == made


def test_replace_needs_the_latest_version(core: client.CoreV1Api, space: str) -> None:
    made = core.create_namespaced_config_map(space, config(data={"a": "1"}))
    made.data = {"a": "2"}
    core.replace_namespaced_config_map("c", space, made)
    made.data = {"a": "3"}
    with pytest.raises(ApiException) as refused:
        core.replace_namespaced_config_map("c", space, made)
    assert (refused.value.status, refused.value.reason) == (409, "Conflict")
    assert core.read_namespaced_config_map("c", space).data == {"a": "2"}


def test_patch_of_a_dictionary_merges(core: client.CoreV1Api, space: str) -> None:
    core.create_namespaced_config_map(space, config(data={"a": "1", "b": "2"}))
    patched = core.patch_namespaced_config_map("c", space, {"data": {"b": None, "c": "3"}})
    assert patched.data == {"a": "1", "c": "3"}


def test_patch_of_a_list_is_a_json_patch(core: client.CoreV1Api, space: str) -> None:
    core.create_namespaced_config_map(space, config(data={"a": "1"}))
    operations = [{"op": "test", "path": "/data/a", "value": "1"}, {"op": "replace", "path": "/data/a", "value": "2"}]
    assert core.patch_namespaced_config_map("c", space, operations).data == {"a": "2"}


def test_apply_takes_ownership_of_fields(core: client.CoreV1Api, space: str) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1"}}
    applied = core.patch_namespaced_config_map(
        "c", space, body, field_manager="tester", force=True, _content_type="application/apply-patch+yaml"
    )
    [entry] = applied.metadata.managed_fields
    assert (entry.manager, entry.operation, entry.fields_v1) == ("tester", "Apply", {"f:data": {"f:a": {}}})


def test_list_selects_and_pages(core: client.CoreV1Api, space: str) -> None:
    for name in "abcde":
        core.create_namespaced_config_map(space, config(name, app="x" if name in "abc" else "y"))
    selected = core.list_namespaced_config_map(space, label_selector="app=x").items
    assert [item.metadata.name for item in selected] == ["a", "b", "c"]
    first = core.list_namespaced_config_map(space, limit=2)
    assert ([i.metadata.name for i in first.items], first.metadata.remaining_item_count) == (["a", "b"], 3)
    rest = core.list_namespaced_config_map(space, _continue=first.metadata._continue)
    assert [item.metadata.name for item in rest.items] == ["c", "d", "e"]


def test_watch_delivers_every_change_in_order(core: client.CoreV1Api, space: str) -> None:
    version = core.list_namespaced_config_map(space).metadata.resource_version
    core.create_namespaced_config_map(space, config(data={"a": "1"}))
    core.patch_namespaced_config_map("c", space, {"data": {"a": "2"}})
    core.delete_namespaced_config_map("c", space)
    seen = []
    watcher = watch.Watch()
    for event in watcher.stream(core.list_namespaced_config_map, space, resource_version=version, timeout_seconds=60):
        seen.append((event["type"], event["object"].data))
        if event["type"] == "DELETED":
            watcher.stop()
    assert seen == [("ADDED", {"a": "1"}), ("MODIFIED", {"a": "2"}), ("DELETED", {"a": "2"})]


def test_watch_ends_when_its_time_is_up(core: client.CoreV1Api, space: str) -> None:
    core.create_namespaced_config_map(space, config())
    events = list(watch.Watch().stream(core.list_namespaced_config_map, space, timeout_seconds=1))
    assert [event["type"] for event in events] == ["ADDED"]


@pytest.mark.parametrize("policy", ["Background", "Foreground", "Orphan"])
def test_delete_with_each_policy(core: client.CoreV1Api, space: str, policy: str) -> None:
    core.create_namespaced_config_map(space, config())
    core.delete_namespaced_config_map("c", space, propagation_policy=policy)
    gone = [item.metadata.name for item in core.list_namespaced_config_map(space).items]
    assert gone == []


def test_delete_with_a_precondition_on_another_object_is_refused(core: client.CoreV1Api, space: str) -> None:
    core.create_namespaced_config_map(space, config())
    options = client.V1DeleteOptions(preconditions=client.V1Preconditions(uid="another"))
    with pytest.raises(ApiException) as refused:
        core.delete_namespaced_config_map("c", space, body=options)
    assert refused.value.status == 409


def test_delete_collection_takes_what_is_selected(core: client.CoreV1Api, space: str) -> None:
    for name, app in (("a", "x"), ("b", "x"), ("c", "y")):
        core.create_namespaced_config_map(space, config(name, app=app))
    core.delete_collection_namespaced_config_map(space, label_selector="app=x")
    assert [item.metadata.name for item in core.list_namespaced_config_map(space).items] == ["c"]


def test_dry_run_keeps_nothing(core: client.CoreV1Api, space: str) -> None:
    made = core.create_namespaced_config_map(space, config(), dry_run="All")
    assert made.metadata.uid
    assert core.list_namespaced_config_map(space).items == []


def test_status_is_written_apart(core: client.CoreV1Api, space: str) -> None:
    core.create_namespaced_pod(space, pod())
    core.patch_namespaced_pod_status("p", space, {"status": {"phase": "Running", "podIP": "10.77.0.9"}})
    found = core.read_namespaced_pod("p", space)
    assert (found.status.phase, found.status.pod_ip) == ("Running", "10.77.0.9")


def test_a_pod_is_bound_and_evicted(core: client.CoreV1Api, space: str) -> None:
    core.create_namespaced_pod(space, pod())
    target = client.V1ObjectReference(kind="Node", name="node-1")
    binding = client.V1Binding(metadata=client.V1ObjectMeta(name="p"), target=target)
    core.create_namespaced_pod_binding("p", space, binding, _preload_content=False)
    assert core.read_namespaced_pod("p", space).spec.node_name == "node-1"
    eviction = client.V1Eviction(metadata=client.V1ObjectMeta(name="p", namespace=space))
    core.create_namespaced_pod_eviction("p", space, eviction, _preload_content=False)
    assert core.read_namespaced_pod("p", space).metadata.deletion_timestamp


def test_a_lease_and_an_event_keep_their_microseconds(api: client.ApiClient, space: str) -> None:
    leases = client.CoordinationV1Api(api)
    spec = client.V1LeaseSpec(holder_identity="me", lease_duration_seconds=40, renew_time="2030-01-01T00:00:00.123456Z")
    leases.create_namespaced_lease(space, client.V1Lease(metadata=client.V1ObjectMeta(name="l"), spec=spec))
    assert leases.read_namespaced_lease("l", space).spec.renew_time.microsecond == 123456


def test_the_version_and_the_groups_are_served(api: client.ApiClient) -> None:
    assert client.VersionApi(api).get_code().minor == "36"
    groups = {group.name for group in client.ApisApi(api).get_api_versions().groups}
    assert {"coordination.k8s.io", "apiextensions.k8s.io", "metrics.k8s.io"} <= groups
    assert "pods" in {resource.name for resource in client.CoreV1Api(api).get_api_resources().resources}


def test_may_i_is_answered(api: client.ApiClient) -> None:
    attributes = client.V1ResourceAttributes(verb="create", resource="pods")
    review = client.V1SelfSubjectAccessReview(spec=client.V1SelfSubjectAccessReviewSpec(resource_attributes=attributes))
    assert client.AuthorizationV1Api(api).create_self_subject_access_review(review).status.allowed


REFUSALS: dict[str, tuple[Any, int, str]] = {
    "missing": (lambda core, space: core.read_namespaced_pod("ghost", space), 404, "NotFound"),
    "bad name": (lambda core, space: core.create_namespaced_config_map(space, config("Bad_Name")), 422, "Invalid"),
    "bad selector": (lambda core, space: core.list_namespaced_pod(space, label_selector="a=("), 400, "BadRequest"),
    "no namespace": (lambda core, space: core.create_namespaced_config_map("nowhere", config()), 404, "NotFound"),
}


@pytest.mark.parametrize(("call", "code", "reason"), REFUSALS.values(), ids=REFUSALS)
def test_a_refusal_is_a_status(core: client.CoreV1Api, space: str, call: Any, code: int, reason: str) -> None:
    with pytest.raises(ApiException) as refused:
        call(core, space)
    assert refused.value.status == code
    assert f'"reason":"{reason}"' in refused.value.body
