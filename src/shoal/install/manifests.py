"""The operator as objects of a cluster: what `shoal install` applies and the kustomize base contains.

In the order in which they are applied: namespace, accounts and rights, then the operator and what surrounds it. Every
object carries `app.kubernetes.io/part-of: shoal`; that label, not a name, decides whether an object is ours to change
or to remove.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from shoal import __version__
from shoal.controller_runtime.labels import CLASS_LABEL, INSTANCE, PART_OF, with_install_labels
from shoal.controller_runtime.rights import lease_permissions, policy_rules
from shoal.dialects import DEFAULT, NAMES, load
from shoal.dialects.dialect import definitions_of
from shoal.dialects.gang_backends import backend
from shoal.dialects.gang_backends.delegate import has_gangs, with_backend, without_groups
from shoal.dialects.redaction import without_secrets
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj
from shoal.operator.rbac import (
    group_rights,
    job_rights,
    placing_rights,
    secret_rights,
    validation_rights,
    webhook_rights,
)
from shoal.scheduler.api import pod_groups
from shoal.scheduler.api.hypernodes import hypernode_definition
from shoal.scheduler.rbac import conflict_rights, queue_rights, scheduler_rights

_VARIABLES = "SHOAL_OPERATOR_"
DIALECTS = f"{_VARIABLES}DIALECTS"  # in a Deployment: which dialects it serves
METRICS_PORT, HEALTH_PORT, WEBHOOK_PORT = 8080, 8081, 9443
LONGEST_NAME = 53  # a Service has 63 letters, and names are lengthened a little
_USER = 65532  # as the image has it

SCHEDULERS = f"{PART_OF}=shoal,app.kubernetes.io/name=shoal-scheduler"  # chooses those of all installations
# One for all installations of a namespace: the scheduler of each places pods of the whole cluster, so one may lead.
SCHEDULER_LEASE = "shoal-scheduler"
# There is no public image. The name is a placeholder in the kustomize base; nothing can be pulled from .invalid.
NO_IMAGE = f"image.invalid/shoal:{__version__}"


@dataclass(frozen=True, slots=True)
class InstallOptions:
    """What may be chosen. The fields have the names of the chart's values."""

    name: str = "shoal"
    namespace: str = "shoal-system"
    image: str = NO_IMAGE
    replicas: int = 2
    shards: int = 1
    dialects: tuple[str, ...] = field(default=DEFAULT)
    watchNamespace: str = ""  # noqa: N815 - the chart's spelling; '': all namespaces
    jobClass: str = ""  # noqa: N815
    webhook: bool = False
    failurePolicy: str = "Ignore"  # noqa: N815
    apiServers: tuple[str, ...] = ()  # noqa: N815 - ranges of addresses from which it calls the webhook; (): any
    sshPlugin: bool = False  # noqa: N815 - of Volcano Jobs, whose keys are in Secrets
    serviceMonitor: bool = False  # noqa: N815
    scheduler: bool = False  # Shoal's own, beside the operator
    schedulerSharing: str = "proportion"  # noqa: N815
    schedulerTiers: tuple[str, ...] = ()  # noqa: N815 - labels of nodes, the nearest first
    schedulerVolcano: str = "auto"  # noqa: N815 - whether it answers for Volcano's scheduler
    logFormat: str = "json"  # noqa: N815
    createNamespace: bool = True  # noqa: N815
    gangScheduler: str = "shoal"  # noqa: N815 - of gang_schedulers.WISHES; auto is resolved before anything is built
    gangSchedulerName: str = ""  # noqa: N815
    plainStatus: tuple[str, ...] = ()  # noqa: N815 - dialects whose definition here has no status subresource

    @property
    def selection(self) -> dict[str, str]:
        """Labels of the operator's pods."""
        return {"app.kubernetes.io/name": "shoal-operator", INSTANCE: self.name}

    @property
    def scheduler_selection(self) -> dict[str, str]:
        return {**self.selection, "app.kubernetes.io/name": "shoal-scheduler"}


def _labels(selection: Mapping[str, str]) -> dict[str, str]:
    return {**selection, PART_OF: "shoal", "app.kubernetes.io/version": __version__}


def default_name(namespace: str = "", job_class: str = "") -> str:
    """Of an installation; what it alone serves is included, so that neighbours have Leases of their own."""
    words = re.sub(r"[^a-z0-9]+", "-", "-".join(("shoal", namespace, job_class)).lower())
    return words[:LONGEST_NAME].strip("-")


def definitions(dialects: tuple[str, ...]) -> list[Obj]:
    """The kinds of the dialects and those that belong to them, marked as ours."""
    return [with_install_labels(each) for name in dialects for each in definitions_of(load(name))]


def scheduler_definitions() -> list[Obj]:
    """The kinds that the scheduler reads, whichever component writes them, marked as ours."""
    return [with_install_labels(each) for each in (*pod_groups.definitions(), hypernode_definition())]


def render(options: InstallOptions) -> list[Obj]:
    """Everything but the CRDs, in order."""
    return list(_objects(options))


def _objects(options: InstallOptions) -> Iterator[Obj]:
    if options.createNamespace:
        yield _namespace(options)
    yield _object(options, "v1", "ServiceAccount", automountServiceAccountToken=False)  # the Deployment requests it
    yield from _job_roles(options)
    yield from _placing_roles(options)
    yield from _own_roles(options)
    if options.webhook:
        yield from _webhook_roles(options)
        # Empty: the operator fills it. It is made here so that the operator needs no right to create Secrets.
        yield _object(options, "v1", "Secret", f"{options.name}-webhook")
    yield _service(options)
    yield _network_policy(options)
    yield _disruption_budget(options)
    yield _deployment(options)
    if options.webhook:
        yield from _webhooks(options)
    if options.serviceMonitor:
        yield _service_monitor(options)
    if options.scheduler:
        yield from _scheduler(options)


def _object(
    options: InstallOptions,
    api_version: str,
    kind: str,
    name: str = "",
    *,
    namespaced: bool = True,
    labels: Mapping[str, str] | None = None,
    **parts: Any,
) -> Obj:
    place = {"namespace": options.namespace} if namespaced else {}
    metadata = {"name": name or options.name, **place, "labels": dict(labels or _labels(options.selection))}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **parts}


def _namespace(options: InstallOptions) -> Obj:
    made = _object(options, "v1", "Namespace", options.namespace, namespaced=False)
    made["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = "restricted"
    return made


# --- accounts and rights -------------------------------------------------------------------------------------------


def _job_roles(options: InstallOptions) -> list[Obj]:
    """In the whole cluster, or in the one namespace that is served."""
    wanted = _job_rules(options)
    if not options.watchNamespace:
        return [_role(options, "ClusterRole", options.name, wanted), _binding(options, "ClusterRole", options.name)]
    name = f"{options.name}-jobs"
    pair = [_role(options, "Role", name, wanted), _binding(options, "Role", name)]
    for obj in pair:
        obj["metadata"]["namespace"] = options.watchNamespace
    return pair


def _job_rules(options: InstallOptions) -> list[Obj]:
    """Those of every language that is served; a language whose status is a plain field patches the job itself."""
    found: list[Obj] = []
    for name in NAMES:
        dialect = load(name)
        if name in options.dialects:
            secretless = job_rights([without_secrets(without_groups(dialect))])
            found += policy_rules(secretless)
            if options.sshPlugin:
                found += policy_rules(
                    [right for right in job_rights([without_groups(dialect)]) if right not in secretless]
                )
            if has_gangs(dialect) and backend(options.gangScheduler).kind is not None:
                found += policy_rules(group_rights(with_backend(dialect, backend(options.gangScheduler))))
        if name in options.plainStatus:
            found.append({"apiGroups": [dialect.kind.group], "resources": [dialect.kind.plural], "verbs": ["patch"]})
    return found


def _placing_roles(options: InstallOptions) -> Iterator[Obj]:
    """Roles for the cluster-scoped objects of gang schedulers, also where one namespace is served."""
    for name in NAMES:
        wanted = policy_rules(placing_rights([with_backend(load(name), backend(options.gangScheduler))]))
        if wanted and name in options.dialects:
            role = f"{options.name}-{name}-gangs"
            yield _role(options, "ClusterRole", role, wanted)
            yield _binding(options, "ClusterRole", role)


def _own_roles(options: InstallOptions) -> list[Obj]:
    wanted = policy_rules(lease_permissions([f"{options.name}-{shard}" for shard in range(options.shards)]))
    if options.webhook:
        wanted += policy_rules(secret_rights(f"{options.name}-webhook"))
    return [_role(options, "Role", options.name, wanted), _binding(options, "Role", options.name)]


def _webhook_roles(options: InstallOptions) -> list[Obj]:
    name, wanted = f"{options.name}-webhook", list(policy_rules(webhook_rights(options.name)))
    for dialect in (load(each) for each in NAMES if each in options.dialects):
        # What new jobs are checked against; queues are those of the scheduler that places the gangs.
        checked = with_backend(dialect, backend(options.gangScheduler)) if has_gangs(dialect) else dialect
        wanted += policy_rules(validation_rights([checked]))
    if options.scheduler:
        wanted += policy_rules(queue_rights(pod_groups.QUEUE))
    return [_role(options, "ClusterRole", name, wanted), _binding(options, "ClusterRole", name)]


def _role(options: InstallOptions, kind: str, name: str, wanted: list[Obj]) -> Obj:
    api_version = "rbac.authorization.k8s.io/v1"
    return _object(options, api_version, kind, name, namespaced=kind == "Role", rules=list(wanted))


def _binding(options: InstallOptions, kind: str, name: str, *, account: str = "") -> Obj:
    return _object(
        options, "rbac.authorization.k8s.io/v1", f"{kind}Binding", name,
        namespaced=kind == "Role",
        roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
        subjects=[{"kind": "ServiceAccount", "name": account or options.name, "namespace": options.namespace}],
    )  # fmt: skip


# --- the operator and what surrounds it ----------------------------------------------------------------------------


def _deployment(options: InstallOptions) -> Obj:
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": options.selection},
    }
    pod = {
        "serviceAccountName": options.name,
        "automountServiceAccountToken": True,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "topologySpreadConstraints": [spread],
        "containers": [_container(options)],
        "volumes": [{"name": "scratch", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}}],
    }
    template = {"metadata": {"labels": _labels(options.selection)}, "spec": pod}
    spec = {"replicas": options.replicas, "selector": {"matchLabels": options.selection}, "template": template}
    return _object(options, "apps/v1", "Deployment", spec=spec)


def _container(options: InstallOptions) -> Obj:
    ports = [
        {"name": "metrics", "containerPort": METRICS_PORT},
        {"name": "health", "containerPort": HEALTH_PORT},
    ]
    if options.webhook:
        ports.append({"name": "webhook", "containerPort": WEBHOOK_PORT})
    return {
        "name": "operator",
        "image": options.image,
        "args": ["operator"],
        "env": _environment(options),
        "ports": ports,
        "livenessProbe": {
            "httpGet": {"path": "/healthz", "port": "health"},
            "periodSeconds": 20,
            "failureThreshold": 3,
        },
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "health"}, "periodSeconds": 5},
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "scratch", "mountPath": "/tmp"}],  # noqa: S108 - of the container
    }


def _environment(options: InstallOptions) -> list[Obj]:
    variables = {
        "NAME": options.name,
        "DIALECTS": ",".join(options.dialects),
        "NAMESPACE": options.watchNamespace,
        "CLASS": options.jobClass,
        "SHARDS": str(options.shards),
        "METRICS_ADDRESS": f":{METRICS_PORT}",
        "HEALTH_ADDRESS": f":{HEALTH_PORT}",
        "LOG_FORMAT": options.logFormat,
        "GANG_SCHEDULER": options.gangScheduler,
        "GANG_SCHEDULER_NAME": options.gangSchedulerName,
    }
    if options.sshPlugin:
        variables["SSH_PLUGIN"] = "true"
    if options.webhook:
        variables["WEBHOOK_ADDRESS"] = f":{WEBHOOK_PORT}"
    return [{"name": f"{_VARIABLES}{key}", "value": value} for key, value in variables.items()]


def _service(options: InstallOptions) -> Obj:
    ports: list[Obj] = [{"name": "metrics", "port": METRICS_PORT, "targetPort": "metrics"}]
    if options.webhook:
        ports.append({"name": "webhook", "port": 443, "targetPort": "webhook"})
    return _object(options, "v1", "Service", spec={"selector": options.selection, "ports": ports})


def _network_policy(options: InstallOptions) -> Obj:
    """In: what is served, the webhook to the API server alone where its addresses are known. Out: anything, because
    those addresses often are not."""
    pages = {"ports": [{"port": "metrics", "protocol": "TCP"}, {"port": "health", "protocol": "TCP"}]}
    ingress: list[Obj] = [pages]
    if options.webhook:
        called: Obj = {"ports": [{"port": "webhook", "protocol": "TCP"}]}
        if options.apiServers:
            called["from"] = [{"ipBlock": {"cidr": cidr}} for cidr in options.apiServers]
        ingress.append(called)
    spec = {"podSelector": {"matchLabels": options.selection}, "policyTypes": ["Ingress"], "ingress": ingress}
    return _object(options, "networking.k8s.io/v1", "NetworkPolicy", spec=spec)


def _disruption_budget(options: InstallOptions) -> Obj:
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": options.selection}}
    return _object(options, "policy/v1", "PodDisruptionBudget", spec=spec)


def _service_monitor(options: InstallOptions) -> Obj:
    spec = {"selector": {"matchLabels": options.selection}, "endpoints": [{"port": "metrics"}]}
    return _object(options, "monitoring.coreos.com/v1", "ServiceMonitor", spec=spec)


# --- the scheduler -------------------------------------------------------------------------------------------------


def _scheduler(options: InstallOptions) -> Iterator[Obj]:
    """An account, rights and processes of its own: it may place and evict pods, and the operator may not."""
    name, labels = f"{options.name}-scheduler", _labels(options.scheduler_selection)
    wanted = policy_rules(
        [*scheduler_rights(pod_groups.POD_GROUP, pod_groups.QUEUE), *conflict_rights([SCHEDULER_LEASE])]
    )
    yield _object(options, "v1", "ServiceAccount", name, labels=labels, automountServiceAccountToken=False)
    yield _role(options, "ClusterRole", name, wanted)
    yield _binding(options, "ClusterRole", name, account=name)
    yield _role(options, "Role", name, policy_rules(lease_permissions([SCHEDULER_LEASE])))
    yield _binding(options, "Role", name, account=name)
    yield from _scheduler_extras(options)
    yield _scheduler_deployment(options, name)


def _scheduler_extras(options: InstallOptions) -> Iterator[Obj]:
    """As around the operator, for pods that the operator's objects do not select."""
    selector, ports = {"matchLabels": options.scheduler_selection}, ("metrics", "health")
    service = {
        "selector": options.scheduler_selection,
        "ports": [{"name": "metrics", "port": METRICS_PORT, "targetPort": "metrics"}],
    }
    policy = {
        "podSelector": selector,
        "policyTypes": ["Ingress"],
        "ingress": [{"ports": [{"port": port, "protocol": "TCP"} for port in ports]}],
    }
    made = [
        ("v1", "Service", service),
        ("networking.k8s.io/v1", "NetworkPolicy", policy),
        ("policy/v1", "PodDisruptionBudget", {"maxUnavailable": 1, "selector": selector}),
    ]
    if options.serviceMonitor:
        monitor = {"selector": selector, "endpoints": [{"port": "metrics"}]}
        made.append(("monitoring.coreos.com/v1", "ServiceMonitor", monitor))
    name, labels = f"{options.name}-scheduler", _labels(options.scheduler_selection)
    for api_version, kind, spec in made:
        yield _object(options, api_version, kind, name, labels=labels, spec=spec)


def _scheduler_deployment(options: InstallOptions, name: str) -> Obj:
    made, labels = _deployment(options), _labels(options.scheduler_selection)
    spec, selector = made["spec"], {"matchLabels": options.scheduler_selection}
    pod = spec["template"]["spec"]
    pod["serviceAccountName"] = name
    pod["topologySpreadConstraints"][0]["labelSelector"] = selector
    pod["containers"] = [_scheduler_container(options)]
    spec["selector"] = selector
    spec["template"]["metadata"] = {"labels": labels}
    return {**made, "metadata": {**made["metadata"], "name": name, "labels": labels}}


def _scheduler_container(options: InstallOptions) -> Obj:
    variables = {
        "NAME": SCHEDULER_LEASE,
        "VOLCANO": options.schedulerVolcano,
        "SHARING": options.schedulerSharing,
        "TIERS": ",".join(options.schedulerTiers),
        "METRICS_ADDRESS": f":{METRICS_PORT}",
        "HEALTH_ADDRESS": f":{HEALTH_PORT}",
        "LOG_FORMAT": options.logFormat,
    }
    return {
        **_container(options),
        "name": "scheduler",
        "args": ["scheduler"],
        "env": [{"name": f"SHOAL_SCHEDULER_{key}", "value": value} for key, value in variables.items()],
        "ports": [
            {"name": "metrics", "containerPort": METRICS_PORT},
            {"name": "health", "containerPort": HEALTH_PORT},
        ],
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "2Gi"}},
    }


# --- the webhook ---------------------------------------------------------------------------------------------------


def _webhooks(options: InstallOptions) -> list[Obj]:
    api_version = "admissionregistration.k8s.io/v1"
    mutating = {**_job_webhook(options, "default", "/mutate"), "reinvocationPolicy": "Never"}
    validating = [_job_webhook(options, "check", "/validate")]
    if options.scheduler:
        validating.append(_gang_webhook(options))
    return [
        _object(options, api_version, "MutatingWebhookConfiguration", namespaced=False, webhooks=[mutating]),
        _object(options, api_version, "ValidatingWebhookConfiguration", namespaced=False, webhooks=validating),
    ]


def _gang_webhook(options: InstallOptions) -> Obj:
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


def _job_webhook(options: InstallOptions, word: str, path: str) -> Obj:
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


def _on(kind: Kind, scope: str) -> Obj:
    return {"apiGroups": [kind.group], "apiVersions": [kind.version], "resources": [kind.plural], "scope": scope}
