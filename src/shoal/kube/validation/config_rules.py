"""ConfigMaps and Secrets: keys that can be file names, a size that fits, and contents that may be frozen."""

from __future__ import annotations

import binascii
import json
from base64 import b64decode
from collections.abc import Iterator
from typing import Any

from shoal.kube import names
from shoal.kube.errors import Cause
from shoal.kube.kinds import CONFIG_MAP, SECRET
from shoal.kube.objects import Obj
from shoal.kube.validation import metadata_rules
from shoal.kube.validation.errors import IMMUTABLE, forbidden, invalid, required, too_long
from shoal.kube.validation.value_rules import named

LIMIT_BYTES = 1024 * 1024
_FROZEN = "field is immutable when `immutable` is set"
_ACCOUNT = "kubernetes.io/service-account.name"
# What a Secret of a well-known type must hold; any other type may hold anything.
_NEEDED = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
}
_REGISTRY_TYPES = ("kubernetes.io/dockercfg", "kubernetes.io/dockerconfigjson")


def config_map_on_create(obj: Obj) -> Iterator[Cause]:
    yield from metadata_rules.on_create(CONFIG_MAP, obj)
    yield from _config_map(obj)


def config_map_on_update(new: Obj, old: Obj) -> Iterator[Cause]:
    yield from metadata_rules.on_update(CONFIG_MAP, new, old)
    yield from _frozen(new, old, ("data", "binaryData"))
    yield from _config_map(new)


def secret_on_create(obj: Obj) -> Iterator[Cause]:
    yield from metadata_rules.on_create(SECRET, obj)
    yield from _secret(obj)


def secret_on_update(new: Obj, old: Obj) -> Iterator[Cause]:
    yield from metadata_rules.on_update(SECRET, new, old)
    if (new.get("type") or "") != (old.get("type") or ""):
        yield invalid("type", new.get("type") or "", IMMUTABLE)
    yield from _frozen(new, old, ("data",))
    yield from _secret(new)


def _frozen(new: Obj, old: Obj, fields: tuple[str, ...]) -> Iterator[Cause]:
    if not old.get("immutable"):
        return
    if not new.get("immutable"):
        yield forbidden("immutable", _FROZEN)
    for field in fields:
        if (new.get(field) or {}) != (old.get(field) or {}):
            yield forbidden(field, _FROZEN)


def _config_map(obj: Obj) -> Iterator[Cause]:
    text, binary = obj.get("data") or {}, obj.get("binaryData") or {}
    size = 0
    for key, value in text.items():
        yield from named(names.config_key, key, f"data[{key}]")
        if key in binary:
            yield invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
        size += len((value or "").encode())
    for key, value in binary.items():
        yield from named(names.config_key, key, f"binaryData[{key}]")
        size += _decoded_length(value)
    if size > LIMIT_BYTES:
        # The error is about the object as a whole; Kubernetes names no field then and prints a pair of brackets.
        yield too_long("[]", LIMIT_BYTES)


def _secret(obj: Obj) -> Iterator[Cause]:
    data = obj.get("data") or {}
    size = 0
    for key, value in data.items():
        yield from named(names.config_key, key, f"data[{key}]")
        size += _decoded_length(value)
    if size > LIMIT_BYTES:
        yield too_long("data", LIMIT_BYTES)
    kind = obj.get("type") or ""
    notes = (obj.get("metadata") or {}).get("annotations") or {}
    if kind == "kubernetes.io/service-account-token" and not notes.get(_ACCOUNT):
        yield required(f"metadata.annotations[{_ACCOUNT}]")
    if kind == "kubernetes.io/basic-auth" and not data.keys() & {"username", "password"}:
        yield required("data[username]")
        yield required("data[password]")
    for key in _NEEDED.get(kind, ()):
        if key not in data or (kind == "kubernetes.io/ssh-auth" and not data[key]):
            yield required(f"data[{key}]")
        elif kind in _REGISTRY_TYPES:
            try:
                content = json.loads(b64decode(data[key] or ""))
            except (ValueError, binascii.Error):
                content = None
            if not isinstance(content, dict):
                yield invalid(f"data[{key}]", "<secret contents redacted>", "must be a JSON object")


def _decoded_length(encoded: Any) -> int:
    text = encoded or ""
    return len(text) // 4 * 3 - text[-2:].count("=")
