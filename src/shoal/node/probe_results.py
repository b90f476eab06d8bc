"""How probe results become a verdict, and when to probe next.

Pure. A verdict changes after `failureThreshold` failures or `successThreshold` successes in a row. Liveness
and readiness are not probed before the startup probe has passed. Until its first verdict a container counts as
alive, not started and not ready.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from shoal.kube.messages import Message
from shoal.kube.objects import Obj


class ProbeKind(StrEnum):
    STARTUP = "startupProbe"
    LIVENESS = "livenessProbe"
    READINESS = "readinessProbe"

    @property
    def label(self) -> str:
        return {"startupProbe": "Startup", "livenessProbe": "Liveness", "readinessProbe": "Readiness"}[self.value]


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """One probe: whether it succeeded, and what its command printed or why it failed."""

    ok: bool
    output: Message | str = ""


@dataclass(frozen=True, slots=True)
class ProbeTiming:
    initial_delay: float = 0.0
    period: float = 10.0
    timeout: float = 1.0
    successes: int = 1
    failures: int = 3


def timing_of(probe: Obj) -> ProbeTiming:
    return ProbeTiming(
        float(probe.get("initialDelaySeconds") or 0),
        float(probe.get("periodSeconds") or 10),
        float(probe.get("timeoutSeconds") or 1),
        int(probe.get("successThreshold") or 1),
        int(probe.get("failureThreshold") or 3),
    )


@dataclass(frozen=True, slots=True)
class ProbeCounter:
    """Answers of one kind in a row, and the verdict so far (None: not reached yet)."""

    timing: ProbeTiming
    verdict: bool | None = None
    last: bool | None = None
    in_a_row: int = 0

    def count(self, result: ProbeResult) -> ProbeCounter:
        in_a_row = self.in_a_row + 1 if result.ok == self.last else 1
        needed = self.timing.successes if result.ok else self.timing.failures
        verdict = result.ok if in_a_row >= needed else self.verdict
        return replace(self, verdict=verdict, last=result.ok, in_a_row=in_a_row)


def next_probe_at(started_at: float, probed_at: float | None, timing: ProbeTiming) -> float:
    """When to probe next: after the initial delay, then one period after the last probe."""
    if probed_at is None:
        return started_at + timing.initial_delay
    return probed_at + timing.period
