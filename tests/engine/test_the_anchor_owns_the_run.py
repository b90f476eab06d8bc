"""The object that owns all bodies of a run: made first, its loss ends the run, and the run is over when it is gone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kit.engine_jobs import ANCHOR_GONE, ANCHOR_LEAVING, fc_role, framework
from kit.engine_world import World, started
from shoal.engine import Create, Delete, ObservedRunOwner, RunOwnerRef, Stage


def test_the_anchor_is_made_and_seen_before_any_body():
    world = World(framework(fc_role("a", 2)))
    assert [write.target for write in world.step().writes] == [RunOwnerRef()]
    second = world.step()
    assert [str(write.target) for write in second.writes] == ["a-0", "a-1"]
    assert {write.build_context.run_owner for write in second.writes if isinstance(write, Create)} == {
        world.run_owner.uid
    }


def test_losing_the_anchor_ends_the_run_and_a_free_retry_opens_the_next():
    world = started(framework(fc_role("a", 2), run=(True, 0)))
    old = world.run_owner.uid
    world.delete_anchor()
    world.step()
    assert (world.state.run.stage, world.state.run.outcome) == (Stage.LEAVING, ANCHOR_LEAVING)
    assert world.story() == {"a-0": "leaving 0 -220", "a-1": "leaving 0 -220"}
    world.settle()

    assert (world.state.run.number, world.state.charged) == (1, 0)
    assert world.run_owner is not None
    assert world.run_owner.uid != old
    assert world.story() == {"a-0": "preparing 0", "a-1": "preparing 0"}


def test_an_anchor_that_vanished_unseen_ends_the_run_at_once():
    world = started(framework(fc_role("a", 2)))
    world.run_owner, world.pods = None, {}
    world.settle()

    assert (world.state.run.stage, world.state.run.outcome) == (Stage.DONE, ANCHOR_GONE)
    assert set(world.story().values()) == {"done 0 -220"}


def test_a_run_is_over_only_when_the_anchor_is_gone():
    world = started(framework(fc_role("a", 2)))
    world.delete_anchor()
    world.settle(reap=False)
    assert world.state.run.stage is Stage.LEAVING
    world.reap("a-0")
    world.settle(reap=False)
    assert world.state.run.stage is Stage.LEAVING
    world.settle()
    assert world.state.run.stage is Stage.DONE


def test_a_job_that_is_being_deleted_opens_no_further_run():
    world = started(framework(fc_role("a", 2), run=(True, 5)))
    world.edit(lambda job: replace(job, deleting=True))
    world.delete_anchor()
    world.settle()

    assert (world.run_owner, world.pods, world.state.run.number) == (None, {}, 0)
    assert world.state.run.outcome == ANCHOR_LEAVING


def test_an_anchor_created_right_before_a_crash_is_adopted_by_its_run():
    world = World(framework(fc_role("a", 1)))
    world.step(crash_after=1)
    created = world.run_owner
    world.settle()

    assert world.run_owner == created
    assert (world.state.run.stage, world.state.run.run_owner) == (Stage.PREPARING, created.uid)


@pytest.mark.parametrize("run", [None, 1], ids=["without a stamp", "stamped for another run"])
def test_a_leftover_anchor_of_ours_goes_before_the_run_gets_its_own(run: int | None):
    world = World(framework(fc_role("a", 1)))
    world.run_owner = ObservedRunOwner("leftover", run=run)
    assert world.step().writes == (Delete(RunOwnerRef(), "leftover"),)
    world.settle()

    assert world.state.run.stage is Stage.PREPARING
    assert world.run_owner is not None
    assert world.run_owner.uid != "leftover"


def test_a_foreign_object_under_the_name_is_left_alone_and_waited_for():
    world = World(framework(fc_role("a", 1)))
    world.run_owner = ObservedRunOwner("foreign", owned=False)
    assert world.settle().writes == ()
    world.run_owner = None
    world.settle()

    assert world.state.run.stage is Stage.PREPARING


def test_an_anchor_that_is_never_seen_ends_the_run_after_the_creation_time_out():
    world = World(framework(fc_role("a", 1)))
    world.step()
    uid = world.run_owner.uid
    world.run_owner = None
    step = world.settle()
    assert step.wake_at is not None
    world.now = step.wake_at
    assert world.step().writes == (Delete(RunOwnerRef(), uid, confirm=True),)
    world.settle()

    assert world.state.run.outcome is not None
    assert (world.state.run.stage, world.state.run.outcome.code) == (Stage.DONE, -110)
    assert world.state.run.run_owner == uid
