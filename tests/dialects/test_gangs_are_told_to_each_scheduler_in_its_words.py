"""One gang, told to every scheduler there is an adapter for: the object that stands for it, what becomes of a pod, what
cannot be said, and how each scheduler's answer reads."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from shoal.dialects.gang_backends import NAMES, backend, backend_by_label, kueue
from shoal.dialects.gang_backends.backend import GangStatus
from shoal.dialects.gang_backends.gang import GangRole, GangSpec, GangTopology
from shoal.engine.policies import Opens
from shoal.kube.kinds import PRIORITY_CLASS
from shoal.kube.objects import Obj

TEMPLATE: Obj = {
    "metadata": {"labels": {"paddle-job": "ctr"}, "name": "dropped"},
    "spec": {"containers": [{"name": "main", "image": "paddle", "resources": {"requests": {"cpu": "1"}}}]},
}
GANG = GangSpec(
    "ctr-u1",
    4,
    (GangRole("pserver", 2, 2, TEMPLATE), GangRole("trainer", 3, 2, TEMPLATE)),
    queue="research",
    priority_class="high",
    min_resources={"cpu": "4", "pods": "4"},
    schedule_timeout_seconds=90,
    topology=GangTopology(hard=False, tier=2),
)
POD: Obj = {
    "metadata": {"name": "ctr-trainer-0"},
    "spec": {"schedulerName": "volcano", "containers": [{"name": "main", "image": "paddle"}]},
}
VOLCANO_SPEC = {
    "minMember": 4,
    "minTaskMember": {"pserver": 2, "trainer": 2},
    "queue": "research",
    "minResources": {"cpu": "4", "pods": "4", "requests.cpu": "4", "count/pods": "4"},
    "priorityClassName": "high",
    "networkTopology": {"mode": "soft", "highestTierAllowed": 2},
}
SET = {
    "metadata": {"labels": {"paddle-job": "ctr"}},
    "spec": {**TEMPLATE["spec"], "priorityClassName": "high"},
}
SPECS: dict[str, tuple[str, Obj]] = {
    "shoal": ("scheduling.volcano.sh/v1beta1 PodGroup", VOLCANO_SPEC),
    "volcano": ("scheduling.volcano.sh/v1beta1 PodGroup", VOLCANO_SPEC),
    "coscheduling": (
        "scheduling.x-k8s.io/v1alpha1 PodGroup",
        {"minMember": 4, "minResources": {"cpu": "4", "pods": "4"}, "scheduleTimeoutSeconds": 90},
    ),
    "kueue": (
        "kueue.x-k8s.io/v1beta2 Workload",
        {
            "queueName": "research",
            "podSets": [
                {"name": "pserver", "count": 2, "template": SET},
                {"name": "trainer", "count": 3, "template": SET},
            ],
        },
    ),
    "native": ("scheduling.k8s.io/v1beta1 PodGroup", {"schedulingPolicy": {"gang": {"minCount": 4}}}),
}
JOINED: dict[str, Obj] = {
    "shoal": {
        "metadata": {"name": "ctr-trainer-0", "annotations": {"scheduling.k8s.io/group-name": "ctr-u1"}},
        "spec": {**POD["spec"], "schedulerName": "shoal"},
    },
    "volcano": {
        "metadata": {"name": "ctr-trainer-0", "annotations": {"scheduling.k8s.io/group-name": "ctr-u1"}},
        "spec": {**POD["spec"], "schedulerName": "volcano"},
    },
    "coscheduling": {
        "metadata": {"name": "ctr-trainer-0", "labels": {"scheduling.x-k8s.io/pod-group": "ctr-u1"}},
        "spec": {**POD["spec"], "schedulerName": "scheduler-plugins-scheduler", "priorityClassName": "high"},
    },
    "kueue": {"metadata": {"name": "ctr-trainer-0"}, "spec": {"containers": POD["spec"]["containers"]}},
    "native": {
        "metadata": {"name": "ctr-trainer-0"},
        "spec": {
            "containers": POD["spec"]["containers"],
            "schedulingGroup": {"podGroupName": "ctr-u1"},
            "priorityClassName": "high",
        },
    },
    "none": {"metadata": {"name": "ctr-trainer-0"}, "spec": {"containers": POD["spec"]["containers"]}},
}
NEAR = "how near to each other its pods have to be"
UNSAID: dict[str, tuple[str, ...]] = {
    "shoal": (),
    "volcano": (),
    "coscheduling": ("its queue research", "how many of each task it needs", NEAR),
    "kueue": ("that fewer pods would do: it waits for the quota of all", NEAR),
    "native": ("its queue research", "how many of each task it needs", NEAR),
    "none": ("that its pods belong together",),
}


def test_every_scheduler_is_in_these_tables():
    assert set(JOINED) == set(UNSAID) == {*SPECS, "none"} == set(NAMES)


@pytest.mark.parametrize("name", SPECS)
def test_a_gang_becomes_an_object(name: str):
    made = backend(name)
    assert made.kind is not None
    assert (f"{made.kind.api_version} {made.kind.kind}", made.spec(GANG)) == SPECS[name]


@pytest.mark.parametrize("name", JOINED)
def test_a_pod_becomes_a_member(name: str):
    pod = deepcopy(POD)
    backend(name).add_pod(pod, GANG)
    assert pod == JOINED[name]


@pytest.mark.parametrize("name", NAMES)
def test_a_scheduler_that_the_template_names_itself_stays(name: str):
    pod = deepcopy(POD)
    pod["spec"]["schedulerName"] = "my-own"
    backend(name).add_pod(pod, GANG)
    assert pod["spec"]["schedulerName"] == "my-own"


@pytest.mark.parametrize("name", NAMES)
def test_a_scheduler_of_another_name_may_be_chosen(name: str):
    pod = deepcopy(POD)
    backend(name, scheduler="second").add_pod(pod, GANG)
    assert pod["spec"]["schedulerName"] == "second"


@pytest.mark.parametrize("name", UNSAID)
def test_what_a_scheduler_cannot_be_told_is_said(name: str):
    assert backend(name).unsupported_fields(GANG) == UNSAID[name]


@pytest.mark.parametrize("name", NAMES)
def test_a_plain_gang_leaves_nothing_unsaid(name: str):
    plain = GangSpec("one", 1, (GangRole("worker", 1, 1),), queue="default")
    assert backend(name).unsupported_fields(plain) == ()


def test_pods_wait_for_admission_where_a_gang_is_let_in_as_a_whole():
    waiting = {name for name in NAMES if backend(name).opens_when is Opens.ADMITTED}
    assert waiting == {"shoal", "volcano", "kueue"}


def test_kueue_takes_the_queue_that_a_label_of_the_job_names():
    labelled = GangSpec(
        "one", 1, (GangRole("worker", 1, 1),), queue="default", labels={"kueue.x-k8s.io/queue-name": "mine"}
    )
    assert backend("kueue").spec(labelled)["queueName"] == "mine"


def test_kueue_takes_no_more_than_eight_kinds_of_pods():
    many = GangSpec("many", 9, tuple(GangRole(f"role-{number}", 1, 1) for number in range(9)))
    message = "Kueue takes at most 8 kinds of pods in one gang, and this one has 9: join some of them"
    assert [backend(name).rejection_reason(many) for name in ("kueue", "shoal")] == [message, ""]


def test_kueue_is_told_a_priority_by_its_number():
    looks = backend("kueue").cluster_lookups
    assert looks is not None
    made: Obj = {"spec": backend("kueue").spec(GANG)}
    assert looks.references(made) == ((PRIORITY_CLASS, "high"),)
    looks.complete(made, {(PRIORITY_CLASS, "high"): {"value": 1000}})
    assert made["spec"]["priority"] == 1000


def test_a_pod_is_fitted_to_the_flavors_that_kueue_granted():
    looks, spot = backend("kueue").cluster_lookups, kueue.flavor("v1beta2")
    assert looks is not None
    granted: Obj = {
        "status": {
            "admission": {
                "podSetAssignments": [
                    {"name": "pserver", "flavors": {"cpu": "on-demand"}},
                    {"name": "trainer", "flavors": {"cpu": "spot", "memory": "spot"}},
                ]
            },
            "admissionChecks": [{"podSetUpdates": [{"name": "trainer", "annotations": {"provisioned": "yes"}}]}],
        }
    }
    taint = {"key": "spot", "operator": "Exists"}
    sight = {(spot, "spot"): {"spec": {"nodeLabels": {"tier": "spot", "zone": "a"}, "tolerations": [taint]}}}
    pod: Obj = {"metadata": {"name": "x"}, "spec": {"nodeSelector": {"zone": "b"}}}
    assert looks.references(granted) == ((spot, "on-demand"), (spot, "spot"))
    looks.apply_to_pod(pod, "trainer", granted, sight)
    assert pod == {
        "metadata": {"name": "x", "annotations": {"provisioned": "yes"}},
        "spec": {"nodeSelector": {"zone": "b", "tier": "spot"}, "tolerations": [taint]},
    }


def test_a_gang_without_a_minimum_is_no_gang_to_kubernetes():
    assert backend("native").spec(GangSpec("loose", 0, ())) == {"schedulingPolicy": {"basic": {}}}


# --- answers -------------------------------------------------------------------------------------------------------


def conditions(**said: tuple[str, str]) -> Obj:
    listed = [{"type": kind, "status": status, "message": words} for kind, (status, words) in said.items()]
    return {"status": {"conditions": listed}}


LOOKED = "its scheduler has not looked at it yet"
FULL = "needs 4 cpu, 2 are free"
ANSWERS: dict[str, tuple[str, str, Obj, GangStatus]] = {
    "a new PodGroup": ("volcano", "", {}, GangStatus()),
    "one that has no room": (
        "volcano",
        "",
        {"status": {"phase": "Pending", **conditions(Unschedulable=("True", FULL))["status"]}},
        GangStatus(message=FULL),
    ),
    "one that is let in": ("shoal", "", {"status": {"phase": "Inqueue"}}, GangStatus(admitted=True)),
    "one that lost a part": (
        "volcano",
        "",
        {"status": {"phase": "Unknown"}},
        GangStatus(admitted=True, partially_placed=True),
    ),
    "a new group of pods that gather": ("coscheduling", "", {}, GangStatus(message=LOOKED)),
    "pods that gather": (
        "coscheduling",
        "",
        {"status": {"phase": "Pending"}},
        GangStatus(message="its pods wait for each other"),
    ),
    "pods that have gathered": ("coscheduling", "", {"status": {"phase": "Running"}}, GangStatus(admitted=True)),
    "pods of which some are stuck": (
        "coscheduling",
        "",
        {"status": {"phase": "Unknown"}},
        GangStatus(partially_placed=True, message="a part of its pods is placed, and the rest cannot be"),
    ),
    "a new Workload": ("kueue", "", {}, GangStatus(message="Kueue has not looked at it yet")),
    "one without quota": ("kueue", "v1beta1", conditions(QuotaReserved=("False", FULL)), GangStatus(message=FULL)),
    "one that waits for a check": (
        "kueue",
        "",
        conditions(QuotaReserved=("True", "Quota reserved"), Admitted=("False", "waits for a check")),
        GangStatus(message="waits for a check"),
    ),
    "one that is admitted": ("kueue", "", conditions(Admitted=("True", "Admitted by q")), GangStatus(admitted=True)),
    "one that is evicted": (
        "kueue",
        "",
        conditions(Admitted=("True", "Admitted by q"), Evicted=("True", "Preempted")),
        GangStatus(evicted=True, message="Preempted"),
    ),
    "a new group of Kubernetes": ("native", "", {}, GangStatus(message=LOOKED)),
    "one it cannot place": (
        "native",
        "v1alpha2",
        conditions(PodGroupScheduled=("False", FULL)),
        GangStatus(message=FULL),
    ),
    "one it has placed": (
        "native",
        "v1beta1",
        conditions(PodGroupInitiallyScheduled=("True", "Scheduled")),
        GangStatus(admitted=True),
    ),
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_an_answer_is_understood(answer: tuple[str, str, Obj, Any]):
    name, version, obj, meaning = answer
    assert backend(name, version=version).status_of(obj) == meaning


def said(are_up: bool) -> Obj:
    words = ("PodsReady", "As many pods are up as the job needs") if are_up else ("PodsMissing", "Pods are missing")
    claim = {"type": "PodsReady", "status": str(are_up), "reason": words[0], "message": words[1]}
    return {"conditions": [{**claim, "lastTransitionTime": "now"}]}


HEARD: dict[str, tuple[Obj, bool, Obj | None]] = {
    "one that waits": (conditions(QuotaReserved=("False", FULL)), False, None),
    "one whose pods start": (conditions(Admitted=("True", "")), False, None),
    "one whose pods are up": (conditions(Admitted=("True", "")), True, said(are_up=True)),
    "one that was told so": (conditions(Admitted=("True", ""), PodsReady=("True", "")), True, None),
    "one that lost a pod": (conditions(Admitted=("True", ""), PodsReady=("True", "")), False, said(are_up=False)),
    "one that has to go": (conditions(Admitted=("True", ""), Evicted=("True", "")), True, None),
}


@pytest.mark.parametrize(("obj", "are_up", "told"), HEARD.values(), ids=HEARD)
def test_kueue_hears_once_that_pods_are_up(obj: Obj, are_up: bool, told: Obj | None):
    answer = backend("kueue").acknowledge_pods
    assert answer is not None
    assert answer(obj, are_up, "now") == told


@pytest.mark.parametrize("name", NAMES)
def test_a_label_on_a_job_says_whom_its_gang_was_handed_to(name: str):
    made = backend_by_label(backend(name).label)
    assert made is not None
    assert (made.name, made.kind) == (name, backend(name).kind)


@pytest.mark.parametrize("label", ["", "nobody", "kueue", "kueue/v9", "native/"])
def test_a_label_nobody_wrote_says_nothing(label: str):
    assert backend_by_label(label) is None
