"""Nodes and pods that no API server should have stored: kept out with a sentence, and everybody else is served."""

from __future__ import annotations

from shoal.cluster.clock import VirtualClock
from shoal.cluster.informer import Change
from shoal.kube.kinds import NODE, POD
from shoal.kube.objects import Key, Obj
from shoal.scheduler.cache.scheduler_cache import SchedulerCache
from shoal.scheduler.messages import text
from shoal.scheduler.planner.cluster_view import ClusterView
from shoal.scheduler.planner.planner import plan
from shoal.scheduler.scope import SchedulerScope


def node(name: str, cpu: str) -> Change:
    status = {"allocatable": {"cpu": cpu, "pods": "10"}, "conditions": [{"type": "Ready", "status": "True"}]}
    return Change(NODE, Key("", name), None, {"metadata": {"name": name}, "status": status})


def pod(name: str, cpu: str) -> Change:
    spec: Obj = {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]}
    obj = {"metadata": {"name": name, "namespace": "d", "uid": name}, "spec": spec, "status": {"phase": "Pending"}}
    return Change(POD, Key("d", name), None, obj)


async def test_the_others_are_placed_and_the_pod_says_why_it_is_not() -> None:
    cache = SchedulerCache(ClusterView(), SchedulerScope(), VirtualClock(), pods={}, groups={})
    cache.apply([node("odd", "many"), node("even", "4"), pod("odd", "many"), pod("even", "1")])
    made = plan(cache.view, cache.now)
    assert [(bind.pod.name, bind.node) for bind in made.binds] == [("even", "even")]
    why = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    assert [(wait.pod.name, text(wait.message)) for wait in made.waits] == [
        ("odd", f"waiting: this pod cannot be read: {why}")
    ]
