"""Codes that the engine and the operator emit have a text, and are emitted with the parameters the text shows."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import shoal
from shoal.engine import EventType
from shoal.engine.messages import CATALOG as ENGINE
from shoal.engine.messages import cause_of, describe_trigger
from shoal.engine.types import Event, Trigger
from shoal.kube.messages import Message, decode, encode
from shoal.kube.times import parse
from shoal.operator.messages import CATALOG

ROOT = Path(shoal.__file__).parent
NOW = parse("2030-01-01T00:00:00Z")


def calls() -> Iterator[tuple[str, frozenset[str]]]:
    """Code and parameters of each `emit(subject, code, **parameters)` and `Message(code, {...})` in the source."""
    for room in ("engine", "operator", "dialects"):
        for path in (ROOT / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if not isinstance(node, ast.Call):
                    continue
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if name == "emit" and isinstance(node.args[1], ast.Constant):
                    yield node.args[1].value, frozenset(k.arg or "**" for k in node.keywords) - {"warning"}
                elif name == "Message" and node.args and isinstance(node.args[0], ast.Constant):
                    given = node.args[1] if len(node.args) > 1 else ast.Dict([], [])
                    if isinstance(given, ast.Dict):
                        yield node.args[0].value, frozenset(k.value for k in given.keys if isinstance(k, ast.Constant))


def shown(code: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(CATALOG.texts[code]) if name}


def test_a_code_is_emitted_with_what_its_text_shows() -> None:
    found = list(calls())
    assert len(found) > 30
    assert [(code, shown(code) - given) for code, given in found if "**" not in given and shown(code) - given] == []


def test_every_event_is_a_cause() -> None:
    texts = [ENGINE.text(cause_of(Event(kind, NOW, "w", 1, code=3))) for kind in EventType if kind is not EventType.ANY]
    assert "w-1 failed with code 3" in texts
    assert len(set(texts)) == len(texts)


def test_a_trigger_is_described_with_the_name_of_its_task_once() -> None:
    assert describe_trigger(Trigger("w", 1, "w-1 failed with code 3")) == "w-1 failed with code 3"
    assert (
        describe_trigger(Trigger("w", 1, "FailedTaskCount 1 has reached 1")) == "w-1: FailedTaskCount 1 has reached 1"
    )
    assert describe_trigger(Trigger("w", 1)) == "w-1"


def test_a_message_with_parts_survives_an_annotation() -> None:
    message = Message("Restarting", {"job": "a", "cause": Message("Cause.NoRestart", {"cause": Message("Cause.Stop")})})
    assert decode(encode(message)) == message
    assert ENGINE.text(message) == "a restarts with all its tasks, because no restart is left: a stop was requested"


def test_an_annotation_that_is_no_message_is_none() -> None:
    deep = '{"code":"a","parameters":{"b":' * 200 + "1" + "}}" * 200
    for text in ("", "x", "[]", '{"code": 3}', '{"code":"a","parameters":{"b":{"c":1}}}', "1" * 5000, deep):
        assert decode(text) is None


def test_a_message_that_is_nested_without_end_is_none() -> None:
    for text in ('{"code":"a","parameters":{"b":' + "[" * depth + "]" * depth + "}}" for depth in (17, 400)):
        assert decode(text) is None
    assert decode('{"code":"a","parameters":{"b":[["c"]]}}') == Message("a", {"b": [["c"]]})
