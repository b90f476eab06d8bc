"""The operator as objects of a cluster: what `shoal install` applies and the kustomize base contains.

In the order in which they are applied: namespace, accounts and rights, then the operator and what surrounds it.
"""

from __future__ import annotations

from shoal.controller_runtime.labels import with_install_labels
from shoal.dialects import load
from shoal.dialects.dialect import definitions_of
from shoal.install.operator_deployment import operator_workload, service_monitor
from shoal.install.options import InstallOptions, build_object
from shoal.install.rbac import operator_roles
from shoal.install.scheduler_deployment import scheduler_objects
from shoal.install.webhooks import webhook_configurations
from shoal.kube.objects import Obj
from shoal.scheduler.api import pod_groups
from shoal.scheduler.api.hypernodes import hypernode_definition


def definitions(dialects: tuple[str, ...]) -> list[Obj]:
    """The kinds of the dialects and those that belong to them, marked as ours."""
    return [with_install_labels(each) for each in definitions_of(*(load(name) for name in dialects))]


def scheduler_definitions() -> list[Obj]:
    """The kinds that the scheduler reads, whichever component writes them, marked as ours."""
    return [with_install_labels(each) for each in (*pod_groups.definitions(), hypernode_definition())]


def render(options: InstallOptions) -> list[Obj]:
    """Everything but the CRDs, in order."""
    objects: list[Obj] = []
    if options.createNamespace:
        namespace = build_object(options, "v1", "Namespace", options.namespace, namespaced=False)
        namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = "restricted"
        objects.append(namespace)
    # The Deployment requests the token.
    objects.append(build_object(options, "v1", "ServiceAccount", automountServiceAccountToken=False))
    objects += operator_roles(options)
    if options.webhook:
        # Empty: the operator fills it. It is made here so that the operator needs no right to create Secrets.
        objects.append(build_object(options, "v1", "Secret", f"{options.name}-webhook"))
    objects += operator_workload(options)
    if options.webhook:
        objects += webhook_configurations(options)
    if options.serviceMonitor:
        objects.append(service_monitor(options))
    if options.scheduler:
        objects += scheduler_objects(options)
    return objects
