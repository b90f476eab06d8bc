"""How pods, groups and keys of a Volcano Job look: plugins one by one, and what a gang needs at least."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from kit.volcano_jobs import task, vcjob
from shoal.dialects.gang_backends import volcano
from shoal.dialects.volcano import DIALECT
from shoal.dialects.volcano.plugins import ssh, svc
from shoal.dialects.volcano.plugins.pods import PluginJob
from shoal.dialects.volcano.pod_groups import gangs
from shoal.dialects.volcano.spec import spec_of
from shoal.engine import BuildContext, Create, TaskRef
from shoal.kube.objects import Obj


def dressed(manifest: Obj, name: str, index: int = 0) -> Obj:
    stored = DIALECT.default(manifest)
    stored["metadata"] |= {"uid": "u", "namespace": "default"}
    return DIALECT.build_pod(stored, Create(TaskRef(name, index), BuildContext(run=2, charged=1)))


def group_spec(manifest: Obj) -> Obj:
    return volcano.spec(gangs(spec_of(manifest), job="a", uid="u")[""])


def env_of(pod: Obj) -> dict[str, str]:
    return {
        e["name"]: e["value"] for e in pod["spec"]["containers"][0]["env"] if "FC_" not in e["name"] and "value" in e
    }


def test_a_pod_knows_its_run_and_what_it_cost():
    notes = dressed(vcjob("a", task()), "worker")["metadata"]["annotations"]
    assert (notes["volcano.sh/job-version"], notes["volcano.sh/job-retry-count"]) == ("2", "1")


def test_judging_a_manifest_leaves_its_templates_as_they_are():
    manifest = DIALECT.default(vcjob("a", task()))
    manifest["metadata"] |= {"uid": "u", "namespace": "default"}
    before = DIALECT.build_pod(manifest, Create(TaskRef("worker", 0), BuildContext()))
    assert DIALECT.validate(manifest) == []
    assert DIALECT.build_pod(manifest, Create(TaskRef("worker", 0), BuildContext())) == before
    assert before["spec"]["schedulerName"] == "volcano"


def test_the_template_keeps_its_own_labels_and_names():
    worker = task()
    worker["template"]["metadata"]["labels"] = {"paddle-job": "fluid-ctr"}
    worker["template"]["spec"] |= {"schedulerName": "mine", "hostname": "fixed"}
    pod = dressed(vcjob("a", worker, plugins={"svc": []}, priorityClassName="high"), "worker")
    assert pod["metadata"]["labels"]["paddle-job"] == "fluid-ctr"
    assert (pod["spec"]["schedulerName"], pod["spec"]["hostname"], pod["spec"]["priorityClassName"]) == (
        "mine",
        "fixed",
        "high",
    )


def test_tensorflow_gets_its_cluster():
    manifest = vcjob("a", task("ps"), task("worker", 2), plugins={"tensorflow": []})
    assert json.loads(env_of(dressed(manifest, "worker", 1))["TF_CONFIG"]) == {
        "cluster": {"ps": ["a-ps-0.a:2222"], "worker": ["a-worker-0.a:2222", "a-worker-1.a:2222"]},
        "task": {"type": "worker", "index": 1},
    }
    assert env_of(dressed(vcjob("a", task("worker"), plugins={"tensorflow": []}), "worker")) == {}


def test_mpi_tells_the_master_alone():
    manifest = vcjob("a", task("master"), task("worker", 2), plugins={"mpi": ["--port=2022"]})
    assert env_of(dressed(manifest, "master")) == {"MPI_HOST": "a-worker-0.a,a-worker-1.a"}
    worker = dressed(manifest, "worker", 1)
    assert env_of(worker) == {}
    assert worker["spec"]["containers"][0]["ports"] == [
        {"name": "mpijob-port", "containerPort": 2022, "protocol": "TCP"}
    ]


def test_ray_starts_instead_of_the_command():
    head = task("head")
    head["template"]["spec"]["containers"][0]["name"] = "head"
    worker = task("worker")
    worker["template"]["spec"]["containers"][0]["name"] = "worker"
    manifest = vcjob("a", head, worker, plugins={"ray": []})
    assert dressed(manifest, "head")["spec"]["containers"][0]["command"][2].startswith("ray start --head --block")
    assert dressed(manifest, "worker")["spec"]["containers"][0]["command"][2] == (
        "ray start --block --address=a-head-0.a:6379"
    )


def test_hcclrank_follows_the_rank_pytorch_gave():
    manifest = vcjob("a", task("master"), task("worker", 2), plugins={"hcclrank": [], "pytorch": []})
    assert dressed(manifest, "worker", 1)["metadata"]["annotations"]["hccl/rankIndex"] == "2"


def test_a_worker_may_wait_for_its_master():
    manifest = vcjob("a", task("master"), task("worker"), plugins={"pytorch": ["--wait-master-enabled"]})
    assert [c["name"] for c in dressed(manifest, "worker")["spec"]["initContainers"]] == ["wait-for-master"]
    assert "initContainers" not in dressed(manifest, "master")["spec"]


def test_a_list_too_long_for_a_variable_stays_in_its_file():
    spec = spec_of(vcjob("a", task("worker", 9000), task("ps", 1), plugins={"svc": []}))
    scene = PluginJob("a" * 30, "default", spec)
    assert sorted(svc.variables(scene)) == ["VC_PS_HOSTS", "VC_PS_NUM", "VC_WORKER_NUM"]
    assert len(svc.config(scene)["data"]["worker.host"].splitlines()) == 9000


def test_a_key_is_drawn_once_and_hosts_are_listed_anew():
    scene = PluginJob("a", "default", spec_of(vcjob("a", task("worker", 2), plugins={"ssh": []})))
    first = ssh.secret(scene, ssh.FLAGS, is_new=True)["data"]
    assert sorted(first) == ["authorized_keys", "config", "id_rsa", "id_rsa.pub"]
    assert base64.b64decode(first["id_rsa"]).startswith(b"-----BEGIN RSA PRIVATE KEY-----")
    assert first["authorized_keys"] == first["id_rsa.pub"]
    assert sorted(ssh.secret(scene, ssh.FLAGS, is_new=False)["data"]) == ["config"]
    assert "Host a-worker-1\n  HostName a-worker-1.a\n" in ssh.config(scene, 22)


def requests(**amounts: str) -> dict[str, str]:
    return amounts


@pytest.mark.parametrize(
    ("minimum", "tasks", "least"),
    [
        (
            4,
            [task("a", 2, requests=requests(cpu="1")), task("b", 2, requests=requests(cpu="2"))],
            {"cpu": "6", "pods": "4", "requests.cpu": "6", "count/pods": "4"},
        ),
        (
            1,
            [task("a", 2, requests=requests(cpu="1")), task("b", 2, requests=requests(cpu="2"))],
            {"cpu": "1", "pods": "1", "requests.cpu": "1", "count/pods": "1"},
        ),
        (
            3,
            [task("a", 4, least=1, requests=requests(cpu="500m"))],
            {"cpu": "1500m", "pods": "3", "requests.cpu": "1500m", "count/pods": "3"},
        ),
        (
            0,
            [task("a", 2, least=1, requests=requests(memory="1Gi"))],
            {"memory": "1Gi", "pods": "1", "requests.memory": "1Gi", "count/pods": "1"},
        ),
    ],
)
def test_a_group_asks_for_the_smallest_set_that_may_run(minimum: int, tasks: list[Obj], least: dict[str, Any]):
    assert group_spec(vcjob("a", *tasks, minAvailable=minimum))["minResources"] == least


def test_partitions_are_gangs_within_the_gang():
    cut = {"totalPartitions": 2, "partitionSize": 2, "minPartitions": 1}
    manifest = vcjob("a", task(replicas=4, partitionPolicy=cut))
    assert group_spec(manifest)["subGroupPolicy"] == [
        {
            "name": "worker",
            "labelSelector": {"matchLabels": {"volcano.sh/task-spec": "worker"}},
            "matchLabelKeys": ["volcano.sh/partition-id"],
            "subGroupSize": 2,
            "minSubGroups": 1,
        }
    ]
    assert dressed(manifest, "worker", 3)["metadata"]["labels"]["volcano.sh/partition-id"] == "1"


def test_a_pods_identity_is_never_the_templates():
    worker = task()
    stamps = {"uid": "t", "resourceVersion": "7", "name": "x", "generateName": "x-", "selfLink": "/x", "generation": 3}
    worker["template"]["metadata"] |= {
        **stamps,
        "namespace": "elsewhere",
        "creationTimestamp": "2020-01-01T00:00:00Z",
        "deletionTimestamp": "2020-01-01T00:00:00Z",
        "managedFields": [],
        "ownerReferences": [{"kind": "Pod", "name": "x", "uid": "x", "apiVersion": "v1"}],
        "finalizers": ["example.com/mine"],
    }
    metadata = dressed(vcjob("a", worker), "worker")["metadata"]
    assert sorted(metadata) == ["annotations", "finalizers", "labels", "name", "namespace", "ownerReferences"]
    assert (metadata["name"], metadata["namespace"], metadata["finalizers"]) == (
        "a-worker-0",
        "default",
        ["example.com/mine"],
    )
    assert [owner["kind"] for owner in metadata["ownerReferences"]] == ["Job"]
