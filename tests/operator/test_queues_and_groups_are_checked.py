"""Queues and PodGroups that contradict themselves or each other are refused, by our API server and by our webhook."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from kit.preloaded_cluster import founded
from kit.virtual_time import settled
from shoal.cluster.client import Cluster
from shoal.cluster.embedded import EmbeddedCluster
from shoal.dialects.volcano import DIALECT
from shoal.kube.errors import ApiError, forbidden
from shoal.kube.kinds import CUSTOM_RESOURCE_DEFINITION, POD, Kind
from shoal.kube.objects import Obj
from shoal.kube.structural_schema import kinds_of
from shoal.operator.webhook import answer, validating_kinds
from shoal.scheduler.api.pod_groups import BELOW_ZERO, ONE_TIER, POD_GROUP, QUEUE, definitions
from shoal.scheduler.queue_validation import admit

STANDING = ("commands.bus.volcano.sh", "jobs.batch.volcano.sh", "podgroups.scheduling.volcano.sh", QUEUE.resource)


async def checked(**queues: Obj) -> EmbeddedCluster:
    cluster = founded(0, DIALECT)
    admit(cluster.machinery)
    for name, spec in queues.items():
        await cluster.embedded.create(QUEUE, {"metadata": {"name": name}, "spec": spec})
    return cluster.embedded


async def reviewed(cluster: Cluster, kind: Kind, new: Obj | None, old: Obj | None = None) -> Obj:
    """What the webhook says of it."""
    named = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    review = {"request": {"uid": "u", "kind": named, "object": new, "oldObject": old}}
    response: Obj = (await answer(review, validating_kinds([]), cluster))["response"]
    return response


async def group(cluster: EmbeddedCluster, **spec: Any) -> None:
    await cluster.create(POD_GROUP, {"metadata": {"name": "g"}, "spec": {"minMember": 1, **spec}}, "default")


WRONG = [
    pytest.param(
        {"guarantee": {"resource": {"cpu": "2"}}}, "guarantee of cpu is 2, more than deserved 0", id="kept for nothing"
    ),
    pytest.param(
        {"deserved": {"cpu": "3"}, "capability": {"cpu": "2"}},
        "deserved of cpu is 3, more than capability 2",
        id="more",
    ),
    pytest.param(
        {"capability": {"cpu": "-1"}}, "spec.capability: Invalid value: an amount is below zero", id="negative"
    ),
    pytest.param({"parent": "nobody"}, "parent 'nobody' does not exist", id="orphan"),
    pytest.param({"parent": "q"}, "would be below itself", id="its own parent"),
    pytest.param({"capability": {"cpu": "lots"}}, "quantities must match", id="no amount"),
]


@pytest.mark.parametrize(("spec", "words"), WRONG)
async def test_a_queue_that_makes_no_sense_is_refused(spec: Obj, words: str) -> None:
    cluster = await checked()
    queue = {"metadata": {"name": "q"}, "spec": spec}
    asked = await reviewed(cluster, QUEUE, queue)
    with pytest.raises(ApiError, match=words) as refused:
        await cluster.create(QUEUE, queue)
    assert (asked["allowed"], asked["status"]) == (False, refused.value.status())


GROUPS = [
    pytest.param({"queue": "nowhere"}, "queue nowhere does not exist; create it or name another", id="missing queue"),
    pytest.param({"queue": "dept"}, "queue dept has queues below it", id="a parent"),
    pytest.param({"minResources": {"cpu": "-1"}}, "below zero", id="negative"),
    pytest.param(
        {"networkTopology": {"highestTierAllowed": 1, "highestTierName": "rack"}}, "give one of them", id="two limits"
    ),
]


@pytest.mark.parametrize(("spec", "words"), GROUPS)
async def test_a_group_that_makes_no_sense_is_refused(spec: Obj, words: str) -> None:
    cluster = await checked(dept={}, team={"parent": "dept"})
    asked = await reviewed(cluster, POD_GROUP, {"metadata": {"name": "g"}, "spec": {"minMember": 1, **spec}})
    with pytest.raises(ApiError, match=words) as refused:
        await group(cluster, **spec)
    assert (asked["allowed"], asked["status"]) == (False, refused.value.status())


async def test_a_closed_queue_takes_no_new_group_and_what_is_there_can_still_be_told_of() -> None:
    cluster = await checked(team={})
    await group(cluster, queue="team")
    await cluster.patch(QUEUE, "team", patch={"status": {"state": "Closed"}}, subresource="status")
    await cluster.patch(POD_GROUP, "g", "default", patch={"status": {"phase": "Inqueue"}})
    with pytest.raises(ApiError, match="queue team is closed and admits no PodGroups; open it or name another"):
        await cluster.create(POD_GROUP, {"metadata": {"name": "late"}, "spec": {"queue": "team"}}, "default")


KEPT = [
    pytest.param("default", "queue default always exists and cannot be deleted", id="everybody's"),
    pytest.param("dept", "queue dept has queues below it (team); delete those first", id="a parent"),
    pytest.param("team", "queue team runs pods; close it and wait until they have ended", id="in use"),
]


@pytest.mark.parametrize(("name", "words"), KEPT)
async def test_a_queue_that_is_needed_stays(name: str, words: str) -> None:
    cluster = await checked(default={}, dept={}, team={"parent": "dept"})
    await cluster.patch(QUEUE, "team", patch={"status": {"allocated": {"cpu": "1"}}}, subresource="status")
    meta = {"name": "p", "annotations": {"scheduling.volcano.sh/queue-name": "team"}}
    spec = {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}
    await cluster.create(POD, {"metadata": meta, "spec": spec}, "default")
    asked = await reviewed(cluster, QUEUE, None, await cluster.get(QUEUE, name))
    with pytest.raises(ApiError) as refused:
        await cluster.delete(QUEUE, name)
    assert refused.value.message == f'queues.scheduling.volcano.sh "{name}" is forbidden: {words}'
    assert (asked["allowed"], asked["status"]) == (False, refused.value.status())


async def test_a_queue_that_nobody_needs_goes_and_so_do_all_with_their_kind() -> None:
    cluster = await checked(default={}, idle={})
    assert await reviewed(cluster, QUEUE, None, await cluster.get(QUEUE, "idle")) == {"uid": "u", "allowed": True}
    await cluster.delete(QUEUE, "idle")
    await cluster.delete(CUSTOM_RESOURCE_DEFINITION, QUEUE.resource)
    await settled()
    assert [each["metadata"]["name"] for each in (await cluster.list(CUSTOM_RESOURCE_DEFINITION)).items] == [
        name for name in STANDING if name != QUEUE.resource
    ]


async def test_queues_that_cannot_be_seen_refuse_nobody() -> None:
    group = {"metadata": {"name": "g"}, "spec": {"queue": "nowhere"}}
    queue = {"metadata": {"name": "q"}, "spec": {"parent": "nobody"}}
    for kind, obj in ((POD_GROUP, group), (QUEUE, queue)):
        assert await reviewed(Blind(), kind, obj) == {"uid": "u", "allowed": True}  # type: ignore[arg-type]
    wrong = {"metadata": {"name": "q"}, "spec": {"capability": {"cpu": "-1"}}}
    assert (await reviewed(Blind(), QUEUE, wrong))["allowed"] is False  # type: ignore[arg-type]


class Blind:
    """A cluster whose queues nobody may see."""

    async def list(self, *_: Any, **__: Any) -> Any:
        raise forbidden(QUEUE, "", "they are none of your business")


def test_what_an_object_breaks_by_itself_is_said_by_every_api_server_alike() -> None:
    """The definitions carry the rules; a real API server plays them in tests/kubernetes."""
    rules = {kinds_of(each)[0].kind: _rules(each) for each in definitions()}
    assert rules == {
        "PodGroup": {BELOW_ZERO: 1, ONE_TIER: 2},
        "Queue": {
            BELOW_ZERO: 3,
            "'queue ' + self.metadata.name + ' would be below itself; choose another parent than ' "
            "+ self.metadata.name": 1,
        },
        "Command": {},
    }


def _rules(schema: Any) -> Counter[str]:
    """How often each sentence is in it."""
    found: Counter[str] = Counter()
    for key, value in schema.items() if isinstance(schema, dict) else enumerate(schema):
        if key == "x-kubernetes-validations":
            found.update(rule.get("message") or rule["messageExpression"] for rule in value)
        elif isinstance(value, dict | list):
            found += _rules(value)
    return found
