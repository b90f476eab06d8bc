"""Leadership by a Lease: one at a time, the next one soon, and no write after the end of a term."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.leader_candidate import Candidate
from kit.virtual_time import rested, settled
from shoal.cluster.client import DeleteOptions
from shoal.cluster.fault_injection import Faults, FaultTiming, calls
from shoal.cluster.fencing import FencedCluster, LeadershipLost, check_fence
from shoal.cluster.simulated import SimulatedCluster
from shoal.controller_runtime.leader_election import LeaderElector
from shoal.kube.kinds import CONFIG_MAP, LEASE, Kind
from shoal.kube.objects import Obj

NAME, NAMESPACE = "shoal", "default"


class Race:
    def __init__(self) -> None:
        self.cluster = SimulatedCluster()
        self.candidates: list[Candidate] = []

    def enter(self, identity: str, faults: Faults | None = None) -> Candidate:
        self.candidates.append(Candidate(self.cluster.new_client(faults), NAME, NAMESPACE, identity))
        return self.candidates[-1]

    async def settle(self) -> None:
        await settled()
        assert sum(one.leadership.is_held for one in self.candidates) <= 1

    async def rest(self, seconds: float) -> None:
        await rested(self.cluster.clock, seconds, self.settle)

    def working(self) -> list[str]:
        return [one.leadership.identity for one in self.candidates if one.works]


@asynccontextmanager
async def a_race() -> AsyncIterator[Race]:
    race = Race()
    try:
        yield race
    finally:
        for candidate in race.candidates:
            await candidate.end()


async def test_the_first_leads_and_goes_on_leading() -> None:
    async with a_race() as race:
        race.enter("a")
        await race.settle()
        race.enter("b")
        await race.rest(300)
        assert race.working() == ["a"]
        spec = (await race.cluster.get(LEASE, NAME, NAMESPACE))["spec"]
        assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == ("a", 15, 0)


async def test_one_that_ends_hands_over_at_once() -> None:
    async with a_race() as race:
        first = race.enter("a")
        await race.settle()
        race.enter("b")
        await race.settle()
        await first.end()
        await race.settle()
        assert race.working() == ["b"]
        assert (await race.cluster.get(LEASE, NAME, NAMESPACE))["spec"]["leaseTransitions"] == 1


async def test_one_that_cannot_renew_stops_before_the_next_one_begins() -> None:
    async with a_race() as race:
        refusals = Faults()
        race.enter("a", refusals)
        await race.settle()
        race.enter("b")
        await race.settle()
        refusals.fail(calls("patch", LEASE), times=None)
        await race.rest(12)
        assert race.working() == []
        await race.rest(6)
        assert race.working() == ["b"]


async def test_one_that_slept_past_its_term_writes_nothing() -> None:
    async with a_race() as race:
        first = race.enter("a")
        await race.settle()
        await first.fenced.create(CONFIG_MAP, {"metadata": {"name": "in-time"}}, NAMESPACE)
        race.cluster.clock._now += timedelta(seconds=60)  # nothing of the process ran meanwhile
        with pytest.raises(LeadershipLost, match="create of ConfigMap late not sent: this process no longer leads"):
            await first.fenced.create(CONFIG_MAP, {"metadata": {"name": "late"}}, NAMESPACE)
        with pytest.raises(LeadershipLost):
            await first.fenced.patch(CONFIG_MAP, "in-time", NAMESPACE, patch={"data": {"a": "b"}})
        with pytest.raises(LeadershipLost):
            await first.fenced.delete(CONFIG_MAP, "in-time", NAMESPACE)
        with pytest.raises(LeadershipLost):
            await first.fenced.bind("pod", NAMESPACE, node="n")
        assert (await first.fenced.get(CONFIG_MAP, "in-time", NAMESPACE)).get("data") is None
        await race.rest(3)
        assert race.working() == ["a"]  # nobody else was there: it leads again


async def test_a_write_that_waits_for_its_turn_is_asked_again_when_it_leaves() -> None:
    leads, left = True, []

    class InLine(SimulatedCluster):
        """Its requests wait; the lead ends meanwhile."""

        async def delete(self, kind: Kind, name: str, namespace: str = "", options: DeleteOptions | None = None) -> Obj:
            nonlocal leads
            leads = False
            check_fence()
            left.append(name)
            return await super().delete(kind, name, namespace, options)

    cluster = InLine()
    with pytest.raises(LeadershipLost, match="delete of ConfigMap one not sent"):
        await FencedCluster(cluster, lambda: leads).delete(CONFIG_MAP, "one", NAMESPACE)
    assert left == []
    check_fence()  # what is not fenced passes


async def test_a_lost_answer_does_not_lose_the_lead() -> None:
    async with a_race() as race:
        race.enter("a", Faults().lose_response(calls("create", LEASE), when=FaultTiming.AFTER))
        await race.rest(5)
        race.enter("b")
        await race.rest(60)
        assert race.working() == ["a"]


async def test_an_answer_that_comes_too_late_is_no_lead() -> None:
    held_at_start: list[bool] = []

    class Slow(SimulatedCluster):
        """Its first answer about a Lease takes twelve seconds."""

        async def create(self, kind: Kind, obj: Obj, namespace: str = "", **more: Any) -> Obj:
            made = await super().create(kind, obj, namespace, **more)
            self.clock._now += timedelta(seconds=12)
            return made

    async def work() -> None:
        held_at_start.append(leadership.is_held)
        raise ValueError("seen enough")

    cluster = Slow()
    leadership = LeaderElector(
        cluster, NAME, NAMESPACE, identity="a", clock=cluster.clock, seconds=lambda: cluster.clock.now().timestamp()
    )
    with pytest.raises(ValueError, match="seen enough"):
        await leadership.run(work)
    assert held_at_start == [True]


async def test_a_lease_somebody_removed_is_made_again() -> None:
    async with a_race() as race:
        race.enter("a")
        await race.settle()
        await race.cluster.delete(LEASE, NAME, NAMESPACE)
        await race.rest(30)
        assert race.working() == ["a"]


async def test_work_that_fails_ends_the_candidate() -> None:
    cluster = SimulatedCluster()

    async def broken() -> None:
        raise ValueError("wrong")

    leadership = LeaderElector(
        cluster, NAME, NAMESPACE, identity="a", clock=cluster.clock, seconds=lambda: cluster.clock.now().timestamp()
    )
    with pytest.raises(ValueError, match="wrong"):
        await leadership.run(broken)
    assert (await cluster.get(LEASE, NAME, NAMESPACE))["spec"]["holderIdentity"] == ""


STORY = st.lists(st.tuples(st.sampled_from(["refuse", "lose", "rest", "short", "end", "enter"]), st.integers(0, 2)))


@given(STORY)
def test_never_two_at_once_whatever_happens(story: list[tuple[str, int]]) -> None:
    async def told() -> None:
        async with a_race() as race:
            plans = [Faults() for _ in range(3)]
            for number, plan in enumerate(plans):
                race.enter(f"c{number}", plan)
            for step, who in story:
                if step == "refuse":
                    plans[who].fail(calls("patch", LEASE), times=4)
                elif step == "lose":
                    plans[who].lose_response(calls("patch", LEASE), times=2)
                elif step == "end":
                    await race.candidates[who].end()
                elif step == "enter":
                    race.enter(f"d{len(race.candidates)}")
                await race.rest({"rest": 20.0, "short": 1.7}.get(step, 0.5))

    asyncio.run(told())
