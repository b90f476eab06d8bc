"""Pods without a group: tables of nodes and pods in, binds and messages out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.planner_board import message
from shoal.kube.messages import Message
from shoal.kube.objects import Key
from shoal.kube.quantity_format import requests_of
from shoal.scheduler.planner.cluster_view import ClusterView
from shoal.scheduler.planner.node_and_pod_types import Node, Pod
from shoal.scheduler.planner.plan_types import Bind, Plan, Wait
from shoal.scheduler.planner.planner import plan

GPU = "nvidia.com/gpu"
GI = (1 << 30) * 1000


def node(name: str, *, cpu: int = 8, memory_gi: int = 16, gpus: int = 0, pods: int = 110, **more: Any) -> Node:
    amounts = {"cpu": cpu * 1000, "memory": memory_gi * GI, "pods": pods * 1000}
    if gpus:
        amounts[GPU] = gpus * 1000
    return Node(name, amounts, **more)


def pod(name: str, *, cpu: int = 1, gpus: int = 0, **more: Any) -> Pod:
    asked = {"cpu": cpu * 1000, "pods": 1000} | ({GPU: gpus * 1000} if gpus else {})
    return Pod(Key("default", name), f"uid-{name}", asked, **more)


def planned(nodes: list[Node], pods: list[Pod]) -> Plan:
    view = ClusterView()
    for each in nodes:
        view.set_node(each)
    for one in pods:
        view.set_pod(one)
    return plan(view, 0.0)


def bound(name: str, to: str) -> Bind:
    return Bind(Key("default", name), f"uid-{name}", to)


def causes(wait: Wait) -> list[Message]:
    cause = wait.message.parameters["cause"]
    return list(cause.parameters["parts"]) if cause.code == "All" else [cause]


def short(need: int, free: int, node: str, *, resource: str = "cpu", whole: int | None = None) -> Message:
    amounts = {"need": str(need), "free": str(free), "whole": str(free if whole is None else whole)}
    return message("Resources.Short", resource=resource, node=node, **amounts)


def test_a_pod_goes_to_the_node_it_fills_best() -> None:
    nodes = [node("big", gpus=8), node("small", gpus=2)]
    assert planned(nodes, [pod("a", gpus=2)]).binds == (bound("a", "small"),)


def test_pods_of_one_plan_share_the_room() -> None:
    result = planned([node("n", cpu=2)], [pod("a"), pod("b"), pod("c")])
    assert result.binds == (bound("a", "n"), bound("b", "n"))
    assert [causes(wait) for wait in result.waits] == [[short(1, 0, "n", whole=2)]]


def test_a_higher_priority_goes_first_and_a_blocked_pod_blocks_nobody() -> None:
    pods = [pod("low", cpu=2), pod("huge", cpu=64, priority=10), pod("high", cpu=7, priority=5)]
    result = planned([node("n", cpu=8)], pods)
    assert result.binds == (bound("high", "n"),)
    assert {w.pod.name for w in result.waits} == {"huge", "low"}


TAINT = {"key": "team", "value": "vision", "effect": "NoSchedule"}
WAITS = [
    pytest.param([], pod("p"), [message("Resources.NoNode")], False, id="no node"),
    pytest.param(
        [node("a", gpus=4), node("b", gpus=2)],
        pod("p", gpus=8),
        [short(8, 4, "a", resource=GPU)],
        True,
        id="names the short resource",
    ),
    pytest.param(
        [node("a")],
        pod("p", gpus=1),
        [message("Resources.OnNoNode", need="1", resource=GPU)],
        True,
        id="nobody has any",
    ),
    pytest.param(
        [node("a", taints=(TAINT,))],
        pod("p"),
        [message("Barred.Taint.One", taint="team=vision:NoSchedule")],
        False,
        id="taint",
    ),
    pytest.param(
        [node("a", ready=False), node("b", ready=False), node("c", unschedulable=True)],
        pod("p"),
        [message("Barred.NotReady", count=2), message("Barred.Cordoned.One")],
        False,
        id="not ready, cordoned",
    ),
    pytest.param(
        [node("a", labels={"disk": "hdd"}), node("b", cpu=1, labels={"disk": "ssd"})],
        pod("p", cpu=4, node_selector={"disk": "ssd"}),
        [short(4, 1, "b"), message("Barred.NodeSelector.One")],
        True,
        id="selector and shortage",
    ),
    pytest.param(
        [node("a", cpu=8, labels={"disk": "hdd"})],
        pod("p", cpu=4, node_selector={"disk": "ssd"}),
        [message("Barred.NodeSelector.One")],
        False,
        id="selector",
    ),
    pytest.param(
        [node("a", pods=0)], pod("p"), [message("Resources.OnNoNode", need="1", resource="pods")], True, id="no pods"
    ),
]


@pytest.mark.parametrize(("nodes", "lone", "why", "too_large"), WAITS)
def test_a_waiting_pod_is_told_why(nodes: list[Node], lone: Pod, why: list[Message], too_large: bool) -> None:
    made = planned(nodes, [lone])
    (wait,) = made.waits
    assert made.binds == ()
    assert wait == Wait(Key("default", "p"), "uid-p", wait.message, too_large=too_large)
    assert causes(wait) == why


TOLERATIONS = [
    pytest.param({"key": "team", "operator": "Equal", "value": "vision", "effect": "NoSchedule"}, True, id="equal"),
    pytest.param({"key": "team", "operator": "Exists"}, True, id="exists, any effect"),
    pytest.param({"operator": "Exists"}, True, id="everything"),
    pytest.param({"key": "team", "value": "speech"}, False, id="another value"),
    pytest.param({"key": "team", "operator": "Exists", "effect": "NoExecute"}, False, id="another effect"),
]


@pytest.mark.parametrize(("toleration", "fits"), TOLERATIONS)
def test_a_taint_is_kept_off_unless_tolerated(toleration: dict[str, str], fits: bool) -> None:
    result = planned([node("n", taints=(TAINT,))], [pod("p", tolerations=(toleration,))])
    assert bool(result.binds) is fits


AFFINITIES = [
    pytest.param([{"key": "zone", "operator": "In", "values": ["a", "b"]}], True, id="in"),
    pytest.param([{"key": "zone", "operator": "NotIn", "values": ["a"]}], False, id="not in"),
    pytest.param([{"key": "rack", "operator": "DoesNotExist"}], True, id="absent"),
    pytest.param([{"key": "gen", "operator": "Gt", "values": ["3"]}], True, id="greater"),
    pytest.param([{"key": "gen", "operator": "Lt", "values": ["3"]}], False, id="less"),
    pytest.param([{"key": "zone", "operator": "Gt", "values": ["3"]}], False, id="not a number"),
    pytest.param([], False, id="an empty term selects nothing"),
]


@pytest.mark.parametrize(("expressions", "fits"), AFFINITIES)
def test_required_node_affinity_is_kept(expressions: list[dict[str, Any]], fits: bool) -> None:
    place = node("n", labels={"zone": "a", "gen": "4"})
    result = planned([place], [pod("p", node_terms=({"matchExpressions": expressions},))])
    assert bool(result.binds) is fits


def test_a_pod_asks_for_its_containers_or_a_larger_init_container() -> None:
    def container(cpu: str, **more: Any) -> dict[str, Any]:
        return {"name": "c", "resources": {"requests": {"cpu": cpu}}, **more}

    spec = {
        "containers": [container("1"), container("500m")],
        "initContainers": [container("250m", restartPolicy="Always"), container("4")],
        "overhead": {"cpu": "100m"},
    }
    assert requests_of({"spec": spec}) == {"cpu": 4350, "pods": 1000}


sizes = st.lists(st.integers(0, 8), max_size=12)


@given(capacities=st.lists(st.integers(0, 16), max_size=5), cpus=sizes, gpus=sizes)
def test_no_node_is_ever_given_more_than_it_has(capacities: list[int], cpus: list[int], gpus: list[int]) -> None:
    nodes = [node(f"n{i}", cpu=c, gpus=c // 2) for i, c in enumerate(capacities)]
    pods = [pod(f"p{i}", cpu=c, gpus=g) for i, (c, g) in enumerate(zip(cpus, gpus, strict=False))]
    result = planned(nodes, pods)
    by_name = {p.key: p for p in pods}
    for place in nodes:
        for resource in ("cpu", GPU):
            held = sum(by_name[b.pod].requests.get(resource, 0) for b in result.binds if b.node == place.name)
            assert held <= place.allocatable.get(resource, 0)
    assert len(result.binds) + len(result.waits) == len(pods)
