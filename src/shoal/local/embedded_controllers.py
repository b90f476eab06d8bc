"""The loops a cluster of our own needs: placing pods and letting their groups in, keeping the addresses of Services,
binding volume claims, giving each namespace its service account, counting pods for quotas and disruption budgets,
removing pods of nodes that are no longer there, finding owners for orphans, and rolling out Deployments.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from prometheus_client import CollectorRegistry

from shoal.cluster.client import Cluster
from shoal.cluster.clock import Clock
from shoal.cluster.event_recorder import EventRecorder
from shoal.cluster.informer import Informer, strip_managed_fields
from shoal.controller_runtime.runnables import Runnable
from shoal.controllers.deployments.deployment_controller import DeploymentController
from shoal.controllers.endpoint_slices import EndpointSliceController
from shoal.controllers.orphan_adoption import OrphanAdoptionController
from shoal.controllers.persistent_volumes import PersistentVolumeController
from shoal.controllers.pod_gc import PodGCController
from shoal.controllers.quota_pdb_status import BudgetCounts, PodCountController, QuotaCounts
from shoal.controllers.service_accounts import ServiceAccountController
from shoal.kube.kinds import NODE, POD, POD_DISRUPTION_BUDGET, RESOURCE_QUOTA
from shoal.scheduler.metrics import SchedulerMetrics
from shoal.scheduler.planner.gang_types import PlannerSettings
from shoal.scheduler.pod_group_controller import PodGroupController
from shoal.scheduler.scheduler import Scheduler
from shoal.scheduler.scope import SchedulerScope
from shoal.scheduler.transforms import slim_pod

COALESCE_SECONDS = 0.005  # between two plans for pods that come one after the other


def standard_loops(
    cluster: Cluster,
    *,
    volumes: Path,
    clock: Clock,
    gangs: bool = False,
    registry: CollectorRegistry | None = None,
    settings: PlannerSettings | None = None,
) -> list[Callable[[], Runnable]]:
    """Each as a function that creates it; `gangs` where the cluster serves PodGroups. Copies of nodes and pods are
    shared and small."""
    counted = SchedulerMetrics(registry or CollectorRegistry())
    nodes = Informer(cluster, NODE, trim=strip_managed_fields, clock=clock)
    pods = Informer(cluster, POD, trim=lambda event: slim_pod(event.object, owners=True), clock=clock)
    scope = SchedulerScope(gangs=gangs, hypernodes=gangs, implicit_groups=gangs)
    implicit = [lambda: PodGroupController(cluster, pods, scope=scope, clock=clock)] if gangs else []
    return [
        lambda: nodes,
        lambda: pods,
        *implicit,
        lambda: Scheduler(
            cluster, nodes, pods, scope=scope, settings=settings, metrics=counted,
            recorder=EventRecorder(cluster, "scheduler", clock=clock), clock=clock, coalesce_seconds=COALESCE_SECONDS,
        ),
        lambda: EndpointSliceController(cluster, pods),
        lambda: PersistentVolumeController(cluster, volumes),
        lambda: ServiceAccountController(cluster),
        lambda: PodCountController(cluster, RESOURCE_QUOTA, pods, QuotaCounts(), clock=clock),
        lambda: PodCountController(cluster, POD_DISRUPTION_BUDGET, pods, BudgetCounts(), clock=clock),
        lambda: PodGCController(cluster, nodes, pods),
        lambda: OrphanAdoptionController(cluster, pods, clock=clock),
        lambda: DeploymentController(cluster, clock=clock),
    ]  # fmt: skip
