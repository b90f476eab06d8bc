"""A language is served only where the kinds that come with it are, also where nobody may look at definitions."""

from __future__ import annotations

import pytest

from shoal.cluster.client import Cluster
from shoal.cluster.fault_injection import Faults, calls
from shoal.cluster.simulated import SimulatedCluster
from shoal.controller_runtime.crd_installer import CrdUnusable, wait_established
from shoal.dialects.dialect import definitions_of
from shoal.dialects.volcano import DIALECT
from shoal.kube.errors import forbidden
from shoal.kube.kinds import CUSTOM_RESOURCE_DEFINITION, Kind
from shoal.operator.job_kinds import served

NO = forbidden(CUSTOM_RESOURCE_DEFINITION, "any", "not for you")
GROUPS = "podgroups.scheduling.volcano.sh"
MISSING = (
    "this cluster does not know scheduling.volcano.sh/v1beta1 PodGroup, which batch.volcano.sh/v1alpha1 Job needs, and "
    'this account may not define it (customresourcedefinitions.apiextensions.k8s.io "any" is forbidden: not for you). '
    "Let an administrator run `shoal install`, or `shoal crds | kubectl apply -f -`"
)


class Narrow(SimulatedCluster):
    """A cluster that says what it serves, to an account that may not do everything."""

    async def find_kind(self, api_version: str, kind: str) -> Kind | None:
        return await self.embedded.find_kind(api_version, kind)


async def define(cluster: Cluster, *names: str) -> None:
    for definition in definitions_of(DIALECT):
        name = definition["metadata"]["name"]
        if not names or name in names:
            await cluster.create(CUSTOM_RESOURCE_DEFINITION, definition)
            await wait_established(cluster, name)


async def test_a_missing_kind_is_told_where_nobody_may_look_at_definitions() -> None:
    cluster = Narrow(faults=Faults().fail(calls(kind=CUSTOM_RESOURCE_DEFINITION), NO, times=None))
    await define(cluster.embedded, "jobs.batch.volcano.sh")
    with pytest.raises(CrdUnusable) as refused:
        await served(cluster, DIALECT)
    assert str(refused.value) == MISSING


async def test_a_kind_that_may_not_be_defined_is_told() -> None:
    cluster = Narrow(faults=Faults().fail(calls("patch", CUSTOM_RESOURCE_DEFINITION, GROUPS), NO, times=None))
    with pytest.raises(CrdUnusable) as refused:
        await served(cluster, DIALECT)
    assert str(refused.value) == MISSING


@pytest.mark.parametrize("name", ["", GROUPS])
async def test_kinds_that_are_there_will_do(name: str) -> None:
    cluster = Narrow(faults=Faults().fail(calls(kind=CUSTOM_RESOURCE_DEFINITION, name=name), NO, times=None))
    await define(cluster.embedded)
    assert await served(cluster, DIALECT) == DIALECT
