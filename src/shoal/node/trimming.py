"""Objects without the record of who wrote what: nobody on a node reads it, and it is a good part of each object."""

from __future__ import annotations

from shoal.kube.objects import Obj


def without_bookkeeping(obj: Obj) -> Obj:
    obj["metadata"].pop("managedFields", None)
    return obj
