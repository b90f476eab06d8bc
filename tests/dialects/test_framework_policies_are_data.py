"""What a Framework asks of the engine: retries, completion, deletion and clocks as values."""

from __future__ import annotations

import pytest

from kit.frameworks import framework, pet, role
from shoal.dialects.framework import DIALECT, settings
from shoal.dialects.framework.controller_outcomes import CUT_OFF, SCALED_AWAY, STOP_REQUESTED
from shoal.engine import FailureClass, Job, Outcome
from shoal.engine.policies import (
    ALL,
    Bound,
    BudgetScope,
    BudgetUnit,
    CompletionRule,
    CountCondition,
    EarliestOf,
    ExternalGate,
    KeepPods,
    Propagation,
    RetryBudget,
    RetryDecision,
    Tally,
    Teardown,
    TeardownVia,
    Timeouts,
    UniformDelay,
)
from shoal.kube.objects import Obj


def job(manifest: Obj) -> Job:
    read = DIALECT.to_job(manifest, settings())
    assert read is not None
    return read


# fancy, max -> answers to success, transient, conflict, unknown, permanent, lost; permits
WORDS = [
    (False, -2, "cccccc", None),
    (False, -1, "dccccc", None),
    (False, 0, "dccccc", 0),
    (False, 3, "dccccc", 3),
    (True, -2, "cffcdf", None),
    (True, -1, "dffcdf", None),
    (True, 0, "dffcdf", 0),
    (True, 3, "dffcdf", 3),
]
NATURES = (
    FailureClass.OK,
    FailureClass.TRANSIENT,
    FailureClass.CONFLICT,
    FailureClass.UNKNOWN,
    FailureClass.PERMANENT,
    FailureClass.LOST,
)


@pytest.mark.parametrize(("fancy", "most", "letters", "permits"), WORDS, ids=[f"{f}/{m}" for f, m, _, _ in WORDS])
def test_retry_policies_answer_by_nature(fancy: bool, most: int, letters: str, permits: int | None):
    read = job(framework(role(retry=(fancy, most)), retry=(fancy, most)))
    (worker,), run = read.roles, read.policies.run_retry

    assert run is not None
    for retry in (worker.retry, run):
        assert [retry.decide(Outcome(nature)) for nature in NATURES] == [RetryDecision(letter) for letter in letters]
    assert worker.budget == RetryBudget(BudgetUnit.ATTEMPTS, BudgetScope.TASK, permits)
    assert read.policies.budgets == (RetryBudget(BudgetUnit.ATTEMPTS, BudgetScope.JOB, permits),)


@pytest.mark.parametrize("outcome", [STOP_REQUESTED, CUT_OFF, SCALED_AWAY], ids=lambda outcome: str(outcome.code))
def test_no_policy_retries_what_was_asked_for(outcome: Outcome):
    (worker,) = job(framework(role(retry=(True, -2)))).roles

    assert worker.retry.decide(outcome) is RetryDecision.DONE


def test_only_a_fancy_framework_waits_after_a_conflict():
    fancy, plain = (job(framework(role(retry=(True, 1)), retry=(is_fancy, 1))) for is_fancy in (True, False))

    assert fancy.policies.run_retry is not None
    assert plain.policies.run_retry is not None
    assert fancy.policies.run_retry.delay == UniformDelay(60, 900)
    assert plain.policies.run_retry.delay is None
    assert fancy.roles[0].retry.delay is None


def test_counts_decide_in_the_order_of_the_spec_and_then_all_being_done():
    earliest, all_done = job(pet()).policies.completion.rules

    assert isinstance(earliest, EarliestOf)
    assert isinstance(all_done, CompletionRule)
    assert [when.conditions for when in earliest.rules] == [
        (CountCondition(Tally.BAD, of="etcd", at_least=1),),
        (CountCondition(Tally.BAD, of="worker", at_least=1),),
        (CountCondition(Tally.OK, of="worker", at_least=4),),
    ]
    assert all(when.inherits and when.names_trigger for when in earliest.rules)
    assert all_done.conditions == (CountCondition(Tally.DONE, of=ALL, at_least=Bound.SIZE),)
    assert not all_done.inherits


@pytest.mark.parametrize("off", [-1, 0])
def test_counts_below_one_decide_nothing(off: int):
    earliest, _ = job(framework(role(failed=off, succeeded=off))).policies.completion.rules

    assert earliest == EarliestOf(())


def test_pods_go_with_their_anchor_and_by_force_when_their_time_is_up():
    read = job(pet())

    assert read.policies.teardown == Teardown(
        at_done=KeepPods.NONE, at_end=KeepPods.NONE, via=TeardownVia.RUN_OWNER, cut=CUT_OFF
    )
    assert [each.force_after_seconds for each in read.roles] == [1800, 1800]
    assert read.policies.clock == Timeouts(
        ttl_seconds=2_592_000, propagation=Propagation.FOREGROUND, creation_seconds=300
    )


@pytest.mark.parametrize(
    ("start", "is_open", "stops"), [("Create", False, False), ("Start", True, False), ("Stop", True, True)]
)
def test_the_execution_type_is_a_gate_and_a_wish(start: str, is_open: bool, stops: bool):
    read = job(framework(role(), start=start))

    assert read.policies.gates == (ExternalGate(is_open, message="The Framework waits for executionType Start"),)
    assert read.stop is stops


def test_a_framework_under_deletion_says_so():
    manifest = framework(role())
    manifest["metadata"]["deletionTimestamp"] = "2026-11-16T04:00:00Z"

    assert job(manifest).deleting


def test_an_unchanged_spec_is_understood_once():
    config = settings()
    first, again = (DIALECT.to_job(framework(role()), config) for _ in range(2))

    assert first is not None
    assert again is not None
    assert first == again
    assert first.policies is again.policies
