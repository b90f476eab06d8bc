"""Trees of plain data with places left open, and how they are filled in.

One drawing serves every way of installing: filled with values it is what `shoal install` applies; read by
`tools/render-deploy` it becomes a chart. Four marks, all of them strings:

    "${replicas}"                 a value, of its own type where it stands alone
    {"$if webhook": ...}          in a list or mapping: its content where the value says so; or `$if not webhook`
    {"$if dialects=framework": …} where the list of that name contains the word, or the value is that word
    {"$each shard": ...}          in a list: its content once per number below `shards`
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_PLACE = re.compile(r"\$\{(\w+)\}")
_MARK = re.compile(r"\$(if|each) (not )?(\w+)(?:=(\S+))?")


class Mark:
    """What the key of a mark says."""

    def __init__(self, key: str) -> None:
        found = _MARK.fullmatch(key)
        if found is None:
            raise ValueError(f"{key!r} is no mark of a drawing")
        self.repeats = found[1] == "each"
        self.negated = bool(found[2])
        self.name: str = found[3]
        self.word: str = found[4] or ""

    def holds(self, values: Mapping[str, Any]) -> bool:
        value = values[self.name]
        if not self.word:
            return bool(value) != self.negated
        return (self.word == value if isinstance(value, str) else self.word in value) != self.negated


def mark_of(node: Any) -> tuple[Mark, Any] | None:
    """A mapping that is nothing but one mark, and its content."""
    if isinstance(node, dict) and len(node) == 1:
        ((key, content),) = node.items()
        if key.startswith("$"):
            return Mark(key), content
    return None


def filled(node: Any, values: Mapping[str, Any]) -> Any:
    """The drawing with every place filled in and every condition decided."""
    if isinstance(node, str):
        return _text(node, values)
    if isinstance(node, list):
        return [made for item in node for made in _items(item, values)]
    if isinstance(node, dict):
        return dict(pair for key, value in node.items() for pair in _entries(key, value, values))
    return node


def _text(text: str, values: Mapping[str, Any]) -> Any:
    alone = _PLACE.fullmatch(text)
    if alone:
        return values[alone[1]]
    return _PLACE.sub(lambda found: str(values[found[1]]), text)


def _items(item: Any, values: Mapping[str, Any]) -> Iterator[Any]:
    marked = mark_of(item)
    if marked is None:
        yield filled(item, values)
        return
    mark, content = marked
    if mark.repeats:
        for number in range(values[f"{mark.name}s"]):
            yield filled(content, {**values, mark.name: number})
    elif mark.holds(values):
        yield from filled(content if isinstance(content, list) else [content], values)


def _entries(key: str, value: Any, values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    if not key.startswith("$if"):
        yield str(_text(key, values)), filled(value, values)
    elif Mark(key).holds(values):
        yield from filled(value, values).items()
