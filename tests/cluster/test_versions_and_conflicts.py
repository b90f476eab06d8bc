"""Every write is a new version, and a write against an old version is refused."""

from __future__ import annotations

import pytest

from kit.cluster_objects import config_map, define, key, machinery, obj, pod, refusal
from shoal.cluster.client import PatchType
from shoal.cluster.types import WriteOptions
from shoal.kube import kinds
from shoal.kube.errors import STALE


def test_a_created_object_has_what_the_server_gives_it():
    cluster = machinery()
    made = cluster.create(kinds.CONFIG_MAP, "default", config_map("a")).stored.obj()
    meta = made["metadata"]
    meta.pop("managedFields")
    assert made == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "a",
            "namespace": "default",
            "uid": meta["uid"],
            "creationTimestamp": "2030-01-01T00:00:00Z",
            "resourceVersion": str(cluster.store.revision),
        },
        "data": {"mode": "fast"},
    }
    assert len(meta["uid"]) == 36


def test_system_fields_of_the_client_are_ignored_on_create():
    cluster = machinery()
    long_ago = "2001-01-01T00:00:00Z"
    system_fields = {"uid": "mine", "creationTimestamp": long_ago, "deletionTimestamp": long_ago}
    sent = config_map("a", metadata=system_fields)
    meta = cluster.create(kinds.CONFIG_MAP, "default", sent).stored.obj()["metadata"]
    assert (meta["uid"] != "mine", meta["creationTimestamp"], "deletionTimestamp" in meta) == (
        True, "2030-01-01T00:00:00Z", False,
    )  # fmt: skip


def test_one_counter_runs_over_all_kinds():
    cluster = machinery()
    first = cluster.create(kinds.CONFIG_MAP, "default", config_map("a")).stored.revision
    second = cluster.create(kinds.SECRET, "default", obj("b")).stored.revision
    assert second == first + 1


def test_a_put_against_an_old_version_is_a_conflict():
    cluster = machinery()
    old = cluster.create(kinds.CONFIG_MAP, "default", config_map("a")).stored
    cluster.update(kinds.CONFIG_MAP, key("a"), {**old.obj(), "data": {"mode": "slow"}})
    assert refusal(cluster.update, kinds.CONFIG_MAP, key("a"), {**old.obj(), "data": {"mode": "late"}}) == (
        409, "Conflict", f'Operation cannot be fulfilled on configmaps "a": {STALE}',
    )  # fmt: skip


def test_a_put_without_a_version_overwrites_where_kubernetes_lets_it():
    cluster = machinery()
    cluster.create(kinds.CONFIG_MAP, "default", config_map("a"))
    written = cluster.update(kinds.CONFIG_MAP, key("a"), config_map("a", {"mode": "slow"}))
    assert written.stored.obj()["data"] == {"mode": "slow"}


def test_a_put_without_a_version_is_refused_for_custom_resources():
    cluster = machinery()
    widget = define(cluster)
    cluster.create(widget, "default", obj("w", spec={}))
    assert refusal(cluster.update, widget, key("w"), obj("w", spec={"size": 1})) == (
        422, "Invalid",
        'widgets.example.com "w" is invalid: metadata.resourceVersion: Invalid value: 0: '
        "must be specified for an update",
    )  # fmt: skip


def test_a_put_of_a_missing_object_is_not_found():
    assert refusal(machinery().update, kinds.CONFIG_MAP, key("a"), config_map("a")) == (
        404, "NotFound", 'configmaps "a" not found',
    )  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "sent"),
    [
        (kinds.LEASE, {"spec": {"holderIdentity": "me"}}),
        (kinds.ENDPOINTS, {}),
        (kinds.SERVICE, {"spec": {"ports": [{"port": 80}]}}),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_a_put_creates_the_kinds_that_kubernetes_creates_by_put(kind, sent):
    cluster = machinery()
    assert cluster.update(kind, key("a"), obj("a", **sent)).created
    assert cluster.get(kind, key("a")).key == key("a")


def test_a_put_with_another_uid_is_a_conflict():
    cluster = machinery()
    made = cluster.create(kinds.CONFIG_MAP, "default", config_map("a")).stored
    sent = config_map("a", metadata={"uid": "other"})
    assert refusal(cluster.update, kinds.CONFIG_MAP, key("a"), sent) == (
        409, "Conflict",
        'Operation cannot be fulfilled on configmaps "a": Precondition failed: UID in precondition: other, '
        f"UID in object meta: {made.uid}",
    )  # fmt: skip


def test_a_write_that_changes_nothing_makes_no_version():
    cluster = machinery()
    made = cluster.create(kinds.POD, "default", pod("p")).stored
    cluster.clock.advance(60)
    cluster.update(kinds.POD, key("p"), made.obj())
    cluster.patch(kinds.POD, key("p"), {"metadata": {"labels": None}}, PatchType.MERGE)
    assert cluster.get(kinds.POD, key("p")).revision == cluster.revision == made.revision


def test_the_same_name_twice_already_exists():
    cluster = machinery()
    cluster.create(kinds.CONFIG_MAP, "default", config_map("a"))
    assert refusal(cluster.create, kinds.CONFIG_MAP, "default", config_map("a")) == (
        409, "AlreadyExists", 'configmaps "a" already exists',
    )  # fmt: skip


def test_a_merge_patch_may_carry_the_version_it_was_made_for():
    cluster = machinery()
    old = cluster.create(kinds.CONFIG_MAP, "default", config_map("a")).stored.revision
    cluster.patch(kinds.CONFIG_MAP, key("a"), {"data": {"x": "1"}}, PatchType.MERGE)
    late = {"metadata": {"resourceVersion": str(old)}, "data": {"x": "2"}}
    assert refusal(cluster.patch, kinds.CONFIG_MAP, key("a"), late, PatchType.MERGE)[:2] == (409, "Conflict")


def test_generated_names_are_made_until_one_is_free():
    cluster = machinery()
    made = [
        cluster.create(kinds.CONFIG_MAP, "default", {"metadata": {"generateName": "run-"}}).stored.key.name
        for _ in range(50)
    ]
    assert len(set(made)) == 50
    assert all(name.startswith("run-") and len(name) == len("run-") + 5 for name in made)


def test_a_resource_version_on_create_is_refused():
    sent = config_map("a", metadata={"resourceVersion": "5"})
    assert refusal(machinery().create, kinds.CONFIG_MAP, "default", sent)[2] == (
        "resourceVersion should not be set on objects to be created"
    )


def test_generation_counts_changes_of_spec_alone():
    cluster = machinery()
    widget = define(cluster)

    def generation() -> int:
        return cluster.get(widget, key("w")).obj()["metadata"]["generation"]

    cluster.create(widget, "default", obj("w", spec={"size": 1}))
    counted = [generation()]
    for change, subresource in [
        ({"spec": {"size": 2}}, ""),
        ({"metadata": {"labels": {"a": "b"}}}, ""),
        ({"status": {"ready": True}}, "status"),
        ({"metadata": {"generation": 99}}, ""),
        ({"spec": {"size": 3}}, ""),
    ]:
        cluster.patch(widget, key("w"), change, PatchType.MERGE, subresource=subresource)
        counted.append(generation())
    assert counted == [1, 2, 2, 2, 2, 3]


def test_a_dry_run_answers_and_leaves_nothing():
    cluster = machinery()
    cluster.create(kinds.CONFIG_MAP, "default", config_map("a"))
    before = cluster.store.revision
    dry = WriteOptions(dry_run=True)
    created = cluster.create(kinds.CONFIG_MAP, "default", config_map("b"), dry).stored.obj()
    updated = cluster.update(kinds.CONFIG_MAP, key("a"), config_map("a", {"x": "y"}), dry).stored.obj()
    patched = cluster.patch(kinds.CONFIG_MAP, key("a"), {"data": {"z": "1"}}, PatchType.MERGE, dry).stored.obj()
    assert (created["data"], updated["data"], patched["data"]) == (
        {"mode": "fast"}, {"x": "y"}, {"mode": "fast", "z": "1"},
    )  # fmt: skip
    assert refusal(cluster.create, kinds.CONFIG_MAP, "default", config_map("a"), dry)[1] == "AlreadyExists"
    assert [s.key.name for s in cluster.list(kinds.CONFIG_MAP, "default").items] == ["a"]
    assert cluster.revision == before
