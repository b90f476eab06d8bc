"""Before the first job: the definition of its kind in the cluster, and its language's say in admission.

On a cluster of our own admission is a function in the same process; elsewhere it is a webhook's work, and what slips
through is told by the loop when it reads the job.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import cast

from shoal.cluster.admission import Admission
from shoal.cluster.machinery import Machinery
from shoal.cluster.port import Cluster, PatchType, WatchEvent
from shoal.dialects.dialect import Dialect
from shoal.kube.conditions import is_true
from shoal.kube.kinds import CUSTOM_RESOURCE_DEFINITION
from shoal.kube.objects import name_of


async def install(cluster: Cluster, dialects: Iterable[Dialect]) -> None:
    """Apply the definitions and wait until the cluster serves their kinds."""
    for dialect in dialects:
        crd = dialect.crd()
        await cluster.patch(
            CUSTOM_RESOURCE_DEFINITION, name_of(crd),
            patch=crd, patch_type=PatchType.APPLY, field_manager="shoal", force=True,
        )  # fmt: skip
        await _established(cluster, name_of(crd))


async def _established(cluster: Cluster, name: str) -> None:
    while True:  # a watch may end before its time
        events = cluster.watch(CUSTOM_RESOURCE_DEFINITION, fields=f"metadata.name={name}", initial_events=True)
        async with aclosing(cast(AsyncGenerator[WatchEvent, None], events)) as told:
            async for event in told:
                if is_true(event.object, "Established"):
                    return


def admit(machinery: Machinery, dialects: Iterable[Dialect]) -> None:
    """Let each language refuse what it cannot run, at the moment somebody writes it."""
    for dialect in dialects:
        machinery.admissions[dialect.kind.resource] = Admission(dialect.default, dialect.judge, dialect.warn)
