"""The configurations of the admission webhook: jobs are defaulted and checked, PodGroups and queues checked."""

from __future__ import annotations

from shoal.controller_runtime.labels import CLASS_LABEL
from shoal.dialects import NAMES, load
from shoal.install.options import InstallOptions, build_object
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj
from shoal.scheduler.api import pod_groups


def webhook_configurations(options: InstallOptions) -> list[Obj]:
    api_version = "admissionregistration.k8s.io/v1"
    mutating = {**job_webhook(options, "default", "/mutate"), "reinvocationPolicy": "Never"}
    validating = [job_webhook(options, "check", "/validate")]
    if options.scheduler:
        validating.append(gang_webhook(options))
    return [
        build_object(options, api_version, "MutatingWebhookConfiguration", namespaced=False, webhooks=[mutating]),
        build_object(options, api_version, "ValidatingWebhookConfiguration", namespaced=False, webhooks=validating),
    ]


def job_webhook(options: InstallOptions, word: str, path: str) -> Obj:
    kinds = [load(name).kind for name in NAMES if name in options.dialects]
    made = {
        **_webhook(options, f"{word}.jobs", path),
        "rules": [{**_on(kind, "Namespaced"), "operations": ["CREATE", "UPDATE"]} for kind in kinds],
    }
    if options.watchNamespace:
        made["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": options.watchNamespace}}
    if options.jobClass:
        made["objectSelector"] = {"matchLabels": {CLASS_LABEL: options.jobClass}}
    else:
        made["objectSelector"] = {"matchExpressions": [{"key": CLASS_LABEL, "operator": "DoesNotExist"}]}
    return made


def gang_webhook(options: InstallOptions) -> Obj:
    """PodGroups and queues of the whole cluster, whatever jobs this installation serves. Their status is not
    checked."""
    differs = "has(object.spec) != has(oldObject.spec) || (has(object.spec) && object.spec != oldObject.spec)"
    changes = {"name": "spec-changes", "expression": f"request.operation != 'UPDATE' || {differs}"}
    return {
        **_webhook(options, "check.gangs", "/validate"),
        "matchConditions": [changes],
        "rules": [
            {**_on(pod_groups.QUEUE, "Cluster"), "operations": ["CREATE", "UPDATE", "DELETE"]},
            {**_on(pod_groups.POD_GROUP, "Namespaced"), "operations": ["CREATE", "UPDATE"]},
        ],
    }


def _webhook(options: InstallOptions, word: str, path: str) -> Obj:
    service = {"name": options.name, "namespace": options.namespace, "path": path, "port": 443}
    return {
        "name": f"{word}.shoal.dev",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": service},
        "failurePolicy": options.failurePolicy,
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": 5,
    }


def _on(kind: Kind, scope: str) -> Obj:
    return {"apiGroups": [kind.group], "apiVersions": [kind.version], "resources": [kind.plural], "scope": scope}
