"""Random names: counts instead of indexes, seats that are kept, and who leaves first."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from msgspec.structs import replace as with_

from kit.engine_jobs import batch, replica_set, resized
from kit.engine_world import T0, World, started
from shoal.engine import ObservedPod, PodPhase, Stage
from shoal.engine.unindexed_pods import deletion_rank


def living(world: World) -> list[str]:
    return [name for name, pod in world.pods.items() if not pod.is_finished and not pod.leaving]


def test_successes_are_counted_until_there_are_enough():
    world = started(batch(parallelism=2, completions=3))
    counts = []
    while living(world):
        world.exits(living(world)[0], 0)
        world.settle()
        counts.append((world.state.roles[0].ok_count, len(living(world))))

    assert counts == [(1, 2), (2, 1), (3, 0)]
    assert (world.state.run.stage, world.state.run.outcome.is_ok) == (Stage.DONE, True)
    assert world.state.settled == {}


def test_completions_by_index_use_the_lowest_open_index():
    world = started(batch(parallelism=2, completions=4, indexed=True))
    assert sorted(pod.index for pod in world.pods.values()) == [0, 1]
    world.exits(next(name for name, pod in world.pods.items() if pod.index == 0), 0)
    world.settle()

    assert sorted(pod.index for pod in world.pods.values() if not pod.is_finished) == [1, 2]
    assert [task.index for task in world.state.roles[0].tasks if task.is_done] == [0]


def test_a_failed_index_is_tried_again_under_the_same_index():
    world = started(batch(parallelism=1, completions=1, indexed=True, backoff=3))
    world.exits(living(world)[0], 1)
    world.settle()

    assert [(pod.index, pod.phase) for pod in world.pods.values()] == [(0, PodPhase.FAILED), (0, PodPhase.PENDING)]
    assert world.state.charged == 1


def test_less_parallelism_sends_living_members_away_uncounted():
    world = started(batch(parallelism=3, completions=9))
    size = replace(world.job.policies.size, parallelism=1)
    world.edit(lambda job: replace(job, policies=replace(job.policies, size=size)))
    world.settle()

    assert len(world.pods) == 1
    assert world.state.charges == {}


def test_a_replica_set_ignores_what_finished_and_makes_another():
    world = started(replica_set(2))
    world.exits(min(world.pods), 1)
    world.settle()

    assert sorted(pod.phase.name for pod in world.pods.values()) == ["FAILED", "PENDING", "RUNNING"]
    assert world.state.run.is_open


def test_shrinking_takes_the_ones_easiest_to_lose():
    world = started(replica_set(3))
    names = sorted(world.pods)
    world.pods[names[0]] = with_(world.pods[names[0]], phase=PodPhase.PENDING, ready=False, node="")
    world.edit(lambda job: resized(job, main=2))
    world.settle()

    assert sorted(world.pods) == names[1:]


BASE = ObservedPod("u", "p", "r", None, node="n", phase=PodPhase.RUNNING, ready=True, ready_since=T0, created=T0)
EASIER = {
    "unassigned": {"node": ""},
    "pending": {"phase": PodPhase.PENDING},
    "not ready": {"ready": False},
    "cheaper": {"deletion_cost": -1},
    "ready for a shorter time": {"ready_since": T0 + timedelta(seconds=5)},
    "younger": {"created": T0 + timedelta(seconds=5)},
}


@pytest.mark.parametrize("case", EASIER)
def test_a_member_is_easier_to_lose_when_it_is(case: str):
    assert deletion_rank(with_(BASE, **EASIER[case])) < deletion_rank(BASE)


def test_a_member_on_a_crowded_node_is_easier_to_lose():
    assert deletion_rank(BASE, crowd=3) < deletion_rank(BASE, crowd=1)
