"""The survey of a machine says in whole words what works, what does not, and what that costs."""

from __future__ import annotations

import pytest

from shoal.node import host_checks
from shoal.node.host_checks import Finding

pytestmark = pytest.mark.processes


def test_every_check_has_a_description() -> None:
    findings = host_checks.run_checks()

    assert [finding.name for finding in findings] == [
        "namespaces",
        "mounts",
        "pod networks",
        "egress",
        "memory limits",
        "cpu limits",
        "process limits",
        "GPUs",
        "/dev/shm",
        "file descriptors",
        "SQLite",
    ]
    assert all(finding.detail for finding in findings)
    assert [finding.name for finding in findings if not finding.works and not finding.cost] == []


def test_a_machine_that_allows_nothing_gets_the_cost_of_each_check(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = {
        "privilege": "none",
        "mounts": False,
        "network": False,
        "redirect": False,
        "detail": "unshare: Operation not permitted",
        "network_detail": "unshare: Operation not permitted",
        "redirect_detail": "",
    }
    monkeypatch.setattr(host_checks, "probe_host", lambda: refused)
    monkeypatch.setattr(host_checks, "namespace_obstacle", lambda: "")

    assert host_checks.run_checks()[:4] == [
        Finding(
            "namespaces",
            False,
            "unshare: Operation not permitted",
            "pods run as plain processes: they share the machine's hostname, hosts file and folders",
        ),
        Finding(
            "mounts",
            False,
            "unshare: Operation not permitted",
            "volumes cannot be shown at their mountPath: pods with volumes fail with a message",
        ),
        Finding(
            "pod networks",
            False,
            "unshare: Operation not permitted",
            "pods share the machine's network with a 127.x.y.z address each: a program that listens on all addresses "
            "(0.0.0.0) takes the port from every other pod; have it listen on its pod's address",
        ),
        Finding("egress", True, "pods use the machine's own network"),
    ]


def test_a_kernel_without_a_packet_filter_leaves_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = {
        "privilege": "user",
        "mounts": True,
        "network": True,
        "redirect": False,
        "detail": "",
        "network_detail": "",
        "redirect_detail": "packet filter: Operation not supported",
    }
    monkeypatch.setattr(host_checks, "probe_host", lambda: allowed)

    assert host_checks.run_checks()[3] == Finding(
        "egress",
        True,
        "HTTP and HTTPS by a proxy in the pods' environment (http_proxy, https_proxy); "
        "the packet filter cannot be used: packet filter: Operation not supported",
        "other protocols do not leave the cluster: pods that need them set hostNetwork: true",
    )
