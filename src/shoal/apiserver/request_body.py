"""Request bodies: read within a limit, distinguished by content type, decoded into plain dictionaries.

JSON and YAML are sent by people and most clients. Go clients send Kubernetes' protobuf form for built-in kinds and
do not fall back, so that is read too (`protobuf`). A duplicate key in a mapping is a mistake that can take hours to
find: it is detected here and reported as `fieldValidation` requires.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from shoal.apiserver import protobuf
from shoal.apiserver.responses import Receive, encode
from shoal.kube import yaml_codec
from shoal.kube.errors import ApiError, bad_request, too_large, unsupported_media_type
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj

LIMIT_BYTES = 3 * 1024 * 1024
_MAX_DEPTH = 128
_TOO_DEEP = f"nested deeper than {_MAX_DEPTH} levels"
_MAX_DUPLICATES = 100  # of which paths are kept
_MAX_SHOWN = 100  # characters of a key in a message

JSON_TYPE = "application/json"
YAML_TYPE = "application/yaml"
PROTOBUF_TYPE = "application/vnd.kubernetes.protobuf"
ACCEPTED = (JSON_TYPE, YAML_TYPE, PROTOBUF_TYPE)

_decode = msgspec.json.Decoder().decode


class DecodedBody(NamedTuple):
    """A decoded value and the dotted paths of duplicate keys, of which the last counts."""

    value: Any
    duplicates: tuple[str, ...] = ()


class MalformedBody(Exception):
    """The bytes are not what their content type states; the message has the position and the problem."""


async def read(receive: Receive) -> bytes:
    """The whole body; 413 past the limit, without reading the rest."""
    pieces: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            # What arrived may read as a whole document and is not one: half a manifest must never be applied.
            raise bad_request("the connection was closed before the whole body had arrived")
        pieces.append(message.get("body", b""))
        size += len(pieces[-1])
        if size > LIMIT_BYTES:
            raise too_large(f"Request entity too large: limit is {LIMIT_BYTES}")
        more = message.get("more_body", False)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def content_type(header: bytes) -> str:
    return header.partition(b";")[0].strip().decode("latin-1").lower()


def decode_object(data: bytes, header: bytes, kind: Kind) -> DecodedBody:
    """A whole object of a kind, as create and update send it."""
    media_type = content_type(header) or JSON_TYPE
    if media_type not in _READERS or (kind.custom and media_type == PROTOBUF_TYPE):
        accepted = ACCEPTED[:2] if kind.custom else ACCEPTED
        raise unsupported_media_type(
            f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
        )
    format_name, reader = _READERS[media_type]
    try:
        body = reader(data)
    except MalformedBody as problem:
        raise _unrecognized(kind, f"invalid {format_name}: {problem}") from None
    if body.value is None:
        return DecodedBody({})
    if not isinstance(body.value, dict):
        raise _unrecognized(kind, f"must be an object, not {describe_type(body.value)}")
    for name, declared in (("kind", "Kind"), ("apiVersion", "apiVersion")):
        found = body.value.get(name)
        if found is not None and not isinstance(found, str):
            raise _unrecognized(kind, f"{name}: must be a string, not {describe_type(found)}")
        if not found and kind.custom:  # a built-in kind is known from the path
            raise _unrecognized(kind, f"Object '{declared}' is missing in '{data.decode('utf-8', 'replace')}'")
    return body


def _unrecognized(kind: Kind, why: str) -> ApiError:
    return bad_request(f"the object provided is unrecognized (must be of type {kind.kind}): {why}")


def decode_options(data: bytes, header: bytes) -> Obj:
    """DeleteOptions and the like: small, and refused as a plain bad request."""
    media_type = content_type(header) or JSON_TYPE
    if media_type not in _READERS:
        raise unsupported_media_type(
            f"the body of the request was in an unknown format - accepted media types include: {', '.join(ACCEPTED)}"
        )
    format_name, reader = _READERS[media_type]
    try:
        value = reader(data).value
    except MalformedBody as problem:
        raise bad_request(f"invalid {format_name}: {problem}") from None
    if not isinstance(value, dict):
        raise bad_request(f"DeleteOptions must be an object, not {describe_type(value)}")
    if value.get("kind") not in (None, "", "DeleteOptions"):
        raise bad_request(f'no kind "{value["kind"]}" is registered for version "{value.get("apiVersion") or ""}"')
    for name, expected in _DELETE_OPTIONS_TYPES.items():
        found = value.get(name)
        is_bool_for_int = expected is int and isinstance(found, bool)
        if found is not None and (is_bool_for_int or not isinstance(found, expected)):
            raise _wrong_type(f"DeleteOptions.{name}", expected, found)
    for position, item in enumerate(value.get("dryRun") or ()):
        if not isinstance(item, str):
            raise _wrong_type(f"DeleteOptions.dryRun[{position}]", str, item)
    for name, item in (value.get("preconditions") or {}).items():
        if not isinstance(item, str):
            raise _wrong_type(f"DeleteOptions.preconditions.{name}", str, item)
    return value


_DELETE_OPTIONS_TYPES: dict[str, type] = {
    "gracePeriodSeconds": int,
    "propagationPolicy": str,
    "orphanDependents": bool,
    "dryRun": list,
    "preconditions": dict,
}
_TYPE_NAMES = {
    dict: "an object", list: "a list", str: "a string", bool: "a boolean", int: "an integer", float: "a number",
    type(None): "null",
}  # fmt: skip


def describe_type(value: Any) -> str:
    return _TYPE_NAMES[type(value)]


def _wrong_type(path: str, expected: type, found: Any) -> ApiError:
    return bad_request(f"{path}: must be {_TYPE_NAMES[expected]}, not {describe_type(found)}")


def decode_json(data: bytes) -> DecodedBody:
    try:
        value = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedBody(json_problem(data, error)) from None
    _check_depth(value, data)
    # Re-encoding returns compact JSON byte for byte unless it has a duplicate key (or was merely written
    # differently): only then is it worth looking closer.
    if encode(value) == data.strip():
        return DecodedBody(value)
    return DecodedBody(value, _json_duplicates(data))


def json_problem(data: bytes, error: Exception) -> str:
    """Where and why a document does not decode. The fast decoder does not report that, the standard library does."""
    try:
        json.loads(data.decode())
    except json.JSONDecodeError as problem:
        what = problem.msg[:1].lower() + problem.msg[1:]
        if problem.msg.startswith("Expecting"):
            rest = problem.doc[problem.pos :].lstrip()
            what += f", found {rest[0]!r}" if rest else ", found the end of the document"
        return f"line {problem.lineno} column {problem.colno}: {what}"
    except UnicodeDecodeError as problem:
        return f"byte {problem.start} is not UTF-8"
    except RecursionError:
        return _TOO_DEEP
    except ValueError:  # a number of thousands of digits
        pass
    return str(error)


def decode_yaml(data: bytes) -> DecodedBody:
    """YAML as kubectl reads it (see `yaml_codec`)."""
    if data.lstrip()[:1] == b"{":
        try:
            return decode_json(data)  # what clients send as YAML is mostly JSON, and much faster to read as such
        except MalformedBody:
            pass
    try:
        return DecodedBody(*yaml_codec.decode(data))
    except yaml_codec.YamlDecodeError as problem:
        raise MalformedBody(str(problem)) from None


def _check_depth(value: Any, data: bytes) -> None:
    """Rejects a value nested deeper than the walks over it allow. Most bodies do not hold enough brackets."""
    if data.count(b"{") + data.count(b"[") <= _MAX_DEPTH:
        return
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > _MAX_DEPTH:
            raise MalformedBody(_TOO_DEEP)
        nodes, level = level, []
        for node in nodes:
            if isinstance(node, dict):
                level += node.values()
            elif isinstance(node, list):
                level += node


def _decode_protobuf(data: bytes) -> DecodedBody:
    try:
        return DecodedBody(protobuf.decode(data))
    except protobuf.Malformed as problem:
        raise MalformedBody(str(problem)) from None


_READERS: dict[str, tuple[str, Callable[[bytes], DecodedBody]]] = {
    JSON_TYPE: ("JSON", decode_json),
    YAML_TYPE: ("YAML", decode_yaml),
    PROTOBUF_TYPE: ("protobuf", _decode_protobuf),
}


class _DuplicateKeyObject(dict[str, Any]):
    """An object with duplicate keys."""

    duplicate_keys: list[str]


def _json_duplicates(data: bytes) -> tuple[str, ...]:
    """Paths of the first duplicate keys: noted in the objects themselves, and found from the root."""

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(found)
        if len(result) == len(found):
            return result
        repeated = _DuplicateKeyObject(result)
        seen: set[str] = set()
        repeated.duplicate_keys = [key for key, _ in found if key in seen or seen.add(key)]  # type: ignore[func-returns-value]
        del repeated.duplicate_keys[_MAX_DUPLICATES:]
        return repeated

    root = json.loads(data, object_pairs_hook=pairs, parse_int=str)
    if not isinstance(root, dict | list):
        return ()
    return tuple(dict.fromkeys(islice(_duplicates_below(root, ()), _MAX_DUPLICATES)))


def _duplicates_below(value: Any, steps: tuple[Any, ...]) -> Iterator[str]:
    """`steps` is the last step and the steps before it: paths are written only where something is found."""
    if isinstance(value, _DuplicateKeyObject):
        for key in value.duplicate_keys:
            path, rest = f".{key[:_MAX_SHOWN]}", steps
            while rest:
                step, rest = rest
                path = (f"[{step}]" if isinstance(step, int) else f".{step[:_MAX_SHOWN]}") + path
            yield path.removeprefix(".")
    children = value.items() if isinstance(value, dict) else enumerate(value)
    for step, child in children:
        if isinstance(child, dict | list):
            yield from _duplicates_below(child, (step, steps))


def reject_duplicates(duplicates: tuple[str, ...], kind: Kind) -> None:
    listed = ", ".join(f'duplicate field "{path}"' for path in duplicates)
    raise ApiError(
        400,
        "BadRequest",
        f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: strict decoding error: {listed}',
    )
