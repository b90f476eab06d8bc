"""CustomResourceDefinitions and the resources they define.

A definition whose names are free is established in the same write that creates it; one whose names are taken
says so in its conditions and is looked at again when the other goes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.cluster.strategies.base import Generation, Rules
from shoal.kube.conditions import with_condition
from shoal.kube.objects import Obj, name_of

if TYPE_CHECKING:
    from shoal.cluster.registry import Core

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"


def begin(core: Core, definition: Obj) -> None:
    definition["status"] = {}
    finalizers = definition["metadata"].setdefault("finalizers", [])
    if CLEANUP not in finalizers:
        finalizers.append(CLEANUP)
    judge(core, definition)


def keep(core: Core, new: Obj, old: Obj) -> None:
    if new.get("spec") != old.get("spec"):
        new["status"] = dict(old.get("status") or {})
        judge(core, new)


def judge(core: Core, definition: Obj) -> None:
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
    kept = status.get("storedVersions") or []
    storage = next((v.get("name") for v in spec.get("versions") or () if v.get("storage")), None)
    status["storedVersions"] = [*kept, storage] if storage and storage not in kept else kept


def _conflict(core: Core, own: str, group: str, names: Obj) -> tuple[str, str] | None:
    """The first name of the definition that something else in its group already has."""
    words, kind_words = _taken(core, own, group)
    asked = [("Plural", names.get("plural")), ("Singular", names.get("singular"))]
    asked += [("ShortNames", short) for short in names.get("shortNames") or ()]
    found = [(what, word) for what, word in asked if word and word in words]
    kinds = (("Kind", names.get("kind")), ("ListKind", names.get("listKind")))
    found += [(what, word) for what, word in kinds if word and word in kind_words]
    if not found:
        return None
    what, word = found[-1]  # one condition has room for one; an API server tells the last
    return f"{what}Conflict", f'"{word}" is already in use'


def _taken(core: Core, own: str, group: str) -> tuple[set[str], set[str]]:
    words: set[str] = set()
    kind_words: set[str] = set()
    for kind in core.kinds():
        if kind.group == group and kind.resource != own:
            words |= {kind.plural, kind.singular or kind.kind.lower(), *kind.short_names}
            kind_words |= {kind.kind, kind.list_kind}
    return words, kind_words


RULES = Rules(
    Generation.SPEC, unconditional_update=False, status_writes_metadata=False, begin=begin, keep=keep,
)  # fmt: skip
CUSTOM = Rules(Generation.ALL_BUT_METADATA, unconditional_update=False, status_writes_metadata=False)
CUSTOM_WITH_STATUS = Rules(Generation.CONTENT, unconditional_update=False, status_writes_metadata=False)
