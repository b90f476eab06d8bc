"""Hostile values for every place of an object: what a schema allows there, replaced by what it does not.

`whole(schema)` is an object with a value in every field, `places(obj)` the paths in it, and `WRONG` what to put there.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

from shoal.kube.objects import Obj
from shoal.kube.schema import Schema

Path = tuple[str | int, ...]

WRONG: tuple[Any, ...] = (
    None, True, 0, -1, 2**40, 2**63, -(2**63) - 1, 1.5, 1e300, "", "x", "\0", "é\u2028", "-1", "1e99999", "9" * 5000,
    "a/b/c", [], [None], [1], ["x", "x"], [[]], [{}], [{"name": None}], {}, {"x": 1}, {"x": None}, {"": {}},
    {"name": [], "key": {}, "type": 1},
)  # fmt: skip
_TEXTS = {
    "date-time": "2026-01-01T00:00:00Z",
    "micro-time": "2026-01-01T00:00:00.000000Z",
    "quantity": "1",
    "byte": "eA==",
    "int-or-string": 1,
}


def whole(schema: Schema, above: tuple[Schema, ...] = ()) -> Any:
    """A value with every field of the schema; where the schema contains itself, it ends after one level."""
    if schema.enum:
        return schema.enum[0]
    if schema.format in _TEXTS:
        return _TEXTS[schema.format]
    within = (*above, schema)
    if schema.type == "object" or schema.fields:
        if above.count(schema) > 0:
            return {}
        obj = {name: whole(below, within) for name, below in schema.fields.items()}
        if schema.values is not None:
            obj["x"] = whole(schema.values, within)
        return obj
    if schema.type == "array":
        return [whole(schema.items, within)] if schema.items is not None else []
    return {"string": "x", "integer": 1, "number": 1, "boolean": True}.get(schema.type, "x")


def places(value: Any, at: Path = ()) -> Iterator[Path]:
    """Every path into the value, from the outside in."""
    yield at
    if isinstance(value, dict):
        for key, child in value.items():
            yield from places(child, (*at, key))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from places(child, (*at, index))


def replaced(obj: Any, path: Path, value: Any) -> Any:
    """A copy with another value at the path; only what lies on the way is copied."""
    if not path:
        return copy.deepcopy(value)
    step, *rest = path
    changed = copy.copy(obj)
    changed[step] = replaced(obj[step], tuple(rest), value)
    return changed


def mutated(obj: Obj, rng: random.Random, times: int) -> Iterator[tuple[Path, Any, Obj]]:
    """So many copies, each wrong in one place."""
    where = list(places(obj))
    for _ in range(times):
        path, value = rng.choice(where), rng.choice(WRONG)
        yield path, value, replaced(obj, path, value)
