"""Every single cause of waiting has a sentence of its own, and its cure starts the job by its event alone: no time
passes after it, and nothing else happens in the cluster. The table in docs/why-waiting.md is this one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from kit.planner_board import GPU, HOST, RACK
from kit.scheduled_cluster import NS, TASK, Scheduled, scheduled
from shoal.cluster.client import PatchType
from shoal.kube.kinds import (
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    POD_DISRUPTION_BUDGET,
    PRIORITY_CLASS,
    RESOURCE_QUOTA,
)
from shoal.kube.objects import at_path, name_of
from shoal.scheduler.api.pod_groups import GROUP_NAME, POD_GROUP, QUEUE

DOCS = Path(__file__).parents[2] / "docs" / "why-waiting.md"
ZONE = "topology.kubernetes.io/zone"
WEB = {"app": "web"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
BESIDE_WEB = [{"labelSelector": {"matchLabels": WEB}, "topologyKey": HOST}]
APART = {"podAntiAffinity": {REQUIRED: BESIDE_WEB}}
IN_ZONE_2 = {"nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["2"]}]}]}
STORAGE = {"accessModes": ["ReadWriteOnce"]}

Step = Callable[[Scheduled], Awaitable[None]]


class Cause(NamedTuple):
    begins: Step
    sentence: str
    cure: Step
    advice: str
    settings: Mapping[str, Any] = MappingProxyType({})  # of the scheduler


# What there is, and what changes


async def nodes(it: Scheduled, count: int = 1, **more: Any) -> None:
    for name in "abc"[:count]:
        await it.node(name, labels={HOST: name}, **more)


async def job(it: Scheduled, count: int = 1, *, group: dict[str, Any] | None = None, **spec: Any) -> None:
    """A gang of `count` pods: `group` are fields of the group, the others are those of `pods`."""
    await it.group("job", count, **(group or {}))
    await pods(it, *(f"job-{number}" for number in range(count)), group="job", **spec)


async def pods(it: Scheduled, *names: str, group: str = "", labels: dict[str, str] | None = None, **more: Any) -> None:
    notes = ({GROUP_NAME: group} if group else {}) | more.pop("notes", {})
    requests = {"cpu": "1"} | more.pop("requests", {})
    ports = [{"containerPort": port, "hostPort": port} for port in more.pop("ports", ())]
    resources = {"requests": requests, "limits": {name: amount for name, amount in requests.items() if "/" in name}}
    container = {"name": "main", "image": "x", "resources": resources, "ports": ports}
    for name in names:
        metadata = {"name": name, "annotations": notes, "labels": labels or {}}
        await it.cluster.create(POD, {"metadata": metadata, "spec": {"containers": [container], **more}}, NS)
    await it.rest()


async def node_changes(it: Scheduled, name: str = "a", **patch: Any) -> None:
    below = "status" if "status" in patch else ""
    await it.cluster.patch(NODE, name, patch=patch, patch_type=PatchType.MERGE, subresource=below)


async def labelled(it: Scheduled, **labels: str) -> None:
    await node_changes(it, metadata={"labels": labels})


async def queue_changes(it: Scheduled, name: str, **spec: Any) -> None:
    await it.cluster.patch(QUEUE, name, patch={"spec": spec}, patch_type=PatchType.MERGE)


async def claim(it: Scheduled) -> None:
    spec = {**STORAGE, "volumeName": "v", "resources": {"requests": {"storage": "1Gi"}}}
    await it.cluster.create(PERSISTENT_VOLUME_CLAIM, {"metadata": {"name": "data"}, "spec": spec}, NS)


async def volume(it: Scheduled, **spec: Any) -> None:
    made = {**STORAGE, "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/data"}, **spec}
    await it.cluster.create(PERSISTENT_VOLUME, {"metadata": {"name": "v"}, "spec": made})


async def budget_allows(it: Scheduled, pods: int) -> None:
    patch = {"status": {"disruptionsAllowed": pods, "observedGeneration": 1}}
    await it.cluster.patch(POD_DISRUPTION_BUDGET, "few", NS, patch=patch, subresource="status")


READS = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]


def ends(*names: str) -> Step:
    return lambda it: it.ends(*names)


def node_added(name: str, **more: Any) -> Step:
    return lambda it: it.node(name, **more)


# How each cause begins


async def no_cpu(it: Scheduled) -> None:
    await nodes(it)
    await pods(it, "old", requests={"cpu": "3"})
    await job(it, requests={"cpu": "2"})


async def no_memory(it: Scheduled) -> None:
    await nodes(it)
    await pods(it, "old", requests={"memory": "6Gi"})
    await job(it, requests={"memory": "4Gi"})


async def no_gpu(it: Scheduled) -> None:
    await nodes(it)
    await job(it, requests={GPU: "1"})


async def no_pod_left(it: Scheduled) -> None:
    await nodes(it, pods="1")
    await pods(it, "old")
    await job(it)


async def no_room_for_all(it: Scheduled) -> None:
    await nodes(it)
    await pods(it, "old", requests={"cpu": "2"})
    await job(it, 3)


async def no_node(it: Scheduled) -> None:
    await job(it)


async def node_selector(it: Scheduled) -> None:
    await nodes(it)
    await job(it, nodeSelector={"disk": "ssd"})


async def node_affinity(it: Scheduled) -> None:
    await nodes(it)
    await job(it, affinity={"nodeAffinity": {REQUIRED: IN_ZONE_2}})


async def taint(it: Scheduled) -> None:
    await nodes(it)
    await node_changes(it, spec={"taints": [{"key": "team", "value": "vision", "effect": "NoSchedule"}]})
    await job(it)


async def cordon(it: Scheduled) -> None:
    await nodes(it)
    await node_changes(it, spec={"unschedulable": True})
    await job(it)


async def not_ready(it: Scheduled) -> None:
    await nodes(it)
    await node_changes(it, status={"conditions": [{"type": "Ready", "status": "False"}]})
    await job(it)


async def ready(it: Scheduled) -> None:
    await node_changes(it, status={"conditions": [{"type": "Ready", "status": "True"}]})


async def host_port(it: Scheduled) -> None:
    await nodes(it, 3)
    await pods(it, "x", "y", "z", ports=[8080])
    await job(it, ports=[8080])


async def host_port_of_its_own(it: Scheduled) -> None:
    await nodes(it)
    await job(it, 2, ports=[8080])


async def pod_affinity(it: Scheduled) -> None:
    await nodes(it, 3)
    await job(it, affinity={"podAffinity": {REQUIRED: BESIDE_WEB}})


async def anti_affinity(it: Scheduled) -> None:
    await nodes(it, 3)
    await job(it, 4, labels=WEB, affinity=APART)


async def anti_affinity_of_others(it: Scheduled) -> None:
    await nodes(it)
    await pods(it, "old", affinity=APART)
    await job(it, labels=WEB)


async def spread(it: Scheduled) -> None:
    await it.node("a", labels={ZONE: "1"})
    await it.node("b", labels={ZONE: "2"})
    await pods(it, "old", requests={"cpu": "4"}, nodeSelector={ZONE: "2"})
    await pods(it, "first", labels=WEB)
    rule = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    await job(it, labels=WEB, topologySpreadConstraints=[{**rule, "labelSelector": {"matchLabels": WEB}}])


async def no_claim(it: Scheduled) -> None:
    await nodes(it)
    await volume(it)
    await job(it, volumes=READS)


async def volume_elsewhere(it: Scheduled) -> None:
    await it.node("a", labels={ZONE: "1"})
    await volume(it, nodeAffinity={"required": IN_ZONE_2})
    await claim(it)
    await job(it, volumes=READS)


async def namespace_quota(it: Scheduled) -> None:
    await nodes(it)
    made = {"metadata": {"name": "small"}, "spec": {"hard": {"requests.cpu": "2"}}}
    await it.cluster.create(RESOURCE_QUOTA, made, NS)
    await job(it, 2, group={"minResources": {"cpu": "3"}})


async def quota_raised(it: Scheduled) -> None:
    await it.cluster.patch(RESOURCE_QUOTA, "small", NS, patch={"spec": {"hard": {"requests.cpu": "8"}}})


async def queue_missing(it: Scheduled) -> None:
    await nodes(it)
    await job(it, group={"queue": "research"})


async def queue_closed(it: Scheduled) -> None:
    await nodes(it)
    await it.queue("research")
    await it.order("CloseQueue", "research")
    await job(it, group={"queue": "research"})


async def capability(it: Scheduled) -> None:
    await nodes(it)
    await it.queue("research", capability={"cpu": "1"})
    await job(it, 2, group={"queue": "research"})


async def guarantee(it: Scheduled) -> None:
    await nodes(it)
    await it.queue("research")
    await it.queue("prod", guarantee={"resource": {"cpu": "3"}})
    await job(it, 2, group={"queue": "research"})


async def cluster_full_of_groups(it: Scheduled) -> None:
    await nodes(it)
    await it.group("before", 3, minResources={"cpu": "3"})
    await job(it, 2, group={"minResources": {"cpu": "2"}})


async def before_is_deleted(it: Scheduled) -> None:
    await it.cluster.delete(POD_GROUP, "before", NS)


async def strict_order(it: Scheduled) -> None:
    await nodes(it)
    await it.queue("line", dequeueStrategy="fifo")
    await pods(it, "old", requests={"cpu": "2"})
    await it.group("before", 1, queue="line")
    await pods(it, "before-0", group="before", requests={"cpu": "4"})
    await it.rest(1)
    await job(it, group={"queue": "line"})


async def before_goes(it: Scheduled) -> None:
    await it.cluster.delete(POD, "before-0", NS)


async def too_few_pods(it: Scheduled) -> None:
    await nodes(it)
    await it.group("job", 3)
    await pods(it, "job-0", "job-1", group="job")


async def third_pod(it: Scheduled) -> None:
    await pods(it, "job-2", group="job")


async def too_few_of_a_task(it: Scheduled) -> None:
    await nodes(it)
    await it.group("job", 2, minTaskMember={"ps": 1, "worker": 1})
    await pods(it, "job-0", "job-1", group="job", notes={TASK: "worker"})


async def ps_pod(it: Scheduled) -> None:
    await pods(it, "job-2", group="job", notes={TASK: "ps"})


async def gates(it: Scheduled) -> None:
    await nodes(it)
    await job(it, 2, schedulingGates=[{"name": "example.com/data"}])


async def gates_removed(it: Scheduled) -> None:
    for name in ("job-0", "job-1"):
        await it.cluster.patch(POD, name, NS, patch={"spec": {"schedulingGates": None}})


async def no_group(it: Scheduled) -> None:
    await nodes(it)
    await pods(it, "job-0", group="job")


async def unreadable_group(it: Scheduled) -> None:
    await nodes(it)
    await it.forget_rules(POD_GROUP)
    await job(it, group={"minResources": {"cpu": "-4"}})


async def group_mended(it: Scheduled) -> None:
    patch = {"spec": {"minResources": {"cpu": "1"}}}
    await it.cluster.patch(POD_GROUP, "job", NS, patch=patch, patch_type=PatchType.MERGE)


NEAR = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}


async def no_domain(it: Scheduled) -> None:
    await nodes(it)
    await job(it, 2, group=NEAR)


async def unknown_tier(it: Scheduled) -> None:
    await it.node("a", labels={RACK: "r1"})
    await job(it, 2, group={"networkTopology": {"mode": "hard", "highestTierName": "row"}})


async def tier_known(it: Scheduled) -> None:
    patch = {"spec": {"networkTopology": {"highestTierName": "rack"}}}
    await it.cluster.patch(POD_GROUP, "job", NS, patch=patch, patch_type=PatchType.MERGE)


async def small_domains(it: Scheduled) -> None:
    await it.node("a", labels={RACK: "r1"})
    await it.node("b", labels={RACK: "r2"})
    await pods(it, "x", "y", requests={"cpu": "3"})
    await job(it, 2, group=NEAR)


async def budget(it: Scheduled) -> None:
    await it.cluster.create(PRIORITY_CLASS, {"metadata": {"name": "high"}, "value": 100})
    await nodes(it)
    spec = {"minAvailable": 1, "selector": {"matchLabels": WEB}}
    await it.cluster.create(POD_DISRUPTION_BUDGET, {"metadata": {"name": "few"}, "spec": spec}, NS)
    await budget_allows(it, 0)
    await it.group("low", 1)
    for number in range(4):
        await it.pod(f"low-{number}", notes={GROUP_NAME: "low"})
        await it.cluster.patch(POD, f"low-{number}", NS, patch={"metadata": {"labels": WEB}})
    await it.rest()
    await job(it, group={"priorityClassName": "high"}, priorityClassName="high")


NO_FIT = "the request would not fit even without other pods, so request less or add nodes"
NO_NODE = "a smaller request would not fit on any node either, so"
CAUSES: dict[str, Cause] = {
    "cpu": Cause(
        no_cpu, "needs 2 cpu, the most free is 1 of 4 on node a", ends("old"), "wait until a pod ends, or add a node"
    ),
    "memory": Cause(
        no_memory,
        "needs 4Gi memory, the most free is 2Gi of 8Gi on node a",
        ends("old"),
        "wait until a pod ends, or add a node",
    ),
    "GPUs": Cause(
        no_gpu,
        f"needs 1 nvidia.com/gpu, but no node that the pod can run on has any; {NO_FIT}",
        node_added("g", **{GPU: "1"}),
        "add a node with GPUs",
    ),
    "pods per node": Cause(
        no_pod_left,
        "node a already runs its maximum number of pods (1)",
        ends("old"),
        "wait until a pod ends, or add a node",
    ),
    "the gang is larger than what is free": Cause(
        no_room_for_all,
        "needs 3 pods at once, 2 would fit, 1 missing: "
        "needs 3 cpu, 2 of 4 are free, the most on one node is 2 on node a",
        ends("old"),
        "wait until a pod ends, or lower the minimum",
    ),
    "no node": Cause(no_node, f"the cluster has no node yet; {NO_NODE} add nodes", node_added("a"), "add a node"),
    "node selector": Cause(
        node_selector,
        f"1 node does not match the pod's node selector; {NO_NODE} label a node or change the node selector",
        lambda it: labelled(it, disk="ssd"),
        "`kubectl label node NAME disk=ssd`",
    ),
    "required node affinity": Cause(
        node_affinity,
        f"1 node does not match the pod's node affinity; {NO_NODE} label a node or change the node affinity",
        lambda it: labelled(it, **{ZONE: "2"}),
        "`kubectl label node NAME topology.kubernetes.io/zone=2`",
    ),
    "taint": Cause(
        taint,
        "1 node has the taint team=vision:NoSchedule, which the pod does not tolerate; "
        f"{NO_NODE} tolerate a taint or remove it",
        lambda it: node_changes(it, spec={"taints": None}),
        "`kubectl taint node NAME team-`",
    ),
    "cordoned node": Cause(
        cordon,
        f"1 node is cordoned; {NO_NODE} uncordon a node",
        lambda it: node_changes(it, spec={"unschedulable": None}),
        "`kubectl uncordon NAME`",
    ),
    "node not ready": Cause(
        not_ready, f"1 node is not ready; {NO_NODE} make a node ready again", ready, "`kubectl describe node NAME`"
    ),
    "host port": Cause(
        host_port,
        "host port 8080 is taken on all 3 nodes",
        ends("y"),
        "wait until a pod ends, or take another port",
    ),
    "host port of its own gang": Cause(
        host_port_of_its_own,
        "needs 2 pods at once, 1 would fit, 1 missing: host port 8080 is taken on the only node; " + NO_FIT,
        node_added("b"),
        "add a node, or let each pod take another port",
    ),
    "required pod affinity": Cause(
        pod_affinity,
        "required pod affinity: no pod with app=web is on any node",
        lambda it: pods(it, "web", labels=WEB),
        "start the pod that the affinity refers to",
    ),
    "required anti-affinity within the gang": Cause(
        anti_affinity,
        "needs 4 pods at once, 3 would fit, 1 missing: "
        f"required pod anti-affinity to pod with app=web, per {HOST}, excludes all 3 nodes; {NO_FIT}",
        node_added("d", labels={HOST: "d"}),
        "add a node, or lower the minimum",
    ),
    "required anti-affinity of another pod": Cause(
        anti_affinity_of_others,
        f"required pod anti-affinity of running pods, per {HOST}, excludes the only node",
        ends("old"),
        "wait until that pod ends, or add a node",
    ),
    "topology spread": Cause(
        spread,
        f"topology spread over {ZONE} with maxSkew 1 allows no more pods on 1 node; "
        "too few resources are free on 1 node",
        ends("old"),
        "make room in the other domains, or raise `maxSkew`",
    ),
    "no claim": Cause(
        no_claim, "the claim data does not exist; create it or remove it from the pod", claim, "create the claim"
    ),
    "volume in another zone": Cause(
        volume_elsewhere,
        f"1 node cannot access the pod's volumes; {NO_NODE} use volumes that a node can access",
        node_added("b", labels={ZONE: "2"}),
        "add a node in the zone of the volume",
    ),
    "quota of the namespace": Cause(
        namespace_quota,
        "needs 1 cpu, and quota small of namespace default allows 2, of which 2 are used",
        quota_raised,
        "have the ResourceQuota raised",
    ),
    "queue missing": Cause(
        queue_missing,
        "queue research does not exist; create it or name another",
        lambda it: it.queue("research"),
        "create the queue",
    ),
    "queue closed": Cause(
        queue_closed,
        "queue research is closed; the PodGroup is admitted when the queue is opened",
        lambda it: it.order("OpenQueue", "research"),
        "open the queue",
    ),
    "capability of the queue": Cause(
        capability,
        "needs 2 cpu, and queue research may hold 1 in total, "
        "so raise its capability, request less, or name another queue",
        lambda it: queue_changes(it, "research", capability={"cpu": "2"}),
        "raise the queue's `capability`",
    ),
    "guarantee of another queue": Cause(
        guarantee,
        "needs 2 cpu, and queue research may hold 1 in total, "
        "so lower the guarantees of other queues, request less, or name another queue",
        lambda it: queue_changes(it, "prod", guarantee={"resource": {"cpu": "1"}}),
        "lower the `guarantee` of the other queue",
    ),
    "groups before it": Cause(
        cluster_full_of_groups,
        "needs 2 cpu; admitted groups may request 4 in this cluster and already request 3",
        before_is_deleted,
        "wait until one of them ends, or add a node",
        {"overcommit": 1.0},
    ),
    "strict order": Cause(
        strict_order,
        "before is ahead in queue line, which admits strictly in order; 1 job ahead in queue line",
        before_goes,
        "wait, or use a queue that lets small jobs pass",
    ),
    "too few pods": Cause(
        too_few_pods,
        "2 of the 3 pods the gang needs at once exist",
        third_pod,
        "find out why the others were not created",
    ),
    "too few pods of a task": Cause(
        too_few_of_a_task,
        "0 of the 1 pods of ps the gang needs at once exist",
        ps_pod,
        "find out why the others were not created",
    ),
    "scheduling gate": Cause(
        gates,
        "0 of the 2 pods the gang needs at once have no scheduling gates; 2 pods have gates",
        gates_removed,
        "remove the gates",
    ),
    "PodGroup missing": Cause(
        no_group, "PodGroup job does not exist yet", lambda it: it.group("job", 1), "create the PodGroup"
    ),
    "invalid PodGroup": Cause(
        unreadable_group,
        "PodGroup job cannot be read: minResources of cpu is below zero; give zero or more",
        group_mended,
        "correct the PodGroup",
    ),
    "hard topology without a domain": Cause(
        no_domain,
        "needs 2 pods in one rack, but no node is in any rack",
        lambda it: labelled(it, **{RACK: "r1"}),
        "label the nodes with their rack, or create HyperNodes",
        {"tiers": (RACK,)},
    ),
    "hard topology with a tier name that no tier has": Cause(
        unknown_tier,
        "needs 2 pods in one topology domain, but no tier is named row: "
        "set tierName of HyperNodes to it or name another tier",
        tier_known,
        "use the name of an existing tier",
        {"tiers": (RACK,)},
    ),
    "hard topology without room in one domain": Cause(
        small_domains,
        "needs 2 cpu in one rack, the most free is 1 in rack r1",
        ends("x"),
        "wait until a pod ends, or allow a wider tier",
        {"tiers": (RACK,)},
    ),
    "disruption budget": Cause(
        budget,
        "needs 1 cpu, the most free is 0 of 4 on node a; "
        "the disruption budget few of namespace default protects pods that would be evicted",
        lambda it: budget_allows(it, 1),
        "wait until the budget allows it, or until a pod ends",
    ),
}


async def message(it: Scheduled) -> str:
    """The sentence about the group, or about its pod where there is no group."""
    if any(name_of(group) == "job" for group in (await it.cluster.list(POD_GROUP, NS)).items):
        return (await it.told("job"))[2]
    return (await it.pod_told("job-0"))[2]


async def started(it: Scheduled) -> bool:
    """Whether the minimum of the job has its nodes."""
    least = at_path(await it.cluster.get(POD_GROUP, "job", NS), "spec", "minMember")
    return len([name for name in await it.placed() if name.startswith("job-")]) >= least


@pytest.mark.parametrize("cause", CAUSES.values(), ids=CAUSES)
async def test_10_the_cause_is_named_and_its_cure_alone_starts_the_job(cause: Cause) -> None:
    async with scheduled(**cause.settings) as it:
        await cause.begins(it)
        await it.rest(6)  # sentences whose figures only change are gathered
        assert await message(it) == cause.sentence
        await cause.cure(it)
        await it.rest()
        assert await started(it)


def test_10_the_docs_have_the_same_table() -> None:
    section = DOCS.read_text().partition("## Every cause by itself\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")][1:]
    assert rows == [f"| {name} | `{cause.sentence}` | {cause.advice} |" for name, cause in CAUSES.items()]
