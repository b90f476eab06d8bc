"""The effects carry out each decision on its own: one that breaks is taken back, and decided again a moment later."""

from __future__ import annotations

import pytest

from kit.scheduled_cluster import scheduled
from shoal.kube.kinds import PRIORITY_CLASS
from shoal.scheduler.api.pod_groups import ELASTIC
from shoal.scheduler.effects.binder import Binder
from shoal.scheduler.effects.evictor import Evictor
from shoal.scheduler.effects.shrink_requests import ShrinkRequester
from shoal.scheduler.effects.volume_binder import LONGEST_PAUSE_SECONDS, pause_seconds
from shoal.scheduler.planner.plan_types import Bind, Evict, ShrinkRequest


async def test_a_gang_with_a_bind_that_breaks_is_placed_in_the_next_cycle(monkeypatch: pytest.MonkeyPatch) -> None:
    submit, broken = Binder.submit, list[str]()

    def break_once(self: Binder, bind: Bind) -> None:
        if bind.pod.name == "g-1" and not broken:
            broken.append(bind.pod.name)
            raise ValueError("no such decision")
        submit(self, bind)

    monkeypatch.setattr(Binder, "submit", break_once)
    async with scheduled() as it:
        await it.node("a", cpu=8)
        await it.gang("g", 3)
        await it.gang("other", 2)
        assert await it.placed() == ["g-0", "other-0", "other-1"]
        await it.rest(2)
        assert (broken, len(it.lives)) == (["g-1"], 1)
        assert await it.placed() == ["g-0", "g-1", "g-2", "other-0", "other-1"]


@pytest.mark.parametrize(
    ("part", "notes"),
    [
        pytest.param(Evictor, {}, id="eviction"),
        pytest.param(ShrinkRequester, {ELASTIC: "true"}, id="shrink request"),
    ],
)
async def test_a_victim_whose_eviction_breaks_stays_a_victim(
    part: type[Evictor] | type[ShrinkRequester], notes: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    submit, broken = part.submit, list[object]()

    def break_once(self: object, decision: Evict | ShrinkRequest) -> None:
        if not broken:
            broken.append(decision)
            raise ValueError("no such decision")
        submit(self, decision)  # type: ignore[arg-type]

    monkeypatch.setattr(part, "submit", break_once)
    async with scheduled() as it:
        await it.cluster.create(PRIORITY_CLASS, {"metadata": {"name": "high"}, "value": 100})
        await it.node("a", cpu=2)
        await it.gang("little", 2, least=1, notes=notes)
        await it.rest(5)
        await it.gang("great", 1, priorityClassName="high")
        await it.rest(60)
        assert (len(broken), len(it.lives), "great-0" in await it.placed()) == (1, 1, True)


def test_a_claim_that_never_gets_a_volume_waits_no_longer_than_the_longest_pause() -> None:
    assert [pause_seconds(failures) for failures in (1, 2, 8)] == [2.0, 4.0, 256.0]
    assert {pause_seconds(failures) for failures in (9, 1024, 10**6)} == {LONGEST_PAUSE_SECONDS}
