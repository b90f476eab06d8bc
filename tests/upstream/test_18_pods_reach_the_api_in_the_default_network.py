"""Programs in pods reach the API server in the default network, as upstream's barrier samples and the start command of
Paddle jobs need it: through the Service `kubernetes`, with the token of the pod's service account."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from kit.embedded_world import RealWorld
from kit.framework_notation import fw
from kit.frameworks import role
from kit.pod_behavior import Rule, holding, pod_with, runs
from kit.scenario import NAMESPACE
from shoal.cluster.client import LogOptions
from shoal.kube.kinds import POD, SERVICE_ACCOUNT
from shoal.kube.objects import Obj
from shoal.node.sandbox.interface import Network

pytestmark = pytest.mark.processes

FOLDER = "/mnt/frameworkbarrier"

# Requests with the standard library, as a program in a container would make them.
CLIENT = """
import json, os, ssl, sys, urllib.error, urllib.request
account = "/var/run/secrets/kubernetes.io/serviceaccount"
trust = ssl.create_default_context(cafile=f"{account}/ca.crt")
direct = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trust))
def status(host, path, token, method="GET", body=None):
    request = urllib.request.Request(f"https://{host}{path}", method=method, data=body)
    request.add_header("Content-Type", "application/json")
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with direct.open(request) as answer:
            return answer.status
    except urllib.error.HTTPError as refused:
        return refused.code
token = open(f"{account}/token").read()
address = os.environ["KUBERNETES_SERVICE_HOST"] + ":" + os.environ["KUBERNETES_SERVICE_PORT"]
print(json.dumps([
    open(f"{account}/namespace").read(),
    *(status(*asked) for asked in json.loads(sys.argv[1].replace("ADDRESS", address).replace("TOKEN", token)))
]), flush=True)
"""


async def printed(world: RealWorld, name: str, *, lines: int, container: str = "main") -> list[str]:
    text = b""
    async for chunk in world.user.logs(name, NAMESPACE, LogOptions(container=container, follow=True)):
        text += chunk
        if text.count(b"\n") >= lines:
            break
    return text.decode().splitlines()[:lines]


def pod(name: str, *command: str, **spec: Any) -> Obj:
    container = {"name": "main", "image": "client", "command": list(command)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"restartPolicy": "Never", "containers": [container], **spec},
    }


async def ended(world: RealWorld, name: str) -> str:
    phases = ("Succeeded", "Failed")
    await world.until(lambda: (world.pods.get(name, {}).get("status") or {}).get("phase") in phases)
    return str(world.pods[name]["status"]["phase"])


async def run_client(world: RealWorld, script: Path, requests: list[tuple[str, ...]], **spec: Any) -> list[Any]:
    """What the API server answers to a pod: its namespace, then a status for each request."""
    asked = pod("client", sys.executable, str(script), json.dumps(requests), **spec)
    await world.user.create(POD, asked, NAMESPACE)
    await ended(world, "client")
    chunks = [chunk async for chunk in world.user.logs("client", NAMESPACE, LogOptions())]
    text = b"".join(chunks).decode()
    assert text.startswith("["), text
    found: list[Any] = json.loads(text)
    return found


def behind_barrier(name: str, number: int) -> Obj:
    """A role as upstream's samples have it: an init container is the barrier, its files lie in an emptyDir that the
    application sources."""
    spec = pod_with(Rule(runs()))
    place = [{"name": "frameworkbarrier-volume", "mountPath": FOLDER}]
    spec["spec"]["initContainers"] = [
        {
            "name": "frameworkbarrier",
            "image": "frameworkcontroller/frameworkbarrier",
            "command": [sys.executable, "-m", "shoal", "barrier"],
            "workingDir": FOLDER,
            "volumeMounts": place,
        }
    ]
    spec["spec"]["containers"][0] |= {
        "command": [
            "sh",
            "-c",
            f". {FOLDER}/injector.sh >/dev/null; echo $FB_PS_IPS $FB_WORKER_IPS; exec sleep 100000",
        ],
        "volumeMounts": place,
    }
    spec["spec"]["volumes"] = [{"name": "frameworkbarrier-volume", "emptyDir": {}}]
    return role(name, number, pod=spec)


async def test_18_a_framework_of_servers_and_workers_passes_its_barrier(tmp_path: Path) -> None:
    async with RealWorld(tmp_path) as world:
        await world.submit(fw("gang", behind_barrier("ps", 1), behind_barrier("worker", 2)))
        names = ("gang-ps-0", "gang-worker-0", "gang-worker-1")
        await world.until(
            lambda: all((world.pods.get(n, {}).get("status") or {}).get("phase") == "Running" for n in names)
        )
        addresses = [world.pods[name]["status"]["podIP"] for name in names]
        seen = [await printed(world, name, lines=1) for name in names]
    assert seen == [[f"{addresses[0]} {addresses[1]},{addresses[2]}"]] * 3


async def test_18_a_pod_reads_its_peers_and_nothing_else(tmp_path: Path) -> None:
    script = tmp_path / "client.py"
    script.write_text(CLIENT)
    own = f"/api/v1/namespaces/{NAMESPACE}"
    async with RealWorld(tmp_path) as world:
        admin = (tmp_path / "data/token").read_text().strip()
        assert await run_client(
            world,
            script,
            [
                ("ADDRESS", f"{own}/pods", "TOKEN"),
                ("kubernetes.default.svc:443", f"{own}/pods/client", "TOKEN"),
                ("ADDRESS", f"{own}/pods", ""),
                ("ADDRESS", f"{own}/pods", admin),
                ("ADDRESS", f"{own}/secrets", "TOKEN"),
                ("ADDRESS", "/api/v1/pods", "TOKEN"),
                ("ADDRESS", "/api/v1/namespaces/kube-system/pods", "TOKEN"),
                ("ADDRESS", f"{own}/pods/client", "TOKEN", "DELETE"),
            ],
        ) == [NAMESPACE, 200, 200, 401, 401, 403, 403, 403, 403]


@pytest.mark.parametrize("declared_by", ["pod", "service account"])
async def test_18_a_pod_that_wants_no_token_has_none(tmp_path: Path, declared_by: str) -> None:
    closed = pod("closed", "ls", "/var/run/secrets/kubernetes.io/serviceaccount")
    async with RealWorld(tmp_path) as world:
        if declared_by == "pod":
            closed["spec"]["automountServiceAccountToken"] = False
        else:
            account = {"metadata": {"name": "closed"}, "automountServiceAccountToken": False}
            await world.user.create(SERVICE_ACCOUNT, account, NAMESPACE)
            closed["spec"]["serviceAccountName"] = "closed"
        await world.user.create(POD, closed, NAMESPACE)
        assert await ended(world, "closed") == "Failed"


LIST_PODS = ("ADDRESS", f"/api/v1/namespaces/{NAMESPACE}/pods", "TOKEN")


@pytest.mark.parametrize(
    ("network", "on_host"),
    [(None, True), (Network.LOOPBACK, False), (Network.LOOPBACK, True)],
    ids=["host network", "loopback network", "host network beside loopback"],
)
async def test_18_a_pod_on_the_machines_network_reaches_the_api_as_well(
    tmp_path: Path, network: Network | None, on_host: bool
) -> None:
    script = tmp_path / "client.py"
    script.write_text(CLIENT)
    async with RealWorld(tmp_path, network=network) as world:
        assert await run_client(world, script, [LIST_PODS], hostNetwork=on_host) == [NAMESPACE, 200]


async def test_18_a_pod_still_reaches_the_api_after_a_restart_of_the_cluster(tmp_path: Path) -> None:
    script = tmp_path / "client.py"
    script.write_text(CLIENT)
    async with RealWorld(tmp_path) as world:
        with holding() as hold:
            wait = f'while [ -e {hold} ]; do sleep 0.1; done; exec "$@"'
            command = ("sh", "-c", wait, "sh", sys.executable, str(script), json.dumps([LIST_PODS]))
            await world.user.create(POD, pod("patient", *command), NAMESPACE)
            await world.until(lambda: (world.pods.get("patient", {}).get("status") or {}).get("phase") == "Running")
            await world.restart_operator()
        assert await ended(world, "patient") == "Succeeded"
        assert json.loads((await printed(world, "patient", lines=1))[0]) == [NAMESPACE, 200]


async def test_18_the_kubeconfig_of_the_callers_shell_is_not_passed_to_pods(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "elsewhere"))
    async with RealWorld(tmp_path) as world:
        await world.user.create(POD, pod("p", "sh", "-c", "echo ${KUBECONFIG-unset}"), NAMESPACE)
        assert await ended(world, "p") == "Succeeded"
        assert await printed(world, "p", lines=1) == ["unset"]
