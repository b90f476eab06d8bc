"""Responses reach the next pass, and creates every pass until a stored job state includes them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from shoal.engine import (
    Accepted,
    AttemptState,
    Created,
    Gone,
    JobState,
    Refused,
    RoleState,
    Run,
    RunOwnerRef,
    SettledReason,
    Stage,
    Target,
    TaskRef,
    TaskState,
    WriteResult,
)
from shoal.operator.expectations import Expectations, OwnWrites, with_unobserved_creates

OWNER, FIRST, SECOND = RunOwnerRef(), TaskRef("worker", 0), TaskRef("worker", 1)
OWNER_CREATED, FIRST_CREATED, SECOND_CREATED = (
    Created(OWNER, "uid-o"),
    Created(FIRST, "uid-1"),
    Created(SECOND, "uid-2"),
)
SETTLED = {"uid-1": SettledReason("worker", 0, "retry")}


def waiting(index: int = 0, *, attempt: int = 0, **fields: Any) -> TaskState:
    return TaskState(index, attempt=AttemptState(number=attempt), **fields)


def requested(index: int = 0, uid: str = "uid-1", *, instance: str = "") -> TaskState:
    attempt = AttemptState(uid=uid)
    return TaskState(index, instance=instance, stage=Stage.REQUESTED, had_pod=True, attempt=attempt)


def job_state(*tasks: TaskState, run: int = 0, settled: dict[str, SettledReason] | None = None) -> JobState:
    return JobState(run=Run(number=run), roles=(RoleState("worker", tasks=tasks),), settled=settled or {})


def answer(expectations: Expectations, *results: WriteResult, cached: Collection[str] = ()) -> None:
    expectations.set_expectations(results, is_cached=lambda uid: uid in cached)


def expecting(*results: WriteResult) -> Expectations:
    expectations = Expectations()
    answer(expectations, *results)
    return expectations


# Responses


def test_every_response_reaches_one_pass() -> None:
    results = (FIRST_CREATED, Refused(SECOND, 403, "forbidden"), Accepted(OWNER, "uid-o"))
    expectations = expecting(*results)
    assert expectations.begin_pass(job_state()) == results
    expectations.end_pass(is_stored=True)
    assert (expectations.begin_pass(job_state()), expectations.is_satisfied) == ((), True)


def test_a_pass_that_failed_is_repeated_with_the_same_responses() -> None:
    expectations = expecting(FIRST_CREATED)
    expectations.begin_pass(job_state())
    assert expectations.begin_pass(job_state()) == (FIRST_CREATED,)


def test_creates_reach_every_pass_until_a_job_state_with_them_is_stored() -> None:
    expectations = expecting(FIRST_CREATED, Accepted(OWNER, "uid-o"))
    expectations.end_pass(is_stored=False)
    answer(expectations, SECOND_CREATED)
    assert expectations.begin_pass(job_state()) == (FIRST_CREATED, SECOND_CREATED)
    expectations.end_pass(is_stored=False)
    assert not expectations.is_satisfied
    expectations.end_pass(is_stored=True)
    assert expectations.is_satisfied


def test_a_job_that_is_given_up_expects_no_creates() -> None:
    expectations = expecting(FIRST_CREATED)
    expectations.end_pass(is_stored=False)
    answer(expectations, SECOND_CREATED)
    expectations.abandon_pass()
    assert expectations.is_satisfied


@pytest.mark.parametrize(
    ("stored", "left"),
    [
        pytest.param(job_state(waiting(), waiting(1)), {OWNER, FIRST, SECOND}, id="same attempts"),
        pytest.param(job_state(waiting(attempt=1), waiting(1)), {OWNER, SECOND}, id="next attempt"),
        pytest.param(job_state(waiting(instance="b"), waiting(1)), {OWNER, SECOND}, id="another instance"),
        pytest.param(job_state(waiting(1)), {OWNER, SECOND}, id="task removed"),
        pytest.param(job_state(waiting(), waiting(1), settled=SETTLED), {OWNER, SECOND}, id="pod settled"),
        pytest.param(job_state(waiting(), waiting(1), run=1), set(), id="next run"),
    ],
)
def test_what_the_stored_job_state_includes_is_not_expected(stored: JobState, left: set[Target]) -> None:
    expectations = expecting(OWNER_CREATED, FIRST_CREATED)
    expectations.end_pass(is_stored=False)
    answer(expectations, SECOND_CREATED)
    expectations.drop_stored(job_state(waiting(), waiting(1)), stored)
    assert {result.target for result in expectations.begin_pass(stored)} == left


# Names


def test_a_create_without_a_response_keeps_its_name_until_it_is_answered() -> None:
    expectations = Expectations()
    expectations.create_unanswered(FIRST, "job-x7k2p")
    assert [expectations.expected_name(target) for target in (FIRST, SECOND)] == ["job-x7k2p", ""]
    expectations.create_answered(FIRST)
    expectations.create_answered(SECOND)
    assert expectations.expected_name(FIRST) == ""


# Deletions


def test_a_confirmed_deletion_counts_while_an_informer_shows_the_object() -> None:
    expectations = expecting(Gone(FIRST, "uid-1"), Gone(SECOND, ""))
    expectations.end_pass(is_stored=True)
    assert (expectations.deleted_uids, expectations.is_satisfied) == ({"uid-1"}, False)
    answer(expectations, Gone(SECOND, "uid-2"), cached={"uid-1"})
    assert expectations.deleted_uids == {"uid-1", "uid-2"}
    answer(expectations, cached={"uid-2"})
    assert expectations.deleted_uids == {"uid-2"}


def test_a_pod_deleted_before_any_pass_saw_it_is_reported_as_gone() -> None:
    expectations = expecting(FIRST_CREATED)
    expectations.deletion_observed("uid-1")
    expectations.deletion_observed("uid-2")  # created by a process before this one
    expectations.deletion_observed("uid-3")  # seen, and running
    running = TaskState(2, stage=Stage.RUNNING, attempt=AttemptState(uid="uid-3"))
    state = job_state(waiting(), requested(1, "uid-2"), running)
    assert expectations.begin_pass(state) == (FIRST_CREATED, Gone(FIRST, "uid-1"), Gone(SECOND, "uid-2"))


def test_a_deletion_observed_before_the_create_is_answered_is_not_lost() -> None:
    expectations = Expectations()
    expectations.deletion_observed("uid-1")
    answer(expectations, FIRST_CREATED)
    assert expectations.begin_pass(job_state(waiting())) == (FIRST_CREATED, Gone(FIRST, "uid-1"))


def test_a_deletion_observed_during_a_pass_is_for_the_next() -> None:
    expectations, state = Expectations(), job_state(requested(0, "uid-1"), requested(1, "uid-2"))
    expectations.deletion_observed("uid-1")
    assert expectations.begin_pass(state) == (Gone(FIRST, "uid-1"),)
    expectations.deletion_observed("uid-2")
    expectations.end_pass(is_stored=True)
    assert expectations.begin_pass(state) == (Gone(SECOND, "uid-2"),)
    expectations.end_pass(is_stored=True)
    assert expectations.is_satisfied


# The job's own versions


def test_only_the_version_of_the_last_write_is_an_echo() -> None:
    writes = OwnWrites()
    assert not writes.is_own_version("7")
    for version in ("7", "9"):
        writes.expect_version(version)
    assert [writes.is_own_version(version) for version in ("7", "8", "9")] == [False, False, True]


def test_an_event_during_a_write_waits_for_its_end() -> None:
    writes = OwnWrites()
    writes.write_sent()
    assert writes.is_pending
    writes.postpone_event()
    assert (writes.write_ended(), writes.is_pending) == (True, False)
    writes.write_sent()
    assert not writes.write_ended()


# A stored job state that was read again


@pytest.mark.parametrize(
    ("before", "stored", "merged"),
    [
        pytest.param(
            requested(instance="a"), waiting(instance="a", had_pod=True), requested(instance="a"), id="created"
        ),
        pytest.param(requested(instance="a"), waiting(instance="a"), waiting(instance="a"), id="its pod vanished"),
        pytest.param(requested(), waiting(), requested(), id="no instances are stored"),
        pytest.param(requested(), waiting(charged=1), waiting(charged=1), id="a retry was decided"),
        pytest.param(waiting(), waiting(attempt=1), waiting(attempt=1), id="nothing was created"),
    ],
)
def test_a_pod_that_no_informer_shows_is_added_to_the_stored_job_state(
    before: TaskState, stored: TaskState, merged: TaskState
) -> None:
    assert with_unobserved_creates(job_state(stored), job_state(before)) == job_state(merged)


def test_a_pod_that_no_informer_shows_is_added_where_the_stored_job_state_lists_no_living_tasks() -> None:
    before = job_state(requested(1, "uid-2"), requested(0, "uid-1"))
    assert with_unobserved_creates(JobState(), before) == job_state(requested(0, "uid-1"), requested(1, "uid-2"))


def test_a_settled_pod_or_one_of_a_former_run_is_not_added_to_the_stored_job_state() -> None:
    settled, next_run = job_state(waiting(), settled=SETTLED), job_state(waiting(), run=1)
    for stored in (settled, next_run):
        assert with_unobserved_creates(stored, job_state(requested())) == stored
