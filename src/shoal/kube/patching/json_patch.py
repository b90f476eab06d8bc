"""JSON patch (RFC 6902): operations on paths, all of them or none.

Where API servers go beyond the RFC, so does this: a negative index counts from the end, `replace` creates a
field that is not there, an operation without a value sets null. Where they are merely careless (a path without
its leading slash loses its first step) the RFC wins and the patch is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shoal.kube.errors import ApiError, bad_request, too_large
from shoal.kube.objects import Obj
from shoal.kube.patching.json_values import clone, json_equal, json_type, not_applicable

MOST_OPERATIONS = 10_000
MOST_COPIED_BYTES = 3 * 1024 * 1024  # by all copy operations together: copying can double an object each time
_INDEX = re.compile(r"[+-]?[0-9]{1,18}")
_MISSING = "missing value"


def json_patch(obj: Obj, operations: Any) -> Obj:
    """The object after all operations, in order. 400 where they are not well formed, 422 where one does not apply."""
    _check(operations)
    document = _Document(clone(obj))
    for operation in operations:
        carry_out = _OPERATIONS.get(operation.get("op") or "")
        if carry_out is None:
            raise not_applicable(f"Unexpected kind: {operation.get('op') or 'unknown'}")
        carry_out(document, operation)
    if not isinstance(document.root, dict):
        left = json_type(document.root)
        article = "an" if left[0] in "aeiou" else "a"
        raise not_applicable(f"the patch leaves {article} {left} where the object was")
    return document.root


def _check(operations: Any) -> None:
    if not isinstance(operations, Sequence) or isinstance(operations, str):
        raise _undecodable(operations, "Go value of type []handlers.jsonPatchOp")
    for operation in operations:
        if not isinstance(operation, Mapping):
            raise _undecodable(operation, "Go value of type handlers.jsonPatchOp")
        for field in ("op", "path", "from"):
            if not isinstance(operation.get(field, ""), str | None):
                raise _undecodable(operation[field], f"Go struct field jsonPatchOp.{field} of type string")
    if len(operations) > MOST_OPERATIONS:
        limit = f"The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {len(operations)}"
        raise too_large(f"Request entity is too large: {limit}")


def _undecodable(value: Any, into: str) -> ApiError:
    return bad_request(f"error decoding patch: json: cannot unmarshal {json_type(value)} into {into}")


class _PathNotFound(Exception):
    """A path that does not exist; the message names where it ends."""


class _Document:
    """The object being changed. It belongs to one patch, so operations change it in place."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self._copied_bytes = 0

    def holder(self, path: str, problem: str) -> tuple[Any, str]:
        """The container that holds what the path names, and the last step; `problem` is raised if there is none."""
        here: Any = None
        if path.startswith("/"):
            *steps, last = (step.replace("~1", "/").replace("~0", "~") for step in path[1:].split("/"))
            here = self.root
            try:
                for step in steps:
                    here = _get(here, step)
            except _PathNotFound:
                here = None
        if not isinstance(here, dict | list):
            raise not_applicable(f"{problem}: {_MISSING}")
        return here, last

    def add(self, operation: Mapping[str, Any]) -> None:
        path = _path(operation, "add")
        container, step = self.holder(path, f'add operation does not apply: doc is missing path: "{path}"')
        try:
            _put(container, step, clone(operation.get("value")))
        except _PathNotFound as nowhere:
            raise not_applicable(f"error in add for path: '{path}': {nowhere}") from None

    def remove(self, operation: Mapping[str, Any]) -> None:
        path = _path(operation, "remove")
        container, step = self.holder(path, f'remove operation does not apply: doc is missing path: "{path}"')
        try:
            _pop(container, step)
        except _PathNotFound as nowhere:
            raise not_applicable(f"error in remove for path: '{path}': {nowhere}") from None

    def replace(self, operation: Mapping[str, Any]) -> None:
        path = _path(operation, "replace")
        value = clone(operation.get("value"))
        if path == "":
            self.root = value
            return
        container, step = self.holder(path, f"replace operation does not apply: doc is missing path: {path}")
        if isinstance(container, dict):
            container[step] = value
            return
        try:
            container[_index(step, len(container))] = value
        except _PathNotFound:
            raise not_applicable(f"replace operation does not apply: doc is missing key: {path}: {_MISSING}") from None

    def move(self, operation: Mapping[str, Any]) -> None:
        start, path = _path(operation, "move", "from"), _path(operation, "move")
        container, step = self.holder(start, f"move operation does not apply: doc is missing from path: {start}")
        nowhere_to = f"move operation does not apply: doc is missing destination path: {path}"
        try:
            value = _pop(container, step)
            container, step = self.holder(path, nowhere_to)
            _put(container, step, value)
        except _PathNotFound as nowhere:
            raise not_applicable(f"error in move for path: '{path}': {nowhere}") from None

    def copy(self, operation: Mapping[str, Any]) -> None:
        start, path = _path(operation, "copy", "from"), _path(operation, "copy")
        container, step = self.holder(start, f"copy operation does not apply: doc is missing from path: {start}")
        nowhere_to = f"copy operation does not apply: doc is missing destination path: {path}"
        try:
            value = _get(container, step)
            self._copied_bytes += len(json.dumps(value))
            if self._copied_bytes > MOST_COPIED_BYTES:
                size = f"the accumulated size increase of copy is {self._copied_bytes}"
                raise not_applicable(f"Unable to complete the copy, {size}, exceeding the limit {MOST_COPIED_BYTES}")
            value = clone(value)
            container, step = self.holder(path, nowhere_to)
            _put(container, step, value)
        except _PathNotFound as nowhere:
            raise not_applicable(f"error in copy for path: '{path}': {nowhere}") from None

    def test(self, operation: Mapping[str, Any]) -> None:
        path, wanted = _path(operation, "test"), operation.get("value")
        if path == "":
            found = self.root
        else:
            container, step = self.holder(path, f"test operation does not apply: is missing path: {path}")
            try:
                # A field that is not there tests equal to null.
                found = container.get(step) if isinstance(container, dict) else _get(container, step)
            except _PathNotFound as nowhere:
                raise not_applicable(f"error in test for path: '{path}': {nowhere}") from None
        if not json_equal(found, wanted):
            raise not_applicable(f"testing value {path} failed: test failed")


_OPERATIONS: dict[str, Callable[[_Document, Mapping[str, Any]], None]] = {
    "add": _Document.add,
    "remove": _Document.remove,
    "replace": _Document.replace,
    "move": _Document.move,
    "copy": _Document.copy,
    "test": _Document.test,
}


def _index(step: str, length: int) -> int:
    """The position a step names in a list with `length` places; negative ones count from the end."""
    if not _INDEX.fullmatch(step):
        raise _PathNotFound(f"value was not a proper array index: '{step}'")
    index = int(step)
    if not -length <= index < length:
        raise _PathNotFound(f"Unable to access invalid index: {index}: invalid index referenced")
    return index % length


def _get(container: Any, step: str) -> Any:
    if isinstance(container, list):
        return container[_index(step, len(container))]
    if not isinstance(container, dict) or step not in container:
        raise _PathNotFound(f"Unable to find nonexistent key: {step}: {_MISSING}")
    return container[step]


def _put(container: Any, step: str, value: Any) -> None:
    if isinstance(container, dict):
        container[step] = value
    elif step == "-":
        container.append(value)
    else:
        container.insert(_index(step, len(container) + 1), value)


def _pop(container: Any, step: str) -> Any:
    if isinstance(container, list):
        return container.pop(_index(step, len(container)))
    if step not in container:
        raise _PathNotFound(f"Unable to remove nonexistent key: {step}: {_MISSING}")
    return container.pop(step)


def _path(operation: Mapping[str, Any], operation_name: str, field: str = "path") -> str:
    path = operation.get(field)
    if path is None:
        raise not_applicable(f"{operation_name} operation failed to decode {field}: {_MISSING}")
    return str(path)
