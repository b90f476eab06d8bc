"""What quotas and disruption budgets of a cluster of our own say of its pods."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from kit.scheduled_cluster import NS, scheduled
from shoal.cluster.informer import Informer
from shoal.controllers.quota_pdb_status import (
    EVICTION_TIMEOUT,
    BudgetCounts,
    PodCountController,
    QuotaCounts,
    budget_status,
    quota_status,
)
from shoal.kube import quotas
from shoal.kube.kinds import POD, POD_DISRUPTION_BUDGET, PRIORITY_CLASS, RESOURCE_QUOTA
from shoal.kube.objects import Key, Obj, name_of
from shoal.kube.pod_resources import Amounts
from shoal.kube.quotas import quota_usage, usage_of
from shoal.kube.times import rfc3339

CHOSEN = {"app": "a"}
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def pod(name: str, *, phase: str = "Running", ready: bool = True, leaving: bool = False, **more: Any) -> Obj:
    metadata: Obj = {"name": name, "namespace": "ns", "labels": CHOSEN}
    if leaving:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    resources = {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": "1"}}
    spec = {"containers": [{"name": "main", "resources": resources}], **more}
    conditions = [{"type": "Ready", "status": str(ready)}]
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase, "conditions": conditions}}


def test_a_quota_counts_what_pods_take_that_have_not_ended() -> None:
    hard = {"cpu": "4", "limits.cpu": "9", "requests.memory": "8Gi", "pods": "5", "count/pods": "5", "count/jobs": "1"}
    quota = {"spec": {"hard": hard}}
    pods = [pod("a"), pod("b", phase="Pending"), pod("over", phase="Succeeded"), pod("lost", phase="Failed")]
    used = {"cpu": "1", "limits.cpu": "2", "requests.memory": "2Gi", "pods": "2", "count/pods": "2"}
    assert quota_status(quota, quota_usage(quota, pods)) == {"hard": hard, "used": used}


def test_a_quota_keeps_the_words_of_an_amount_that_is_the_same() -> None:
    """A server may store `1073741824` as `1Gi`: to write it again would change nothing."""
    said = {"memory": "1048576Ki", "cpu": "0.7"}
    quota = {"spec": {"hard": {"memory": "2Gi", "cpu": "4"}}, "status": {"used": said}}
    assert quota_status(quota, quota_usage(quota, [pod("a")]))["used"] == {"memory": "1048576Ki", "cpu": "500m"}


def of_class(operator: str, *values: str) -> Obj:
    wanted = {"scopeName": "PriorityClass", "operator": operator, **({"values": list(values)} if values else {})}
    return {"scopeSelector": {"matchExpressions": [wanted]}}


SCOPES: dict[str, tuple[Obj, str]] = {
    "no scope": ({}, "3"),
    "with a deadline": ({"scopes": ["Terminating"]}, "1"),
    "without one": ({"scopes": ["NotTerminating"]}, "2"),
    "of one class": (of_class("In", "high"), "1"),
    "of any class but one": (of_class("NotIn", "high"), "2"),
    "of any class but another": (of_class("NotIn", "low"), "3"),
    "of any class": (of_class("Exists"), "1"),
    "of no class": (of_class("DoesNotExist"), "2"),
    "of nobody": ({"scopes": ["BestEffort"]}, "0"),
}


@pytest.mark.parametrize(("spec", "used"), SCOPES.values(), ids=SCOPES)
def test_a_quota_counts_the_pods_it_is_for(spec: Obj, used: str) -> None:
    pods = [pod("plain"), pod("ends", activeDeadlineSeconds=5), pod("high", priorityClassName="high")]
    quota = {"spec": {"hard": {"pods": "9"}, **spec}}
    assert quota_status(quota, quota_usage(quota, pods))["used"] == {"pods": used}


def test_what_is_counted_one_by_one_is_what_there_is() -> None:
    counts, place = QuotaCounts(), Key("ns", "q")
    a, b = Key("ns", "a"), Key("ns", "b")

    def used(**spec: Any) -> str:
        told: str = counts.status(place, {"spec": {"hard": {"pods": "9"}, **spec}}, NOW)["used"]["pods"]
        return told

    found = []
    for key, now in ((a, pod("a")), (b, pod("b")), (a, pod("a", phase="Failed")), (a, pod("a")), (b, None)):
        counts.put(key, now)
        found.append(used())
    assert (found, used(scopes=["BestEffort"]), used()) == (["1", "2", "1", "2", "1"], "0", "1")
    counts.forget(place)
    counts.put(a, None)
    assert used() == "0"


def test_a_pod_is_added_up_once_whatever_the_others_do(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[str] = []

    def noted(one: Obj) -> Amounts:
        looked_at.append(name_of(one))
        return usage_of(one)

    monkeypatch.setattr(quotas, "usage_of", noted)
    counts, names = QuotaCounts(), [f"p{number}" for number in range(20)]
    for name in names:
        counts.put(Key("ns", name), pod(name))
        counts.status(Key("ns", "q"), {"spec": {"hard": {"pods": "99"}}}, NOW)
    assert looked_at == names


# What a budget says, the pods there are, and healthy, desired, allowed, expected.
BUDGETS: dict[str, tuple[Obj, list[Obj], tuple[int, int, int, int]]] = {
    "one has to stay": ({"minAvailable": 1}, [pod("a"), pod("b"), pod("c")], (3, 1, 2, 3)),
    "half, rounded up": ({"minAvailable": "50%"}, [pod("a"), pod("b"), pod("c")], (3, 2, 1, 3)),
    "one may be away": ({"maxUnavailable": 1}, [pod("a"), pod("b", ready=False)], (1, 1, 0, 2)),
    "a third may, rounded up": ({"maxUnavailable": "33%"}, [pod("a"), pod("b"), pod("c"), pod("d")], (4, 2, 2, 4)),
    "whoever leaves is not healthy": ({"minAvailable": 1}, [pod("a"), pod("b", leaving=True)], (1, 1, 0, 2)),
    "whoever has ended is not there": ({"minAvailable": 1}, [pod("a"), pod("b", phase="Failed")], (1, 1, 0, 1)),
    "nobody is there": ({"minAvailable": 1}, [], (0, 1, 0, 0)),
}


@pytest.mark.parametrize(("spec", "pods", "figures"), BUDGETS.values(), ids=BUDGETS)
def test_a_budget_says_how_many_may_go(spec: Obj, pods: list[Obj], figures: tuple[int, int, int, int]) -> None:
    budget = {"metadata": {"generation": 3}, "spec": {"selector": {"matchLabels": CHOSEN}, **spec}}
    found = budget_status(budget, pods, NOW)
    names = ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods")
    assert (tuple(found[name] for name in names), found["observedGeneration"]) == (figures, 3)


def test_a_pod_that_was_evicted_is_counted_as_gone_until_it_is() -> None:
    told = {"a": "2026-01-01T00:00:00Z", "gone": "2026-01-01T00:00:00Z"}
    spec = {"selector": {"matchLabels": CHOSEN}, "minAvailable": 1}
    budget = {"metadata": {}, "spec": spec, "status": {"disruptedPods": told}}
    found = budget_status(budget, [pod("a"), pod("b")], NOW)
    assert (found["currentHealthy"], found["disruptionsAllowed"], list(found["disruptedPods"])) == (1, 0, ["a"])
    later = budget_status(budget, [pod("a"), pod("b")], NOW + EVICTION_TIMEOUT)
    assert (later["currentHealthy"], later["disruptionsAllowed"], "disruptedPods" in later) == (2, 1, False)


async def test_a_pod_that_stays_after_all_counts_again_when_its_time_is_over() -> None:
    async with scheduled() as it:
        pods = Informer(it.cluster, POD, clock=it.clock)
        loop = PodCountController(it.cluster, POD_DISRUPTION_BUDGET, pods, BudgetCounts(), clock=it.clock)
        running = [asyncio.create_task(part.run()) for part in (pods, loop)]
        budget = {"minAvailable": 0, "selector": {}}
        await it.cluster.create(POD_DISRUPTION_BUDGET, {"metadata": {"name": "b"}, "spec": budget}, NS)
        await it.node("a")
        await it.pod("p")
        await it.becomes("p", "Running", conditions=[{"type": "Ready", "status": "True"}])
        going = {"disruptionsAllowed": 0, "disruptedPods": {"p": rfc3339(it.clock.now())}}
        await it.cluster.patch(POD_DISRUPTION_BUDGET, "b", NS, patch={"status": going}, subresource="status")
        allowed = []
        for seconds in (1, EVICTION_TIMEOUT.total_seconds()):
            await it.rest(seconds)
            allowed.append((await it.cluster.get(POD_DISRUPTION_BUDGET, "b", NS))["status"]["disruptionsAllowed"])
        assert allowed == [0, 1]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def test_in_a_cluster_of_our_own_one_goes_after_the_other() -> None:
    """Whoever is evicted counts at once, so that the next has to wait until another is there."""
    async with scheduled() as it:
        pods = Informer(it.cluster, POD)
        parts = [
            pods,
            PodCountController(it.cluster, RESOURCE_QUOTA, pods, QuotaCounts(), clock=it.clock),
            PodCountController(it.cluster, POD_DISRUPTION_BUDGET, pods, BudgetCounts(), clock=it.clock),
        ]
        running = [asyncio.create_task(part.run()) for part in parts]
        await it.cluster.create(PRIORITY_CLASS, {"metadata": {"name": "high"}, "value": 100})
        await it.cluster.create(RESOURCE_QUOTA, {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "9"}}}, NS)
        budget = {"minAvailable": 1, "selector": {}}
        await it.cluster.create(POD_DISRUPTION_BUDGET, {"metadata": {"name": "b"}, "spec": budget}, NS)
        await it.node("a", cpu=2)
        await it.gang("little", 2, least=1)
        for number in range(2):
            await it.becomes(f"little-{number}", "Running", conditions=[{"type": "Ready", "status": "True"}])
        found = (await it.cluster.get(POD_DISRUPTION_BUDGET, "b", NS))["status"]
        quota = (await it.cluster.get(RESOURCE_QUOTA, "q", NS))["status"]
        assert (found["disruptionsAllowed"], quota["used"]) == (1, {"pods": "2"})
        await it.gang("great", 2, priorityClassName="high")
        assert sorted(await it.placed()) == ["little-0", "little-1"]  # both would have to go
        await it.cluster.delete(POD, "great-1", NS)
        await it.gang("less", 1, priorityClassName="high")
        assert sorted(await it.placed()) == ["less-0", "little-0"]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
