"""The promises of single kinds: addresses, secrets, priorities, leases, events, storage, nodes."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kit.api_objects import cause, config_map, failure, invalid, lease, pod, required, secret, service, settled
from kit.eventually import answer_turns
from kit.raw_api import Api, Obj, Space

CONFIG_KEY = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
    "'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)


def filled_in(name: str, **spec: Any) -> Obj:
    return {
        "selector": {"app": name},
        "ports": [{"protocol": "TCP", "port": 80, "targetPort": 80}],
        "type": "ClusterIP",
        "sessionAffinity": "None",
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "internalTrafficPolicy": "Cluster",
    } | spec


def test_a_service_gets_an_address_and_defaults(space: Space) -> None:
    made = space.post("services", service("a")).ok()
    address = made["spec"]["clusterIP"]
    assert re.fullmatch(r"\d+\.\d+\.\d+\.\d+", address)
    expected = service("a") | {"metadata": {"name": "a", "namespace": space.name}}
    expected |= {"spec": filled_in("a", clusterIP=address, clusterIPs=[address]), "status": {"loadBalancer": {}}}
    assert settled(made) == expected


def test_a_headless_service_has_no_address(space: Space) -> None:
    made = space.post("services", service("a", clusterIP="None", publishNotReadyAddresses=True)).ok()
    assert made["spec"] == filled_in("a", clusterIP="None", clusterIPs=["None"], publishNotReadyAddresses=True)


def test_an_external_name_has_no_address(space: Space) -> None:
    body = {"metadata": {"name": "a"}, "spec": {"type": "ExternalName", "externalName": "example.com"}}
    made = space.post("services", body).ok()
    assert made["spec"] == {"type": "ExternalName", "externalName": "example.com", "sessionAffinity": "None"}


def test_addresses_of_services_differ(space: Space) -> None:
    found = {space.post("services", service(f"s{n}")).ok()["spec"]["clusterIP"] for n in range(5)}
    assert len(found) == 5


def test_a_taken_address_is_refused(space: Space) -> None:
    address = space.post("services", service("a")).ok()["spec"]["clusterIP"]
    refused = space.post("services", service("b", clusterIP=address)).failure()
    message = f'Invalid value: ["{address}"]: failed to allocate IP {address}: provided IP is already allocated'
    assert refused == invalid("Service", "b", cause("spec.clusterIPs", message))


def test_the_address_of_a_deleted_service_is_free_again(space: Space) -> None:
    address = space.post("services", service("a")).ok()["spec"]["clusterIP"]
    space.delete("services/a").ok()
    assert space.post("services", service("b", clusterIP=address)).ok()["spec"]["clusterIP"] == address


BAD_SERVICES: dict[str, tuple[Obj, list[Obj]]] = {
    "no ports": ({"ports": []}, [required("spec.ports")]),
    "ports without names": (
        {"ports": [{"port": 1}, {"port": 2}]},
        [required("spec.ports[0].name"), required("spec.ports[1].name")],
    ),
    "type": (
        {"type": "Odd"},
        [
            cause(
                "spec.type",
                'Unsupported value: "Odd": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"',
                "FieldValueNotSupported",
            )
        ],
    ),
    "address": (
        {"clusterIP": "x"},
        [
            cause(
                "spec.clusterIPs[0]",
                'Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
            )
        ],
    ),
}


@pytest.mark.parametrize(("spec", "causes"), BAD_SERVICES.values(), ids=BAD_SERVICES.keys())
def test_a_service_that_cannot_work_is_refused(space: Space, spec: Obj, causes: list[Obj]) -> None:
    assert space.post("services", service("a", **spec)).failure() == invalid("Service", "a", *causes)


def test_plain_text_of_a_secret_becomes_data(space: Space) -> None:
    made = space.post("secrets", secret("a", stringData={"x": "hello"}, data={"y": "aGk="})).ok()
    expected = secret("a", data={"x": "aGVsbG8=", "y": "aGk="}, type="Opaque")
    assert settled(made) == expected | {"metadata": {"name": "a", "namespace": space.name}}


def test_plain_text_wins_over_data(space: Space) -> None:
    made = space.post("secrets", secret("a", stringData={"x": "hello"}, data={"x": "aGk="})).ok()
    assert made["data"] == {"x": "aGVsbG8="}


def test_data_of_a_secret_must_be_base64(space: Space) -> None:
    refused = space.post("secrets", secret("a", data={"y": "***"})).failure()
    message = 'Secret in version "v1" cannot be handled as a Secret: illegal base64 data at input byte 0'
    assert refused == failure(400, "BadRequest", message)


def test_the_type_of_a_secret_cannot_be_changed(space: Space) -> None:
    space.post("secrets", secret("a")).ok()
    refused = space.patch("secrets/a", {"type": "other"}).failure()
    assert refused == invalid("Secret", "a", cause("type", 'Invalid value: "other": field is immutable'))


def test_a_tls_secret_needs_its_two_parts(space: Space) -> None:
    refused = space.post("secrets", secret("a", type="kubernetes.io/tls")).failure()
    assert refused == invalid("Secret", "a", required("data[tls.crt]"), required("data[tls.key]"))


@pytest.mark.parametrize("plural", ["configmaps", "secrets"])
def test_keys_are_file_names(space: Space, plural: str) -> None:
    kind = {"configmaps": "ConfigMap", "secrets": "Secret"}[plural]
    refused = space.post(plural, {"metadata": {"name": "a"}, "data": {"a/b": "aGk="}}).failure()
    assert refused == invalid(kind, "a", cause("data[a/b]", f'Invalid value: "a/b": {CONFIG_KEY}'))


def test_a_key_is_text_or_bytes_but_not_both(space: Space) -> None:
    refused = space.post("configmaps", config_map("a", {"x": "1"}) | {"binaryData": {"x": "AAE="}}).failure()
    message = 'Invalid value: "x": duplicate of key present in binaryData'
    assert refused == invalid("ConfigMap", "a", cause("data[x]", message))


PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"


def test_a_pod_gets_the_value_of_its_priority_class(server: Api, space: Space, unique_name: str) -> None:
    made = server.post(PRIORITIES, {"metadata": {"name": unique_name}, "value": 1000, "preemptionPolicy": "Never"}).ok()
    assert (made["value"], made["preemptionPolicy"], made["metadata"]["generation"]) == (1000, "Never", 1)
    wanted = pod("a", priorityClassName=unique_name)
    # Nothing tells when a real server's admission has seen the class.
    answer_turns(lambda: space.post("pods", wanted, dryRun="All"), lambda answer: answer.status == 201)
    spec = space.post("pods", wanted).ok()["spec"]
    assert (spec["priority"], spec["priorityClassName"], spec["preemptionPolicy"]) == (1000, unique_name, "Never")


def test_a_missing_priority_class_is_named(space: Space) -> None:
    refused = space.post("pods", pod("a", priorityClassName="none")).failure()
    message = 'pods "a" is forbidden: no PriorityClass with name none was found'
    assert refused == failure(403, "Forbidden", message, about={"name": "a", "kind": "pods"})


def test_a_priority_of_ones_own_is_refused(space: Space) -> None:
    refused = space.post("pods", pod("a", priority=7)).failure()
    message = (
        'pods "a" is forbidden: the integer value of priority (7) must not be provided in pod spec; '
        "priority admission controller computed 0 from the given PriorityClass name"
    )
    assert refused == failure(403, "Forbidden", message, about={"name": "a", "kind": "pods"})


def test_the_value_of_a_priority_class_stays(server: Api, unique_name: str) -> None:
    server.post(PRIORITIES, {"metadata": {"name": unique_name}, "value": 1000}).ok()
    refused = server.patch(f"{PRIORITIES}/{unique_name}", {"value": 5}).failure()
    wrong = cause("value", "Forbidden: may not be changed in an update.", "FieldValueForbidden")
    assert refused == invalid("PriorityClass", unique_name, wrong, group="scheduling.k8s.io")


def test_the_highest_priorities_are_the_systems(server: Api, unique_name: str) -> None:
    refused = server.post(PRIORITIES, {"metadata": {"name": unique_name}, "value": 2_000_000_000}).failure()
    message = "Forbidden: maximum allowed value of a user defined priority is 1000000000"
    wrong = cause("value", message, "FieldValueForbidden")
    assert refused == invalid("PriorityClass", unique_name, wrong, group="scheduling.k8s.io")


@pytest.mark.parametrize(
    ("name", "value"), [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)]
)
def test_the_systems_priority_classes_are_there(server: Api, name: str, value: int) -> None:
    assert server.get(f"{PRIORITIES}/{name}").ok()["value"] == value


LEASES = "coordination.k8s.io/v1"


def test_a_lease_keeps_times_to_the_microsecond(space: Space) -> None:
    spec = {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2026-01-02T03:04:05.000600Z"}
    made = space.post("leases", lease("a", **spec), group=LEASES).ok()
    assert settled(made) == lease("a", **spec) | {"metadata": {"name": "a", "namespace": space.name}}


def test_a_lease_is_updated_only_at_its_latest_version(space: Space) -> None:
    made = space.post("leases", lease("a", holderIdentity="one"), group=LEASES).ok()
    answers = [
        space.put("leases/a", made | {"spec": {"holderIdentity": who}}, group=LEASES).status for who in ("two", "three")
    ]
    assert answers == [200, 409]


BAD_LEASES: dict[str, tuple[Obj, Obj]] = {
    "duration": (
        {"leaseDurationSeconds": 0},
        cause("spec.leaseDurationSeconds", "Invalid value: 0: must be greater than 0"),
    ),
    "transitions": (
        {"leaseTransitions": -1},
        cause("spec.leaseTransitions", "Invalid value: -1: must be greater than or equal to 0"),
    ),
}


@pytest.mark.parametrize(("spec", "wrong"), BAD_LEASES.values(), ids=BAD_LEASES.keys())
def test_a_lease_that_makes_no_sense_is_refused(space: Space, spec: Obj, wrong: Obj) -> None:
    refused = space.post("leases", lease("a", **spec), group=LEASES).failure()
    assert refused == invalid("Lease", "a", wrong, group="coordination.k8s.io")


def event(space: Space, **more: Any) -> Obj:
    about = {"kind": "Pod", "name": "p", "namespace": space.name}
    return {
        "metadata": {"name": "e"},
        "involvedObject": about,
        "reason": "Why",
        "message": "text",
        "type": "Normal",
    } | more


def test_an_event_comes_back_with_its_empty_parts(space: Space) -> None:
    moment = "2026-01-01T00:00:00Z"
    given = event(space, count=1, firstTimestamp=moment, lastTimestamp=moment, source={"component": "c"})
    made = space.post("events", given).ok()
    assert settled(made) == given | {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {"name": "e", "namespace": space.name},
        "eventTime": None,
        "reportingComponent": "",
        "reportingInstance": "",
    }


def test_an_event_has_two_faces(space: Space) -> None:
    moment = "2026-01-01T00:00:00Z"
    given = event(space, count=3, firstTimestamp=moment, lastTimestamp=moment, source={"component": "c"})
    space.post("events", given).ok()
    other = space.get("events/e", group="events.k8s.io/v1").ok()
    assert settled(other) == {
        "kind": "Event",
        "apiVersion": "events.k8s.io/v1",
        "metadata": {"name": "e", "namespace": space.name},
        "eventTime": None,
        "reason": "Why",
        "regarding": {"kind": "Pod", "namespace": space.name, "name": "p"},
        "note": "text",
        "type": "Normal",
        "deprecatedSource": {"component": "c"},
        "deprecatedFirstTimestamp": moment,
        "deprecatedLastTimestamp": moment,
        "deprecatedCount": 3,
    }


def test_an_event_of_the_new_kind_shows_the_old_face(space: Space) -> None:
    body = {
        "metadata": {"name": "e"},
        "eventTime": "2026-01-01T00:00:00.123456Z",
        "regarding": {"kind": "Pod", "name": "p", "namespace": space.name},
        "reason": "Why",
        "note": "text",
        "type": "Normal",
        "action": "Act",
        "reportingController": "example.com/c",
        "reportingInstance": "i",
    }
    space.post("events", body, group="events.k8s.io/v1").ok()
    old = space.get("events/e").ok()
    assert settled(old) == {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {"name": "e", "namespace": space.name},
        "involvedObject": {"kind": "Pod", "namespace": space.name, "name": "p"},
        "reason": "Why",
        "message": "text",
        "source": {},
        "firstTimestamp": None,
        "lastTimestamp": None,
        "type": "Normal",
        "eventTime": "2026-01-01T00:00:00.123456Z",
        "action": "Act",
        "reportingComponent": "example.com/c",
        "reportingInstance": "i",
    }


def test_an_event_is_counted_by_patch(space: Space) -> None:
    space.post("events", event(space, count=1)).ok()
    changed = space.patch("events/e", {"count": 2, "lastTimestamp": "2026-01-01T00:00:09Z"}).ok()
    assert (changed["count"], changed["lastTimestamp"]) == (2, "2026-01-01T00:00:09Z")


def test_an_event_lives_where_its_object_does(space: Space) -> None:
    refused = space.post("events", event(space, involvedObject={"kind": "Pod", "namespace": "other"})).failure()
    message = 'Invalid value: "other": does not match event.namespace'
    assert refused == invalid("Event", "e", cause("involvedObject.namespace", message))


def test_a_claim_is_filled_in(space: Space) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}
    made = space.post("persistentvolumeclaims", {"metadata": {"name": "a"}, "spec": spec}).ok()
    assert made["spec"] == {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "volumeMode": "Filesystem",
    }
    assert made["status"] == {"phase": "Pending"}


def test_a_claim_requires_storage_and_access_modes(space: Space) -> None:
    refused = space.post("persistentvolumeclaims", {"metadata": {"name": "a"}, "spec": {}}).failure()
    assert refused == invalid(
        "PersistentVolumeClaim",
        "a",
        required("spec.accessModes", "at least 1 access mode is required"),
        required("spec.resources[storage]"),
    )


def test_a_claim_stays_as_it_was_made(space: Space) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    space.post("persistentvolumeclaims", {"metadata": {"name": "a"}, "spec": spec}).ok()
    refused = space.patch("persistentvolumeclaims/a", {"spec": {"accessModes": ["ReadWriteMany"]}}).failure()
    (found,) = refused["details"]["causes"]
    message = (
        "Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName "
        "for bound claims"
    )
    assert (refused["code"], found["field"]) == (422, "spec")
    assert found["message"].startswith(message)  # what follows shows the difference, for a person


def test_a_volume_is_filled_in(server: Api, unique_name: str) -> None:
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    made = server.post("/api/v1/persistentvolumes", {"metadata": {"name": unique_name}, "spec": spec}).ok()
    assert made["spec"] == spec | {
        "hostPath": {"path": "/x", "type": ""},
        "persistentVolumeReclaimPolicy": "Retain",
        "volumeMode": "Filesystem",
    }
    assert made["status"]["phase"] == "Pending"


def test_an_endpoint_slice_is_filled_in(space: Space) -> None:
    body = {
        "metadata": {"name": "a"},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.1.2.3"]}],
        "ports": [{"port": 80}],
    }
    made = space.post("endpointslices", body, group="discovery.k8s.io/v1").ok()
    assert (made["endpoints"], made["ports"]) == (
        [{"addresses": ["10.1.2.3"], "conditions": {}}],
        [{"name": "", "protocol": "TCP", "port": 80}],
    )


def test_an_endpoint_slice_that_makes_no_sense_is_refused(space: Space) -> None:
    body = {"metadata": {"name": "a"}, "addressType": "X", "endpoints": [{"addresses": []}]}
    refused = space.post("endpointslices", body, group="discovery.k8s.io/v1").failure()
    assert refused == invalid(
        "EndpointSlice",
        "a",
        cause(
            "addressType",
            'Unsupported value: "X": supported values: "FQDN", "IPv4", "IPv6"',
            "FieldValueNotSupported",
        ),
        required("endpoints[0].addresses", "must contain at least 1 address"),
        group="discovery.k8s.io",
    )


def test_a_node_reports_its_capacity_apart_from_its_spec(server: Api, unique_name: str) -> None:
    server.post("/api/v1/nodes", {"metadata": {"name": unique_name}}).ok()
    patch = {"spec": {"unschedulable": True}, "status": {"capacity": {"cpu": "2", "memory": "1024Mi"}}}
    changed = server.patch(f"/api/v1/nodes/{unique_name}/status", patch).ok()
    assert "unschedulable" not in changed["spec"]
    assert changed["status"]["capacity"] == {"cpu": "2", "memory": "1Gi"}
    assert changed["status"]["allocatable"] == {"cpu": "2", "memory": "1Gi"}
