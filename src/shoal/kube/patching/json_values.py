"""Operations on JSON values that all patches share: copy, compare, name the type, reject."""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.kube.errors import ApiError

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def clone(value: Any) -> Any:
    """A copy that shares no dictionary and no list with the original."""
    if type(value) is not dict and type(value) is not list:
        return value
    try:
        return _decode(_encode(value))  # to JSON and back is several times as fast as a walk
    except (ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
        return _copy(value)  # very large numbers, halves of characters


def _copy(value: Any) -> Any:
    if type(value) is dict:
        return {key: _copy(below) if type(below) in (dict, list) else below for key, below in value.items()}
    if type(value) is list:
        return [_copy(below) if type(below) in (dict, list) else below for below in value]
    return value


def json_equal(left: Any, right: Any) -> bool:
    """Equality of JSON values: true is not 1, but 1 is 1.0."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(json_equal(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(json_equal, left, right))
    return isinstance(left, bool) is isinstance(right, bool) and bool(left == right)


def without_nulls(value: Any) -> Any:
    """A copy without the fields that are null: to a patch they mean absence, at any depth."""
    if isinstance(value, dict):
        return {key: without_nulls(below) for key, below in value.items() if below is not None}
    if isinstance(value, list):
        return [without_nulls(below) for below in value]
    return value


def json_type(value: Any) -> str:
    """The type's name in a decoding error."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    names = {dict: "object", list: "array", str: "string"}
    return next((name for of, name in names.items() if isinstance(value, of)), "number")


def shown(value: Any) -> str:
    """A value as error messages of Kubernetes print it: `map[a:1 b:[x y]]`."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{shown(below)}' for key, below in sorted(value.items()))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(shown, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "<nil>" if value is None else str(value)


def not_applicable(why: str) -> ApiError:
    """422 for a well-formed patch that cannot be applied. API servers keep the particulars to themselves; here
    they travel in the causes, where kubectl shows them."""
    message = "the server rejected our request due to an error in our request"
    return ApiError(
        422, "Invalid", message, {"causes": [{"reason": "FieldValueInvalid", "message": why, "field": "patch"}]}
    )
