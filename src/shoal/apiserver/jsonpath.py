"""The small JSONPath that CustomResourceDefinitions use for their columns.

`.spec.replicas`, `.metadata.labels['app.kubernetes.io/name']`, `.status.conditions[?(@.type=="Ready")].status`,
`.status.conditions[-1:].type`, `.spec.containers[0].image`, `.spec.containers[*].name`. A path that cannot be read
finds nothing: a column is never a reason to refuse a list.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

Step = Callable[[Any], Iterable[Any]]

_TOKEN = re.compile(
    r"""\.\.?(?P<field>(?:[^.\[\]\\]|\\.)+)"""
    r"""|\[(?P<index>-?\d+)\]"""
    r"""|\[(?P<first>-?\d*):(?P<last>-?\d*)\]"""
    r"""|\[(?P<all>\*)\]"""
    r"""|\['(?P<single>[^']*)'\]"""
    r"""|\["(?P<double>[^"]*)"\]"""
    r"""|\[\?\(\s*@(?P<left>[^=!<>)]*)(?:(?P<op>==|!=)\s*(?P<right>'[^']*'|"[^"]*"|[\w.+-]+)\s*)?\)\]"""
)


@lru_cache(maxsize=2048)
def compile_path(path: str) -> tuple[Step, ...] | None:
    """The steps to walk, or None where the path is not of the small language."""
    text = path.strip().removeprefix("{").removesuffix("}").removeprefix("$")
    steps: list[Step] = []
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            return None
        steps.append(_step(token))
        at = token.end()
    return tuple(steps)


def find(obj: Any, path: str) -> list[Any]:
    """Every value the path reaches, in order; missing keys reach nothing."""
    steps = compile_path(path)
    if steps is None:
        return []
    here = [obj]
    for step in steps:
        here = [found for value in here for found in step(value)]
    return here


def _step(token: re.Match[str]) -> Step:
    if (index := token["index"]) is not None:
        at = int(index)
        return lambda value: [value[at]] if isinstance(value, list) and -len(value) <= at < len(value) else []
    if (first := token["first"]) is not None:
        part = slice(int(first) if first else None, int(token["last"]) if token["last"] else None)
        return lambda value: value[part] if isinstance(value, list) else []
    if token["all"] is not None or token["field"] == "*":
        return _children
    if token["left"] is not None:
        return _filter(token["left"].rstrip(), token["op"], token["right"])
    name = next(part for part in (token["field"], token["single"], token["double"]) if part is not None)
    key = re.sub(r"\\(.)", r"\1", name)
    return lambda value: [value[key]] if isinstance(value, dict) and key in value else []


def _children(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else []


def _filter(left: str, operator: str | None, right: str | None) -> Step:
    wanted = _literal(right) if right is not None else None

    def keep(value: Any) -> Iterator[Any]:
        for item in _children(value):
            found = find(item, left) if left else [item]
            if operator is None:
                matches = bool(found)
            elif operator == "==":
                matches = bool(found) and found[0] == wanted
            else:
                matches = bool(found) and found[0] != wanted
            if matches:
                yield item

    return keep


def _literal(text: str) -> Any:
    if text[0] in "'\"":
        return text[1:-1]
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text
