"""The one function a job may carry: it blocks creations or deletions for a while, and remembers why."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from kit.engine_jobs import resized, t9
from kit.engine_world import started
from shoal.engine import Delete, GuardResult, Job, PatchPod, TaskRef
from shoal.engine.messages import CATALOG


def checkpoint_first(job: Job, memo: Any, context: Any, now: datetime) -> GuardResult:
    """Blocks deletions until it was asked twice."""
    asked = (memo or 0) + (1 if context.settled_pods else 0)
    if asked > 1:
        return GuardResult(memo=asked)
    return GuardResult(asked, frozenset({"delete"}), (PatchPod("x", {}),) if asked else (), "waits for a checkpoint")


def test_a_guard_delays_a_delete_and_its_memo_is_kept():
    world = started(replace(t9(3), guard=checkpoint_first))
    world.edit(lambda job: resized(job, worker=2))
    first = world.step()
    assert first.writes[0] == PatchPod("x", {})
    assert not [write for write in first.writes if isinstance(write, Delete) and isinstance(write.target, TaskRef)]
    assert first.state.memo == 1
    assert "waits for a checkpoint" in [CATALOG.text(each.message) for each in first.notifications]
    second = world.step()

    assert [str(write.target) for write in second.writes if isinstance(write, Delete)] == ["worker-2"]


def test_a_guard_may_keep_bodies_from_being_made():
    world = started(replace(t9(3), guard=lambda *_: GuardResult(blocks=frozenset({"create"}))))
    assert world.pods == {}
