"""Defaults of ReplicaSet, Deployment and Job."""

from __future__ import annotations

from shoal.kube.defaults.field_access import below, fill, fill_missing
from shoal.kube.defaults.pod_defaults import apply_to_template
from shoal.kube.objects import Obj

_BACKOFF = 6
_NO_BACKOFF = 2**31 - 1  # with a limit per index, the job as a whole has none


def replica_set(obj: Obj) -> None:
    spec = below(obj, "spec")
    fill_missing(spec, "replicas", 1)
    apply_to_template(below(spec, "template"))
    fill_missing(below(obj, "status"), "replicas", 0)


def deployment(obj: Obj) -> None:
    spec = below(obj, "spec")
    fill_missing(spec, "replicas", 1)
    strategy = below(spec, "strategy")
    fill(strategy, "type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        limits = below(strategy, "rollingUpdate")
        fill_missing(limits, "maxUnavailable", "25%")
        fill_missing(limits, "maxSurge", "25%")
    fill_missing(spec, "revisionHistoryLimit", 10)
    fill_missing(spec, "progressDeadlineSeconds", 600)
    apply_to_template(below(spec, "template"))
    below(obj, "status")


def early_replica_set(obj: Obj) -> None:
    """The first version required no selector: the labels of the template are its default."""
    spec = below(obj, "spec")
    labels = (below(spec, "template").get("metadata") or {}).get("labels")
    if labels:
        fill_missing(spec, "selector", {"matchLabels": dict(labels)})
        if not below(obj, "metadata").get("labels"):
            obj["metadata"]["labels"] = dict(labels)
    replica_set(obj)


def job(obj: Obj) -> None:
    spec = below(obj, "spec")
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    fill_missing(spec, "parallelism", 1)
    fill_missing(spec, "backoffLimit", _BACKOFF if spec.get("backoffLimitPerIndex") is None else _NO_BACKOFF)
    fill(spec, "completionMode", "NonIndexed")
    fill_missing(spec, "suspend", False)
    fill_missing(spec, "manualSelector", False)
    policy = spec.get("podFailurePolicy")
    fill(spec, "podReplacementPolicy", "Failed" if policy is not None else "TerminatingOrFailed")
    for rule in (policy or {}).get("rules") or ():
        for pattern in (rule or {}).get("onPodConditions") or ():
            fill(pattern, "status", "True")
    template = below(spec, "template")
    apply_to_template(template)
    labels = (template.get("metadata") or {}).get("labels")
    if labels and not below(obj, "metadata").get("labels"):
        obj["metadata"]["labels"] = dict(labels)
    below(obj, "status")
