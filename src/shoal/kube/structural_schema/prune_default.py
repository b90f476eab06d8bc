"""How a schema changes an object before it is validated: unknown fields are removed, defaults are added.

`prune` never changes its input; `apply_defaults` fills in place. Doing either twice changes nothing more.
"""

from __future__ import annotations

from collections.abc import Set
from copy import deepcopy
from typing import Any

from shoal.kube.objects import Obj
from shoal.kube.schema import Schema, drop_unknown

_HOLDERS = (dict, list)


def prune(schema: Schema, obj: Obj) -> Obj:
    """`obj` without the fields the schema does not declare; `obj` itself where there are none."""
    return drop_unknown(schema, obj)


def apply_defaults(schema: Schema, obj: Any, *, skip: Set[str] = frozenset()) -> None:
    """Fill in defaults, in place. A null that is not allowed becomes the default, or is removed where there is none.

    Nothing is filled in below the fields in `skip`.
    """
    if isinstance(obj, dict):
        for name, below in schema.fields.items():
            if below.default is not None and (name not in obj or (obj[name] is None and not below.nullable)):
                obj[name] = deepcopy(below.default)
        # A null that the schema does not allow counts as absent, so that clients may send zero values as null.
        for name in [name for name, child in obj.items() if child is None]:
            known = schema.field(name)
            if known is None or known.nullable or known.type == "any":
                continue
            if known.default is not None:
                obj[name] = deepcopy(known.default)
            else:
                del obj[name]
        for name, child in obj.items():
            if type(child) not in _HOLDERS or name in skip:
                continue  # most fields are plain values
            known = schema.field(name)
            if known is not None and known.custom:
                apply_defaults(known, child)
    elif isinstance(obj, list) and schema.items is not None:
        for index, child in enumerate(obj):
            if child is None and not schema.items.nullable:
                obj[index] = deepcopy(schema.items.default)
            apply_defaults(schema.items, obj[index])
