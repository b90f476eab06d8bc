"""Server-side apply: who owns a field, when two managers conflict, and what goes when its applier lets go."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from shoal.kube import kinds
from shoal.kube.apply import apply, track
from shoal.kube.errors import ApiError, Cause
from shoal.kube.objects import Obj
from shoal.kube.schema import Schema
from shoal.kube.schemas import schema_of

POD = schema_of(kinds.POD)
SERVICE = schema_of(kinds.SERVICE)
T0, T1, T2 = "2026-11-16T04:00:00Z", "2026-11-16T05:00:00Z", "2026-11-16T06:00:00Z"

LEAF: Obj = {}
HERE: Obj = {".": {}}


def pod(spec: Obj | None = None, **meta: Any) -> Obj:
    obj: Obj = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "default", **meta}}
    return obj if spec is None else {**obj, "spec": spec}


def container(name: str = "main", **fields: Any) -> Obj:
    return {"name": name, **fields}


def applied(live: Obj | None, config: Obj, by: str = "one", **how: Any) -> Obj:
    return apply(
        how.pop("schema", POD), live, config, manager=by, force=how.pop("force", False), now=how.pop("now", T0), **how
    )


def owners(obj: Obj) -> dict[tuple[str, str], Obj]:
    return {(e["manager"], e["operation"]): e["fieldsV1"] for e in obj["metadata"].get("managedFields", [])}


def bare(obj: Obj) -> Obj:
    """The object without its bookkeeping."""
    return {**obj, "metadata": {k: v for k, v in obj["metadata"].items() if k != "managedFields"}}


def test_the_first_apply_creates_the_object_and_owns_the_applied_fields() -> None:
    config = pod({"containers": [container(image="a", ports=[{"containerPort": 80}])]}, labels={"app": "web"})
    result = applied(None, config)
    assert bare(result) == config
    assert result["metadata"]["managedFields"] == [
        {
            "manager": "one",
            "operation": "Apply",
            "apiVersion": "v1",
            "time": T0,
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {"f:labels": {"f:app": {}}},
                "f:spec": {
                    "f:containers": {
                        'k:{"name":"main"}': {
                            **HERE,
                            "f:name": LEAF,
                            "f:image": LEAF,
                            "f:ports": {'k:{"containerPort":80,"protocol":"TCP"}': {**HERE, "f:containerPort": LEAF}},
                        }
                    }
                },
            },
        }
    ]


def test_applying_the_same_again_changes_nothing_not_even_the_time() -> None:
    config = pod({"containers": [container(image="a")]})
    once = applied(None, config, now=T0)
    assert applied(once, config, now=T1) == once


def test_inputs_are_left_alone() -> None:
    live = applied(None, pod({"containers": [container(image="a")]}, labels={"a": "1"}))
    config = pod({"containers": [container(image="b")]}, labels={"b": "2"})
    before = copy.deepcopy((live, config))
    applied(live, config, now=T1)
    assert (live, config) == before


def test_a_field_of_another_manager_is_a_conflict() -> None:
    live = applied(None, pod({"containers": [container(image="a")]}), by="one")
    with pytest.raises(ApiError) as refused:
        applied(live, pod({"containers": [container(image="b")]}), by="two")
    assert (refused.value.code, refused.value.reason, refused.value.message, refused.value.causes) == (
        409,
        "Conflict",
        'Apply failed with 1 conflict: conflict with "one": .spec.containers[name="main"].image',
        (Cause("FieldManagerConflict", 'conflict with "one"', '.spec.containers[name="main"].image'),),
    )


def test_conflicts_with_updaters_name_their_version_and_subresource() -> None:
    live = track(POD, None, pod({"terminationGracePeriodSeconds": 1}, labels={"a": "1"}), manager="edit", now=T0)
    live = track(POD, live, {**live, "status": {"phase": "Running"}}, manager="node", now=T0, subresource="status")
    config = {**pod({"terminationGracePeriodSeconds": 2}, labels={"a": "2"}), "status": {"phase": "Failed"}}
    with pytest.raises(ApiError) as refused:
        applied(live, config, by="two")
    assert refused.value.message == (
        'Apply failed with 3 conflicts: conflicts with "edit" using v1:\n'
        "- .metadata.labels.a\n"
        "- .spec.terminationGracePeriodSeconds\n"
        'conflicts with "node" with subresource "status" using v1:\n'
        "- .status.phase"
    )


def test_force_takes_the_field_over() -> None:
    live = applied(None, pod({"containers": [container(image="a")]}, labels={"x": "1"}), by="one")
    result = applied(live, pod(labels={"x": "2"}), by="two", force=True, now=T1)
    assert result["metadata"]["labels"] == {"x": "2"}
    assert owners(result) == {
        ("one", "Apply"): {
            "f:spec": {"f:containers": {'k:{"name":"main"}': {**HERE, "f:name": LEAF, "f:image": LEAF}}}
        },
        ("two", "Apply"): {"f:metadata": {"f:labels": {"f:x": LEAF}}},
    }


def test_agreeing_on_a_value_is_owning_it_together() -> None:
    live = applied(None, pod(labels={"x": "1"}), by="one")
    both = applied(live, pod(labels={"x": "1"}), by="two", now=T1)
    assert owners(both) == {
        ("one", "Apply"): {"f:metadata": {"f:labels": {"f:x": LEAF}}},
        ("two", "Apply"): {"f:metadata": {"f:labels": {"f:x": LEAF}}},
    }
    left = applied(both, pod(), by="two", now=T2)
    assert left["metadata"]["labels"] == {"x": "1"}
    assert owners(left) == {("one", "Apply"): {"f:metadata": {"f:labels": {"f:x": LEAF}}}}
    assert "labels" not in applied(left, pod(), by="one", now=T2)["metadata"]


def test_what_its_only_applier_no_longer_mentions_is_removed_with_all_it_holds() -> None:
    live = applied(None, pod({"containers": [container("a", image="1"), container("b", image="1")]}))
    defaulted = copy.deepcopy(live)
    defaulted["spec"]["containers"][1]["imagePullPolicy"] = "Always"
    result = applied(defaulted, pod({"containers": [container("a", image="1")]}), now=T1)
    assert result["spec"] == {"containers": [container("a", image="1")]}


def test_unowned_fields_are_kept() -> None:
    live = applied(None, pod({"containers": [container(image="1")], "terminationGracePeriodSeconds": 5}))
    live["spec"]["restartPolicy"] = "Always"
    result = applied(live, pod({"containers": [container(image="1")]}), now=T1)
    assert result["spec"] == {"containers": [container(image="1")], "restartPolicy": "Always"}


MERGES: dict[str, tuple[Obj, Obj, Obj]] = {
    "list maps join by key": (
        {"containers": [container("a", image="1"), container("b")]},
        {"containers": [container("b", image="2"), container("c")]},
        {"containers": [container("a", image="1"), container("b", image="2"), container("c")]},
    ),
    "a missing key has its default": (
        {"containers": [container(ports=[{"containerPort": 1, "protocol": "TCP"}])]},
        {"containers": [container(ports=[{"containerPort": 1, "name": "x"}])]},
        {"containers": [container(ports=[{"containerPort": 1, "protocol": "TCP", "name": "x"}])]},
    ),
    "atomic lists are replaced": (
        {"tolerations": [{"key": "a"}]},
        {"tolerations": [{"key": "b"}]},
        {"tolerations": [{"key": "b"}]},
    ),
    "atomic maps are replaced": (
        {"nodeSelector": {"a": "1"}},
        {"nodeSelector": {"b": "2"}},
        {"nodeSelector": {"b": "2"}},
    ),
    "null says nothing": ({"hostname": "a"}, {"hostname": None}, {"hostname": "a"}),
}


@pytest.mark.parametrize(("live", "config", "expected"), MERGES.values(), ids=MERGES)
def test_values_are_merged_by_the_schema(live: Obj, config: Obj, expected: Obj) -> None:
    first = track(POD, None, pod(live), manager="edit", now=T0)
    assert applied(first, pod(config), force=True, now=T1)["spec"] == expected


def test_sets_join_by_value() -> None:
    live = applied(None, pod(finalizers=["a/x", "b/x"]), by="one")
    result = applied(live, pod(finalizers=["c/x", "b/x"]), by="two", now=T1)
    assert result["metadata"]["finalizers"] == ["a/x", "c/x", "b/x"]
    assert owners(result) == {
        ("one", "Apply"): {"f:metadata": {"f:finalizers": {'v:"a/x"': LEAF, 'v:"b/x"': LEAF}}},
        ("two", "Apply"): {"f:metadata": {"f:finalizers": {'v:"b/x"': LEAF, 'v:"c/x"': LEAF}}},
    }


def test_an_object_without_managed_fields_belongs_to_before_first_apply() -> None:
    live = pod({"containers": [container(image="1")]}, uid="u")
    with pytest.raises(ApiError) as refused:
        applied(live, pod({"containers": [container(image="2")]}))
    assert refused.value.message == (
        'Apply failed with 1 conflict: conflict with "before-first-apply" using v1: .spec.containers[name="main"].image'
    )


def test_status_is_owned_through_its_subresource() -> None:
    live = applied(None, pod({"containers": [container()]}))
    result = applied(live, {**pod(), "status": {"phase": "Running"}}, now=T1, subresource="status")
    assert result["status"] == {"phase": "Running"}
    assert [(e["manager"], e.get("subresource"), e["fieldsV1"]) for e in result["metadata"]["managedFields"]] == [
        ("one", None, {"f:spec": {"f:containers": {'k:{"name":"main"}': {**HERE, "f:name": LEAF}}}}),
        ("one", "status", {"f:status": {"f:phase": LEAF}}),
    ]


REFUSED: dict[str, tuple[Obj, str]] = {
    "unknown field": (pod({"colour": "red"}), ".spec.colour: field not declared in schema"),
    "doubled item": (
        pod({"containers": [container(), container()]}),
        '.spec.containers: duplicate entries for key [name="main"]',
    ),
    "no key": (
        pod({"containers": [{"image": "a"}]}),
        '.spec.containers: element 0: associative list with keys has an element that omits all key fields ["name"] '
        "(and doesn't have default values for any key fields)",
    ),
    "several": (
        pod({"a": 1, "b": 2}),
        "errors:\n  .spec.a: field not declared in schema\n  .spec.b: field not declared in schema",
    ),
    "no map": (pod({"securityContext": "x"}), ".spec.securityContext: expected map, got x"),
}


@pytest.mark.parametrize(("config", "why"), REFUSED.values(), ids=REFUSED)
def test_a_configuration_that_makes_no_sense_is_refused(config: Obj, why: str) -> None:
    with pytest.raises(ApiError) as refused:
        applied(None, config)
    expected = f"failed to create typed patch object (default/web; /v1, Kind=Pod): {why}"
    assert (refused.value.code, refused.value.message) == (400, expected)


def test_managed_fields_cannot_be_applied() -> None:
    with pytest.raises(ApiError) as refused:
        applied(None, pod(managedFields=[]))
    assert (refused.value.code, refused.value.message) == (400, "metadata.managedFields must be nil")


LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def test_kubectl_takes_over_what_its_client_side_apply_set() -> None:
    said = '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"default","labels":{"a":"1"}}}'
    live = track(
        POD,
        None,
        pod(labels={"a": "1", "b": "1"}, annotations={LAST_APPLIED: said}),
        manager="kubectl-client-side-apply",
        now=T0,
    )
    result = applied(live, pod(labels={"a": "2"}), by="kubectl", now=T1)
    assert result["metadata"]["labels"] == {"a": "2", "b": "1"}
    assert result["metadata"]["annotations"][LAST_APPLIED] == (
        '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"default","labels":{"a":"2"}}}\n'
    )
    with pytest.raises(ApiError) as refused:
        applied(live, pod(labels={"a": "2", "b": "2"}), by="kubectl", now=T1)
    assert [cause.field for cause in refused.value.causes] == [".metadata.labels.b"]


def test_a_custom_kind_without_a_schema_is_owned_field_by_field() -> None:
    anything = Schema(type="object", preserve_unknown=True, custom=True)
    config = {"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "a"}, "spec": {"list": [1], "map": {"a": 1}}}
    result = applied(None, config, schema=anything)
    assert owners(result)[("one", "Apply")]["f:spec"] == {**HERE, "f:list": LEAF, "f:map": {**HERE, "f:a": LEAF}}


def test_an_empty_map_that_is_applied_stays_when_its_content_goes() -> None:
    live = applied(None, pod({"containers": [container()], "securityContext": {"runAsUser": 1}}))
    result = applied(live, pod({"containers": [container()], "securityContext": {}}), now=T1)
    assert result["spec"] == {"containers": [container()], "securityContext": {}}
