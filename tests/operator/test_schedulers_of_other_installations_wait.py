"""Two installations whose schedulers answer for the same pods: one works, and the other takes over when it ends."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.leader_candidate import Candidate
from kit.virtual_time import rested, settled
from shoal.cluster.fault_injection import Delay, Faults, calls, events_with_probability, with_probability
from shoal.cluster.simulated import SimulatedCluster
from shoal.kube.kinds import LEASE, NAMESPACE
from shoal.kube.objects import Key, annotations_of
from shoal.scheduler.scheduler_conflicts import ANSWERS_FOR, ConflictDetector, PodScope

NAME = "shoal-scheduler"
OURS = PodScope(frozenset({"shoal", "volcano"}))


class Installation(Candidate):
    """The scheduler of one namespace and its claim."""

    def __init__(self, cluster: SimulatedCluster, namespace: str, claim: PodScope, identity: str) -> None:
        super().__init__(cluster, NAME, namespace, identity)
        self.claim = claim
        self.namespace = namespace
        self.rivals: ConflictDetector | None = None

    async def ready(self) -> None:
        lease = Key(self.namespace, NAME)
        self.rivals = ConflictDetector(self.fenced, lease, self.claim, clock=self.cluster.clock, seconds=self.seconds)
        await self.rivals.wait_until_alone()

    async def die(self) -> None:
        self.cluster.is_dead = True
        await self.end()

    @property
    def waits_for(self) -> str:
        return self.rivals.waits_for if self.rivals is not None else ""


class Land:
    def __init__(self) -> None:
        self.cluster = SimulatedCluster()
        self.all: list[Installation] = []

    async def found(self, namespace: str) -> None:
        await self.cluster.create(NAMESPACE, {"metadata": {"name": namespace}})

    def install(
        self, namespace: str, claim: PodScope = OURS, *, identity: str = "", faults: Faults | None = None
    ) -> Installation:
        made = Installation(self.cluster.new_client(faults), namespace, claim, identity or f"of-{namespace}")
        self.all.append(made)
        return made

    async def settle(self) -> None:
        await settled()
        working = [each for each in self.all if each.works]
        assert not any(one.claim.overlaps(other.claim) for one in working for other in working if one is not other)

    async def rest(self, seconds: float = 0) -> None:
        await rested(self.cluster.clock, seconds, self.settle)

    def working(self) -> list[str]:
        return [each.namespace for each in self.all if each.works]


@asynccontextmanager
async def a_land(*namespaces: str) -> AsyncIterator[Land]:
    land = Land()
    for namespace in namespaces:
        await land.found(namespace)
    try:
        yield land
    finally:
        for installation in land.all:
            await installation.end()


async def test_the_second_waits_and_says_for_whom() -> None:
    async with a_land("one", "two") as land:
        land.install("two")
        await land.rest(1)
        late = land.install("one")
        await land.rest(60)
        assert land.working() == ["two"]
        assert late.waits_for == (
            "the scheduler in namespace two answers for the same pods; let one remain and remove the other"
        )


async def test_it_takes_over_at_once_where_the_first_stops_and_later_where_it_dies() -> None:
    async with a_land("one", "two") as land:
        first, second = land.install("one"), land.install("two")
        await land.rest(1)
        assert land.working() == ["one"]
        await first.end()
        await land.rest()
        assert (land.working(), second.waits_for) == (["two"], "")
        land.install("one", identity="again")
        await land.rest(1)
        await second.die()
        await land.rest(14)
        assert land.working() == []
        await land.rest(2)
        assert land.working() == ["one"]


async def test_those_who_begin_at_one_moment_do_not_wait_for_each_other() -> None:
    async with a_land("one", "two", "three") as land:
        for namespace in ("two", "three", "one"):
            land.install(namespace)
        await land.rest(1)
        assert land.working() == ["one"]


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (OURS, PodScope(frozenset({"shoal"})), False),
        (OURS, PodScope(frozenset({"mine"})), True),
        (OURS, PodScope(OURS.schedulers, "team"), False),
        (PodScope(OURS.schedulers, "team"), PodScope(OURS.schedulers, "team"), False),
        (PodScope(OURS.schedulers, "team"), PodScope(OURS.schedulers, "other"), True),
    ],
    ids=["a name in common", "other names", "all and one namespace", "one namespace", "two namespaces"],
)
async def test_only_those_for_the_same_pods_are_waited_for(one: PodScope, other: PodScope, both: bool) -> None:
    assert (PodScope.read(str(one)), PodScope.read(str(other))) == (one, other)
    async with a_land("one", "two") as land:
        land.install("one", one)
        land.install("two", other)
        await land.rest(1)
        assert land.working() == (["one", "two"] if both else ["one"])


async def test_a_word_from_before_is_taken_back_where_it_no_longer_holds() -> None:
    async with a_land("one", "two") as land:
        before = land.install("two", PodScope(frozenset({"shoal", "mine"})))
        await land.rest(1)
        await before.end()
        land.install("one")
        await land.rest(1)
        land.install("two", identity="again")
        await land.rest(1)
        lease = await land.cluster.get(LEASE, NAME, "two")
        assert (land.working(), annotations_of(lease).get(ANSWERS_FOR)) == (["one"], None)


@given(seed=st.integers(0, 2**32 - 1), deaths=st.lists(st.integers(0, 2), max_size=4))
@settings(max_examples=40, deadline=None)
def test_never_two_work_and_always_somebody_does_in_the_end(seed: int, deaths: list[int]) -> None:
    asyncio.run(_disturbed(seed, deaths))


async def _disturbed(seed: int, deaths: list[int]) -> None:
    namespaces = ("one", "two", "three")
    async with a_land(*namespaces) as land:
        rng = random.Random(seed)
        broken = Faults().lose_response(with_probability(0.1, rng, calls("patch")), times=None)
        broken.fail(with_probability(0.1, rng, calls("list")), times=None)
        broken.disturb(Delay(1.5), events_with_probability(0.3, rng), LEASE)
        living = {name: land.install(name, identity=f"{name}-0", faults=broken) for name in namespaces}
        for number, place in enumerate(deaths, start=1):
            await land.rest(number)
            name = namespaces[place]
            await living[name].die()
            living[name] = land.install(name, identity=f"{name}-{number}")
        await land.rest(10)
        broken.requests.clear()
        broken.watches.clear()
        await land.rest(40)  # twice the longest time a Lease may be waited for, and a little
        assert len(land.working()) == 1
