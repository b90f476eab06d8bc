"""Selectors written in an object: label selectors, and the node selectors of affinity and volumes."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.kube import names
from shoal.kube.errors import Cause
from shoal.kube.objects import Obj
from shoal.kube.validation.errors import entries, forbidden, invalid, required
from shoal.kube.validation.value_rules import labels, named

_VALUES_NEEDED = "must be specified when `operator` is 'In' or 'NotIn'"
_VALUES_REFUSED = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"


def label_selector(selector: Obj | None, path: str) -> Iterator[Cause]:
    if not selector:
        return
    yield from labels(selector.get("matchLabels"), f"{path}.matchLabels")
    for i, requirement in enumerate(entries(selector.get("matchExpressions"))):
        here = f"{path}.matchExpressions[{i}]"
        yield from _operator(requirement, here, ordered=False)
        yield from named(names.qualified_name, requirement.get("key") or "", f"{here}.key")
        yield from _values(requirement, here)


def node_selector(selector: Obj, path: str) -> Iterator[Cause]:
    terms = entries(selector.get("nodeSelectorTerms"))
    if not terms:
        yield required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")
    for i, term in enumerate(terms):
        yield from node_selector_term(term, f"{path}.nodeSelectorTerms[{i}]", strict=True)


def node_selector_term(term: Obj, path: str, *, strict: bool) -> Iterator[Cause]:
    """`strict` also looks at the values; a mere preference may name labels no node can have."""
    for i, requirement in enumerate(entries(term.get("matchExpressions"))):
        here = f"{path}.matchExpressions[{i}]"
        yield from _operator(requirement, here, ordered=True)
        yield from named(names.qualified_name, requirement.get("key") or "", f"{here}.key")
        if strict:
            yield from _values(requirement, here)
    for i, requirement in enumerate(entries(term.get("matchFields"))):
        yield from _node_field(requirement, f"{path}.matchFields[{i}]")


def shown_term(term: Obj) -> Obj:
    """A node selector term as an API server prints it: its own field names, all of them."""
    return {"MatchExpressions": _shown(term.get("matchExpressions")), "MatchFields": _shown(term.get("matchFields"))}


def _shown(requirements: list[Obj] | None) -> list[Obj] | None:
    if not requirements:
        return None
    return [
        {"Key": found.get("key") or "", "Operator": found.get("operator") or "", "Values": found.get("values")}
        for found in entries(requirements)
    ]


def _operator(requirement: Obj, path: str, *, ordered: bool) -> Iterator[Cause]:
    operator, values = requirement.get("operator") or "", requirement.get("values") or []
    if operator in ("In", "NotIn"):
        if not values:
            yield required(f"{path}.values", _VALUES_NEEDED)
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            yield forbidden(f"{path}.values", _VALUES_REFUSED)
    elif ordered and operator in ("Gt", "Lt"):
        if len(values) != 1:
            yield required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
    else:
        yield invalid(f"{path}.operator", operator, "not a valid selector operator")


def _values(requirement: Obj, path: str) -> Iterator[Cause]:
    for i, value in enumerate(requirement.get("values") or ()):
        yield from named(names.label_value, value or "", f"{path}.values[{i}]")


def _node_field(requirement: Obj, path: str) -> Iterator[Cause]:
    operator, values = requirement.get("operator") or "", requirement.get("values") or []
    if operator not in ("In", "NotIn"):
        yield invalid(f"{path}.operator", operator, "not a valid selector operator")
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield required(f"{path}.values", detail)
    key = requirement.get("key") or ""
    if key != "metadata.name":
        yield invalid(f"{path}.key", key, "not a valid field selector key")
        return
    for i, value in enumerate(values):
        yield from named(names.dns_subdomain, value or "", f"{path}.values[{i}]")
