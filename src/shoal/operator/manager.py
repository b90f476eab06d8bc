"""The operator as a program on any cluster: which jobs it serves, and its reconcilers under a Lease.

`Operator.prepare` checks the cluster, its kinds and the rights; `Operator.run` then leads whatever shards are free.
Every write passes a fence that checks whether this process still leads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from shoal.cluster.client import Cluster
from shoal.cluster.clock import Clock, SystemClock
from shoal.cluster.fencing import FencedCluster
from shoal.controller_runtime.health import ComponentReadiness
from shoal.controller_runtime.identity import ProcessIdentity, VersionedCluster
from shoal.controller_runtime.labels import CLASS_LABEL
from shoal.controller_runtime.leader_election import LeaderElector
from shoal.controller_runtime.metrics import Metrics
from shoal.controller_runtime.preflight import check_permissions
from shoal.controller_runtime.rights import Permission, lease_permissions
from shoal.controller_runtime.runnables import Runnable, run_all
from shoal.dialects.dialect import Dialect
from shoal.logs import Logger
from shoal.operator import gang_scheduler_detection
from shoal.operator.job_events import History, log_snapshot
from shoal.operator.job_kinds import served
from shoal.operator.rbac import job_rights, placing_rights, secret_rights, validation_rights, webhook_rights
from shoal.operator.reconciler import JobReconciler
from shoal.operator.sharding import AcquisitionDelay, served_by
from shoal.operator.shared_informers import SharedInformers

log = Logger(__name__)

# Pods of a job start and end together, and every pass that finds a change writes to an API server that others need
# too. The Job controller of Kubernetes waits a second.
COALESCE_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class OperatorConfig:
    """Which jobs are served, and under which name."""

    dialects: Mapping[str, Dialect]
    name: str = "shoal"
    namespace: str | None = None  # None: all
    job_class: str = ""  # '': jobs without a class
    shards: int = 1
    settings: Mapping[str, Any] = field(default_factory=dict)  # of dialects, by name
    gang_scheduler: str = gang_scheduler_detection.AUTO  # scheduler for gangs
    scheduler_name: str = ""  # of pods in gangs; '': as that scheduler is usually called

    @property
    def labels(self) -> str:
        return f"{CLASS_LABEL}={self.job_class}" if self.job_class else f"!{CLASS_LABEL}"

    def lease(self, shard: int) -> str:
        return f"{self.name}-{shard}"


class SideTask(Protocol):
    """Work that the leader of the first shard does beside the jobs, with writes through its fence."""

    async def run(self, cluster: Cluster) -> None: ...

    def readiness(self) -> ComponentReadiness: ...


class Operator:
    """`prepare`, then `run` until cancelled."""

    def __init__(
        self,
        cluster: VersionedCluster,
        config: OperatorConfig,
        identity: ProcessIdentity,
        *,
        metrics: Metrics,
        clock: Clock | None = None,
        history: History = log_snapshot,
        side_task: SideTask | None = None,
        outage: Callable[[], str] = lambda: "",
    ) -> None:
        """`outage` returns why the cluster does not respond, as a message; '' while it does."""
        self._cluster = cluster
        self._config = config
        self._identity = identity
        self._metrics = metrics
        self._clock = clock or SystemClock()
        self._history = history
        self._side_task = side_task
        self._outage = outage
        self._shards: list[Shard] = []

    async def prepare(self) -> None:
        """Every check that may fail for good: raises PreflightError, CrdUnusable or ConnectionError with a message."""
        await self._cluster.require_unserved()
        config = self._config
        dialects = await gang_scheduler_detection.with_gang_scheduler(
            self._cluster, config.dialects, config.gang_scheduler, scheduler=config.scheduler_name
        )
        self._config = replace(
            config, dialects={name: await served(self._cluster, dialect) for name, dialect in dialects.items()}
        )
        await check_permissions(self._cluster, self._rights())

    def _rights(self) -> list[tuple[str, Permission]]:
        config, own = self._config, self._identity.namespace
        wanted = [(config.namespace or "", right) for right in job_rights(config.dialects.values())]
        wanted += [("", right) for right in placing_rights(config.dialects.values())]
        if self._identity.leader_election:
            for shard in range(config.shards):
                wanted += [(own, right) for right in lease_permissions([config.lease(shard)])]
        if self._side_task is not None:
            wanted += [(own, right) for right in secret_rights(f"{config.name}-webhook")]
            wanted += [("", right) for right in webhook_rights(config.name)]
            wanted += [("", right) for right in validation_rights(config.dialects.values())]
        return list(dict.fromkeys(wanted))

    async def run(self) -> None:
        self._shards = [
            Shard(
                self._cluster, self._config, number,
                metrics=self._metrics, clock=self._clock, history=self._history,
                side_task=self._side_task if number == 0 else None,
            )
            for number in range(self._config.shards)
        ]  # fmt: skip
        acquisition_delay = AcquisitionDelay(self._identity.name, self._config.shards)
        if self._identity.leader_election:
            acquisition_delay.leaderships = [
                self._leadership(number, acquisition_delay) for number in range(self._config.shards)
            ]
        async with asyncio.TaskGroup() as group:
            for number, shard in enumerate(self._shards):
                group.create_task(
                    shard.run(acquisition_delay.leaderships[number] if self._identity.leader_election else None)
                )

    def _leadership(self, number: int, acquisition_delay: AcquisitionDelay) -> LeaderElector:
        identity = self._identity
        return LeaderElector(
            self._cluster, self._config.lease(number), identity.namespace,
            identity=identity.name, lease_times=identity.lease_times, clock=self._clock,
            acquire_delay=lambda: acquisition_delay.seconds(number), on_leader=acquisition_delay.recheck,
        )  # fmt: skip

    def readiness(self) -> list[ComponentReadiness]:
        parts = [shard.readiness() for shard in self._shards]
        if self._side_task is not None:
            parts.append(self._side_task.readiness())
        if outage := self._outage():
            parts.insert(0, ComponentReadiness("cluster", False, outage))
        return parts


class Shard:
    """The reconcilers of one shard and their informers, run whenever this process leads it."""

    def __init__(
        self,
        cluster: Cluster,
        config: OperatorConfig,
        number: int,
        *,
        metrics: Metrics,
        clock: Clock,
        history: History,
        side_task: SideTask | None,
    ) -> None:
        self.number = number
        self._cluster = cluster
        self._config = config
        self._metrics = metrics
        self._clock = clock
        self._history = history
        self._side_task = side_task
        self._leadership: LeaderElector | None = None
        self._reconcilers: dict[str, JobReconciler] = {}
        self._is_leading = False

    async def run(self, leadership: LeaderElector | None) -> None:
        self._leadership = leadership
        self._metrics.observe_leading(self.number, lambda: self._is_leading)
        if leadership is None:
            await self._work(self._cluster)
            return
        fenced = FencedCluster(self._cluster, lambda: leadership.is_held)
        await leadership.run(lambda: self._work(fenced))

    def readiness(self) -> ComponentReadiness:
        """Ready is a shard that leads with all informers synced, and one that waits for the Lease of another."""
        part = f"shard {self.number}"
        if self._is_leading:
            late = [loop.name for loop in self._reconcilers.values() if not loop.is_synced]
            return ComponentReadiness(part, not late, f"reads {', '.join(late)}" if late else "leads")
        leadership = self._leadership
        if leadership is None or not leadership.has_seen_lease:
            return ComponentReadiness(part, False, "waits for the Lease to be read")
        return ComponentReadiness(
            part, True, f"waiting for the leader election lease; {leadership.leader or 'no instance'} leads"
        )

    async def _work(self, cluster: Cluster) -> None:
        self._is_leading = True
        config = self._config
        # Per shard, not per process: what a shard caches of its jobs lives only as long as this process leads it.
        informers = SharedInformers(
            cluster, config.dialects.values(),
            namespace=config.namespace, serves=served_by(self.number, config.shards), clock=self._clock,
        )  # fmt: skip
        runnables: list[Callable[[], Runnable]] = [
            self._maker(cluster, name, dialect, informers) for name, dialect in config.dialects.items()
        ]
        # After the reconcilers, so that all of them receive the first event. If it fails, it continues as it is: the
        # reconcilers refer to it.
        runnables.append(lambda: informers)
        if (side_task := self._side_task) is not None:
            runnables.append(lambda: _SideTaskRunnable(side_task, cluster))
        try:
            await run_all(runnables)
        finally:
            self._is_leading = False
            self._reconcilers.clear()

    def _maker(
        self, cluster: Cluster, name: str, dialect: Dialect, informers: SharedInformers
    ) -> Callable[[], Runnable]:
        def make() -> Runnable:
            loop = self._reconcilers[name] = JobReconciler(
                cluster, dialect,
                settings=self._config.settings.get(name), clock=self._clock, metrics=self._metrics,
                history=self._history, namespace=self._config.namespace, labels=self._config.labels,
                serves=served_by(self.number, self._config.shards), coalesce_seconds=COALESCE_SECONDS,
                informers=informers,
            )  # fmt: skip
            return loop

        return make


class _SideTaskRunnable:
    """The side task as a runnable."""

    name = "webhook"

    def __init__(self, side_task: SideTask, cluster: Cluster) -> None:
        self._side_task = side_task
        self._cluster = cluster

    async def run(self) -> None:
        await self._side_task.run(self._cluster)
