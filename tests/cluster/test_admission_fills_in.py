"""What the cluster fills in by looking around: addresses, priorities, quality of service."""

from __future__ import annotations

from ipaddress import IPv4Network, ip_address

import pytest

from kit.cluster_objects import key, machinery, obj, pod, refusal
from shoal.cluster.client import PatchType
from shoal.cluster.registry import RegistrySettings
from shoal.kube import kinds


def service(name, **spec):
    return obj(name, spec={"ports": [{"port": 80}], **spec})


def test_each_service_gets_its_own_address_of_the_range():
    network = IPv4Network("127.96.0.0/28")
    cluster = machinery(settings=RegistrySettings(service_network=network))
    given = [cluster.create(kinds.SERVICE, "default", service(f"s{n}")).stored.obj()["spec"] for n in range(13)]
    addresses = {spec["clusterIP"] for spec in given}
    assert len(addresses) == 13
    assert all(ip_address(address) in network for address in addresses)
    assert all(spec["clusterIPs"] == [spec["clusterIP"]] for spec in given)
    assert "range is full" in refusal(cluster.create, kinds.SERVICE, "default", service("s99"))[2]
    cluster.delete(kinds.SERVICE, key("s3"))
    assert cluster.create(kinds.SERVICE, "default", service("s99")).created


def test_a_headless_service_has_no_address():
    spec = machinery().create(kinds.SERVICE, "default", service("s", clusterIP="None")).stored.obj()["spec"]
    assert (spec["clusterIP"], spec["clusterIPs"]) == ("None", ["None"])


def test_an_external_name_has_no_address():
    sent = obj("s", spec={"type": "ExternalName", "externalName": "example.com"})
    assert "clusterIP" not in machinery().create(kinds.SERVICE, "default", sent).stored.obj()["spec"]


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("10.96.7.7", "provided IP is already allocated"),
        ("10.1.1.1", "the provided IP (10.1.1.1) is not in the valid range. The range of valid IPs is 10.96.0.0/16"),
    ],
    ids=["taken", "outside"],
)
def test_an_address_asked_for_must_be_free_and_inside(address, why):
    cluster = machinery()
    cluster.create(kinds.SERVICE, "default", service("first", clusterIP="10.96.7.7"))
    assert refusal(cluster.create, kinds.SERVICE, "default", service("s", clusterIP=address)) == (
        422, "Invalid",
        f'Service "s" is invalid: spec.clusterIPs: Invalid value: ["{address}"]: '
        f"failed to allocate IP {address}: {why}",
    )  # fmt: skip


def test_a_put_that_leaves_the_address_out_keeps_it():
    cluster = machinery()
    before = cluster.create(kinds.SERVICE, "default", service("s")).stored.obj()["spec"]["clusterIP"]
    after = cluster.update(kinds.SERVICE, key("s"), service("s", selector={"a": "b"})).stored.obj()["spec"]
    assert (after["clusterIP"], after["selector"]) == (before, {"a": "b"})


def test_addresses_stay_taken_across_a_restart(tmp_path):
    settings = RegistrySettings(service_network=IPv4Network("127.96.0.0/29"))
    cluster = machinery(tmp_path / "s.db", settings=settings)
    first = {cluster.create(kinds.SERVICE, "default", service(f"s{n}")).stored.fields["spec.clusterIP"] for n in "ab"}
    cluster.close()
    cluster = machinery(tmp_path / "s.db", settings=settings)
    later = {cluster.create(kinds.SERVICE, "default", service(f"s{n}")).stored.fields["spec.clusterIP"] for n in "cde"}
    assert len(first | later) == 5
    cluster.close()


def priority(name, value, **more):
    return {"metadata": {"name": name}, "value": value, **more}


def test_a_pod_has_the_priority_of_its_class():
    cluster = machinery()
    cluster.create(kinds.PRIORITY_CLASS, "", priority("high", 1000, preemptionPolicy="Never"))
    sent = pod("p")
    sent["spec"]["priorityClassName"] = "high"
    spec = cluster.create(kinds.POD, "default", sent).stored.obj()["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (1000, "Never")


def test_a_pod_without_a_class_has_the_default_one():
    cluster = machinery()
    first = cluster.create(kinds.POD, "default", pod("p")).stored.obj()["spec"]
    cluster.create(kinds.PRIORITY_CLASS, "", priority("usual", 7, globalDefault=True))
    second = cluster.create(kinds.POD, "default", pod("q")).stored.obj()["spec"]
    assert (first["priority"], second["priority"], second["priorityClassName"]) == (0, 7, "usual")
    assert refusal(cluster.create, kinds.PRIORITY_CLASS, "", priority("other", 8, globalDefault=True)) == (
        403, "Forbidden",
        'priorityclasses.scheduling.k8s.io "other" is forbidden: PriorityClass usual is already marked as default. '
        "Only one default can exist",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"priorityClassName": "none-such"}, "no PriorityClass with name none-such was found"),
        (
            {"priority": 5},
            "the integer value of priority (5) must not be provided in pod spec; priority admission controller "
            "computed 0 from the given PriorityClass name",
        ),
    ],
    ids=["a class nobody made", "a number of its own"],
)
def test_a_priority_without_its_class_is_forbidden(spec, why):
    sent = pod("p")
    sent["spec"].update(spec)
    assert refusal(machinery().create, kinds.POD, "default", sent) == (
        403, "Forbidden", f'pods "p" is forbidden: {why}',
    )  # fmt: skip


@pytest.mark.parametrize(
    ("resources", "quality"),
    [
        ([{}], "BestEffort"),
        ([{"limits": {"nvidia.com/gpu": "1"}}], "BestEffort"),
        ([{"requests": {"cpu": "1"}}], "Burstable"),
        ([{"limits": {"cpu": "1", "memory": "1Gi"}}], "Guaranteed"),
        ([{"limits": {"cpu": "1", "memory": "1Gi"}}, {}], "Burstable"),
        ([{"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}], "Burstable"),
        ([{"limits": {"cpu": "1000m", "memory": "1024Mi"}, "requests": {"cpu": "1", "memory": "1Gi"}}], "Guaranteed"),
    ],
    ids=["nothing", "only a GPU", "a request", "limits", "limits for one of two", "less requested", "other words"],
)
def test_quality_of_service_follows_the_resources(resources, quality):
    sent = pod("p")
    sent["spec"]["containers"] = [
        {"name": f"c{n}", "image": "x:1", "resources": wanted} for n, wanted in enumerate(resources)
    ]
    made = machinery().create(kinds.POD, "default", sent).stored.obj()
    assert made["status"] == {"phase": "Pending", "qosClass": quality}


def test_a_volume_notes_when_its_phase_changed():
    cluster = machinery()
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/data"}}
    cluster.create(kinds.PERSISTENT_VOLUME, "", obj("v", spec=spec))
    cluster.clock.advance(60)
    change = {"status": {"phase": "Available"}}
    where = key("v", "")
    after = cluster.patch(kinds.PERSISTENT_VOLUME, where, change, PatchType.MERGE, subresource="status").stored.obj()
    assert after["status"] == {"phase": "Available", "lastPhaseTransitionTime": "2030-01-01T00:01:00Z"}
