"""kubectl delete in every mode, and wait."""

from __future__ import annotations

from typing import Any

import pytest


def config(name: str, owner: dict[str, Any] | None = None, **labels: str) -> dict[str, Any]:
    meta: dict[str, Any] = {"name": name, "labels": labels}
    if owner:
        reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": True}
        reference |= {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], "blockOwnerDeletion": True}
        meta["ownerReferences"] = [reference]
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}


@pytest.fixture
def family(kubectl: Any) -> Any:
    kubectl("create", "-f", "-", given=config("parent"))
    kubectl("create", "-f", "-", given=config("child", kubectl.read("get", "cm", "parent")))
    return kubectl


def test_delete_in_the_background_takes_the_children_after(family: Any) -> None:
    assert family("delete", "cm", "parent").out.startswith('configmap "parent" deleted')
    family("wait", "--for=delete", "cm/child", "--timeout=60s")
    assert family("get", "cm", "-o", "name").out == ""


def test_delete_in_the_foreground_waits_for_the_children(family: Any) -> None:
    family("delete", "cm", "parent", "--cascade=foreground")
    assert family("get", "cm", "-o", "name").out == ""


def test_delete_as_orphan_leaves_the_children(family: Any) -> None:
    family("delete", "cm", "parent", "--cascade=orphan")
    child = family.read("get", "cm", "child")
    assert "ownerReferences" not in child["metadata"]


def test_delete_by_label_and_all(kubectl: Any) -> None:
    kubectl("create", "-f", "-", given=[config("a", app="x"), config("b", app="x"), config("c")])
    kubectl("delete", "cm", "-l", "app=x")
    assert kubectl("get", "cm", "-o", "name").out == "configmap/c\n"
    kubectl("delete", "cm", "--all")
    assert kubectl("get", "cm", "-o", "name").out == ""


def test_delete_of_a_missing_object_is_an_error(kubectl: Any) -> None:
    refused = kubectl("delete", "cm", "ghost", ok=False)
    assert refused.err == 'Error from server (NotFound): configmaps "ghost" not found\n'
    assert kubectl("delete", "cm", "ghost", "--ignore-not-found").out == ""


def test_delete_without_waiting_leaves_what_has_a_finalizer(kubectl: Any) -> None:
    held = config("held")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    kubectl("create", "-f", "-", given=held)
    kubectl("delete", "cm", "held", "--wait=false")
    assert kubectl.read("get", "cm", "held")["metadata"]["deletionTimestamp"]
    kubectl("patch", "cm", "held", "--type=json", "-p", '[{"op":"remove","path":"/metadata/finalizers"}]')
    assert kubectl("get", "cm", "held", "--ignore-not-found").out == ""


def test_delete_of_a_pod_by_force_goes_at_once(kubectl: Any, pod: Any) -> None:
    pod("p")
    kubectl("delete", "pod", "p", "--wait=false")
    assert kubectl("get", "pod", "p", "--no-headers").rows[0][2] == "Terminating"
    out = kubectl("delete", "pod", "p", "--force", "--grace-period=0")
    assert out.out.startswith('pod "p" force deleted')
    assert kubectl("get", "pod", "p", "--ignore-not-found").out == ""


def test_delete_with_dry_run_takes_nothing(kubectl: Any) -> None:
    kubectl("create", "-f", "-", given=config("a"))
    assert "(server dry run)" in kubectl("delete", "cm", "a", "--dry-run=server").out
    assert kubectl("get", "cm", "a", "-o", "name").out == "configmap/a\n"


def test_delete_of_a_namespace_empties_it(kubectl: Any) -> None:
    kubectl("create", "-f", "-", given=config("a"))
    kubectl("delete", "namespace", kubectl.namespace, "--timeout=60s")
    assert kubectl("get", "cm", "-o", "name").out == ""
    refused = kubectl("create", "-f", "-", given=config("b"), ok=False).err
    assert f'namespaces "{kubectl.namespace}" not found' in refused


def test_wait_ends_when_a_condition_holds(kubectl: Any, pod: Any) -> None:
    pod("p")
    waiting = kubectl.start("wait", "--for=condition=Ready", "pod/p", "--timeout=60s")
    ready = '{"status":{"conditions":[{"type":"Ready","status":"True"}]}}'
    kubectl("patch", "pod", "p", "--subresource=status", "-p", ready)
    assert waiting.communicate(timeout=120) == ("pod/p condition met\n", "")


def test_wait_ends_when_a_path_has_a_value(kubectl: Any, pod: Any) -> None:
    pod("p")
    waiting = kubectl.start("wait", "--for=jsonpath={.status.phase}=Running", "pod/p", "--timeout=60s")
    kubectl("patch", "pod", "p", "--subresource=status", "-p", '{"status":{"phase":"Running"}}')
    assert waiting.communicate(timeout=120) == ("pod/p condition met\n", "")


def test_wait_ends_when_the_object_is_made(kubectl: Any) -> None:
    waiting = kubectl.start("wait", "--for=create", "cm/late", "--timeout=60s")
    kubectl("create", "-f", "-", given=config("late"))
    assert waiting.communicate(timeout=120) == ("configmap/late condition met\n", "")


def test_wait_gives_up_in_time(kubectl: Any, pod: Any) -> None:
    pod("p")
    refused = kubectl("wait", "--for=condition=Ready", "pod/p", "--timeout=1ms", ok=False)
    assert refused.err == "error: timed out waiting for the condition on pods/p\n"


def test_drain_evicts_the_pods_of_a_node(kubectl: Any, pod: Any) -> None:
    node = f"n-{kubectl.namespace}"
    kubectl("create", "-f", "-", given={"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}})
    pod("p", placed=False)
    kubectl.server.call(lambda cluster: cluster.bind("p", kubectl.namespace, node=node))
    drained = kubectl.start("drain", node, "--force", "--grace-period=0", "--timeout=60s")
    out, err = drained.communicate(timeout=120)
    assert (drained.returncode, out.splitlines()[-1]) == (0, f"node/{node} drained"), err
    kubectl("delete", "node", node)
