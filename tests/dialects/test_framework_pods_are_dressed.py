"""The objects of a Framework: whole pods of the elastic story, the ConfigMap, and whose an object is."""

from __future__ import annotations

from typing import Any

import pytest

from kit.capabilities import capability
from kit.frameworks import ANCHOR, UID, framework, pet, pod_of, pod_template, role, stamped
from shoal.dialects.capabilities import RunOwner
from shoal.dialects.dialect import Owner
from shoal.dialects.framework import DIALECT
from shoal.dialects.framework.names import STAMPS
from shoal.engine import BuildContext, Create, ObservedRunOwner, RunOwnerRef
from shoal.kube.defaults import apply_defaults
from shoal.kube.kinds import CONFIG_MAP, POD
from shoal.kube.objects import Key, Obj
from shoal.kube.validation import validate_create

OWNER = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "name": "pet-attempt",
    "uid": ANCHOR,
    "controller": True,
    "blockOwnerDeletion": True,
}


def stamps(role_name: str, index: int) -> dict[str, str]:
    return {
        "FC_FRAMEWORK_NAMESPACE": "default",
        "FC_FRAMEWORK_NAME": "pet",
        "FC_TASKROLE_NAME": role_name,
        "FC_TASK_INDEX": str(index),
        "FC_CONFIGMAP_NAME": "pet-attempt",
        "FC_POD_NAME": f"pet-{role_name}-{index}",
        "FC_FRAMEWORK_UID": UID,
        "FC_FRAMEWORK_ATTEMPT_ID": "0",
        "FC_FRAMEWORK_ATTEMPT_INSTANCE_UID": f"0_{ANCHOR}",
        "FC_CONFIGMAP_UID": ANCHOR,
        "FC_TASKROLE_UID": "role-uid",
        "FC_TASK_UID": "task-uid",
        "FC_TASK_ATTEMPT_ID": "0",
    }


def environment(role_name: str, index: int) -> list[Obj]:
    return [
        *({"name": name, "value": value} for name, value in stamps(role_name, index).items()),
        {"name": "FC_POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
        {"name": "FC_TASK_ATTEMPT_INSTANCE_UID", "value": "0_$(FC_POD_UID)"},
    ]


def dressed(role_name: str, index: int, **spec: Any) -> Obj:
    """The whole pod, around the spec of its template."""
    (container,) = spec.pop("containers")
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"pet-{role_name}-{index}",
            "namespace": "default",
            "labels": {
                "FC_FRAMEWORK_NAME": "pet",
                "FC_TASKROLE_NAME": role_name,
                "FC_TASK_INDEX": str(index),
            },
            "annotations": stamps(role_name, index),
            "ownerReferences": [OWNER],
        },
        "spec": {
            **spec,
            "containers": [
                {
                    **container,
                    "env": environment(role_name, index),
                    "terminationMessagePolicy": "FallbackToLogsOnError",
                }
            ],
        },
    }


def test_the_etcd_pod_of_the_story():
    written = pet()["spec"]["taskRoles"][0]["task"]["pod"]["spec"]

    assert pod_of(pet(), "etcd", 0) == dressed("etcd", 0, **written)


@pytest.mark.parametrize("index", range(4))
def test_the_worker_pods_of_the_story(index: int):
    written = pet()["spec"]["taskRoles"][1]["task"]["pod"]["spec"]
    named = {"hostname": f"worker-{index}", "subdomain": "pet-worker"}

    assert pod_of(pet(), "worker", index) == dressed("worker", index, **{**written, **named})


@pytest.mark.parametrize("name", ["etcd", "worker"])
def test_the_api_takes_the_pods_as_they_are(name: str):
    pod = pod_of(pet(), name, 0)
    apply_defaults(POD, pod)

    assert validate_create(POD, pod) == []


def test_making_a_pod_leaves_the_manifest_alone():
    manifest = pet()
    pod_of(manifest, "worker", 1)["spec"]["volumes"].clear()

    assert manifest == pet()


def test_scenario_42_env_and_placeholders():
    app = {
        "name": "app",
        "image": "busybox",
        "command": ["echo", "{{UNKNOWN}} {{FC_TASK_UID}} {{FC_POD_NAME}}/{{FC_CONFIGMAP_NAME}}"],
        "env": [{"name": "X", "value": "$(FC_TASK_INDEX)"}],
        "terminationMessagePolicy": "File",
    }
    template = {
        "metadata": {
            "name": "ignored",
            "namespace": "elsewhere",
            "labels": {"app": "{{FC_POD_NAME}}", "{{FC_TASKROLE_NAME}}": "key"},
            "annotations": {"hivedscheduler.microsoft.com/pod-scheduling-spec": "group: {{FC_FRAMEWORK_NAME}}/g"},
        },
        "spec": {
            "hostname": "{{FC_TASKROLE_NAME}}-{{FC_TASK_INDEX}}",
            "initContainers": [{"name": "init", "image": "busybox"}],
            "containers": [app],
        },
    }
    pod = pod_of(framework(role("worker", 4, pod=template)), "worker", 3, run=2, attempt=5)
    init, (main,) = pod["spec"]["initContainers"][0], pod["spec"]["containers"]

    assert pod["metadata"]["name"] == "fw-worker-3"
    assert pod["metadata"]["namespace"] == "default"
    assert pod["metadata"]["labels"] == {
        "app": "fw-worker-3",
        "worker": "key",
        "FC_FRAMEWORK_NAME": "fw",
        "FC_TASKROLE_NAME": "worker",
        "FC_TASK_INDEX": "3",
    }
    assert pod["metadata"]["annotations"]["hivedscheduler.microsoft.com/pod-scheduling-spec"] == "group: fw/g"
    assert pod["spec"]["hostname"] == "worker-3"
    assert main["command"] == ["echo", "{{UNKNOWN}} {{FC_TASK_UID}} fw-worker-3/fw-attempt"]
    assert [entry["name"] for entry in init["env"]] == [*STAMPS, "FC_POD_UID", "FC_TASK_ATTEMPT_INSTANCE_UID"]
    assert main["env"] == [*init["env"], {"name": "X", "value": "$(FC_TASK_INDEX)"}]
    assert init["env"][-1] == {"name": "FC_TASK_ATTEMPT_INSTANCE_UID", "value": "5_$(FC_POD_UID)"}
    assert init["env"][8] == {"name": "FC_FRAMEWORK_ATTEMPT_INSTANCE_UID", "value": f"2_{ANCHOR}"}
    assert (init["terminationMessagePolicy"], main["terminationMessagePolicy"]) == ("FallbackToLogsOnError", "File")


def test_scenario_43_ownership():
    manifest = pet()
    run_owner = capability(DIALECT, RunOwner).build(manifest, Create(RunOwnerRef(), BuildContext(run=3)))
    pod = pod_of(manifest, "worker", 0)

    assert run_owner == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "pet-attempt",
            "namespace": "default",
            "labels": {"FC_FRAMEWORK_NAME": "pet"},
            "annotations": {
                "FC_FRAMEWORK_NAMESPACE": "default",
                "FC_FRAMEWORK_NAME": "pet",
                "FC_CONFIGMAP_NAME": "pet-attempt",
                "FC_FRAMEWORK_UID": UID,
                "FC_FRAMEWORK_ATTEMPT_ID": "3",
            },
            "ownerReferences": [
                {
                    "apiVersion": "frameworkcontroller.microsoft.com/v1",
                    "kind": "Framework",
                    "name": "pet",
                    "uid": UID,
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
            "finalizers": ["foregroundDeletion"],
        },
    }
    assert validate_create(CONFIG_MAP, run_owner) == []
    assert pod["metadata"]["ownerReferences"] == [OWNER]
    assert len(pod["metadata"]["annotations"]) == 13
    assert len(pod["metadata"]["labels"]) == 3


def test_owners_the_user_named_are_kept():
    theirs = {"apiVersion": "v1", "kind": "Secret", "name": "s", "uid": "u"}
    template = {"metadata": {"ownerReferences": [theirs]}, **pod_template()}
    pod = pod_of(framework(role(pod=template), name="pet"), "worker", 0)

    assert pod["metadata"]["ownerReferences"] == [theirs, OWNER]


def test_fields_in_any_case_take_effect():
    template = {"Spec": {"ActiveDeadlineSeconds": 60, "CONTAINERS": [{"Name": "a", "IMAGE": "b", "Env": []}]}}
    spec = pod_of(framework(role(pod=template), name="pet"), "worker", 0)["spec"]

    assert spec == {
        "activeDeadlineSeconds": 60,
        "containers": [
            {
                "name": "a",
                "image": "b",
                "env": environment("worker", 0),
                "terminationMessagePolicy": "FallbackToLogsOnError",
            }
        ],
    }


def test_a_pod_is_recognised_by_its_stamps():
    pod = stamped(pod_of(pet(), "worker", 2, run=1, attempt=4), "pod-uid", podIP="10.0.0.7")
    body = DIALECT.observe_pod(pod, pet())

    assert DIALECT.owner_of(pod) == Owner(Key("default", "pet"), UID)
    assert body is not None
    assert (body.uid, body.name, body.role, body.index) == ("pod-uid", "pet-worker-2", "worker", 2)
    assert (body.run, body.attempt, body.owned, body.ip) == (1, 4, True, "10.0.0.7")


FOREIGN = {
    "nobody's": {"annotations": None, "ownerReferences": None},
    "of a Framework of the same name that is gone": {
        "annotations": {**stamps("worker", 2), "FC_FRAMEWORK_UID": "older"}
    },
    "copied without its owner": {"ownerReferences": []},
    "of another controller": {"ownerReferences": [{**OWNER, "kind": "ReplicaSet", "uid": "other"}]},
}


@pytest.mark.parametrize("change", FOREIGN.values(), ids=list(FOREIGN))
def test_a_foreign_pod_under_a_tasks_name_is_in_the_way_and_not_ours(change: dict[str, Any]):
    pod = stamped(pod_of(pet(), "worker", 2))
    pod["metadata"] |= change
    body = DIALECT.observe_pod(pod, pet())

    assert body is not None
    assert (body.role, body.index, body.owned) == ("worker", 2, False)


@pytest.mark.parametrize("name", ["pet-worker-x", "pet-worker", "other-worker-0", "pet-a-b-0", "pet-worker-01"])
def test_other_pods_have_nothing_to_do_with_it(name: str):
    assert DIALECT.observe_pod({"metadata": {"name": name, "namespace": "default"}}, pet()) is None


def test_the_anchor_is_ours_by_its_owners_uid():
    made = capability(DIALECT, RunOwner).build(pet(), Create(RunOwnerRef(), BuildContext()))
    made["metadata"] |= {"uid": "a", "deletionTimestamp": "2026-11-16T04:00:00Z"}
    older = {**pet(), "metadata": {**pet()["metadata"], "uid": "older"}}

    assert capability(DIALECT, RunOwner).observe(made, pet()) == ObservedRunOwner("a", owned=True, leaving=True, run=0)
    assert capability(DIALECT, RunOwner).observe(made, older) == ObservedRunOwner("a", owned=False, leaving=True, run=0)
    assert DIALECT.owner_of(made) == Owner(Key("default", "pet"), UID)
