"""What a job has besides its pods, read from existing objects: groups, owned objects, and gates others opened.

The operator calls it with its copies, the describe page with what a cluster lists; both get the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Any

from shoal.dialects.capabilities import Gangs, OwnedObjects, RequiredObject
from shoal.engine import GroupRef, ObservedGroup, ObservedObject, OwnedObjectRef
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj


def content_digest(content: Any) -> str:
    """Of what a job wants in an object: kept on the object, so that a change of the spec is detected."""
    return blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=8).hexdigest()


def observe_children(
    owned: OwnedObjects, gangs: Gangs | None, objects: Iterable[Obj], manifest: Obj
) -> tuple[dict[str, ObservedGroup], dict[OwnedObjectRef, ObservedObject]]:
    """The groups by key, and the owned objects; what has no owner or another job as owner is left out."""
    groups: dict[str, ObservedGroup] = {}
    companions: dict[OwnedObjectRef, ObservedObject] = {}
    found = [known for obj in objects if (known := owned.observe_child(obj, manifest)) is not None]
    for ref, seen in found if gangs is None else gangs.select_groups(found, manifest):
        if isinstance(ref, GroupRef) and isinstance(seen, ObservedGroup):
            groups[ref.key] = seen
        elif isinstance(ref, OwnedObjectRef) and isinstance(seen, ObservedObject):
            companions[ref] = seen
    return groups, companions


def open_gates(awaits: Iterable[RequiredObject], is_there: Callable[[Kind, str], bool]) -> frozenset[str]:
    """The gates that objects of others have opened."""
    return frozenset(each.key for each in awaits if is_there(each.kind, each.name))
