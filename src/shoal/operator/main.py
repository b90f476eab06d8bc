"""The options of `shoal operator`, and its process: connecting, serving pages, stopping cleanly."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry

from shoal.cluster.kubeconfig import ConnectionConfig
from shoal.cluster.kubernetes import KubernetesCluster, open_client
from shoal.cluster.kubernetes.field_decoders import MetadataOnly, WithoutManagedFields
from shoal.controller_runtime.health import Address
from shoal.controller_runtime.metrics import Metrics
from shoal.controller_runtime.process import ServerOptions, connection_config, pages, process_identity, run_until_signal
from shoal.dialects import load
from shoal.dialects.without_secrets import without_secrets
from shoal.kube.kinds import CONFIG_MAP, POD
from shoal.logs import Logger
from shoal.operator.history_redaction import drop_snapshot, log_redacted
from shoal.operator.job_events import History, log_snapshot
from shoal.operator.manager import Operator, OperatorConfig

log = Logger(__name__)

HISTORIES: Mapping[str, History] = {"covered": log_redacted, "whole": log_snapshot, "off": drop_snapshot}


@dataclass(frozen=True, slots=True)
class OperatorOptions(ServerOptions):
    """The options of `shoal operator`."""

    dialects: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    name: str = "shoal"
    namespace: str = ""
    job_class: str = ""
    shards: int = 1
    gang_scheduler: str = "auto"
    gang_scheduler_name: str = ""
    ssh_plugin: bool = False
    history: str = "covered"
    webhook_address: Address | None = None


async def run_operator(options: OperatorOptions) -> None:
    connection = connection_config(options)
    await run_until_signal(_work(options, connection))


async def _work(options: OperatorOptions, connection: ConnectionConfig) -> None:
    metrics = Metrics(CollectorRegistry())
    # managedFields of pods and jobs and contents of ConfigMaps are not decoded; of responses about pods and ConfigMaps
    # only the metadata is.
    jobs = dict.fromkeys((load(name).kind for name in options.dialects), WithoutManagedFields)
    shapes = {POD: WithoutManagedFields, CONFIG_MAP: MetadataOnly, **jobs}
    answers = {POD: MetadataOnly, CONFIG_MAP: MetadataOnly, **jobs}
    client = open_client(connection, shapes=shapes, answers=answers, note=metrics.count_request)
    async with client as cluster, AsyncExitStack() as stack:
        side_task = await stack.enter_async_context(_webhook(options, cluster, connection.namespace))
        operator = Operator(
            cluster, _operator_config(options), process_identity(options, connection),
            metrics=metrics, history=HISTORIES[options.history], side_task=side_task,
            outage=cluster.transport.health.outage,
        )  # fmt: skip
        await stack.enter_async_context(pages(options, operator.readiness, metrics))
        await operator.prepare()
        log.info("prepared", cluster=connection.url, namespace=options.namespace or "all", dialects=options.dialects)
        await operator.run()


def _operator_config(options: OperatorOptions) -> OperatorConfig:
    return OperatorConfig(
        {name: load(name) if options.ssh_plugin else without_secrets(load(name)) for name in options.dialects},
        name=options.name,
        namespace=options.namespace or None,
        job_class=options.job_class,
        shards=options.shards,
        settings=options.settings,
        gang_scheduler=options.gang_scheduler,
        scheduler_name=options.gang_scheduler_name,
    )


@asynccontextmanager
async def _webhook(options: OperatorOptions, cluster: KubernetesCluster, namespace: str) -> AsyncIterator[Any]:
    """Answers in every process; its certificate is kept by the one that leads."""
    if options.webhook_address is None:
        yield None
        return
    from shoal.operator.gang_scheduler_detection import with_gang_scheduler
    from shoal.operator.webhook_certs import Certifier, webhook_served

    certifier = Certifier(options.name, namespace)
    dialects = await with_gang_scheduler(
        cluster, _operator_config(options).dialects, options.gang_scheduler, scheduler=options.gang_scheduler_name
    )
    async with webhook_served(cluster, certifier, options.webhook_address, dialects.values()):
        yield certifier
