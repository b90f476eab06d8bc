"""Where a pod may run: node selector, affinity, tolerations, topology spread, scheduling gates."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.kube import names
from shoal.kube.errors import Cause
from shoal.kube.objects import Obj
from shoal.kube.validation.errors import NOT_POSITIVE, duplicate, entries, invalid, not_supported, required
from shoal.kube.validation.selector_rules import label_selector, node_selector, node_selector_term
from shoal.kube.validation.value_rules import choice, named, optional_choice

TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_WEIGHT = "must be in the range 1-100"
_UNSATISFIABLE = ("DoNotSchedule", "ScheduleAnyway")
_INCLUSION = ("Honor", "Ignore")


def affinity(found: Obj, path: str) -> Iterator[Cause]:
    node = found.get("nodeAffinity") or {}
    if node.get(_REQUIRED) is not None:
        yield from node_selector(node[_REQUIRED], f"{path}.nodeAffinity.{_REQUIRED}")
    for i, weighted in enumerate(entries(node.get(_PREFERRED))):
        here = f"{path}.nodeAffinity.{_PREFERRED}[{i}]"
        if not 1 <= (weighted.get("weight") or 0) <= 100:
            yield invalid(f"{here}.weight", weighted.get("weight") or 0, _WEIGHT)
        yield from node_selector_term(weighted.get("preference") or {}, f"{here}.preference", strict=False)
    for name in ("podAffinity", "podAntiAffinity"):
        pods = found.get(name) or {}
        for i, term in enumerate(entries(pods.get(_REQUIRED))):
            yield from _affinity_term(term, f"{path}.{name}.{_REQUIRED}[{i}]")
        for i, weighted in enumerate(entries(pods.get(_PREFERRED))):
            here = f"{path}.{name}.{_PREFERRED}[{i}]"
            if not 1 <= (weighted.get("weight") or 0) <= 100:
                yield invalid(f"{here}.weight", weighted.get("weight") or 0, _WEIGHT)
            yield from _affinity_term(weighted.get("podAffinityTerm") or {}, f"{here}.podAffinityTerm")


def _affinity_term(term: Obj, path: str) -> Iterator[Cause]:
    yield from label_selector(term.get("labelSelector"), f"{path}.labelSelector")
    yield from label_selector(term.get("namespaceSelector"), f"{path}.namespaceSelector")
    for namespace in term.get("namespaces") or ():
        yield from named(names.dns_label, namespace or "", f"{path}.namespace")
    key = term.get("topologyKey") or ""
    if not key:
        yield required(f"{path}.topologyKey", "can not be empty")
    yield from named(names.qualified_name, key, f"{path}.topologyKey")


def tolerations(found: list[Obj], path: str) -> Iterator[Cause]:
    for i, toleration in enumerate(found):
        key, effect = toleration.get("key"), toleration.get("effect")
        if key:
            yield from named(names.qualified_name, key, f"{path}[{i}].key")
        elif toleration.get("operator") != "Exists":
            detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            yield invalid(f"{path}[{i}].operator", toleration.get("operator") or "", detail)
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            yield invalid(f"{path}[{i}].effect", effect or "", detail)
        operator, value = toleration.get("operator") or "Equal", toleration.get("value") or ""
        if operator == "Equal":
            if problems := names.label_value(value):
                yield invalid(f"{path}[{i}].operator", value, ";".join(problems))
        elif operator == "Exists":
            if value:
                yield invalid(f"{path}[{i}].operator", value, "value must be empty when `operator` is 'Exists'")
        else:
            known = ("Equal", "Exists", "Lt", "Gt") if operator in ("Lt", "Gt") else ("Equal", "Exists")
            yield not_supported(f"{path}[{i}].operator", operator, known)
        if effect and effect not in TAINT_EFFECTS:
            yield not_supported(f"{path}[{i}].effect", effect, TAINT_EFFECTS)


def taints(found: list[Obj], path: str) -> Iterator[Cause]:
    seen: set[tuple[str, str]] = set()
    for i, taint in enumerate(found):
        here, key, effect = f"{path}[{i}]", taint.get("key") or "", taint.get("effect") or ""
        yield from named(names.qualified_name, key, f"{here}.key")
        problems = names.label_value(taint.get("value") or "")
        if problems:
            yield invalid(f"{here}.value", taint.get("value") or "", ";".join(problems))
        yield from choice(effect, TAINT_EFFECTS, f"{here}.effect")
        if (key, effect) in seen:
            shown = {"Key": key, "Value": taint.get("value") or "", "Effect": effect, "TimeAdded": None}
            yield duplicate(here, shown, "taints must be unique by key and effect pair")
        seen.add((key, effect))


def spread(constraints: list[Obj], path: str) -> Iterator[Cause]:
    for i, constraint in enumerate(constraints):
        here, key = f"{path}[{i}]", constraint.get("topologyKey") or ""
        when = constraint.get("whenUnsatisfiable") or ""
        if (constraint.get("maxSkew") or 0) <= 0:
            yield invalid(f"{here}.maxSkew", constraint.get("maxSkew") or 0, NOT_POSITIVE)
        if not key:
            yield required(f"{here}.topologyKey", "can not be empty")
        if when not in _UNSATISFIABLE:
            yield not_supported(f"{here}.whenUnsatisfiable", when, _UNSATISFIABLE)
        rest = constraints[i + 1 :]
        if any(key == (c.get("topologyKey") or "") and when == (c.get("whenUnsatisfiable") or "") for c in rest):
            yield duplicate(f"{here}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {when}}}")
        domains = constraint.get("minDomains")
        if domains is not None and domains <= 0:
            yield invalid(f"{here}.minDomains", domains, NOT_POSITIVE)
        if domains is not None and when != "DoNotSchedule":
            detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {when}"
            yield invalid(f"{here}.minDomains", domains, detail)
        for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            yield from optional_choice(constraint.get(field), _INCLUSION, f"{here}.{field}")
        yield from label_selector(constraint.get("labelSelector"), f"{here}.labelSelector")


def scheduling_gates(gates: list[Obj], path: str) -> Iterator[Cause]:
    seen: set[str] = set()
    for i, gate in enumerate(gates):
        name = gate.get("name") or ""
        yield from named(names.qualified_name, name, f"{path}[{i}]")
        if name in seen:
            yield duplicate(f"{path}[{i}]", name)
        seen.add(name)


def readiness_gates(gates: list[Obj], path: str) -> Iterator[Cause]:
    for i, gate in enumerate(gates):
        yield from named(names.qualified_name, gate.get("conditionType") or "", f"{path}[{i}].conditionType")
