"""A layout: the columns of a kind and the function that fills them. Also small helpers shared by the printers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shoal.apiserver import durations
from shoal.kube.kinds import Column
from shoal.kube.objects import Obj

Cells = Callable[[Obj, datetime], list[Any]]
Conditions = Callable[[Obj], list[dict[str, str]]]

NONE = "<none>"
UNSET = "<unset>"
UNKNOWN = "<unknown>"


@dataclass(frozen=True, slots=True)
class TablePrinter:
    columns: tuple[Column, ...]
    cells: Cells
    conditions: Conditions | None = None  # of a row: kubectl greys out what has finished


NAME = Column("Name", format="name", description="Name of the object, unique among its kind within a namespace.")
AGE = Column("Age", description="Time since the object was created.")


def text(name: str, description: str, *, wide: bool = False) -> Column:
    return Column(name, description=description, priority=int(wide))


def age(obj: Obj, now: datetime) -> str:
    return durations.age_since((obj.get("metadata") or {}).get("creationTimestamp"), now)


def name(obj: Obj) -> str:
    return str((obj.get("metadata") or {}).get("name") or "")


def mapping(obj: Mapping[str, Any], key: str) -> Obj:
    """`spec` or `status`, empty where it is missing."""
    return obj.get(key) or {}


def join_limited(items: Iterable[str], limit: int = 3) -> str:
    """The first few, and how many more there are."""
    found = list(items)
    if not found:
        return NONE
    shown = ",".join(found[:limit])
    return f"{shown} + {len(found) - limit} more..." if len(found) > limit else shown
