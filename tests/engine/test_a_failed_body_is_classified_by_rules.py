"""Classification: ordered patterns, the judged container, the evidence in the text, and ends without any code."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kit.engine_world import T0
from shoal.engine import Body, Container, ContainerEnd, Detail, Nature, Outcome, Phase
from shoal.engine.classification import Classifier, classify, judged_container
from shoal.engine.policies import Classify, ContainerPattern, Ending, Judged, PodPattern, Rule, Span
from shoal.kube.structural_schema.re2 import Pattern, compiled

REST = Rule(Nature.UNKNOWN, phrase="Unrecognized")
NO_CODE = Outcome(Nature.UNKNOWN, -300, "NoContainer")


def pod(*containers: Container, **changes: object) -> Body:
    return Body("u", "fw-a-0", "a", 0, phase=Phase.FAILED, containers=containers, **changes)


def whole(text: str) -> Pattern:
    return compiled(f"(?msi)^{text}$")


RULES = (
    Rule(
        Nature.TRANSIENT,
        200,
        "Transient",
        patterns=(PodPattern(containers=(ContainerPattern(compiled(""), None, compiled(".*"), code=Span(200, 200)),)),),
    ),
    Rule(Nature.TRANSIENT, -1000, "Evicted", ("Transient",), patterns=(PodPattern(reason=whole("Evicted")),)),
    Rule(
        Nature.PERMANENT,
        -1200,
        "OOM",
        patterns=(PodPattern(containers=(ContainerPattern(reason=whole("OOMKilled"), code=Span(low=1)),)),),
    ),
    Rule(Nature.TRANSIENT, 137, "Killed", patterns=(PodPattern(containers=(ContainerPattern(code=Span(137, 137)),)),)),
    Rule(
        Nature.PERMANENT,
        221,
        "TensorOOM",
        patterns=(PodPattern(containers=(ContainerPattern(message=compiled("(?msi)tensorflow.*oom"), code=Span(1)),)),),
    ),
    Rule(
        Nature.PERMANENT,
        222,
        "Segfault",
        patterns=(PodPattern(name=compiled("a-0"), containers=(ContainerPattern(signal=Span(11, 11)),) * 2),),
    ),
    REST,
)
POLICY = Classify(RULES, NO_CODE, matched="matched: ", unmatched="unmatched: ")

CASES = {
    "exit code": (pod(Container("c", code=200)), (200, 'matched: {"containers":[{"name":"","code":200}]}')),
    "evicted": (pod(reason="evicted"), (-1000, 'matched: {"reason":"evicted"}')),
    "oom before 137": (
        pod(Container("c", code=137, reason="OOMKilled")),
        (-1200, 'matched: {"containers":[{"reason":"OOMKilled","code":137}]}'),
    ),
    "plain 137": (pod(Container("c", code=137)), (137, 'matched: {"containers":[{"code":137}]}')),
    "message": (
        pod(Container("c", code=1, message="x TensorFlow went\nOOM again")),
        (221, 'matched: {"containers":[{"message":"TensorFlow went\\nOOM","code":1}]}'),
    ),
    "two patterns, one container": (
        pod(Container("c", code=139, signal=11)),
        (222, 'matched: {"name":"a-0","containers":[{"signal":11},{"signal":11}]}'),
    ),
    "still running": (pod(Container("c")), (-300, "unmatched: {}")),
    "no failed container": (
        pod(Container("c", code=0), reason="Foo"),
        (-300, 'unmatched: {"reason":"Foo","containers":[{"name":"c","code":0}]}'),
    ),
    "unmatched": (
        pod(Container("c", code=7, reason="Error", message="m")),
        (7, 'unmatched: {"containers":[{"name":"c","reason":"Error","message":"m","code":7}]}'),
    ),
    "init container": (
        pod(Container("i", init=True, code=9), Container("c")),
        (9, 'unmatched: {"containers":[{"name":"i","code":9}]}'),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_first_matching_rule_gives_code_and_evidence(case: str):
    body, expected = CASES[case]
    outcome = classify(POLICY, Ending(), body)

    assert (outcome.code, outcome.text) == expected


def test_the_outcome_keeps_what_the_pod_said():
    body = pod(Container("c", code=7, reason="Error", signal=3), Container("side"), reason="R", message="M")
    assert classify(POLICY, Ending(), body).detail == Detail("R", "M", (ContainerEnd("c", 7, "Error", "", 3),))


LATER = T0 + timedelta(seconds=1)
EARLY = Container("early", code=3, finished=T0)
LATE = Container("late", code=4, finished=LATER)
FINE = Container("fine", code=0, finished=LATER)

JUDGED = {
    "last failed": (Ending(judged=Judged.LAST_FAILED), (EARLY, LATE, FINE), "late"),
    "ties to the first": (Ending(judged=Judged.LAST_FAILED), (EARLY, Container("same", code=5, finished=T0)), "early"),
    "named": (Ending(judged=Judged.NAMED, container="fine"), (EARLY, FINE), "fine"),
    "named but absent": (Ending(judged=Judged.NAMED, container="x"), (EARLY,), None),
    "first": (Ending(judged=Judged.FIRST), (Container("i", init=True, code=1), FINE, EARLY), "fine"),
    "training failed": (Ending(judged=Judged.TRAINING, container="late"), (EARLY, LATE), "late"),
    "training fine": (Ending(judged=Judged.TRAINING, container="fine"), (FINE, LATE), "late"),
    "nobody ended": (Ending(), (Container("c"),), None),
}


@pytest.mark.parametrize("case", JUDGED)
def test_one_container_speaks_for_the_pod(case: str):
    ending, containers, expected = JUDGED[case]
    found = judged_container(ending, containers)

    assert (found.name if found else None) == expected


SIMPLE = {
    "codes": (Rule(Nature.OK, codes=frozenset({7})), {}, True),
    "other code": (Rule(Nature.OK, codes=frozenset({8})), {}, False),
    "span": (Rule(Nature.OK, code_span=Span(5)), {}, True),
    "beyond the span": (Rule(Nature.OK, code_span=Span(high=6)), {}, False),
    "a code, none asked": (Rule(Nature.OK, no_code=True), {}, False),
    "reasons": (Rule(Nature.OK, reasons=frozenset({"Evicted"})), {"reason": "Evicted"}, True),
    "condition": (Rule(Nature.OK, condition="DisruptionTarget"), {"conditions": frozenset({"DisruptionTarget"})}, True),
    "condition not true": (Rule(Nature.OK, condition="DisruptionTarget"), {}, False),
    "no peer": (Rule(Nature.OK, peer_ok=True), {}, False),
}


@pytest.mark.parametrize("case", SIMPLE)
def test_conditions_of_a_rule_must_all_hold(case: str):
    rule, changes, expected = SIMPLE[case]
    outcome = classify(Classify((rule, REST)), Ending(), pod(Container("c", code=7), **changes))

    assert outcome.is_ok is expected


def test_a_failure_after_a_peer_succeeded_may_mean_something_else():
    policy = Classify((Rule(Nature.OK, codes=frozenset({1}), peer_ok=True), REST))
    assert classify(policy, Ending(), pod(Container("c", code=1)), peer_ok=True).is_ok


def test_equal_ends_are_equal_and_different_ones_are_not():
    classifier = Classifier(POLICY, Ending())
    ends = [pod(Container("c", code=code)) for code in (7, 7, 8, 200)]

    assert [classifier.of(body, peer_ok=False) for body in ends] == [classify(POLICY, Ending(), body) for body in ends]
