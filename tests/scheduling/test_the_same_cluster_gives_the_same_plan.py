"""Scenario 28 of the gang specification: a thousand nodes, ten thousand waiting pods, told in two orders."""

from __future__ import annotations

import random
from collections import Counter

from kit.gangs import NS, cores
from shoal.kube.objects import Key
from shoal.scheduling.groups import Group, Phase
from shoal.scheduling.planner import plan
from shoal.scheduling.planning import Plan
from shoal.scheduling.snapshot import Node, Pod
from shoal.scheduling.view import ClusterView


def told(order: int) -> Plan:
    chance, view = random.Random(28), ClusterView()
    nodes = [Node(f"n{number:04}", cores(cpu=chance.choice((4, 8, 16)), pods=110)) for number in range(1000)]
    groups = [
        Group(Key(NS, f"g{n:03}"), uid=f"{n}", created=n, min_member=100, phase=Phase.INQUEUE) for n in range(100)
    ]
    pods = []
    for group in groups:
        asked = cores(cpu=chance.randint(1, 3), pods=1)
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
