"""A gang that was whole is never undone, however its binds were answered; one that was not is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from shoal.cluster.clock import VirtualClock
from shoal.cluster.informer import Change
from shoal.kube.kinds import NODE, POD
from shoal.kube.objects import Key, Obj
from shoal.scheduler.api.pod_groups import POD_GROUP
from shoal.scheduler.cache.scheduler_cache import SchedulerCache
from shoal.scheduler.channels import BindFailed, Event
from shoal.scheduler.planner.cluster_view import ClusterView
from shoal.scheduler.planner.plan_types import Plan
from shoal.scheduler.planner.planner import plan
from shoal.scheduler.scope import SchedulerScope

BORN = "2030-01-01T00:00:00Z"
GANG = Key("d", "gang")


class Told:
    """A cache of one node and a gang, event by event."""

    def __init__(self, least: int) -> None:
        self.clock, self.view, self.started = VirtualClock(), ClusterView(), list[Key]()
        self._pods: dict[Key, Obj] = {}
        self.cache = SchedulerCache(self.view, SchedulerScope(), self.clock, pods=self._pods, groups={})
        room = {"cpu": "8", "pods": "10"}
        ready = [{"type": "Ready", "status": "True"}]
        node = {"metadata": {"name": "n"}, "status": {"allocatable": room, "conditions": ready}}
        self._apply(Change(NODE, Key("", "n"), None, node))
        meta = {"name": GANG.name, "namespace": GANG.namespace, "uid": "g", "creationTimestamp": BORN}
        group = {"metadata": meta, "spec": {"minMember": least}, "status": {"phase": "Inqueue"}}
        self._apply(Change(POD_GROUP, GANG, None, group))

    def pod(self, name: str, *, node: str = "", phase: str = "Pending") -> None:
        notes = {"scheduling.k8s.io/group-name": GANG.name}
        meta = {"name": name, "namespace": "d", "uid": name, "creationTimestamp": BORN, "annotations": notes}
        container = {"name": "main", "resources": {"requests": {"cpu": "1"}}}
        spec: Obj = {"containers": [container], **({"nodeName": node} if node else {})}
        self._tell(name, {"metadata": meta, "spec": spec, "status": {"phase": phase}})

    def gone(self, name: str) -> None:
        self._tell(name, None)

    def _tell(self, name: str, obj: Obj | None) -> None:
        key = Key("d", name)
        old = self._pods.pop(key, None)
        if obj is not None:
            self._pods[key] = obj
        self._apply(Change(POD, key, old, obj))

    def _apply(self, event: Event) -> None:
        self.cache.apply([event])
        self.started += [started.group for started in self.cache.take_changes().started]

    def plan(self) -> Plan:
        made = plan(self.view, self.cache.now)
        self.cache.assume_plan(made)
        return made

    def refused(self, made: Plan, name: str, *, for_good: bool) -> None:
        bind = next(bind for bind in made.binds if bind.pod.name == name)
        self._apply(BindFailed(bind, for_good))


def one_beyond_the_minimum_goes(told: Told, made: Plan) -> None:
    told.pod("a", node="n")
    told.pod("b", node="n")
    told.gone("c")


def one_goes_before_the_others_are_seen(told: Told, made: Plan) -> None:
    told.gone("c")
    told.pod("a", node="n")
    told.pod("b", node="n")


def one_beyond_the_minimum_is_refused(told: Told, made: Plan) -> None:
    told.pod("a", node="n")
    told.refused(made, "c", for_good=True)
    told.pod("b", node="n")


def an_answer_was_lost_and_the_watch_is_late(told: Told, made: Plan) -> None:
    told.pod("a", node="n")
    told.refused(made, "b", for_good=True)
    told.refused(made, "c", for_good=True)
    told.pod("b", node="n")


@pytest.mark.parametrize(
    "story",
    [
        one_beyond_the_minimum_goes,
        one_goes_before_the_others_are_seen,
        one_beyond_the_minimum_is_refused,
        an_answer_was_lost_and_the_watch_is_late,
    ],
)
async def test_what_ran_is_not_undone_hours_later(story: Callable[[Told, Plan], None]) -> None:
    told = Told(least=2)
    for name in ("a", "b", "c"):
        told.pod(name)
    made = told.plan()
    assert sorted(bind.pod.name for bind in made.binds) == ["a", "b", "c"]
    story(told, made)
    assert told.started == [GANG]
    told.clock.advance(5 * 3600)
    told.pod("b", node="n", phase="Failed")
    assert told.plan().evictions == ()


async def test_what_never_was_whole_is_undone() -> None:
    told = Told(least=3)
    for name in ("a", "b", "c"):
        told.pod(name)
    made = told.plan()
    told.pod("a", node="n")
    told.gone("c")
    told.pod("b", node="n")
    assert (told.started, told.cache.is_starting(GANG), len(made.binds)) == ([], False, 3)
    told.clock.advance(60)
    assert sorted(eviction.pod.name for eviction in told.plan().evictions) == ["a", "b"]


async def test_a_plan_in_between_does_not_call_it_started() -> None:
    told = Told(least=2)
    for name in ("a", "b"):
        told.pod(name)
    made = told.plan()
    told.pod("late")
    told.plan()
    told.pod("late", node="n")
    told.pod("a", node="n")
    assert told.started == []
    told.refused(made, "b", for_good=False)
    assert told.started == [GANG]  # with `late` in its place
