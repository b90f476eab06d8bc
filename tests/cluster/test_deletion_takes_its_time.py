"""Deleting: at once, with grace, with finalizers, under preconditions."""

from __future__ import annotations

import pytest

from kit.cluster_objects import config_map, key, machinery, names, obj, pod, refusal
from shoal.cluster.client import DeleteOptions, DeletionPropagation, PatchType, Preconditions
from shoal.cluster.types import ListOptions
from shoal.kube import kinds


def test_an_object_without_finalizers_goes_at_once():
    cluster = machinery()
    made = cluster.create(kinds.CONFIG_MAP, "default", config_map("a")).stored
    deleted = cluster.delete(kinds.CONFIG_MAP, key("a"))
    assert (deleted.removed, deleted.stored.uid, names(cluster.list(kinds.CONFIG_MAP, "default"))) == (
        True,
        made.uid,
        [],
    )
    assert refusal(cluster.delete, kinds.CONFIG_MAP, key("a"))[:2] == (404, "NotFound")


def test_a_finalizer_holds_an_object_until_it_is_taken_off():
    cluster = machinery()
    cluster.create(kinds.CONFIG_MAP, "default", config_map("a", metadata={"finalizers": ["example.com/x"]}))
    deleted = cluster.delete(kinds.CONFIG_MAP, key("a"))
    meta = deleted.stored.obj()["metadata"]
    assert (deleted.removed, meta["deletionTimestamp"], meta["deletionGracePeriodSeconds"]) == (
        False, "2030-01-01T00:00:00Z", 0,
    )  # fmt: skip
    again = cluster.delete(kinds.CONFIG_MAP, key("a"))
    assert (again.removed, again.stored.revision) == (False, deleted.stored.revision)
    cluster.patch(kinds.CONFIG_MAP, key("a"), {"metadata": {"finalizers": None}}, PatchType.MERGE)
    assert refusal(cluster.get, kinds.CONFIG_MAP, key("a"))[0] == 404


def test_no_finalizer_is_added_to_what_is_going():
    cluster = machinery()
    cluster.create(kinds.CONFIG_MAP, "default", config_map("a", metadata={"finalizers": ["example.com/x"]}))
    cluster.delete(kinds.CONFIG_MAP, key("a"))
    change = {"metadata": {"finalizers": ["example.com/x", "example.com/y"]}}
    code, reason, message = refusal(cluster.patch, kinds.CONFIG_MAP, key("a"), change, PatchType.MERGE)
    assert (code, reason) == (422, "Invalid")
    assert "no new finalizers can be added if the object is being deleted" in message


def test_a_going_object_cannot_come_back():
    cluster = machinery()
    cluster.create(kinds.CONFIG_MAP, "default", config_map("a", metadata={"finalizers": ["example.com/x"]}))
    cluster.delete(kinds.CONFIG_MAP, key("a"))
    cluster.patch(kinds.CONFIG_MAP, key("a"), {"metadata": {"deletionTimestamp": None}}, PatchType.MERGE)
    assert cluster.get(kinds.CONFIG_MAP, key("a")).terminating
    assert refusal(cluster.create, kinds.CONFIG_MAP, "default", config_map("a"))[2] == (
        'object is being deleted: configmaps "a" already exists'
    )


@pytest.mark.parametrize(
    ("made", "asked", "gone"),
    [
        (pod("p"), None, True),
        (pod("p", node="n1"), 0, True),
        (pod("p", node="n1"), None, False),
        (pod("p", node="n1", grace=0), None, True),
    ],
    ids=["not placed", "asked for now", "its own grace", "no grace of its own"],
)
def test_only_a_placed_pod_gets_grace(made, asked, gone):
    cluster = machinery()
    cluster.create(kinds.POD, "default", made)
    assert cluster.delete(kinds.POD, key("p"), DeleteOptions(grace_seconds=asked)).removed is gone


def test_a_pod_that_has_ended_needs_no_grace():
    cluster = machinery()
    cluster.create(kinds.POD, "default", pod("p", node="n1"))
    cluster.patch(kinds.POD, key("p"), {"status": {"phase": "Succeeded"}}, PatchType.MERGE, subresource="status")
    assert cluster.delete(kinds.POD, key("p")).removed


def test_grace_can_be_shortened_but_not_lengthened():
    cluster = machinery()
    cluster.create(kinds.POD, "default", pod("p", node="n1", grace=30))

    def grace(asked: int | None) -> tuple[str, int]:
        cluster.delete(kinds.POD, key("p"), DeleteOptions(grace_seconds=asked))
        meta = cluster.get(kinds.POD, key("p")).obj()["metadata"]
        return meta["deletionTimestamp"], meta["deletionGracePeriodSeconds"]

    assert grace(None) == ("2030-01-01T00:00:30Z", 30)
    assert grace(60) == ("2030-01-01T00:00:30Z", 30)
    assert grace(10) == ("2030-01-01T00:00:10Z", 10)
    cluster.clock.advance(20)
    assert grace(5) == ("2030-01-01T00:00:20Z", 1)
    assert cluster.delete(kinds.POD, key("p"), DeleteOptions(grace_seconds=0)).removed


def test_a_pod_with_grace_and_a_finalizer_waits_for_both():
    cluster = machinery()
    cluster.create(kinds.POD, "default", pod("p", node="n1", metadata={"finalizers": ["example.com/x"]}))
    cluster.delete(kinds.POD, key("p"))
    cluster.patch(kinds.POD, key("p"), {"metadata": {"finalizers": None}}, PatchType.MERGE)
    assert cluster.get(kinds.POD, key("p")).terminating
    assert cluster.delete(kinds.POD, key("p"), DeleteOptions(grace_seconds=0)).removed


def test_the_deletion_timestamp_increments_the_generation():
    cluster = machinery()
    cluster.create(kinds.POD, "default", pod("p", node="n1"))
    assert cluster.delete(kinds.POD, key("p")).stored.obj()["metadata"]["generation"] == 2


def test_preconditions_name_what_is_meant():
    cluster = machinery()
    made = cluster.create(kinds.POD, "default", pod("p")).stored
    wrong_uid = DeleteOptions(preconditions=Preconditions(uid="other"))
    wrong_version = DeleteOptions(preconditions=Preconditions(resource_version="1"))
    assert [refusal(cluster.delete, kinds.POD, key("p"), options) for options in (wrong_uid, wrong_version)] == [
        (
            409, "Conflict",
            'Operation cannot be fulfilled on Pod "p": the UID in the precondition (other) does not match the UID in '
            f"record ({made.uid}). The object might have been deleted and then recreated",
        ),
        (
            409, "Conflict",
            'Operation cannot be fulfilled on Pod "p": the ResourceVersion in the precondition (1) does not match the '
            f"ResourceVersion in record ({made.revision}). The object might have been modified",
        ),
    ]  # fmt: skip
    right = Preconditions(made.uid, str(made.revision))
    assert cluster.delete(kinds.POD, key("p"), DeleteOptions(preconditions=right)).removed


def test_a_dry_deletion_leaves_everything():
    cluster = machinery()
    cluster.create(kinds.POD, "default", pod("p", node="n1"))
    deleted = cluster.delete(kinds.POD, key("p"), DeleteOptions(dry_run=True))
    assert deleted.stored.obj()["metadata"]["deletionGracePeriodSeconds"] == 30
    assert not cluster.get(kinds.POD, key("p")).terminating


def test_a_collection_goes_by_selection():
    cluster = machinery()
    for name in ("a", "b", "c"):
        cluster.create(kinds.CONFIG_MAP, "default", config_map(name, labels={"go": "no" if name == "b" else "yes"}))
    went = cluster.delete_collection(kinds.CONFIG_MAP, "default", ListOptions(labels="go=yes"))
    assert (names(went), names(cluster.list(kinds.CONFIG_MAP, "default"))) == (["a", "c"], ["b"])


def test_an_evicted_pod_has_a_condition_while_it_terminates():
    cluster = machinery()
    cluster.create(kinds.POD, "default", pod("p", node="n1"))
    deleted = cluster.evict(key("p"), {"metadata": {"name": "p"}, "deleteOptions": {"gracePeriodSeconds": 5}})
    left = deleted.stored.obj()
    assert (deleted.removed, left["metadata"]["deletionGracePeriodSeconds"]) == (False, 5)
    assert [(c["type"], c["status"]) for c in left["status"]["conditions"]] == [("DisruptionTarget", "True")]


UNMET = {"another version": {"resourceVersion": "1"}, "another pod": {"uid": "nobody"}}


@pytest.mark.parametrize("wanted", UNMET.values(), ids=UNMET)
def test_an_eviction_that_is_refused_costs_a_budget_nothing(wanted):
    cluster = machinery()
    cluster.create(kinds.POD, "default", pod("p", node="n1"))
    cluster.patch(kinds.POD, key("p"), {"status": {"phase": "Running"}}, PatchType.MERGE, subresource="status")
    budget = obj("b", spec={"minAvailable": 0, "selector": {}})
    cluster.create(kinds.POD_DISRUPTION_BUDGET, "default", budget)
    counted = {"status": {"disruptionsAllowed": 1, "observedGeneration": 1}}
    cluster.patch(kinds.POD_DISRUPTION_BUDGET, key("b"), counted, PatchType.MERGE, subresource="status")
    before = cluster.get(kinds.POD_DISRUPTION_BUDGET, key("b")).obj()
    eviction = {"metadata": {"name": "p"}, "deleteOptions": {"preconditions": wanted}}
    assert refusal(cluster.evict, key("p"), eviction)[0] == 409
    assert cluster.get(kinds.POD_DISRUPTION_BUDGET, key("b")).obj() == before


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_some_namespaces_may_not_go(name):
    assert refusal(machinery().delete, kinds.NAMESPACE, key(name, "")) == (
        403, "Forbidden", f'namespaces "{name}" is forbidden: this namespace may not be deleted',
    )  # fmt: skip


def test_a_namespace_goes_when_it_is_empty():
    cluster = machinery()
    cluster.create(kinds.NAMESPACE, "", obj("team"))
    for name in ("a", "b"):
        cluster.create(kinds.CONFIG_MAP, "team", config_map(name))
    cluster.create(kinds.POD, "team", pod("p", node="n1"))
    deleted = cluster.delete(kinds.NAMESPACE, key("team", ""))
    assert deleted.stored.obj()["status"] == {"phase": "Terminating"}
    cluster.settle()
    assert names(cluster.list(kinds.CONFIG_MAP, "team")) == []
    assert cluster.get(kinds.POD, key("p", "team")).terminating
    left = cluster.get(kinds.NAMESPACE, key("team", "")).obj()["status"]["conditions"]
    assert [(c["type"], c["message"]) for c in left] == [
        ("NamespaceContentRemaining", "Some resources are remaining: pods has 1 resource instances")
    ]
    cluster.delete(kinds.POD, key("p", "team"), DeleteOptions(grace_seconds=0))
    cluster.settle()
    assert refusal(cluster.get, kinds.NAMESPACE, key("team", "")) == (404, "NotFound", 'namespaces "team" not found')


@pytest.mark.parametrize("propagation", list(DeletionPropagation))
def test_a_namespace_goes_in_every_mode(propagation):
    cluster = machinery()
    cluster.create(kinds.NAMESPACE, "", obj("team"))
    cluster.create(kinds.CONFIG_MAP, "team", config_map("a"))
    cluster.delete(kinds.NAMESPACE, key("team", ""), DeleteOptions(propagation=propagation))
    cluster.settle()
    assert ("team" in names(cluster.list(kinds.NAMESPACE)), names(cluster.list(kinds.CONFIG_MAP))) == (False, [])


def test_nothing_is_made_in_a_namespace_that_goes_or_is_not_there():
    cluster = machinery()
    cluster.create(kinds.NAMESPACE, "", obj("team", metadata={"finalizers": ["example.com/x"]}))
    cluster.delete(kinds.NAMESPACE, key("team", ""))
    assert refusal(cluster.create, kinds.CONFIG_MAP, "team", config_map("a")) == (
        403, "Forbidden",
        'configmaps "a" is forbidden: unable to create new content in namespace team because it is being terminated',
    )  # fmt: skip
    assert refusal(cluster.create, kinds.CONFIG_MAP, "nowhere", config_map("a")) == (
        404, "NotFound", 'namespaces "nowhere" not found',
    )  # fmt: skip


def test_a_large_namespace_goes_in_slices():
    cluster = machinery()
    cluster.create(kinds.NAMESPACE, "", obj("team"))
    for number in range(450):
        cluster.create(kinds.CONFIG_MAP, "team", config_map(f"c{number}"))
    cluster.delete(kinds.NAMESPACE, key("team", ""))
    cluster.settle()
    assert "team" not in names(cluster.list(kinds.NAMESPACE))
