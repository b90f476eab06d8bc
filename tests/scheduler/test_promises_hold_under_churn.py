"""What no sequence of arrivals, ends, failures and lost nodes may break, in clusters of several kinds.

Every life is a hundred cycles of churn, then rest, then the end of all that runs (`kit.cluster_churn`). A plain run
lives about a hundred of them, more than ten thousand cycles, always the same; `SHOAL_LIVES=1000` lives a thousand of
each kind.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from kit.cluster_churn import Arrival, World, lived, seeds
from kit.planner_board import GPU, HOST, RACK, cores, key
from shoal.kube.selectors import parse_labels
from shoal.scheduler.planner.gang_types import PodGroup, PodGroupPhase, Queue, SubgroupPolicy, TopologyConstraint
from shoal.scheduler.planner.node_and_pod_types import AffinityTerm, Node, Pod

PARTS = 4  # so that several workers share the work


def node(number: int) -> Node:
    return Node(f"n{number}", cores(cpu=4, memory=100, pods=110), {RACK: f"r{number // 3}"})


def gang(rng: random.Random, name: str, now: float, *, queues: tuple[Queue, ...]) -> Arrival:
    count = rng.randint(1, 5)
    group = PodGroup(
        key(name),
        uid=name,
        created=now,
        min_member=rng.randint(1, count),
        queue=rng.choice(queues).name,
        priority=rng.choice((0, 0, 0, 1, 2)),
        phase=PodGroupPhase.INQUEUE,
        inqueue_since=now,
        elastic=rng.random() < 0.3,
        preemptible_guest=rng.random() < 0.1,
        closeness=TopologyConstraint(hard=rng.random() < 0.5) if rng.random() < 0.3 else None,
    )
    return group, pods(group, count, cores(cpu=rng.randint(1, 3), pods=1))


def pods(group: PodGroup, count: int, asked: dict[str, int], **more: Any) -> list[Pod]:
    names = [f"{group.key.name}-{number}" for number in range(count)]
    return [Pod(key(name), f"uid-{name}", asked, group=group.key, index=i, **more) for i, name in enumerate(names)]


FLAT = (
    Queue("default"),
    Queue("a", weight=1, capability=cores(cpu=10)),
    Queue("b", weight=3, guarantee=cores(cpu=3), deserved=cores(cpu=9)),
    Queue("c", weight=2, fifo=True, deserved=cores(cpu=8), reclaimable=False),
)


def flat(sharing: str) -> World:
    return World(
        FLAT,
        node,
        lambda rng, name, now: gang(rng, name, now, queues=FLAT),
        settings={"sharing": sharing, "tiers": (RACK,)},
    )


# Several resources, accelerators and parts of them, a hierarchy of queues, roles, subgroups, rules about neighbours.

FAMILY = (
    Queue("dept", capability=cores(cpu=20, gpu=6)),
    Queue("dev", parent="dept", deserved=cores(cpu=6, memory=20)),
    Queue("ops", parent="dept", deserved=cores(cpu=4, gpu=2), guarantee=cores(cpu=2), priority=1),
    Queue("lab", deserved=cores(memory=30, gpu=4), capability=cores(gpu=7)),
    Queue("default"),
)
LEAVES = tuple(queue for queue in FAMILY if queue.name != "dept")


def machine(number: int) -> Node:
    gpus = {GPU: 2000 * (number % 3)} if number % 3 else {}
    return Node(f"n{number}", cores(cpu=8, memory=16, pods=6) | gpus, {RACK: f"r{number // 2}", HOST: f"n{number}"})


def mixed_gang(rng: random.Random, name: str, now: float, *, shares: bool) -> Arrival:
    count = rng.randint(1, 6)
    waits_outside = rng.random() < 0.3
    asked = cores(cpu=rng.randint(1, 4), memory=rng.randint(1, 6), pods=1)
    part = rng.choice((300, 500, 700)) if shares and rng.random() < 0.5 else 0
    if rng.random() < 0.5 or part:
        asked[GPU] = part or 1000 * rng.randint(1, 2)
    least = rng.randint(1, count)
    labels: dict[str, Any] = {"app": name, "half": str(rng.randint(0, 1))}
    more: dict[str, Any] = {}
    if rng.random() < 0.2:
        more["apart"] = (AffinityTerm(parse_labels(f"app={name}"), HOST, frozenset({"team"})),)
    if rng.random() < 0.1:
        more["ports"] = frozenset({"TCP/80"})
    group = PodGroup(
        key(name),
        uid=name,
        created=now,
        min_member=least,
        min_roles={"ps": 1} if least > 1 and rng.random() < 0.3 else {},
        subgroups=(SubgroupPolicy("pair", 2, 1, label_keys=("pair",)),) if least >= 2 and rng.random() < 0.2 else (),
        min_resources={r: a * least for r, a in asked.items() if r != "pods"} if waits_outside else None,
        queue=rng.choice(LEAVES).name,
        priority=rng.choice((0, 0, 0, 1)),
        phase=PodGroupPhase.PENDING if waits_outside else PodGroupPhase.INQUEUE,
        inqueue_since=None if waits_outside else now,
        elastic=rng.random() < 0.3,
        preemptible_guest=rng.random() < 0.1,
        sla_seconds=rng.choice((None, None, 900.0)),
    )
    made = pods(group, count, asked, gpu_milli=part, **more)
    return group, [told(pod, labels, role="ps" if i == 0 else "worker", pair=str(i // 2)) for i, pod in enumerate(made)]


def told(pod: Pod, labels: dict[str, str], *, role: str, pair: str) -> Pod:
    return replace(pod, labels=labels | {"pair": pair}, role=role)


def mixed(sharing: str, *, shares: bool) -> World:
    return World(
        FAMILY,
        machine,
        lambda rng, name, now: mixed_gang(rng, name, now, shares=shares),
        settings={"sharing": sharing, "tiers": (RACK,)},
    )


WORLDS = {  # and how many lives of each in a plain run
    "flat, by weight": (flat("proportion"), 20),
    "flat, by entitlement": (flat("capacity"), 20),
    "mixed, by weight": (mixed("proportion", shares=False), 20),
    "mixed, by entitlement": (mixed("capacity", shares=False), 20),
    "devices shared, by weight": (mixed("proportion", shares=True), 8),
    "devices shared, by entitlement": (mixed("capacity", shares=True), 8),
}


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", WORLDS)
def test_promises_hold_whatever_comes(name: str, part: int) -> None:
    world, lives = WORLDS[name]
    for seed in seeds(lives)[part::PARTS]:
        lived(world, seed)
