"""What a job has besides its pods, read from the objects that are there: groups, companions, and gates others opened.

The operator asks it of its copies, whoever tells a job's story of what a cluster lists; both hear the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from shoal.dialects.dialect import Awaited, Kin
from shoal.engine import CompanionRef, Group, GroupRef, Seen
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj


def relatives(kin: Kin, objects: Iterable[Obj], manifest: Obj) -> tuple[dict[str, Group], dict[CompanionRef, Seen]]:
    """The groups by key, and the companions; what belongs to nobody or to another job is left out."""
    groups: dict[str, Group] = {}
    companions: dict[CompanionRef, Seen] = {}
    found = [known for obj in objects if (known := kin.recognise(obj, manifest)) is not None]
    for ref, seen in found if kin.among is None else kin.among(found, manifest):
        if isinstance(ref, GroupRef) and isinstance(seen, Group):
            groups[ref.key] = seen
        elif isinstance(ref, CompanionRef) and isinstance(seen, Seen):
            companions[ref] = seen
    return groups, companions


def opened(awaits: Iterable[Awaited], is_there: Callable[[Kind, str], bool]) -> frozenset[str]:
    """The gates that objects of others have opened."""
    return frozenset(each.key for each in awaits if is_there(each.kind, each.name))
