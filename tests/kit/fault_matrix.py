"""A scenario played once undisturbed and then again with everything that may go wrong, one thing at a time.

The operator is killed before and after each of its writes; after a kill that let the write take effect the next
operator starts `OUTAGE_SECONDS` later, so that processes really start and end in between. Each event of its watches
arrives late, twice, or not at all until everything is listed again; and seeds of chance do several of these at once.
Every run must keep the promises and end in the same picture as the undisturbed one.

The seeds of a plain run are the same each time, so that its verdict is one about the code; others are asked for:

    SHOAL_SEED=17 pytest tests/scenarios -m disturbed      plays seed 17 alone, as a failure names it
    SHOAL_SEEDS=200 pytest tests/scenarios -m disturbed    plays 200 seeds of each scenario, never the same
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kit.embedded_world import RealWorld
from kit.kubernetes_world import KubernetesWorld
from kit.scenario import FRAMEWORK, SimulatedWorld
from shoal.cluster.client import WatchEvent, WatchEventType
from shoal.cluster.fault_injection import (
    Call,
    Delay,
    Faults,
    FaultTiming,
    WatchDisruption,
    events_with_probability,
    with_probability,
)
from shoal.kube.kinds import CONFIG_MAP, EVENT, POD, Kind
from shoal.kube.objects import Obj

Script = Callable[[Any], Awaitable[None]]
WATCHED = (FRAMEWORK, POD, CONFIG_MAP)
LATE_SECONDS = 5.0
OUTAGE_SECONDS = 5.0
PLAIN_SEEDS = range(1, 7)
ASKED_SEEDS = os.environ.get("SHOAL_SEEDS")
RANDOM_LIVES = 4
CHOSEN = os.environ.get("SHOAL_SEED")

simulated = pytest.param("simulated", id="simulated")
embedded = pytest.param("embedded", id="embedded", marks=pytest.mark.processes)
kubernetes = pytest.param("kubernetes", id="kubernetes", marks=(pytest.mark.kubernetes, pytest.mark.processes))
# Hundreds of runs in one test, on a machine that may be busy; who never rests on the virtual clock fails at once.
disturbed = pytest.param("disturbed", id="disturbed", marks=(pytest.mark.disturbed, pytest.mark.timeout(3600)))


def scenario(
    *,
    real: bool = True,
    config: Obj | None = None,
    varies: tuple[str, ...] = (),
    worlds: Worlds | None = None,
    thorough: bool = True,
    outages: bool = True,
) -> Any:
    """Make tests of a script: simulated, disturbed and, where it has processes to run, real: on a cluster of our own
    and on Kubernetes with `shoal node`.

    `outages`: whether the next operator may start late. Not where the scenario itself evicts pods as soon as they run:
    one that goes during an outage, before its creation was stored, leaves nothing to see.

    Every disturbed run comes to rest and ends as the undisturbed one, but for the fields in `varies`.
    """
    stage = worlds or Worlds()
    tiers = [simulated, disturbed, *([embedded] if real else []), *([kubernetes] if real and stage.kubernetes else [])]

    def decorate(script: Script) -> Any:
        case = Case(script, config, varies, stage, thorough, outages)

        @pytest.mark.parametrize("tier", tiers)
        async def test(
            tier: str, tmp_path: Path, record_property: Callable[[str, Any], None], request: pytest.FixtureRequest
        ) -> None:
            if tier == "simulated":
                await case.play()
            elif tier == "embedded":
                async with stage.embedded(tmp_path, config=config) as world:
                    await script(world)
            elif tier == "kubernetes":
                assert stage.kubernetes is not None
                async with stage.kubernetes(request.getfixturevalue("kubernetes_plane"), config=config) as shore:
                    await script(shore)
            else:
                record_property("disturbed runs", await case.disturb())

        test.__name__, test.__doc__, test.__module__ = script.__name__, script.__doc__, script.__module__
        test.case = case  # type: ignore[attr-defined]  # for those who play it elsewhere
        return test

    return decorate


@dataclass(frozen=True)
class Worlds:
    """Where the scenarios of one job language are played."""

    simulated: type[SimulatedWorld] = SimulatedWorld
    embedded: type[RealWorld] = RealWorld
    kubernetes: type[KubernetesWorld] | None = KubernetesWorld
    watched: tuple[Kind, ...] = WATCHED


@dataclass(frozen=True)
class Disturbed:
    """One way of going wrong. `plan` gives the faults of each life of the operator."""

    name: str
    plan: Callable[[SimulatedWorld, int], Faults]
    outage_seconds: float = 0.0


@dataclass(frozen=True)
class Case:
    script: Script
    config: Obj | None
    varies: tuple[str, ...]
    worlds: Worlds = Worlds()
    thorough: bool = True  # every single disturbance, not only chance
    outages: bool = True

    async def play(self, how: Disturbed | None = None, seed: int = 0) -> tuple[Obj, SimulatedWorld]:
        """One run; its last picture."""
        world: SimulatedWorld
        plan = None if how is None else lambda life: how.plan(world, life)
        world = self.worlds.simulated(seed, plan=plan, config=self.config)
        world.outage_seconds = how.outage_seconds if how is not None and self.outages else 0.0
        async with world:
            await self.script(world)
            await world.at_rest()
            return world.picture(self.varies), world

    async def disturb(self) -> int:
        """Every single disturbance, then chance; the number of runs."""
        counted, picture = await self._baseline()
        single = () if CHOSEN or not self.thorough else (*_kills(counted), *_events(counted, self.worlds.watched))
        runs = 0
        for how in (*single, *_by_chance()):
            try:
                found, _ = await self.play(how)
                if found != picture:
                    raise AssertionError("; ".join(differences(picture, found)))
            except Exception as failure:
                raise AssertionError(f"{self.script.__name__}, {how.name}: {failure}") from failure
            runs += 1
        return runs

    async def _baseline(self) -> tuple[Counter[str], Obj]:
        """How many writes and events there are to disturb."""
        counted: Counter[str] = Counter()

        def count(kind: Kind) -> Callable[[int, WatchEvent], bool]:
            def where(_: int, event: WatchEvent) -> bool:
                counted[kind.kind] += event.type is not WatchEventType.BOOKMARK
                return False

            return where

        def listen(_: SimulatedWorld, __: int) -> Faults:
            faults = Faults()
            for kind in self.worlds.watched:
                faults.disturb(WatchDisruption.DROP, count(kind), kind)
            return faults

        picture, world = await self.play(Disturbed("undisturbed", listen))
        counted["writes"] = sum(call.is_write for call in world.lives[0].calls)
        return counted, picture


def _kills(counted: Counter[str]) -> Iterator[Disturbed]:
    for number in range(1, counted["writes"] + 1):
        for when in FaultTiming:
            yield Disturbed(
                f"killed at write {number}, {when.value}",
                _first_life(lambda f, n=number, w=when: f.kill_at_write(n, when=w)),
                OUTAGE_SECONDS if when is FaultTiming.AFTER else 0.0,
            )


def _first_life(add: Callable[..., Faults]) -> Callable[[SimulatedWorld, int], Faults]:
    return lambda _, life: add(Faults()) if life == 0 else Faults()


def _events(counted: Counter[str], watched: tuple[Kind, ...]) -> Iterator[Disturbed]:
    for kind in watched:
        for number in range(1, counted[kind.kind] + 1):
            at = f"{kind.kind} event {number}"
            yield Disturbed(f"{at} late", _strike(kind, number, Delay(LATE_SECONDS)))
            yield Disturbed(f"{at} twice", _strike(kind, number, WatchDisruption.DUPLICATE))
            yield Disturbed(f"{at} lost and listed again", _strike(kind, number, WatchDisruption.CUT, forgets=True))


def _strike(
    kind: Kind, number: int, what: WatchDisruption | Delay, *, forgets: bool = False
) -> Callable[[SimulatedWorld, int], Faults]:
    """The n-th change the operator hears of, counted over all streams of its first life."""

    def plan(world: SimulatedWorld, life: int) -> Faults:
        heard = 0

        def where(_: int, event: WatchEvent) -> bool:
            nonlocal heard
            heard += event.type is not WatchEventType.BOOKMARK
            if heard != number or event.type is WatchEventType.BOOKMARK:
                return False
            heard += 1  # once
            if forgets:
                world.cluster.compact_history()
            return True

        return Faults().disturb(what, where, kind) if life == 0 else Faults()

    return plan


def _by_chance() -> Iterator[Disturbed]:
    for seed in _seeds():
        yield Disturbed(f"by chance (SHOAL_SEED={seed})", _chances(random.Random(seed)))


def _seeds() -> Iterable[int]:
    if CHOSEN:
        return [int(CHOSEN)]
    if ASKED_SEEDS:
        return (random.SystemRandom().randrange(10**9) for _ in range(int(ASKED_SEEDS)))
    return PLAIN_SEEDS


def _chances(rng: random.Random) -> Callable[[SimulatedWorld, int], Faults]:
    def plan(_: SimulatedWorld, life: int) -> Faults:
        faults = Faults()
        if life >= RANDOM_LIVES:
            return faults
        faults.fail(with_probability(0.05, rng, _is_about_jobs), times=5)
        faults.lose_response(with_probability(0.05, rng, _is_about_jobs), times=5)
        faults.kill(with_probability(0.04, rng, _is_about_jobs), when=rng.choice(list(FaultTiming)))
        faults.disturb(WatchDisruption.DUPLICATE, events_with_probability(0.1, rng))
        faults.disturb(Delay(rng.choice((0.5, 3.0))), events_with_probability(0.1, rng))
        faults.disturb(WatchDisruption.CUT, events_with_probability(0.05, rng))
        return faults

    return plan


def _is_about_jobs(call: Call) -> bool:
    return call.is_write and call.kind != EVENT


def differences(wanted: Any, found: Any, path: str = "") -> Iterator[str]:
    """Where two pictures differ."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        for key in sorted(wanted.keys() | found.keys()):
            yield from differences(wanted.get(key), found.get(key), f"{path}.{key}")
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        for index, (left, right) in enumerate(zip(wanted, found, strict=True)):
            yield from differences(left, right, f"{path}[{index}]")
    elif wanted != found:
        yield f"{path} is {found!r:.200} instead of {wanted!r:.200}"
