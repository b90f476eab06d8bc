"""Shards: the same hash everywhere, every job in one of them, and replicas that let each other go first."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from itertools import combinations

import pytest

from shoal.cluster.simulated import SimulatedCluster
from shoal.controller_runtime.leader_election import LeaderElector
from shoal.kube.objects import Key
from shoal.operator.sharding import DELAY_SECONDS, AcquisitionDelay, served_by, shard_of

SHARDS = 4


class Replica:
    def __init__(self, cluster: SimulatedCluster, identity: str) -> None:
        turn = AcquisitionDelay(identity, SHARDS)
        self.leaderships = turn.leaderships = [self._leadership(cluster, identity, turn, n) for n in range(SHARDS)]
        self._tasks = [asyncio.create_task(each.run(_work)) for each in self.leaderships]

    def _leadership(
        self, cluster: SimulatedCluster, identity: str, turn: AcquisitionDelay, shard: int
    ) -> LeaderElector:
        return LeaderElector(
            cluster, f"shoal-{shard}", "default",
            identity=identity, clock=cluster.clock, seconds=lambda: cluster.clock.now().timestamp(),
            acquire_delay=lambda: turn.seconds(shard), on_leader=turn.recheck,
        )  # fmt: skip

    @property
    def held(self) -> list[int]:
        return [shard for shard, each in enumerate(self.leaderships) if each.is_held]

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _work() -> None:
    await asyncio.Event().wait()


async def rest(cluster: SimulatedCluster, seconds: float) -> None:
    clock, end = cluster.clock, cluster.clock.now() + timedelta(seconds=seconds)
    while clock.now() < end:
        await settle()
        due = clock.next_due()
        clock.advance((min(due or end, end) - clock.now()).total_seconds())
    await settle()


async def settle() -> None:
    while asyncio.get_running_loop()._ready:  # type: ignore[attr-defined]
        await turn_of_others()


async def turn_of_others() -> None:
    await asyncio.sleep(0)


def test_the_hash_never_changes() -> None:
    """A replica of another version must agree, or two of them would serve one job."""
    keys = [Key("team-a", "train"), Key("team-b", "train"), Key("team-a", "other")]
    assert [shard_of(key, 8) for key in keys] == [0, 5, 3]


def test_every_job_belongs_to_one_shard() -> None:
    keys = [Key(f"ns{number % 7}", f"job{number}") for number in range(1000)]
    questions = [served_by(shard, SHARDS) for shard in range(SHARDS)]
    owners = [[shard for shard, serves in enumerate(questions) if serves is not None and serves(key)] for key in keys]
    assert all(len(found) == 1 for found in owners)
    assert min(Counter(found[0] for found in owners).values()) > 200
    assert served_by(0, 1) is None


@pytest.mark.parametrize("names", list(combinations("abcde", 2)), ids="".join)
async def test_replicas_that_start_together_share_the_shards(names: tuple[str, str]) -> None:
    cluster = SimulatedCluster()
    one, other = (Replica(cluster.new_client(), name) for name in names)
    await rest(cluster, DELAY_SECONDS * SHARDS)
    assert sorted(one.held + other.held) == [0, 1, 2, 3]
    assert (len(one.held), len(other.held)) == (2, 2)
    await one.end()
    await rest(cluster, DELAY_SECONDS * SHARDS)
    assert other.held == [0, 1, 2, 3]
    await other.end()


async def test_one_that_has_none_goes_before_one_that_has_some() -> None:
    cluster = SimulatedCluster()
    busy = Replica(cluster.new_client(), "busy")
    await rest(cluster, DELAY_SECONDS * SHARDS)
    idle = Replica(cluster.new_client(), "idle")
    await rest(cluster, 5)
    assert (busy.held, idle.held) == ([0, 1, 2, 3], [])
    leaving = busy.leaderships[2]
    busy._tasks[2].cancel()
    await rest(cluster, DELAY_SECONDS)
    assert not leaving.is_held
    assert idle.held == [2]
    await busy.end()
    await idle.end()
