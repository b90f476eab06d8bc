"""How answers of probes become verdicts, and what is asked when."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kit.pods import container
from shoal.kube.objects import Obj
from shoal.node.probe_results import ProbeCounter, ProbeKind, ProbeResult, ProbeTiming, next_probe_at, timing_of
from shoal.node.probes import Prober, ProbeUpdate

YES, NO = ProbeResult(True), ProbeResult(False, "no")

TALLIES: dict[str, tuple[ProbeTiming, list[ProbeResult], list[bool | None]]] = {
    "one success is enough": (ProbeTiming(), [YES], [True]),
    "three failures in a row": (ProbeTiming(), [NO, NO, NO], [None, None, False]),
    "a success in between starts the count again": (
        ProbeTiming(),
        [NO, NO, YES, NO, NO],
        [None, None, True, True, True],
    ),
    "several successes where asked for": (ProbeTiming(successes=2, failures=1), [NO, YES, YES], [False, False, True]),
}


@pytest.mark.parametrize("case", TALLIES, ids=str)
def test_thresholds_turn_answers_into_a_verdict(case: str) -> None:
    timing, answers, expected = TALLIES[case]
    tally, seen = ProbeCounter(timing), []
    for answer in answers:
        tally = tally.count(answer)
        seen.append(tally.verdict)
    assert seen == expected


def test_the_first_question_comes_after_the_delay_and_the_next_after_the_period() -> None:
    timing = timing_of({"initialDelaySeconds": 5, "periodSeconds": 3})
    assert (next_probe_at(100.0, None, timing), next_probe_at(100.0, 107.5, timing)) == (105.0, 110.5)


async def verdicts(holder: Obj, script: dict[str, list[ProbeResult]], count: int) -> list[tuple[str, bool]]:
    """What a prober says when its questions are answered from a script; the last answer repeats."""
    heard: list[tuple[str, bool]] = []
    enough = asyncio.Event()

    def hear(verdict: ProbeUpdate) -> None:
        heard.append((verdict.kind, verdict.ok))
        if len(heard) == count:
            enough.set()

    async def ask(probe: Obj, timeout: float) -> ProbeResult:
        answers = script[probe["exec"]["command"][0]]
        return answers.pop(0) if len(answers) > 1 else answers[0]

    prober = Prober(holder, ask, passed_startup=False, on_update=hear, on_failure=lambda *_: None)
    prober.start(0.0)
    await enough.wait()
    prober.stop()
    return heard


def probe(name: str, **more: Any) -> Obj:
    return {"exec": {"command": [name]}, "periodSeconds": 0.001, **more}


async def test_the_others_wait_for_the_startup_probe() -> None:
    holder = container("a", startupProbe=probe("s"), livenessProbe=probe("l"), readinessProbe=probe("r"))
    heard = await verdicts(holder, {"s": [NO, YES], "l": [YES], "r": [YES]}, 3)
    assert heard == [(ProbeKind.STARTUP, True), (ProbeKind.LIVENESS, True), (ProbeKind.READINESS, True)]


async def test_a_failed_startup_probe_is_final() -> None:
    holder = container("a", startupProbe=probe("s", failureThreshold=2), livenessProbe=probe("l"))
    assert await verdicts(holder, {"s": [NO], "l": [YES]}, 1) == [(ProbeKind.STARTUP, False)]


async def test_readiness_comes_and_goes() -> None:
    holder = container("a", readinessProbe=probe("r", failureThreshold=1))
    heard = await verdicts(holder, {"r": [YES, YES, NO, YES]}, 3)
    assert [ok for _, ok in heard] == [True, False, True]


async def test_a_question_due_when_the_prober_is_stopped_is_dropped_in_silence() -> None:
    loud: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: loud.append(context))
    asked: list[Obj] = []

    async def ask(what: Obj, timeout: float) -> ProbeResult:
        asked.append(what)
        return YES

    holder = container("a", livenessProbe=probe("l", initialDelaySeconds=0.01))
    prober = Prober(holder, ask, passed_startup=False, on_update=lambda _: None, on_failure=lambda *_: None)
    over = asyncio.Event()

    def stop() -> None:
        prober.stop()
        loop.call_soon(over.set)

    # Due just before the question: the loop takes both in one turn, as it does when a restart meets a probe.
    loop.call_later(0.005, lambda: busy_until(loop.time() + 0.01))
    loop.call_later(0.006, stop)
    prober.start(0.0)
    await over.wait()
    assert (loud, asked) == ([], [])


def busy_until(moment: float) -> None:
    """As a loop is that has much to do: what falls due meanwhile comes in one turn."""
    loop = asyncio.get_running_loop()
    while loop.time() < moment:
        continue
