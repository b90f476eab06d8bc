"""A machine that joins is a Node like others: registered, alive, placed on by the scheduler, with names and tokens."""

from __future__ import annotations

from pathlib import Path

import pytest

from kit.control_plane import ControlPlane
from kit.control_plane_with_node import NODE
from kit.kubernetes_node import ended, log_of, own_node, pod, reached
from kit.pods import phase_is, wait_for_pod
from shoal.kube import kinds
from shoal.kube.conditions import is_true
from shoal.kube.kinds import LEASE, POD, SERVICE
from shoal.node.kubelet_api.authorization import TOKEN_REVIEW

pytestmark = [pytest.mark.kubernetes, pytest.mark.processes]


async def test_the_node_is_registered_with_room_labels_and_taints(
    kubernetes_plane: ControlPlane, tmp_path: Path
) -> None:
    process, name = own_node(
        kubernetes_plane, tmp_path / "n", "--label", "zone=lab", "--capacity", "example.com/lamp=3"
    )
    process.start()
    try:
        async with reached(kubernetes_plane) as (cluster, _):
            node = await cluster.get(kinds.NODE, name)
            lease = await cluster.get(LEASE, name, "kube-node-lease")
    finally:
        process.stop()
    async with reached(kubernetes_plane) as (cluster, _):
        left = await cluster.get(kinds.NODE, name)
    labels = node["metadata"]["labels"]
    assert (labels["zone"], labels["shoal.dev/process-node"], labels["kubernetes.io/hostname"]) == ("lab", "true", name)
    assert {"key": "shore.example.com/mine", "value": "yes", "effect": "NoSchedule"} in node["spec"]["taints"]
    assert node["status"]["allocatable"]["example.com/lamp"] == "3"
    assert (is_true(node, "Ready"), is_true(left, "Ready")) == (True, False)
    assert lease["spec"]["holderIdentity"].startswith(f"{name}_")
    assert lease["metadata"]["ownerReferences"][0]["uid"] == node["metadata"]["uid"]


def test_a_node_that_the_cluster_refuses_is_not_tried_for_ever(kubernetes_plane: ControlPlane, tmp_path: Path) -> None:
    twice = ("--taint", "lab=a:NoSchedule", "--taint", "lab=b:NoSchedule")
    process, name = own_node(kubernetes_plane, tmp_path / "n", *twice)
    with pytest.raises(AssertionError, match="Error: ") as caught:
        process.start()
    assert name in str(caught.value)
    assert "Duplicate value" in str(caught.value)
    assert "Traceback" not in str(caught.value)


async def test_pods_are_placed_and_reach_services_by_name(kubernetes_plane: ControlPlane) -> None:
    server = "import http.server as h; h.HTTPServer(('', 8000), h.SimpleHTTPRequestHandler).serve_forever()"
    ask = "import urllib.request as u; print(u.urlopen('http://{}/').status)"
    asking = "; ".join(f'until python3 -c "{ask.format(place)}"; do :; done' for place in ("web", "web-0.nets:8000"))
    async with reached(kubernetes_plane) as (cluster, namespace):
        for name, spec in (
            ("web", {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8000}]}),
            ("nets", {"selector": {"app": "web"}, "clusterIP": "None"}),
        ):
            await cluster.create(SERVICE, {"metadata": {"name": name}, "spec": spec}, namespace)
        web = pod("web", f'cd /; exec python3 -c "{server}"', hostname="web-0", subdomain="nets")
        await cluster.create(POD, web, namespace)
        await cluster.create(POD, pod("asks", f"{{ {asking}; }} 2>/dev/null"), namespace)
        assert await ended(cluster, namespace, "asks") == "Succeeded"
        assert await log_of(cluster, namespace, "asks") == ["200", "200"]
        found = await cluster.get(POD, "asks", namespace)
        assert found["spec"]["nodeName"] == NODE


async def test_a_pod_is_given_a_token_that_the_cluster_knows_as_its_own(kubernetes_plane: ControlPlane) -> None:
    folder = "/var/run/secrets/kubernetes.io/serviceaccount"
    async with reached(kubernetes_plane) as (cluster, namespace):
        await cluster.create(
            POD, pod("shows", f"cat {folder}/token; echo; cat {folder}/namespace; sleep 1000"), namespace
        )
        await wait_for_pod(cluster, "shows", phase_is("Running"), namespace)
        token, _ = [*await log_of(cluster, namespace, "shows", lines=1), ""]
        review = {"metadata": {}, "spec": {"token": token}}
        status = (await cluster.create(TOKEN_REVIEW, review))["status"]
        assert (status["authenticated"], status["user"]["username"]) == (
            True,
            f"system:serviceaccount:{namespace}:default",
        )
        assert status["user"]["extra"]["authentication.kubernetes.io/pod-name"] == ["shows"]


async def test_a_pod_reaches_the_api_with_its_token(kubernetes_plane: ControlPlane) -> None:
    folder = "/var/run/secrets/kubernetes.io/serviceaccount"
    ask = (
        "import os, ssl, urllib.request as u; "
        "place = 'https://' + os.environ['KUBERNETES_SERVICE_HOST'] + '/apis'; "
        f"key = {{'Authorization': 'Bearer ' + open('{folder}/token').read()}}; "
        f"trust = ssl.create_default_context(cafile='{folder}/ca.crt'); "
        "direct = u.build_opener(u.ProxyHandler({}), u.HTTPSHandler(context=trust)); "
        "print(direct.open(u.Request(place, headers=key)).status)"
    )
    async with reached(kubernetes_plane) as (cluster, namespace):
        await cluster.create(POD, pod("asks", f'python3 -c "{ask}"'), namespace)
        assert await ended(cluster, namespace, "asks") == "Succeeded"
        assert await log_of(cluster, namespace, "asks") == ["200"]
