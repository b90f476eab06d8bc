"""Shoal's scheduler beside the operator, with an account, rights and pods of its own: it may place and evict pods, and
the operator may not.
"""

from __future__ import annotations

from collections.abc import Iterator

from shoal.controller_runtime.labels import PART_OF
from shoal.controller_runtime.rights import lease_permissions, policy_rules
from shoal.install import operator_deployment
from shoal.install.options import HEALTH_PORT, METRICS_PORT, InstallOptions, build_object, labels_of
from shoal.install.rbac import bound_role
from shoal.kube.objects import Obj
from shoal.scheduler.api import pod_groups
from shoal.scheduler.rbac import conflict_rights, scheduler_rights

SCHEDULERS = f"{PART_OF}=shoal,app.kubernetes.io/name=shoal-scheduler"  # selects those of all installations
# One for all installations of a namespace: the scheduler of each places pods of the whole cluster, so one may lead.
SCHEDULER_LEASE = "shoal-scheduler"


def scheduler_objects(options: InstallOptions) -> Iterator[Obj]:
    name, labels = f"{options.name}-scheduler", labels_of(options.scheduler_selection)
    wanted = policy_rules(
        [*scheduler_rights(pod_groups.POD_GROUP, pod_groups.QUEUE), *conflict_rights([SCHEDULER_LEASE])]
    )
    yield build_object(options, "v1", "ServiceAccount", name, labels=labels, automountServiceAccountToken=False)
    yield from bound_role(options, "ClusterRole", name, wanted, account=name)
    lease = policy_rules(lease_permissions([SCHEDULER_LEASE]))
    yield from bound_role(options, "Role", name, lease, account=name)

    selector = {"matchLabels": options.scheduler_selection}
    service = {
        "selector": options.scheduler_selection,
        "ports": [{"name": "metrics", "port": METRICS_PORT, "targetPort": "metrics"}],
    }
    policy = {
        "podSelector": selector,
        "policyTypes": ["Ingress"],
        "ingress": [{"ports": [{"port": port, "protocol": "TCP"} for port in ("metrics", "health")]}],
    }
    surroundings = [
        ("v1", "Service", service),
        ("networking.k8s.io/v1", "NetworkPolicy", policy),
        ("policy/v1", "PodDisruptionBudget", {"maxUnavailable": 1, "selector": selector}),
    ]
    if options.serviceMonitor:
        monitor = {"selector": selector, "endpoints": [{"port": "metrics"}]}
        surroundings.append(("monitoring.coreos.com/v1", "ServiceMonitor", monitor))
    for api_version, kind, spec in surroundings:
        yield build_object(options, api_version, kind, name, labels=labels, spec=spec)
    yield deployment(options, name)


def deployment(options: InstallOptions, name: str) -> Obj:
    """The operator's, with another account, command and size."""
    made, labels = operator_deployment.deployment(options), labels_of(options.scheduler_selection)
    spec, selector = made["spec"], {"matchLabels": options.scheduler_selection}
    variables = {
        "NAME": SCHEDULER_LEASE,
        "VOLCANO": options.schedulerVolcano,
        "SHARING": options.schedulerSharing,
        "TIERS": ",".join(options.schedulerTiers),
        "METRICS_ADDRESS": f":{METRICS_PORT}",
        "HEALTH_ADDRESS": f":{HEALTH_PORT}",
        "LOG_FORMAT": options.logFormat,
    }
    pod = spec["template"]["spec"]
    pod["serviceAccountName"] = name
    pod["topologySpreadConstraints"][0]["labelSelector"] = selector
    pod["containers"] = [
        {
            **operator_deployment.container(options),
            "name": "scheduler",
            "args": ["scheduler"],
            "env": [{"name": f"SHOAL_SCHEDULER_{key}", "value": value} for key, value in variables.items()],
            "ports": [
                {"name": "metrics", "containerPort": METRICS_PORT},
                {"name": "health", "containerPort": HEALTH_PORT},
            ],
            "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "2Gi"}},
        }
    ]
    spec["selector"] = selector
    spec["template"]["metadata"] = {"labels": labels}
    return {**made, "metadata": {**made["metadata"], "name": name, "labels": labels}}
