"""Jobs sharded over several replicas by a hash of namespace and name, each shard led by a Lease of its own.

The hash is the same in every process and every version. Replicas begin with different shards and delay their claim for
every one they already have or would prefer to have, so that shards spread without a coordinator.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence

from shoal.controller_runtime.leader_election import LeaderElector
from shoal.kube.objects import Key

DELAY_SECONDS = 2.0


def shard_of(key: Key, shards: int) -> int:
    return zlib.crc32(str(key).encode()) % shards


def served_by(shard: int, shards: int) -> Callable[[Key], bool] | None:
    """A function that reports whether a job belongs to the shard; None where there is only one shard."""
    return None if shards == 1 else lambda key: shard_of(key, shards) == shard


class AcquisitionDelay:
    """How long this replica delays its claim to a shard, by the shards it holds and those it prefers."""

    def __init__(self, identity: str, shards: int) -> None:
        first = zlib.crc32(identity.encode()) % shards
        self._order = [(first + step) % shards for step in range(shards)]
        self.leaderships: Sequence[LeaderElector] = ()

    def seconds(self, shard: int) -> float:
        earlier = self._order[: self._order.index(shard)]
        held = [other for other in self._order if other != shard and self.leaderships[other].is_held]
        preferred = [other for other in earlier if not self.leaderships[other].leader]
        return DELAY_SECONDS * len({*held, *preferred})

    def recheck(self) -> None:
        """Another replica acquired a shard, or lost one."""
        for leadership in self.leaderships:
            leadership.recheck()
