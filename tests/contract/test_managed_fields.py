"""managedFields of ordinary writes: who set what, kept true by the server."""

from __future__ import annotations

import re

import pytest

from kit.api_objects import cause, config_map, invalid, pod
from kit.raw_api import Obj, Space


def owned(obj: Obj) -> dict[str, Obj]:
    return {each["manager"]: each["fieldsV1"] for each in obj["metadata"].get("managedFields", [])}


def test_a_create_owns_every_field_it_set(space: Space) -> None:
    made = space.post("configmaps", config_map("a", {"x": "1"}, labels={"l": "1"}), fieldManager="creator").ok()
    (entry,) = made["metadata"]["managedFields"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", entry.pop("time"))
    assert entry == {
        "manager": "creator",
        "operation": "Update",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {".": {}, "f:x": {}}, "f:metadata": {"f:labels": {".": {}, "f:l": {}}}},
    }


def test_an_object_without_fields_of_its_own_has_no_owner(space: Space) -> None:
    assert "managedFields" not in space.post("configmaps", config_map("a")).ok()["metadata"]


def test_defaults_belong_to_the_creator(space: Space) -> None:
    made = space.post("pods", pod("a"), fieldManager="creator").ok()
    main = {
        ".": {},
        "f:name": {},
        "f:image": {},
        "f:imagePullPolicy": {},
        "f:resources": {},
        "f:terminationMessagePath": {},
        "f:terminationMessagePolicy": {},
    }
    spec = {
        "f:automountServiceAccountToken": {},
        "f:containers": {'k:{"name":"main"}': main},
        "f:dnsPolicy": {},
        "f:enableServiceLinks": {},
        "f:restartPolicy": {},
        "f:schedulerName": {},
        "f:securityContext": {},
        "f:terminationGracePeriodSeconds": {},
    }
    assert owned(made) == {"creator": {"f:spec": spec}}


def test_a_changed_field_goes_to_the_writer_and_leaves_the_others(space: Space) -> None:
    space.post("configmaps", config_map("a", {"x": "1", "y": "1"}), fieldManager="creator").ok()
    changed = space.patch("configmaps/a", {"data": {"x": "2", "z": "1"}}, fieldManager="editor").ok()
    assert owned(changed) == {
        "creator": {"f:data": {".": {}, "f:y": {}}},
        "editor": {"f:data": {"f:x": {}, "f:z": {}}},
    }


def test_a_removed_field_has_no_owner(space: Space) -> None:
    space.post("configmaps", config_map("a", {"x": "1", "y": "1"}), fieldManager="creator").ok()
    changed = space.patch("configmaps/a", {"data": {"x": None}}, fieldManager="editor").ok()
    assert owned(changed) == {"creator": {"f:data": {".": {}, "f:y": {}}}}


def test_a_write_that_changes_nothing_owns_nothing(space: Space) -> None:
    made = space.post("configmaps", config_map("a", {"x": "1"}), fieldManager="creator").ok()
    assert space.patch("configmaps/a", {"data": {"x": "1"}}, fieldManager="editor").ok() == made


def test_status_writes_are_kept_apart(space: Space) -> None:
    space.post("pods", pod("a"), fieldManager="creator").ok()
    patch = {"status": {"phase": "Running"}}
    changed = space.patch("pods/a/status", patch, fieldManager="creator").ok()
    found = {each.get("subresource"): each["fieldsV1"] for each in changed["metadata"]["managedFields"]}
    assert (set(found), found["status"]) == ({None, "status"}, {"f:status": {"f:phase": {}}})


@pytest.mark.parametrize(("agent", "manager"), [("tool/1.2 (x)", "tool"), ("tool", "tool")])
def test_a_writer_without_a_name_is_called_by_its_user_agent(space: Space, agent: str, manager: str) -> None:
    made = space.post("configmaps", config_map("a", {"x": "1"}), headers={"User-Agent": agent}).ok()
    assert list(owned(made)) == [manager]


def test_the_record_can_be_wiped(space: Space) -> None:
    space.post("configmaps", config_map("a", {"x": "1"})).ok()
    wiped = space.patch("configmaps/a", {"metadata": {"managedFields": [{}]}}).ok()
    assert "managedFields" not in wiped["metadata"]


def test_the_name_of_a_manager_is_limited(space: Space) -> None:
    refused = space.post("configmaps", config_map("a"), fieldManager="x" * 129).failure()
    wrong = cause("fieldManager", "Too long: may not be more than 128 bytes", "FieldValueTooLong")
    assert refused == invalid("CreateOptions", "", wrong, group="meta.k8s.io")


def test_a_record_that_was_wiped_is_not_begun_again_by_ordinary_writes(space: Space) -> None:
    space.post("configmaps", config_map("a", {"x": "1"})).ok()
    space.patch("configmaps/a", {"metadata": {"managedFields": [{}]}}).ok()
    changed = space.patch("configmaps/a", {"data": {"x": "2"}}).ok()
    assert "managedFields" not in changed["metadata"]


def test_the_first_apply_after_a_wipe_leaves_the_rest_to_before_first_apply(space: Space) -> None:
    space.post("configmaps", config_map("a", {"x": "1"})).ok()
    space.patch("configmaps/a", {"metadata": {"managedFields": [{}]}}).ok()
    applied = space.apply("configmaps/a", config_map("a", {"y": "1"}), manager="one").ok()
    assert owned(applied) == {
        "before-first-apply": {"f:data": {".": {}, "f:x": {}}},
        "one": {"f:data": {"f:y": {}}},
    }
