"""Queues and PodGroups that contradict themselves or each other are refused where we are the API server."""

from __future__ import annotations

from typing import Any

import pytest

from kit.founded import founded
from shoal.cluster.embedded import EmbeddedCluster
from shoal.dialects.gangs import POD_GROUP, QUEUE
from shoal.dialects.volcano import DIALECT
from shoal.kube.errors import ApiError
from shoal.kube.objects import Obj
from shoal.operator.scheduler.admission import admit


async def checked(**queues: Obj) -> EmbeddedCluster:
    cluster = founded(0, DIALECT)
    admit(cluster.machinery)
    for name, spec in queues.items():
        await cluster.embedded.create(QUEUE, {"metadata": {"name": name}, "spec": spec})
    return cluster.embedded


async def group(cluster: EmbeddedCluster, **spec: Any) -> None:
    await cluster.create(POD_GROUP, {"metadata": {"name": "g"}, "spec": {"minMember": 1, **spec}}, "default")


WRONG = [
    pytest.param(
        {"guarantee": {"resource": {"cpu": "2"}}}, "guarantee of cpu is 2 and deserved 0", id="kept for nothing"
    ),
    pytest.param(
        {"deserved": {"cpu": "3"}, "capability": {"cpu": "2"}}, "deserved of cpu is 3 and capability 2", id="more"
    ),
    pytest.param({"capability": {"cpu": "-1"}}, "capability of cpu is below zero", id="negative"),
    pytest.param({"parent": "nobody"}, "to be below nobody, which does not exist", id="orphan"),
    pytest.param({"parent": "q"}, "would be below itself", id="its own parent"),
    pytest.param({"capability": {"cpu": "lots"}}, "quantities must match", id="no amount"),
]


@pytest.mark.parametrize(("spec", "words"), WRONG)
async def test_a_queue_that_makes_no_sense_is_refused(spec: Obj, words: str) -> None:
    cluster = await checked()
    with pytest.raises(ApiError, match=words):
        await cluster.create(QUEUE, {"metadata": {"name": "q"}, "spec": spec})


GROUPS = [
    pytest.param({"queue": "nowhere"}, "there is no queue nowhere; create it or name another", id="missing queue"),
    pytest.param({"queue": "dept"}, "queue dept has queues below it", id="a parent"),
    pytest.param({"minResources": {"cpu": "-1"}}, "below zero", id="negative"),
    pytest.param(
        {"networkTopology": {"highestTierAllowed": 1, "highestTierName": "rack"}}, "give one of them", id="two limits"
    ),
]


@pytest.mark.parametrize(("spec", "words"), GROUPS)
async def test_a_group_that_makes_no_sense_is_refused(spec: Obj, words: str) -> None:
    cluster = await checked(dept={}, team={"parent": "dept"})
    with pytest.raises(ApiError, match=words):
        await group(cluster, **spec)


async def test_a_closed_queue_takes_no_new_group_and_what_is_there_can_still_be_told_of() -> None:
    cluster = await checked(team={})
    await group(cluster, queue="team")
    await cluster.patch(QUEUE, "team", patch={"status": {"state": "Closed"}}, subresource="status")
    await cluster.patch(POD_GROUP, "g", "default", patch={"status": {"phase": "Inqueue"}})
    with pytest.raises(ApiError, match="queue team is closed and takes nothing new; open it or name another"):
        await cluster.create(POD_GROUP, {"metadata": {"name": "late"}, "spec": {"queue": "team"}}, "default")
