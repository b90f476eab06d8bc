"""Messages: a code with parameters. A catalog turns codes into text where the text leaves the process.

A code is the reason of a Kubernetes Event (`TaskFailed`), with a variant where one reason has several texts
(`TaskFailed.Evicted`). A parameter is a plain value, another message, or a list of them; a text names the separator of
a list after a colon: `{causes:; }`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

MESSAGE = "shoal.dev/message"  # annotation of an Event: its message as code and parameters, for programs
_MAX_LENGTH = 4096  # longer annotations are neither written nor read
_MAX_DEPTH = 16  # of messages and lists within each other


class Message(msgspec.Struct, frozen=True, gc=False):
    """A fact, before it is text."""

    code: str
    parameters: dict[str, Any] = {}

    @property
    def reason(self) -> str:
        return self.code.partition(".")[0]


class Catalog:
    """The texts of a package, by code."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = dict(texts)

    def __or__(self, other: Catalog) -> Catalog:
        return Catalog({**self.texts, **other.texts})

    def __contains__(self, code: str) -> bool:
        return code in self.texts

    def text(self, message: Message) -> str:
        values = {name: self._shown(value) for name, value in message.parameters.items()}
        return self.texts[message.code].format_map(values)

    def _shown(self, value: Any) -> Any:
        if isinstance(value, Message):
            return self.text(value)
        return _Parts(self._shown(part) for part in value) if isinstance(value, list) else value


class _Parts(list[Any]):
    """A list in a text: joined by its format specification."""

    def __format__(self, separator: str) -> str:
        return (separator or ", ").join(map(str, self))


def encode(message: Message) -> str:
    return msgspec.json.encode(message).decode()


def to_annotation(message: Message) -> dict[str, str]:
    """The annotation of the Event with this message; none where it is longer than what `decode` reads."""
    text = encode(message)
    return {MESSAGE: text} if len(text) <= _MAX_LENGTH else {}


def decode(text: str) -> Message | None:
    """The message of an annotation, or None where its text is no message."""
    if len(text) > _MAX_LENGTH:
        return None
    try:
        return _message(msgspec.json.decode(text, type=dict[str, Any]))
    except (msgspec.MsgspecError, RecursionError):
        return None


def _message(plain: Mapping[str, Any], depth: int = _MAX_DEPTH) -> Message:
    found = msgspec.convert(plain, Message)
    return Message(found.code, {name: _parameter(value, depth) for name, value in found.parameters.items()})


def _parameter(value: Any, depth: int) -> Any:
    if depth == 0:
        raise RecursionError
    if isinstance(value, list):
        return [_parameter(part, depth - 1) for part in value]
    return _message(value, depth - 1) if isinstance(value, dict) else value
