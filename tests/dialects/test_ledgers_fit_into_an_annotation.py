"""The compact ledger: what it holds comes back whole, it stays small, and it knows whose it is."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest
from msgspec.structs import replace

from kit.volcano_jobs import task, vcjob
from shoal.dialects import state_annotation
from shoal.dialects.dialect import StateUnreadable
from shoal.dialects.volcano import DIALECT
from shoal.engine import (
    AttemptState,
    FailureClass,
    Intent,
    Job,
    JobState,
    Outcome,
    RoleState,
    Run,
    SettledReason,
    Stage,
    Stamps,
    TaskState,
    compact_state,
)
from shoal.engine.policies import Memory
from shoal.kube.objects import Obj

NOW = datetime(2030, 1, 1, tzinfo=UTC)
GOOD, BAD = Outcome(FailureClass.OK, phrase="Succeeded"), Outcome(FailureClass.UNKNOWN, code=3, phrase="PodFailed")


def manifest(**annotations: str) -> Obj:
    made = DIALECT.default(vcjob("a", task(replicas=2)))
    made["metadata"] |= {"uid": "u", "namespace": "default", "annotations": annotations}
    return made


def job() -> Job:
    read = DIALECT.to_job(manifest(), DIALECT.settings(None))
    assert read is not None
    return read


def done(index: int, outcome: Outcome) -> TaskState:
    return TaskState(index, stage=Stage.DONE, had_pod=True, attempt=AttemptState(outcome=outcome))


STATE = JobState(
    run=Run(2, Stage.CLOSING, since=NOW, started=NOW, intent=Intent.HOLD, held=True),
    roles=(RoleState("worker", tasks=(done(0, GOOD), TaskState(1, had_pod=True), done(2, BAD), done(5, GOOD))),),
    charges={"": 2},
    settled={"pod-uid": SettledReason("worker", 1, "restart"), "ok:worker": SettledReason("worker", -1, "latched")},
    handled=("order-uid",),
    stamps=Stamps(started=NOW, held=NOW),
)


def test_what_is_written_is_read_again():
    stored = manifest(**{state_annotation.ANNOTATION: state_annotation.encode(job(), STATE)})
    assert state_annotation.restore(stored) == compact_state(STATE, Memory.ROSTER)


def test_ten_thousand_members_stay_small():
    tasks = tuple(done(index, GOOD if index % 2 else BAD) for index in range(10_000))
    state = JobState(run=Run(started=NOW), roles=(RoleState("worker", tasks=tasks),), stamps=Stamps(started=NOW))
    assert len(state_annotation.encode(job(), state)) < 200 * 1024


def leaving(count: int, reason: str = "restart") -> dict[str, SettledReason]:
    return {str(UUID(int=2**100 + number)): SettledReason("worker", number, reason) for number in range(count)}


def test_ten_thousand_pods_on_their_way_out_are_all_remembered():
    """Of a restart of a whole task, with its pods there and their successors born: below what annotations may hold."""
    tasks = tuple(TaskState(index, had_pod=True) for index in range(10_000))
    settled = {**leaving(10_000), "ok:ps": SettledReason("ps", -1, "latched")}
    state = replace(STATE, roles=(RoleState("worker", tasks=tasks),), settled=settled)
    text = state_annotation.encode(job(), state)
    assert len(text) < 208 * 1024
    restored = state_annotation.restore(manifest(**{state_annotation.ANNOTATION: text}))
    assert restored is not None
    assert restored.settled == settled


def test_two_bodies_of_one_place_are_both_remembered():
    settled = {**leaving(40), "5c0f2a52-6a0c-4d6b-8c83-0f6c3d4d3b1a": SettledReason("worker", 3, "restart"), **ODD}
    state = replace(STATE, settled=settled)
    restored = state_annotation.restore(
        manifest(**{state_annotation.ANNOTATION: state_annotation.encode(job(), state)})
    )
    assert restored is not None
    assert restored.settled == settled


ODD = {
    "5C0F2A52-6A0C-4D6B-8C83-0F6C3D4D3B1B": SettledReason("worker", 4, "restart"),
    "pod-uid": SettledReason("worker", 5, "retry", False),
}


def test_a_copied_manifest_brings_no_past():
    stored = manifest(**{state_annotation.ANNOTATION: state_annotation.encode(job(), STATE)})
    stored["metadata"]["uid"] = "another"
    assert state_annotation.restore(stored) is None
    assert DIALECT.load_state(stored) == JobState()


def test_nonsense_is_not_taken_for_a_new_job():
    with pytest.raises(StateUnreadable, match="was not written by an operator"):
        state_annotation.restore(manifest(**{state_annotation.ANNOTATION: '{"uid": 3}'}))


@pytest.mark.parametrize(
    ("phase", "ended", "intent", "number"),
    [("Completed", True, Intent.END, 2), ("Aborted", False, Intent.HOLD, 2), ("Running", False, None, 3)],
)
def test_a_lost_ledger_is_rebuilt_from_the_status(phase: str, ended: bool, intent: Intent | None, number: int):
    stored = manifest()
    state = {"phase": phase, "lastTransitionTime": "2030-01-01T00:00:00Z"}
    stored["status"] = {"state": state, "version": 3, "retryCount": 2}
    found = DIALECT.load_state(stored)
    assert (found.is_ended, found.run.intent, found.run.number, found.charged) == (ended, intent, number, 2)
