"""Messages: a code with parameters. A catalog turns codes into text where the text leaves the process.

A code is the reason of a Kubernetes Event (`TaskFailed`), with a variant where one reason has several texts
(`TaskFailed.Evicted`). A parameter is a plain value or another message.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

MESSAGE = "shoal.dev/message"  # on an Event: its message as code and parameters, for programs
_LONGEST = 4096  # letters of that annotation that are read


class Message(msgspec.Struct, frozen=True):
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
        values = {
            name: self.text(value) if isinstance(value, Message) else value
            for name, value in message.parameters.items()
        }
        return self.texts[message.code].format_map(values)


def encoded(message: Message) -> str:
    return msgspec.json.encode(message).decode()


def decoded(text: str) -> Message | None:
    """The message of an annotation; None where it is none."""
    if len(text) > _LONGEST:
        return None
    try:
        return _message(msgspec.json.decode(text, type=dict[str, Any]))
    except (msgspec.MsgspecError, RecursionError):
        return None


def _message(plain: Mapping[str, Any]) -> Message:
    found = msgspec.convert(plain, Message)
    parts = {name: _message(part) for name, part in found.parameters.items() if isinstance(part, dict)}
    return Message(found.code, {**found.parameters, **parts})
