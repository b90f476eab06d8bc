"""Rows of custom resources: the columns their definition declares, found by small JSONPaths."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec

from shoal.apiserver import durations, jsonpath
from shoal.apiserver.printers.table import NAME, TablePrinter, name
from shoal.kube.kinds import Column, Kind
from shoal.kube.objects import Obj

_AGE = Column("Age", "date", ".metadata.creationTimestamp", "Time since the object was created.")


def printer(kind: Kind) -> TablePrinter:
    declared = kind.columns or (_AGE,)
    return TablePrinter((NAME, *(_described(column) for column in declared)), _cells(declared))


def _described(column: Column) -> Column:
    if column.description:
        return column
    description = f"Custom resource definition column (in JSONPath format): {column.path}"
    return Column(column.name, column.type, column.path, description, column.priority, column.format)


def _cells(columns: tuple[Column, ...]) -> Callable[[Obj, datetime], list[Any]]:
    def cells(obj: Obj, now: datetime) -> list[Any]:
        return [name(obj), *(_cell(column, obj, now) for column in columns)]

    return cells


def _cell(column: Column, obj: Obj, now: datetime) -> Any:
    found = jsonpath.find(obj, column.path)
    if not found or found[0] is None:
        return None
    value = found[0]
    if column.type == "string":
        return _shown(value)
    if column.type == "date":
        return durations.age_since(value, now) if isinstance(value, str) else None
    if column.type == "boolean":
        return value if isinstance(value, bool) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if column.type == "integer" else float(value)


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()
