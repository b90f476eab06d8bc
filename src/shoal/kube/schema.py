"""What an object may look like: a tree of `Schema`, and the walks every write takes over it.

A `Schema` says what stands at one place: its JSON type, its fields, how lists and maps merge, and the words
`kubectl explain` prints. The trees of the built-in kinds are declared in `shoal.kube.schemas`; those of custom
resources are read from their definition by `shoal.kube.structural`. Nothing here knows a kind by name.

Every write asks two questions: is each value of the right type, and is each field known? `fits` answers both
in one walk, which almost always says yes; only after a no do `type_problem` and `unknown_fields` walk again to
find words, so the ordinary write never pays for them. The words are those of the Kubernetes API server, which
decodes into Go structs: hence `go_type`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from shoal.kube.objects import Obj

_NONE: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Schema:
    """What may stand at one place. Compared by identity: two places may share one Schema."""

    type: str = "any"  # object, array, string, integer, number, boolean, any
    format: str = ""  # int32, int64, double, date-time, micro-time, quantity, int-or-string, byte, ...
    fields: Mapping[str, Schema] = _NONE  # of an object with named fields; may refer back to itself
    values: Schema | None = None  # of an object used as a map
    items: Schema | None = None  # of an array
    required: tuple[str, ...] = ()
    description: str = ""  # of this place
    default: Any = None
    enum: tuple[Any, ...] = ()
    list_type: str = "atomic"  # atomic, set, map
    list_keys: tuple[str, ...] = ()
    map_type: str = "granular"  # granular, atomic
    patch_strategy: frozenset[str] = frozenset()  # of: merge, retainKeys
    patch_key: str = ""
    preserve_unknown: bool = False
    embedded_resource: bool = False
    nullable: bool = False
    go_type: str = ""  # the name in decoding errors: v1.Container, v1.RestartPolicy
    component: str = ""  # the shared OpenAPI component this is one use of: io.k8s.api.core.v1.Container
    about: str = ""  # what the component is, wherever it is used
    custom: bool = False  # read from a CustomResourceDefinition: its types are a matter of validation
    rules: Mapping[str, Any] = _NONE  # the other keywords of a custom schema: minimum, pattern, oneOf, ...

    def __repr__(self) -> str:
        return f"Schema({self.go_type or self.component or self.type})"

    def field(self, name: str) -> Schema | None:
        """The schema below `name`: a named field, else the map's value schema, else nothing is known."""
        return self.fields.get(name) or self.values
