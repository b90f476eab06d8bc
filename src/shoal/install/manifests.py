"""The operator as objects of a cluster: drawn once, for `shoal install`, the chart and the kustomize base.

In the order in which they are applied: a place, the kinds, who the operator is and what it may do, then the operator
itself and what surrounds it. Every object carries `app.kubernetes.io/part-of: shoal`; that label, not a name, says
whether something is ours to change or to remove.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from shoal import __version__
from shoal.controller_runtime.labels import CLASS_LABEL, INSTANCE, PART_OF, marked
from shoal.controller_runtime.rights import lease_rights, rules
from shoal.dialects import NAMES, UNASKED, load
from shoal.dialects.dialect import Dialect, definitions_of
from shoal.dialects.gang_backends import NAMES as BACKENDS
from shoal.dialects.gang_backends import backend
from shoal.dialects.gang_backends.delegate import handed, has_gangs, without_groups
from shoal.dialects.redaction import without_secrets
from shoal.install.templates import filled
from shoal.kube.kinds import Kind
from shoal.kube.objects import Obj
from shoal.operator.rbac import (
    group_rights,
    job_rights,
    neighbour_rights,
    placing_rights,
    secret_rights,
    webhook_rights,
)
from shoal.scheduler.api import pod_groups
from shoal.scheduler.api.hypernodes import hypernode_definition
from shoal.scheduler.rbac import queue_rights, rival_rights, scheduler_rights

_VARIABLES = "SHOAL_OPERATOR_"
DIALECTS = f"{_VARIABLES}DIALECTS"  # says in a Deployment which languages it serves
METRICS_PORT, HEALTH_PORT, WEBHOOK_PORT = 8080, 8081, 9443
LONGEST_NAME = 53  # a Service has 63 letters, and names are lengthened a little
_USER = 65532  # as the image has it

_SELECTION = {"app.kubernetes.io/name": "shoal-operator", INSTANCE: "${name}"}
_LABELS = {**_SELECTION, PART_OF: "shoal", "app.kubernetes.io/version": __version__}
_SCHEDULER_SELECTION = {**_SELECTION, "app.kubernetes.io/name": "shoal-scheduler"}
_SCHEDULER_LABELS = {**_LABELS, **_SCHEDULER_SELECTION}
SCHEDULERS = f"{PART_OF}=shoal,app.kubernetes.io/name=shoal-scheduler"  # chooses those of all installations
# One for all installations of a namespace: the scheduler of each places pods of the whole cluster, so one may lead.
SCHEDULER_LEASE = "shoal-scheduler"
# There is no public image. The name stands for one in the kustomize base; nothing can be pulled from .invalid.
NO_IMAGE = f"image.invalid/shoal:{__version__}"


@dataclass(frozen=True, slots=True)
class Options:
    """What may be chosen; the fields are the values of the drawing, and of the chart."""

    name: str = "shoal"
    namespace: str = "shoal-system"
    image: str = NO_IMAGE
    replicas: int = 2
    shards: int = 1
    dialects: tuple[str, ...] = field(default=UNASKED)
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
    gangScheduler: str = "shoal"  # noqa: N815 - of gang_schedulers.WISHES; auto is settled before anything is drawn
    gangSchedulerName: str = ""  # noqa: N815
    plainStatus: tuple[str, ...] = ()  # noqa: N815 - dialects whose definition here has no status subresource

    def values(self) -> dict[str, Any]:
        """With those that are other values as text, which an environment is made of."""
        texts = {
            "dialectNames": ",".join(self.dialects),
            "shardCount": str(self.shards),
            "tierNames": ",".join(self.schedulerTiers),
        }
        callers = [{"ipBlock": {"cidr": cidr}} for cidr in self.apiServers]
        return {**asdict(self), **texts, "webhookCallers": callers}


def usual_name(namespace: str = "", job_class: str = "") -> str:
    """Of an installation; what it serves alone is part of it, so that neighbours have Leases of their own."""
    words = re.sub(r"[^a-z0-9]+", "-", "-".join(("shoal", namespace, job_class)).lower())
    return words[:LONGEST_NAME].strip("-")


def definitions(dialects: tuple[str, ...]) -> list[Obj]:
    """The kinds of the job languages and what comes with them, marked as ours."""
    return [marked(each) for name in dialects for each in definitions_of(load(name))]


def scheduler_definitions() -> list[Obj]:
    """The kinds that the scheduler reads, whoever writes them, marked as ours."""
    return [marked(each) for each in (*pod_groups.definitions(), hypernode_definition())]


def render(options: Options) -> list[Obj]:
    """Everything but the kinds, in order."""
    made: list[Obj] = filled(drawing(), options.values())
    return made


def drawing() -> list[Any]:
    return [
        {"$if createNamespace": _namespace()},
        _account(),
        *_job_roles(),
        *_placing_roles(),
        *_own_roles(),
        {"$if webhook": _webhook_roles()},
        {"$if webhook": _secret()},
        _service(),
        _network_policy(),
        _disruption_budget(),
        _deployment(),
        {"$if webhook": _webhooks()},
        {"$if serviceMonitor": _service_monitor()},
        {"$if scheduler": _scheduler()},
    ]


def _object(
    api_version: str,
    kind: str,
    name: str = "${name}",
    *,
    namespaced: bool = True,
    labels: Mapping[str, str] = _LABELS,
    **parts: Any,
) -> Obj:
    place = {"namespace": "${namespace}"} if namespaced else {}
    metadata = {"name": name, **place, "labels": dict(labels)}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **parts}


def _namespace() -> Obj:
    made = _object("v1", "Namespace", "${namespace}", namespaced=False)
    made["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = "restricted"
    return made


# --- who it is, and what it may do ---------------------------------------------------------------------------------


def _account() -> Obj:
    return _object("v1", "ServiceAccount", automountServiceAccountToken=False)  # the Deployment asks for it


def _job_roles() -> list[Any]:
    """In the whole cluster, or in the one namespace that is served."""
    wanted = _job_rules()
    role, binding = _role("ClusterRole", "${name}", wanted), _binding("ClusterRole", "${name}")
    return [
        {"$if not watchNamespace": [role, binding]},
        {
            "$if watchNamespace": [
                _within(_role("Role", "${name}-jobs", wanted)),
                _within(_binding("Role", "${name}-jobs")),
            ]
        },
    ]


def _job_rules() -> list[Any]:
    """Those of every language that is served; a language whose status is a plain field patches the job itself."""
    found: list[Any] = []
    for name in NAMES:
        dialect = load(name)
        secretless = job_rights([without_secrets(without_groups(dialect))])
        keys = [right for right in job_rights([without_groups(dialect)]) if right not in secretless]
        wanted = [*rules(secretless), *([{"$if sshPlugin": rules(keys)}] if keys else []), *_group_rules(dialect)]
        found.append({f"$if dialects={name}": wanted})
        plain = {"apiGroups": [dialect.kind.group], "resources": [dialect.kind.plural], "verbs": ["patch"]}
        found.append({f"$if plainStatus={name}": plain})
    return found


def _group_rules(dialect: Dialect) -> list[Any]:
    """On the objects that stand for gangs, with whoever places these."""
    if not has_gangs(dialect):
        return []
    return [
        {f"$if gangScheduler={name}": rules(group_rights(handed(dialect, backend(name))))}
        for name in BACKENDS
        if backend(name).kind is not None
    ]


def _placing_roles() -> list[Any]:
    """Of schedulers that speak of objects of the whole cluster, also where one namespace is served."""
    found: list[Any] = []
    for name in NAMES:
        dialect, role = load(name), f"${{name}}-{name}-gangs"
        for scheduler in BACKENDS:
            wanted = rules(placing_rights([handed(dialect, backend(scheduler))]))
            if wanted:
                pair = [_role("ClusterRole", role, wanted), _binding("ClusterRole", role)]
                found.append({f"$if dialects={name}": [{f"$if gangScheduler={scheduler}": pair}]})
    return found


def _within(obj: Obj) -> Obj:
    return {**obj, "metadata": {**obj["metadata"], "namespace": "${watchNamespace}"}}


def _own_roles() -> list[Any]:
    leases: list[Any] = rules(lease_rights(["${name}-${shard}"]))
    for rule in leases:
        if "resourceNames" in rule:
            rule["resourceNames"] = [{"$each shard": "${name}-${shard}"}]
    secrets = {"$if webhook": rules(secret_rights("${name}-webhook"))}
    return [_role("Role", "${name}", [*leases, secrets]), _binding("Role", "${name}")]


def _webhook_roles() -> list[Any]:
    among = [{f"$if dialects={name}": wanted} for name in NAMES if (wanted := _neighbour_rules(load(name)))]
    queues = {"$if scheduler": rules(queue_rights(pod_groups.QUEUE))}
    return [
        _role("ClusterRole", "${name}-webhook", [*rules(webhook_rights("${name}")), *among, queues]),
        _binding("ClusterRole", "${name}-webhook"),
    ]


def _neighbour_rules(dialect: Dialect) -> list[Any]:
    """On what new jobs are checked against; queues are those of whoever places the gangs."""
    if not has_gangs(dialect):
        return list(rules(neighbour_rights([dialect])))
    spoken = {name: rules(neighbour_rights([handed(dialect, backend(name))])) for name in BACKENDS}
    return [{f"$if gangScheduler={name}": wanted} for name, wanted in spoken.items() if wanted]


def _role(kind: str, name: str, wanted: list[Any]) -> Obj:
    return _object("rbac.authorization.k8s.io/v1", kind, name, namespaced=kind == "Role", rules=wanted)


def _binding(kind: str, name: str, *, account: str = "${name}") -> Obj:
    return _object(
        "rbac.authorization.k8s.io/v1", f"{kind}Binding", name,
        namespaced=kind == "Role",
        roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
        subjects=[{"kind": "ServiceAccount", "name": account, "namespace": "${namespace}"}],
    )  # fmt: skip


# --- the operator and what surrounds it ----------------------------------------------------------------------------


def _deployment() -> Obj:
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": dict(_SELECTION)},
    }
    pod = {
        "serviceAccountName": "${name}",
        "automountServiceAccountToken": True,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "topologySpreadConstraints": [spread],
        "containers": [_container()],
        "volumes": [{"name": "scratch", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}}],
    }
    template = {"metadata": {"labels": dict(_LABELS)}, "spec": pod}
    spec = {"replicas": "${replicas}", "selector": {"matchLabels": dict(_SELECTION)}, "template": template}
    return _object("apps/v1", "Deployment", spec=spec)


def _container() -> Obj:
    return {
        "name": "operator",
        "image": "${image}",
        "args": ["operator"],
        "env": _environment(),
        "ports": [
            {"name": "metrics", "containerPort": METRICS_PORT},
            {"name": "health", "containerPort": HEALTH_PORT},
            {"$if webhook": {"name": "webhook", "containerPort": WEBHOOK_PORT}},
        ],
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


def _environment() -> list[Any]:
    said = {
        "NAME": "${name}",
        "DIALECTS": "${dialectNames}",
        "NAMESPACE": "${watchNamespace}",
        "CLASS": "${jobClass}",
        "SHARDS": "${shardCount}",
        "METRICS_ADDRESS": f":{METRICS_PORT}",
        "HEALTH_ADDRESS": f":{HEALTH_PORT}",
        "LOG_FORMAT": "${logFormat}",
        "GANG_SCHEDULER": "${gangScheduler}",
        "GANG_SCHEDULER_NAME": "${gangSchedulerName}",
    }
    keeping = {"name": f"{_VARIABLES}SSH_PLUGIN", "value": "true"}
    serving = {"name": f"{_VARIABLES}WEBHOOK_ADDRESS", "value": f":{WEBHOOK_PORT}"}
    return [
        *({"name": f"{_VARIABLES}{key}", "value": value} for key, value in said.items()),
        {"$if sshPlugin": keeping},
        {"$if webhook": serving},
    ]


def _service() -> Obj:
    ports = [
        {"name": "metrics", "port": METRICS_PORT, "targetPort": "metrics"},
        {"$if webhook": {"name": "webhook", "port": 443, "targetPort": "webhook"}},
    ]
    return _object("v1", "Service", spec={"selector": dict(_SELECTION), "ports": ports})


def _network_policy() -> Obj:
    """In: what is served, the webhook to the API server alone where its addresses are known. Out: anything, because
    those addresses often are not."""
    pages = {"ports": [{"port": "metrics", "protocol": "TCP"}, {"port": "health", "protocol": "TCP"}]}
    called = {"ports": [{"port": "webhook", "protocol": "TCP"}], "$if apiServers": {"from": "${webhookCallers}"}}
    ingress = [pages, {"$if webhook": called}]
    spec = {"podSelector": {"matchLabels": dict(_SELECTION)}, "policyTypes": ["Ingress"], "ingress": ingress}
    return _object("networking.k8s.io/v1", "NetworkPolicy", spec=spec)


def _disruption_budget() -> Obj:
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": dict(_SELECTION)}}
    return _object("policy/v1", "PodDisruptionBudget", spec=spec)


def _service_monitor() -> Obj:
    spec = {"selector": {"matchLabels": dict(_SELECTION)}, "endpoints": [{"port": "metrics"}]}
    return _object("monitoring.coreos.com/v1", "ServiceMonitor", spec=spec)


# --- the scheduler -------------------------------------------------------------------------------------------------


def _scheduler() -> list[Any]:
    """An account, rights and processes of its own: it may place and evict pods, and the operator may not."""
    name = "${name}-scheduler"
    wanted = rules([*scheduler_rights(pod_groups.POD_GROUP, pod_groups.QUEUE), *rival_rights([SCHEDULER_LEASE])])
    return [
        _object("v1", "ServiceAccount", name, labels=_SCHEDULER_LABELS, automountServiceAccountToken=False),
        _role("ClusterRole", name, wanted),
        _binding("ClusterRole", name, account=name),
        _role("Role", name, rules(lease_rights([SCHEDULER_LEASE]))),
        _binding("Role", name, account=name),
        *_around_the_scheduler(name),
        _scheduler_deployment(name),
    ]


def _around_the_scheduler(name: str) -> list[Any]:
    """As around the operator, for pods that the operator's objects do not choose."""
    chosen, ports = {"matchLabels": dict(_SCHEDULER_SELECTION)}, ("metrics", "health")
    service = {
        "selector": dict(_SCHEDULER_SELECTION),
        "ports": [{"name": "metrics", "port": METRICS_PORT, "targetPort": "metrics"}],
    }
    within = {
        "podSelector": chosen,
        "policyTypes": ["Ingress"],
        "ingress": [{"ports": [{"port": port, "protocol": "TCP"} for port in ports]}],
    }
    budget = {"maxUnavailable": 1, "selector": chosen}
    monitor = {"selector": chosen, "endpoints": [{"port": "metrics"}]}
    made = [
        ("v1", "Service", service),
        ("networking.k8s.io/v1", "NetworkPolicy", within),
        ("policy/v1", "PodDisruptionBudget", budget),
        ("monitoring.coreos.com/v1", "ServiceMonitor", monitor),
    ]
    *always, watched = (_object(api, kind, name, labels=_SCHEDULER_LABELS, spec=spec) for api, kind, spec in made)
    return [*always, {"$if serviceMonitor": watched}]


def _scheduler_deployment(name: str) -> Obj:
    made = _deployment()
    spec = made["spec"]
    pod = spec["template"]["spec"]
    chosen = {"matchLabels": dict(_SCHEDULER_SELECTION)}
    pod["serviceAccountName"] = name
    pod["topologySpreadConstraints"][0]["labelSelector"] = chosen
    pod["containers"] = [_scheduler_container()]
    spec["selector"] = chosen
    spec["template"]["metadata"] = {"labels": dict(_SCHEDULER_LABELS)}
    return {**made, "metadata": {**made["metadata"], "name": name, "labels": dict(_SCHEDULER_LABELS)}}


def _scheduler_container() -> Obj:
    said = {
        "NAME": SCHEDULER_LEASE,
        "VOLCANO": "${schedulerVolcano}",
        "SHARING": "${schedulerSharing}",
        "TIERS": "${tierNames}",
        "METRICS_ADDRESS": f":{METRICS_PORT}",
        "HEALTH_ADDRESS": f":{HEALTH_PORT}",
        "LOG_FORMAT": "${logFormat}",
    }
    return {
        **_container(),
        "name": "scheduler",
        "args": ["scheduler"],
        "env": [{"name": f"SHOAL_SCHEDULER_{key}", "value": value} for key, value in said.items()],
        "ports": [
            {"name": "metrics", "containerPort": METRICS_PORT},
            {"name": "health", "containerPort": HEALTH_PORT},
        ],
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "2Gi"}},
    }


# --- the webhook ---------------------------------------------------------------------------------------------------


def _secret() -> Obj:
    """Empty: the operator fills it. It is made here so that the operator need not be allowed to make Secrets."""
    return _object("v1", "Secret", "${name}-webhook")


def _webhooks() -> list[Any]:
    api = "admissionregistration.k8s.io/v1"
    mutating = {**_webhook("default", "/mutate"), "reinvocationPolicy": "Never"}
    return [
        _object(api, "MutatingWebhookConfiguration", namespaced=False, webhooks=[mutating]),
        _object(
            api, "ValidatingWebhookConfiguration", namespaced=False,
            webhooks=[_webhook("check", "/validate"), {"$if scheduler": _gang_webhook()}],
        ),
    ]  # fmt: skip


def _gang_webhook() -> Obj:
    """Gangs and queues are the whole cluster's, whatever jobs this installation serves. What becomes of a gang is
    written on it again and again, and is nobody's to check."""
    differs = "has(object.spec) != has(oldObject.spec) || (has(object.spec) && object.spec != oldObject.spec)"
    changes = {"name": "spec-changes", "expression": f"request.operation != 'UPDATE' || {differs}"}
    return {
        **_called("check.gangs", "/validate"),
        "matchConditions": [changes],
        "rules": [
            {**_on(pod_groups.QUEUE, "Cluster"), "operations": ["CREATE", "UPDATE", "DELETE"]},
            {**_on(pod_groups.POD_GROUP, "Namespaced"), "operations": ["CREATE", "UPDATE"]},
        ],
    }


def _called(word: str, path: str) -> Obj:
    service = {"name": "${name}", "namespace": "${namespace}", "path": path, "port": 443}
    return {
        "name": f"{word}.shoal.dev",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": service},
        "failurePolicy": "${failurePolicy}",
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": 5,
    }


def _webhook(word: str, path: str) -> Obj:
    return {
        **_called(f"{word}.jobs", path),
        "rules": [{f"$if dialects={name}": _rule(name)} for name in NAMES],
        "$if watchNamespace": {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "${watchNamespace}"}}
        },
        "objectSelector": {
            "$if jobClass": {"matchLabels": {CLASS_LABEL: "${jobClass}"}},
            "$if not jobClass": {"matchExpressions": [{"key": CLASS_LABEL, "operator": "DoesNotExist"}]},
        },
    }


def _rule(name: str) -> Mapping[str, Any]:
    return {**_on(load(name).kind, "Namespaced"), "operations": ["CREATE", "UPDATE"]}


def _on(kind: Kind, scope: str) -> Obj:
    return {"apiGroups": [kind.group], "apiVersions": [kind.version], "resources": [kind.plural], "scope": scope}
