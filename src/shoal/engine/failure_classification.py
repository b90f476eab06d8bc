"""What a failed pod, or a rejected creation, means: the rules of a dialect's FailurePolicy; the first match wins.

A rule's patterns match the pod and its containers; the text of the outcome carries the evidence, which is exactly
what the pattern named and what was found there. Retries are not decided here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import msgspec

from shoal.engine.observed import ContainerState, ObservedPod, Refused
from shoal.engine.types import BAD, ContainerEnd, Detail, FailureClass, Outcome
from shoal.kube.re2 import Pattern

if TYPE_CHECKING:
    from shoal.engine.pod_outcomes import PodEndPolicy

Evidence = dict[str, Any]


class DecisiveContainer(Enum):
    """Which container decides the outcome of the pod."""

    NAMED = "named"  # the container of that name
    TRAINING = "training"  # the named one; if that is 0 the first non-zero
    FIRST = "first"
    LAST_FAILED = "last failed"  # non-zero, finished last


@dataclass(frozen=True, slots=True)
class Span:
    """A closed range of numbers, open where a side is missing."""

    low: int | None = None
    high: int | None = None

    def __contains__(self, number: int) -> bool:
        return (self.low is None or number >= self.low) and (self.high is None or number <= self.high)


@dataclass(frozen=True, slots=True)
class ContainerPattern:
    """All given fields must match one container; all but the name need a container that terminated."""

    name: Pattern | None = None
    reason: Pattern | None = None
    message: Pattern | None = None
    signal: Span | None = None
    code: Span | None = None

    def search(self, container: ContainerState) -> Evidence | None:
        """What matched, or None."""
        named_only = (self.reason, self.message, self.signal, self.code) == (None, None, None, None)
        if container.code is None and not named_only:
            return None
        parts = {"name": container.name, "reason": container.reason, "message": container.message}
        found = _search_all(self, parts)
        if found is None:
            return None
        if self.signal is not None:
            if container.signal not in self.signal:
                return None
            if container.signal:
                found["signal"] = container.signal
        if self.code is not None:
            if container.code is None or container.code not in self.code:
                return None
            found["code"] = container.code
        return found


@dataclass(frozen=True, slots=True)
class PodPattern:
    """All given fields must match; each container pattern needs some container that matches it."""

    name: Pattern | None = None
    reason: Pattern | None = None
    message: Pattern | None = None
    containers: tuple[ContainerPattern, ...] = ()

    def search(self, pod: ObservedPod) -> Evidence | None:
        """What matched, or None."""
        found = _search_all(self, {"name": pod.name, "reason": pod.reason, "message": pod.message})
        if found is None:
            return None
        containers: list[Evidence] = []
        for wanted in self.containers:
            hits = (wanted.search(container) for container in pod.containers)
            hit = next((evidence for evidence in hits if evidence is not None), None)
            if hit is None:
                return None
            containers.append(hit)
        if containers:
            found["containers"] = containers
        return found


@dataclass(frozen=True, slots=True)
class FailureRule:
    """First match wins; a rule without conditions matches every failed pod. code None: the decisive container's."""

    failure_class: FailureClass
    code: int | None = None
    phrase: str = "Failed"
    attributes: tuple[str, ...] = ()
    patterns: tuple[PodPattern, ...] = ()  # any of them
    codes: frozenset[int] = frozenset()  # of the decisive container
    code_span: Span | None = None
    no_code: bool = False
    reasons: frozenset[str] = frozenset()  # of the pod
    condition: str = ""  # of the pod, True
    peer_ok: bool = False  # another task of the role already succeeded

    def match(self, pod: ObservedPod, code: int | None, *, peer_ok: bool) -> Evidence | None:
        """What made the rule match ({} where it names no pattern), or None."""
        if self.codes and code not in self.codes:
            return None
        if self.code_span is not None and (code is None or code not in self.code_span):
            return None
        if self.no_code and code is not None:
            return None
        if self.reasons and pod.reason not in self.reasons:
            return None
        if self.condition and self.condition not in pod.conditions:
            return None
        if self.peer_ok and not peer_ok:
            return None
        if not self.patterns:
            return {}
        found = (pattern.search(pod) for pattern in self.patterns)
        return next((evidence for evidence in found if evidence is not None), None)


@dataclass(frozen=True, slots=True)
class CreationRefusal:
    """What a refused creation means; outcome None: wait and try again. Conditions left out match anything."""

    outcome: Outcome | None
    codes: frozenset[int] = frozenset()
    texts: tuple[str, ...] = ()  # any of them within the error's text

    def matches(self, refused: Refused) -> bool:
        if self.codes and refused.code not in self.codes:
            return False
        return not self.texts or any(text in refused.text for text in self.texts)


@dataclass(frozen=True, slots=True)
class FailurePolicy:
    rules: tuple[FailureRule, ...] = (FailureRule(FailureClass.UNKNOWN),)
    no_code: Outcome = BAD  # no rule matched and no container failed
    refusals: tuple[CreationRefusal, ...] = ()  # no match: wait and try again
    matched: str = "Pod failed: "  # texts in front of the evidence
    unmatched: str = "Pod failed: "
    refused: str = "Failed to create the pod: "


class Classifier:
    """Classifies the pods of one pass. A gang often fails for one cause, so equal ends are classified once."""

    __slots__ = ("_by_end", "_ending", "_names_matter", "_policy")

    def __init__(self, policy: FailurePolicy, pod_end: PodEndPolicy) -> None:
        self._policy = policy
        self._ending = pod_end
        self._names_matter: bool | None = None  # no task has failed yet, as in most passes
        self._by_end: dict[tuple[object, ...], Outcome] = {}

    def of(self, pod: ObservedPod, *, peer_ok: bool) -> Outcome:
        """The outcome of a pod in phase Failed, or whose decisive container failed."""
        if self._names_matter is None:
            self._names_matter = any(pattern.name for rule in self._policy.rules for pattern in rule.patterns)
        several = len(pod.containers) > 1
        # Every input of a rule; times are included only where they distinguish containers.
        containers = tuple(
            [
                (c.name, c.init, c.code, c.signal, c.reason, c.message, c.finished if several else None)
                for c in pod.containers
            ]
        )
        name = pod.name if self._names_matter else ""
        end = (name, pod.reason, pod.message, pod.conditions, peer_ok, containers)
        found = self._by_end.get(end)
        if found is None:
            found = self._by_end[end] = classify(self._policy, self._ending, pod, peer_ok=peer_ok)
        return found


def classify(policy: FailurePolicy, pod_end: PodEndPolicy, pod: ObservedPod, *, peer_ok: bool = False) -> Outcome:
    """The outcome of a pod in phase Failed, or whose decisive container failed."""
    decisive_container = find_decisive_container(pod_end, pod.containers)
    code = decisive_container.code if decisive_container is not None else None
    detail = detail_of(pod)
    for rule in policy.rules:
        evidence = rule.match(pod, code, peer_ok=peer_ok)
        if evidence is None:
            continue
        if rule.code is None and code is None:
            break
        matched = policy.matched + compact(evidence) if rule.patterns else policy.unmatched + compact(_shown(detail))
        return Outcome(
            rule.failure_class,
            code=rule.code if rule.code is not None else (code or 0),
            phrase=rule.phrase,
            text=matched,
            attributes=rule.attributes,
            detail=detail,
        )
    return _with_text(policy.no_code, policy.unmatched + compact(_shown(detail)), detail)


def classify_refusal(policy: FailurePolicy, refused: Refused) -> Outcome | None:
    """The outcome of a creation the API refused; None: wait and try again."""
    rule = next((rule for rule in policy.refusals if rule.matches(refused)), None)
    if rule is None or rule.outcome is None:
        return None
    return _with_text(rule.outcome, policy.refused + refused.text, None)


def find_decisive_container(pod_end: PodEndPolicy, containers: Iterable[ContainerState]) -> ContainerState | None:
    """The terminated container whose exit code decides for the pod, or None."""
    ended = [container for container in containers if container.code is not None]
    if pod_end.decisive_container is DecisiveContainer.NAMED:
        return next((c for c in ended if c.name == pod_end.container), None)
    if pod_end.decisive_container is DecisiveContainer.FIRST:
        return next((c for c in ended if not c.init), None)
    failed = [c for c in ended if c.code]
    if pod_end.decisive_container is DecisiveContainer.TRAINING:
        training = next((c for c in ended if c.name == pod_end.container), None)
        return training if training is not None and training.code else next(iter(failed), training)
    timed = [c for c in failed if c.finished is not None]
    return (
        max(timed, key=lambda c: c.finished.timestamp() if c.finished else 0.0) if timed else next(iter(failed), None)
    )


def detail_of(pod: ObservedPod) -> Detail:
    """What the pod's status reports about its end, containers that ran included."""
    ends = tuple(
        ContainerEnd(c.name, c.code, c.reason, c.message, c.signal) for c in pod.containers if c.code is not None
    )
    return Detail(pod.reason, pod.message, ends)


def compact(evidence: Evidence) -> str:
    return msgspec.json.encode(evidence).decode()


def _with_text(outcome: Outcome, text: str, detail: Detail | None) -> Outcome:
    return Outcome(
        outcome.failure_class,
        code=outcome.code,
        phrase=outcome.phrase,
        text=text,
        attributes=outcome.attributes,
        final=outcome.final,
        detail=detail,
    )


def _shown(detail: Detail) -> Evidence:
    """The whole detail as evidence, empty fields omitted; a code is always included."""
    containers = [
        _compact_value({"name": c.name, "reason": c.reason, "message": c.message, "signal": c.signal})
        | {"code": c.code}
        for c in detail.containers
    ]
    return _compact_value({"reason": detail.reason, "message": detail.message, "containers": containers})


def _compact_value(evidence: Evidence) -> Evidence:
    return {key: value for key, value in evidence.items() if value}


def _search_all(pattern: PodPattern | ContainerPattern, parts: dict[str, str]) -> Evidence | None:
    """The substrings the given expressions found, or None where one found nothing."""
    found: Evidence = {}
    for key, text in parts.items():
        expression: Pattern | None = getattr(pattern, key)
        if expression is None:
            continue
        match = expression.search(text)
        if match is None:
            return None
        if match or key == "name":
            found[key] = match
    return found
