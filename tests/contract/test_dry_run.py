"""Dry run: every verb answers as if it had happened, and nothing has."""

from __future__ import annotations

from typing import Any

import pytest

from kit.api_objects import cause, config_map, invalid, names, pod, service, settled
from kit.raw_api import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Space


def test_a_create_answers_whole_and_keeps_nothing(space: Space) -> None:
    answer = space.post("configmaps", config_map("a", {"x": "1"}), dryRun="All")
    made = answer.json
    assert (answer.status, made["data"], "resourceVersion" in made["metadata"]) == (201, {"x": "1"}, False)
    assert {"uid", "creationTimestamp"} <= set(made["metadata"])
    assert names(space.get("configmaps").ok()) == []


def test_a_create_is_checked_in_full(space: Space) -> None:
    assert space.post("configmaps", config_map("A"), dryRun="All").status == 422
    space.post("configmaps", config_map("a")).ok()
    assert space.post("configmaps", config_map("a"), dryRun="All").status == 409


def test_a_create_shows_defaults(space: Space) -> None:
    made = space.post("pods", pod("a"), dryRun="All").ok()
    assert made["spec"]["restartPolicy"] == "Always"


def test_an_update_keeps_nothing(space: Space) -> None:
    made = space.post("configmaps", config_map("a", {"x": "1"})).ok()
    shown = space.put("configmaps/a", made | {"data": {"x": "2"}}, dryRun="All").ok()
    assert shown["data"] == {"x": "2"}
    assert space.get("configmaps/a").ok() == made


PATCHES: dict[str, tuple[Any, str]] = {
    "json": ([{"op": "replace", "path": "/data/x", "value": "2"}], JSON_PATCH),
    "merge": ({"data": {"x": "2"}}, MERGE_PATCH),
    "strategic": ({"data": {"x": "2"}}, STRATEGIC_PATCH),
}


@pytest.mark.parametrize(("patch", "kind"), PATCHES.values(), ids=PATCHES.keys())
def test_a_patch_keeps_nothing(space: Space, patch: Any, kind: str) -> None:
    made = space.post("configmaps", config_map("a", {"x": "1"})).ok()
    assert space.patch("configmaps/a", patch, kind, dryRun="All").ok()["data"] == {"x": "2"}
    assert space.get("configmaps/a").ok() == made


def test_an_apply_keeps_nothing(space: Space) -> None:
    answer = space.apply("configmaps/a", config_map("a", {"x": "1"}), dryRun="All")
    assert (answer.status, answer.json["data"]) == (201, {"x": "1"})
    assert space.get("configmaps/a").status == 404


def test_a_status_patch_keeps_nothing(space: Space) -> None:
    made = space.post("pods", pod("a")).ok()
    shown = space.patch("pods/a/status", {"status": {"phase": "Running"}}, dryRun="All").ok()
    assert shown["status"]["phase"] == "Running"
    assert space.get("pods/a").ok() == made


@pytest.mark.parametrize("where", ["body", "path"])
def test_a_delete_keeps_the_object(space: Space, where: str) -> None:
    made = space.post("configmaps", config_map("a")).ok()
    if where == "body":
        answer = space.delete("configmaps/a", {"dryRun": ["All"]})
    else:
        answer = space.delete("configmaps/a", dryRun="All")
    assert (answer.status, answer.json["status"]) == (200, "Success")
    assert space.get("configmaps/a").ok() == made


def test_deleting_a_collection_keeps_it(space: Space) -> None:
    space.post("configmaps", config_map("a")).ok()
    assert names(space.delete("configmaps", dryRun="All").ok()) == ["a"]
    assert names(space.get("configmaps").ok()) == ["a"]


def test_a_service_gets_no_address(space: Space) -> None:
    shown = space.post("services", service("a"), dryRun="All").ok()
    assert shown["spec"]["type"] == "ClusterIP"
    assert settled(space.post("services", service("a")).ok())["spec"]["clusterIP"]


def test_watchers_receive_no_event(space: Space) -> None:
    version = space.get("configmaps").ok()["metadata"]["resourceVersion"]
    space.post("configmaps", config_map("a"), dryRun="All").ok()
    space.post("configmaps", config_map("b")).ok()
    with space.watch("configmaps", resourceVersion=version) as watch:
        (event,) = watch.take(1)
    assert event["object"]["metadata"]["name"] == "b"


def test_another_value_than_all_is_rejected(space: Space) -> None:
    refused = space.post("configmaps", config_map("a"), dryRun="Some").failure()
    message = 'Unsupported value: ["Some"]: supported values: "All"'
    wrong = cause("dryRun", message, "FieldValueNotSupported")
    assert refused == invalid("CreateOptions", "", wrong, group="meta.k8s.io")
    assert names(space.get("configmaps").ok()) == []
