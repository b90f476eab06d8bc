"""Status and spec are written through different doors; scale and binding are doors of their own."""

from __future__ import annotations

import pytest

from kit.cluster_objects import define, key, machinery, obj, pod, refusal
from shoal.cluster.client import PatchType
from shoal.kube import kinds


def test_a_status_given_on_create_is_not_kept():
    cluster = machinery()
    widget = define(cluster)
    made = cluster.create(widget, "default", obj("w", spec={}, status={"ready": True})).stored.obj()
    assert "status" not in made


def test_a_node_keeps_the_status_it_registers_with():
    cluster = machinery()
    sent = obj("n1", status={"capacity": {"cpu": "4"}})
    assert cluster.create(kinds.NODE, "", sent).stored.obj()["status"]["capacity"] == {"cpu": "4"}


def test_writes_to_the_main_resource_leave_the_status():
    cluster = machinery()
    widget = define(cluster)
    cluster.create(widget, "default", obj("w", spec={"size": 1}))
    cluster.patch(widget, key("w"), {"status": {"ready": True}}, PatchType.MERGE, subresource="status")
    change = {"spec": {"size": 2}, "status": {"ready": False}}
    after = cluster.patch(widget, key("w"), change, PatchType.MERGE).stored.obj()
    assert (after["spec"]["size"], after["status"]) == (2, {"ready": True})


def test_writes_to_the_status_leave_everything_else_of_a_custom_resource():
    cluster = machinery()
    widget = define(cluster)
    cluster.create(widget, "default", obj("w", spec={"size": 1}))
    change = {"spec": {"size": 2}, "metadata": {"labels": {"a": "b"}}, "status": {"ready": True}}
    after = cluster.patch(widget, key("w"), change, PatchType.MERGE, subresource="status").stored.obj()
    assert (after["spec"]["size"], after["status"], "labels" in after["metadata"]) == (1, {"ready": True}, False)


def test_writes_to_a_pod_status_leave_its_spec_and_its_owners():
    cluster = machinery()
    cluster.create(kinds.POD, "default", pod("p"))
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "y"}
    change = {
        "spec": {"nodeName": "n1"},
        "metadata": {"labels": {"a": "b"}, "ownerReferences": [owner]},
        "status": {"phase": "Running", "qosClass": None},
    }
    after = cluster.patch(kinds.POD, key("p"), change, PatchType.MERGE, subresource="status").stored.obj()
    assert ("nodeName" in after["spec"], "ownerReferences" in after["metadata"]) == (False, False)
    assert (after["metadata"]["labels"], after["status"]) == (
        {"a": "b"}, {"phase": "Running", "qosClass": "BestEffort"},
    )  # fmt: skip


def test_a_kind_without_a_status_subresource_keeps_its_status_in_the_object():
    cluster = machinery()
    widget = define(cluster, status=False)
    cluster.create(widget, "default", obj("w", spec={}, status={"ready": True}))
    assert cluster.get(widget, key("w")).obj()["status"] == {"ready": True}
    assert refusal(cluster.patch, widget, key("w"), {}, PatchType.MERGE, subresource="status")[0] == 404


def scaled(cluster, replicas=2):
    widget = define(cluster, scale=True)
    cluster.create(widget, "default", obj("w", spec={"replicas": replicas}))
    status = {"status": {"replicas": 1, "selector": "app=w"}}
    cluster.patch(widget, key("w"), status, PatchType.MERGE, subresource="status")
    return widget


def test_scale_shows_the_replicas_of_an_object():
    cluster = machinery()
    widget = scaled(cluster)
    meta = cluster.get(widget, key("w")).obj()["metadata"]
    assert cluster.get(widget, key("w"), "scale").obj() == {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {name: meta[name] for name in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")},
        "spec": {"replicas": 2},
        "status": {"replicas": 1, "selector": "app=w"},
    }


def test_scale_changes_the_replicas_and_counts_as_a_generation():
    cluster = machinery()
    widget = scaled(cluster)
    scale = cluster.get(widget, key("w"), "scale").obj()
    scale["spec"]["replicas"] = 5
    assert cluster.update(widget, key("w"), scale, subresource="scale").stored.obj()["spec"] == {"replicas": 5}
    cluster.patch(widget, key("w"), {"spec": {"replicas": 7}}, PatchType.MERGE, subresource="scale")
    after = cluster.get(widget, key("w")).obj()
    assert (after["spec"]["replicas"], after["metadata"]["generation"], after["status"]["replicas"]) == (7, 3, 1)


def test_scale_is_refused_when_it_is_old_or_negative():
    cluster = machinery()
    widget = scaled(cluster)
    old = cluster.get(widget, key("w"), "scale").obj()
    cluster.patch(widget, key("w"), {"spec": {"size": 1}}, PatchType.MERGE)
    assert refusal(cluster.update, widget, key("w"), old, subresource="scale")[:2] == (409, "Conflict")
    minus = {"spec": {"replicas": -1}}
    assert refusal(cluster.patch, widget, key("w"), minus, PatchType.MERGE, subresource="scale") == (
        422, "Invalid",
        'Scale.autoscaling "w" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0',
    )  # fmt: skip


def test_kinds_without_scale_have_none():
    cluster = machinery()
    cluster.create(kinds.POD, "default", pod("p"))
    assert refusal(cluster.get, kinds.POD, key("p"), "scale")[0] == 404


def test_binding_places_a_pod_once():
    cluster = machinery()
    uid = cluster.create(kinds.POD, "default", pod("p")).stored.uid
    binding = {"metadata": {"name": "p", "uid": uid}, "target": {"kind": "Node", "name": "n1"}}
    placed = cluster.bind(key("p"), binding).obj()
    assert (placed["spec"]["nodeName"], placed["status"]["conditions"]) == (
        "n1",
        [
            {
                "type": "PodScheduled",
                "status": "True",
                "lastProbeTime": None,
                "lastTransitionTime": "2030-01-01T00:00:00Z",
            }
        ],
    )
    assert refusal(cluster.bind, key("p"), binding) == (
        409, "Conflict",
        'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n1"',
    )  # fmt: skip


@pytest.mark.parametrize(
    ("binding", "code"),
    [
        ({"metadata": {"uid": "other"}, "target": {"name": "n1"}}, 409),
        ({"metadata": {"name": "q"}, "target": {"name": "n1"}}, 400),
        ({"target": {}}, 422),
        ({"target": {"kind": "Moon", "name": "n1"}}, 422),
    ],
    ids=["another uid", "another name", "no node", "not a node"],
)
def test_a_binding_that_means_something_else_is_refused(binding, code):
    cluster = machinery()
    cluster.create(kinds.POD, "default", pod("p"))
    assert refusal(cluster.bind, key("p"), binding)[0] == code
    assert "nodeName" not in cluster.get(kinds.POD, key("p")).obj()["spec"]


def test_a_gated_pod_cannot_be_placed():
    cluster = machinery()
    sent = pod("p")
    sent["spec"]["schedulingGates"] = [{"name": "example.com/later"}]
    made = cluster.create(kinds.POD, "default", sent).stored.obj()
    assert [(c["type"], c["status"], c["reason"]) for c in made["status"]["conditions"]] == [
        ("PodScheduled", "False", "SchedulingGated")
    ]
    assert refusal(cluster.bind, key("p"), {"target": {"name": "n1"}})[0] == 409
