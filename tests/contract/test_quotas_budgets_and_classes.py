"""Quotas, disruption budgets and storage classes are kept as a real server keeps them, and refused as it does."""

from __future__ import annotations

from typing import Any

import pytest

from kit.raw_api import Obj, Space

POLICY, STORAGE = "policy/v1", "storage.k8s.io/v1"
PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)
CHOSEN = {"matchLabels": {"app": "a"}}


def quota(**hard: str) -> Obj:
    limits = {name.replace("__", "."): amount for name, amount in hard.items()}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": limits}}


def budget(**spec: Any) -> Obj:
    made = {"metadata": {"name": "b"}, "spec": {"selector": CHOSEN, **spec}}
    return {"apiVersion": POLICY, "kind": "PodDisruptionBudget", **made}


def storage_class(name: str, **more: Any) -> Obj:
    made = {"apiVersion": STORAGE, "kind": "StorageClass", "metadata": {"name": name}, "provisioner": "acme.io/disks"}
    return made | more


def test_amounts_of_a_quota_are_stored_in_canonical_form(space: Space) -> None:
    made = space.post("resourcequotas", quota(requests__cpu="0.5", pods="3", memory="1024Mi")).ok()
    assert made["spec"] == {"hard": {"requests.cpu": "500m", "pods": "3", "memory": "1Gi"}}


def test_a_budget_counts_its_generations_and_begins_with_nothing_allowed(space: Space) -> None:
    made = space.post("poddisruptionbudgets", budget(minAvailable=1), group=POLICY).ok()
    nothing = {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0}
    assert (made["metadata"]["generation"], made["status"]) == (1, nothing)
    changed = space.patch("poddisruptionbudgets/b", {"spec": {"minAvailable": "50%"}}, group=POLICY).ok()
    assert (changed["metadata"]["generation"], changed["spec"]) == (2, {"minAvailable": "50%", "selector": CHOSEN})


def test_a_storage_class_has_a_binding_mode_and_a_reclaim_policy(space: Space) -> None:
    path = f"/apis/{STORAGE}/storageclasses"
    made = space.api.post(path, storage_class(space.name)).ok()
    assert (made["reclaimPolicy"], made["volumeBindingMode"]) == ("Delete", "Immediate")
    refused = space.api.patch(f"{path}/{space.name}", {"volumeBindingMode": "WaitForFirstConsumer"}).failure()
    space.api.delete(f"{path}/{space.name}").ok()
    field, message = "volumeBindingMode", 'Invalid value: "WaitForFirstConsumer": field is immutable'
    assert refused["details"]["causes"] == [{"reason": "FieldValueInvalid", "message": message, "field": field}]


REFUSED = {
    "negative quota": ("resourcequotas", "", quota(pods="-1"), ["spec.hard[pods]: Invalid value: "]),
    "two numbers": (
        "poddisruptionbudgets",
        POLICY,
        budget(minAvailable=1, maxUnavailable=1),
        ["spec: Invalid value: "],
    ),
    "no percent": (
        "poddisruptionbudgets",
        POLICY,
        budget(minAvailable="half"),
        [f'spec.minAvailable: Invalid value: "half": {PERCENT}'],
    ),
    "negative budget": (
        "poddisruptionbudgets",
        POLICY,
        budget(maxUnavailable=-1),
        ["spec.maxUnavailable: Invalid value: -1: must be greater than or equal to 0"],
    ),
}


@pytest.mark.parametrize(("resource", "group", "obj", "causes"), REFUSED.values(), ids=REFUSED)
def test_what_makes_no_sense_is_refused(space: Space, resource: str, group: str, obj: Obj, causes: list[str]) -> None:
    found = space.post(resource, obj, group=group).failure()
    messages = [f"{each['field']}: {each['message']}" for each in found["details"]["causes"]]
    assert [text[: len(known)] for text, known in zip(messages, causes, strict=True)] == causes
