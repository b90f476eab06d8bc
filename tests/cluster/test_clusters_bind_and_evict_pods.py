"""Whatever the cluster is: pods are bound once, their status is written apart, and they leave in their time."""

from __future__ import annotations

from typing import Any

import pytest

from kit.cluster_backends import Place
from kit.cluster_objects import pod
from shoal.cluster.client import DeleteOptions, LogOptions, PatchType
from shoal.kube.errors import ApiError
from shoal.kube.kinds import POD
from shoal.kube.objects import uid_of


async def refused(awaitable: Any) -> tuple[int, str]:
    with pytest.raises(ApiError) as caught:
        await awaitable
    return caught.value.code, caught.value.reason


async def test_a_pod_is_bound_once_and_only_the_one_meant(place: Place) -> None:
    cluster, namespace = place.cluster, place.namespace
    made = await cluster.create(POD, pod("p"), namespace)
    other = cluster.bind("p", namespace, node="n1", uid="4a2b2c0e-0000-4000-8000-000000000000")
    assert await refused(other) == (409, "Conflict")
    await cluster.bind("p", namespace, node="n1", uid=uid_of(made))
    assert (await cluster.get(POD, "p", namespace))["spec"]["nodeName"] == "n1"
    assert await refused(cluster.bind("p", namespace, node="n2")) == (409, "Conflict")
    assert await refused(cluster.bind("q", namespace, node="n1")) == (404, "NotFound")


async def test_a_status_is_written_apart(place: Place) -> None:
    cluster, namespace = place.cluster, place.namespace
    await cluster.create(POD, pod("p"), namespace)
    status = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    both = {**status, "metadata": {"labels": {"seen": "no"}}}
    patched = await cluster.patch(POD, "p", namespace, patch=both, patch_type=PatchType.STRATEGIC, subresource="status")
    assert patched["status"]["phase"] == "Running"
    whole = await cluster.patch(POD, "p", namespace, patch={"status": {"phase": "Failed"}})
    assert whole["status"]["phase"] == "Running"


async def test_a_placed_pod_lingers_until_it_is_let_go(place: Place) -> None:
    cluster, namespace = place.cluster, place.namespace
    await cluster.create(POD, pod("p", grace=7), namespace)
    await cluster.bind("p", namespace, node="n1")
    lingering = await cluster.delete(POD, "p", namespace)
    assert lingering["metadata"]["deletionGracePeriodSeconds"] == 7
    await cluster.delete(POD, "p", namespace, DeleteOptions(grace_seconds=0))
    assert await refused(cluster.get(POD, "p", namespace)) == (404, "NotFound")


async def test_a_pod_that_is_not_there_has_no_log(place: Place) -> None:
    with pytest.raises(ApiError) as caught:
        async for _ in place.cluster.logs("p", place.namespace, LogOptions(container="main")):
            pass
    assert (caught.value.code, caught.value.reason) == (404, "NotFound")
