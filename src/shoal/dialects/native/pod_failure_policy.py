"""How a Job may end, in the terms of its API, and what a failed pod means to it.

podFailurePolicy becomes classification: an exit code or a condition determines the failure class, and the retry policy
acts on classes. Ignore is transient and free, Count unknown and charged, FailIndex and FailJob permanent. An outcome
has the code of a container and no other: a Job that fails takes that of the pod which failed last.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from shoal.engine import FailureClass, Outcome
from shoal.engine.policies import ContainerPattern, FailurePolicy, FailureRule, PodPattern, Span
from shoal.kube.objects import Obj
from shoal.kube.re2 import compiled
from shoal.kube.schema_errors import FieldWarning

COMPLETE = Outcome(FailureClass.OK, phrase="CompletionsReached", text="Reached expected number of succeeded pods")
BY_SUCCESS_POLICY = Outcome(FailureClass.OK, phrase="SuccessPolicy", text="Matched rules at index 0")
BACKOFF_LIMIT_EXCEEDED = Outcome(
    FailureClass.PERMANENT, phrase="BackoffLimitExceeded", text="Job has reached the specified backoff limit"
)
DEADLINE_EXCEEDED = Outcome(
    FailureClass.PERMANENT, phrase="DeadlineExceeded", text="Job was active longer than specified deadline"
)
BY_FAILURE_POLICY = Outcome(
    FailureClass.PERMANENT, phrase="PodFailurePolicy", text="A pod failed in a way that fails the job"
)
INDEXES_FAILED = Outcome(FailureClass.PERMANENT, phrase="FailedIndexes", text="Job has failed indexes")
TOO_MANY_INDEXES_FAILED = Outcome(
    FailureClass.PERMANENT,
    phrase="MaxFailedIndexesExceeded",
    text="Job has exceeded the specified maximal number of failed indexes",
)
POD_DELETED = Outcome(FailureClass.UNKNOWN, phrase="PodDeleted", text="The pod was deleted before it had ended")
POD_UNSEEN = Outcome(FailureClass.TRANSIENT, phrase="PodUnseen", text="The pod was created and never seen")
POD_SUCCEEDED = Outcome(FailureClass.OK, phrase="Succeeded", text="Pod succeeded")
NO_CODE = Outcome(FailureClass.UNKNOWN, phrase="PodFailed", text="The pod failed and no container has a reason")

_FAILURE_CLASSES = {
    "Ignore": FailureClass.TRANSIENT,
    "Count": FailureClass.UNKNOWN,
    "FailIndex": FailureClass.PERMANENT,
    "FailJob": FailureClass.PERMANENT,
}


def classify(spec: Obj) -> FailurePolicy:
    policy = spec.get("podFailurePolicy") or {}
    rules = [rule for written in policy.get("rules") or () for rule in _rules(written)]
    return FailurePolicy(rules=(*rules, FailureRule(FailureClass.UNKNOWN, phrase="PodFailed")), no_code=NO_CODE)


def _rules(written: Obj) -> Iterator[FailureRule]:
    nature, action = _FAILURE_CLASSES[written["action"]], written["action"]
    if codes := written.get("onExitCodes"):
        named = codes.get("containerName")
        name = compiled(f"^{re.escape(named)}$") if named else None
        values = sorted(set(codes["values"]))
        spans = [Span(value, value) for value in values] if codes["operator"] == "In" else _between(values)
        patterns = tuple(PodPattern(containers=(ContainerPattern(name=name, code=span),)) for span in spans)
        yield FailureRule(nature, phrase=action, patterns=patterns)
    for condition in written.get("onPodConditions") or ():
        if condition.get("status", "True") == "True":
            yield FailureRule(nature, phrase=action, condition=condition.get("type") or "")


def _between(values: list[int]) -> Iterator[Span]:
    """Every code of a failure that is none of the values."""
    low: int | None = None
    for value in sorted({0, *values}):
        if low is None or value - 1 >= low:
            yield Span(low, value - 1)
        low = value + 1
    yield Span(low, None)


def ignored_fields(spec: Obj) -> Iterator[str]:
    """Yield the fields of a spec that have no effect here."""
    for place, rule in enumerate((spec.get("podFailurePolicy") or {}).get("rules") or ()):
        path = f"spec.podFailurePolicy.rules[{place}]"
        if any(each.get("status", "True") != "True" for each in rule.get("onPodConditions") or ()):
            yield FieldWarning(f"{path}.onPodConditions", "only conditions that are True are looked for")
        if rule.get("action") == "FailJob" and spec.get("backoffLimitPerIndex") is not None:
            yield FieldWarning(f"{path}.action", "beside backoffLimitPerIndex FailJob fails the index alone")
