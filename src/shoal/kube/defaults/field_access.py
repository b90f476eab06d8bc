"""The operations of all defaults: get or create a child object, fill in a field, rewrite amounts.

A null counts as missing everywhere, as it does when an API server reads an object.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from shoal.kube.objects import Obj
from shoal.kube.quantity import Quantity


def below(obj: Obj, name: str) -> Obj:
    """The object under `name`, made if it is missing."""
    found = obj.get(name)
    if found is None:
        found = obj[name] = {}
    return found


def each(obj: Obj, name: str) -> list[Obj]:
    """The objects of a list; a null among them becomes an empty object in place."""
    found: list[Any] | None = obj.get(name)
    if not found:
        return []
    if None in found:
        found[:] = [{} if item is None else item for item in found]
    return found


def fill(obj: Obj, name: str, value: Any) -> None:
    """Set the field where it is absent, null or the empty text."""
    found = obj.get(name)
    if found is None or found == "":
        obj[name] = value


def fill_missing(obj: Obj, name: str, value: Any) -> None:
    """Set the field where it is absent or null; an empty text or a zero is an answer."""
    if obj.get(name) is None:
        obj[name] = value


def amount(obj: Obj, name: str) -> None:
    """Write one quantity in canonical form, where there is one."""
    found = obj.get(name)
    if found is not None:
        obj[name] = _canonical(str(found), rounds_to_milli=False)


def amounts(obj: Obj, name: str) -> None:
    """Write a resource list in canonical form; amounts finer than a thousandth are rounded up to one."""
    found = obj.get(name)
    if found:
        for resource, value in found.items():
            found[resource] = "0" if value is None else _canonical(str(value), rounds_to_milli=True)


@lru_cache(maxsize=8192)
def _canonical(text: str, *, rounds_to_milli: bool) -> str:
    quantity = Quantity.parse(text)
    if rounds_to_milli and quantity.nanos % 10**6:
        quantity = Quantity.of_milli(quantity.milli(), quantity.family)
    return str(quantity)
