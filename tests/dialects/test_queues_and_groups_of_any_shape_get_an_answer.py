"""A Queue or a PodGroup of whatever shape gets an answer: the mistake in words with its path, no error of ours."""

from __future__ import annotations

from typing import Any

import pytest

from kit.malformed_objects import bent
from shoal.cluster.apimachinery import MEMORY, Machinery
from shoal.cluster.types import WriteOptions
from shoal.kube.errors import ApiError
from shoal.kube.kinds import CUSTOM_RESOURCE_DEFINITION, Kind
from shoal.kube.objects import Obj
from shoal.kube.patching.json_values import clone
from shoal.scheduler.api.pod_groups import POD_GROUP, QUEUE, definitions
from shoal.scheduler.queue_validation import admit, group_errors, queue_errors

NEAR = {"mode": "hard", "highestTierAllowed": 1}
CHOSEN = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["x"]}]}
A_QUEUE: Obj = {
    "metadata": {"name": "q"},
    "spec": {
        "weight": 2,
        "capability": {"cpu": "4", "memory": "1Gi"},
        "deserved": {"cpu": 2},
        "guarantee": {"resource": {"cpu": "1"}},
        "reclaimable": True,
        "priority": 1,
        "parent": "root",
        "dequeueStrategy": "fifo",
        "type": "x",
        "affinity": {"a": {}},
        "extendClusters": [{"name": "a"}],
    },
}
A_GROUP: Obj = {
    "metadata": {"name": "g"},
    "spec": {
        "minMember": 1,
        "minTaskMember": {"w": 1},
        "minResources": {"cpu": "1"},
        "queue": "default",
        "priorityClassName": "high",
        "networkTopology": NEAR,
        "subGroupPolicy": [
            {
                "name": "a", "labelSelector": CHOSEN, "matchLabelKeys": ["k"], "subGroupSize": 1, "minSubGroups": 1,
                "networkTopology": NEAR,
            }
        ],
    },
}  # fmt: skip
BOTH = [pytest.param(QUEUE, A_QUEUE, id="Queue"), pytest.param(POD_GROUP, A_GROUP, id="PodGroup")]


@pytest.fixture(scope="module", params=[True, False], ids=["among queues", "alone"])
def machinery(request: pytest.FixtureRequest) -> Machinery:
    made = Machinery.open(MEMORY)
    for definition in definitions():
        made.create(CUSTOM_RESOURCE_DEFINITION, "", definition)
    admit(made, sees_queues=request.param)
    return made


def answer(machinery: Machinery, kind: Kind, obj: Obj) -> list[str]:
    """What a cluster of our own finds wrong."""
    namespace = "default" if kind.namespaced else ""
    try:
        machinery.create(kind, namespace, clone(obj), WriteOptions("shoal", dry_run=True))
    except ApiError as refused:
        return [str(cause) for cause in refused.causes]
    return []


@pytest.mark.parametrize(("kind", "good"), BOTH)
def test_what_is_bent_is_in_order(machinery: Machinery, kind: Kind, good: Obj):
    assert answer(machinery, kind, good) == []


@pytest.mark.parametrize(("kind", "good"), BOTH)
def test_a_cluster_of_our_own_answers_whatever_the_shape(machinery: Machinery, kind: Kind, good: Obj):
    told = [words for odd in bent(good, "spec") for words in answer(machinery, kind, odd)]
    assert [words for words in told if "instances of" in words or "object has no" in words] == []


@pytest.mark.parametrize(("kind", "good"), BOTH)
def test_a_change_is_answered_whatever_the_shape(kind: Kind, good: Obj):
    judge = queue_errors if kind == QUEUE else group_errors
    for odd in bent(good, "spec"):
        judge(odd, good, [])


WRONG = [
    pytest.param(QUEUE, 3, ["spec: Invalid value: 3: must be an object"], id="a number for a Queue"),
    pytest.param(POD_GROUP, 3, ["spec: Invalid value: 3: must be an object"], id="a number for a PodGroup"),
    pytest.param(
        QUEUE,
        {"capability": 3, "weight": "x", "guarantee": [3]},
        [
            "spec.capability: Invalid value: 3: must be an object",
            'spec.weight: Invalid value: "x": must be an integer',
            'spec.guarantee: Invalid value: "array": must be an object',
        ],
        id="several",
    ),
]


@pytest.mark.parametrize(("kind", "spec", "words"), WRONG)
def test_the_mistake_is_told_once_in_words_at_its_path(machinery: Machinery, kind: Kind, spec: Any, words: list[str]):
    assert answer(machinery, kind, {"metadata": {"name": "d"}, "spec": spec}) == words
