"""JSON merge patch (RFC 7386): a partial object laid over the whole; null removes, lists are replaced whole."""

from __future__ import annotations

from typing import Any

from shoal.kube.errors import bad_request
from shoal.kube.objects import Obj
from shoal.kube.patching.json_values import json_type, without_nulls


def merge_patch(obj: Obj, patch: Any) -> Obj:
    """The object with the patch laid over it; a patch that is no object raises 400.

    What the patch does not touch is the very value of the object: it need not be copied or checked again.
    """
    if patch is None:
        raise bad_request("Invalid JSON Patch")
    if not isinstance(patch, dict):
        into = "Go value of type map[string]interface {}"
        raise bad_request(f"error decoding patch: json: cannot unmarshal {json_type(patch)} into {into}")
    result: Obj = merged(obj, patch)
    return result


def merged(target: Any, patch: Any) -> Any:
    """One value laid over another. The result shares nothing with the patch.

    Fields that are null inside a list are dropped as well: API servers do so, and no kind gives null a meaning.
    """
    if not isinstance(patch, dict) or not isinstance(target, dict):
        return without_nulls(patch)
    result = dict(target)  # shallow: the object may be large, and untouched values are shared with it
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result
