"""Pods: what the server fills in, what it refuses, and how one is placed and evicted."""

from __future__ import annotations

from typing import Any

import pytest

from kit.api_objects import (
    cause,
    conflict,
    container,
    failure,
    invalid,
    names,
    not_found,
    pod,
    required,
    settled,
    without_storage,
)
from kit.raw_api import Obj, Space

LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
FILLED_IN = {
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "imagePullPolicy": "IfNotPresent",
}
TOLERATIONS = [
    {"key": f"node.kubernetes.io/{why}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for why in ("not-ready", "unreachable")
]


def test_a_small_pod_is_filled_in(space: Space) -> None:
    made = space.post("pods", pod("a")).ok()
    spec = {
        "containers": [container("main") | FILLED_IN],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "default",
        "serviceAccount": "default",
        "automountServiceAccountToken": False,
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "tolerations": TOLERATIONS,
        "priority": 0,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
    }
    expected = pod("a", {"namespace": space.name, "generation": 1}) | {"spec": spec}
    assert settled(made) == expected | {"status": {"phase": "Pending", "qosClass": "BestEffort"}}


def filled(space: Space, **spec: Any) -> Obj:
    made: Obj = space.post("pods", pod("a", **spec)).ok()["spec"]
    return made


def test_containers_are_filled_in(space: Space) -> None:
    given = container(
        "main",
        ports=[{"containerPort": 80}],
        env=[{"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        resources={"limits": {"cpu": "1", "memory": "1.5Gi"}},
        readinessProbe={"httpGet": {"port": 80}},
        livenessProbe={"exec": {"command": ["true"]}},
    )
    (made,) = filled(space, containers=[given])["containers"]
    probe = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
    amounts = {"cpu": "1", "memory": "1536Mi"}
    assert made == FILLED_IN | given | {
        "ports": [{"containerPort": 80, "protocol": "TCP"}],
        "env": [{"name": "NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}],
        "resources": {"limits": amounts, "requests": amounts},
        "readinessProbe": {"httpGet": {"path": "/", "port": 80, "scheme": "HTTP"}} | probe,
        "livenessProbe": {"exec": {"command": ["true"]}} | probe,
    }


IMAGES = {"x": "Always", "x:latest": "Always", "x:1": "IfNotPresent", f"x@sha256:{'0' * 64}": "IfNotPresent"}


@pytest.mark.parametrize(("image", "policy"), IMAGES.items(), ids=["no tag", "latest", "tag", "digest"])
def test_an_image_is_pulled_by_its_tag(space: Space, image: str, policy: str) -> None:
    (made,) = filled(space, containers=[container("main", image=image)])["containers"]
    assert made["imagePullPolicy"] == policy


def test_init_containers_are_filled_in(space: Space) -> None:
    assert filled(space, initContainers=[container("first")])["initContainers"] == [container("first") | FILLED_IN]


def test_volumes_are_filled_in(space: Space) -> None:
    labels = {"path": "p", "fieldRef": {"fieldPath": "metadata.labels"}}
    given = [
        {"name": "e", "emptyDir": {}},
        {"name": "c", "configMap": {"name": "x"}},
        {"name": "s", "secret": {"secretName": "x"}},
        {"name": "h", "hostPath": {"path": "/x"}},
        {"name": "d", "downwardAPI": {"items": [labels]}},
        {"name": "p", "projected": {"sources": [{"configMap": {"name": "x"}}]}},
    ]
    labels = {"path": "p", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.labels"}}
    assert filled(space, volumes=given)["volumes"] == [
        {"name": "e", "emptyDir": {}},
        {"name": "c", "configMap": {"name": "x", "defaultMode": 420}},
        {"name": "s", "secret": {"secretName": "x", "defaultMode": 420}},
        {"name": "h", "hostPath": {"path": "/x", "type": ""}},
        {"name": "d", "downwardAPI": {"items": [labels], "defaultMode": 420}},
        {"name": "p", "projected": {"sources": [{"configMap": {"name": "x"}}], "defaultMode": 420}},
    ]


def test_ports_of_the_host_network_are_ports_of_the_host(space: Space) -> None:
    spec = filled(space, hostNetwork=True, containers=[container("main", ports=[{"containerPort": 80}])])
    assert spec["containers"][0]["ports"] == [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]


QUALITIES = {
    "none": ({}, "BestEffort"),
    "some": ({"requests": {"cpu": "1"}}, "Burstable"),
    "all": ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
    "more allowed than asked": (
        {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "1Gi"}},
        "Burstable",
    ),
}


@pytest.mark.parametrize(("resources", "quality"), QUALITIES.values(), ids=QUALITIES.keys())
def test_the_quality_of_service_follows_from_resources(space: Space, resources: Obj, quality: str) -> None:
    made = space.post("pods", pod("a", containers=[container("main", resources=resources)])).ok()
    assert made["status"]["qosClass"] == quality


AMOUNTS = {"0.5": "500m", "1000m": "1", "1024Mi": "1Gi", "1.5": "1500m", "1e3": "1e3", "1500": "1500", "100k": "100k"}


@pytest.mark.parametrize(("given", "kept"), AMOUNTS.items(), ids=AMOUNTS.keys())
def test_amounts_are_kept_in_their_shortest_form(space: Space, given: str, kept: str) -> None:
    spec = filled(
        space,
        containers=[
            container(
                "main",
                resources={"requests": {"example.com/x": "1", "memory": given}, "limits": {"example.com/x": "1"}},
            )
        ],
    )
    assert spec["containers"][0]["resources"]["requests"]["memory"] == kept


def one(**more: Any) -> Obj:
    return {"containers": [container("main", **more)]}


C = "spec.containers[0]"
BAD_SPECS: dict[str, tuple[Obj, list[Obj]]] = {
    "no containers": ({"containers": []}, [required("spec.containers")]),
    "no image": ({"containers": [{"name": "x"}]}, [required(f"{C}.image")]),
    "no name": ({"containers": [{"image": "x"}]}, [required(f"{C}.name")]),
    "bad name": ({"containers": [container("A_b")]}, [cause(f"{C}.name", f'Invalid value: "A_b": {LABEL}')]),
    "name twice": (
        {"containers": [container("x"), container("x")]},
        [cause("spec.containers[1].name", 'Duplicate value: "x"', "FieldValueDuplicate")],
    ),
    "name of an init container": (
        {"containers": [container("x")], "initContainers": [container("x")]},
        [cause("spec.initContainers[0].name", 'Duplicate value: "x"', "FieldValueDuplicate")],
    ),
    "restart policy": (
        {"restartPolicy": "Sometimes"},
        [
            cause(
                "spec.restartPolicy",
                'Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"',
                "FieldValueNotSupported",
            )
        ],
    ),
    "ports": (
        one(ports=[{"containerPort": 0}, {"containerPort": 70000}]),
        [
            required(f"{C}.ports[0].containerPort"),
            cause(f"{C}.ports[1].containerPort", "Invalid value: 70000: must be between 1 and 65535, inclusive"),
        ],
    ),
    "port name twice": (
        one(ports=[{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a"}]),
        [cause(f"{C}.ports[1].name", 'Duplicate value: "a"', "FieldValueDuplicate")],
    ),
    "no variable name": (one(env=[{"name": ""}]), [required(f"{C}.env[0].name")]),
    "variable from two places": (
        one(env=[{"name": "A", "value": "1", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]),
        [cause(f"{C}.env[0].valueFrom", 'Invalid value: "": may not be specified when `value` is not empty')],
    ),
    "variable from an unknown field": (
        one(env=[{"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "spec.nope"}}}]),
        [
            cause(
                f"{C}.env[0].valueFrom.fieldRef.fieldPath",
                'Invalid value: "spec.nope": error converting fieldPath: field label not supported: spec.nope',
            )
        ],
    ),
    "mount of nothing": (
        one(volumeMounts=[{"name": "v", "mountPath": "/a"}]),
        [cause(f"{C}.volumeMounts[0].name", 'Not found: "v"', "FieldValueNotFound")],
    ),
    "mount twice": (
        one(volumeMounts=[{"name": "v", "mountPath": "/a"}] * 2) | {"volumes": [{"name": "v", "emptyDir": {}}]},
        [cause(f"{C}.volumeMounts[1].mountPath", 'Invalid value: "/a": must be unique')],
    ),
    "volume twice": (
        {"volumes": [{"name": "v", "emptyDir": {}}] * 2},
        [cause("spec.volumes[1].name", 'Duplicate value: "v"', "FieldValueDuplicate")],
    ),
    "volume of two kinds": (
        {"volumes": [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}]},
        [
            cause(
                "spec.volumes[0].hostPath",
                "Forbidden: may not specify more than 1 volume type",
                "FieldValueForbidden",
            )
        ],
    ),
    "sources without names": (
        {
            "volumes": [
                {"name": "c", "configMap": {}},
                {"name": "s", "secret": {}},
                {"name": "p", "persistentVolumeClaim": {}},
            ]
        },
        [
            required("spec.volumes[0].configMap.name"),
            required("spec.volumes[1].secret.secretName"),
            required("spec.volumes[2].persistentVolumeClaim.claimName"),
        ],
    ),
    "more asked than allowed": (
        one(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),
        [cause(f"{C}.resources.requests", 'Invalid value: "2": must be less than or equal to cpu limit of 1')],
    ),
    "less than nothing": (
        one(resources={"requests": {"cpu": "-2"}}),
        [cause(f"{C}.resources.requests[cpu]", 'Invalid value: "-2": must be greater than or equal to 0')],
    ),
    "half a gpu": (
        one(resources={"limits": {"nvidia.com/gpu": "500m"}}),
        [
            cause(f"{C}.resources.limits[nvidia.com/gpu]", 'Invalid value: "500m": must be an integer'),
            cause(f"{C}.resources.requests[nvidia.com/gpu]", 'Invalid value: "500m": must be an integer'),
        ],
    ),
    "gpu without a limit": (
        one(resources={"requests": {"nvidia.com/gpu": "1"}}),
        [required(f"{C}.resources.limits", "Limit must be set for non overcommitable resources")],
    ),
    "gpu with another limit": (
        one(resources={"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "2"}}),
        [cause(f"{C}.resources.requests", 'Invalid value: "1": must be equal to nvidia.com/gpu limit of 2')],
    ),
    "probe of nothing": (one(livenessProbe={}), [required(f"{C}.livenessProbe", "must specify a handler type")]),
    "probe of two kinds": (
        one(livenessProbe={"exec": {"command": ["a"]}, "tcpSocket": {"port": 1}}),
        [
            cause(
                f"{C}.livenessProbe.tcpSocket",
                "Forbidden: may not specify more than 1 handler type",
                "FieldValueForbidden",
            )
        ],
    ),
    "probe of no port": (
        one(readinessProbe={"httpGet": {"port": 0}}),
        [cause(f"{C}.readinessProbe.httpGet.port", "Invalid value: 0: must be between 1 and 65535, inclusive")],
    ),
    "deadline": (
        {"activeDeadlineSeconds": 0},
        [cause("spec.activeDeadlineSeconds", "Invalid value: 0: must be between 1 and 2147483647, inclusive")],
    ),
    "host name": (
        {"hostname": "A.b", "subdomain": "x_y"},
        [
            cause("spec.hostname", f'Invalid value: "A.b": {LABEL}'),
            cause("spec.subdomain", f'Invalid value: "x_y": {LABEL}'),
        ],
    ),
    "tolerations": (
        {"tolerations": [{"operator": "Equal"}, {"key": "a", "effect": "Nope"}, {"key": "a", "tolerationSeconds": 1}]},
        [
            cause(
                "spec.tolerations[0].operator",
                'Invalid value: "Equal": operator must be Exists when `key` is empty, which means "match all values '
                'and all keys"',
            ),
            cause(
                "spec.tolerations[1].effect",
                'Unsupported value: "Nope": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
                "FieldValueNotSupported",
            ),
            cause(
                "spec.tolerations[2].effect",
                "Invalid value: \"\": effect must be 'NoExecute' when `tolerationSeconds` is set",
            ),
        ],
    ),
    "pull policy": (
        one(imagePullPolicy="Maybe"),
        [
            cause(
                f"{C}.imagePullPolicy",
                'Unsupported value: "Maybe": supported values: "Always", "IfNotPresent", "Never"',
                "FieldValueNotSupported",
            )
        ],
    ),
    "placed before its gates are open": (
        {"schedulingGates": [{"name": "a"}], "nodeName": "x"},
        [
            cause(
                "spec.nodeName",
                "Forbidden: cannot be set until all schedulingGates have been cleared",
                "FieldValueForbidden",
            )
        ],
    ),
    "affinity to nothing": (
        {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}},
        [
            required(
                "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms",
                "must have at least one node selector term",
            )
        ],
    ),
    "three mistakes": (
        {"restartPolicy": "x", "containers": [{"name": ""}]},
        [
            required(f"{C}.name"),
            required(f"{C}.image"),
            cause(
                "spec.restartPolicy",
                'Unsupported value: "x": supported values: "Always", "OnFailure", "Never"',
                "FieldValueNotSupported",
            ),
        ],
    ),
}


@pytest.mark.parametrize(("spec", "causes"), BAD_SPECS.values(), ids=BAD_SPECS.keys())
def test_a_pod_that_cannot_work_is_refused(space: Space, spec: Obj, causes: list[Obj]) -> None:
    assert space.post("pods", pod("a", **spec)).failure() == invalid("Pod", "a", *causes)
    assert names(space.get("pods").ok()) == []


def binding(name: str, node: str, **metadata: Any) -> Obj:
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, **metadata}, "target": target}


def test_a_binding_places_a_pod(space: Space) -> None:
    made = space.post("pods", pod("a")).ok()
    answer = space.post("pods/a/binding", binding("a", "n1", annotations={"x": "1"}))
    success = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    assert (answer.status, answer.json) == (201, success)
    placed = space.get("pods/a").ok()
    assert (placed["spec"], placed["metadata"]["annotations"]) == (made["spec"] | {"nodeName": "n1"}, {"x": "1"})
    (condition,) = placed["status"]["conditions"]
    assert condition.pop("lastTransitionTime")
    assert condition == {"type": "PodScheduled", "status": "True", "lastProbeTime": None}


def test_a_placed_pod_is_not_placed_again(space: Space) -> None:
    space.post("pods", pod("a")).ok()
    space.post("pods/a/binding", binding("a", "n1")).ok()
    refused = space.post("pods/a/binding", binding("a", "n2")).failure()
    message = 'Operation cannot be fulfilled on pods/binding "a": pod a is already assigned to node "n1"'
    assert refused == failure(409, "Conflict", message, about={"name": "a", "kind": "pods/binding"})


def test_a_gated_pod_is_not_placed(space: Space) -> None:
    made = space.post("pods", pod("a", schedulingGates=[{"name": "example.com/g"}])).ok()
    (condition,) = made["status"]["conditions"]
    assert condition.pop("lastTransitionTime")
    assert condition == {
        "type": "PodScheduled",
        "status": "False",
        "lastProbeTime": None,
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
    }
    refused = space.post("pods/a/binding", binding("a", "n1")).failure()
    message = 'Operation cannot be fulfilled on pods/binding "a": pod a has non-empty .spec.schedulingGates'
    assert refused == failure(409, "Conflict", message, about={"name": "a", "kind": "pods/binding"})


def test_a_binding_of_another_pod_of_that_name_is_a_conflict(space: Space) -> None:
    uid = space.post("pods", pod("a")).ok()["metadata"]["uid"]
    refused = space.post("pods/a/binding", binding("a", "n1", uid="other")).failure()
    why = f"Precondition failed: UID in precondition: other, UID in object meta: {uid}"
    assert without_storage(refused) == conflict("pods", "a", why)


def test_a_binding_with_another_name_is_refused(space: Space) -> None:
    space.post("pods", pod("a")).ok()
    refused = space.post("pods/a/binding", binding("b", "n1")).failure()
    assert refused == failure(400, "BadRequest", "name in URL does not match name in Binding object")


def test_a_binding_of_a_missing_pod_is_not_found(space: Space) -> None:
    assert space.post("pods/none/binding", binding("none", "n1")).failure() == not_found("pods", "none")


def eviction(name: str) -> Obj:
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}


def test_an_evicted_pod_is_deleted_with_a_condition(space: Space) -> None:
    space.post("pods", pod("a", nodeName="n1")).ok()
    answer = space.post("pods/a/eviction", eviction("a"))
    assert (answer.status, answer.json["status"]) == (201, "Success")
    evicted = space.get("pods/a").ok()
    assert evicted["metadata"]["deletionGracePeriodSeconds"] == 30
    (condition,) = evicted["status"]["conditions"]
    assert condition.pop("lastTransitionTime")
    assert condition == {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }


def test_an_eviction_of_a_missing_pod_is_not_found(space: Space) -> None:
    assert space.post("pods/none/eviction", eviction("none")).failure() == not_found("pods", "none")


def test_an_eviction_with_another_name_is_refused(space: Space) -> None:
    space.post("pods", pod("a")).ok()
    refused = space.post("pods/a/eviction", eviction("b")).failure()
    assert refused == failure(400, "BadRequest", "name in URL does not match name in Eviction object")
