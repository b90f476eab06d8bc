"""`shoal events JOB` includes the Events of pods that no longer exist, and none of other jobs."""

from __future__ import annotations

import pytest

from kit.frameworks import framework, role
from kit.native_world import job
from shoal.cli.commands.events import events_of
from shoal.cli.job_lookup import FoundJob
from shoal.dialects import dialect_of
from shoal.dialects.framework import DIALECT
from shoal.engine import JobState, RoleState
from shoal.kube.objects import Obj

CREATED, BEFORE = "2030-01-01T00:00:00Z", "2029-12-31T00:00:00Z"


def event(name: str, *, uid: str = "gone", kind: str = "Pod", at: str = CREATED) -> Obj:
    return {"metadata": {}, "involvedObject": {"kind": kind, "name": name, "uid": uid}, "lastTimestamp": at}


def pet() -> FoundJob:
    manifest = framework(role("worker", 2), name="pet")
    manifest["metadata"] |= {"uid": "pet", "creationTimestamp": CREATED}
    return FoundJob(manifest, DIALECT)


FRAMEWORK: dict[str, tuple[Obj, bool]] = {
    "the job": (event("pet", uid="pet", kind="Framework"), True),
    "a deleted pod": (event("pet-worker-1"), True),
    "a pod of an earlier job of this name": (event("pet-worker-1", at=BEFORE), False),
    "a pod of another job": (event("pet-2-worker-1"), False),
    "a pod of another owner that exists": (event("pet-worker-1", uid="other"), False),
    "another object": (event("pet-worker-1", kind="Service"), False),
}


@pytest.mark.parametrize("case", FRAMEWORK)
def test_events_of_a_framework(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FoundJob, "state", JobState(roles=(RoleState("worker"),)))
    found, is_listed = FRAMEWORK[case]
    other: Obj = {"metadata": {"name": "pet-worker-1", "uid": "other", "namespace": "default"}, "spec": {}}
    assert events_of(pet(), [found], [other]) == [found] * is_listed


@pytest.mark.parametrize(
    ("name", "is_listed"), [("a-x7k2q", True), ("a-3-x7k2q", True), ("a-b-x7k2q", False), ("ab-x7k2q", False)]
)
def test_events_of_a_batch_job(name: str, is_listed: bool) -> None:
    manifest = job("a", completions=2)
    manifest["metadata"] |= {"uid": "a", "namespace": "default", "creationTimestamp": CREATED}
    dialect = dialect_of("batch/v1", "Job")
    assert dialect is not None
    assert events_of(FoundJob(manifest, dialect), [event(name)], []) == [event(name)] * is_listed
