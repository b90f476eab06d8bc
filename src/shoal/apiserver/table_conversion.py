"""Forms of a response other than the object itself: Tables, and metadata without the rest.

kubectl requests Tables and prints the cells unchanged, so its output is determined in `printers`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from shoal.apiserver import printers, query
from shoal.apiserver.negotiation import ResponseForm
from shoal.apiserver.query import Query
from shoal.kube.errors import bad_request
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj

_INCLUDE = ("", "Metadata", "Object", "None")


def include_parameter(params: Query) -> str:
    """What each row carries besides its cells; 400 for anything else."""
    include = query.text(params, "includeObject")
    if include not in _INCLUDE:
        raise bad_request(
            "Unable to convert to Table as requested: includeObject: Invalid value: "
            f"\"{include}\": must be 'Metadata', 'Object', 'None', or empty"
        )
    return include or "Metadata"


def table(
    kind: Kind,
    objects: Sequence[Obj],
    *,
    form: ResponseForm,
    include: str,
    meta: Obj,
    now: datetime,
    headers: bool = True,
) -> Obj:
    rows = [row(kind, obj, form=form, include=include, now=now) for obj in objects]
    return {**table_head(kind, form, meta, headers=headers), "rows": rows}


def table_head(kind: Kind, form: ResponseForm, meta: Obj, *, headers: bool = True) -> Obj:
    """A Table without its rows."""
    columns = printers.printer_of(kind).columns if headers else ()
    definitions = [
        {
            "name": column.name,
            "type": column.type,
            "format": column.format,
            "description": column.description,
            "priority": column.priority,
        }
        for column in columns
    ]
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{form.version}",
        "metadata": meta,
        "columnDefinitions": definitions,
    }


def row(kind: Kind, obj: Obj, *, form: ResponseForm, include: str, now: datetime) -> Obj:
    printer = printers.printer_of(kind)
    made: Obj = {"cells": printer.cells(obj, now), "object": None}
    if printer.conditions is not None and (conditions := printer.conditions(obj)):
        made["conditions"] = conditions
    if include == "Metadata":
        made["object"] = metadata_only(obj, form)
    elif include == "Object":
        made["object"] = obj
    return made


def metadata_only(obj: Obj, form: ResponseForm) -> Obj:
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"meta.k8s.io/{form.version}",
        "metadata": obj.get("metadata") or {},
    }


def metadata_list_head(form: ResponseForm, meta: Obj) -> Obj:
    """A PartialObjectMetadataList without its items."""
    return {"kind": "PartialObjectMetadataList", "apiVersion": f"meta.k8s.io/{form.version}", "metadata": meta}
