"""Mistaken objects and what a real API server says about them, from the tables in tests/kube/mistakes.

A table names a kind's builder in `kit.manifests` and lists cases: what is changed in the valid object, and
every cause. `{SUBDOMAIN}` and its like stand for the long sentences below, `{a*64}` for 64 letters, and
`{gone}` for a field that is taken away.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from kit import manifests
from shoal.kube import kinds
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj

FOLDER = Path(__file__).parents[1] / "kube" / "mistakes"
KINDS: dict[str, Kind] = {
    "claim": kinds.PERSISTENT_VOLUME_CLAIM,
    "config_map": kinds.CONFIG_MAP,
    "endpoint_slice": kinds.ENDPOINT_SLICE,
    "endpoints": kinds.ENDPOINTS,
    "event": kinds.EVENT,
    "event_v1": kinds.EVENT_V1,
    "lease": kinds.LEASE,
    "namespace": kinds.NAMESPACE,
    "node": kinds.NODE,
    "pod": kinds.POD,
    "priority_class": kinds.PRIORITY_CLASS,
    "secret": kinds.SECRET,
    "service": kinds.SERVICE,
    "service_account": kinds.SERVICE_ACCOUNT,
    "volume": kinds.PERSISTENT_VOLUME,
}
_ENDS = "and must start and end with an alphanumeric character"
_MATCH = "regex used for validation is"
SENTENCES = {
    "SUBDOMAIN": "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    rf"{_ENDS} (e.g. 'example.com', {_MATCH} '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    "LABEL": "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    f"{_ENDS} (e.g. 'my-name',  or '123-abc', {_MATCH} '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
    "QUALIFIED": f"must consist of alphanumeric characters, '-', '_' or '.', {_ENDS} "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', {_MATCH} '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    "LABEL_VALUE": "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    f"{_ENDS} (e.g. 'MyValue',  or 'my_value',  or '12345', {_MATCH} "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
    "CONFIG_KEY": "a valid config key must consist of alphanumeric characters, '-', '_' or '.' "
    f"(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', {_MATCH} '[-._a-zA-Z0-9]+')",
    "ADDRESS": "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
}
_REPEAT = re.compile(r"\{([^{}*]+)\*(\d+)\}")
_NAMED = re.compile(r"\{([A-Z_]+)\}")


@dataclass(frozen=True)
class Mistake:
    """One object that is refused, or a change that is; `first` is the object the change is made to."""

    id: str
    kind: Kind
    subresource: str
    first: Obj
    change: dict[str, Any]
    causes: list[str]

    @property
    def second(self) -> Obj:
        return manifests.changed(self.first, self.change)


def mistakes(*tables: str) -> list[Mistake]:
    return [mistake for table in tables for mistake in _read(table)]


def _read(table: str) -> Iterator[Mistake]:
    for section in yaml.safe_load((FOLDER / f"{table}.yaml").read_text()):
        builder = section["kind"]
        for name, case in section["cases"].items():
            first = manifests.changed(getattr(manifests, builder)(), _meant(case.get("first") or {}))
            yield Mistake(
                id=f"{section['about']}: {name}",
                kind=KINDS[builder],
                subresource=section.get("subresource") or "",
                first=first,
                change=_meant(case["change"]),
                causes=[_spelled(cause) for cause in case["causes"]],
            )


def _meant(value: Any) -> Any:
    if value == "{gone}":
        return manifests.GONE
    if isinstance(value, str):
        return _REPEAT.sub(lambda found: found[1] * int(found[2]), value)
    if isinstance(value, list):
        return [_meant(item) for item in value]
    if isinstance(value, dict):
        return {_meant(key): _meant(item) for key, item in value.items()}
    return value


def _spelled(cause: str) -> str:
    known = _NAMED.sub(lambda found: SENTENCES[found[1]], cause)
    return _REPEAT.sub(lambda found: found[1] * int(found[2]), known)


def fresh(obj: Obj) -> Obj:
    """A copy as a client would send it."""
    copied: Obj = json.loads(json.dumps(obj))
    return copied
