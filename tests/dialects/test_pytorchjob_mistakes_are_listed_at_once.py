"""What is wrong with a PyTorchJob, in either group: every mistake, at its path."""

from __future__ import annotations

from typing import Any

import pytest

from kit.training_jobs import kubedl, kubeflow, replicas
from shoal.dialects.dialect import Dialect
from shoal.dialects.kubedl import DIALECT as KUBEDL
from shoal.dialects.kubeflow import DIALECT as KUBEFLOW
from shoal.kube.objects import Obj

ETCD = {"rdzvBackend": "etcd", "rdzvEndpoint": "etcd:2379"}


def without_container() -> Obj:
    made = replicas(1)
    made["template"]["spec"]["containers"][0]["name"] = "main"
    return made


def elastic(worker: int = 1, **policy: Any) -> Obj:
    return kubedl(master=replicas(), worker=replicas(worker), enableElastic=True, elasticPolicy={**ETCD, **policy})


def with_git_sync(text: str) -> Obj:
    made = kubedl(master=replicas())
    made["metadata"]["annotations"] = {"kubedl.io/git-sync-config": text}
    return made


GIT_SYNC = "metadata.annotations[kubedl.io/git-sync-config]"
ROLES = "spec.pytorchReplicaSpecs"
OF_KUBEDL: dict[str, tuple[Obj, set[str]]] = {
    "no Master": (kubedl(worker=replicas()), {ROLES}),
    "two Masters": (kubedl(master=replicas(2)), {ROLES}),
    "another role": (
        {
            **(job := kubedl(master=replicas())),
            "spec": {"pytorchReplicaSpecs": {**job["spec"]["pytorchReplicaSpecs"], "AIMaster": replicas()}},
        },
        {ROLES},
    ),
    "a role in two cases": (
        {**job, "spec": {"pytorchReplicaSpecs": {"Master": replicas(), "master": replicas()}}},
        {ROLES},
    ),
    "fewer than none": (kubedl(master=replicas(), worker=replicas(-1)), {f"{ROLES}.Worker.replicas"}),
    "no training container": (
        kubedl(master=replicas(), worker=without_container()),
        {f"{ROLES}.Worker.template.spec.containers"},
    ),
    "elastic without a policy": (
        kubedl(master=replicas(), worker=replicas(), enableElastic=True),
        {"spec.elasticPolicy"},
    ),
    "elastic without Workers": (
        kubedl(master=replicas(), enableElastic=True, elasticPolicy=ETCD),
        {ROLES},
    ),
    "no least worker": (elastic(minReplicas=0), {"spec.elasticPolicy.minReplicas"}),
    "min above max": (elastic(minReplicas=3, maxReplicas=2), {"spec.elasticPolicy.maxReplicas", ROLES}),
    "too many workers": (elastic(4, minReplicas=1, maxReplicas=3), {ROLES}),
    "an endpoint without a port": (elastic(rdzvEndpoint="etcd"), {"spec.elasticPolicy.rdzvEndpoint"}),
    "no endpoint": (elastic(rdzvEndpoint=""), {"spec.elasticPolicy.rdzvEndpoint"}),
    "no processes": (elastic(nProcPerNode=0), {"spec.elasticPolicy.nProcPerNode"}),
    "limits": (
        kubedl(master=replicas(), activeDeadlineSeconds=0, backoffLimit=-1, ttlSecondsAfterFinished=-1),
        {"spec.activeDeadlineSeconds", "spec.backoffLimit", "spec.ttlSecondsAfterFinished"},
    ),
    "an unknown policy": (kubedl(master=replicas(restartPolicy="Sometimes")), {f"{ROLES}.Master.restartPolicy"}),
    "a long name": (kubedl("a" * 52, master=replicas(), worker=replicas(10_000)), {"metadata.name", "spec"}),
    "a long name of a worker to come": (
        {**elastic(minReplicas=1, maxReplicas=2_000), "metadata": {"name": "a" * 52}},
        {"metadata.name"},
    ),
    "a name that begins with a number": (kubedl("1a", master=replicas()), {"metadata.name"}),
    "git-sync that is not JSON": (with_git_sync("{"), {GIT_SYNC}),
    "git-sync without a source, with a password": (
        with_git_sync('{"password": "secret"}'),
        {f"{GIT_SYNC}.source", f"{GIT_SYNC}.password"},
    ),
    "an empty image": (
        kubedl(master={"template": {"spec": {"containers": [{"name": "pytorch"}]}}}),
        {f"{ROLES}.Master.template.spec.containers[0].image"},
    ),
}
OF_KUBEFLOW: dict[str, tuple[Obj, set[str]]] = {
    "no roles": (kubeflow(), {ROLES}),
    "two Masters": (kubeflow(master=replicas(2)), {ROLES}),
    "no Workers in their role": (kubeflow(master=replicas(), worker=replicas(0)), {ROLES}),
    "elastic without Workers": (kubeflow(master=replicas(), elasticPolicy={}), {ROLES}),
    "min above max": (
        kubeflow(worker=replicas(2), elasticPolicy={"minReplicas": 3, "maxReplicas": 2}),
        {"spec.elasticPolicy.maxReplicas", ROLES},
    ),
    "processes twice": (
        kubeflow(worker=replicas(), elasticPolicy={"nProcPerNode": 2}, nprocPerNode="2"),
        {"spec.nprocPerNode"},
    ),
    "a number of processes that is none": (kubeflow(worker=replicas(), nprocPerNode="many"), {"spec.nprocPerNode"}),
    "limits": (
        kubeflow(worker=replicas(), run={"activeDeadlineSeconds": 0, "cleanPodPolicy": "Some"}),
        {"spec.runPolicy.activeDeadlineSeconds", "spec.runPolicy.cleanPodPolicy"},
    ),
}


def fields(dialect: Dialect, manifest: Obj) -> set[str]:
    return {cause.field for cause in dialect.validate(manifest)}


@pytest.mark.parametrize("case", OF_KUBEDL)
def test_mistakes_of_kubedl(case: str) -> None:
    manifest, expected = OF_KUBEDL[case]
    assert fields(KUBEDL, manifest) == expected


@pytest.mark.parametrize("case", OF_KUBEFLOW)
def test_mistakes_of_kubeflow(case: str) -> None:
    manifest, expected = OF_KUBEFLOW[case]
    assert fields(KUBEFLOW, manifest) == expected
