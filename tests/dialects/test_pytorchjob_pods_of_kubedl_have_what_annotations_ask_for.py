"""Pods of KubeDL's PyTorchJob: host network, code from git, spot replicas, the Master in the rendezvous."""

from __future__ import annotations

from typing import Any

import pytest

from kit.training_jobs import kubedl, replicas
from shoal.dialects.capabilities import OwnedObjects
from shoal.dialects.kubedl import DIALECT
from shoal.dialects.training.host_network import HIGHEST, LOWEST
from shoal.engine import Apply, BuildContext, Create, OwnedObjectRef, TaskRef
from shoal.kube.objects import Obj

UID = "9d0a2ae1-7a0e-4bcb-8a7f-52f4d2d6a3b8"
CONTEXT = BuildContext(sizes={"master": 1, "worker": 3})
ETCD = {"rdzvBackend": "etcd", "rdzvEndpoint": "etcd:2379", "minReplicas": 1, "maxReplicas": 4}


def job(annotations: dict[str, str] | None = None, *, worker: Obj | None = None, **spec: Any) -> Obj:
    made = kubedl(master=replicas(), worker=worker or replicas(3), **spec)
    return {**made, "metadata": {"name": "a", "namespace": "ns", "uid": UID, "annotations": annotations or {}}}


def pod(manifest: Obj, role: str, index: int) -> Obj:
    assert DIALECT.validate(manifest) == []
    return DIALECT.build_pod(manifest, Create(TaskRef(role, index), CONTEXT))


def variables(made: Obj) -> dict[str, str]:
    return {each["name"]: each["value"] for each in made["spec"]["containers"][0]["env"]}


def test_on_the_host_network_each_replica_has_a_port_of_the_node() -> None:
    manifest = job({"kubedl.io/network-mode": "host"}, enableElastic=True, elasticPolicy=ETCD)
    pods = [pod(manifest, "master", 0), *(pod(manifest, "worker", index) for index in range(3))]
    ports = []
    for made in pods:
        (port,) = made["spec"]["containers"][0]["ports"]
        assert (made["spec"]["hostNetwork"], made["spec"]["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")
        assert port["containerPort"] == port["hostPort"]
        ports.append(port["hostPort"])
    assert len(set(ports)) == 4
    assert all(LOWEST <= port < HIGHEST for port in ports)
    # The Master listens where its Service leads to, and the others use the Service.
    assert (variables(pods[0])["MASTER_PORT"], variables(pods[1])["MASTER_PORT"]) == (str(ports[0]), "23456")
    owned = DIALECT.capability(OwnedObjects)
    assert owned is not None
    service = owned.build_object(manifest, Apply(OwnedObjectRef("service", "master", 0), CONTEXT), is_new=True)
    assert "clusterIP" not in service["spec"]
    assert [(each["port"], each["targetPort"]) for each in service["spec"]["ports"]] == [(23456, ports[0])]


def test_on_the_host_network_the_rendezvous_needs_an_endpoint() -> None:
    c10d = {"rdzvBackend": "c10d", "minReplicas": 1, "maxReplicas": 4}
    manifest = job({"kubedl.io/network-mode": "host"}, enableElastic=True, elasticPolicy=c10d)
    assert [cause.field for cause in DIALECT.validate(manifest)] == ["spec.elasticPolicy.rdzvEndpoint"]


def test_code_comes_from_git_into_every_container() -> None:
    config = '{"source": "https://example.com/acme/trainer.git", "branch": "main", "credentials": "git"}'
    made = pod(job({"kubedl.io/git-sync-config": config}), "worker", 0)["spec"]
    (fetch,) = made["initContainers"]
    env = {each["name"]: each for each in fetch["env"]}
    assert (fetch["name"], env["GIT_SYNC_DEST"]["value"], env["GIT_SYNC_BRANCH"]["value"]) == (
        "git-sync-code", "trainer", "main",
    )  # fmt: skip
    assert env["GIT_SYNC_PASSWORD"]["valueFrom"] == {"secretKeyRef": {"name": "git", "key": "password"}}
    assert {"name": "git-sync", "emptyDir": {}} in made["volumes"]
    assert made["containers"][0]["volumeMounts"] == [
        {"name": "git-sync", "mountPath": "/code/trainer", "subPath": "trainer"}
    ]


@pytest.mark.parametrize("folder", ["../up", "/etc", "a/../../b"])
def test_code_stays_below_the_working_folder(folder: str) -> None:
    config = f'{{"source": "https://example.com/a.git", "destPath": "{folder}"}}'
    (cause,) = DIALECT.validate(job({"kubedl.io/git-sync-config": config}))
    assert cause.field == "metadata.annotations[kubedl.io/git-sync-config].destPath"


def test_spot_replicas_are_those_with_the_highest_indexes() -> None:
    spot = {"spotReplicaNumber": 2, "priorityClassName": "spot", "labels": {"pool": "spot"}}
    manifest = job(worker=replicas(3, spotReplicaSpec=spot))
    made = [pod(manifest, "worker", index) for index in range(3)]
    assert [each["spec"].get("priorityClassName") for each in made] == [None, "spot", "spot"]
    assert [each["metadata"]["labels"].get("pool") for each in made] == [None, "spot", "spot"]


def test_a_master_that_trains_is_part_of_the_rendezvous() -> None:
    trains = job({"shoal.dev/master-trains": "true"}, enableElastic=True, elasticPolicy=ETCD)
    rests = job({"shoal.dev/master-trains": "false"}, enableElastic=True, elasticPolicy=ETCD)
    assert pod(trains, "master", 0)["spec"]["containers"][0]["args"][-1] == "--nnodes=2:5"
    assert pod(trains, "worker", 0)["spec"]["containers"][0]["args"][-1] == "--nnodes=2:5"
    assert "args" not in pod(rests, "master", 0)["spec"]["containers"][0]
    assert pod(rests, "worker", 0)["spec"]["containers"][0]["args"][-1] == "--nnodes=1:4"


def test_no_gang_needs_more_pods_than_its_role_has() -> None:
    manifest = job(schedulingPolicy={"minAvailable": 3})
    gangs = DIALECT.gangs(DIALECT.read_spec(manifest), manifest)
    assert {key: gang.minimum for key, gang in gangs.items()} == {"master": 1, "worker": 3}
