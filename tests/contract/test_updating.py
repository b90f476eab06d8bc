"""Replacing an object with PUT: versions, conflicts, and what a writer cannot change."""

from __future__ import annotations

from kit.api_objects import (
    STALE,
    cause,
    config_map,
    conflict,
    failure,
    invalid,
    not_found,
    pod,
    service,
    settled,
    without_storage,
)
from kit.raw_api import Obj, Space


def test_an_update_replaces_the_object_and_raises_its_version(space: Space) -> None:
    made = space.post("configmaps", config_map("a", {"old": "1"}, labels={"x": "y"})).ok()
    answer = space.put("configmaps/a", config_map("a", {"new": "2"}))
    assert (answer.status, settled(answer.json)) == (200, config_map("a", {"new": "2"}, namespace=space.name))
    assert int(answer.json["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])
    assert answer.json["metadata"]["uid"] == made["metadata"]["uid"]


def test_an_update_of_an_older_version_is_a_conflict(space: Space) -> None:
    made = space.post("configmaps", config_map("a")).ok()
    space.put("configmaps/a", made | {"data": {"k": "1"}}).ok()
    refused = space.put("configmaps/a", made | {"data": {"k": "2"}}).failure()
    assert refused == conflict("configmaps", "a", STALE)
    assert space.get("configmaps/a").ok()["data"] == {"k": "1"}


def test_an_update_that_changes_nothing_keeps_the_version(space: Space) -> None:
    made = space.post("configmaps", config_map("a", {"k": "v"})).ok()
    assert space.put("configmaps/a", made).ok() == made


def test_an_update_of_a_missing_object_is_not_found(space: Space) -> None:
    assert space.put("configmaps/none", config_map("none")).failure() == not_found("configmaps", "none")


def test_a_lease_is_created_by_its_first_update(space: Space) -> None:
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a"}, "spec": {}}
    assert space.put("leases/a", body, group="coordination.k8s.io/v1").status == 201


def test_an_update_with_another_name_is_refused(space: Space) -> None:
    space.post("configmaps", config_map("a")).ok()
    refused = space.put("configmaps/a", config_map("b")).failure()
    message = "the name of the object (b) does not match the name on the URL (a)"
    assert refused == failure(400, "BadRequest", message)


def test_an_update_with_another_namespace_is_refused(space: Space) -> None:
    space.post("configmaps", config_map("a")).ok()
    refused = space.put("configmaps/a", config_map("a", namespace="elsewhere")).failure()
    message = "the namespace of the provided object does not match the namespace sent on the request"
    assert refused == failure(400, "BadRequest", message)


def test_an_update_without_a_name_in_its_body_is_refused(space: Space) -> None:
    space.post("configmaps", config_map("a")).ok()
    refused = space.put("configmaps/a", {"apiVersion": "v1", "kind": "ConfigMap"}).failure()
    message = "the name of the object (a based on URL) was undeterminable: name must be provided"
    assert refused == failure(400, "BadRequest", message)


def test_an_update_of_another_object_of_that_name_is_a_conflict(space: Space) -> None:
    made = space.post("configmaps", config_map("a")).ok()
    refused = space.put("configmaps/a", config_map("a", uid="3e9b5a8e-0000-4000-8000-000000000000")).failure()
    why = (
        "Precondition failed: UID in precondition: 3e9b5a8e-0000-4000-8000-000000000000, "
        f"UID in object meta: {made['metadata']['uid']}"
    )
    assert without_storage(refused) == conflict("configmaps", "a", why)


def test_the_time_of_creation_cannot_be_changed(space: Space) -> None:
    made = space.post("configmaps", config_map("a")).ok()
    changed = space.put("configmaps/a", config_map("a", {"k": "v"}, creationTimestamp="2001-01-01T00:00:00Z")).ok()
    assert changed["metadata"]["creationTimestamp"] == made["metadata"]["creationTimestamp"]


def test_a_change_of_spec_raises_the_generation_and_one_of_metadata_does_not(space: Space) -> None:
    made = space.post("pods", pod("a")).ok()
    labelled = space.put("pods/a", made | {"metadata": made["metadata"] | {"labels": {"x": "y"}}}).ok()
    changed = space.put("pods/a", labelled | {"spec": labelled["spec"] | {"activeDeadlineSeconds": 9}}).ok()
    assert [each["metadata"]["generation"] for each in (made, labelled, changed)] == [1, 1, 2]


def test_an_ordinary_update_leaves_status_alone(space: Space) -> None:
    made = space.post("pods", pod("a")).ok()
    changed = space.put("pods/a", made | {"status": {"phase": "Running"}}).ok()
    assert changed["status"] == made["status"]


def test_a_status_update_leaves_spec_and_generation_alone(space: Space) -> None:
    made = space.post("pods", pod("a")).ok()
    body = made | {
        "spec": made["spec"] | {"activeDeadlineSeconds": 9},
        "status": {"phase": "Running", "message": "here"},
    }
    changed = space.put("pods/a/status", body).ok()
    assert changed["spec"] == made["spec"]
    assert (changed["status"]["phase"], changed["status"]["message"]) == ("Running", "here")
    assert changed["metadata"]["generation"] == 1


def test_a_status_update_of_an_older_version_is_a_conflict(space: Space) -> None:
    made = space.post("pods", pod("a")).ok()
    space.put("pods/a/status", made | {"status": {"phase": "Running"}}).ok()
    refused = space.put("pods/a/status", made | {"status": {"phase": "Failed"}}).failure()
    assert refused == conflict("pods", "a", STALE)


def test_most_of_a_pod_spec_cannot_be_changed(space: Space) -> None:
    made = space.post("pods", pod("a")).ok()
    refused = space.put("pods/a", made | {"spec": made["spec"] | {"hostname": "other"}}).failure()
    message = (
        "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
        "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing "
        "tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
    )
    (found,) = refused["details"]["causes"]
    assert (refused["code"], found["field"], found["reason"]) == (422, "spec", "FieldValueForbidden")
    assert found["message"].startswith(message)  # what follows shows the difference, for a person


def test_the_image_of_a_container_can_be_changed(space: Space) -> None:
    made = space.post("pods", pod("a")).ok()
    containers = [made["spec"]["containers"][0] | {"image": "tool:2"}]
    changed = space.put("pods/a", made | {"spec": made["spec"] | {"containers": containers}}).ok()
    assert changed["spec"]["containers"][0]["image"] == "tool:2"


def test_the_address_of_a_service_cannot_be_changed(space: Space) -> None:
    made = space.post("services", service("a")).ok()
    refused = space.put("services/a", made | {"spec": made["spec"] | {"clusterIP": "10.96.0.77"}}).failure()
    fields = {each["field"] for each in refused["details"]["causes"]}
    assert (refused["code"], refused["reason"]) == (422, "Invalid")
    assert "spec.clusterIPs[0]" in fields


def immutable(space: Space, name: str) -> Obj:
    return space.post("configmaps", config_map(name, {"k": "v"}) | {"immutable": True}).ok()


def test_an_immutable_config_map_keeps_its_data(space: Space) -> None:
    made = immutable(space, "a")
    refused = space.put("configmaps/a", made | {"data": {"k": "other"}}).failure()
    message = "Forbidden: field is immutable when `immutable` is set"
    assert refused == invalid("ConfigMap", "a", cause("data", message, "FieldValueForbidden"))


def test_an_immutable_config_map_stays_immutable(space: Space) -> None:
    made = immutable(space, "a")
    refused = space.put("configmaps/a", made | {"immutable": False}).failure()
    message = "Forbidden: field is immutable when `immutable` is set"
    assert refused == invalid("ConfigMap", "a", cause("immutable", message, "FieldValueForbidden"))


def test_the_labels_of_an_immutable_config_map_can_be_changed(space: Space) -> None:
    made = immutable(space, "a")
    changed = space.put("configmaps/a", made | {"metadata": made["metadata"] | {"labels": {"x": "y"}}}).ok()
    assert changed["metadata"]["labels"] == {"x": "y"}
