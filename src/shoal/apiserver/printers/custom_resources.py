"""Rows of custom resources: the columns their definition declares, found by small JSONPaths."""

from __future__ import annotations

from dataclasses import replace
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
    columns = [NAME]
    for column in declared:
        description = column.description or f"Custom resource definition column (in JSONPath format): {column.path}"
        columns.append(replace(column, description=description))

    def cells(obj: Obj, now: datetime) -> list[Any]:
        return [name(obj), *(_cell(column, obj, now) for column in declared)]

    return TablePrinter(tuple(columns), cells)


def _cell(column: Column, obj: Obj, now: datetime) -> Any:
    found = jsonpath.find(obj, column.path)
    if not found or found[0] is None:
        return None
    value = found[0]
    if column.type == "string":
        return value if isinstance(value, str) else msgspec.json.encode(value).decode()
    if column.type == "date":
        return durations.age_since(value, now) if isinstance(value, str) else None
    if column.type == "boolean":
        return value if isinstance(value, bool) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if column.type == "integer" else float(value)
