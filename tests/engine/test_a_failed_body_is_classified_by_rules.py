"""Classification: ordered patterns, the judged container, the evidence in the text, and ends without any code."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kit.engine_world import T0
from shoal.engine import ContainerEnd, ContainerState, Detail, FailureClass, ObservedPod, Outcome, PodPhase
from shoal.engine.failure_classification import Classifier, classify, find_decisive_container
from shoal.engine.policies import (
    ContainerPattern,
    DecisiveContainer,
    FailurePolicy,
    FailureRule,
    PodEndPolicy,
    PodPattern,
    Span,
)
from shoal.kube.re2 import Pattern, compiled

REST = FailureRule(FailureClass.UNKNOWN, phrase="Unrecognized")
NO_CODE = Outcome(FailureClass.UNKNOWN, -300, "NoContainer")


def failed_pod(*containers: ContainerState, **changes: object) -> ObservedPod:
    return ObservedPod("u", "fw-a-0", "a", 0, phase=PodPhase.FAILED, containers=containers, **changes)


def whole(text: str) -> Pattern:
    return compiled(f"(?msi)^{text}$")


RULES = (
    FailureRule(
        FailureClass.TRANSIENT,
        200,
        "Transient",
        patterns=(PodPattern(containers=(ContainerPattern(compiled(""), None, compiled(".*"), code=Span(200, 200)),)),),
    ),
    FailureRule(
        FailureClass.TRANSIENT, -1000, "Evicted", ("Transient",), patterns=(PodPattern(reason=whole("Evicted")),)
    ),
    FailureRule(
        FailureClass.PERMANENT,
        -1200,
        "OOM",
        patterns=(PodPattern(containers=(ContainerPattern(reason=whole("OOMKilled"), code=Span(low=1)),)),),
    ),
    FailureRule(
        FailureClass.TRANSIENT,
        137,
        "Killed",
        patterns=(PodPattern(containers=(ContainerPattern(code=Span(137, 137)),)),),
    ),
    FailureRule(
        FailureClass.PERMANENT,
        221,
        "TensorOOM",
        patterns=(PodPattern(containers=(ContainerPattern(message=compiled("(?msi)tensorflow.*oom"), code=Span(1)),)),),
    ),
    FailureRule(
        FailureClass.PERMANENT,
        222,
        "Segfault",
        patterns=(PodPattern(name=compiled("a-0"), containers=(ContainerPattern(signal=Span(11, 11)),) * 2),),
    ),
    REST,
)
POLICY = FailurePolicy(RULES, NO_CODE, matched="matched: ", unmatched="unmatched: ")

CASES = {
    "exit code": (failed_pod(ContainerState("c", code=200)), (200, 'matched: {"containers":[{"name":"","code":200}]}')),
    "evicted": (failed_pod(reason="evicted"), (-1000, 'matched: {"reason":"evicted"}')),
    "oom before 137": (
        failed_pod(ContainerState("c", code=137, reason="OOMKilled")),
        (-1200, 'matched: {"containers":[{"reason":"OOMKilled","code":137}]}'),
    ),
    "plain 137": (failed_pod(ContainerState("c", code=137)), (137, 'matched: {"containers":[{"code":137}]}')),
    "message": (
        failed_pod(ContainerState("c", code=1, message="x TensorFlow went\nOOM again")),
        (221, 'matched: {"containers":[{"message":"TensorFlow went\\nOOM","code":1}]}'),
    ),
    "two patterns, one container": (
        failed_pod(ContainerState("c", code=139, signal=11)),
        (222, 'matched: {"name":"a-0","containers":[{"signal":11},{"signal":11}]}'),
    ),
    "still running": (failed_pod(ContainerState("c")), (-300, "unmatched: {}")),
    "no failed container": (
        failed_pod(ContainerState("c", code=0), reason="Foo"),
        (-300, 'unmatched: {"reason":"Foo","containers":[{"name":"c","code":0}]}'),
    ),
    "unmatched": (
        failed_pod(ContainerState("c", code=7, reason="Error", message="m")),
        (7, 'unmatched: {"containers":[{"name":"c","reason":"Error","message":"m","code":7}]}'),
    ),
    "init container": (
        failed_pod(ContainerState("i", init=True, code=9), ContainerState("c")),
        (9, 'unmatched: {"containers":[{"name":"i","code":9}]}'),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_first_matching_rule_gives_code_and_evidence(case: str):
    pod, expected = CASES[case]
    outcome = classify(POLICY, PodEndPolicy(), pod)

    assert (outcome.code, outcome.text) == expected


def test_the_outcome_keeps_what_the_pod_said():
    pod = failed_pod(
        ContainerState("c", code=7, reason="Error", signal=3), ContainerState("side"), reason="R", message="M"
    )
    assert classify(POLICY, PodEndPolicy(), pod).detail == Detail("R", "M", (ContainerEnd("c", 7, "Error", "", 3),))


LATER = T0 + timedelta(seconds=1)
EARLY = ContainerState("early", code=3, finished=T0)
LATE = ContainerState("late", code=4, finished=LATER)
FINE = ContainerState("fine", code=0, finished=LATER)

JUDGED = {
    "last failed": (PodEndPolicy(decisive_container=DecisiveContainer.LAST_FAILED), (EARLY, LATE, FINE), "late"),
    "ties to the first": (
        PodEndPolicy(decisive_container=DecisiveContainer.LAST_FAILED),
        (EARLY, ContainerState("same", code=5, finished=T0)),
        "early",
    ),
    "named": (PodEndPolicy(decisive_container=DecisiveContainer.NAMED, container="fine"), (EARLY, FINE), "fine"),
    "named but absent": (PodEndPolicy(decisive_container=DecisiveContainer.NAMED, container="x"), (EARLY,), None),
    "first": (
        PodEndPolicy(decisive_container=DecisiveContainer.FIRST),
        (ContainerState("i", init=True, code=1), FINE, EARLY),
        "fine",
    ),
    "training failed": (
        PodEndPolicy(decisive_container=DecisiveContainer.TRAINING, container="late"),
        (EARLY, LATE),
        "late",
    ),
    "training fine": (
        PodEndPolicy(decisive_container=DecisiveContainer.TRAINING, container="fine"),
        (FINE, LATE),
        "late",
    ),
    "nobody ended": (PodEndPolicy(), (ContainerState("c"),), None),
}


@pytest.mark.parametrize("case", JUDGED)
def test_one_container_speaks_for_the_pod(case: str):
    ending, containers, expected = JUDGED[case]
    found = find_decisive_container(ending, containers)

    assert (found.name if found else None) == expected


SIMPLE = {
    "codes": (FailureRule(FailureClass.OK, codes=frozenset({7})), {}, True),
    "other code": (FailureRule(FailureClass.OK, codes=frozenset({8})), {}, False),
    "span": (FailureRule(FailureClass.OK, code_span=Span(5)), {}, True),
    "beyond the span": (FailureRule(FailureClass.OK, code_span=Span(high=6)), {}, False),
    "a code, none asked": (FailureRule(FailureClass.OK, no_code=True), {}, False),
    "reasons": (FailureRule(FailureClass.OK, reasons=frozenset({"Evicted"})), {"reason": "Evicted"}, True),
    "condition": (
        FailureRule(FailureClass.OK, condition="DisruptionTarget"),
        {"conditions": frozenset({"DisruptionTarget"})},
        True,
    ),
    "condition not true": (FailureRule(FailureClass.OK, condition="DisruptionTarget"), {}, False),
    "no peer": (FailureRule(FailureClass.OK, peer_ok=True), {}, False),
}


@pytest.mark.parametrize("case", SIMPLE)
def test_conditions_of_a_rule_must_all_hold(case: str):
    rule, changes, expected = SIMPLE[case]
    outcome = classify(FailurePolicy((rule, REST)), PodEndPolicy(), failed_pod(ContainerState("c", code=7), **changes))

    assert outcome.is_ok is expected


def test_a_failure_after_a_peer_succeeded_may_mean_something_else():
    policy = FailurePolicy((FailureRule(FailureClass.OK, codes=frozenset({1}), peer_ok=True), REST))
    assert classify(policy, PodEndPolicy(), failed_pod(ContainerState("c", code=1)), peer_ok=True).is_ok


def test_equal_ends_are_equal_and_different_ones_are_not():
    classifier = Classifier(POLICY, PodEndPolicy())
    ends = [failed_pod(ContainerState("c", code=code)) for code in (7, 7, 8, 200)]

    assert [classifier.of(pod, peer_ok=False) for pod in ends] == [
        classify(POLICY, PodEndPolicy(), pod) for pod in ends
    ]
