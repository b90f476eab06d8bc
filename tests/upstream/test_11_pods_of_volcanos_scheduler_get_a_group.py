"""Pods with `schedulerName: volcano` that name no PodGroup get one, and their budgets are validated."""

from __future__ import annotations

from typing import Any

import pytest

from kit.scheduled_cluster import NS, Scheduled
from shoal.cluster.apimachinery import MEMORY, Machinery
from shoal.cluster.informer import Informer
from shoal.kube.errors import ApiError
from shoal.kube.kinds import NAMESPACE, POD, REPLICA_SET
from shoal.kube.objects import Obj, annotations_of, name_of, uid_of
from shoal.scheduler.api.pod_groups import GROUP_NAME, POD_GROUP
from shoal.scheduler.pod_group_controller import PodGroupController
from shoal.scheduler.queue_validation import admit
from shoal.scheduler.scope import SchedulerScope
from shoal.scheduler.transforms import slim_pod

SCOPE = SchedulerScope(implicit_groups=True)


class World(Scheduled):
    """With the controller beside the scheduler."""

    def begin(self, faults: Any) -> None:
        super().begin(faults)
        program = self._founded.new_client()
        pods = Informer(program, POD, trim=lambda event: slim_pod(event.object), clock=self.clock)
        loop = PodGroupController(program, pods, scope=self.scope, clock=self.clock)
        self._play(pods.run())
        self._play(loop.run())

    async def groups(self) -> list[Obj]:
        return list((await self.cluster.list(POD_GROUP, NS)).items)

    async def group_of(self, pod: str) -> str:
        return annotations_of(await self.cluster.get(POD, pod, NS)).get(GROUP_NAME, "")

    async def replica_set(self, name: str, **notes: str) -> Obj:
        """Without anything that creates its pods."""
        labels = {"app": name}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "x"}]}}
        spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
        return await self.cluster.create(
            REPLICA_SET, {"metadata": {"name": name, "annotations": notes}, "spec": spec}, NS
        )

    async def pod_of(self, owner: Obj, name: str) -> None:
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name_of(owner), "uid": uid_of(owner)}
        made = pod(name)
        made["metadata"]["ownerReferences"] = [{**reference, "controller": True}]
        await self.cluster.create(POD, made, NS)
        await self.rest(2)


def pod(name: str, **notes: str) -> Obj:
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "1"}}}
    return {
        "metadata": {"name": name, "annotations": notes},
        "spec": {"schedulerName": "volcano", "containers": [container]},
    }


async def opened(world: World) -> World:
    await world.opened()
    await world.node("node-1")
    return world


@pytest.fixture
async def world():
    made = await opened(World(scope=SCOPE))
    yield made
    await made.closed()


async def test_11_a_bare_pod_has_a_group_of_one(world: World) -> None:
    made = await world.cluster.create(POD, pod("a"), NS)
    await world.rest(2)
    (group,) = await world.groups()
    assert name_of(group) == f"podgroup-{uid_of(made)}" == await world.group_of("a")
    asked = {"cpu": "1", "requests.cpu": "1", "pods": "1", "count/pods": "1"}
    assert group["spec"] == {"minMember": 1, "minResources": asked, "queue": "default"}
    assert await world.placed() == ["a"]
    assert group["status"]["phase"] == "Running"


async def test_11_pods_of_one_controller_share_a_group_and_wait_for_its_minimum(world: World) -> None:
    owner = await world.replica_set("r", **{"scheduling.volcano.sh/group-min-member": "2"})
    await world.pod_of(owner, "r-0")
    assert await world.placed() == []
    await world.pod_of(owner, "r-1")
    assert await world.placed() == ["r-0", "r-1"]
    (group,) = await world.groups()
    assert (name_of(group), group["spec"]["minMember"]) == (f"podgroup-{uid_of(owner)}", 2)
    assert await world.group_of("r-0") == await world.group_of("r-1") == name_of(group)


@pytest.mark.parametrize("text", ["", "some", "-1", str(2**31), "9" * 5000], ids=lambda text: text[:12])
async def test_11_a_minimum_that_is_no_count_is_one(world: World, text: str) -> None:
    owner = await world.replica_set("r", **{"scheduling.volcano.sh/group-min-member": text})
    await world.pod_of(owner, "r-0")
    assert [group["spec"]["minMember"] for group in await world.groups()] == [1]


async def test_11_the_queue_is_that_of_the_pod_or_of_its_namespace(world: World) -> None:
    await world.queue("research")
    await world.queue("urgent")
    note = {"scheduling.volcano.sh/queue-name": "research"}
    await world.cluster.patch(NAMESPACE, NS, patch={"metadata": {"annotations": note}})
    await world.cluster.create(POD, pod("a"), NS)
    await world.cluster.create(POD, pod("b", **{"scheduling.volcano.sh/queue-name": "urgent"}), NS)
    await world.rest(2)
    assert sorted(group["spec"]["queue"] for group in await world.groups()) == ["research", "urgent"]


async def test_11_a_group_goes_with_its_last_pod(world: World) -> None:
    owner = await world.replica_set("r")
    await world.pod_of(owner, "r-0")
    await world.pod_of(owner, "r-1")
    await world.cluster.delete(POD, "r-0", NS)
    await world.rest(2)
    assert len(await world.groups()) == 1
    await world.cluster.delete(POD, "r-1", NS)
    await world.rest(2)
    assert await world.groups() == []


async def test_11_pods_of_other_schedulers_and_pods_with_a_group_are_left_alone(world: World) -> None:
    await world.gang("g", 1, cpu=1)
    await world.cluster.create(POD, pod("h", **{GROUP_NAME: "g"}), NS)
    await world.pod("plain")
    await world.rest(2)
    assert await world.placed() == ["g-0", "h", "plain"]
    assert [name_of(group) for group in await world.groups()] == ["g"]


@pytest.mark.parametrize(
    ("notes", "count"),
    [
        pytest.param({"volcano.sh/jdb-min-available": "2"}, 0, id="a count"),
        pytest.param({"volcano.sh/jdb-max-unavailable": "99%"}, 0, id="a percentage"),
        pytest.param({"volcano.sh/jdb-min-available": "0"}, 1, id="zero"),
        pytest.param({"volcano.sh/jdb-min-available": "-1"}, 1, id="negative"),
        pytest.param({"volcano.sh/jdb-min-available": "100%"}, 1, id="everything"),
        pytest.param({"volcano.sh/jdb-min-available": "0%"}, 1, id="zero percent"),
        pytest.param({"volcano.sh/jdb-max-unavailable": "some"}, 1, id="no number"),
        pytest.param({"volcano.sh/jdb-min-available": "1", "volcano.sh/jdb-max-unavailable": "1"}, 1, id="both"),
    ],
)
def test_11_the_budget_of_a_pod_is_validated(notes: dict[str, str], count: int):
    machinery = Machinery.open(MEMORY)
    admit(machinery, sees_queues=False)
    if not count:
        machinery.create(POD, "default", pod("a", **notes))
        return
    with pytest.raises(ApiError) as rejected:
        machinery.create(POD, "default", pod("a", **notes))
    assert [cause.field.startswith("metadata.annotations") for cause in rejected.value.causes] == [True] * count
    other = pod("a", **notes)
    other["spec"]["schedulerName"] = "default-scheduler"
    machinery.create(POD, "default", other)
