"""A Job of whatever shape gets an answer: the mistake with its path, and never an error of ours."""

from __future__ import annotations

from functools import partial

import pytest

from kit.capabilities import capability
from kit.malformed_objects import bent
from kit.volcano_jobs import policy, task, vcjob
from shoal.cluster.apimachinery import MEMORY, Machinery
from shoal.cluster.types import WriteOptions
from shoal.dialects.capabilities import ClusterValidation, ManifestWarnings
from shoal.dialects.dialect import definitions_of
from shoal.dialects.volcano import DIALECT
from shoal.kube.errors import ApiError
from shoal.kube.kinds import CUSTOM_RESOURCE_DEFINITION
from shoal.kube.objects import Obj
from shoal.kube.patching.json_values import clone
from shoal.operator.dialect_registration import admit
from shoal.scheduler.api.pod_groups import QUEUE

NEAR = {"mode": "hard", "highestTierAllowed": 1}
CUT = {"totalPartitions": 2, "partitionSize": 2, "minPartitions": 1, "networkTopology": NEAR}
GOOD = vcjob(
    "a",
    task("ps", 1, least=1, policies=[policy("PodFailed,PodEvicted", "RestartJob", "10s")], maxRetry=2),
    task(
        "worker", 4, after=["ps"], requests={"cpu": "1"}, pod={"hostNetwork": True},
        partitionPolicy=CUT, topologyPolicy="restricted",
    ),
    queue="team",
    policies=[policy(3, "AbortJob")],
    plugins={"svc": ["--publish-not-ready-addresses=true"], "mpi": ["--master=ps"], "env": []},
    volumes=[
        {"mountPath": "/a", "volumeClaimName": "mine"},
        {"mountPath": "/b", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}},
    ],
    networkTopology=NEAR,
    minAvailable=3,
    minSuccess=1,
    ttlSecondsAfterFinished=5,
    runningEstimate="1h",
    priorityClassName="high",
    schedulerName="volcano",
)  # fmt: skip
QUEUES = [{"metadata": {"name": "team"}}, {"metadata": {"name": "default"}}]


@pytest.fixture(scope="module")
def machinery() -> Machinery:
    made = Machinery.open(MEMORY)
    admit(made, [DIALECT])
    for definition in definitions_of(DIALECT):
        made.create(CUSTOM_RESOURCE_DEFINITION, "", definition)
    for queue in QUEUES:
        made.create(QUEUE, "", clone(queue))
    return made


def answer(machinery: Machinery, obj: Obj) -> list[str]:
    """What a cluster of our own finds wrong."""
    try:
        machinery.create(DIALECT.kind, "default", clone(obj), WriteOptions("shoal", dry_run=True))
    except ApiError as refused:
        return [str(cause) for cause in refused.causes]
    return []


def test_the_job_that_is_bent_is_in_order(machinery: Machinery):
    assert answer(machinery, GOOD) == []


def test_the_language_answers_whatever_the_shape():
    for odd in bent(GOOD, "spec"):
        DIALECT.validate(DIALECT.default(odd))
        DIALECT.validate(odd, GOOD)
        DIALECT.validate(GOOD, odd)
        capability(DIALECT, ClusterValidation).validate(odd, lambda _: QUEUES)
        capability(DIALECT, ManifestWarnings).warn(odd, None)


def test_a_queue_of_any_shape_does_not_keep_jobs_from_an_answer():
    stored = {"metadata": {"name": "team"}, "spec": {"parent": "root"}, "status": {"state": "Open"}}
    for queue in bent(stored, "spec", "status"):
        capability(DIALECT, ClusterValidation).validate(GOOD, partial(lambda only, _: [only], queue))


def test_a_cluster_of_our_own_answers_whatever_the_shape(machinery: Machinery):
    for odd in bent(GOOD, "spec"):
        answer(machinery, odd)


WRONG = [
    pytest.param({"spec": 3}, ["spec: Invalid value: 3: must be an object"], id="a number for a spec"),
    pytest.param({"spec": "s"}, ['spec: Invalid value: "s": must be an object'], id="text for a spec"),
    pytest.param({"spec": [3]}, ['spec: Invalid value: "array": must be an object'], id="a list for a spec"),
    pytest.param({"spec": True}, ["spec: Invalid value: true: must be an object"], id="a choice for a spec"),
    pytest.param({"spec": {"tasks": 3}}, ["spec.tasks: Invalid value: 3: must be a list"], id="a number for tasks"),
    pytest.param(
        {"spec": {**GOOD["spec"], "queue": [3]}},
        ['spec.queue: Invalid value: "array": must be text; put it in quotes'],
        id="a list for a queue",
    ),
    pytest.param(
        {"spec": {**GOOD["spec"], "queue": {"a": 3}}},
        ['spec.queue: Invalid value: "object": must be text; put it in quotes'],
        id="an object for a queue",
    ),
]


@pytest.mark.parametrize(("wrong", "words"), WRONG)
def test_the_mistake_is_told_once_in_words_at_its_path(machinery: Machinery, wrong: Obj, words: list[str]):
    assert answer(machinery, {**GOOD, **wrong}) == words
