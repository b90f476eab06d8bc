"""Owners and dependents: what goes with an owner, in which order, and what stays."""

from __future__ import annotations

from typing import Any

from kit.api_objects import config_map, owned_by, seen
from kit.raw_api import Obj, Space


def family(space: Space, **flags: Any) -> tuple[Obj, Obj]:
    owner = space.post("configmaps", config_map("owner")).ok()
    child = space.post("configmaps", config_map("child", ownerReferences=[owned_by(owner, **flags)])).ok()
    return owner, child


def message(space: Space, since: Obj, kind: str, name: str) -> list[Obj]:
    """The events after `since`, up to the one of that kind about that object."""
    with space.watch("configmaps", resourceVersion=since["metadata"]["resourceVersion"]) as watch:
        return watch.until(lambda event: seen([event]) == [(kind, name)])


def test_in_the_background_the_owner_goes_first(space: Space) -> None:
    _, child = family(space, block=True)
    answer = space.delete("configmaps/owner", {"propagationPolicy": "Background"}).ok()
    assert answer["status"] == "Success"
    assert seen(message(space, child, "DELETED", "child")) == [("DELETED", "owner"), ("DELETED", "child")]


def test_without_a_policy_dependents_go_too(space: Space) -> None:
    _, child = family(space)
    space.delete("configmaps/owner").ok()
    assert seen(message(space, child, "DELETED", "child")) == [("DELETED", "owner"), ("DELETED", "child")]


def test_in_the_foreground_the_owner_waits_for_dependents_that_block(space: Space) -> None:
    _, child = family(space, block=True)
    kept = space.delete("configmaps/owner", {"propagationPolicy": "Foreground"}).ok()
    assert kept["metadata"]["finalizers"] == ["foregroundDeletion"]
    events = message(space, child, "DELETED", "owner")
    gone = [each for each in seen(events) if each[0] == "DELETED"]
    assert gone == [("DELETED", "child"), ("DELETED", "owner")]


def test_in_the_foreground_the_owner_stays_while_a_blocking_dependent_is_held(space: Space) -> None:
    owner = space.post("configmaps", config_map("owner")).ok()
    body = config_map("child", ownerReferences=[owned_by(owner, block=True)], finalizers=["example.com/hold"])
    child = space.post("configmaps", body).ok()
    space.delete("configmaps/owner", {"propagationPolicy": "Foreground"}).ok()
    held = message(space, child, "MODIFIED", "child")[-1]["object"]
    assert "deletionTimestamp" in held["metadata"]
    assert space.get("configmaps/owner").status == 200
    space.patch("configmaps/child", {"metadata": {"finalizers": None}}).ok()
    assert seen(message(space, held, "DELETED", "owner"))[-2:] == [("DELETED", "child"), ("DELETED", "owner")]


def test_in_the_foreground_a_dependent_that_does_not_block_is_not_waited_for(space: Space) -> None:
    owner = space.post("configmaps", config_map("owner")).ok()
    body = config_map("child", ownerReferences=[owned_by(owner)], finalizers=["example.com/hold"])
    child = space.post("configmaps", body).ok()
    space.delete("configmaps/owner", {"propagationPolicy": "Foreground"}).ok()
    message(space, child, "DELETED", "owner")
    assert space.get("configmaps/child").status == 200


def test_orphaned_dependents_stay_without_their_owner(space: Space) -> None:
    _, child = family(space, block=True)
    kept = space.delete("configmaps/owner", {"propagationPolicy": "Orphan"}).ok()
    assert kept["metadata"]["finalizers"] == ["orphan"]
    message(space, child, "DELETED", "owner")
    assert "ownerReferences" not in space.get("configmaps/child").ok()["metadata"]


def test_orphan_dependents_is_still_supported(space: Space) -> None:
    _, child = family(space)
    space.delete("configmaps/owner", {"orphanDependents": True}).ok()
    message(space, child, "DELETED", "owner")
    assert "ownerReferences" not in space.get("configmaps/child").ok()["metadata"]


def test_grandchildren_go_too(space: Space) -> None:
    _, child = family(space)
    last = space.post("configmaps", config_map("grandchild", ownerReferences=[owned_by(child)])).ok()
    space.delete("configmaps/owner").ok()
    message(space, last, "DELETED", "grandchild")
    assert [space.get(f"configmaps/{name}").status for name in ("owner", "child", "grandchild")] == [404, 404, 404]


def test_a_dependent_of_two_owners_stays_with_the_other(space: Space) -> None:
    first = space.post("configmaps", config_map("first")).ok()
    second = space.post("configmaps", config_map("second")).ok()
    body = config_map("child", ownerReferences=[owned_by(first), owned_by(second)])
    child = space.post("configmaps", body).ok()
    space.delete("configmaps/first").ok()
    changed = message(space, child, "MODIFIED", "child")[-1]["object"]
    assert changed["metadata"]["ownerReferences"] == [owned_by(second)]


def test_a_dependent_of_an_owner_that_never_was_goes(space: Space) -> None:
    absent_owner = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "none",
        "uid": "3e9b5a8e-0000-4000-8000-000000000000",
    }
    space.post("configmaps", config_map("child", ownerReferences=[absent_owner])).ok()
    space.wait_gone("configmaps/child")


def test_an_owner_of_the_same_name_but_another_uid_is_no_owner(space: Space) -> None:
    owner = space.post("configmaps", config_map("owner")).ok()
    wrong = owned_by(owner) | {"uid": "3e9b5a8e-0000-4000-8000-000000000000"}
    space.post("configmaps", config_map("child", ownerReferences=[wrong])).ok()
    space.wait_gone("configmaps/child")
    assert space.get("configmaps/owner").status == 200


def test_dependents_may_be_of_another_kind(space: Space) -> None:
    owner = space.post("configmaps", config_map("owner")).ok()
    body = {"metadata": {"name": "child", "ownerReferences": [owned_by(owner, controller=True)]}}
    space.post("secrets", body).ok()
    space.delete("configmaps/owner").ok()
    space.wait_gone("secrets/child")
