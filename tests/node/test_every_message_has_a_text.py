"""Codes of the node have a text, are used, and come with the parameters the text shows."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import msgspec

import shoal
from shoal.kube.messages import Message
from shoal.node.checkpoint import Ended, PodOutcome
from shoal.node.messages import CATALOG, text

NODE = Path(shoal.__file__).parent / "node"
CONSTANTS = {node.value for path in NODE.rglob("*.py") if path.name != "messages.py"
             for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)}  # fmt: skip


def calls() -> Iterator[tuple[str, frozenset[str]]]:
    """Code and parameters of each `Message(code, {...})`, also where the parameters have a name."""
    for path in NODE.rglob("*.py"):
        for function in ast.walk(ast.parse(path.read_text())):
            if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            named: dict[str, set[str]] = {}
            for node in ast.walk(function):
                if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
                    for target in node.targets:
                        if isinstance(target, ast.Name):
                            named.setdefault(target.id, set()).update(keys(node.value))
            for node in ast.walk(function):
                if not isinstance(node, ast.Call) or getattr(node.func, "id", "") != "Message":
                    continue
                code, given = node.args[0], node.args[1] if len(node.args) > 1 else ast.Dict([], [])
                if not isinstance(code, ast.Constant):
                    continue
                if isinstance(given, ast.Dict) and None not in given.keys:
                    yield code.value, frozenset(keys(given))
                elif isinstance(given, ast.Name):
                    yield code.value, frozenset(named.get(given.id, ()))


def keys(given: ast.Dict) -> set[str]:
    return {key.value for key in given.keys if isinstance(key, ast.Constant)}


def shown(code: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(CATALOG.texts[code]) if name}


def test_a_code_comes_with_what_its_text_shows() -> None:
    found = list(calls())
    assert len(found) > 60
    extra = {"Request.WaitingContainer": {"reason"}}  # added to parameters of two messages
    assert [(c, shown(c) - given) for c, given in found if shown(c) - given - extra.get(c, set())] == []


def test_every_text_is_used() -> None:
    assert set(CATALOG.texts) - CONSTANTS == set()


def test_a_message_in_a_record_survives_it_and_so_does_the_text_of_an_earlier_version() -> None:
    lost = Ended(1.0, 137, None, "ContainerStatusUnknown", Message("Lost.AgentAway"))
    assert msgspec.json.decode(msgspec.json.encode(lost), type=Ended) == lost
    earlier = b'{"phase":"Failed","reason":"OutOfpods","message":"Pod was rejected"}'
    assert text(msgspec.json.decode(earlier, type=PodOutcome).message) == "Pod was rejected"


def test_lists_are_shown_as_kubernetes_shows_them() -> None:
    names = {"pod": "p", "containers": ["a", "b"]}
    assert text(Message("Request.NoContainer", names)).endswith("choose one of: [a b]")
