"""Running jobs: one reconciler per dialect between the cluster and the engine.

    reconciler.py       the steps of one pass
    job_cache.py        what this process keeps of a job between passes
    expectations.py     what was sent to the cluster and is not observed yet
    job_observer.py     the objects of a job, as the engine sees them
    job_writer.py       stores the job state, writes the status
    shared_informers.py cached pods and other owned objects, one informer per kind for all dialects
    job_index.py        which of them belong to which job
    write_executor.py   executes the writes that the engine returns
    object_creator.py   creates pods and run owners
    orphan_adoption.py  orphans that a new job selects
    job_events.py       Events
    job_history.py      history
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
from shoal.operator.dialect_registration import admit, install
from shoal.operator.reconciler import JobReconciler
from shoal.operator.shared_informers import SharedInformers
from shoal.scheduler.api.hypernodes import hypernode_definition

__all__ = ["JobReconciler", "job_reconcilers", "prepare"]


async def prepare(cluster: EmbeddedCluster) -> None:
    """Define the kinds of every job language, and HyperNodes for the scheduler, with their admission."""
    dialects = [load(name) for name in NAMES]
    admit(cluster.machinery, dialects)
    definitions = definitions_of(*dialects)
    await install(cluster, [*definitions, hypernode_definition()])


def job_reconcilers(
    cluster: Cluster,
    *,
    clock: Clock,
    metrics: Metrics,
    settings: Mapping[str, Any] | None = None,
    on_made: Callable[[JobReconciler], None] = lambda _: None,
) -> list[Callable[[], Runnable]]:
    """A reconciler per dialect and the informers they share, as functions that make them; `settings` by dialect."""
    served = {name: load(name) for name in (*NAMES, *NATIVE)}
    informers = SharedInformers(cluster, served.values(), clock=clock)

    def make(name: str) -> Runnable:
        loop = JobReconciler(
            cluster, served[name],
            settings=(settings or {}).get(name), clock=clock, metrics=metrics, informers=informers,
        )  # fmt: skip
        on_made(loop)
        return loop

    # The informers after the reconcilers, so that all of them receive the first event. If they fail, the same ones run
    # again: the reconcilers refer to them.
    return [*(partial(make, name) for name in served), lambda: informers]
