"""The gang planner alone, in memory, on one core: a large cluster in steady churn, a cold start, large gangs, packing.

Times are seconds of CPU, so that neighbours do not count. A cycle is everything between the watch and the API: taking
in the changes, planning, and writing the plan into the view. Packing plays the openb pods of the shared data sets in
their order of arrival, one after another and, as all of them together ask for a little less than the cluster has,
from the beginning again until the GPUs asked for are as many as there are. What kinds of pods are usual is known
beforehand, as for the published figures.
"""

from __future__ import annotations

import csv
import gc
import os
import random
import resource
from collections import Counter
from dataclasses import replace
from pathlib import Path
from statistics import median, quantiles
from time import process_time

from harness import ROOT, Metric

from shoal.kube.objects import Key
from shoal.local import gc_tuning
from shoal.scheduler.planner.cluster_view import ClusterView
from shoal.scheduler.planner.equivalence_classes import workload_kind
from shoal.scheduler.planner.gang_types import PlannerSettings, PodGroup, PodGroupPhase, Queue
from shoal.scheduler.planner.node_and_pod_types import Node, Pod, PodState
from shoal.scheduler.planner.planner import plan

GPU = "nvidia.com/gpu"
RACK = "topology.shoal.dev/rack"
GI = 1 << 30
OPENB = "alibaba-openb-v2023"

NODES, RUNNING, GANGS, CHURN = 10_000, 100_000, 1_000, 0.01
CYCLES = 60
QUEUES = tuple(f"team-{number}" for number in range(20))
SIZES = ((1, 1), (2, 1), (4, 1), (8, 1), (4, 4), (2, 8), (8, 2), (16, 1))  # pods, GPUs each
CPUS = (2, 4, 8)

METRICS = [
    Metric("cycle, 10000 nodes, 100000 pods, 1000 gangs, p50", "ms", 50),
    Metric("cycle, 10000 nodes, 100000 pods, 1000 gangs, p99", "ms", 250),
    Metric("placements", "pods/s", 1000, "higher"),
    Metric("memory of all that", "GB", 2),
    Metric("first plan, 5000 nodes, 140000 pods", "s", 60),
    Metric("20 gangs of 500 pods, longest gap", "s", 0.5),
    Metric("openb packing at 100% demand", "%", 95.2, "higher"),
]


def node(number: int) -> Node:
    amounts = {"cpu": 128_000, "memory": 1024 * GI * 1000, "pods": 110_000, GPU: 8_000}
    return Node(f"node-{number:05}", amounts, {RACK: f"rack-{number // 16:04}"})


class Churning:
    """A cluster in which gangs end and others arrive, always with the same number waiting."""

    def __init__(self, seed: int, *, nodes: int, running: int, gangs: int) -> None:
        self.rng = random.Random(seed)
        self.view = ClusterView(PlannerSettings(tiers=(RACK,)))
        self.made = 0
        self.alive: list[Key] = []
        self.now = 0.0
        for name in QUEUES:
            self.view.set_queue(Queue(name))
        for number in range(nodes):
            self.view.set_node(node(number))
        self._fill(nodes, running)
        for _ in range(gangs):
            self.arrive(*self.gang(*self.rng.choice(SIZES)))

    def _fill(self, nodes: int, running: int) -> None:
        """Single-pod groups would be unlike life: gangs of eight, a node's worth of them side by side."""
        vacant = [[f"node-{number:05}", 8] for number in range(nodes)]
        placed = 0
        while placed < running:
            key, pods = self.gang(8, 1 if placed % 100 < 72 else 0)
            self.view.set_group(replace(key, phase=PodGroupPhase.RUNNING, ran=True))
            self.alive.append(key.key)
            for pod in pods:
                spot = vacant[placed % nodes]
                self.view.set_pod(replace(pod, node=str(spot[0]), state=PodState.RUNNING))
                placed += 1

    def gang(self, pods: int, gpus: int) -> tuple[PodGroup, list[Pod]]:
        self.made += 1
        key = Key("bench", f"gang-{self.made:07}")
        queue = QUEUES[self.made % len(QUEUES)]
        cpu = self.rng.choice(CPUS) * 1000
        asked = {"cpu": cpu, "memory": 8 * GI * 1000, "pods": 1000} | ({GPU: gpus * 1000} if gpus else {})
        group = PodGroup(key, uid=key.name, created=self.now, min_member=pods, queue=queue, phase=PodGroupPhase.INQUEUE)
        names = (f"{key.name}-{number}" for number in range(pods))
        return group, [Pod(Key("bench", name), name, asked, group=key, index=i) for i, name in enumerate(names)]

    def arrive(self, group: PodGroup, pods: list[Pod]) -> None:
        self.view.set_group(group)
        for pod in pods:
            self.view.set_pod(pod)

    def ending(self, pods: int) -> list[tuple[Key, list[Key]]]:
        """Gangs chosen at random, until they have so many pods."""
        found = []
        while pods > 0:
            place = self.rng.randrange(len(self.alive))
            self.alive[place], self.alive[-1] = self.alive[-1], self.alive[place]
            key = self.alive.pop()
            found.append((key, list(self.view.groups[key].placed)))
            pods -= len(found[-1][1])
        return found

    def turn(self, gangs: int) -> tuple[float, int]:
        """One cycle: changes come in, a plan is made and assumed. Seconds, and pods placed."""
        self.now += 1
        ending = self.ending(int(RUNNING * CHURN))
        missing = gangs - len(self.view.unsettled)
        coming = [self.gang(*self.rng.choice(SIZES)) for _ in range(missing)]
        begin = process_time()
        for key, pods in ending:
            for pod in pods:
                self.view.remove_pod(pod)
            self.view.remove_group(key)
        for group, gang in coming:
            self.arrive(group, gang)
        made = plan(self.view, self.now)
        self.view.assume(made, self.now)
        seconds = process_time() - begin
        started = {self.view.pods[bind.pod].group for bind in made.binds}
        self.alive += sorted(key for key in started if key is not None)
        return seconds, len(made.binds)


def churn() -> dict[str, float]:
    cluster = Churning(1, nodes=NODES, running=RUNNING, gangs=GANGS)
    gc.collect()
    gc_tuning.serve()  # as the programs do
    for _ in range(5):
        cluster.turn(GANGS)
    taken = [cluster.turn(GANGS) for _ in range(CYCLES)]
    seconds = [one for one, _ in taken]
    return {
        METRICS[0].name: median(seconds) * 1e3,
        METRICS[1].name: quantiles(seconds, n=100)[98] * 1e3,
        METRICS[2].name: sum(pods for _, pods in taken) / sum(seconds),
        METRICS[3].name: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    }


def cold_start() -> float:
    begin = process_time()
    cluster = Churning(2, nodes=5_000, running=140_000, gangs=100)
    plan(cluster.view, 1.0)
    return process_time() - begin


def large_gangs() -> float:
    """Seconds of the longest wait between two batches of binds: a batch is what one plan binds."""
    view = ClusterView(PlannerSettings())
    for number in range(1_000):
        view.set_node(node(number))
    cluster = Churning.__new__(Churning)
    cluster.made, cluster.now, cluster.rng = 0, 0.0, random.Random(3)
    for _ in range(20):
        group, pods = cluster.gang(500, 0)
        view.set_group(replace(group, queue="default"))
        for pod in pods:
            view.set_pod(pod)
    longest = 0.0
    while view.unsettled:
        begin = process_time()
        made = plan(view, 1.0)
        view.assume(made, 1.0)
        assert made.binds, "all of them fit"
        longest = max(longest, process_time() - begin)
    return longest


def data_set() -> Path | None:
    places = [os.environ.get("SHOAL_DATA_SETS"), ROOT.parent / "shared" / "data"]
    found = [Path(place) / OPENB for place in places if place]
    return next((place for place in found if place.is_dir()), None)


def packing(folder: Path) -> float:
    with (folder / "openb_pod_list_default.csv").open() as file:
        rows = sorted(csv.DictReader(file), key=lambda row: int(row["creation_time"]))
    kinds = Counter(workload_kind(_openb_pod(row, 0), PlannerSettings().accelerators) for row in rows)
    view = ClusterView(PlannerSettings(usual_pods=tuple(kinds.items())))
    capacity = 0
    with (folder / "openb_node_list_gpu_node.csv").open() as file:
        for row in csv.DictReader(file):
            amounts = {"cpu": int(row["cpu_milli"]), "memory": int(row["memory_mib"]) * 1000, "pods": 1_000_000}
            view.set_node(Node(row["sn"], amounts | {GPU: int(row["gpu"]) * 1000}, {"gpu": row["model"]}))
            capacity += int(row["gpu"]) * 1000
    asked = given = number = 0
    while asked < capacity:
        row = rows[number % len(rows)]
        number += 1
        gpu = int(row["num_gpu"]) * int(row["gpu_milli"])
        asked += gpu
        pod = _openb_pod(row, number)
        view.set_pod(pod)
        made = plan(view, float(number))
        view.assume(made, float(number))
        if made.binds:
            given += gpu
        else:
            view.remove_pod(pod.key)
    return 100 * given / capacity


def _openb_pod(row: dict[str, str], number: int) -> Pod:
    gpu = int(row["num_gpu"]) * int(row["gpu_milli"])
    amounts = {"cpu": int(row["cpu_milli"]), "memory": int(row["memory_mib"]) * 1000, "pods": 1000}
    share = int(row["gpu_milli"]) if gpu and int(row["gpu_milli"]) < 1000 else 0
    terms = None
    if row.get("gpu_spec"):
        kinds = {"key": "gpu", "operator": "In", "values": row["gpu_spec"].split("|")}
        terms = ({"matchExpressions": [kinds]},)
    name = f"{row['name']}-{number}"
    return Pod(Key("openb", name), name, amounts | ({GPU: gpu} if gpu else {}), gpu_milli=share, node_terms=terms)


def run() -> dict[str, float]:
    figures = churn()
    figures[METRICS[4].name] = cold_start()
    figures[METRICS[5].name] = large_gangs()
    folder = data_set()
    if folder is None:
        print("scheduling: packing is left out, the openb data set is not here; say where by SHOAL_DATA_SETS")
        figures[METRICS[6].name] = float("nan")
    else:
        figures[METRICS[6].name] = packing(folder)
    return figures
