"""What a kind may say about its own writes, beyond what holds for all kinds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from shoal.kube.objects import Obj

if TYPE_CHECKING:
    from shoal.cluster.registry import Core


class Generation(Enum):
    """What metadata.generation counts."""

    NONE = "nothing"
    FIXED = "always 1"
    SPEC = "changes of spec"
    SPEC_AND_ANNOTATIONS = "changes of spec and of annotations"
    CONTENT = "changes of anything but metadata and status"
    CONTENT_AND_LABELS = "changes of anything but metadata, and of labels"
    ALL_BUT_METADATA = "changes of anything but metadata"


@dataclass(frozen=True, slots=True)
class Strategy:
    """All functions change `new` in place; `old` is the stored object and stays as it is."""

    generation: Generation = Generation.NONE
    unconditional_update: bool = True  # PUT without a resourceVersion
    create_on_update: bool = False  # PUT of an object that is not there
    keeps_initial_status: bool = False  # a status given on create is kept
    # Groups of spec fields that admission fills in: a group that a new object lacked has no manager.
    admission_fills: tuple[tuple[str, ...], ...] = ()
    status_writes_metadata: bool = True  # the status subresource also takes labels and annotations
    # Look-ups and fill-ins of admission, before validation: (core, new, old or None).
    admit: Callable[[Core, Obj, Obj | None], None] | None = None
    # The first status and the like, before validation: (core, new).
    prepare_for_create: Callable[[Core, Obj], None] | None = None
    # What a write to the main resource may not change, or changes by itself: (core, new, old).
    prepare_for_update: Callable[[Core, Obj, Obj], None] | None = None
    # The same for the status subresource.
    prepare_for_status_update: Callable[[Core, Obj, Obj], None] | None = None


def bumps_generation(generation: Generation, new: Obj, old: Obj) -> bool:
    """Whether the step from `old` to `new` is one that the generation counts."""
    if generation is Generation.SPEC:
        return bool(new.get("spec") != old.get("spec"))
    if generation is Generation.SPEC_AND_ANNOTATIONS:
        annotations = (new["metadata"].get("annotations") or {}) != (old["metadata"].get("annotations") or {})
        return annotations or new.get("spec") != old.get("spec")
    if generation is Generation.CONTENT:
        return _without(new, "metadata", "status") != _without(old, "metadata", "status")
    if generation is Generation.ALL_BUT_METADATA:
        return _without(new, "metadata") != _without(old, "metadata")
    if generation is Generation.CONTENT_AND_LABELS:
        labels = (new["metadata"].get("labels") or {}) != (old["metadata"].get("labels") or {})
        return labels or _without(new, "metadata") != _without(old, "metadata")
    return False


def _without(obj: Obj, *names: str) -> Obj:
    return {name: value for name, value in obj.items() if name not in names}


def keep_field(new: Obj, old: Obj, name: str) -> None:
    """Let `new` have exactly what `old` has under `name`."""
    if name in old:
        new[name] = old[name]
    else:
        new.pop(name, None)
