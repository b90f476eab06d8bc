"""Claims of a class that waits for the first pod: the node first, then the volume, then the pod."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kit.scheduled_cluster import NS, Scheduled, scheduled
from shoal.cluster.client import PatchType
from shoal.cluster.fault_injection import Faults, calls
from shoal.controllers.persistent_volumes import PersistentVolumeController
from shoal.kube.errors import ApiError, conflict
from shoal.kube.kinds import NODE, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, POD, STORAGE_CLASS
from shoal.kube.objects import Obj, annotations_of, at_path, name_of
from shoal.scheduler.cache.volume_claims import VolumeClaims
from shoal.scheduler.effects.dispatcher import Dispatcher, Request
from shoal.scheduler.planner.volume_matching import NO_PROVISIONER, SELECTED_NODE

MODES = ["ReadWriteOnce"]


@asynccontextmanager
async def storing(folder: Path, *, provisioner: str = "acme.io/disks", **more: Any) -> AsyncIterator[Scheduled]:
    """Two nodes, a class that waits, and whoever binds claims and volumes in a cluster of our own."""
    async with scheduled(**more) as it:
        for name in ("a", "b"):
            await it.node(name, cpu=4, labels={"kubernetes.io/hostname": name})
        late = {"provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}
        await it.cluster.create(STORAGE_CLASS, {"metadata": {"name": "late"}, **late})
        loop = asyncio.create_task(PersistentVolumeController(it.cluster, folder).run())
        try:
            yield it
        finally:
            loop.cancel()
            await asyncio.gather(loop, return_exceptions=True)


async def claim(it: Scheduled, name: str) -> None:
    spec = {"accessModes": MODES, "storageClassName": "late", "resources": {"requests": {"storage": "1Gi"}}}
    await it.cluster.create(PERSISTENT_VOLUME_CLAIM, {"metadata": {"name": name}, "spec": spec}, NS)
    await it.rest()


async def disk(it: Scheduled, name: str, *, on: str, size: str = "1Gi") -> None:
    """A volume that lies on one node."""
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [on]}]}
    affinity = {"required": {"nodeSelectorTerms": [term]}}
    spec = {"accessModes": MODES, "storageClassName": "late", "capacity": {"storage": size}, "nodeAffinity": affinity}
    made = {"metadata": {"name": name}, "spec": {**spec, "local": {"path": "/disk"}}}
    await it.cluster.create(PERSISTENT_VOLUME, made)
    await it.rest()


async def gang(it: Scheduled, count: int, *claims: str, **more: Any) -> None:
    """Each pod with a claim of its own."""
    await it.group("g", count)
    for number, name in enumerate(claims):
        volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]
        await it.pods("g", 1, first=number, volumes=volumes, **more)


async def of_claims(it: Scheduled) -> dict[str, str]:
    found = (await it.cluster.list(PERSISTENT_VOLUME_CLAIM, NS)).items
    return {each["metadata"]["name"]: at_path(each, "spec", "volumeName", default="") for each in found}


def story(it: Scheduled) -> list[tuple[str, str]]:
    told = [(call.verb, call.kind.kind) for call in it.written]
    return [each for each in told if each[1] != "PodGroup" and each != ("patch", "Pod") and each[1] != "Queue"]


async def test_a_volume_is_made_for_the_node_of_the_first_pod_before_the_pod_is_bound(tmp_path: Path) -> None:
    async with storing(tmp_path) as it:
        await claim(it, "data")
        assert await of_claims(it) == {"data": ""}
        await gang(it, 1, "data")
        assert await it.places() == {"g-0": "a"}
        made = await it.cluster.get(PERSISTENT_VOLUME_CLAIM, "data", NS)
        assert (annotations_of(made)[SELECTED_NODE], made["status"]["phase"]) == ("a", "Bound")
        assert story(it) == [("patch", "PersistentVolumeClaim"), ("bind", "Pod")]


async def test_pods_of_a_gang_follow_the_disks_that_fit_and_never_want_the_same(tmp_path: Path) -> None:
    async with storing(tmp_path, provisioner=NO_PROVISIONER) as it:
        await disk(it, "on-a", on="a")
        await disk(it, "on-b", on="b")
        await disk(it, "small-on-b", on="b", size="1Mi")
        for number in range(2):
            await claim(it, f"data-{number}")
        await gang(it, 2, "data-0", "data-1")
        assert await it.places() == {"g-0": "a", "g-1": "b"}
        assert await of_claims(it) == {"data-0": "on-a", "data-1": "on-b"}
        patches = 2 * [("patch", "PersistentVolume")]
        assert story(it) == [*patches, ("bind", "Pod"), ("bind", "Pod")]


async def test_pods_that_get_disks_are_not_read_again_for_each_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, read = VolumeClaims.of, Counter[str]()

    def counted(self: VolumeClaims, pod: Obj) -> Any:
        read[name_of(pod)] += 1
        return reading(self, pod)

    async with storing(tmp_path, provisioner=NO_PROVISIONER) as it:
        for number in range(8):
            await disk(it, f"disk-{number}", on="ab"[number % 2])
            await claim(it, f"data-{number}")
        monkeypatch.setattr(VolumeClaims, "of", counted)
        await gang(it, 8, *(f"data-{number}" for number in range(8)))
        assert (await it.placed(), read) == ([f"g-{n}" for n in range(8)], Counter({f"g-{n}": 1 for n in range(8)}))


async def test_a_gang_for_which_one_disk_is_missing_takes_none(tmp_path: Path) -> None:
    async with storing(tmp_path, provisioner=NO_PROVISIONER) as it:
        await disk(it, "on-a", on="a")
        await disk(it, "on-b", on="b")
        for number in range(3):
            await claim(it, f"data-{number}")
        await gang(it, 3, "data-0", "data-1", "data-2")
        await it.rest(10)
        words = "no free volume satisfies the claim data-2 (1Gi of class late), and no provisioner creates one"
        assert await it.told("g") == ("Unschedulable", "NotEnoughResources", words)
        assert (await it.placed(), story(it)) == ([], [])
        await disk(it, "third", on="b")
        assert await it.placed() == ["g-0", "g-1", "g-2"]
        assert set((await of_claims(it)).values()) == {"on-a", "on-b", "third"}


async def test_a_pod_that_does_not_fit_where_the_only_disk_lies_waits_there(tmp_path: Path) -> None:
    async with storing(tmp_path, provisioner=NO_PROVISIONER) as it:
        await it.pod("big", cpu=4, nodeSelector={"kubernetes.io/hostname": "b"})
        await disk(it, "on-b", on="b")
        await claim(it, "data")
        await gang(it, 1, "data")
        assert (await it.told("g"))[2] == (
            "needs 1 cpu, the most free is 0 of 4 on node b; 1 node cannot access the pod's volumes"
        )


async def test_a_node_for_which_no_volume_can_be_made_is_given_back_and_tried_later(tmp_path: Path) -> None:
    async with scheduled() as it:
        await it.node("a")
        late = {"provisioner": "acme.io/disks", "volumeBindingMode": "WaitForFirstConsumer"}
        await it.cluster.create(STORAGE_CLASS, {"metadata": {"name": "late"}, **late})
        await claim(it, "data")
        await gang(it, 1, "data")
        sentence = "a node is assigned to the pod, and the volume of data is being prepared"
        assert await it.pod_told("g-0") == ("False", "Queued", sentence)
        back = {"metadata": {"annotations": {SELECTED_NODE: None}}}
        await it.cluster.patch(PERSISTENT_VOLUME_CLAIM, "data", NS, patch=back, patch_type=PatchType.MERGE)
        await it.rest(1)
        words = "binding the claim data to a volume failed and is retried soon: "
        assert (await it.told("g"))[2] == f"{words}the provisioner made no volume for the chosen node"
        assert story(it) == [("patch", "PersistentVolumeClaim")]
        await it.rest(2)
        assert story(it) == 2 * [("patch", "PersistentVolumeClaim")]


async def chosen(it: Scheduled) -> str:
    return annotations_of(await it.cluster.get(PERSISTENT_VOLUME_CLAIM, "data", NS)).get(SELECTED_NODE, "")


@asynccontextmanager
async def slow() -> AsyncIterator[Scheduled]:
    """Two nodes, a claim that a pod wants, and whoever should make its volume does not answer."""
    async with scheduled() as it:
        for name in ("a", "b"):
            await it.node(name)
        late = {"provisioner": "acme.io/disks", "volumeBindingMode": "WaitForFirstConsumer"}
        await it.cluster.create(STORAGE_CLASS, {"metadata": {"name": "late"}, **late})
        await claim(it, "data")
        await gang(it, 1, "data")
        assert await chosen(it) == "a"
        yield it


async def test_a_node_that_goes_before_its_volume_was_made_is_not_waited_for() -> None:
    async with slow() as it:
        await it.cluster.delete(NODE, "a")
        await it.rest(1)
        words = "binding the claim data to a volume failed and is retried soon: the node a that was chosen has gone"
        assert (await chosen(it), await it.told("g")) == ("", ("Unschedulable", "NotEnoughResources", words))
        await it.rest(1)
        assert await chosen(it) == "b"


async def test_a_node_for_which_no_volume_is_made_in_time_is_left() -> None:
    async with slow() as it:
        await it.cluster.patch(NODE, "a", patch={"spec": {"unschedulable": True}})
        await it.rest(599)
        assert await chosen(it) == "a"
        await it.rest(1)
        assert await chosen(it) == ""
        await it.rest(2)
        assert await chosen(it) == "b"


async def test_a_node_that_went_while_nobody_planned_ties_no_claim() -> None:
    async with slow() as it:
        await it.kill()
        await it.cluster.delete(NODE, "a")
        await it.start()
        assert await chosen(it) == "b"


async def test_the_next_scheduler_goes_on_with_what_one_that_died_has_chosen(tmp_path: Path) -> None:
    faults = Faults().kill(calls("bind", POD))
    async with storing(tmp_path, faults=faults) as it:
        await claim(it, "data")
        await gang(it, 1, "data")
        assert await it.placed() == []
        await it.kill()
        await it.start()
        assert await it.places() == {"g-0": "a"}
        assert story(it) == [("patch", "PersistentVolumeClaim"), ("bind", "Pod"), ("bind", "Pod")]


async def test_a_disk_that_somebody_else_changed_meanwhile_is_looked_at_again(tmp_path: Path) -> None:
    faults = Faults().fail(calls("patch", PERSISTENT_VOLUME), conflict(PERSISTENT_VOLUME, "on-b", "it has changed"))
    async with storing(tmp_path, provisioner=NO_PROVISIONER, faults=faults) as it:
        await disk(it, "on-b", on="b")
        await claim(it, "data")
        await gang(it, 1, "data")
        assert (await it.placed(), story(it)) == ([], [("patch", "PersistentVolume")])
        await it.rest(1)
        assert await it.places() == {"g-0": "b"}
        assert story(it) == [*(2 * [("patch", "PersistentVolume")]), ("bind", "Pod")]


async def test_a_gang_that_lost_one_disk_to_somebody_unties_the_claims_that_others_were_made_for() -> None:
    faults = Faults().fail(calls("patch", PERSISTENT_VOLUME), conflict(PERSISTENT_VOLUME, "on-b", "it has changed"))
    async with scheduled(faults) as it:
        await it.node("a", cpu=1)
        await it.node("b", cpu=1, labels={"kubernetes.io/hostname": "b"})
        late = {"provisioner": "acme.io/disks", "volumeBindingMode": "WaitForFirstConsumer"}
        await it.cluster.create(STORAGE_CLASS, {"metadata": {"name": "late"}, **late})
        await claim(it, "data")
        await disk(it, "on-b", on="b")
        await claim(it, "fast")
        await gang(it, 2, "data", "fast")
        made, taken = ("patch", "PersistentVolumeClaim"), ("patch", "PersistentVolume")
        assert (await chosen(it), story(it)) == ("", [made, taken, made])
        await it.rest(2)
        assert (await chosen(it), story(it)[3:]) == ("a", [made, taken])


@pytest.mark.parametrize("provisioner", ["acme.io/disks", NO_PROVISIONER], ids=["made", "chosen"])
async def test_who_may_not_write_a_claim_or_a_disk_says_so_and_asks_less_and_less(
    tmp_path: Path, provisioner: str
) -> None:
    kinds = (PERSISTENT_VOLUME_CLAIM, PERSISTENT_VOLUME)
    refusal = ApiError(403, "Forbidden", "a webhook says no")
    faults = Faults().fail(lambda call: call.verb == "patch" and call.kind in kinds, refusal, times=None)
    async with storing(tmp_path, provisioner=provisioner, faults=faults) as it:
        await disk(it, "on-b", on="b", size="1Gi" if provisioner == NO_PROVISIONER else "1Mi")
        await claim(it, "data")
        await gang(it, 1, "data")
        await it.rest(6)
        words = "binding the claim data to a volume failed and is retried soon: a webhook says no"
        assert await it.pod_told("g-0") == ("False", "Unschedulable", words)
        await it.rest(594)
        assert len(story(it)) == 9  # after 2, 4, 8, … seconds


@pytest.mark.parametrize("provisioner", ["acme.io/disks", NO_PROVISIONER], ids=["made", "chosen"])
@pytest.mark.parametrize("write", range(1, 15))
async def test_killed_at_any_write_every_claim_has_a_volume_of_its_own(
    tmp_path: Path, write: int, provisioner: str
) -> None:
    """Queues and groups are written too, so that some of these moments are before the first claim."""
    async with storing(tmp_path, provisioner=provisioner, faults=Faults().kill_at_write(write)) as it:
        it.reborn = True
        if provisioner == NO_PROVISIONER:
            await disk(it, "on-a", on="a")
            await disk(it, "on-b", on="b")
        for number in range(2):
            await claim(it, f"data-{number}")
        await gang(it, 2, "data-0", "data-1")
        await it.rest(60)
        assert (await it.placed(), len(set((await of_claims(it)).values()) - {""})) == (["g-0", "g-1"], 2)


async def test_a_gang_whose_volumes_cannot_be_begun_is_planned_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit, broken = Dispatcher.submit, list[bool]()

    def break_once(self: Dispatcher, request: Request) -> None:
        if not broken:
            broken.append(True)
            raise ValueError("no such request")
        submit(self, request)

    async with storing(tmp_path) as it:
        await claim(it, "data")
        monkeypatch.setattr(Dispatcher, "submit", break_once)
        await gang(it, 1, "data")
        assert (await it.places(), await of_claims(it)) == ({"g-0": ""}, {"data": ""})
        await it.rest(2)
        assert await it.places() == {"g-0": "a"}
        assert (broken, len(it.lives)) == ([True], 1)
