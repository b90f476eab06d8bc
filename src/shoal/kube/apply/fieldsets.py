"""Sets of field paths, kept in the very form the API writes them: `fieldsV1`.

A set is a tree of dictionaries. A key is one step of a path (`f:spec`, `k:{"name":"web"}`, `v:"a"`); the path belongs
to the set when its node is empty or holds the key `.`, so that

    {"f:spec": {"f:replicas": {}, "f:template": {".": {}, "f:metadata": {}}}}

is the paths spec.replicas, spec.template and spec.template.metadata. The root is never a member: an empty root is the
empty set. The operations return new trees that may share subtrees with their inputs and change neither.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

FieldSet = dict[str, Any]

HERE = "."
_STEPS = ("f:", "k:", "v:", "i:")


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    """The paths in either."""
    result = dict(left)
    for step, node in right.items():
        own = result.get(step)
        if own is None:
            result[step] = node
        elif own is not node and own != node:
            both = result[step] = union(own, node)
            # An empty node is a member by being empty; joined with a full one it needs the mark.
            if (not own or not node) and HERE not in both:
                both[HERE] = {}
    return result


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """The paths of `left` that are not in `right`."""
    if not left or not right:
        return left
    result = {}
    for step, node in left.items():
        other = right.get(step)
        if other is None:
            result[step] = node
        elif step != HERE and (rest := _difference_of_two(node, other)) is not None:
            result[step] = rest
    return result


def _difference_of_two(left: FieldSet, right: FieldSet) -> FieldSet | None:
    """A node without what the other node holds; None where nothing is left of it."""
    # A member of the left is removed only by a member of the right, not by paths below it.
    left_is_member = (not left or HERE in left) and bool(right) and HERE not in right
    below = {}
    for step, node in left.items():
        if step == HERE:
            continue
        other = right.get(step)
        rest = node if other is None else _difference_of_two(node, other)
        if rest is not None:
            below[step] = rest
    if left_is_member:
        return {HERE: {}, **below} if below else {}
    return below or None


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    """The paths in both."""
    result = {}
    for step, node in left.items():
        other = right.get(step)
        if step == HERE or other is None:
            continue
        below = intersection(node, other)
        if is_member(node) and is_member(other):
            result[step] = {HERE: {}, **below} if below else {}
        elif below:
            result[step] = below
    return result


def is_member(node: FieldSet | None) -> bool:
    """Whether the path that leads to this node is in the set, and not only paths below it."""
    return node is not None and (not node or HERE in node)


def as_member(node: FieldSet | None) -> FieldSet:
    """The node with its own path in the set."""
    if not node:
        return {}
    return node if HERE in node else {HERE: {}, **node}


def paths(fields: FieldSet, prefix: str = "") -> Iterator[str]:
    """The paths as text, as in conflicts: `.spec.containers[name="web"].image`. Shallow ones first."""
    steps = sorted(step for step in fields if step != HERE)
    for step in steps:
        if is_member(fields[step]):
            yield prefix + _format_step(step)
    for step in steps:
        yield from paths(fields[step], prefix + _format_step(step))


def _format_step(step: str) -> str:
    kind, rest = step[:2], step[2:]
    if kind == "f:":
        return f".{rest}"
    if kind == "k:":
        keys = sorted(json.loads(rest).items())
        return f"[{','.join(f'{name}={json.dumps(value, ensure_ascii=False)}' for name, value in keys)}]"
    return f"[={rest}]" if kind == "v:" else f"[{rest}]"


def is_field_set(value: Any) -> bool:
    """Whether a value from a client is such a tree, and safe to walk."""
    if not isinstance(value, dict):
        return False
    return all((step == HERE and node == {}) or (_is_step(step) and is_field_set(node)) for step, node in value.items())


def _is_step(step: Any) -> bool:
    if not isinstance(step, str) or not step.startswith(_STEPS):
        return False
    if step.startswith("f:"):
        return True
    try:
        rest = json.loads(step[2:])
    except ValueError:
        return False
    return isinstance(rest, dict) if step.startswith("k:") else isinstance(rest, int) or not step.startswith("i:")
