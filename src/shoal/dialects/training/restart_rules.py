"""Restart policies of replicas, and which ends of a container are tried again.

Under Always and OnFailure the kubelet restarts containers, so that their pods fail only with their node or by
eviction. Under ExitCode and Never a failed container is a failed pod.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from shoal.engine.policies import FailurePolicy, FailureRule, Retry, Span
from shoal.engine.types import FailureClass, Outcome

# A pod with one of these reasons was ended from outside, whatever its containers report.
EVICTED = "Evicted"
INTERRUPTIONS = frozenset({"OOMKilled", "Killed", EVICTED, "UnexpectedAdmissionError", "NodeLost", "Shutdown"})


@dataclass(frozen=True, slots=True)
class RestartRules:
    """How a language retries. The letters are those of `Retry`: succeeded, transient, unknown, permanent, lost."""

    letters: Mapping[str, str]  # by restart policy
    codes: frozenset[int] = frozenset()  # retried under ExitCode
    code_span: Span | None = None  # retried as well
    interruptions: frozenset[str] = INTERRUPTIONS
    outcome: Outcome = field(default_factory=lambda: Outcome(FailureClass.UNKNOWN, code=1, phrase="Failed"))

    def retry(self, restart_policy: str) -> Retry:
        return Retry.from_letters(self.letters[restart_policy])

    def classify(self) -> FailurePolicy:
        """Code 0 comes first: a pod also fails with a sidecar, whose code never counts."""
        interrupted = FailureRule(FailureClass.TRANSIENT, phrase="Interrupted")
        by_reason = replace(interrupted, reasons=self.interruptions)
        by_condition = replace(interrupted, condition="DisruptionTarget")
        # A pod may be ended before any of its containers has a code.
        retried = [replace(rule, no_code=True, code=1) for rule in (by_reason, by_condition)]
        retried += [by_reason, by_condition]
        if self.codes:
            retried.append(FailureRule(FailureClass.TRANSIENT, phrase="Retryable", codes=self.codes))
        if self.code_span is not None:
            retried.append(FailureRule(FailureClass.TRANSIENT, phrase="Retryable", code_span=self.code_span))
        succeeded = FailureRule(FailureClass.OK, code=0, phrase="Succeeded", codes=frozenset({0}))
        return FailurePolicy(rules=(succeeded, *retried, FailureRule(FailureClass.PERMANENT)), no_code=self.outcome)


def pod_restart_policy(restart_policy: str) -> str:
    """Of the pod itself: under ExitCode the operator decides, so the kubelet must not."""
    return "Never" if restart_policy == "ExitCode" else restart_policy


def restarts_in_place(restart_policy: str) -> bool:
    return restart_policy in ("Always", "OnFailure")
