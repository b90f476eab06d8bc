"""`kubectl logs`, `exec` and `port-forward` work with pods of the node, and nobody else may ask it."""

from __future__ import annotations

import asyncio
import re
import subprocess
from typing import Any

import aiohttp
import pytest

from kit import control_plane
from kit.control_plane import ControlPlane
from kit.control_plane_with_node import NODE
from kit.eventually import answer_becomes
from kit.kubernetes_node import ended, log_of, pod, reached, token_of
from kit.operator_process import user_of
from kit.pods import phase_is, wait_for_pod
from shoal.cluster.client import LogOptions
from shoal.cluster.kubernetes import KubernetesCluster
from shoal.kube import kinds
from shoal.kube.errors import ApiError
from shoal.kube.kinds import POD, SERVICE_ACCOUNT, Kind
from shoal.kube.objects import Obj
from shoal.node.kubelet_api.authorization import ACCESS_REVIEW, Caller, access_review

pytestmark = [pytest.mark.kubernetes, pytest.mark.processes]

CLUSTER_ROLE = Kind("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", namespaced=False)
BINDING = Kind("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False)


def kubectl_command(plane: ControlPlane, *words: str) -> list[str]:
    program = str(control_plane.binaries(["kubectl"]) / "kubectl")
    return [program, "--kubeconfig", str(plane.kubeconfig), *words]


def kubectl(plane: ControlPlane, *words: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(kubectl_command(plane, *words), capture_output=True, text=True, **more)


async def test_logs_are_followed_to_the_end(kubernetes_plane: ControlPlane) -> None:
    async with reached(kubernetes_plane) as (cluster, namespace):
        await cluster.create(POD, pod("talks", "for i in 1 2 3; do echo line $i; sleep 0.2; done"), namespace)
        await wait_for_pod(cluster, "talks", phase_is("Running", "Succeeded"), namespace)
        assert await log_of(cluster, namespace, "talks") == ["line 1", "line 2", "line 3"]
        assert await ended(cluster, namespace, "talks") == "Succeeded"
        done = kubectl(kubernetes_plane, "logs", "-n", namespace, "talks", "--tail=1")
        assert (done.stdout, done.returncode) == ("line 3\n", 0)


async def test_the_logs_of_a_container_that_waits_are_refused_with_its_reason(kubernetes_plane: ControlPlane) -> None:
    needs = {"name": "n", "configMap": {"name": "missing"}}
    async with reached(kubernetes_plane) as (cluster, namespace):
        await cluster.create(POD, pod("waits", "true", volumes=[needs]), namespace)
        await wait_for_pod(cluster, "waits", lambda p: bool(p and p["status"].get("containerStatuses")), namespace)
        with pytest.raises(ApiError) as caught:
            async for _ in cluster.logs("waits", namespace, LogOptions()):
                pass
        assert (caught.value.code, "is waiting to start: ContainerCreating" in caught.value.message) == (400, True)


async def test_commands_run_in_the_container_and_end_with_their_code(kubernetes_plane: ControlPlane) -> None:
    async with reached(kubernetes_plane) as (cluster, namespace):
        await cluster.create(POD, pod("stays", "exec sleep 1000"), namespace)
        await wait_for_pod(cluster, "stays", phase_is("Running"), namespace)
        words = ("exec", "-n", namespace, "-i", "stays", "--", "sh", "-c", "hostname; cat; echo no >&2; exit 3")
        done = kubectl(kubernetes_plane, *words, input="given\n")
        assert (done.stdout, done.returncode) == ("stays\ngiven\n", 3)
        assert done.stderr == "no\ncommand terminated with exit code 3\n"


async def test_ports_of_a_pod_are_forwarded(kubernetes_plane: ControlPlane) -> None:
    server = "import http.server as h; h.HTTPServer(('127.0.0.1', 8080), h.SimpleHTTPRequestHandler).serve_forever()"
    async with reached(kubernetes_plane) as (cluster, namespace):
        await cluster.create(POD, pod("web", f'cd /etc/apt; exec python3 -c "{server}"'), namespace)
        await wait_for_pod(cluster, "web", phase_is("Running"), namespace)
        words = ("port-forward", "-n", namespace, "--address=127.0.0.1", "pod/web", ":8080")
        forwarding = await asyncio.create_subprocess_exec(
            *kubectl_command(kubernetes_plane, *words), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        try:
            assert forwarding.stdout is not None
            said = (await forwarding.stdout.readline()).decode()
            found = re.match(r"Forwarding from 127.0.0.1:(\d+) -> 8080", said)
            assert found, said
            async with aiohttp.ClientSession() as session:
                for _ in range(3):
                    async with session.get(f"http://127.0.0.1:{found[1]}/") as answer:
                        assert (answer.status, "sources.list" in await answer.text()) == (200, True)
        finally:
            forwarding.kill()
            await forwarding.wait()


async def test_callers_without_rights_are_rejected(kubernetes_plane: ControlPlane) -> None:
    async with reached(kubernetes_plane) as (cluster, namespace):
        await cluster.create(POD, pod("talks", "echo secret"), namespace)
        await ended(cluster, namespace, "talks")
        node = await cluster.get(kinds.NODE, NODE)
        port = node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
        place = f"https://127.0.0.1:{port}/containerLogs/{namespace}/talks/main"
        role = {
            "metadata": {"name": namespace},
            "rules": [{"apiGroups": [""], "resources": ["nodes/proxy"], "verbs": ["get"]}],
        }
        await cluster.create(CLUSTER_ROLE, role)
        for name, may in (("may", True), ("maynot", False)):
            await cluster.create(SERVICE_ACCOUNT, {"metadata": {"name": name}}, namespace)
            if may:
                await cluster.create(BINDING, binding(namespace, name))
                await is_granted(cluster, user_of(name, namespace))
        answers = [
            await asked(place, token)
            for token in (
                "",
                "wrong",
                await token_of(cluster, namespace, "maynot"),
                await token_of(cluster, namespace, "may"),
            )
        ]
        refused = (
            f"user system:serviceaccount:{namespace}:maynot may not get nodes/proxy of {NODE}; "
            "a ClusterRole can grant it\n"
        )
        unknown = "present a client certificate or a token of the cluster\n"
        assert answers == [(401, unknown), (401, unknown), (403, refused), (200, "secret\n")]
        command = place.replace("containerLogs", "exec") + "?command=id&output=1"
        assert (await asked(command, await token_of(cluster, namespace, "may")))[0] == 403


async def is_granted(cluster: KubernetesCluster, user: str) -> None:
    """The server learns of roles a moment after they are written, and the node remembers a no."""

    async def review() -> Obj:
        return await cluster.create(ACCESS_REVIEW, access_review(Caller(user), "get", NODE))

    await answer_becomes(review, lambda made: bool(made["status"]["allowed"]))


def binding(namespace: str, name: str) -> dict[str, Any]:
    who = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": namespace}
    return {"metadata": {"name": namespace}, "roleRef": role, "subjects": [who]}


async def asked(place: str, token: str) -> tuple[int, str]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with aiohttp.ClientSession() as client, client.get(place, headers=headers, ssl=False) as answer:
        return answer.status, await answer.text()
