"""YAML to JSON values and back, with the scalar rules of kubectl (sigs.k8s.io/yaml).

Values are built directly from parser events, without a node graph in between. Depth, number of nodes and the volume
that aliases and merge keys add are checked as events arrive, so a small document cannot become a large value and
nesting costs no stack. Plain scalars are what go-yaml makes of them: yes, no, on, off, y and n are booleans, 012 is
10, 1_000 is 1000; dates and 1:30 are strings. Only tags of JSON's types are accepted (!!str, !!int, !!float, !!bool,
!!null, !!seq, !!map); kubectl ignores or converts the others, here they are an error. Every error names its line.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import yaml

MAX_DEPTH = 128
MAX_NODES = 250_000
MAX_COPIED = 4 * 1024 * 1024  # nodes and characters that aliases may add to a document
MAX_DUPLICATES = 100  # of which paths are kept
_MAX_SHOWN = 100  # characters of a key or tag in a message
_MAX_DIRECTIVES = 8  # libyaml compares each %TAG with all before it

Json = Any

_TAG = "tag:yaml.org,2002:"
_WORDS: dict[str, Json] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
}
_INFINITE = {f"{sign}.{word}" for sign in ("", "+", "-") for word in ("inf", "Inf", "INF")} | {".nan", ".NaN", ".NAN"}
_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_DIRECTIVE = re.compile("(?:^|[\r\x85\u2028\u2029])%", re.MULTILINE)  # after any line break in libyaml's sense
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_NO_KEY = "a key must be text, not a list or a mapping"
_MAX_DIGITS = 400  # no float has more before its point; longer numbers stay text


class YamlDecodeError(ValueError):
    """The document is not YAML, or YAML that JSON has no value for. The message begins with the line."""


class Decoded(NamedTuple):
    """A value and the paths of keys that occur twice in one mapping (the last one wins)."""

    value: Json
    duplicates: tuple[str, ...] = ()


def decode(data: bytes) -> Decoded:
    """The only document in `data`; None where there is none."""
    text = data.decode("utf-16" if data.startswith(_UTF16) else "utf-8", "replace")
    if len(_DIRECTIVE.findall(text)) > _MAX_DIRECTIVES:
        raise YamlDecodeError(f"line 1: more than {_MAX_DIRECTIVES} directives")
    builder = _Builder()
    loader = yaml.CSafeLoader(data)
    try:
        while not isinstance(event := loader.get_event(), yaml.StreamEndEvent):
            builder.take(event)
    except yaml.reader.ReaderError as problem:
        line = data.count(b"\n", 0, problem.position) + 1
        raise YamlDecodeError(f"line {line}: {problem.reason}") from None
    except yaml.MarkedYAMLError as problem:
        raise YamlDecodeError(f"{_line(problem.problem_mark)}{problem.problem}") from None
    finally:
        loader.dispose()
    return Decoded(builder.root, tuple(builder.duplicates))


def _line(mark: Any) -> str:
    return f"line {mark.line + 1}: " if mark is not None else ""


class _Dumper(yaml.CSafeDumper):
    pass


def _represent_text(dumper: yaml.CSafeDumper, text: str) -> yaml.Node:
    quoted = text in _WORDS or text in _INFINITE or not isinstance(_number(text[:_MAX_DIGITS]), str)
    return dumper.represent_scalar(f"{_TAG}str", text, style="'" if quoted else None)


_Dumper.add_representer(str, _represent_text)


def encode(value: Json, *, sort_keys: bool = True) -> str:
    """Block style. Text that a reader of YAML 1.1 or 1.2 could take for something else is quoted."""
    dumped: str = yaml.dump(value, Dumper=_Dumper, allow_unicode=True, width=2**20, sort_keys=sort_keys)
    return dumped


class _Anchored(NamedTuple):
    value: Json
    nodes: int
    characters: int
    height: int


class _OpenNode:
    """A sequence or mapping whose end has not been read."""

    __slots__ = ("anchor", "characters", "height", "key", "merged", "nodes", "value")

    def __init__(self, value: dict[str, Json] | list[Json], anchor: str | None, nodes: int, characters: int) -> None:
        self.value = value
        self.anchor = anchor
        self.nodes = nodes  # counted before it
        self.characters = characters
        self.height = 1
        self.key: str | _Merge | None = None  # of a mapping: read, and its value not yet
        self.merged: list[dict[str, Json]] = []


class _Merge:
    """The key <<."""


_MERGE = _Merge()


class _Builder:
    def __init__(self) -> None:
        self.root: Json = None
        self.duplicates: list[str] = []
        self._stack: list[_OpenNode] = []
        self._anchors: dict[str, _Anchored | None] = {}  # None while the anchored value is incomplete
        self._nodes = 0
        self._characters = 0
        self._copied = 0
        self._documents = 0
        self._on: dict[type, Callable[[Any], None]] = {
            yaml.ScalarEvent: self._scalar,
            yaml.MappingStartEvent: lambda event: self._begin({}, event, "map"),
            yaml.SequenceStartEvent: lambda event: self._begin([], event, "seq"),
            yaml.MappingEndEvent: self._end,
            yaml.SequenceEndEvent: self._end,
            yaml.AliasEvent: self._alias,
        }

    def take(self, event: Any) -> None:
        if (handle := self._on.get(type(event))) is not None:
            handle(event)
        elif isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise _error(event, "a second document, where one is expected")

    def _scalar(self, event: Any) -> None:
        value = _scalar(event)
        self._count(event, nodes=1, characters=len(event.value))
        if event.anchor:
            self._anchors[event.anchor] = _Anchored(value, 1, len(event.value), 0)
        if (mapping := self._expects_key()) is None:
            self._put(event, value, height=0)
        elif event.value == "<<" and event.tag is None and not event.style:
            mapping.key = _MERGE
        else:
            mapping.key = self._key(mapping, value)

    def _expects_key(self) -> _OpenNode | None:
        """The innermost mapping, if its next item is a key."""
        top = self._stack[-1] if self._stack else None
        return top if top is not None and top.key is None and isinstance(top.value, dict) else None

    def _begin(self, value: Any, event: Any, tag: str) -> None:
        if event.tag not in (None, "!", _TAG + tag):
            raise _error(event, f"the tag {_shown(event.tag)} has no meaning here; leave it out")
        self._count(event, nodes=1)
        if self._expects_key() is not None:
            raise _error(event, _NO_KEY)
        if len(self._stack) >= MAX_DEPTH:
            raise _error(event, f"nested more than {MAX_DEPTH} levels deep")
        if event.anchor:
            self._anchors[event.anchor] = None
        self._stack.append(_OpenNode(value, event.anchor, self._nodes - 1, self._characters))

    def _end(self, event: Any) -> None:
        done = self._stack.pop()
        for source in done.merged:  # of several, the first has precedence; the mapping's own keys override
            for key, value in source.items():
                done.value.setdefault(key, value)  # type: ignore[union-attr]
        if done.anchor:
            self._anchors[done.anchor] = _Anchored(
                done.value, self._nodes - done.nodes, self._characters - done.characters, done.height
            )
        self._put(event, done.value, height=done.height)

    def _alias(self, event: Any) -> None:
        if event.anchor not in self._anchors:
            raise _error(event, f"the anchor {event.anchor[:_MAX_SHOWN]!r} is not defined")
        anchored = self._anchors[event.anchor]
        if anchored is None:
            raise _error(event, f"the value of anchor {event.anchor[:_MAX_SHOWN]!r} contains itself")
        self._copied += anchored.nodes + anchored.characters
        if self._copied > MAX_COPIED:
            raise _error(event, "document contains excessive aliasing")
        if len(self._stack) + anchored.height > MAX_DEPTH:
            raise _error(event, f"nested more than {MAX_DEPTH} levels deep")
        self._count(event, nodes=anchored.nodes, characters=anchored.characters)
        if (mapping := self._expects_key()) is None:
            self._put(event, _copied(anchored.value), height=anchored.height)
        elif isinstance(anchored.value, dict | list):
            raise _error(event, _NO_KEY)
        else:
            mapping.key = self._key(mapping, anchored.value)

    def _count(self, event: Any, *, nodes: int, characters: int = 0) -> None:
        self._nodes += nodes
        self._characters += characters
        if self._nodes > MAX_NODES:
            raise _error(event, f"more than {MAX_NODES} values in one document")

    def _key(self, top: _OpenNode, value: Json) -> str:
        if isinstance(value, bool):
            key = "true" if value else "false"
        else:
            key = "null" if value is None else str(value)
        if key in top.value and len(self.duplicates) < MAX_DUPLICATES:
            path = ""
            for each in self._stack[:-1]:
                path += f"[{len(each.value)}]" if isinstance(each.value, list) else f".{str(each.key)[:_MAX_SHOWN]}"
            self.duplicates.append(f"{path}.{key[:_MAX_SHOWN]}".removeprefix("."))
        return key

    def _put(self, event: Any, value: Json, *, height: int) -> None:
        if not self._stack:
            self.root = value
            return
        top = self._stack[-1]
        top.height = max(top.height, height + 1)
        if isinstance(top.value, list):
            top.value.append(value)
            return
        if isinstance(top.key, _Merge):
            sources = value if isinstance(value, list) else [value]
            if not all(isinstance(source, dict) for source in sources):
                raise _error(event, "the value of << must be a mapping or a list of mappings")
            top.merged += sources
        else:
            assert top.key is not None
            top.value[top.key] = value
        top.key = None


def _scalar(event: Any) -> Json:
    """The value of a scalar event, by its tag or, where it is plain, by its text."""
    text: str = event.value
    if event.tag is None:
        return text if event.style else _plain(event, text)
    if event.tag in ("!", f"{_TAG}str"):
        return text
    value = _plain(event, text)
    expected = _TYPES.get(event.tag.removeprefix(_TAG))
    if expected is None:
        raise _error(event, f"the tag {_shown(event.tag)} has no meaning here; leave it out")
    if type(value) not in expected:
        raise _error(event, f"the value does not fit the tag {_shown(event.tag)}")
    return value


_TYPES: dict[str, tuple[type, ...]] = {
    "int": (int,), "float": (int, float), "bool": (bool,), "null": (type(None),),
}  # fmt: skip


def _plain(event: Any, text: str) -> Json:
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789" or len(text) > _MAX_DIGITS:
        return text
    if text in _INFINITE:
        raise _error(event, f"{text} has no value in JSON; put it in quotes if it is text")
    return _number(text)


def _number(text: str) -> Json:
    """The number that `text` writes, or `text` itself."""
    digits = text.replace("_", "") if text[0] != "." else text
    if found := _INTEGER.fullmatch(digits):
        sign, hexadecimal, binary, octal, decimal = found.groups()
        base = 16 if hexadecimal else 2 if binary else 8 if octal else 10
        value = int(hexadecimal or binary or octal or decimal, base)
        value = -value if sign == "-" else value
        if -(2**63) <= value < 2**64:
            return value
    if _FLOAT.fullmatch(digits):
        number = float(digits)
        if number in (float("inf"), float("-inf")):
            return text
        # JSON does not distinguish 1e3 from 1000.
        return int(number) if number.is_integer() and abs(number) < 2**63 else number
    return text


def _copied(value: Json) -> Json:
    """A copy that shares no container with the original: a change to one must not reach the other."""
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value


def _error(event: Any, what: str) -> YamlDecodeError:
    return YamlDecodeError(f"{_line(event.start_mark)}{what}")


def _shown(tag: str) -> str:
    return f"!!{tag.removeprefix(_TAG)}"[:_MAX_SHOWN] if tag.startswith(_TAG) else tag[:_MAX_SHOWN]
