"""CustomResourceDefinitions and the resources they define.

A definition whose names are free is established in the same write that creates it; one whose names are taken
reports that in its conditions and is checked again when the other is deleted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.cluster.strategies.strategy import Generation, Strategy
from shoal.kube.conditions import with_condition
from shoal.kube.objects import Obj, name_of

if TYPE_CHECKING:
    from shoal.cluster.registry import Core

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"


def prepare_for_create(core: Core, definition: Obj) -> None:
    definition["status"] = {}
    finalizers = definition["metadata"].setdefault("finalizers", [])
    if CLEANUP not in finalizers:
        finalizers.append(CLEANUP)
    update_conditions(core, definition)


def prepare_for_update(core: Core, new: Obj, old: Obj) -> None:
    if new.get("spec") != old.get("spec"):
        new["status"] = dict(old.get("status") or {})
        update_conditions(core, new)


def update_conditions(core: Core, definition: Obj) -> None:
    """Write into the status which names are accepted and whether the resources are served."""
    spec, status = definition.get("spec") or {}, definition["status"]
    names = {k: v for k, v in (spec.get("names") or {}).items() if v}
    conflict = _conflict(core, name_of(definition), spec.get("group") or "", names)
    now = core.now()
    conditions = status.get("conditions")
    if conflict is None:
        status["acceptedNames"] = names
        conditions = with_condition(
            conditions, "NamesAccepted", True, now=now, reason="NoConflicts", message="no conflicts found"
        )
        conditions = with_condition(
            conditions, "Established", True, now=now, reason="InitialNamesAccepted",
            message="the initial names have been accepted",
        )  # fmt: skip
    else:
        reason, message = conflict
        status.setdefault("acceptedNames", {"kind": "", "plural": ""})
        conditions = with_condition(conditions, "NamesAccepted", False, now=now, reason=reason, message=message)
        if not any(c["type"] == "Established" and c["status"] == "True" for c in conditions):
            conditions = with_condition(
                conditions, "Established", False, now=now, reason="NotAccepted", message="not all names are accepted"
            )
    status["conditions"] = conditions
    stored = status.get("storedVersions") or []
    storage = next((v.get("name") for v in spec.get("versions") or () if v.get("storage")), None)
    status["storedVersions"] = [*stored, storage] if storage and storage not in stored else stored


def _conflict(core: Core, resource: str, group: str, names: Obj) -> tuple[str, str] | None:
    """The first name of the definition that something else in its group already has."""
    names_in_use: set[str] = set()
    kinds_in_use: set[str] = set()
    for kind in core.kinds():
        if kind.group == group and kind.resource != resource:
            names_in_use |= {kind.plural, kind.singular or kind.kind.lower(), *kind.short_names}
            kinds_in_use |= {kind.kind, kind.list_kind}
    candidates = [("Plural", names.get("plural")), ("Singular", names.get("singular"))]
    candidates += [("ShortNames", short) for short in names.get("shortNames") or ()]
    conflicts = [(field, name) for field, name in candidates if name and name in names_in_use]
    kinds = (("Kind", names.get("kind")), ("ListKind", names.get("listKind")))
    conflicts += [(field, name) for field, name in kinds if name and name in kinds_in_use]
    if not conflicts:
        return None
    field, name = conflicts[-1]  # one condition has room for one; an API server reports the last
    return f"{field}Conflict", f'"{name}" is already in use'


STRATEGY = Strategy(
    Generation.SPEC, unconditional_update=False, status_writes_metadata=False,
    prepare_for_create=prepare_for_create, prepare_for_update=prepare_for_update,
)  # fmt: skip
CUSTOM = Strategy(Generation.ALL_BUT_METADATA, unconditional_update=False, status_writes_metadata=False)
CUSTOM_WITH_STATUS = Strategy(Generation.CONTENT, unconditional_update=False, status_writes_metadata=False)
