"""The order of news decides nothing: neither for scenario 28 of the gang specification, a thousand nodes and ten
thousand waiting pods, nor where a cluster has a past that a fresh view of it does not know.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

from kit.cluster_churn import retold
from kit.planner_board import GPU, HOST, NS, RACK, Board, cores, evicted, key
from shoal.kube.objects import Key
from shoal.kube.selectors import parse_labels
from shoal.scheduler.messages import text
from shoal.scheduler.planner.cluster_view import ClusterView
from shoal.scheduler.planner.gang_types import PodGroup, PodGroupPhase, TopologyConstraint
from shoal.scheduler.planner.node_and_pod_types import AffinityTerm, Node, Pod, PodState
from shoal.scheduler.planner.plan_types import Plan
from shoal.scheduler.planner.planner import plan


def told(order: int) -> Plan:
    rng, view = random.Random(28), ClusterView()
    nodes = [Node(f"n{number:04}", cores(cpu=rng.choice((4, 8, 16)), pods=110)) for number in range(1000)]
    groups = [
        PodGroup(Key(NS, f"g{n:03}"), uid=f"{n}", created=n, min_member=100, phase=PodGroupPhase.INQUEUE)
        for n in range(100)
    ]
    pods = []
    for group in groups:
        asked = cores(cpu=rng.randint(1, 3), pods=1)
        names = [f"{group.key.name}-{number:03}" for number in range(100)]
        pods += [Pod(Key(NS, name), name, asked, group=group.key, index=i) for i, name in enumerate(names)]
    tellings = [(view.set_node, node) for node in nodes] + [(view.set_group, group) for group in groups]
    tellings += [(view.set_pod, pod) for pod in pods]
    random.Random(order).shuffle(tellings)
    for tell, what in tellings:
        tell(what)
    return plan(view, 1000.0)


def test_28_the_order_of_events_decides_nothing() -> None:
    first, second = told(1), told(2)
    assert repr(first) == repr(second)
    started = Counter(bind.pod.name.partition("-")[0] for bind in first.binds)
    assert set(started.values()) == {100}, "gangs start whole"
    assert len(started) < 100, "there was not room for all of them"


def plans(board: Board) -> list[Plan]:
    """Of the view as it grew, and of fresh ones that were told of the same cluster in several orders."""
    fresh = [retold(board.view, random.Random(order)) for order in range(6)]
    return [plan(view, board.now) for view in (board.view, *fresh)]


def agreed(board: Board) -> Plan:
    first, *others = plans(board)
    assert others == [first] * len(others)
    return first


def test_gangs_that_are_undone_together_go_in_the_order_of_their_names() -> None:
    board = Board()
    board.nodes(4)
    for name in ("b", "a"):
        board.group(name, 2, phase=PodGroupPhase.INQUEUE)
        for number, place in enumerate(["n0", "n1"] if name == "a" else ["n2"]):
            pod = board.view.pods[key(f"{name}-{number}")]
            board.view.set_pod(replace(pod, node=place, state=PodState.BOUND, since=board.now))
    board.removes("a-1")
    board.now += 30
    made = agreed(board)
    assert [eviction.pod.name for eviction in made.evictions] == ["a-0", "b-0"]


def test_a_domain_without_nodes_is_not_the_largest_hole() -> None:
    board = Board(tiers=(RACK,))
    board.node("old", cpu=4, labels={RACK: "a-rack-that-went"})
    board.view.remove_node("old")
    board.node("n", cpu=1, labels={RACK: "r"})
    board.running("full", 1, ["n"])
    board.group("g", 2, closeness=TopologyConstraint(hard=True))
    message = text(agreed(board).groups[-1].message)
    assert message.startswith("waiting: needs 2 cpu in one rack, the most free is 0 in rack r")


def test_what_left_with_its_node_keeps_nobody_away() -> None:
    rule = AffinityTerm(parse_labels("app=web"), HOST, frozenset({NS}))
    board = Board()
    for name in ("n0", "n1", "n2"):
        board.node(name, cpu=4, labels={HOST: name})
    board.running("lonely", 1, ["n0"], apart=(rule,))
    board.view.remove_node("n0")
    board.finishes("lonely")
    board.group("web", 3, labels={"app": "web"})
    assert len(agreed(board).binds) == 3


def test_a_rule_that_a_running_pod_has_is_known_wherever_it_was_first_seen() -> None:
    rule = AffinityTerm(parse_labels("app=web"), HOST, frozenset({NS}))
    board = Board()
    for name in ("n0", "n1"):
        board.node(name, cpu=4, labels={HOST: name})
    pod = Pod(key("lonely"), "uid", cores(cpu=1, pods=1), node="n0", state=PodState.RUNNING, apart=(rule,))
    board.view.set_pod(pod)
    board.group("web", 1, labels={"app": "web"})
    assert [bind.node for bind in agreed(board).binds] == ["n1"]


def test_devices_that_nobody_named_are_dealt_alike() -> None:
    """Pods with whole devices ran before the first one asked for a part, and that one came, went and came again."""
    board = Board()
    board.node("n", cpu=16, gpu=4)
    board.running("whole", 2, ["n"], gpu=1)
    board.running("more", 1, ["n"], gpu=1)
    for _ in range(2):
        shared = {"cpu": 1000, "pods": 1000, GPU: 400}
        board.view.set_pod(Pod(key("part"), "uid", shared, gpu_milli=400))
        made = agreed(board)
        assert [bind.devices for bind in made.binds] == [(3,)]
        board.view.remove_pod(key("part"))
        agreed(board)


def test_victims_are_the_same_however_many_there_are_to_choose_from() -> None:
    """More groups than are looked into one by one, each with an old and a young pod."""
    board = Board()
    board.node("n", cpu=1300, pods=2000)
    for number in range(600):
        board.running(f"low-{number:03}", 2, ["n"], since=0.0)
        young = board.view.pods[key(f"low-{number:03}-1")]
        board.view.set_pod(replace(young, since=float(number)))
    board.running("rest", 1, ["n"], cpu=100, priority=9)
    board.group("high", 2, priority=5)
    assert len(evicted(agreed(board))) == 2
