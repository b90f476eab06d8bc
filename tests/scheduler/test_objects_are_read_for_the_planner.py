"""PodGroups, Queues and pods as the API has them, in the planner's words."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.kube.objects import Key
from shoal.kube.selectors import from_labels
from shoal.scheduler.planner.from_objects import group_from, pod_from, queue_from, seconds
from shoal.scheduler.planner.gang_types import PodGroup, PodGroupPhase, Queue, SubgroupPolicy, TopologyConstraint
from shoal.scheduler.planner.node_and_pod_types import AffinityTerm, Pod, PodState, SpreadConstraint

BORN = "1970-01-01T00:01:40Z"


def meta(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "namespace": "team", "uid": f"uid-{name}", "creationTimestamp": BORN, **more}


def test_a_pod_group() -> None:
    obj = {
        "metadata": meta("g", annotations={"volcano.sh/sla-waiting-time": "1h30m"}),
        "spec": {
            "minMember": 3,
            "minTaskMember": {"ps": 1, "worker": 2},
            "minResources": {"cpu": "1500m"},
            "queue": "research",
            "networkTopology": {"mode": "hard", "highestTierAllowed": 2},
            "subGroupPolicy": [{"name": "part", "subGroupSize": 2, "minSubGroups": 1, "matchLabelKeys": ["p"]}],
        },
        "status": {"phase": "Running"},
    }
    assert group_from(obj, priority=7) == PodGroup(
        Key("team", "g"),
        uid="uid-g",
        created=100.0,
        min_member=3,
        min_roles={"ps": 1, "worker": 2},
        min_resources={"cpu": 1500},
        queue="research",
        priority=7,
        phase=PodGroupPhase.RUNNING,
        closeness=TopologyConstraint(hard=True, tier=2),
        subgroups=(SubgroupPolicy("part", size=2, minimum=1, label_keys=("p",)),),
        sla_seconds=5400.0,
        ran=True,
    )


def test_a_queue() -> None:
    obj = {
        "metadata": {"name": "q", "creationTimestamp": BORN},
        "spec": {
            "weight": 4,
            "capability": {"cpu": "8"},
            "guarantee": {"resource": {"cpu": "1"}},
            "reclaimable": False,
            "dequeueStrategy": "fifo",
        },
        "status": {"state": "Closing"},
    }
    assert queue_from(obj) == Queue(
        "q",
        created=100.0,
        weight=4,
        capability={"cpu": 8000},
        guarantee={"cpu": 1000},
        reclaimable=False,
        fifo=True,
        open=False,
    )


def test_a_pod_of_a_gang() -> None:
    selector = {"matchLabels": {"app": "x"}}
    term = {"labelSelector": selector, "topologyKey": "host"}
    annotations = {"scheduling.k8s.io/group-name": "g", "volcano.sh/task-spec": "ps", "volcano.sh/preemptable": "false"}
    obj = {
        "metadata": meta("p", annotations=annotations, labels={"app": "x", "volcano.sh/task-index": "2"}),
        "spec": {
            "nodeName": "n",
            "containers": [
                {"resources": {"requests": {"cpu": "1"}}, "ports": [{"hostPort": 80}, {"containerPort": 8080}]}
            ],
            "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
            "topologySpreadConstraints": [{"labelSelector": selector, "topologyKey": "zone", "maxSkew": 2}],
        },
        "status": {"phase": "Running", "startTime": BORN},
    }
    chosen, team = from_labels({"app": "x"}), frozenset({"team"})
    assert pod_from(obj) == Pod(
        Key("team", "p"),
        "uid-p",
        {"cpu": 1000, "pods": 1000},
        created=BORN,
        labels={"app": "x", "volcano.sh/task-index": "2"},
        group=Key("team", "g"),
        role="ps",
        index=2,
        node="n",
        state=PodState.RUNNING,
        since=100.0,
        preemptable=False,
        recreated=False,
        ports=frozenset({"TCP/80"}),
        apart=(AffinityTerm(chosen, "host", team),),
        spreads=(SpreadConstraint(AffinityTerm(chosen, "zone", team), 2),),
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [("90s", 90.0), ("1h30m", 5400.0), ("1.5m", 90.0), ("500ms", 0.5), ("", None), ("soon", None), ("5", None)],
)
def test_durations(text: str, expected: float | None) -> None:
    assert seconds(text) == expected
