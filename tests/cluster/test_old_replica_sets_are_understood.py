"""ReplicaSets of the first version: taken as what they became, and said so."""

from __future__ import annotations

from shoal.cluster.apimachinery import MEMORY, Machinery
from shoal.kube.kinds import REPLICA_SET, REPLICA_SET_V1BETA1
from shoal.kube.objects import Key, Obj

OLD: Obj = {
    "apiVersion": "extensions/v1beta1",
    "kind": "ReplicaSet",
    "metadata": {"name": "pserver"},
    "spec": {
        "replicas": 2,
        "template": {
            "metadata": {"labels": {"paddle-job-pserver": "fluid-ctr"}},
            "spec": {"containers": [{"name": "pserver", "image": "ctr:v1"}]},
        },
    },
}


def test_the_selector_is_defaulted_from_the_template():
    machinery = Machinery.open(MEMORY)
    written = machinery.create(REPLICA_SET_V1BETA1, "default", OLD)
    shown = {kind: machinery.get(kind, Key("default", "pserver")).obj() for kind in (REPLICA_SET, REPLICA_SET_V1BETA1)}
    versions = [shown[kind].pop("apiVersion") for kind in shown]

    assert versions == ["apps/v1", "extensions/v1beta1"]
    assert shown[REPLICA_SET] == shown[REPLICA_SET_V1BETA1]
    assert shown[REPLICA_SET]["spec"]["selector"] == {"matchLabels": {"paddle-job-pserver": "fluid-ctr"}}
    assert written.warnings == (
        "Kubernetes no longer serves extensions/v1beta1 ReplicaSet: this one is understood as apps/v1 ReplicaSet of "
        "the pods with paddle-job-pserver=fluid-ctr; write apiVersion: apps/v1 and that selector",
    )
