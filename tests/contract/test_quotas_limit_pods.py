"""A pod beyond the quota of its namespace is refused, with what it asked for, what is taken and what may be."""

from __future__ import annotations

from typing import Any

import pytest

from kit.api_objects import pod
from kit.eventually import answer_turns
from kit.raw_api import Answer, Obj, Space


def quota(space: Space, hard: dict[str, str], *, refuses: Obj, **spec: Any) -> None:
    """With its status, as whoever counts would write it; and `refuses`, which is only tried, is refused from now on."""
    made = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": hard, **spec}}
    space.post("resourcequotas", made).ok()
    status = {"hard": hard, "used": dict.fromkeys(hard, "0")}
    space.patch("resourcequotas/q/status", {"status": status}).ok()
    answer_turns(lambda: space.post("pods", refuses, dryRun="All"), counts)


def counts(answer: Answer) -> bool:
    """Nothing tells when a real server's admission has seen a quota, or, a moment later, its status."""
    return answer.status == 403 and "status unknown" not in answer.json["message"]


def asking(name: str, **resources: dict[str, str]) -> Obj:
    made = pod(name)
    made["spec"]["containers"][0]["resources"] = resources
    return made


REFUSED: dict[str, tuple[dict[str, str], Obj, str]] = {
    "pods": ({"pods": "0"}, asking("a"), "exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0"),
    "counted pods": (
        {"count/pods": "0"},
        asking("a"),
        "exceeded quota: q, requested: count/pods=1, used: count/pods=0, limited: count/pods=0",
    ),
    "two amounts": (
        {"requests.cpu": "1", "memory": "1Gi", "pods": "5"},
        asking("a", requests={"cpu": "1500m", "memory": "2Gi"}),
        "exceeded quota: q, requested: memory=2Gi,requests.cpu=1500m, used: memory=0,requests.cpu=0, "
        "limited: memory=1Gi,requests.cpu=1",
    ),
    "limits": (
        {"limits.cpu": "1"},
        asking("a", limits={"cpu": "2"}),
        "exceeded quota: q, requested: limits.cpu=2, used: limits.cpu=0, limited: limits.cpu=1",
    ),
    "devices": (
        {"requests.acme.io/npu": "1"},
        asking("a", limits={"acme.io/npu": "2"}),
        "exceeded quota: q, requested: requests.acme.io/npu=2, used: requests.acme.io/npu=0, "
        "limited: requests.acme.io/npu=1",
    ),
    "nothing said": (
        {"cpu": "1", "memory": "1Gi"},
        asking("a"),
        "failed quota: q: must specify cpu for: main; memory for: main",
    ),
}


@pytest.mark.parametrize(("hard", "obj", "why"), REFUSED.values(), ids=REFUSED)
def test_a_pod_beyond_the_quota_is_refused(space: Space, hard: dict[str, str], obj: Obj, why: str) -> None:
    quota(space, hard, refuses=obj)
    refused = space.post("pods", obj).failure()
    assert (refused["code"], refused["message"]) == (403, f'pods "a" is forbidden: {why}')


def test_pods_count_until_they_have_ended(space: Space) -> None:
    quota(space, {"cpu": "2", "pods": "2"}, refuses=asking("a", requests={"cpu": "3"}))
    space.post("pods", asking("a", requests={"cpu": "1500m"})).ok()
    refused = space.post("pods", asking("b", requests={"cpu": "1"})).failure()
    message = "exceeded quota: q, requested: cpu=1, used: cpu=1500m, limited: cpu=2"
    assert refused["message"] == f'pods "b" is forbidden: {message}'
    space.post("pods", asking("b", requests={"cpu": "500m"})).ok()


def test_a_quota_of_another_scope_does_not_apply(space: Space) -> None:
    quota(space, {"pods": "0"}, scopes=["BestEffort"], refuses=asking("b"))
    space.post("pods", asking("a", requests={"cpu": "1"})).ok()
    assert space.post("pods", asking("b")).status == 403


OF_NOBODY_HIGH = {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "NotIn", "values": ["high"]}]}


def test_a_quota_for_all_classes_but_one_is_for_those_without_a_class_too(space: Space) -> None:
    quota(space, {"pods": "0"}, scopeSelector=OF_NOBODY_HIGH, refuses=asking("a"))
    refused = space.post("pods", asking("a")).failure()
    why = "exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0"
    assert (refused["code"], refused["message"]) == (403, f'pods "a" is forbidden: {why}')
