"""Deleting: what is answered, preconditions, finalizers, grace, and whole collections."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from kit.api_objects import cause, config_map, failure, invalid, names, not_found, pod, service, settled, told_once
from kit.raw_api import Api, Obj, Space


def test_a_deleted_object_is_answered_by_its_name_and_uid(space: Space) -> None:
    made = space.post("configmaps", config_map("a")).ok()
    answer = space.delete("configmaps/a")
    details = {"name": "a", "kind": "configmaps", "uid": made["metadata"]["uid"]}
    assert (answer.status, answer.json) == (
        200,
        {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details},
    )
    assert space.get("configmaps/a").failure() == not_found("configmaps", "a")


def test_deleting_what_is_not_there_is_not_found(space: Space) -> None:
    assert space.delete("configmaps/none").failure() == not_found("configmaps", "none")


def test_a_finalizer_keeps_a_deleted_object(space: Space) -> None:
    made = space.post("configmaps", config_map("a", {"x": "1"}, finalizers=["example.com/f"])).ok()
    answer = space.delete("configmaps/a")
    kept = answer.json["metadata"]
    assert answer.status == 200
    assert (kept["deletionGracePeriodSeconds"], kept["finalizers"]) == (0, ["example.com/f"])
    assert kept["deletionTimestamp"] >= kept["creationTimestamp"]
    assert int(kept["resourceVersion"]) > int(made["metadata"]["resourceVersion"])
    assert space.get("configmaps/a").ok() == answer.json


def test_deleting_again_changes_nothing(space: Space) -> None:
    space.post("configmaps", config_map("a", finalizers=["example.com/f"])).ok()
    first = space.delete("configmaps/a").ok()
    assert space.delete("configmaps/a").ok() == first


def test_the_last_finalizer_taken_away_lets_the_object_go(space: Space) -> None:
    space.post("configmaps", config_map("a", finalizers=["example.com/f", "example.com/g"])).ok()
    space.delete("configmaps/a").ok()
    space.patch("configmaps/a", {"metadata": {"finalizers": ["example.com/g"]}}).ok()
    last = space.patch("configmaps/a", {"metadata": {"finalizers": []}}).ok()
    assert "finalizers" not in last["metadata"]
    assert space.get("configmaps/a").status == 404


def test_the_name_of_an_object_under_deletion_is_taken(space: Space) -> None:
    space.post("configmaps", config_map("a", finalizers=["example.com/f"])).ok()
    space.delete("configmaps/a").ok()
    refused = space.post("configmaps", config_map("a")).failure()
    message = 'object is being deleted: configmaps "a" already exists'
    assert refused == failure(409, "AlreadyExists", message, about={"name": "a", "kind": "configmaps"})


def test_no_finalizer_can_be_added_under_deletion(space: Space) -> None:
    space.post("configmaps", config_map("a", finalizers=["example.com/f"])).ok()
    space.delete("configmaps/a").ok()
    patch = {"metadata": {"finalizers": ["example.com/f", "example.com/g"]}}
    refused = space.patch("configmaps/a", patch).failure()
    message = (
        "Forbidden: no new finalizers can be added if the object is being deleted, "
        'found new finalizers []string{"example.com/g"}'
    )
    wrong = cause("metadata.finalizers", message, "FieldValueForbidden")
    assert told_once(refused) == invalid("ConfigMap", "a", wrong)


def test_a_deletion_cannot_be_taken_back(space: Space) -> None:
    space.post("configmaps", config_map("a", finalizers=["example.com/f"])).ok()
    deleted = space.delete("configmaps/a").ok()
    assert space.patch("configmaps/a", {"metadata": {"deletionTimestamp": None}}).ok() == deleted


def test_an_object_under_deletion_can_still_be_changed(space: Space) -> None:
    space.post("configmaps", config_map("a", finalizers=["example.com/f"])).ok()
    space.delete("configmaps/a").ok()
    assert space.patch("configmaps/a", {"data": {"x": "1"}}).ok()["data"] == {"x": "1"}


def test_a_precondition_on_the_uid_must_hold(space: Space) -> None:
    uid = space.post("configmaps", config_map("a")).ok()["metadata"]["uid"]
    refused = space.delete("configmaps/a", {"preconditions": {"uid": "other"}}).failure()
    message = (
        'Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition (other) does not match the UID '
        f"in record ({uid}). The object might have been deleted and then recreated"
    )
    assert refused == failure(409, "Conflict", message, about={"name": "a", "kind": "ConfigMap"})
    assert space.get("configmaps/a").status == 200


def test_a_precondition_on_the_version_must_hold(space: Space) -> None:
    version = space.post("configmaps", config_map("a")).ok()["metadata"]["resourceVersion"]
    refused = space.delete("configmaps/a", {"preconditions": {"resourceVersion": "1"}}).failure()
    message = (
        'Operation cannot be fulfilled on ConfigMap "a": the ResourceVersion in the precondition (1) does not match '
        f"the ResourceVersion in record ({version}). The object might have been modified"
    )
    assert refused == failure(409, "Conflict", message, about={"name": "a", "kind": "ConfigMap"})


def test_preconditions_that_hold_let_the_deletion_pass(space: Space) -> None:
    made = space.post("configmaps", config_map("a")).ok()["metadata"]
    preconditions = {"uid": made["uid"], "resourceVersion": made["resourceVersion"]}
    assert space.delete("configmaps/a", {"preconditions": preconditions}).status == 200


def test_an_unscheduled_pod_is_deleted_at_once(space: Space) -> None:
    space.post("pods", pod("a")).ok()
    gone = space.delete("pods/a").ok()
    assert (gone["kind"], gone["metadata"]["deletionGracePeriodSeconds"]) == ("Pod", 0)
    assert space.get("pods/a").status == 404


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def test_a_pod_on_a_node_gets_its_time_to_end(space: Space) -> None:
    made = space.post("pods", pod("a", nodeName="n1", terminationGracePeriodSeconds=45)).ok()
    kept = space.delete("pods/a").ok()["metadata"]
    assert kept["deletionGracePeriodSeconds"] == 45
    until = moment(kept["deletionTimestamp"]) - moment(made["metadata"]["creationTimestamp"])
    assert timedelta(seconds=45) <= until < timedelta(seconds=100)
    assert (made["metadata"]["generation"], kept["generation"]) == (1, 2)
    assert space.get("pods/a").ok()["metadata"] == kept


def test_the_time_to_end_can_be_chosen_and_shortened_but_not_extended(space: Space) -> None:
    space.post("pods", pod("a", nodeName="n1")).ok()
    grace = []
    for seconds in (20, 5, 50):
        kept = space.delete("pods/a", {"gracePeriodSeconds": seconds}).ok()["metadata"]
        grace.append(kept["deletionGracePeriodSeconds"])
    assert grace == [20, 5, 5]


def test_the_node_ends_a_deletion_with_no_grace(space: Space) -> None:
    space.post("pods", pod("a", nodeName="n1")).ok()
    space.delete("pods/a").ok()
    space.delete("pods/a", {"gracePeriodSeconds": 0}).ok()
    assert space.get("pods/a").status == 404


def test_a_finished_pod_goes_at_once(space: Space) -> None:
    space.post("pods", pod("a", nodeName="n1")).ok()
    space.patch("pods/a/status", {"status": {"phase": "Succeeded"}}).ok()
    space.delete("pods/a").ok()
    assert space.get("pods/a").status == 404


def test_a_finalizer_keeps_a_pod_after_its_grace(space: Space) -> None:
    space.post("pods", pod("a", {"finalizers": ["example.com/f"]}, nodeName="n1")).ok()
    space.delete("pods/a", {"gracePeriodSeconds": 0}).ok()
    assert space.get("pods/a").ok()["metadata"]["deletionGracePeriodSeconds"] == 0
    space.patch("pods/a", {"metadata": {"finalizers": None}}).ok()
    assert space.get("pods/a").status == 404


BAD_OPTIONS: dict[str, tuple[Any, dict[str, Any], str, str, str]] = {
    "policy in the body": (
        {"propagationPolicy": "Bogus"},
        {},
        "propagationPolicy",
        'Unsupported value: "Bogus": supported values: "Foreground", "Background", "Orphan", "nil"',
        "FieldValueNotSupported",
    ),
    "policy in the path": (
        None,
        {"propagationPolicy": "Bogus"},
        "propagationPolicy",
        'Unsupported value: "Bogus": supported values: "Foreground", "Background", "Orphan", "nil"',
        "FieldValueNotSupported",
    ),
    "two policies": (
        {"propagationPolicy": "Orphan", "orphanDependents": True},
        {},
        "propagationPolicy",
        'Invalid value: "Orphan": orphanDependents and deletionPropagation cannot be both set',
        "FieldValueInvalid",
    ),
    "dry run": (
        {"dryRun": ["Bogus"]},
        {},
        "dryRun",
        'Unsupported value: ["Bogus"]: supported values: "All"',
        "FieldValueNotSupported",
    ),
}


@pytest.mark.parametrize(("body", "query", "field", "message", "reason"), BAD_OPTIONS.values(), ids=BAD_OPTIONS.keys())
def test_bad_options_delete_nothing(
    space: Space, body: Any, query: dict[str, Any], field: str, message: str, reason: str
) -> None:
    space.post("configmaps", config_map("a")).ok()
    refused = space.delete("configmaps/a", body, **query).failure()
    assert refused == invalid("DeleteOptions", "", cause(field, message, reason), group="meta.k8s.io")
    assert space.get("configmaps/a").status == 200


def test_options_that_do_not_parse_delete_nothing(space: Space) -> None:
    space.post("configmaps", config_map("a")).ok()
    refused = space.delete("configmaps/a", b"{").failure()
    embedded = (
        "invalid JSON: line 1 column 2: expecting property name enclosed in double quotes, "
        "found the end of the document"
    )
    assert refused == failure(400, "BadRequest", space.own_words(refused, embedded=embedded))
    assert space.get("configmaps/a").status == 200


def test_options_of_another_kind_delete_nothing(space: Space) -> None:
    space.post("configmaps", config_map("a")).ok()
    refused = space.delete("configmaps/a", {"kind": "Pod", "apiVersion": "v1"}).failure()
    assert (refused["code"], refused["reason"]) == (400, "BadRequest")
    assert space.get("configmaps/a").status == 200


def test_a_grace_that_is_no_number_is_refused(space: Space) -> None:
    space.post("configmaps", config_map("a")).ok()
    refused = space.delete("configmaps/a", gracePeriodSeconds="x").failure()
    embedded = 'gracePeriodSeconds: Invalid value: "x": must be an integer'
    assert refused == failure(400, "BadRequest", space.own_words(refused, embedded=embedded))
    assert '"x"' in refused["message"]


def test_a_collection_is_deleted_by_selector(space: Space) -> None:
    made = [space.post("configmaps", config_map(name, labels={"x": name})).ok() for name in "abc"]
    answer = space.delete("configmaps", labelSelector="x in (a,b)").ok()
    assert answer["kind"] == "ConfigMapList"
    assert [settled(item) for item in answer["items"]] == [{"metadata": settled(each)["metadata"]} for each in made[:2]]
    assert names(space.get("configmaps").ok()) == ["c"]


def test_a_collection_is_deleted_as_a_whole(space: Space) -> None:
    for name in "abc":
        space.post("configmaps", config_map(name)).ok()
    space.delete("configmaps").ok()
    assert names(space.get("configmaps").ok()) == []


def test_a_collection_with_nothing_selected_is_left_alone(space: Space) -> None:
    space.post("configmaps", config_map("a")).ok()
    assert space.delete("configmaps", fieldSelector="metadata.name=none").ok()["items"] == []
    assert names(space.get("configmaps").ok()) == ["a"]


def test_a_bad_selector_deletes_nothing(space: Space) -> None:
    space.post("configmaps", config_map("a")).ok()
    refused = space.delete("configmaps", labelSelector="x in").failure()
    assert refused == failure(400, "BadRequest", "unable to parse requirement: found '' expected: '('")
    assert names(space.get("configmaps").ok()) == ["a"]


def test_all_namespaces_cannot_be_emptied_at_once(server: Api) -> None:
    refused = server.delete("/api/v1/configmaps").failure()
    message = "the server does not allow this method on the requested resource"
    assert refused == failure(405, "MethodNotAllowed", message, about={})


LAST_WORDS: dict[str, tuple[Obj, str]] = {
    "pods": (pod("a"), "Pod"),
    "services": (service("a"), "Service"),
    "serviceaccounts": ({"metadata": {"name": "a"}}, "ServiceAccount"),
    "secrets": ({"metadata": {"name": "a"}}, "Status"),
    "endpoints": ({"metadata": {"name": "a"}}, "Status"),
}


@pytest.mark.parametrize("plural", LAST_WORDS)
def test_some_kinds_are_shown_a_last_time(space: Space, plural: str) -> None:
    body, kind = LAST_WORDS[plural]
    space.post(plural, body).ok()
    assert space.delete(f"{plural}/a").ok()["kind"] == kind
    assert space.get(f"{plural}/a").status == 404
