"""What `shoal scheduler` is asked to do, and the process that does it; the rest is shared with `shoal operator`."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from shoal.cluster.kubeconfig import Connection
from shoal.cluster.kubernetes import opened
from shoal.cluster.kubernetes.field_decoders import Nameplate, Ordinary
from shoal.controller_runtime.metrics import Metrics
from shoal.controller_runtime.process import ServerOptions, connection_of, identity_of, pages, until_stopped
from shoal.kube.kinds import NODE, POD
from shoal.logs import Logger
from shoal.scheduler.manager import Charge, SchedulerProgram

log = Logger(__name__)


async def schedule(options: ServerOptions, charge: Charge) -> None:
    await until_stopped(_work(options, charge, connection_of(options)))


async def _work(options: ServerOptions, charge: Charge, connection: Connection) -> None:
    """Of pods and nodes nobody reads who wrote what, and of what is answered about pods nobody reads more than the
    metadata."""
    metrics = Metrics(CollectorRegistry())
    shapes, answers = {POD: Ordinary, NODE: Ordinary}, {POD: Nameplate}
    async with opened(connection, shapes=shapes, answers=answers, note=metrics.requested) as cluster:
        program = SchedulerProgram(
            cluster, charge, identity_of(options, connection), metrics=metrics, silence=cluster.wire.hearing.silence
        )
        async with pages(options, program.readiness, metrics):
            await program.prepare()
            log.info("prepared", cluster=connection.url)
            await program.run()
