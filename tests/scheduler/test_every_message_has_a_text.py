"""Codes that the scheduler and its planner make have a text, and carry the parameters the text shows."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import pytest

import shoal
from shoal.engine.messages import CATALOG as ENGINE
from shoal.kube.messages import Message, decode, encode
from shoal.scheduler.messages import CATALOG, condition_text, text
from shoal.scheduler.planner.equivalence_classes import ObjectionKind

ROOT = Path(shoal.__file__).parent / "scheduler"
# What `diagnosis` adds to a message: the nodes that a rule closes.
ADDED_LATER = {"nodes"}


def calls() -> Iterator[tuple[str, set[str] | None]]:
    """Code and parameters of each `Message(code, {...})` in the source; None where a variable holds the parameters."""
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Message":
                given = node.args[1] if len(node.args) > 1 else ast.Dict([], [])
                is_whole = isinstance(given, ast.Dict) and all(isinstance(key, ast.Constant) for key in given.keys)
                found = {str(key.value) for key in given.keys} if is_whole else None
                for each in ast.walk(node.args[0]):
                    if isinstance(each, ast.Constant) and isinstance(each.value, str) and each.value[:1].isupper():
                        yield each.value, found


def shown(code: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(CATALOG.texts[code]) if name}


def test_a_message_is_made_with_what_its_text_shows() -> None:
    found = [(code, given) for code, given in calls() if not code.startswith("Barred.")]
    assert len(found) > 90
    assert [(code, shown(code) - given - ADDED_LATER) for code, given in found if given is not None] == [
        (code, set()) for code, given in found if given is not None
    ]
    assert [code for code, _ in found if code not in CATALOG] == []


def test_every_objection_has_a_text_for_one_node_and_for_several() -> None:
    for kind in ObjectionKind:
        parameters = {"count": 2, "taint": "gpu:NoSchedule"}
        texts = [text(Message(f"Barred.{kind}{one}", parameters)) for one in (".One", "")]
        assert [words.split()[:2] for words in texts] == [["1", "node"], ["2", "nodes"]]


def test_no_code_has_a_text_in_the_engine_too() -> None:
    assert sorted(CATALOG.texts.keys() & ENGINE.texts.keys()) == []


def test_a_message_with_a_list_survives_an_annotation() -> None:
    parts = [Message("Resources.Short", {"need": "2", "resource": "cpu", "free": "1", "whole": "4", "node": "a"})]
    parts.append(Message("Barred.Cordoned.One"))
    message = Message("Waiting", {"cause": Message("All", {"parts": parts})})
    assert decode(encode(message)) == message
    assert text(message) == "waiting: needs 2 cpu, the most free is 1 of 4 on node a; 1 node is cordoned"


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (Message("Waiting", {"cause": Message("Resources.NoNode")}), "the cluster has no node yet"),
        (Message("Scheduled.OnePlaced"), "1 pod is placed"),
    ],
)
def test_a_condition_does_not_repeat_what_its_type_says(message: Message, expected: str) -> None:
    assert condition_text(message) == expected
