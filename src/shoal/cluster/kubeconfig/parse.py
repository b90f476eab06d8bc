"""A kubeconfig's entries as they are read: every value knows its file and its path, so a mistake can name both."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.cluster.kubeconfig.connection import NoConnection
from shoal.kube import yaml_codec

_OR_ANOTHER = "name another with --kubeconfig or KUBECONFIG"
_ANOTHER = f"N{_OR_ANOTHER[1:]}"


@dataclass(frozen=True, slots=True)
class Entry:
    """A mapping of a kubeconfig. What is missing and what is null are the same, as they are for kubectl."""

    file: Path
    path: str
    values: dict[str, Any]

    def mistake(self, name: str, what: str) -> NoConnection:
        where = f"{self.path}.{name}".strip(".")
        return NoConnection(f"the kubeconfig {self.file} cannot be used: {where} {what}")

    def text(self, name: str) -> str:
        """'' where it is not given."""
        value = self.values.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self.mistake(name, f"should be text, not {_what(value)}; put it in quotes")
        return value

    def flag(self, name: str) -> bool:
        value = self.values.get(name)
        if value is None or isinstance(value, bool):
            return bool(value)
        raise self.mistake(name, f"should be true or false, not {_what(value)}")

    def below(self, name: str) -> Entry | None:
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.mistake(name, f"should be a mapping, not {_what(value)}")
        return Entry(self.file, f"{self.path}.{name}".strip("."), value)

    def each(self, name: str) -> Iterator[Entry]:
        value = self.values.get(name)
        if value is not None and not isinstance(value, list):
            raise self.mistake(name, f"should be a list, not {_what(value)}")
        for number, item in enumerate(value or ()):
            if not isinstance(item, dict):
                raise self.mistake(f"{name}[{number}]", f"should be a mapping, not {_what(item)}")
            yield Entry(self.file, f"{self.path}.{name}[{number}]".strip("."), item)

    def texts(self, name: str) -> list[str]:
        value = self.values.get(name)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.mistake(name, "should be a list of texts")
        return value

    def file_named(self, name: str) -> Path | None:
        """A file, seen from where the kubeconfig is."""
        given = self.text(name)
        return self.file.parent / Path(given).expanduser() if given else None

    def content(self, name: str) -> bytes:
        """What `NAME-data` holds in base64, else what the file that `NAME` names holds; b'' where neither is given."""
        if data := self.text(f"{name}-data"):
            try:
                return base64.b64decode("".join(data.split()), validate=True)
            except binascii.Error as problem:
                raise self.mistake(f"{name}-data", f"should be base64: {problem}") from None
        path = self.file_named(name)
        if path is None:
            return b""
        try:
            return path.read_bytes()
        except OSError as problem:
            raise self.mistake(name, f"names {path}, which cannot be read: {problem.strerror}") from None


def read(file: Path) -> Entry:
    try:
        found = yaml_codec.decode(file.read_bytes()).value
    except OSError as problem:
        raise NoConnection(f"the kubeconfig {file} cannot be read: {problem.strerror}. {_ANOTHER}") from None
    except yaml_codec.YamlMistake as problem:
        raise NoConnection(f"the kubeconfig {file} is not YAML: {problem}. Mend it, or {_OR_ANOTHER}") from None
    if found is not None and not isinstance(found, dict):
        what = f"it should be a mapping, not {_what(found)}"
        raise NoConnection(f"the kubeconfig {file} cannot be used: {what}. {_ANOTHER}")
    return Entry(file, "", found or {})


def _what(value: object) -> str:
    names = {bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list", dict: "a mapping"}
    return names.get(type(value), f"a {type(value).__name__}")
