"""Running jobs: one loop per dialect between the cluster and the engine.

    reconciler.py       the steps of one pass
    job_cache.py        what this process keeps of a job between passes
    expectations.py     what was sent to the cluster and is not observed yet
    owned_informers.py  copies of pods and run owners, found by the job they belong to
    write_executor.py   applies the writes that the engine returns
    orphan_adoption.py  orphans that a new job selects
    job_events.py       Events and history
    setup.py            definitions and admission, before the first job

`prepare` and `job_reconcilers` are what the embedded cluster needs to run jobs of every dialect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from shoal.cluster.client import Cluster
from shoal.cluster.clock import Clock
from shoal.cluster.embedded import EmbeddedCluster
from shoal.controller_runtime.metrics import Metrics
from shoal.controller_runtime.runnables import Runnable
from shoal.dialects import NAMES, NATIVE, load
from shoal.dialects.dialect import definitions_of
from shoal.operator.reconciler import JobReconciler
from shoal.operator.setup import admit, install
from shoal.scheduler.api.hypernodes import hypernode_definition

__all__ = ["JobReconciler", "job_reconcilers", "prepare"]


async def prepare(cluster: EmbeddedCluster) -> None:
    """Define the kinds of every job language, and HyperNodes for the scheduler, with their admission."""
    dialects = [load(name) for name in NAMES]
    admit(cluster.machinery, dialects)
    definitions = [each for dialect in dialects for each in definitions_of(dialect)]
    await install(cluster, [*definitions, hypernode_definition()])


def job_reconcilers(
    cluster: Cluster,
    *,
    clock: Clock,
    metrics: Metrics,
    settings: Mapping[str, Any] | None = None,
    on_made: Callable[[JobReconciler], None] = lambda _: None,
) -> list[Callable[[], Runnable]]:
    """A loop per job language, each as a function that makes it; `settings` by the language's name."""

    def make(name: str) -> Runnable:
        loop = JobReconciler(cluster, load(name), settings=(settings or {}).get(name), clock=clock, metrics=metrics)
        on_made(loop)
        return loop

    return [partial(make, name) for name in (*NAMES, *NATIVE)]
