"""Terms of pod affinity and anti-affinity are about the namespaces that they name or select, as on Kubernetes."""

from __future__ import annotations

from typing import Any

import pytest

from kit.scheduled_cluster import Scheduled, scheduled
from shoal.kube.kinds import NAMESPACE, POD, SERVICE_ACCOUNT
from shoal.kube.objects import Obj
from shoal.kube.selectors import EVERYTHING, from_label_selector
from shoal.scheduler.planner.from_objects import affinity_terms, pod_from
from shoal.scheduler.planner.node_and_pod_types import AffinityTerm

HOST = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
LABELS = {"team": {}, "blue": {"color": "blue"}, "navy": {"color": "blue", "dark": "yes"}, "red": {"color": "red"}}
BLUE = {"matchLabels": {"color": "blue"}}


def affinity(kind: str = "podAntiAffinity", **more: Any) -> Obj:
    return {kind: {REQUIRED: [{"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": HOST, **more}]}}


COVERED: dict[str, tuple[Obj, list[str]]] = {
    "neither": ({}, ["team"]),
    "nulls": ({"namespaces": None, "namespaceSelector": None}, ["team"]),
    "an empty list": ({"namespaces": []}, ["team"]),
    "names": ({"namespaces": ["red", "later"]}, ["later", "red"]),
    "all": ({"namespaceSelector": {}}, ["blue", "later", "navy", "red", "team"]),
    "by labels": ({"namespaceSelector": BLUE}, ["blue", "navy"]),
    "by expressions": (
        {"namespaceSelector": {"matchExpressions": [{"key": "dark", "operator": "DoesNotExist"}]}},
        ["blue", "red", "team"],
    ),
    "names and labels": ({"namespaces": ["red"], "namespaceSelector": BLUE}, ["blue", "navy", "red"]),
    "labels that none has": ({"namespaceSelector": {"matchLabels": {"color": "green"}}}, []),
}


@pytest.mark.parametrize("kind", ["podAffinity", "podAntiAffinity"])
@pytest.mark.parametrize(("more", "covered"), COVERED.values(), ids=COVERED)
def test_a_term_covers_what_it_names_and_selects(kind: str, more: Obj, covered: list[str]) -> None:
    spec = {"containers": [], "affinity": affinity(kind, **more)}
    pod = pod_from({"metadata": {"name": "p", "namespace": "team", "uid": "u"}, "spec": spec}, LABELS)
    (term,) = (*pod.together, *pod.apart)
    assert sorted(name for name in (*LABELS, "later") if term.covers(name)) == covered


async def namespace(it: Scheduled, name: str, **labels: str) -> None:
    await it.cluster.create(NAMESPACE, {"metadata": {"name": name, "labels": labels}})
    await it.cluster.create(SERVICE_ACCOUNT, {"metadata": {"name": "default"}}, name)
    await it.rest()


async def web(it: Scheduled, where: str) -> None:
    """A pod of another namespace, on the only node."""
    spec = {"containers": [{"name": "main", "image": "x"}]}
    await it.cluster.create(POD, {"metadata": {"name": "web", "labels": {"app": "web"}}, "spec": spec}, where)
    await it.rest()


async def start_waiting(it: Scheduled, kind: str, **more: Any) -> None:
    await it.pod("waits", affinity=affinity(kind, **more))
    await it.rest()
    assert await it.placed() == []


@pytest.mark.parametrize("more", [{"namespaces": ["blue"]}, {"namespaceSelector": {}}, {"namespaceSelector": BLUE}])
async def test_affinity_finds_a_pod_of_another_namespace(more: Obj) -> None:
    async with scheduled() as it:
        await it.node("a", labels={HOST: "a"})
        await namespace(it, "blue", color="blue")
        await start_waiting(it, "podAffinity", **more)
        await web(it, "blue")
        assert await it.placed() == ["waits"]


@pytest.mark.parametrize("more", [{}, {"namespaces": ["red"]}, {"namespaceSelector": {"matchLabels": {"x": "y"}}}])
async def test_anti_affinity_ignores_a_pod_of_a_namespace_it_does_not_cover(more: Obj) -> None:
    async with scheduled() as it:
        await it.node("a", labels={HOST: "a"})
        await namespace(it, "blue", color="blue")
        await web(it, "blue")
        await it.pod("free", affinity=affinity(**more))
        await it.rest()
        assert await it.placed() == ["free"]


async def test_anti_affinity_of_a_running_pod_keeps_out_pods_of_the_namespaces_it_selects() -> None:
    async with scheduled() as it:
        await it.node("a", labels={HOST: "a"})
        await namespace(it, "blue", color="blue")
        await it.pod("here", affinity=affinity(namespaceSelector=BLUE))
        await it.rest()
        await web(it, "blue")
        (pod,) = (await it.cluster.list(POD, "blue")).items
        assert not pod["spec"].get("nodeName")


async def test_a_namespace_gets_the_labels_while_a_pod_waits_for_them() -> None:
    async with scheduled() as it:
        await it.node("a", labels={HOST: "a"})
        await namespace(it, "later")
        await web(it, "later")
        await start_waiting(it, "podAffinity", namespaceSelector=BLUE)
        none = "required pod affinity: no pod with app=web of a namespace with color=blue is on any node"
        assert (await it.pod_told("waits"))[2] == none
        await it.cluster.patch(NAMESPACE, "later", patch={"metadata": {"labels": {"color": "blue"}}})
        await it.rest()
        assert await it.placed() == ["waits"]


async def test_a_namespace_loses_the_labels_that_keep_a_pod_away() -> None:
    async with scheduled() as it:
        await it.node("a", labels={HOST: "a"})
        await namespace(it, "blue", color="blue")
        await web(it, "blue")
        await start_waiting(it, "podAntiAffinity", namespaceSelector=BLUE)
        await it.cluster.patch(NAMESPACE, "blue", patch={"metadata": {"labels": {"color": None}}})
        await it.rest()
        assert await it.placed() == ["waits"]


async def test_all_namespaces_are_those_that_come_later_too() -> None:
    async with scheduled() as it:
        await it.node("a", labels={HOST: "a"})
        await start_waiting(it, "podAffinity", namespaceSelector={})
        assert (await it.pod_told("waits"))[2].endswith("no pod with app=web of any namespace is on any node")
        await namespace(it, "later")
        await web(it, "later")
        assert await it.placed() == ["waits"]


async def test_every_namespace_is_selected_by_its_name() -> None:
    """The API server sets the label kubernetes.io/metadata.name on each."""
    async with scheduled() as it:
        await it.node("a", labels={HOST: "a"})
        await namespace(it, "blue")
        selector = {"matchLabels": {"kubernetes.io/metadata.name": "blue"}}
        await start_waiting(it, "podAffinity", namespaceSelector=selector)
        await web(it, "blue")
        assert await it.placed() == ["waits"]


def test_terms_that_differ_in_their_namespaces_alone_have_hashes_of_their_own() -> None:
    """Thousands of equal hashes would make every lookup among them a search."""
    terms = [
        {"topologyKey": HOST, "labelSelector": {}, "namespaceSelector": {"matchLabels": {"a": str(number)}}}
        for number in range(100)
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    pod = {"metadata": {"name": "p", "namespace": "ns"}, "spec": {"affinity": {"podAntiAffinity": required}}}
    _, apart = affinity_terms(pod, {})
    assert len({hash(term) for term in apart}) == 100


def test_a_term_is_read_again_only_where_its_selection_changes() -> None:
    term = AffinityTerm(EVERYTHING, HOST, frozenset(), from_label_selector(BLUE), frozenset({"old"}))
    changes = [("old", None), ("old", {}), ("new", {"color": "blue"})]
    assert [term.selection_changes(*change) for change in changes] == [True, True, True]
    assert not any(term.selection_changes(name, labels) for name, labels in [("old", {"color": "blue"}), ("new", None)])
