"""Pods and groups that wait carry a sentence, and only those that more nodes would help are called Unschedulable."""

from __future__ import annotations

from kit.scheduled_cluster import NS, scheduled
from shoal.cluster.client import PatchType
from shoal.kube.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM
from shoal.scheduler.api.pod_groups import POD_GROUP


async def test_27_a_group_that_its_queue_holds_back_has_no_unschedulable_pod() -> None:
    async with scheduled() as it:
        await it.node("a", cpu=4)
        await it.queue("small", capability={"cpu": "1"})
        await it.gang("quota", 2, queue="small", minResources={"cpu": "2"})
        await it.gang("large", 5)
        assert [(await it.pod_told(name))[1] for name in ("quota-0", "large-0")] == ["Queued", "Unschedulable"]
        assert await it.told("quota") == (
            "Unschedulable",
            "QueueQuota",
            "needs 2 cpu, and queue small may hold 1 in total, "
            "so raise its capability, request less, or name another queue",
        )


async def test_5_too_few_pods_is_a_reason_of_its_own() -> None:
    async with scheduled() as it:
        await it.node("a", cpu=4)
        await it.gang("three", 2, least=3)
        await it.rest(5)
        assert await it.told("three") == (
            "Unschedulable",
            "NotEnoughTasks",
            "2 of the 3 pods the gang needs at once exist",
        )
        assert await it.placed() == []


async def test_each_sentence_is_one_event_about_whom_it_is() -> None:
    async with scheduled() as it:
        await it.node("a", cpu=1)
        await it.pods("", 1, cpu=3)
        await it.gang("two", 2)
        await it.rest(10)
        gang = f"waiting: {(await it.pod_told('two-0'))[2]}"
        assert await it.events("FailedScheduling") == [
            ("lone-0", "waiting: needs 3 cpu, the most free is 1 of 1 on node a"),
            ("two-0", gang),
        ]
        assert await it.events("Unschedulable") == [("two", gang)]
        before = len(it.written)
        await it.rest(60)
        assert len(it.written) == before


async def test_a_group_counts_its_pods() -> None:
    async with scheduled() as it:
        await it.node("a", cpu=4)
        await it.gang("three", 3)
        await it.becomes("three-0", "Failed")
        await it.ends("three-1")
        await it.rest(2)
        status = (await it.cluster.get(POD_GROUP, "three", NS))["status"]
        assert [status[word] for word in ("running", "succeeded", "failed")] == [1, 1, 1]


async def test_a_pod_waits_for_its_claim_and_the_claim_for_its_volume_and_then_follows_that() -> None:
    async with scheduled() as it:
        await it.node("a", labels={"zone": "1"})
        await it.node("b", labels={"zone": "2"})
        volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
        await it.pod("reads", volumes=volumes)
        await it.rest()
        assert (await it.pod_told("reads"))[2] == ("the claim data does not exist; create it or remove it from the pod")
        storage = {"accessModes": ["ReadWriteOnce"]}
        claim = {**storage, "resources": {"requests": {"storage": "1Gi"}}}
        await it.cluster.create(PERSISTENT_VOLUME_CLAIM, {"metadata": {"name": "data"}, "spec": claim}, NS)
        await it.rest(5)
        assert ((await it.pod_told("reads"))[2], await it.placed()) == (
            "the claim data has no volume yet",
            [],
        )
        await it.cluster.patch(PERSISTENT_VOLUME_CLAIM, "data", NS, patch={"spec": {"volumeName": "v"}})
        await it.rest(5)
        assert ((await it.pod_told("reads"))[2], await it.placed()) == (
            "the volume v of the claim data does not exist",
            [],
        )
        term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["2"]}]}
        volume = {
            **storage,
            "capacity": {"storage": "1Gi"},
            "hostPath": {"path": "/data"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        }
        await it.cluster.create(PERSISTENT_VOLUME, {"metadata": {"name": "v"}, "spec": volume})
        await it.rest()
        assert await it.places() == {"reads": "b"}


async def test_objects_that_make_no_sense_are_explained_and_stop_nobody() -> None:
    async with scheduled() as it:
        await it.node("a", cpu=4)
        await it.forget_rules(POD_GROUP)
        await it.gang("negative", 1, minResources={"cpu": "-4"})
        await it.gang("words", 1, minResources={"cpu": "many"})
        await it.gang("absurd", 1, minResources={"cpu": "9" * 30})
        await it.pod("endless", cpu="9" * 18)
        await it.gang("sound", 1)
        assert await it.placed() == ["sound-0"]
        found = {name: (await it.told(name))[1:] for name in ("negative", "words", "absurd")}
        assert found["negative"] == (
            "Invalid", "PodGroup negative cannot be read: minResources of cpu is below zero; give zero or more",
        )  # fmt: skip
        assert found["words"][0] == "Invalid"
        assert found["absurd"][0] == "TooLarge"
        await it.cluster.patch(
            POD_GROUP, "negative", NS, patch={"spec": {"minResources": {"cpu": "1"}}}, patch_type=PatchType.MERGE
        )
        await it.rest()
        assert await it.placed() == ["negative-0", "sound-0"]
