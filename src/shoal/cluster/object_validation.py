"""Is this an object of its kind? Types, unknown fields, defaults and validation, for built-in and custom kinds.

The same questions with two sets of rules: built-in kinds have theirs in `shoal.kube.validation` and
`shoal.kube.defaults`, custom ones in the schema of their definition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from shoal.cluster.admission import Admission, merge_causes
from shoal.kube import defaults, kinds, selectors, structural_schema, validation
from shoal.kube.errors import ApiError, Cause, bad_request, invalid
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj, at_path, name_of
from shoal.kube.persistent_volumes import needs_folder, source_of
from shoal.kube.schema import drop_unknown, is_clean, type_problem, unknown_fields
from shoal.kube.schemas import schema_of

_CONDITION_TIMES = ("lastProbeTime", "lastTransitionTime")
_EVENT_TIMES = (
    "eventTime", "firstTimestamp", "lastTimestamp", "deprecatedFirstTimestamp", "deprecatedLastTimestamp",
)  # fmt: skip


class DecodedObject:
    """What decoding an object found out."""

    __slots__ = ("obj", "warnings")

    def __init__(self, obj: Obj, warnings: list[str]) -> None:
        self.obj = obj
        self.warnings = warnings


def decode_object(
    kind: Kind, obj: Any, field_validation: str, *, patched: bool = False, old: Obj | None = None
) -> DecodedObject:
    """The object as the kind's decoder reads it: 400 for wrong types (422 where a patch made them).

    Subtrees that are the very objects of `old` were read before.
    """
    if not isinstance(obj, dict):
        raise bad_request(f"the object provided is unrecognized (must be of type {kind.kind}): not an object")
    _check_type_meta(kind, obj)
    _drop_server_nulls(kind, obj)
    schema = schema_of(kind)
    if is_clean(schema, _changed_fields(obj, old) if old is not None else obj):
        return DecodedObject(obj, [])
    problem = type_problem(schema, obj)
    if problem is not None:
        raise _decode_error(kind, obj, problem, patched)
    unknown = [] if field_validation == "Ignore" else unknown_fields(schema, obj)
    warnings = [f'unknown field "{path}"' for path in unknown]
    if warnings and field_validation == "Strict":
        raise _decode_error(kind, obj, "strict decoding error: " + ", ".join(warnings), patched)
    return DecodedObject(_drop_unknown(kind, obj), warnings)


def _changed_fields(obj: Obj, old: Obj) -> Obj:
    return {name: value for name, value in obj.items() if old.get(name) is not value}


def _drop_server_nulls(kind: Kind, obj: Obj) -> None:
    """Some times are null until they are set. The defaults write the nulls again.
    Without them here an object the server itself made needs no second check."""
    if kind.plural == kinds.POD.plural and not kind.group:
        conditions = at_path(obj, "status", "conditions")
        for condition in conditions if isinstance(conditions, list) else ():
            if isinstance(condition, dict):
                _drop_nulls(condition, _CONDITION_TIMES)
    elif kind.plural == kinds.EVENT.plural:
        _drop_nulls(obj, _EVENT_TIMES)


def _drop_nulls(obj: Obj, names: tuple[str, ...]) -> None:
    for name in names:
        if obj.get(name, "") is None:
            del obj[name]


def _drop_unknown(kind: Kind, obj: Obj) -> Obj:
    if kind.custom:
        return structural_schema.prune(schema_of(kind), obj)
    return drop_unknown(schema_of(kind), obj)


def _check_type_meta(kind: Kind, obj: Obj) -> None:
    version = obj.get("apiVersion") or kind.api_version
    found = obj.get("kind") or kind.kind
    if version != kind.api_version or found != kind.kind:
        raise _type_meta_error(kind, obj, version, found)
    obj["apiVersion"], obj["kind"] = version, found
    if obj.get("metadata") is None:
        obj["metadata"] = {}


def _type_meta_error(kind: Kind, obj: Obj, version: Any, found: Any) -> ApiError:
    if kind.custom and version != kind.api_version:
        message = (
            f"the API version in the data ({version}) does not match the expected API version ({kind.api_version})"
        )
        return bad_request(message)
    if kind.custom:
        given = replace(kind, kind=str(found))
        wrong = Cause("FieldValueInvalid", f'Invalid value: "{found}": must be {kind.kind}', "kind")
        return invalid(given, str(at_path(obj, "metadata", "name", default="")), [wrong])
    short = str(version).rpartition("/")[2]
    why = f'no kind "{found}" is registered for version "{version}"'
    if any((each.api_version, each.kind) == (version, found) for each in kinds.BUILT_IN):
        family = kind.group.partition(".")[0] or "core"
        why = f"converting ({short}.{found}) to ({family}.{kind.kind}): unknown conversion"
    return bad_request(f'{found} in version "{short}" cannot be handled as a {kind.kind}: {why}')


def _decode_error(kind: Kind, obj: Obj, problem: str, patched: bool) -> ApiError:
    if patched:
        return patch_error(obj, problem)
    return bad_request(f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {problem}')


def patch_error(obj: Obj, problem: str) -> ApiError:
    """A patch whose result is not an object of the kind; Kubernetes names no kind here."""
    encoded = msgspec.json.encode(msgspec.json.encode(obj).decode()).decode()
    message = f"Invalid value: {encoded}: {problem}"
    cause = {"reason": "FieldValueInvalid", "message": message, "field": "patch"}
    return ApiError(422, "Invalid", f' "" is invalid: patch: {message}', {"causes": [cause]})


def fill_defaults(kind: Kind, obj: Obj, old: Obj | None = None) -> None:
    """In place; what is the very object of `old` has its defaults."""
    _drop_empty(obj["metadata"], _EMPTY_IS_ABSENT)
    if kind.custom:
        filled = frozenset(name for name in obj if old.get(name) is obj[name]) if old is not None else frozenset[str]()
        structural_schema.apply_defaults(schema_of(kind), obj, skip=filled)
    else:
        _drop_empty(obj, _EMPTY_DATA_IS_ABSENT)
        defaults.apply_defaults(kind, obj)


# An API server does not distinguish an empty map or list here from an absent one.
_EMPTY_IS_ABSENT = ("labels", "annotations", "finalizers", "ownerReferences")
_EMPTY_DATA_IS_ABSENT = ("data", "binaryData")


def _drop_empty(obj: Obj, names: tuple[str, ...]) -> None:
    for name in names:
        if name in obj and not obj[name]:
            del obj[name]


def check_new(kind: Kind, obj: Obj, *, allow_loopback: bool = False, admission: Admission | None = None) -> None:
    causes = validation.validate_create(kind, obj, allow_loopback=allow_loopback)
    if kind.custom:
        webhook_causes = admission.check(obj, None) if admission is not None else []
        causes = merge_causes(webhook_causes, causes + _schema_errors(kind, obj))
    elif admission is not None:
        causes += admission.check(obj, None)
    elif kind == kinds.CUSTOM_RESOURCE_DEFINITION:
        causes += structural_schema.crd_problems(obj)
    if causes:
        raise invalid(kind, name_of(obj), causes)


def check_change(
    kind: Kind,
    new: Obj,
    old: Obj,
    subresource: str,
    *,
    allow_loopback: bool = False,
    admission: Admission | None = None,
) -> None:
    causes = validation.validate_update(kind, new, old, subresource, allow_loopback=allow_loopback)
    if kind.custom:
        webhook_causes = admission.check(new, old) if admission is not None else []
        causes = merge_causes(webhook_causes, causes + _schema_errors(kind, new, old))
    elif admission is not None:
        causes += admission.check(new, old)
    elif kind == kinds.CUSTOM_RESOURCE_DEFINITION and subresource == "" and new.get("spec") != old.get("spec"):
        causes += structural_schema.crd_problems(new)
    if causes:
        raise invalid(kind, name_of(new), causes)


def _schema_errors(kind: Kind, obj: Obj, old: Obj | None = None) -> list[Cause]:
    """By the definition of a custom kind: its schema, then its rules."""
    found = structural_schema.validate(schema_of(kind), obj, old)
    if any(cause.reason in structural_schema.BLOCKING for cause in found):
        return found
    return [*found, *structural_schema.broken_rules(kind, obj, old)]


def deviation_warnings(kind: Kind, obj: Obj) -> tuple[str, ...]:
    """A warning about an object that means something else here than in Kubernetes today."""
    if kind == kinds.PERSISTENT_VOLUME and needs_folder(obj):
        source = source_of(obj)
        what = f"there is no {source} storage here" if source else "it names no source"
        field = f"spec.{source}" if source else "spec"
        return (f"{field}: {what}, so the volume is a folder of the cluster; hostPath names one of the machine",)
    if kind != kinds.REPLICA_SET_V1BETA1:
        return ()
    chosen = selectors.from_label_selector(at_path(obj, "spec", "selector"))
    return (
        f"Kubernetes no longer serves {kind}: this one is understood as {kinds.REPLICA_SET} of the pods with "
        f"{chosen}; write apiVersion: {kinds.REPLICA_SET.api_version} and that selector",
    )


def is_unchanged(new: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    """Whether a write changes nothing; the times in managedFields do not count."""
    if new == old:
        return True
    if {**new, "metadata": None} != {**old, "metadata": None}:
        return False
    new_meta, old_meta = new["metadata"], old["metadata"]
    if {**new_meta, "managedFields": None} != {**old_meta, "managedFields": None}:
        return False
    return _without_time(new_meta.get("managedFields")) == _without_time(old_meta.get("managedFields"))


def _without_time(managed: Any) -> list[Obj]:
    return [{**entry, "time": None} for entry in managed or ()]
