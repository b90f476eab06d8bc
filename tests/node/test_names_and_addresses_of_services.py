"""The hosts file of a pod and the table of virtual addresses, from Services and slices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kit.pods import container, pod
from shoal.kube.objects import Obj
from shoal.node.cluster_dns import (
    build_directory,
    hostname_of,
    hosts_file,
    peer,
    peer_lines,
    pod_hosts,
    reachable_slice,
    service_lines,
    service_table,
    undiscovered_peers,
)
from shoal.node.hosts_files import rewrite


def service(name: str, namespace: str = "default", **spec: Any) -> Obj:
    return {"metadata": {"name": name, "namespace": namespace}, "spec": spec}


def piece(of: str, *endpoints: Obj, namespace: str = "default", number: int = 0, **ports: int) -> Obj:
    labels = {"kubernetes.io/service-name": of}
    listed = [{"name": "" if name == "_" else name, "port": port} for name, port in ports.items()]
    meta = {"name": f"{of}-{number}", "namespace": namespace, "labels": labels}
    return {"metadata": meta, "endpoints": list(endpoints), "ports": listed}


def at(address: str, *, ready: bool = True, hostname: str = "") -> Obj:
    endpoint: Obj = {"addresses": [address], "conditions": {"ready": ready}}
    return {**endpoint, "hostname": hostname} if hostname else endpoint


def lines(services: list[Obj], slices: list[Obj], namespace: str = "default") -> list[str]:
    return service_lines(build_directory(services, slices), namespace).splitlines()


def test_a_cluster_address_has_every_form_of_its_name() -> None:
    assert lines([service("web", clusterIP="10.96.0.1")], []) == [
        "10.96.0.1\tweb web.default web.default.svc web.default.svc.cluster.local"
    ]


def test_the_short_form_is_for_neighbours_only() -> None:
    assert lines([service("web", "far", clusterIP="10.96.0.1")], []) == [
        "10.96.0.1\tweb.far web.far.svc web.far.svc.cluster.local"
    ]


def test_a_headless_service_is_all_its_ready_pods_by_their_hostnames() -> None:
    slices = [piece("h", at("10.77.1.10", hostname="b"), at("10.77.1.9"), at("10.77.1.3", ready=False))]
    assert lines([service("h", clusterIP="None")], slices) == [
        "10.77.1.9\th h.default h.default.svc h.default.svc.cluster.local",
        "10.77.1.10\th h.default h.default.svc h.default.svc.cluster.local"
        " b.h b.h.default b.h.default.svc b.h.default.svc.cluster.local",
    ]


def member(name: str, *, of: str = "h", probe: bool = False, job: str = "a") -> Obj:
    made = pod(name, container("main", **({"readinessProbe": {"exec": {"command": ["true"]}}} if probe else {})))
    made["metadata"] |= {"namespace": "default", "labels": {"job": job}}
    made["spec"] |= {"hostname": name, "subdomain": of}
    return made


def test_members_of_a_gang_are_found_by_name_before_they_are_ready() -> None:
    """By their own names alone, where a headless Service chooses them, until a slice tells of them."""
    gang = service("h", clusterIP="None", selector={"job": "a"})
    peers = {
        name: found
        for name, each in {
            "a-0": member("a-0"),
            "another's": member("b-0", job="b"),
            "without a Service": member("c-0", of="nobody"),
            "a-1": member("a-1"),
        }.items()
        if (found := peer(each, f"10.77.1.{len(name)}")) is not None
    }
    assert peer_lines(build_directory([gang], []), peers.values(), "default").splitlines() == [
        "10.77.1.3\ta-0.h a-0.h.default a-0.h.default.svc a-0.h.default.svc.cluster.local",
        "10.77.1.3\ta-1.h a-1.h.default a-1.h.default.svc a-1.h.default.svc.cluster.local",
    ]
    known = build_directory([gang], [piece("h", at("10.77.1.3", hostname="a-0"), at("10.77.1.9", ready=False))])
    assert sorted(undiscovered_peers(known, peers)) == ["another's", "without a Service"]


def test_pods_with_readiness_probes_are_found_when_they_are_ready() -> None:
    assert peer(member("a-0", probe=True), "10.77.1.3") is None
    assert peer(member("a-0"), "") is None
    assert peer(member("a-0", of=""), "10.77.1.3") is None


def test_a_service_may_publish_pods_that_are_not_ready() -> None:
    slices = [piece("h", at("10.77.1.3", ready=False))]
    open_to_all = service("h", clusterIP="None", publishNotReadyAddresses=True)
    assert [line.split("\t")[0] for line in lines([open_to_all], slices)] == ["10.77.1.3"]


def test_an_external_name_is_a_comment_in_the_hosts_file() -> None:
    assert lines([service("x", type="ExternalName", externalName="example.org")], []) == [
        "# x.default.svc.cluster.local stands for example.org: resolve that name instead"
    ]


def test_the_hosts_file_of_a_pod_has_its_own_name_and_its_aliases() -> None:
    made = pod(
        "p", container(), hostname="first", subdomain="web", hostAliases=[{"ip": "192.0.2.9", "hostnames": ["a", "b"]}]
    )
    text = hosts_file(pod_hosts(made, "10.77.1.4"), "10.96.0.1\tweb\n")
    assert text.splitlines()[-3:] == [
        "10.77.1.4\tfirst.web.default.svc.cluster.local first",
        "192.0.2.9\ta b",
        "10.96.0.1\tweb",
    ]


def test_a_long_name_is_cut_to_what_a_hostname_may_be() -> None:
    assert hostname_of(pod("a" * 62 + "-" + "b" * 20)) == "a" * 62


def test_the_table_leads_each_port_to_the_pods_behind_it() -> None:
    ports = [
        {"name": "http", "port": 80, "targetPort": "web"},
        {"name": "x", "port": 9, "protocol": "UDP"},
        {"name": "db", "port": 5},
    ]
    slices = [
        piece("web", at("10.77.1.10"), at("10.77.1.9"), at("10.77.1.8", ready=False), http=8000),
        piece("web", at("10.77.1.2"), number=1, http=8001),
    ]
    found = service_table(build_directory([service("web", clusterIP="10.96.0.1", ports=ports)], slices))
    assert found == {
        ("10.96.0.1", 80): (("10.77.1.2", 8001), ("10.77.1.9", 8000), ("10.77.1.10", 8000)),
        ("10.96.0.1", 5): (),
    }


def test_pods_of_other_machines_are_left_out_only_where_their_addresses_are_ours() -> None:
    ours, theirs, routed, unplaced = (
        {**at("10.77.1.1"), "nodeName": "here"},
        {**at("10.77.1.1"), "nodeName": "there"},
        {**at("10.8.0.9"), "nodeName": "there"},
        at("10.77.1.9"),
    )
    found = reachable_slice(piece("web", ours, theirs, routed, unplaced, _=80), {"here"}, "10.77.0.0/16")
    assert found == piece("web", ours, routed, unplaced, _=80)


def test_headless_and_external_services_have_no_place_in_the_table() -> None:
    services = [service("h", clusterIP="None", ports=[{"port": 1}]), service("x", type="ExternalName")]
    assert service_table(build_directory(services, [])) == {}


@settings(deadline=None)
@given(st.text(max_size=200), st.text(max_size=200))
def test_a_rewritten_file_holds_the_new_text_and_stays_the_same_file(old: str, new: str) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "hosts"
        rewrite(path, old)
        number = path.stat().st_ino
        rewrite(path, new)
        assert (path.read_bytes(), path.stat().st_ino) == (new.encode(errors="strict"), number)
