"""A job language whose definition somebody else made, without a status subresource: jobs run all the same."""

from __future__ import annotations

import asyncio

import pytest
from prometheus_client import CollectorRegistry

from kit.framework_notation import fw, role
from kit.hollow_nodes import HollowNodes
from kit.pod_behavior import exits
from shoal.cluster.clock import SystemClock
from shoal.cluster.embedded import EmbeddedCluster
from shoal.controller_runtime.crd_installer import CrdState, apply_crd, check_foreign_crd, wait_established
from shoal.controller_runtime.labels import with_install_labels
from shoal.controller_runtime.metrics import Metrics
from shoal.dialects.framework import DIALECT, crd
from shoal.kube.kinds import CUSTOM_RESOURCE_DEFINITION, SERVICE_ACCOUNT
from shoal.kube.objects import Obj
from shoal.operator.job_kinds import status_model_of, without_status
from shoal.operator.reconciler import JobReconciler


async def test_a_framework_runs_where_the_status_is_a_plain_field() -> None:
    cluster = await EmbeddedCluster.open(":memory:")
    theirs = DIALECT.crd()
    del theirs["spec"]["versions"][0]["subresources"]
    await cluster.create(CUSTOM_RESOURCE_DEFINITION, theirs)
    await wait_established(cluster, theirs["metadata"]["name"])
    standing = await apply_crd(cluster, with_install_labels(DIALECT.crd()))
    assert standing == CrdState(
        theirs["metadata"]["name"], "left alone", has_status=False,
        remark="it is not Shoal's and stays as it is; "
        "it has no status subresource, so the status is written with the job",
    )  # fmt: skip
    dialect = without_status(DIALECT)
    loop = JobReconciler(cluster, dialect, clock=SystemClock(), metrics=Metrics(CollectorRegistry()))
    running = asyncio.create_task(loop.run())
    try:
        async with HollowNodes(cluster).running():
            await cluster.create(SERVICE_ACCOUNT, {"metadata": {"name": "default"}}, "default")
            await cluster.create(dialect.kind, fw("plain", role(number=2, fate=exits(0, after=0.05))), "default")
            async for event in cluster.watch(dialect.kind, "default", initial_events=True):
                status = event.object.get("status") or {}
                if status.get("state") == "Completed":
                    break
        assert status["attemptStatus"]["completionStatus"]["type"]["name"] == "Succeeded"
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await cluster.close()


LOOSE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
BARE = {"type": "object", "properties": {"state": {"type": "string"}}}


@pytest.mark.parametrize("status", [LOOSE, crd.status_model()])
def test_a_status_that_keeps_all_fields_is_as_good_as_ours(status: Obj) -> None:
    assert _remark(status) == "it is not Shoal's and stays as it is"


def test_a_status_that_loses_fields_is_told() -> None:
    assert _remark(BARE) == (
        "it is not Shoal's and stays as it is; it drops fields that Shoal knows: .status.startTime, "
        ".status.runTime, .status.completionTime, .status.transitionTime, .status.retryPolicyStatus and 1 more"
    )


def _remark(status: Obj) -> str:
    theirs = DIALECT.crd()
    theirs["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"] = status
    return check_foreign_crd(theirs, DIALECT.crd(), status_model_of(DIALECT, DIALECT.crd())).remark
