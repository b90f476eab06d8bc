"""The operator's Deployment, and what surrounds it: Service, NetworkPolicy, PodDisruptionBudget, ServiceMonitor."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.install.options import (
    HEALTH_PORT,
    METRICS_PORT,
    WEBHOOK_PORT,
    InstallOptions,
    build_object,
    labels_of,
)
from shoal.kube.objects import Obj

_VARIABLES = "SHOAL_OPERATOR_"
DIALECTS = f"{_VARIABLES}DIALECTS"  # in a Deployment: which dialects it serves
_USER = 65532  # as the image has it


def operator_workload(options: InstallOptions) -> Iterator[Obj]:
    selector = {"matchLabels": options.selection}
    ports: list[Obj] = [{"name": "metrics", "port": METRICS_PORT, "targetPort": "metrics"}]
    if options.webhook:
        ports.append({"name": "webhook", "port": 443, "targetPort": "webhook"})
    yield build_object(options, "v1", "Service", spec={"selector": options.selection, "ports": ports})

    # In: what is served, the webhook to the API server alone where its addresses are known. Out: anything, because
    # those addresses often are not.
    ingress: list[Obj] = [{"ports": [{"port": port, "protocol": "TCP"} for port in ("metrics", "health")]}]
    if options.webhook:
        called: Obj = {"ports": [{"port": "webhook", "protocol": "TCP"}]}
        if options.apiServers:
            called["from"] = [{"ipBlock": {"cidr": cidr}} for cidr in options.apiServers]
        ingress.append(called)
    policy = {"podSelector": selector, "policyTypes": ["Ingress"], "ingress": ingress}
    yield build_object(options, "networking.k8s.io/v1", "NetworkPolicy", spec=policy)

    budget = {"maxUnavailable": 1, "selector": selector}
    yield build_object(options, "policy/v1", "PodDisruptionBudget", spec=budget)
    yield deployment(options)


def service_monitor(options: InstallOptions) -> Obj:
    spec = {"selector": {"matchLabels": options.selection}, "endpoints": [{"port": "metrics"}]}
    return build_object(options, "monitoring.coreos.com/v1", "ServiceMonitor", spec=spec)


def deployment(options: InstallOptions) -> Obj:
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
        "containers": [container(options)],
        "volumes": [{"name": "scratch", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}}],
    }
    template = {"metadata": {"labels": labels_of(options.selection)}, "spec": pod}
    spec = {"replicas": options.replicas, "selector": {"matchLabels": options.selection}, "template": template}
    return build_object(options, "apps/v1", "Deployment", spec=spec)


def container(options: InstallOptions) -> Obj:
    ports = [
        {"name": "metrics", "containerPort": METRICS_PORT},
        {"name": "health", "containerPort": HEALTH_PORT},
    ]
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
        ports.append({"name": "webhook", "containerPort": WEBHOOK_PORT})
        variables["WEBHOOK_ADDRESS"] = f":{WEBHOOK_PORT}"
    return {
        "name": "operator",
        "image": options.image,
        "args": ["operator"],
        "env": [{"name": f"{_VARIABLES}{key}", "value": value} for key, value in variables.items()],
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
