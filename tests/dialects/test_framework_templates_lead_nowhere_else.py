"""Whatever a manifest says, its pods are made under names and in the namespace that are the Framework's own.

And they get no right that their template does not ask for.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from kit.frameworks import ANCHOR, framework, pod_of, pod_template, role, stamped
from shoal.dialects.dialect import ManifestInvalid, Owner
from shoal.dialects.framework import DIALECT, settings
from shoal.dialects.framework.names import STAMPS
from shoal.kube.objects import Key, Obj

UID = framework()["metadata"]["uid"]
ELSEWHERE = "kube-system"
THEIR_UID = "11111111-2222-3333-4444-555555555555"


def pod_with(template: Obj, *, name: str = "fw", role_name: str = "worker") -> Obj:
    manifest = framework(role(role_name, pod=template), name=name)
    DIALECT.to_job(manifest, settings())  # it would be run
    return pod_of(manifest, role_name, 0)


def identity(pod: Obj) -> Obj:
    """Who and where a pod is, and whose: all that could lead elsewhere."""
    meta = pod["metadata"]
    return {
        "name": meta["name"],
        "namespace": meta["namespace"],
        "stamps": {key: value for key, value in meta["annotations"].items() if key in STAMPS},
        "labels": {key: value for key, value in meta["labels"].items() if key in STAMPS},
        "owner": DIALECT.owner_of(stamped(pod)),
        "anchor": meta["ownerReferences"][-1],
        "others": sorted(set(meta) - {"name", "namespace", "labels", "annotations", "ownerReferences", "finalizers"}),
    }


PLAIN = identity(pod_with(pod_template()))
TEMPTING: dict[str, Obj] = {
    "namespace": {"namespace": ELSEWHERE},
    "namespace in another case": {"NameSpace": ELSEWHERE},
    "name": {"name": "etcd-server"},
    "name that climbs": {"name": "../../kube-system/pods/x"},
    "generated name": {"generateName": f"../{ELSEWHERE}/"},
    "stamps": {
        "annotations": {"FC_FRAMEWORK_NAMESPACE": ELSEWHERE, "FC_FRAMEWORK_UID": THEIR_UID},
        "labels": {"FC_FRAMEWORK_NAME": "victim", "FC_TASKROLE_NAME": "../x", "FC_TASK_INDEX": "9"},
    },
    "stamps by placeholder": {"annotations": {"{{FC_POD_NAME}}": "x", "FC_{{FC_TASKROLE_NAME}}": "y"}},
    "what only a server says": {
        "uid": THEIR_UID, "resourceVersion": "7", "generation": 3, "selfLink": "/api/v1/namespaces/kube-system/pods/x",
        "creationTimestamp": "2020-01-01T00:00:00Z", "deletionTimestamp": "2020-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 0, "managedFields": [{"manager": "x"}],
    },
    "another owner": {
        "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "victim-attempt", "uid": THEIR_UID}]
    },
    "an owner of the whole cluster": {
        "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": THEIR_UID}]
    },
    "finalizers": {"finalizers": ["example.com/mine"]},
}  # fmt: skip


@pytest.mark.parametrize("metadata", TEMPTING.values(), ids=list(TEMPTING))
def test_a_template_cannot_say_who_or_where_its_pods_are(metadata: Obj):
    assert identity(pod_with({"metadata": metadata, **pod_template()})) == PLAIN


def test_what_a_template_may_say_stays():
    said: Obj = {
        "labels": {"app": "x"},
        "annotations": {"a": "b"},
        "finalizers": ["example.com/mine"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "Secret", "name": "s", "uid": "u"}],
    }
    meta = pod_with({"metadata": said, **pod_template()})["metadata"]

    assert (meta["labels"]["app"], meta["annotations"]["a"], meta["finalizers"]) == ("x", "b", ["example.com/mine"])
    assert meta["ownerReferences"][0] == said["ownerReferences"][0]
    assert meta["ownerReferences"][1]["uid"] == ANCHOR


def test_a_second_controller_does_not_make_the_pod_anybody_elses():
    """An API server refuses such a pod; where one is seen all the same, it belongs to nobody or to us."""
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "name": "victim", "uid": THEIR_UID, "controller": True}
    pod = pod_with({"metadata": {"ownerReferences": [theirs]}, **pod_template()})

    assert DIALECT.owner_of(stamped(pod)) in (None, Owner(Key("default", "fw"), UID))


HARMFUL_NAMES = ["../x", "a/b", "..", "a b", "A", "a-b", "a.b", 'a"b', "a\n", "", "a" * 64, "é", "{{FC_POD_NAME}}"]


@pytest.mark.parametrize("name", HARMFUL_NAMES, ids=repr)
def test_a_role_cannot_be_called_anything_that_leads_elsewhere(name: str):
    with pytest.raises(ManifestInvalid):
        DIALECT.to_job(framework(role(name)), settings())


@pytest.mark.parametrize("name", [each for each in HARMFUL_NAMES if each], ids=repr)
def test_a_framework_cannot_be_called_anything_that_leads_elsewhere(name: str):
    assert [cause.field for cause in DIALECT.validate(framework(role(), name=name))] == ["metadata.name"]


def test_placeholders_are_names_and_nothing_a_person_chose():
    """What stands in for them can hold nothing that would end a text of JSON or a path."""
    hostile = '{{FC_FRAMEWORK_NAMESPACE}}/{{FC_FRAMEWORK_NAME}}/{{FC_POD_NAME}}","namespace":"x'
    pod = pod_with({"metadata": {"annotations": {"a": hostile}}, **pod_template(nodeName=hostile)})

    filled = 'default/fw/fw-worker-0","namespace":"x'
    assert (pod["metadata"]["annotations"]["a"], pod["spec"]["nodeName"]) == (filled, filled)
    assert identity(pod) == PLAIN


# --- rights --------------------------------------------------------------------------------------------------------

ASKED: dict[str, dict[str, Any]] = {
    "nothing": {},
    "an account": {"serviceAccountName": "trainer"},
    "an account by its old name": {"serviceAccount": "trainer"},
    "no token": {"automountServiceAccountToken": False},
    "a token": {"automountServiceAccountToken": True},
    "security": {"securityContext": {"runAsNonRoot": True}, "hostNetwork": False, "hostPID": False},
    "secrets": {"imagePullSecrets": [{"name": "mine"}], "volumes": [{"name": "v", "secret": {"secretName": "s"}}]},
    "a priority": {"priorityClassName": "low", "schedulerName": "other"},
}


@pytest.mark.parametrize("asked", ASKED.values(), ids=list(ASKED))
def test_a_pod_has_what_its_template_asks_for_and_no_more(asked: dict[str, Any]):
    context = {"privileged": False, "capabilities": {"drop": ["ALL"]}}
    container = {"name": "main", "image": "busybox", "securityContext": context}
    template = pod_template(containers=[container], initContainers=[{**container, "name": "first"}], **asked)
    written = deepcopy(template)
    spec = pod_with(template)["spec"]

    for group in ("containers", "initContainers"):
        for made in spec[group]:
            del made["env"], made["terminationMessagePolicy"]
    assert spec == written["spec"]
