"""A kubeconfig's entries as they are read: every value has its file and its path, so an error can name both."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.cluster.kubeconfig.connection_config import ConnectionConfigError
from shoal.kube import yaml_codec

_HINT = "name another with --kubeconfig or KUBECONFIG"
_HINT_SENTENCE = f"N{_HINT[1:]}"


@dataclass(frozen=True, slots=True)
class KubeconfigEntry:
    """A mapping of a kubeconfig. What is missing and what is null are the same, as they are for kubectl."""

    file: Path
    path: str
    values: dict[str, Any]

    def error(self, name: str, description: str) -> ConnectionConfigError:
        where = f"{self.path}.{name}".strip(".")
        return ConnectionConfigError(f"the kubeconfig {self.file} cannot be used: {where} {description}")

    def text(self, name: str) -> str:
        """'' where it is not given."""
        value = self.values.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self.error(name, f"should be text, not {_describe_type(value)}; put it in quotes")
        return value

    def flag(self, name: str) -> bool:
        value = self.values.get(name)
        if value is None or isinstance(value, bool):
            return bool(value)
        raise self.error(name, f"should be true or false, not {_describe_type(value)}")

    def mapping(self, name: str) -> KubeconfigEntry | None:
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.error(name, f"should be a mapping, not {_describe_type(value)}")
        return KubeconfigEntry(self.file, f"{self.path}.{name}".strip("."), value)

    def items(self, name: str) -> Iterator[KubeconfigEntry]:
        value = self.values.get(name)
        if value is not None and not isinstance(value, list):
            raise self.error(name, f"should be a list, not {_describe_type(value)}")
        for number, item in enumerate(value or ()):
            if not isinstance(item, dict):
                raise self.error(f"{name}[{number}]", f"should be a mapping, not {_describe_type(item)}")
            yield KubeconfigEntry(self.file, f"{self.path}.{name}[{number}]".strip("."), item)

    def strings(self, name: str) -> list[str]:
        value = self.values.get(name)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.error(name, "should be a list of texts")
        return value

    def file_path(self, name: str) -> Path | None:
        """A file, seen from where the kubeconfig is."""
        value = self.text(name)
        return self.file.parent / Path(value).expanduser() if value else None

    def content(self, name: str) -> bytes:
        """What `NAME-data` holds in base64, else what the file that `NAME` names holds; b'' where neither is given."""
        if data := self.text(f"{name}-data"):
            try:
                return base64.b64decode("".join(data.split()), validate=True)
            except binascii.Error as problem:
                raise self.error(f"{name}-data", f"should be base64: {problem}") from None
        path = self.file_path(name)
        if path is None:
            return b""
        try:
            return path.read_bytes()
        except OSError as problem:
            raise self.error(name, f"names {path}, which cannot be read: {problem.strerror}") from None


def read(file: Path) -> KubeconfigEntry:
    try:
        found = yaml_codec.decode(file.read_bytes()).value
    except OSError as problem:
        raise ConnectionConfigError(
            f"the kubeconfig {file} cannot be read: {problem.strerror}. {_HINT_SENTENCE}"
        ) from None
    except yaml_codec.YamlDecodeError as problem:
        raise ConnectionConfigError(f"the kubeconfig {file} is not YAML: {problem}. Mend it, or {_HINT}") from None
    if found is not None and not isinstance(found, dict):
        description = f"it should be a mapping, not {_describe_type(found)}"
        raise ConnectionConfigError(f"the kubeconfig {file} cannot be used: {description}. {_HINT_SENTENCE}")
    return KubeconfigEntry(file, "", found or {})


def _describe_type(value: object) -> str:
    names = {bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list", dict: "a mapping"}
    return names.get(type(value), f"a {type(value).__name__}")
