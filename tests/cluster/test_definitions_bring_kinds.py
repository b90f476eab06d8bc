"""Applying a CustomResourceDefinition makes its kinds live at once; deleting it takes them and their objects."""

from __future__ import annotations

from kit.cluster_objects import config_map, define, definition, key, machinery, names, obj, refusal
from shoal.cluster.client import PatchType
from shoal.cluster.types import WriteOptions
from shoal.kube import kinds

CRD = kinds.CUSTOM_RESOURCE_DEFINITION
WIDGETS = key("widgets.example.com", "")


def conditions(cluster, where=WIDGETS):
    status = cluster.get(CRD, where).obj()["status"]
    return {c["type"]: (c["status"], c["reason"]) for c in status["conditions"]}


def test_a_definition_is_established_by_the_write_that_makes_it():
    cluster = machinery()
    made = cluster.create(CRD, "", definition()).stored.obj()
    assert conditions(cluster) == {
        "NamesAccepted": ("True", "NoConflicts"),
        "Established": ("True", "InitialNamesAccepted"),
    }
    assert (made["status"]["acceptedNames"]["kind"], made["status"]["storedVersions"]) == ("Widget", ["v1"])
    assert cluster.find("example.com", "v1", "widgets").kind == "Widget"


def test_objects_are_pruned_defaulted_and_validated_by_the_schema():
    cluster = machinery()
    widget = define(cluster)
    written = cluster.create(widget, "default", obj("w", spec={"size": 1, "unheard": 2}))
    assert written.warnings == ('unknown field "spec.unheard"',)
    assert written.stored.obj()["spec"] == {"size": 1, "colour": "blue"}
    code, reason, message = refusal(cluster.create, widget, "default", obj("x", spec={"size": -1}))
    assert (code, reason) == (422, "Invalid")
    assert message.startswith('Widget.example.com "x" is invalid: spec.size: Invalid value: -1')


def test_strict_validation_refuses_unknown_fields():
    cluster = machinery()
    widget = define(cluster)
    strict = WriteOptions(field_validation="Strict")
    assert refusal(cluster.create, widget, "default", obj("w", spec={"unheard": 2}), strict)[0] == 400
    pod = obj("p", spec={"containers": [{"name": "a", "image": "b", "colour": "red"}]})
    assert refusal(cluster.create, kinds.POD, "default", pod, strict) == (
        400, "BadRequest",
        'Pod in version "v1" cannot be handled as a Pod: strict decoding error: '
        'unknown field "spec.containers[0].colour"',
    )  # fmt: skip


def test_ignored_fields_are_dropped_without_a_warning():
    cluster = machinery()
    quiet = WriteOptions(field_validation="Ignore")
    written = cluster.create(kinds.CONFIG_MAP, "default", config_map("a", colour="red"), quiet)
    assert (written.warnings, "colour" in written.stored.obj()) == ((), False)


def test_versions_share_their_objects():
    cluster = machinery()
    define(cluster, "v1", "v2")
    first, second = (cluster.find("example.com", version, "widgets") for version in ("v1", "v2"))
    cluster.create(first, "default", obj("w", spec={"size": 1}))
    cluster.patch(second, key("w"), {"spec": {"size": 2}}, PatchType.MERGE)
    shown = [cluster.get(kind, key("w")).obj() for kind in (first, second)]
    assert [(o["apiVersion"], o["spec"]["size"]) for o in shown] == [("example.com/v1", 2), ("example.com/v2", 2)]


def test_names_in_use_are_not_accepted_until_they_are_free():
    cluster = machinery()
    define(cluster)
    other = definition(plural="gadgets", kind="Widget")
    cluster.create(CRD, "", other)
    where = key("gadgets.example.com", "")
    assert conditions(cluster, where) == {
        "NamesAccepted": ("False", "ListKindConflict"),
        "Established": ("False", "NotAccepted"),
    }
    assert cluster.find("example.com", "v1", "gadgets") is None
    cluster.delete(CRD, WIDGETS)
    cluster.settle()
    assert conditions(cluster, where)["Established"] == ("True", "InitialNamesAccepted")
    assert cluster.find("example.com", "v1", "gadgets") is not None


def test_a_definition_takes_its_objects_with_it():
    cluster = machinery()
    widget = define(cluster)
    cluster.create(widget, "default", obj("w", spec={}, metadata={"finalizers": ["example.com/x"]}))
    cluster.create(widget, "default", obj("x", spec={}))
    cluster.delete(CRD, WIDGETS)
    cluster.settle()
    assert names(cluster.list(widget, "default")) == ["w"]
    assert refusal(cluster.create, widget, "default", obj("y", spec={})) == (
        405, "MethodNotAllowed", "create not allowed while custom resource definition is terminating",
    )  # fmt: skip
    cluster.patch(widget, key("w"), {"metadata": {"finalizers": None}}, PatchType.MERGE)
    cluster.settle()
    assert names(cluster.list(CRD)) == []
    assert refusal(cluster.list, widget) == (404, "NotFound", "the server could not find the requested resource")


def test_definitions_and_objects_survive_a_restart(tmp_path):
    cluster = machinery(tmp_path / "store.db")
    widget = define(cluster)
    cluster.create(widget, "default", obj("w", spec={"size": 4}))
    cluster.close()
    cluster = machinery(tmp_path / "store.db")
    assert cluster.get(cluster.find("example.com", "v1", "widgets"), key("w")).obj()["spec"]["size"] == 4
    cluster.close()


def test_a_bad_definition_is_refused_whole():
    cluster = machinery()
    sent = definition()
    sent["metadata"]["name"] = "other.example.com"
    assert refusal(cluster.create, CRD, "", sent)[:2] == (422, "Invalid")
    assert cluster.find("example.com", "v1", "widgets") is None


def test_strategic_patches_are_not_for_custom_kinds():
    cluster = machinery()
    widget = define(cluster)
    cluster.create(widget, "default", obj("w", spec={}))
    assert refusal(cluster.patch, widget, key("w"), {"spec": {}}, PatchType.STRATEGIC)[:2] == (
        415, "UnsupportedMediaType",
    )  # fmt: skip


def test_applying_creates_then_merges_then_conflicts():
    cluster = machinery()
    widget = define(cluster)

    def applied(size: int, manager: str, force: bool = False):
        sent = {"apiVersion": "example.com/v1", "kind": "Widget", **obj("w", spec={"size": size})}
        options = WriteOptions(field_manager=manager, force=force)
        return cluster.patch(widget, key("w"), sent, PatchType.APPLY, options)

    assert applied(1, "me").created
    same = cluster.get(widget, key("w")).revision
    cluster.clock.advance(60)
    assert applied(1, "me").stored.revision == same
    code, reason, message = refusal(applied, 2, "you")
    assert (code, reason, message) == (
        409, "Conflict", 'Apply failed with 1 conflict: conflict with "me": .spec.size',
    )  # fmt: skip
    assert applied(2, "you", force=True).stored.obj()["spec"]["size"] == 2
