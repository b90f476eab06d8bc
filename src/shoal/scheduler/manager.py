"""The scheduler as a process on a Kubernetes cluster: which pods it serves there, and its loop under a Lease.

Pods select it with `schedulerName: shoal`. Where Volcano's own scheduler is not installed it can serve `volcano` too,
so that manifests need not change; where it is, groups belong to Volcano unless a pod of this scheduler names them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from shoal.cluster.client import Cluster
from shoal.cluster.clock import Clock, SystemClock
from shoal.cluster.event_recorder import EventRecorder
from shoal.cluster.fencing import FencedCluster
from shoal.cluster.informer import Informer
from shoal.controller_runtime.crd_installer import CrdUnusable, DiscoveryCluster, apply_crd
from shoal.controller_runtime.health import ComponentReadiness
from shoal.controller_runtime.identity import ProcessIdentity, VersionedCluster
from shoal.controller_runtime.labels import with_install_labels
from shoal.controller_runtime.leader_election import LeaderElector
from shoal.controller_runtime.metrics import Metrics
from shoal.controller_runtime.preflight import check_permissions
from shoal.controller_runtime.rights import lease_permissions
from shoal.controller_runtime.runnables import Runnable, run_all
from shoal.kube.errors import ApiError
from shoal.kube.kinds import NODE, POD, Kind
from shoal.kube.objects import Key, Obj
from shoal.kube.structural_schema import kinds_of
from shoal.logs import Logger
from shoal.scheduler.api import pod_groups
from shoal.scheduler.api.hypernodes import HYPER_NODE
from shoal.scheduler.metrics import SchedulerMetrics
from shoal.scheduler.planner.gang_types import PlannerSettings
from shoal.scheduler.pod_group_controller import PodGroupController
from shoal.scheduler.rbac import conflict_rights, scheduler_rights
from shoal.scheduler.scheduler import Scheduler
from shoal.scheduler.scheduler_conflicts import ConflictDetector, PodScope
from shoal.scheduler.scope import SchedulerScope
from shoal.scheduler.transforms import slim_pod
from shoal.scheduler.volcano_detection import has_volcano

log = Logger(__name__)

VOLCANO = "volcano"
BINDS_AT_ONCE = 64
COALESCE_SECONDS = 0.02  # pods come in company, and a plan for all of them costs little more than one for the first
QUIET_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class SchedulerOptions:
    """What the scheduler is configured to serve."""

    name: str = "shoal-scheduler"  # of its Lease
    schedulers: tuple[str, ...] = ("shoal",)
    volcano: Literal["auto", "yes", "no"] = "auto"  # whether it answers for Volcano's scheduler as well
    namespace: str | None = None  # of groups; None: all
    settings: PlannerSettings = field(default_factory=PlannerSettings)


class SchedulerManager:
    """`prepare`, then `run` until cancelled."""

    def __init__(
        self,
        cluster: VersionedCluster,
        options: SchedulerOptions,
        identity: ProcessIdentity,
        *,
        metrics: Metrics,
        clock: Clock | None = None,
        silence: Callable[[], str] = lambda: "",
    ) -> None:
        self._cluster = cluster
        self._options = options
        self._identity = identity
        self._metrics = metrics
        self._scheduler_metrics = SchedulerMetrics(metrics.registry)
        self._clock = clock or SystemClock()
        self._silence = silence
        self._scope = SchedulerScope()
        self._leadership: LeaderElector | None = None
        self._conflicts: ConflictDetector | None = None
        self._scheduler: Scheduler | None = None

    async def prepare(self) -> None:
        """Every check that may fail for good: raises NotFit, Unserved or ConnectionError with a message."""
        await self._cluster.require_unserved()
        group, queue, _ = [await served_kind(self._cluster, each) for each in pod_groups.definitions()]
        if self._options.volcano == "auto":
            answers = not await has_volcano(self._cluster)
        else:
            answers = self._options.volcano == "yes"
        hypernodes = await self._cluster.find_kind(HYPER_NODE.api_version, HYPER_NODE.kind) is not None
        names = (*self._options.schedulers, *((VOLCANO,) if answers else ()))
        self._scope = SchedulerScope(
            schedulers=frozenset(names),
            namespace=self._options.namespace,
            all_groups=answers,
            hypernodes=hypernodes,
            implicit_groups=answers,
            group_kind=group,
            queue_kind=queue,
        )
        log.info("answers for", schedulers=names, hypernodes=hypernodes)
        rights = scheduler_rights(group, queue, hypernodes=hypernodes)
        wanted = [("", right) for right in rights]
        if self._identity.leader_election:
            wanted += [(self._identity.namespace, right) for right in lease_permissions([self._options.name])]
            wanted += [("", right) for right in conflict_rights([self._options.name])]
        await check_permissions(self._cluster, wanted)

    async def run(self) -> None:
        self._metrics.observe_leading(0, lambda: self._scheduler is not None)
        if not self._identity.leader_election:
            await self._work(self._cluster)
            return
        identity = self._identity
        leadership = self._leadership = LeaderElector(
            self._cluster, self._options.name, identity.namespace,
            identity=identity.name, lease_times=identity.lease_times, clock=self._clock,
        )  # fmt: skip
        fenced = FencedCluster(self._cluster, lambda: leadership.is_held)
        await leadership.run(lambda: self._when_alone(fenced))

    async def _when_alone(self, cluster: Cluster) -> None:
        """Installations in other namespaces have Leases of their own, and may answer for the same pods."""
        assert self._scope.schedulers is not None, "on a Kubernetes cluster the scheduler is chosen by schedulerName"
        self._conflicts = ConflictDetector(
            cluster, Key(self._identity.namespace, self._options.name),
            PodScope(self._scope.schedulers, self._scope.namespace), clock=self._clock,
        )  # fmt: skip
        await self._conflicts.wait_until_alone()
        await self._work(cluster)

    async def _work(self, cluster: Cluster) -> None:
        answers = self._scope.implicit_groups
        nodes = Informer(cluster, NODE, clock=self._clock)
        pods = Informer(cluster, POD, trim=lambda event: slim_pod(event.object), clock=self._clock)

        def scheduler() -> Runnable:
            self._scheduler = Scheduler(
                cluster, nodes, pods,
                scope=self._scope, settings=self._options.settings, metrics=self._scheduler_metrics, clock=self._clock,
                recorder=EventRecorder(cluster, self._options.schedulers[0], clock=self._clock),
                binds_at_once=BINDS_AT_ONCE, coalesce_seconds=COALESCE_SECONDS, quiet_seconds=QUIET_SECONDS,
            )  # fmt: skip
            return self._scheduler

        def implicit_groups() -> Runnable:
            return PodGroupController(cluster, pods, scope=self._scope, clock=self._clock)

        try:
            await run_all([lambda: nodes, lambda: pods, scheduler, *([implicit_groups] if answers else [])])
        finally:
            self._scheduler = None

    def readiness(self) -> list[ComponentReadiness]:
        """Leading with every copy read, or waiting for the Lease of another."""
        parts = [ComponentReadiness("cluster", False, silence)] if (silence := self._silence()) else []
        leadership, is_ready = self._leadership, True
        if self._scheduler is not None:
            is_ready = self._scheduler.is_synced
            message = "leads" if is_ready else "reads the cluster"
        elif leadership is None or not leadership.has_seen_lease:
            is_ready, message = False, "waits for the Lease to be read"
        elif self._conflicts is not None and self._conflicts.waits_for:
            message = f"waits: {self._conflicts.waits_for}"
        else:
            message = f"waiting for the leader election lease; {leadership.leader or 'no instance'} leads"
        return [*parts, ComponentReadiness("scheduler", is_ready, message)]


async def served_kind(cluster: DiscoveryCluster, definition: Obj) -> Kind:
    """The kind as this cluster serves it; its definition is created where it is missing and this account may."""
    wanted = kinds_of(definition)[0]
    try:
        applied = await apply_crd(cluster, with_install_labels(definition))
        log.info("definition", name=applied.name, action=applied.action, remark=applied.remark)
    except ApiError as refused:
        if refused.code != 403:
            raise
    found = await cluster.find_kind(wanted.api_version, wanted.kind)
    if found is None:
        raise CrdUnusable(
            f"this cluster does not know {wanted}, and this account may not define it. Let an administrator run "
            f"`shoal install --scheduler`, or `shoal crds volcano | kubectl apply -f -`"
        )
    return found
