"""What the API says to a create: wait, or an outcome once a live look found nothing left behind."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kit.engine_jobs import fc_role, framework
from kit.engine_world import World, started
from shoal.engine import Delete, ObservedPod, Refused, Stage, TaskRef

REF = TaskRef("a", 0)


def refused(code: int, text: str, task: tuple[bool, int] = (True, 3)) -> World:
    world = World(framework(fc_role("a", 1, task=task)))
    world.refusals[REF] = Refused(REF, code, text)
    world.step()
    world.step()
    return world


@pytest.mark.parametrize(
    ("code", "text"),
    [(403, "pods is forbidden: exceeded quota"), (409, "exists"), (500, "down"), (429, "slow"), (0, "reset")],
)
def test_some_refusals_only_mean_to_wait(code: int, text: str):
    world = refused(code, text)
    step = world.step()
    assert (step.writes, world.story()) == ((), {"a-0": "waiting 0"})
    assert [each.reason for each in step.notifications] == ["FailedCreate"]
    world.settle()

    assert world.story() == {"a-0": "preparing 0"}


def test_an_invalid_body_ends_the_attempt_for_good_after_a_live_look():
    world = refused(422, "name is invalid")
    assert world.step().writes == (Delete(REF, "", confirm=True),)
    world.settle()

    record = world.task("a", 0)
    assert (record.stage, record.uid, record.outcome.code) == (Stage.DONE, None, -200)
    assert record.outcome.text == "Failed to create the pod: name is invalid"
    assert world.state.run.outcome.code == -200


def test_a_forbidden_body_is_tried_again_within_the_budget():
    world = refused(403, "forbidden by admission", task=(True, 1))
    world.settle()

    assert (world.task("a", 0).charged, world.story()) == (1, {"a-0": "preparing 1"})


def test_a_body_that_is_never_seen_is_given_up_after_the_creation_time_out():
    world = World(framework(fc_role("a", 1, task=(True, 0))))
    world.lost_creates.add(REF)
    step = world.settle()
    assert world.story() == {"a-0": "requested 0"}
    assert step.wake_at == world.now + timedelta(seconds=300)
    world.now = step.wake_at
    step = world.step()
    assert [write.confirm for write in step.writes if isinstance(write, Delete)] == [True]
    world.settle()

    assert (world.story(), world.task("a", 0).charged) == ({"a-0": "preparing 1"}, 0)


def test_a_foreign_body_under_the_name_is_left_alone_and_waited_for():
    world = World(framework(fc_role("a", 1)))
    world.pods["a-0"] = ObservedPod("foreign", "a-0", "a", 0, owned=False)
    assert world.settle().writes == ()
    assert world.story() == {"a-0": "waiting 0"}
    del world.pods["a-0"]
    world.settle()

    assert world.story() == {"a-0": "preparing 0"}


def test_an_ended_job_is_deleted_when_its_time_to_live_is_over():
    world = started(framework(fc_role("a", 1), ttl=5))
    world.exits("a-0", 0)
    step = world.settle()
    assert step.wake_at == world.now + timedelta(seconds=5)
    world.tick(4)
    world.step()
    assert not world.job_deleted
    world.tick(1)
    world.step()

    assert world.job_deleted
