"""Builders for PyTorchJobs of both groups, whose pods play fates."""

from __future__ import annotations

from typing import Any

from kit.pod_behavior import Fate, Rule, exits, pod_with
from shoal.dialects.kubedl import DIALECT as KUBEDL
from shoal.dialects.kubeflow import DIALECT as KUBEFLOW
from shoal.kube.objects import Obj

CONTAINER = "pytorch"


def replicas(size: int | None = None, *rules: Rule, fate: Fate | None = None, **spec: Any) -> Obj:
    """A role whose pods meet that fate."""
    template = pod_with(*rules, Rule(fate or exits(0)))
    template["spec"].pop("restartPolicy")
    template["spec"]["containers"][0]["name"] = CONTAINER
    return {**({} if size is None else {"replicas": size}), "template": template, **spec}


def kubedl(name: str = "a", *, master: Obj | None = None, worker: Obj | None = None, **spec: Any) -> Obj:
    roles = {key: each for key, each in (("Master", master), ("Worker", worker)) if each is not None}
    return {
        "apiVersion": KUBEDL.kind.api_version,
        "kind": "PyTorchJob",
        "metadata": {"name": name},
        "spec": {"pytorchReplicaSpecs": roles, **spec},
    }


def kubeflow(
    name: str = "a", *, master: Obj | None = None, worker: Obj | None = None, run: Obj | None = None, **spec: Any
) -> Obj:
    made = kubedl(name, master=master, worker=worker, **spec)
    return {**made, "apiVersion": KUBEFLOW.kind.api_version, "spec": {**made["spec"], "runPolicy": run or {}}}
