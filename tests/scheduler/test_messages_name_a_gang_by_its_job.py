"""Gangs are called after their job and its uid; messages leave the uid out, and touch no other name."""

from __future__ import annotations

import pytest

from shoal.kube.objects import Obj
from shoal.scheduler.planner.from_objects import group_from
from shoal.scheduler.planner.gang import Gang

UID = "0b6c3f5e-1d2a-4b7c-8e9f-a0b1c2d3e4f5"
OTHER = "5487ce1e-af19-422a-99b8-a714e61a441c"

CASES = {
    "a gang": (f"train-{UID}", UID, "train"),
    "a gang of a later stage": (f"train-{UID}-1", UID, "train-1"),
    "a name of its own": ("train", UID, "train"),
    "a uid of another object": (f"train-{OTHER}", UID, f"train-{OTHER}"),
    "a group that nobody owns": (f"train-{UID}", "", f"train-{UID}"),
    "a group that was made for pods": (f"podgroup-{UID}", UID, f"podgroup-{UID}"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_name_in_messages(case: str) -> None:
    name, owner, expected = CASES[case]
    metadata: Obj = {"name": name, "namespace": "default", "creationTimestamp": "2030-01-01T00:00:00Z", "uid": "u"}
    if owner:
        metadata["ownerReferences"] = [{"kind": "Job", "name": "train", "uid": owner, "controller": True}]
    assert Gang(group_from({"metadata": metadata, "spec": {}}), known=True).name == expected
