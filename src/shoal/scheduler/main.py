"""Entry point of `shoal scheduler`: its options and its process; the rest is shared with `shoal operator`."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from shoal.cluster.kubeconfig import ConnectionConfig
from shoal.cluster.kubernetes import open_client
from shoal.cluster.kubernetes.field_decoders import MetadataOnly, WithoutManagedFields
from shoal.controller_runtime.metrics import Metrics
from shoal.controller_runtime.process import ServerOptions, connection_config, pages, process_identity, run_until_signal
from shoal.kube.kinds import NODE, POD
from shoal.logs import Logger
from shoal.scheduler.manager import SchedulerManager, SchedulerOptions

log = Logger(__name__)


async def run_scheduler(options: ServerOptions, scheduler_options: SchedulerOptions) -> None:
    await run_until_signal(_work(options, scheduler_options, connection_config(options)))


async def _work(options: ServerOptions, scheduler_options: SchedulerOptions, connection: ConnectionConfig) -> None:
    """Run with field decoders: managedFields of pods and nodes are not read.
    Of responses about pods only the metadata is read."""
    metrics = Metrics(CollectorRegistry())
    shapes, answers = {POD: WithoutManagedFields, NODE: WithoutManagedFields}, {POD: MetadataOnly}
    async with open_client(connection, shapes=shapes, answers=answers, note=metrics.count_request) as cluster:
        manager = SchedulerManager(
            cluster,
            scheduler_options,
            process_identity(options, connection),
            metrics=metrics,
            silence=cluster.transport.health.outage,
        )
        async with pages(options, manager.readiness, metrics):
            await manager.prepare()
            log.info("prepared", cluster=connection.url)
            await manager.run()
