"""ReplicaSet, Deployment and Job: counts, selectors that match their templates, and immutable fields."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.kube import names
from shoal.kube.errors import ApiError, Cause
from shoal.kube.kinds import DEPLOYMENT, JOB, REPLICA_SET
from shoal.kube.objects import Obj, at_path
from shoal.kube.selectors import from_label_selector
from shoal.kube.validation import metadata_rules, pod_rules
from shoal.kube.validation.errors import (
    IMMUTABLE,
    NEGATIVE,
    as_json,
    entries,
    forbidden,
    invalid,
    not_supported,
    too_many,
)
from shoal.kube.validation.errors import required as missing
from shoal.kube.validation.selector_rules import label_selector
from shoal.kube.validation.success_policy import success_policy
from shoal.kube.validation.value_rules import at_most_all, figure, labels, named, number_or_percent

_STRATEGIES = ("Recreate", "RollingUpdate")
_MOST_AT_ONCE = 100_000
_MOST_RULES = 20
_COUNTS = (
    "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished",
    "backoffLimitPerIndex", "maxFailedIndexes",
)  # fmt: skip
_FIXED = ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy")
_MODES = ("NonIndexed", "Indexed")
_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS = ("In", "NotIn")
_CONDITION_STATUSES = ("False", "True", "Unknown")
_SELECTOR_MISMATCH = "`selector` does not match template `labels`"


# --- ReplicaSet ----------------------------------------------------------------------------------------------------


def replica_set_on_create(obj: Obj) -> Iterator[Cause]:
    yield from metadata_rules.on_create(REPLICA_SET, obj)
    yield from _replica_set(obj.get("spec") or {})


def replica_set_on_update(new: Obj, old: Obj) -> Iterator[Cause]:
    yield from metadata_rules.on_update(REPLICA_SET, new, old)
    if new.get("spec") == old.get("spec"):
        return
    spec = new.get("spec") or {}
    yield from _replica_set(spec)
    if spec.get("selector") != (old.get("spec") or {}).get("selector"):
        yield invalid("spec.selector", spec.get("selector"), IMMUTABLE)


def _replica_set(spec: Obj) -> Iterator[Cause]:
    yield from _counts(spec, ("replicas", "minReadySeconds"))
    yield from _selector_and_template(spec)


def _selector_and_template(spec: Obj) -> Iterator[Cause]:
    """Selector and template of pods that are replaced when they end."""
    selector, template = spec.get("selector"), spec.get("template") or {}
    if selector is None:
        yield missing("spec.selector")
    else:
        yield from label_selector(selector, "spec.selector")
        if not selector.get("matchLabels") and not selector.get("matchExpressions"):
            yield invalid("spec.selector", selector, "empty selector is invalid for deployment")
    yield from _fits(selector, template)
    yield from _template(template)
    pod = template.get("spec") or {}
    if pod.get("restartPolicy") not in (None, "Always"):
        yield not_supported("spec.template.spec.restartPolicy", pod["restartPolicy"], ["Always"])
    if pod.get("activeDeadlineSeconds") is not None:
        yield forbidden(
            "spec.template.spec.activeDeadlineSeconds", "activeDeadlineSeconds in ReplicaSet is not Supported"
        )


# --- Deployment ----------------------------------------------------------------------------------------------------


def deployment_on_create(obj: Obj) -> Iterator[Cause]:
    yield from metadata_rules.on_create(DEPLOYMENT, obj)
    yield from _deployment(obj.get("spec") or {})


def deployment_on_update(new: Obj, old: Obj) -> Iterator[Cause]:
    yield from metadata_rules.on_update(DEPLOYMENT, new, old)
    if new.get("spec") == old.get("spec"):
        return
    spec = new.get("spec") or {}
    yield from _deployment(spec)
    if spec.get("selector") != (old.get("spec") or {}).get("selector"):
        yield invalid("spec.selector", spec.get("selector"), IMMUTABLE)


def _deployment(spec: Obj) -> Iterator[Cause]:
    yield from _counts(spec, ("replicas",))
    yield from _selector_and_template(spec)
    strategy = spec.get("strategy") or {}
    limits, path = strategy.get("rollingUpdate"), "spec.strategy.rollingUpdate"
    if strategy.get("type") not in _STRATEGIES:
        yield not_supported("spec.strategy", strategy, _STRATEGIES)
    elif strategy["type"] == "Recreate":
        if limits is not None:
            yield forbidden(path, "may not be specified when strategy `type` is 'Recreate'")
    else:
        unavailable, surge = (limits or {}).get("maxUnavailable", 0), (limits or {}).get("maxSurge", 0)
        yield from number_or_percent(unavailable, f"{path}.maxUnavailable")
        yield from number_or_percent(surge, f"{path}.maxSurge")
        if figure(unavailable) == 0 and figure(surge) == 0:
            yield invalid(f"{path}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0")
        yield from at_most_all(unavailable, f"{path}.maxUnavailable")
    yield from _counts(spec, ("minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"))
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= (spec.get("minReadySeconds") or 0):
        yield invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


# --- Job -----------------------------------------------------------------------------------------------------------


def job_on_create(obj: Obj) -> Iterator[Cause]:
    yield from metadata_rules.on_create(JOB, obj)
    yield from _job(obj.get("spec") or {})


def job_on_update(new: Obj, old: Obj) -> Iterator[Cause]:
    yield from metadata_rules.on_update(JOB, new, old)
    if new.get("spec") == old.get("spec"):
        return
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    yield from _job(spec)
    completions, is_indexed = spec.get("completions"), spec.get("completionMode") == "Indexed"
    # An Indexed job is elastic: completions and parallelism change together.
    is_elastic = is_indexed and completions == spec.get("parallelism") and before.get("completions") is not None
    if completions != before.get("completions") and not is_elastic:
        detail = "can only be modified in tandem with spec.parallelism" if is_indexed else IMMUTABLE
        yield invalid("spec.completions", completions, detail)
    if spec.get("selector") != before.get("selector"):
        yield invalid("spec.selector", spec.get("selector"), IMMUTABLE)
    # The template of a job that has been suspended since its creation may still change.
    has_started = not before.get("suspend") or at_path(old, "status", "startTime")
    if has_started and spec.get("template") != before.get("template"):
        yield invalid("spec.template", spec.get("template"), IMMUTABLE)
    for name in _FIXED:
        if spec.get(name) != before.get(name):
            yield invalid(f"spec.{name}", spec.get(name), IMMUTABLE)


def _job(spec: Obj) -> Iterator[Cause]:
    yield from _counts(spec, _COUNTS)
    selector, template = spec.get("selector"), spec.get("template") or {}
    if selector is None:
        yield missing("spec.selector")
    else:
        yield from label_selector(selector, "spec.selector")
    mode = spec.get("completionMode") or "NonIndexed"
    if mode not in _MODES:
        yield not_supported("spec.completionMode", mode, _MODES)
    if mode == "Indexed":
        if spec.get("completions") is None:
            yield missing("spec.completions", "when completion mode is Indexed")
        if (spec.get("parallelism") or 0) > _MOST_AT_ONCE:
            detail = f"must be less than or equal to {_MOST_AT_ONCE} when completion mode is Indexed"
            yield invalid("spec.parallelism", spec["parallelism"], detail)
    yield from _per_index(spec, mode)
    if spec.get("podFailurePolicy") is not None:
        rules = entries(spec["podFailurePolicy"].get("rules"))
        if len(rules) > _MOST_RULES:
            yield too_many("spec.podFailurePolicy.rules", len(rules), _MOST_RULES)
        containers = {str(each.get("name")) for each in entries(at_path(template, "spec", "containers"))}
        for place, rule in enumerate(rules):
            yield from _failure_rule(rule, f"spec.podFailurePolicy.rules[{place}]", containers, spec)
    if selector is not None:
        yield from _fits(selector, template)
    yield from _template(template)
    policy = (template.get("spec") or {}).get("restartPolicy")
    if policy not in ("OnFailure", "Never"):
        yield missing("spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')
    elif policy != "Never" and spec.get("podFailurePolicy") is not None:
        detail = 'only "Never" is supported when podFailurePolicy is specified'
        yield invalid("spec.template.spec.restartPolicy", policy, detail)


def _per_index(spec: Obj, mode: str) -> Iterator[Cause]:
    """Fields that use indexes require indexed completion mode."""
    if mode != "Indexed":
        if spec.get("backoffLimitPerIndex") is not None:
            yield invalid("spec.backoffLimitPerIndex", spec["backoffLimitPerIndex"], "requires indexed completion mode")
        if spec.get("successPolicy") is not None:
            yield invalid("spec.successPolicy", spec["successPolicy"], "requires indexed completion mode")
        if spec.get("maxFailedIndexes") is not None:
            yield invalid("spec.maxFailedIndexes", spec["maxFailedIndexes"], "requires indexed completion mode")
        return
    if spec.get("successPolicy") is not None and spec.get("completions") is not None:
        yield from success_policy(spec["successPolicy"], spec["completions"])
    maximum = spec.get("maxFailedIndexes")
    if maximum is not None:
        if spec.get("backoffLimitPerIndex") is None:
            yield missing("spec.backoffLimitPerIndex", "when maxFailedIndexes is specified")
        if spec.get("completions") is not None and maximum > spec["completions"]:
            yield invalid("spec.maxFailedIndexes", maximum, "must be less than or equal to completions")


def _failure_rule(rule: Obj, path: str, known: set[str], spec: Obj) -> Iterator[Cause]:
    action = rule.get("action") or ""
    if not action:
        yield missing(f"{path}.action", f"valid values: {as_json(list(_ACTIONS))}")
    elif action not in _ACTIONS:
        yield not_supported(f"{path}.action", action, _ACTIONS)
    elif action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
        yield invalid(f"{path}.action", action, "requires the backoffLimitPerIndex to be set")
    codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions")
    if not codes and not conditions:
        yield _causes_of(path, "specifying one of OnExitCodes and OnPodConditions is required")
    if codes and conditions:
        yield _causes_of(path, "specifying both OnExitCodes and OnPodConditions is not supported")
    if codes:
        yield from _exit_codes(codes, f"{path}.onExitCodes", known)
    for place, condition in enumerate(entries(conditions)):
        here, status = f"{path}.onPodConditions[{place}]", condition.get("status") or ""
        yield from named(names.qualified_name, condition.get("type") or "", f"{here}.type")
        if not status:
            yield missing(f"{here}.status", f"valid values: {as_json(list(_CONDITION_STATUSES))}")
        elif status not in _CONDITION_STATUSES:
            yield not_supported(f"{here}.status", status, _CONDITION_STATUSES)


def _causes_of(path: str, detail: str) -> Cause:
    """Without the value, which would be the whole rule."""
    return Cause("FieldValueInvalid", f"Invalid value: {detail}", path)


def _exit_codes(codes: Obj, path: str, known: set[str]) -> Iterator[Cause]:
    operator, values = codes.get("operator") or "", codes.get("values") or []
    if not operator:
        yield missing(f"{path}.operator", f"valid values: {as_json(list(_OPERATORS))}")
    elif operator not in _OPERATORS:
        yield not_supported(f"{path}.operator", operator, _OPERATORS)
    if codes.get("containerName") and codes["containerName"] not in known:
        yield invalid(
            f"{path}.containerName",
            codes["containerName"],
            "must be one of the container or initContainer names in the pod template",
        )
    if not values:
        yield invalid(f"{path}.values", values, "at least one value is required")
    for place, value in enumerate(values):
        if operator == "In" and value == 0:
            yield invalid(f"{path}.values[{place}]", value, "must not be 0 for the In operator")


# --- both ----------------------------------------------------------------------------------------------------------


def _counts(spec: Obj, names: tuple[str, ...]) -> Iterator[Cause]:
    for name in names:
        if (spec.get(name) or 0) < 0:
            yield invalid(f"spec.{name}", spec[name], NEGATIVE)


def _fits(selector: Obj | None, template: Obj) -> Iterator[Cause]:
    template_labels = (template.get("metadata") or {}).get("labels") or {}
    try:
        fits = from_label_selector(selector).matches(template_labels)
    except ApiError:
        return  # an invalid selector is reported elsewhere
    if not fits:
        yield invalid("spec.template.metadata.labels", template_labels or None, _SELECTOR_MISMATCH)


def _template(template: Obj) -> Iterator[Cause]:
    """The pod template, with paths below `spec.template`."""
    meta = template.get("metadata") or {}
    yield from labels(meta.get("labels"), "spec.template.labels")
    for cause in pod_rules.spec_rules(template.get("spec") or {}, ""):
        yield Cause(cause.reason, cause.message, f"spec.template.{cause.field}")
