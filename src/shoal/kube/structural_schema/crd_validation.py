"""CustomResourceDefinitions: whether one is valid, and the kinds it defines.

`crd_problems` checks what is around the schemas (names, versions, columns, subresources) and calls `structural` for
each schema. Webhooks for conversion are accepted as written and never called: the embedded API serves every version of
an object with the fields it was stored with.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shoal.kube.errors import Cause
from shoal.kube.kinds import Column, Kind, Scale
from shoal.kube.names import dns_1035_label, dns_subdomain
from shoal.kube.objects import Obj
from shoal.kube.structural_schema.structural import schema_problems
from shoal.kube.structural_schema.validation_rules import rule_problems
from shoal.kube.validation.errors import (
    IMMUTABLE,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
    too_many,
)

_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_MOST_SELECTABLE = 8


def crd_problems(crd: Obj, old: Obj | None = None) -> list[Cause]:
    """Every error in a definition; with `old`, also the changes that are not allowed. Expects defaults to be set."""
    spec = crd.get("spec") or {}
    problems = [*_name_problems(crd, spec), *_spec_problems(spec)]
    if old is None:
        return problems
    before = old.get("spec") or {}
    names, old_names = spec.get("names") or {}, before.get("names") or {}
    kept = [
        ("spec.group", spec.get("group"), before.get("group")),
        ("spec.names.plural", names.get("plural"), old_names.get("plural")),
    ]
    # Scope and kind may still change while the names are not accepted: no object can exist then.
    conditions = (old.get("status") or {}).get("conditions") or ()
    if any(c.get("type") == "Established" and c.get("status") == "True" for c in conditions):
        kept = [
            ("spec.scope", spec.get("scope"), before.get("scope")),
            ("spec.names.kind", names.get("kind"), old_names.get("kind")),
            *kept,
        ]
    return [*problems, *(invalid(path, value, IMMUTABLE) for path, value, was in kept if value != was)]


def _schema_of(version: Obj) -> Obj:
    return (version.get("schema") or {}).get("openAPIV3Schema") or {}


def _name_problems(crd: Obj, spec: Obj) -> Iterator[Cause]:
    name = (crd.get("metadata") or {}).get("name") or ""
    names = spec.get("names") or {}
    if name:
        for problem in dns_subdomain(name):
            yield invalid("metadata.name", name, problem)
        if name != f"{names.get('plural') or ''}.{spec.get('group') or ''}":
            yield invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')
    for field in ("plural", "singular", "kind", "listKind"):
        if not names.get(field):
            yield required(f"spec.names.{field}")
        else:
            yield from _label(f"spec.names.{field}", names[field], mixed_case=field in ("kind", "listKind"))
    for field in ("shortNames", "categories"):
        for index, short in enumerate(names.get(field) or ()):
            yield from _label(f"spec.names.{field}[{index}]", short)
    if names.get("kind") and names["kind"] == names.get("listKind"):
        yield invalid("spec.names.listKind", names["listKind"], "kind and listKind may not be the same")


def _label(path: str, value: str, *, mixed_case: bool = False) -> Iterator[Cause]:
    problems = dns_1035_label(value.lower() if mixed_case else value)
    if problems:
        prefix = "may have mixed case, but should otherwise match: " if mixed_case else ""
        yield invalid(path, value, prefix + ",".join(problems))


def _spec_problems(spec: Obj) -> Iterator[Cause]:
    group = spec.get("group") or ""
    if not group:
        yield required("spec.group")
    elif problems := dns_subdomain(group):
        yield invalid("spec.group", group, ",".join(problems))
    elif "." not in group:
        yield invalid("spec.group", group, "should be a domain with at least one dot")
    scope = spec.get("scope") or ""
    if not scope:
        yield required("spec.scope")
    elif scope not in ("Cluster", "Namespaced"):
        yield not_supported("spec.scope", scope, ("Cluster", "Namespaced"))
    if spec.get("preserveUnknownFields"):
        message = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
        yield invalid("spec.preserveUnknownFields", True, f"{message}spec.versions[*].schema instead")
    yield from _versions_problems(spec.get("versions") or [])
    yield from _conversion_problems(spec.get("conversion") or {})


def _versions_problems(versions: list[Obj]) -> Iterator[Cause]:
    # All missing schemas come first, as in the API server's response.
    for index, version in enumerate(versions):
        if not _schema_of(version):
            yield required(f"spec.versions[{index}].schema.openAPIV3Schema")
    for index, version in enumerate(versions):
        path = f"spec.versions[{index}]"
        name = version.get("name") or ""
        if problems := dns_1035_label(name):
            yield invalid(f"{path}.name", name, ",".join(problems))
        if version.get("deprecationWarning") is not None and not version.get("deprecated"):
            message = "can only be set for deprecated versions"
            yield invalid(f"{path}.deprecationWarning", version["deprecationWarning"], message)
    for part, check in _PARTS.items():
        if versions and all(version.get(part) == versions[0].get(part) for version in versions):
            # What all versions have in common is checked once, under its common name.
            yield from check(versions[0], f"spec.{'validation' if part == 'schema' else part}")
        else:
            for index, version in enumerate(versions):
                yield from check(version, f"spec.versions[{index}].{part}")
    names = [version.get("name") for version in versions]
    if len(set(names)) != len(names):
        yield invalid("spec.versions", versions, "must contain unique version names")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        yield invalid("spec.versions", versions, "must have exactly one version marked as storage version")
    if versions and (problems := dns_1035_label(names[0] or "")):
        yield invalid("spec.version", names[0] or "", ",".join(problems))


def _version_schema_problems(version: Obj, path: str) -> Iterator[Cause]:
    schema = _schema_of(version)
    if schema:
        has_status = (version.get("subresources") or {}).get("status") is not None
        here = f"{path}.openAPIV3Schema"
        problems = schema_problems(schema, here, has_status=has_status)
        yield from problems or rule_problems(schema, here)


def _scale_problems(version: Obj, path: str) -> Iterator[Cause]:
    scale = (version.get("subresources") or {}).get("scale")
    if scale is None:
        return
    # The dot within the field's name, instead of a step of the path, is the API server's wording.
    for field, root in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
        value = scale.get(field) or ""
        where = f"{path}.scale.{field}"
        if not value:
            yield required(where)
        elif not value.startswith("."):
            yield invalid(where, value, "must be a simple json path starting with .")
        elif not value.startswith(root):
            yield invalid(where, value, f"should be a json path under {root[:-1]}")
    selector = scale.get("labelSelectorPath") or ""
    if selector and not selector.startswith((".spec.", ".status.")):
        message = "should be a json path under either .spec or .status"
        yield invalid(f"{path}.scale.labelSelectorPath", selector, message)


def _column_problems(version: Obj, path: str) -> Iterator[Cause]:
    for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
        here = f"{path}[{index}]"
        if not column.get("name"):
            yield required(f"{here}.name")
        kind, form, where = column.get("type") or "", column.get("format") or "", column.get("jsonPath") or ""
        message = f"must be one of {','.join(_COLUMN_TYPES)}"
        if not kind:
            yield required(f"{here}.type", message)
        elif kind not in _COLUMN_TYPES:
            yield invalid(f"{here}.type", kind, message)
        if form and form not in _COLUMN_FORMATS:
            yield invalid(f"{here}.format", form, f"must be one of {','.join(_COLUMN_FORMATS)}")
        if not where:
            yield required(f"{here}.JSONPath")
        elif not where.startswith("."):
            yield invalid(f"{here}.JSONPath", where, "must be a simple json path starting with .")


def _selectable_problems(version: Obj, path: str) -> Iterator[Cause]:
    schema = _schema_of(version)
    shown: set[str] = set()
    for index, field in enumerate(version.get("selectableFields") or ()):
        where = field.get("jsonPath") or ""
        here = f"{path}[{index}].jsonPath"
        if not where:
            yield required(here)
            continue
        target: Any = schema
        for step in where.removeprefix(".").split("."):
            target = (target.get("properties") or {}).get(step) if target else None
        if target is None:
            yield invalid(here, where, "is an invalid path: does not refer to a valid field")
        elif where.startswith(".metadata"):
            yield invalid(here, where, "must not point to fields in metadata")
        elif target.get("type") not in ("string", "boolean", "integer"):
            message = "must point to a field of type string, boolean or integer."
            yield invalid(here, where, f"{message} Enum string fields and strings with formats are allowed.")
        if where in shown:
            yield duplicate(here, where)
        shown.add(where)
    if len(shown) > _MOST_SELECTABLE:
        yield too_many(path, len(shown), _MOST_SELECTABLE)


_PARTS = {
    "schema": _version_schema_problems,
    "subresources": _scale_problems,
    "additionalPrinterColumns": _column_problems,
    "selectableFields": _selectable_problems,
}


def _conversion_problems(conversion: Obj) -> Iterator[Cause]:
    if not conversion:
        return
    strategy = conversion.get("strategy") or ""
    if not strategy:
        yield required("spec.conversion.strategy")
    elif strategy not in ("None", "Webhook"):
        yield not_supported("spec.conversion.strategy", strategy, ("None", "Webhook"))
    webhook = conversion.get("webhook") or {}
    where = "spec.conversion.webhookClientConfig"
    if strategy != "Webhook":
        if webhook:
            yield forbidden(where, "should not be set when strategy is not set to Webhook")
        return
    client = webhook.get("clientConfig")
    if not client:
        yield required(where, "required when strategy is set to Webhook")
    elif bool(client.get("url")) == bool(client.get("service")):
        yield required(where, "exactly one of url or service is required")
    if not webhook.get("conversionReviewVersions"):
        yield required("spec.conversion.conversionReviewVersions")


# --- what a sound definition gives ---------------------------------------------------------------------------------


def kinds_of(crd: Obj) -> tuple[Kind, ...]:
    """The kinds of a sound definition: one for each served version, in the order written."""
    spec = crd["spec"]
    return tuple(_kind(spec, version) for version in spec["versions"] if version.get("served"))


def _kind(spec: Obj, version: Obj) -> Kind:
    names = spec["names"]
    subresources = version.get("subresources") or {}
    scale = subresources.get("scale")
    if scale is not None:
        scale = Scale(scale["specReplicasPath"], scale["statusReplicasPath"], scale.get("labelSelectorPath") or "")
    columns = [
        Column(
            column["name"],
            column["type"],
            column["jsonPath"],
            column.get("description") or "",
            column.get("priority") or 0,
            column.get("format") or "",
        )
        for column in version.get("additionalPrinterColumns") or ()
    ]
    return Kind(
        spec["group"],
        version["name"],
        names["kind"],
        names["plural"],
        spec["scope"] == "Namespaced",
        tuple(names.get("shortNames") or ()),
        tuple(names.get("categories") or ()),
        names.get("singular") or names["kind"].lower(),
        subresources=frozenset(name for name in ("status", "scale") if subresources.get(name) is not None),
        custom=True,
        scale=scale,
        columns=tuple(columns),
        selectable=tuple(field["jsonPath"] for field in version.get("selectableFields") or ()),
        openapi=_schema_of(version),
    )


def accepted(crd: Obj, *, now: str) -> Obj:
    """The status of a valid definition whose names are not taken: accepted and established."""
    spec, status = crd["spec"], crd.get("status") or {}
    storage = next(version["name"] for version in spec["versions"] if version.get("storage"))
    stored = list(status.get("storedVersions") or ())
    since = {c["type"]: c["lastTransitionTime"] for c in status.get("conditions") or () if c.get("status") == "True"}
    return {
        **status,
        "acceptedNames": spec["names"],
        "conditions": [
            {
                "type": type_,
                "status": "True",
                "reason": reason,
                "message": message,
                "lastTransitionTime": since.get(type_, now),
            }
            for type_, reason, message in (
                ("NamesAccepted", "NoConflicts", "no conflicts found"),
                ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
            )
        ],
        "storedVersions": stored if storage in stored else [*stored, storage],
    }
