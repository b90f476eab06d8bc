"""Nodes are weighed by arrays where many changed and one by one where few did: to the last bit the same."""

from __future__ import annotations

import random

import numpy as np
import pytest

from shoal.kube.objects import Key
from shoal.scheduler.planner.cluster_view import ClusterView
from shoal.scheduler.planner.equivalence_classes import EquivalenceClass
from shoal.scheduler.planner.gang_types import PlannerSettings
from shoal.scheduler.planner.node_and_pod_types import Node, Pod

GI = 1 << 30
GPU = "nvidia.com/gpu"
NODES = 200
LIKED = ((5, {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["fast"]}]}),)
REQUESTS = {
    "cores and memory": {"cpu": 333, "memory": 7 * GI, "pods": 1000},
    "devices": {"cpu": 3000, "memory": GI * 1000, "pods": 1000, GPU: 2000},
    "cores only": {"cpu": 7777},
    "nothing": {},
}


def a_used_cluster(rng: random.Random, settings: PlannerSettings) -> ClusterView:
    view = ClusterView(settings)
    for number in range(NODES):
        amounts = {"cpu": rng.choice((7777, 64_000)), "memory": rng.choice((31, 256)) * GI * 1000}
        gpus = {GPU: rng.choice((1, 8)) * 1000} if rng.random() < 0.5 else {}
        disk = rng.choice(("fast", "slow"))
        view.set_node(Node(f"n{number:03}", amounts | gpus | {"pods": 20_000}, {"disk": disk}))
    for number in range(10 * NODES):
        asked = {"cpu": rng.choice((100, 1234)), "memory": rng.randrange(1, 9) * GI * 999, "pods": 1000}
        pod = Pod(Key("default", f"p{number}"), f"p{number}", asked, node=f"n{rng.randrange(NODES):03}")
        view.set_pod(pod)
    return view


def weighed(shape: EquivalenceClass) -> tuple[int, list[int], list[int]]:
    return shape.fits, shape.slots.tolist(), shape.key.tolist()


@pytest.mark.parametrize("profile", ["auto", "pack", "spread"])
@pytest.mark.parametrize("requests", REQUESTS.values(), ids=REQUESTS)
@pytest.mark.parametrize("how", [{}, {"preferred_nodes": LIKED}, {"node_selector": {"disk": "slow"}}], ids=str)
def test_a_few_nodes_are_weighed_like_many(profile, requests, how):
    rng = random.Random(repr((profile, requests, how)))
    view = a_used_cluster(rng, PlannerSettings(profile=profile))
    shape = view.eq_classes.of(
        Pod(Key("default", "new"), "new", requests, **how), view.resources.vector(requests)
    ).sync()
    for number in range(40):  # one changes at a time
        asked = {"cpu": 57, "memory": 3 * GI, "pods": 1000}
        view.set_pod(Pod(Key("default", f"q{number}"), f"q{number}", asked, node=f"n{rng.randrange(NODES):03}"))
        shape.sync()
    singly = weighed(shape)
    shape._count(np.arange(len(view.resources)))
    assert weighed(shape) == singly
