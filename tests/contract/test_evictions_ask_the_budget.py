"""An eviction asks the disruption budgets of the pod first, and is taken from what they allow."""

from __future__ import annotations

import pytest

from kit.api_objects import pod
from kit.raw_api import Obj, Space

POLICY = "policy/v1"
MESSAGE = "Cannot evict pod as it would violate the pod's disruption budget."
EVICTION: Obj = {"apiVersion": POLICY, "kind": "Eviction", "metadata": {"name": "a"}}
READY: Obj = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def budget(space: Space, name: str, *, allowed: int, observed: int = 1, **labels: str) -> None:
    spec = {"minAvailable": 1, "selector": {"matchLabels": labels}}
    made = {"apiVersion": POLICY, "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": spec}
    space.post("poddisruptionbudgets", made, group=POLICY).ok()
    counted = {"currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1, "observedGeneration": observed}
    status = {"status": counted | {"disruptionsAllowed": allowed}}
    space.patch(f"poddisruptionbudgets/{name}/status", status, group=POLICY).ok()


def running(space: Space, status: Obj = READY) -> None:
    made = pod("a", nodeName="n1")
    made["metadata"]["labels"] = {"app": "a"}
    space.post("pods", made).ok()
    space.patch("pods/a/status", {"status": status}).ok()


def test_a_budget_with_nothing_left_keeps_the_pod(space: Space) -> None:
    running(space)
    budget(space, "b", allowed=0, app="a")
    refused = space.post("pods/a/eviction", EVICTION).failure()
    cause = {
        "reason": "DisruptionBudget",
        "message": "The disruption budget b needs 1 healthy pods and has 1 currently",
    }
    assert (refused["code"], refused["reason"], refused["message"]) == (429, "TooManyRequests", MESSAGE)
    assert refused["details"]["causes"] == [cause]
    assert "deletionTimestamp" not in space.get("pods/a").ok()["metadata"]


def test_what_is_evicted_is_taken_from_the_budget(space: Space) -> None:
    running(space)
    budget(space, "b", allowed=1, app="a")
    assert space.post("pods/a/eviction", EVICTION).status == 201
    status = space.get("poddisruptionbudgets/b", group=POLICY).ok()["status"]
    assert (status["disruptionsAllowed"], list(status["disruptedPods"])) == (0, ["a"])


UNMET: dict[str, Obj] = {"another version": {"resourceVersion": "1"}, "another pod": {"uid": "nobody"}}


@pytest.mark.parametrize("wanted", UNMET.values(), ids=UNMET)
def test_what_is_not_evicted_stays(space: Space, wanted: Obj) -> None:
    running(space)
    budget(space, "b", allowed=1, app="a")
    refused = space.post("pods/a/eviction", EVICTION | {"deleteOptions": {"preconditions": wanted}}).failure()
    assert refused["code"] == 409
    assert "deletionTimestamp" not in space.get("pods/a").ok()["metadata"]


def test_an_unprocessed_budget_allows_no_eviction(space: Space) -> None:
    running(space)
    budget(space, "b", allowed=1, observed=0, app="a")
    refused = space.post("pods/a/eviction", EVICTION).failure()
    message = "The disruption budget b is still being processed by the server."
    assert (refused["code"], refused["details"]["causes"]) == (
        429,
        [{"reason": "DisruptionBudget", "message": message}],
    )


def test_two_budgets_for_one_pod_are_one_too_many(space: Space) -> None:
    running(space)
    budget(space, "b", allowed=1, app="a")
    budget(space, "c", allowed=1, app="a")
    refused = space.post("pods/a/eviction", EVICTION).failure()
    message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
    assert (refused["code"], refused["message"]) == (500, message)


NOT_COUNTED: dict[str, tuple[Obj, str]] = {
    "other labels": (READY, "other"),
    "a pod that does not run yet": ({"phase": "Pending"}, "a"),
}


@pytest.mark.parametrize(("status", "app"), NOT_COUNTED.values(), ids=NOT_COUNTED)
def test_a_pod_that_no_budget_counts_goes(space: Space, status: Obj, app: str) -> None:
    running(space, status)
    budget(space, "b", allowed=0, app=app)
    assert space.post("pods/a/eviction", EVICTION).status == 201
