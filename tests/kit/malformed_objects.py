"""Objects with something odd in one place: whoever reads them has to answer, whatever it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shoal.kube.objects import Obj
from shoal.kube.patching.json_values import clone

ODD: tuple[Any, ...] = (3, "s", [3], {"a": 3}, True, None)
Steps = tuple[str | int, ...]


def bent(good: Obj, *parts: str) -> Iterator[Obj]:
    """The same with something else in one place of these parts, once for each place and each odd value."""
    for steps in _places(good):
        if steps[0] in parts:
            yield from (_replaced(good, steps, odd) for odd in ODD)


def _places(value: Any, steps: Steps = ()) -> Iterator[Steps]:
    """Every place in it, the whole left out."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, below in inner:
        yield (*steps, step)
        yield from _places(below, (*steps, step))


def _replaced(value: Any, steps: Steps, odd: Any) -> Any:
    if not steps:
        return odd
    made = clone(value)
    made[steps[0]] = _replaced(value[steps[0]], steps[1:], odd)
    return made
