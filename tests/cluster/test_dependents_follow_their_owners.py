"""Garbage collection by owner references, in the three modes, also across a restart."""

from __future__ import annotations

import pytest

from kit.cluster_objects import config_map, define, key, machinery, names, obj, owned_by
from shoal.cluster.client import DeleteOptions, DeletionPropagation, PatchType
from shoal.kube import kinds


def owner_with(cluster, *children, name="owner", block=False):
    owner = cluster.create(kinds.CONFIG_MAP, "default", config_map(name)).stored.obj()
    for child in children:
        cluster.create(kinds.SECRET, "default", obj(child, metadata=owned_by(owner, block=block)))
    return owner


def delete(cluster, name, propagation):
    cluster.delete(kinds.CONFIG_MAP, key(name), DeleteOptions(propagation=propagation))
    cluster.settle()


def left(cluster):
    return names(cluster.list(kinds.CONFIG_MAP, "default")) + names(cluster.list(kinds.SECRET, "default"))


@pytest.mark.parametrize("propagation", [None, DeletionPropagation.BACKGROUND, DeletionPropagation.FOREGROUND])
def test_dependents_go_with_their_owner(propagation):
    cluster = machinery()
    owner_with(cluster, "a", "b")
    delete(cluster, "owner", propagation)
    assert left(cluster) == []


def test_orphans_stay_and_lose_their_owner_reference():
    cluster = machinery()
    owner_with(cluster, "a", "b")
    delete(cluster, "owner", DeletionPropagation.ORPHAN)
    assert left(cluster) == ["a", "b"]
    assert all("ownerReferences" not in s.obj()["metadata"] for s in cluster.list(kinds.SECRET, "default").items)


def test_in_the_foreground_the_owner_waits_for_those_that_block_it():
    cluster = machinery()
    owner = owner_with(cluster)
    held = {**owned_by(owner, block=True), "finalizers": ["example.com/x"]}
    cluster.create(kinds.SECRET, "default", obj("slow", metadata=held))
    delete(cluster, "owner", DeletionPropagation.FOREGROUND)
    waiting = cluster.get(kinds.CONFIG_MAP, key("owner"))
    assert (waiting.terminating, waiting.finalizers) == (True, ("foregroundDeletion",))
    cluster.patch(kinds.SECRET, key("slow"), {"metadata": {"finalizers": None}}, PatchType.MERGE)
    cluster.settle()
    assert left(cluster) == []


def test_in_the_foreground_those_that_do_not_block_are_not_waited_for():
    cluster = machinery()
    owner = owner_with(cluster)
    held = {**owned_by(owner), "finalizers": ["example.com/x"]}
    cluster.create(kinds.SECRET, "default", obj("slow", metadata=held))
    delete(cluster, "owner", DeletionPropagation.FOREGROUND)
    assert left(cluster) == ["slow"]


def test_a_dependent_of_two_stays_while_one_lives():
    cluster = machinery()
    first, second = owner_with(cluster, name="one"), owner_with(cluster, name="two")
    both = {"ownerReferences": owned_by(first)["ownerReferences"] + owned_by(second)["ownerReferences"]}
    cluster.create(kinds.SECRET, "default", obj("shared", metadata=both))
    delete(cluster, "one", DeletionPropagation.BACKGROUND)
    kept = cluster.get(kinds.SECRET, key("shared")).obj()["metadata"]["ownerReferences"]
    assert [reference["name"] for reference in kept] == ["two"]
    delete(cluster, "two", DeletionPropagation.BACKGROUND)
    assert left(cluster) == []


def test_grandchildren_go_too():
    cluster = machinery()
    owner = owner_with(cluster)
    child = cluster.create(kinds.CONFIG_MAP, "default", config_map("child", metadata=owned_by(owner))).stored.obj()
    cluster.create(kinds.SECRET, "default", obj("grandchild", metadata=owned_by(child)))
    delete(cluster, "owner", DeletionPropagation.BACKGROUND)
    assert left(cluster) == []


@pytest.mark.parametrize("propagation", list(DeletionPropagation))
def test_a_circle_of_owners_comes_apart(propagation):
    cluster = machinery()
    owner = owner_with(cluster)
    other = config_map("other", metadata=owned_by(owner, block=True))
    second = cluster.create(kinds.CONFIG_MAP, "default", other).stored.obj()
    cluster.patch(kinds.CONFIG_MAP, key("owner"), {"metadata": owned_by(second, block=True)}, PatchType.MERGE)
    cluster.settle()
    delete(cluster, "owner", propagation)
    assert left(cluster) == (["other"] if propagation is DeletionPropagation.ORPHAN else [])


@pytest.mark.parametrize(
    ("change", "stays"),
    [
        ({}, True),
        ({"uid": "00000000-0000-0000-0000-000000000000"}, False),
        ({"name": "nobody"}, False),
        ({"kind": "Unheard", "apiVersion": "example.com/v9"}, True),
    ],
    ids=["a living owner", "another of its name", "nobody of its name", "a kind nobody serves"],
)
def test_a_new_object_is_kept_or_collected_by_its_owner_reference(change, stays):
    cluster = machinery()
    owner = owner_with(cluster)
    references = owned_by(owner)
    references["ownerReferences"][0].update(change)
    cluster.create(kinds.SECRET, "default", obj("child", metadata=references))
    cluster.settle()
    assert left(cluster) == (["owner", "child"] if stays else ["owner"])


def test_an_owner_in_another_namespace_is_no_owner():
    cluster = machinery()
    cluster.create(kinds.NAMESPACE, "", obj("other"))
    owner = owner_with(cluster)
    cluster.create(kinds.SECRET, "other", obj("child", metadata=owned_by(owner)))
    cluster.settle()
    assert names(cluster.list(kinds.SECRET, "other")) == []


def test_custom_resources_own_and_are_owned():
    cluster = machinery()
    widget = define(cluster)
    owner = cluster.create(widget, "default", obj("w", spec={})).stored.obj()
    cluster.create(kinds.SECRET, "default", obj("child", metadata=owned_by(owner)))
    cluster.delete(widget, key("w"))
    cluster.settle()
    assert left(cluster) == []


def test_a_crash_between_owner_and_dependents_is_made_good(tmp_path):
    path = tmp_path / "store.db"
    cluster = machinery(path)
    owner_with(cluster, "a", "b")
    cluster.store.after_commit.clear()  # the process dies before the collector's turn
    cluster.delete(kinds.CONFIG_MAP, key("owner"))
    cluster.close()
    cluster = machinery(path)
    cluster.settle()
    assert left(cluster) == []
    cluster.close()


async def test_in_a_running_loop_everything_follows_by_itself():
    cluster = machinery()
    owner_with(cluster, *(f"s{number}" for number in range(250)))
    watch = cluster.watch(kinds.SECRET, "default")
    cluster.delete(kinds.CONFIG_MAP, key("owner"))
    gone: set[str] = set()
    async for batch in watch:
        gone |= {event.object()["metadata"]["name"] for event in batch if event.type == "DELETED"}
        if len(gone) == 250:
            break
    assert names(cluster.list(kinds.SECRET, "default")) == []
