"""Retry words and budgets, nested: how many bodies a task gets, what is charged, and what the run makes of it."""

from __future__ import annotations

from dataclasses import replace as with_fields
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kit.engine_jobs import batch, fc_role, framework, retry, t9
from kit.engine_world import World, started
from shoal.engine import FailureClass, NoticeKind, Outcome, Stage, advance
from shoal.engine.policies import ExponentialDelay, Retry, RetryDecision, UniformDelay
from shoal.engine.retry import retry_backoff

NATURES = [
    FailureClass.OK,
    FailureClass.TRANSIENT,
    FailureClass.UNKNOWN,
    FailureClass.PERMANENT,
    FailureClass.LOST,
    FailureClass.CONFLICT,
]

WORDS = {
    "fancy": (retry(True, 1), "dfcdff"),
    "plain": (retry(False, 1), "dccccc"),
    "fancy for ever": (retry(True, -2), "cfcdff"),
    "plain for ever": (retry(False, -2), "cccccc"),
    "never": (Retry.from_letters("ddddf"), "ddddfd"),
    "by exit code": (Retry.from_letters("dcddf"), "dcddfc"),
}


@pytest.mark.parametrize("word", WORDS)
def test_a_retry_word_answers_each_nature(word: str):
    policy, letters = WORDS[word]
    assert "".join(policy.decide(Outcome(nature)).value for nature in NATURES) == letters


@pytest.mark.parametrize("word", WORDS)
def test_no_retry_answers_a_final_outcome(word: str):
    policy, _ = WORDS[word]
    assert {policy.decide(Outcome(nature, final=True)) for nature in NATURES} == {RetryDecision.DONE}


def exhausted(world: World, name: str, code: int, limit: int = 9) -> int:
    """How many bodies the task had until nobody made another."""
    bodies = 0
    while name in world.pods and bodies < limit:
        bodies += 1
        world.exits(name, code)
        world.settle()
        world.tick(1)  # late attempts are spaced
        world.settle()
    return bodies


CASES = {
    # task retry, run retry, exit code: bodies, task charged and total, run charged and number, code of the end
    "success": ((True, 1), (True, 1), 0, (1, 0, 0, 0, 0, 0)),
    "permanent": ((True, 1), (True, 1), 210, (1, 0, 0, 0, 0, 210)),
    "unknown, nested": ((True, 1), (True, 1), 1, (4, 1, 1, 1, 1, 1)),
    "plain ignores the nature": ((False, 2), (False, 0), 210, (3, 2, 2, 0, 0, 210)),
}


@pytest.mark.parametrize("case", CASES)
def test_attempts_and_runs_share_out_their_budgets(case: str):
    task, run, code, expected = CASES[case]
    world = started(framework(fc_role("a", 1, task=task), run=run))
    bodies = exhausted(world, "a-0", code)

    record, job = world.task("a", 0), world.state
    assert (bodies, record.charged, record.attempt.number, job.charged, job.run.number) == expected[:5]
    assert (job.run.stage, job.run.outcome.code) == (Stage.DONE, expected[5])


@pytest.mark.parametrize(
    ("task", "code", "charged"),
    [((True, 1), 200, 0), ((False, -1), 1, 9), ((False, -2), 0, 9)],
    ids=["transient", "failures without limit", "a service"],
)
def test_some_tasks_are_tried_for_ever(task: tuple[bool, int], code: int, charged: int):
    world = started(framework(fc_role("a", 1, task=task)))
    assert exhausted(world, "a-0", code) == 9

    record = world.task("a", 0)
    assert (record.attempt.number, record.charged, world.state.run.number) == (9, charged, 0)


def test_each_retry_is_told_before_the_record_is_dropped():
    world = started(framework(fc_role("a", 1, task=(True, 1)), run=(True, 1)))
    exhausted(world, "a-0", 1)
    told = [notice for step in world.steps for notice in step.notices]

    assert [notice.kind for notice in told] == [NoticeKind.TASK_RETRY, NoticeKind.JOB_RETRY, NoticeKind.TASK_RETRY]
    assert told[0].record.stage is Stage.OVER
    assert told[1].record.run.stage is Stage.OVER


def test_a_conflict_delays_the_next_run_and_costs_nothing():
    world = started(framework(fc_role("a", 1), run=(True, 1)))
    world.exits("a-0", 201)
    step = world.settle()
    assert (world.state.run.delay_seconds, step.wake_at) == (5, world.now + timedelta(seconds=5))
    world.tick(4)
    world.settle()
    assert world.state.run.number == 0
    world.tick(1)
    world.settle()

    assert (world.state.run.number, world.state.run.delay_seconds, world.state.charged) == (1, None, 0)
    assert sorted(world.pods) == ["a-0"]


@given(st.text(max_size=8))
@settings(max_examples=30, deadline=None)
def test_a_random_delay_lies_in_its_bounds_and_depends_on_the_nonce_alone(nonce: str):
    job = framework(fc_role("a", 1), run=(True, 1))
    slow = with_fields(job.policies.run_retry, delay=UniformDelay(60, 64))
    world = started(with_fields(job, policies=with_fields(job.policies, run_retry=slow)))
    world.delete_anchor()
    world.step()
    world.reap()
    outcome = Outcome(FailureClass.CONFLICT, 201)
    state = replace(world.state, run=replace(world.state.run, outcome=outcome))
    observed = replace(world.observed(), nonce=nonce)
    delays = {advance(world.job, state, observed, world.now).state.run.delay_seconds for _ in range(2)}

    assert len(delays) == 1
    assert delays <= set(range(60, 65))


def test_several_failures_take_one_budget_in_rank_order():
    world = started(t9(4, backoff=2))
    for index in (3, 2, 1):
        world.exits(f"worker-{index}", 137)
    world.settle()

    assert world.state.charges == {"": 2, "worker": 2}
    assert world.story() == {
        "worker-0": "running 0",
        "worker-1": "preparing 1",
        "worker-2": "preparing 1",
        "worker-3": "done 0 137",
    }


def test_where_failures_are_counted_the_one_too_many_fails_the_job():
    world = started(batch(parallelism=1, completions=1, backoff=1))
    for expected in ({"": 1, "main": 1}, {"": 2, "main": 2}):
        living = [name for name, pod in world.pods.items() if not pod.is_finished]
        world.exits(living[0], 1)
        world.settle()
        assert world.state.charges == expected

    assert (world.state.run.stage, world.state.run.outcome.is_ok) == (Stage.DONE, False)
    assert all(pod.is_finished and not pod.finalizer for pod in world.pods.values())


def test_an_exponential_delay_doubles_and_is_kept_in_the_ledger():
    job = t9(1, minimum=1, retry=Retry.from_letters("dcddf", ExponentialDelay(10, 25)), backoff=9)
    world = started(job)
    waits = []
    for _ in range(3):
        world.exits("worker-0", 137)
        step = world.settle()
        assert step.wake_at is not None
        waits.append((step.wake_at - world.now).seconds)
        world.now = step.wake_at
        world.settle()

    assert waits == [10, 20, 25]
    assert sorted(world.pods) == ["worker-0"]


BACKOFF = {
    "none": (None, FailureClass.TRANSIENT, 3, {0}),
    "doubled with each charge": (ExponentialDelay(10, 600), FailureClass.TRANSIENT, 2, {40}),
    "at most the cap": (ExponentialDelay(10, 600), FailureClass.UNKNOWN, 99, {600}),
    "random after a conflict": (UniformDelay(5, 7), FailureClass.CONFLICT, 0, {5, 6, 7}),
    "none after another failure": (UniformDelay(5, 7), FailureClass.TRANSIENT, 0, {0}),
}


@pytest.mark.parametrize("case", BACKOFF)
def test_the_backoff_follows_from_delay_failure_and_seed(case: str) -> None:
    delay, failure_class, charged, expected = BACKOFF[case]
    seconds = {retry_backoff(delay, Outcome(failure_class), charged=charged, seed=str(seed)) for seed in range(50)}
    assert seconds == expected
