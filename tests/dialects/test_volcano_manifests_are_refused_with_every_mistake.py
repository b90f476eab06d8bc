"""What a Volcano Job may not say, and in which words it is refused; what is filled in (scenarios 1 to 6)."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.cluster.apimachinery import MEMORY, Machinery
from shoal.cluster.clock import VirtualClock
from shoal.dialects.dialect import definitions_of
from shoal.dialects.volcano import DIALECT
from shoal.dialects.volcano.validation import MUTABLE, admit, validate_in_cluster
from shoal.kube.errors import ApiError
from shoal.kube.kinds import CUSTOM_RESOURCE_DEFINITION
from shoal.kube.objects import Obj
from shoal.kube.patching.json_values import clone
from shoal.operator.dialect_registration import admit as guard
from shoal.scheduler.api.pod_groups import QUEUE

POD: Obj = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "x"}]}}


def task(name: str = "worker", replicas: int = 1, **more: Any) -> Obj:
    return {"name": name, "replicas": replicas, "template": clone(POD), **more}


def job(*tasks: Obj, name: str = "a", **spec: Any) -> Obj:
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"tasks": list(tasks), **spec},
    }


def said(manifest: Obj) -> list[str]:
    return [str(cause) for cause in admit(manifest)]


def policies(*several: Obj) -> list[str]:
    return said(job(task(), policies=list(several)))


def test_1_what_is_left_out_is_filled_in():
    written = job({"replicas": 2, "template": POD}, {"replicas": 3, "template": POD})
    spec = DIALECT.default(written)["spec"]
    assert (spec["minAvailable"], spec["queue"], spec["maxRetry"], spec["schedulerName"]) == (
        5,
        "default",
        3,
        "volcano",
    )
    assert [(each["name"], each["minAvailable"], each["maxRetry"]) for each in spec["tasks"]] == [
        ("default0", 2, 3),
        ("default1", 3, 3),
    ]
    assert DIALECT.default(DIALECT.default(written)) == DIALECT.default(written)


@pytest.mark.parametrize(
    ("written", "plugins"),
    [
        ({"pytorch": []}, {"pytorch": [], "svc": []}),
        ({"mpi": []}, {"mpi": [], "ssh": [], "svc": []}),
        ({"svc": ["--publish-not-ready-addresses"], "ray": []}, {"svc": ["--publish-not-ready-addresses"], "ray": []}),
    ],
)
def test_plugins_bring_what_they_need(written: Obj, plugins: Obj):
    assert DIALECT.default(job(task(), plugins=written))["spec"]["plugins"] == plugins


def test_the_host_network_has_its_own_names():
    spec = {**POD["spec"], "hostNetwork": True}
    made = DIALECT.default(job({"name": "a", "replicas": 1, "template": {"spec": spec}}))
    assert made["spec"]["tasks"][0]["template"]["spec"]["dnsPolicy"] == "ClusterFirstWithHostNet"


@pytest.mark.parametrize("manifest", [job(), {**job(), "spec": None}, {**job(), "spec": {"tasks": None}}])
def test_a_job_without_tasks_is_refused(manifest: Obj):
    assert said(manifest) == ["spec.tasks: Required value: No task specified in job spec"]


SEVERAL: dict[str, tuple[Obj, list[str]]] = {
    "text for a number": (
        job(task(replicas="two", minAvailable=3), task(), minAvailable=7, plugins={"magic": []}),  # type: ignore[arg-type]
        [
            'spec.tasks[0].replicas: Invalid value: "two": must be an integer: a task has from 0 to 10000 pods',
            "spec.tasks: Duplicate value: duplicated task name: give every task its own",
            "spec.plugins[magic]: unable to find job plugin: magic",
        ],
    ),
    "a task that is none": (
        job("worker", task(replicas=1, minAvailable=2), minAvailable=1),  # type: ignore[arg-type]
        [
            'spec.tasks[0]: Invalid value: "worker": must be an object',
            "spec.tasks[1].minAvailable: Invalid value: 'minAvailable' is greater than 'replicas'",
        ],
    ),
    "a policy in words": (
        job(task(policies=["restart", {"event": "PodFaild", "action": "RestartJob"}])),
        [
            'spec.tasks[0].policies[0]: Invalid value: "restart": must be an object',
            'spec.tasks[0].policies[1].event: Unsupported value: "PodFaild"',
        ],
    ),
    "half a partition": (
        job(task(replicas=4, partitionPolicy={"totalPartitions": "2"}), queue="Not_a_queue"),
        [
            'spec.tasks[0].partitionPolicy.totalPartitions: Invalid value: "2": must be an integer',
            "spec.tasks[0].partitionPolicy.partitionSize: Required value",
            'spec.queue: Invalid value: "Not_a_queue"',
        ],
    ),
    "a number in a list of names": (
        job(task(dependsOn={"name": [3, "nobody"]}), maxRetry=-1),
        [
            "spec.tasks[0].dependsOn.name[0]: Invalid value: 3: must be text; put it in quotes",
            "spec.maxRetry: Invalid value: -1: must be 0 or more",
            "spec: job has dependencies between tasks, but they form no DAG",
        ],
    ),
}


@pytest.mark.parametrize("case", SEVERAL)
def test_a_slip_of_the_pen_hides_no_other_mistake(case: str):
    manifest, words = SEVERAL[case]
    found = said(manifest)
    assert [told[: len(start)] for told, start in zip(found, words, strict=True)] == words


def test_2_a_task_cannot_need_more_pods_than_it_has():
    assert said(job(task(replicas=2, minAvailable=3), minAvailable=2)) == [
        "spec.tasks[0].minAvailable: Invalid value: 'minAvailable' is greater than 'replicas': "
        "lower it or raise replicas"
    ]


def test_3_both_faults_are_in_one_message():
    assert said(job(task(replicas=2), task(replicas=3), minAvailable=6)) == [
        "spec.minAvailable: Invalid value: job 'minAvailable' is greater than total replicas: "
        "lower it or raise replicas",
        "spec.tasks: Duplicate value: duplicated task name: give every task its own",
    ]


RESTART = {"event": "PodFailed", "action": "RestartJob"}


@pytest.mark.parametrize(
    ("several", "words"),
    [
        ([RESTART, {**RESTART, "action": "AbortJob"}], ["spec.policies: Duplicate value: duplicate event"]),
        (
            [{**RESTART, "event": "*"}, RESTART],
            ["spec.policies: Invalid value: if there is * here, there must be no other event"],
        ),
        (
            [{**RESTART, "exitCode": 3}],
            ["spec.policies[0]: Invalid value: must not specify event and exitCode simultaneously"],
        ),
        ([{"action": "RestartJob", "exitCode": 0}], ["spec.policies[0].exitCode: Invalid value: 0 is not a valid"]),
        ([{"action": "RestartJob"}], ["spec.policies[0]: Required value: either event, events or exitCode"]),
        ([{"event": "OutOfSync", "action": "RestartJob"}], ['spec.policies[0].event: Unsupported value: "OutOfSync"']),
        (
            [{"event": "PodRunning", "action": "RestartJob"}],
            ['spec.policies[0].event: Unsupported value: "PodRunning"'],
        ),
        ([{"event": "PodFailed", "action": "SyncJob"}], ['spec.policies[0].action: Unsupported value: "SyncJob"']),
        ([{"exitCode": 3, "action": "EnqueueJob"}], ['spec.policies[0].action: Unsupported value: "EnqueueJob"']),
        ([{"event": "PodFailed"}], ["spec.policies[0].action: Required value: say what should happen"]),
        (
            [{"exitCode": 3, "action": "AbortJob"}, {"exitCode": 3, "action": "RestartJob"}],
            ["spec.policies: Duplicate value: duplicate exitCode"],
        ),
        (
            [{**RESTART, "timeout": "soon"}],
            ['spec.policies[0].timeout: Invalid value: "soon": must be a length of time'],
        ),
    ],
    ids=lambda value: None if isinstance(value, list) and isinstance(value[0], dict) else str(value)[:60],
)
def test_5_policies_are_refused(several: list[Obj], words: list[str]):
    found = policies(*several)
    assert len(found) == len(words)
    assert all(told.startswith(start) for told, start in zip(found, words, strict=True)), found


@pytest.mark.parametrize(
    ("tasks", "words"),
    [
        ([("a", ["b"]), ("b", ["a"])], "the tasks wait for each other"),
        ([("a", ["nobody"]), ("b", [])], "task a depends on nobody, which is no task of this job"),
        ([("a", ["a"])], "the tasks wait for each other: a -> a"),
    ],
)
def test_6_tasks_that_wait_in_a_circle_are_no_dag(tasks: list[tuple[str, list[str]]], words: str):
    (found,) = said(job(*(task(name, dependsOn={"name": after}) for name, after in tasks)))
    assert found.startswith("spec: job has dependencies between tasks, but they form no DAG: ")
    assert words in found


MISTAKES: dict[str, tuple[Obj, list[str]]] = {
    "an unknown plugin": (
        job(task(), plugins={"magic": []}),
        ["spec.plugins[magic]: unable to find job plugin: magic; there are: env, svc, ssh, tensorflow, mpi, pytorch"],
    ),
    "a port that is none": (
        job(task("master"), plugins={"pytorch": ["--port=99999"]}),
        ["spec.plugins[pytorch]: pytorch: --port must be a number from 1 to 65535, not '99999'"],
    ),
    "mpi without its master": (
        job(task("worker"), plugins={"mpi": []}),
        ["spec.plugins[mpi]: the specified mpi master task was not found: there is no task 'master'"],
    ),
    "a pod nobody could name": (
        job(task("w" * 40, replicas=1000), name="j" * 30),
        [f"metadata.name: the pod {'j' * 30}-{'w' * 40}-999 would have no valid name: must be no more than 63"],
    ),
    "a container without a name": (
        job({"name": "a", "replicas": 1, "template": {"spec": {"containers": [{"image": "x"}]}}}),
        ["spec.tasks[0].template.spec.containers[0].name: Required value"],
    ),
    "no template": (job({"name": "a", "replicas": 1}), ["spec.tasks[0].template.spec: Required value"]),
    "partitions that do not add up": (
        job(task(replicas=5, partitionPolicy={"totalPartitions": 2, "partitionSize": 2})),
        ["spec.tasks[0].partitionPolicy: Invalid value: totalPartitions x partitionSize must be the task's replicas"],
    ),
    "both limits of a topology": (
        job(task(), networkTopology={"highestTierAllowed": 1, "highestTierName": "rack"}),
        ["spec.networkTopology: Invalid value: highestTierAllowed and highestTierName exclude each other"],
    ),
    "parts of cores with a NUMA policy": (
        job(task(topologyPolicy="restricted")),
        ["spec.tasks[0].template.spec.containers[0].resources.requests.cpu: Invalid value: null: topologyPolicy"],
    ),
    "a volume without a place": (
        job(task(), volumes=[{"volumeClaimName": "data"}]),
        ["spec.volumes[0].mountPath: Required value"],
    ),
    "a volume in two places at once": (
        job(task(), volumes=[{"mountPath": "/a:/b", "volumeClaimName": "data"}]),
        ["spec.volumes[0].mountPath: Invalid value: \"/a:/b\": must not contain ':'"],
    ),
    "two volumes in one place": (
        job(task(), volumes=[{"mountPath": "/a", "volumeClaimName": name} for name in ("x", "y")]),
        ['spec.volumes[1].mountPath: Duplicate value: "/a": duplicated mountPath'],
    ),
    "a volume of nothing": (
        job(task(), volumes=[{"mountPath": "/a"}]),
        ["spec.volumes[0]: Required value: either volumeClaim or volumeClaimName must be specified"],
    ),
    "a claim that is there and to be made": (
        job(task(), volumes=[{"mountPath": "/a", "volumeClaimName": "data", "volumeClaim": {}}]),
        ["spec.volumes[0]: conflict: if you want to use an existing claim, leave volumeClaim out"],
    ),
    "negative numbers": (
        job(task(replicas=-1), maxRetry=-1, minSuccess=0),
        [
            "spec.tasks[0].replicas: Invalid value: -1: must be 0 or more",
            "spec.maxRetry: Invalid value: -1: must be 0 or more",
            "spec.minSuccess: Invalid value: 0: must be 1 or more",
        ],
    ),
    "text for a number": (
        job({**task(), "replicas": "two"}),
        ['spec.tasks[0].replicas: Invalid value: "two": must be an integer'],
    ),
    "a queue that cannot exist": (
        job(task(), queue="Not A Queue"),
        ['spec.queue: Invalid value: "Not A Queue": a lowercase RFC 1123 subdomain'],
    ),
}


@pytest.mark.parametrize(("manifest", "words"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_named(manifest: Obj, words: list[str]):
    found = said(manifest)
    assert len(found) == len(words), found
    assert all(told.startswith(start) for told, start in zip(found, words, strict=True)), found


def queue(name: str, *, parent: str = "root", state: str = "Open") -> Obj:
    return {"metadata": {"name": name}, "spec": {"parent": parent}, "status": {"state": state}}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("default", None),
        (
            "closed",
            "can only submit job to queue with state `Open`, it is `Closed`; open it with a Command whose action is "
            "OpenQueue, or name another",
        ),
        ("missing", "unable to find job queue: there is no such queue; create it or name another"),
        ("root", "can not submit job to root queue: choose a leaf"),
        ("research", "can only submit job to leaf queue, this one has children: vision"),
    ],
)
def test_4_a_job_enters_only_an_open_leaf(name: str, words: str | None):
    queues = [queue("root"), queue("default"), queue("research"), queue("vision", parent="research")]
    queues.append(queue("closed", state="Closed"))
    found = [str(cause) for cause in validate_in_cluster(job(task(), queue=name), lambda _: queues)]
    assert found == ([] if words is None else [f'spec.queue: Invalid value: "{name}": {words}'])


def test_a_cluster_of_our_own_asks_for_the_queue():
    machinery = Machinery.open(MEMORY, clock=VirtualClock())
    guard(machinery, [DIALECT])
    for definition in definitions_of(DIALECT):
        machinery.create(CUSTOM_RESOURCE_DEFINITION, "", definition)
    machinery.create(QUEUE, "", {"metadata": {"name": "default"}, "spec": {}})
    machinery.create(DIALECT.kind, "default", job(task(), name="good"))
    with pytest.raises(ApiError, match="unable to find job queue"):
        machinery.create(DIALECT.kind, "default", job(task(), name="bad", queue="nowhere"))


SCALED = job(task(replicas=4, minAvailable=4), minAvailable=4, priorityClassName="high")


@pytest.mark.parametrize(
    ("new", "words"),
    [
        (SCALED, []),
        (job(task(replicas=2, maxRetry=5)), [f"spec: Forbidden: {MUTABLE}"]),
        (job(task(replicas=2), queue="other"), [f"spec: Forbidden: {MUTABLE}"]),
        (job(task(replicas=2), ttlSecondsAfterFinished=3), [f"spec: Forbidden: {MUTABLE}"]),
        (job(task(replicas=2), task("more")), ["spec.tasks: Forbidden: job updates may not add or remove tasks"]),
        (job(task("other", replicas=2)), ["spec.tasks: Forbidden: job updates may not add or remove tasks"]),
    ],
)
def test_sizes_may_change_and_nothing_else(new: Obj, words: list[str]):
    assert [str(cause) for cause in admit(new, job(task(replicas=2)))] == words


def test_names_of_claims_may_be_written_into_the_spec():
    volume = {"mountPath": "/a", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}}
    before = job(task(), volumes=[volume])
    after = job(task(), volumes=[{**volume, "volumeClaimName": "a-pvc-0123456789ab"}])
    assert (admit(after, before), said(after)) == ([], [])


def test_whole_partitions_may_come_and_go():
    cut = {"totalPartitions": 2, "partitionSize": 2}
    before = job(task(replicas=4, partitionPolicy=cut))
    assert admit(job(task(replicas=6, partitionPolicy={**cut, "totalPartitions": 3})), before) == []
    other = job(task(replicas=6, partitionPolicy={"totalPartitions": 2, "partitionSize": 3}))
    assert [str(cause) for cause in admit(other, before)] == [f"spec: Forbidden: {MUTABLE}"]
