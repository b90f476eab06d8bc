"""The history log: the object as it was, with the values of its variables covered."""

from __future__ import annotations

import logging

import pytest

from shoal.dialects.capabilities import Snapshot
from shoal.kube.objects import Obj
from shoal.operator.history_redaction import log_redacted, redact

POD = {
    "metadata": {"name": "a", "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "team": "x"}},
    "spec": {
        "containers": [
            {
                "name": "main",
                "command": ["train"],
                "env": [
                    {"name": "PASSWORD", "value": "swordfish"},
                    {"name": "WORD", "valueFrom": {"secretKeyRef": {"name": "key", "key": "word"}}},
                ],
            }
        ]
    },
}
SHOWN = {
    "metadata": {"name": "a", "annotations": {"team": "x"}},
    "spec": {
        "containers": [
            {
                "name": "main",
                "command": ["train"],
                "env": [
                    {"name": "PASSWORD", "value": "(covered)"},
                    {"name": "WORD", "valueFrom": {"secretKeyRef": {"name": "key", "key": "word"}}},
                ],
            }
        ]
    },
}


def test_values_are_covered_and_the_rest_stays() -> None:
    assert redact(POD) == SHOWN
    assert redact({"spec": {"taskRoles": [{"task": {"pod": POD}}]}}) == {
        "spec": {"taskRoles": [{"task": {"pod": SHOWN}}]}
    }


def test_odd_objects_are_no_trouble() -> None:
    assert redact({"env": None, "list": [None, 1]}) == {"env": None, "list": [None, 1]}
    assert redact({"env": [{"name": "A"}, None]}) == {"env": [{"name": "A"}, None]}


ODD = {
    "in another case": ({"Env": [{"Name": "A", "VALUE": "swordfish"}]}, {"Env": [{"Name": "A", "VALUE": "(covered)"}]}),
    "a map": ({"env": {"A": "swordfish"}}, {"env": {"A": "(covered)"}}),
    "texts": ({"env": ["A=swordfish"]}, {"env": ["(covered)"]}),
    "one text": ({"env": "A=swordfish"}, {"env": "(covered)"}),
}


@pytest.mark.parametrize(("written", "shown"), ODD.values(), ids=list(ODD))
def test_variables_are_covered_however_they_are_written(written: Obj, shown: Obj) -> None:
    assert redact({"spec": {"containers": [written]}}) == {"spec": {"containers": [shown]}}


def test_the_log_has_the_covered_object(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "shoal.history"):
        log_redacted(Snapshot("team/job", "OnPodDeletion", POD))
    assert "team/job: OnPodDeletion: ObjectSnapshot: {" in caplog.text
    assert "swordfish" not in caplog.text
