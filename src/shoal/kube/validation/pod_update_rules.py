"""What may change in a pod once it exists: little in its spec, and its status only forwards.

The fields that may change are put back to what they were in a shallow copy; if the copy then
differs from the stored spec, something else was changed too. A pod held back by scheduling gates may also
become choosier about its nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shoal.kube import names
from shoal.kube.errors import Cause
from shoal.kube.kinds import POD
from shoal.kube.objects import Obj
from shoal.kube.validation import metadata_rules, pod_rules, scheduling_rules
from shoal.kube.validation.errors import IMMUTABLE, entries, forbidden, invalid, not_supported, required
from shoal.kube.validation.selector_rules import shown_term
from shoal.kube.validation.value_rules import address, named, parsed_address

_MAY_CHANGE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_LARGEST_SECONDS = 2**31 - 1
_SYSTEM_CONDITIONS = ("PodScheduled", "Ready", "Initialized")
_REQUIRED_AFFINITY = "requiredDuringSchedulingIgnoredDuringExecution"


def on_update(new: Obj, old: Obj) -> Iterator[Cause]:
    yield from metadata_rules.on_update(POD, new, old)
    yield from pod_rules.known_annotations(new)
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    if spec == before:
        return
    yield from pod_rules.spec_rules(spec, (new.get("metadata") or {}).get("name") or "")
    for field in ("containers", "initContainers"):
        if len(spec.get(field) or ()) != len(before.get(field) or ()):
            yield forbidden(f"spec.{field}", "pod updates may not add or remove containers")
            return
    deadline, old_deadline = spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
    path = "spec.activeDeadlineSeconds"
    if deadline is None:
        if old_deadline is not None:
            yield invalid(path, None, "must not update from a positive integer to nil value")
    elif not 0 <= deadline <= _LARGEST_SECONDS:
        yield invalid(path, deadline, f"must be between 0 and {_LARGEST_SECONDS}, inclusive")
        return
    elif old_deadline is not None and old_deadline < deadline:
        yield invalid(path, deadline, "must be less than or equal to previous value")
        return
    tolerations = entries(spec.get("tolerations"))
    kept = [_without_empty(toleration) for toleration in tolerations]
    if any(_without_empty(toleration) not in kept for toleration in entries(before.get("tolerations"))):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        yield forbidden("spec.tolerations", detail)
    else:
        yield from scheduling_rules.tolerations(tolerations, "spec.tolerations")
    gates = {gate.get("name") for gate in entries(before.get("schedulingGates"))}
    for i, gate in enumerate(entries(spec.get("schedulingGates"))):
        if gate.get("name") not in gates:
            detail = f"only deletion is allowed, but found new scheduling gate '{gate.get('name') or ''}'"
            yield forbidden(f"spec.schedulingGates[{i}].name", detail)
    yield from _rest(spec, before)


def _without_empty(toleration: Obj) -> Obj:
    return {name: value for name, value in toleration.items() if value and name != "tolerationSeconds"}


def _rest(spec: Obj, before: Obj) -> Iterator[Cause]:
    # Fields with rules of their own are reset, so any remaining difference is a change that is not allowed.
    masked = dict(spec)
    for field in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        masked[field] = before.get(field)
    for field in ("containers", "initContainers"):
        pairs = zip(entries(spec.get(field)), entries(before.get(field)), strict=True)
        # The number of containers is the same: it was compared before.
        masked[field] = [{**container, "image": old_value.get("image")} for container, old_value in pairs]
    if (before.get("terminationGracePeriodSeconds") or 0) < 0 and spec.get("terminationGracePeriodSeconds") == 1:
        masked["terminationGracePeriodSeconds"] = before["terminationGracePeriodSeconds"]
    if before.get("schedulingGates"):
        yield from _narrows_affinity(masked, before)
    if not same(masked, before):
        yield forbidden("spec", f"pod updates may not change fields other than {_MAY_CHANGE}")


def _narrows_affinity(masked: Obj, before: Obj) -> Iterator[Cause]:
    """Node selector and node affinity of a gated pod may only become narrower."""
    selector, old_selector = masked.get("nodeSelector") or {}, before.get("nodeSelector") or {}
    if any(selector.get(key) != value for key, value in old_selector.items()):
        detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        yield invalid("spec.nodeSelector", selector, detail)
    masked["nodeSelector"] = before.get("nodeSelector")
    affinity, old_affinity = masked.get("affinity") or {}, before.get("affinity") or {}
    old_node = old_affinity.get("nodeAffinity")
    yield from _node_affinity(affinity.get("nodeAffinity") or {}, old_node or {})
    masked["affinity"] = {**affinity, "nodeAffinity": old_node}


def _node_affinity(new: Obj, old: Obj) -> Iterator[Cause]:
    path = f"spec.affinity.nodeAffinity.{_REQUIRED_AFFINITY}.nodeSelectorTerms"
    old_terms = entries((old.get(_REQUIRED_AFFINITY) or {}).get("nodeSelectorTerms"))
    new_terms = entries((new.get(_REQUIRED_AFFINITY) or {}).get("nodeSelectorTerms"))
    if old_terms and len(old_terms) != len(new_terms):
        listed = [shown_term(term) for term in new_terms] or None
        yield invalid(path, listed, "no additions/deletions to non-empty NodeSelectorTerms list are allowed")
        return
    for i, (term, old_value) in enumerate(zip(new_terms, old_terms, strict=False)):
        pairs = [(term.get(field) or [], old_value.get(field) or []) for field in ("matchExpressions", "matchFields")]
        # An empty term matches no node, so a requirement added to it would widen the selector.
        was_empty = not any(kept for _, kept in pairs)
        if any(now if was_empty else now[: len(kept)] != kept for now, kept in pairs):
            yield invalid(f"{path}[{i}]", shown_term(term), "only additions are allowed (no mutations or deletions)")


def same(one: Any, other: Any) -> bool:
    """Equal, where a missing field, a null and an empty list or map are one thing."""
    return bool(one == other or _compact(one) == _compact(other))


def _compact(value: Any) -> Any:
    if isinstance(value, dict):
        inner = ((name, _compact(item)) for name, item in value.items())
        return {name: item for name, item in inner if item is not None and item != {} and item != []}
    if isinstance(value, list):
        return [_compact(item) for item in value]
    return value


def on_status(new: Obj, old: Obj) -> Iterator[Cause]:
    yield from metadata_rules.on_update(POD, new, old)
    status, before = new.get("status") or {}, old.get("status") or {}
    for i, condition in enumerate(entries(status.get("conditions"))):
        if condition.get("type") not in _SYSTEM_CONDITIONS:
            yield from named(names.qualified_name, condition.get("type") or "", f"status.conditions[{i}].Type")
    node = status.get("nominatedNodeName")
    if node and node != before.get("nominatedNodeName"):
        yield from named(names.dns_subdomain, node, "status.nominatedNodeName")
        if (old.get("spec") or {}).get("nodeName"):
            yield forbidden("status.nominatedNodeName", "may not be set on pods that are already bound to a node")
    if status.get("qosClass") != before.get("qosClass") and before.get("qosClass"):
        yield invalid("status.qosClass", status.get("qosClass") or "", IMMUTABLE)
    yield from _transitions(status, before, old.get("spec") or {})
    for field in ("podIPs", "hostIPs"):
        yield from _addresses(status, before, field)


def _transitions(status: Obj, before: Obj, spec: Obj) -> Iterator[Cause]:
    """A container that ended for good stays ended."""
    for field, listed in (("containerStatuses", "containers"), ("initContainerStatuses", "initContainers")):
        now = {entry.get("name"): entry for entry in entries(status.get(field))}
        for i, old_value in enumerate(entries(before.get(field))):
            ended = (old_value.get("state") or {}).get("terminated")
            entry = now.get(old_value.get("name"))
            if ended is None or entry is None or (entry.get("state") or {}).get("terminated") is not None:
                continue
            if not _may_restart(old_value.get("name"), ended.get("exitCode") or 0, entries(spec.get(listed)), spec):
                yield forbidden(f"status.{field}[{i}].state", "may not be transitioned to non-terminated state")


def _may_restart(name: Any, exit_code: int, containers: list[Obj], spec: Obj) -> bool:
    container = next((c for c in containers if c.get("name") == name), None)
    if container is None:
        return False
    for rule in entries(container.get("restartPolicyRules")):
        codes = rule.get("exitCodes") or {}
        if (exit_code in (codes.get("values") or ())) is (codes.get("operator") == "In"):
            return True
    policy = container.get("restartPolicy") or spec.get("restartPolicy")
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def _addresses(status: Obj, before: Obj, field: str) -> Iterator[Cause]:
    path, found = f"status.{field}", [entry.get("ip") or "" for entry in entries(status.get(field))]
    if not found:
        return
    if field == "hostIPs" and (status.get("hostIP") or "") != found[0]:
        yield invalid(f"{path}[0].ip", found[0], "must be equal to `hostIP`")
    known = [entry.get("ip") or "" for entry in entries(before.get(field))]
    for i, ip in enumerate(found):
        yield from address(ip, f"{path}[{i}]", known)
    families = {parsed.version for ip in found if (parsed := parsed_address(ip)) is not None}
    if len(found) > 2 or (len(found) == 2 and len(families) < 2):
        listed = [{"IP": ip} for ip in found]
        yield invalid(path, listed, "may specify no more than one IP for each IP family")


def binding(obj: Obj) -> Iterator[Cause]:
    """A Binding: the node a pod is placed on."""
    target = obj.get("target") or {}
    if target.get("kind") and target["kind"] != "Node":
        yield not_supported("target.kind", target["kind"], ("Node", "<empty>"))
    if not target.get("name"):
        yield required("target.name")
