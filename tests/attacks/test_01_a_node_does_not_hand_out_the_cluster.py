"""Issue 11, item 1: a user who may only create pods in one namespace does not get the cluster through `shoal node`.

The user sets nodeName and tolerations, runs on the node and tries each step from there to the node's credentials. Each
fails; and the credentials themselves, which the last test takes for granted, create no token and touch no other node.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kit.control_plane import ControlPlane
from kit.control_plane_with_node import NODE, NodeProcess, kubernetes_plane
from kit.eventually import answer_becomes
from kit.kubernetes_node import ended, log_of, reached, token_of
from kit.node_credentials import node_kubeconfig
from kit.pods import phase_is, wait_for_pod
from kit.unprivileged_user import usable_python
from shoal.cluster.client import DeleteOptions
from shoal.cluster.kubeconfig import from_kubeconfig
from shoal.cluster.kubernetes import KubernetesCluster, open_client
from shoal.kube import kinds
from shoal.kube.errors import ApiError
from shoal.kube.kinds import LEASE, POD, SECRET, SERVICE_ACCOUNT, Kind
from shoal.kube.objects import Obj
from shoal.node.pod_user import user_of_namespace

__all__ = ["kubernetes_plane"]
pytestmark = [pytest.mark.kubernetes, pytest.mark.processes]

RBAC = ("rbac.authorization.k8s.io", "v1")
ROLE = Kind(*RBAC, "Role", "roles")
ROLE_BINDING = Kind(*RBAC, "RoleBinding", "rolebindings")
CLUSTER_ROLE_BINDING = Kind(*RBAC, "ClusterRoleBinding", "clusterrolebindings", namespaced=False)
NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="a node started by root")


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that every user may enter: what keeps pods out of the node's files must not be the folder above."""
    with tempfile.TemporaryDirectory(prefix="shoal-attack-") as made:
        Path(made).chmod(0o755)
        yield Path(made)


@asynccontextmanager
async def attacker(plane: ControlPlane, cluster: KubernetesCluster, namespace: str) -> AsyncIterator[KubernetesCluster]:
    """A user who may create pods in the namespace, read their logs, and nothing else."""
    await cluster.create(SERVICE_ACCOUNT, {"metadata": {"name": "mallory"}}, namespace)
    rules = [
        {"apiGroups": [""], "resources": ["pods", "pods/log"], "verbs": ["create", "get", "list", "watch", "delete"]}
    ]
    await cluster.create(ROLE, {"metadata": {"name": "pods"}, "rules": rules}, namespace)
    binding = {
        "metadata": {"name": "pods"},
        "roleRef": {"apiGroup": RBAC[0], "kind": "Role", "name": "pods"},
        "subjects": [{"kind": "ServiceAccount", "name": "mallory", "namespace": namespace}],
    }
    await cluster.create(ROLE_BINDING, binding, namespace)
    config: dict[str, Any] = json.loads(Path(plane.kubeconfig).read_text())
    config["users"][0]["user"] = {"token": await token_of(cluster, namespace, "mallory")}
    with tempfile.NamedTemporaryFile("w", suffix=".kubeconfig") as file:
        json.dump(config, file)
        file.flush()
        async with open_client(from_kubeconfig(Path(file.name))) as own:
            await answer_becomes(lambda: own.check_access("create", POD, namespace), lambda access: access.is_allowed)
            yield own


def attack(name: str, node: str, script: str, **container: Any) -> Obj:
    """A pod that names its node, tolerates every taint and sees the whole machine at /machine."""
    mounts = [{"name": "machine", "mountPath": "/machine"}]
    main = {"name": "main", "image": "any", "command": ["sh", "-c", script], "volumeMounts": mounts, **container}
    spec = {
        "nodeName": node,
        "tolerations": [{"operator": "Exists"}],
        "restartPolicy": "Never",
        "volumes": [{"name": "machine", "hostPath": {"path": "/"}}],
        "containers": [main],
    }
    return {"metadata": {"name": name}, "spec": spec}


def thefts(files: list[Path], folder: Path, agent: int | None) -> str:
    """A script that prints what it gets: of the files by every path, and of the agent's process where that is given."""
    roots = ["", "/machine"]
    ways = {}
    if agent is not None:
        roots += [f"/proc/{agent}/root", f"/machine/proc/{agent}/root"]
        ways = {
            "environment": f"grep -q . /proc/{agent}/environ",
            "memory": f"head -c1 /proc/{agent}/mem",
            "mounts": f"nsenter -t {agent} -m true",
            "cover": f"umount {folder}",
            "nested cover": f"unshare -Urm sh -c 'umount -l {folder}; grep -q . {folder}/agent-id'",
        }
    ways |= {f"{root}{path}": f"grep -q . {root}{path}" for root in roots for path in files}
    steps = [f"{steal} && echo STOLEN {what}" for what, steal in ways.items()]
    rights = "echo user $(id -u) $(id -g) $(grep NoNewPrivs /proc/self/status)"
    return "\n".join(["exec 2>/dev/null", *steps, rights, "echo end"])


@pytest.mark.parametrize("kind", ["root", "root that allows root", "an ordinary user"])
async def test_a_pod_gets_no_file_and_no_memory_of_the_agent(
    kubernetes_plane: ControlPlane, place: Path, kind: str
) -> None:
    async with reached(kubernetes_plane) as (cluster, namespace):
        node = f"n-{namespace}"
        kubeconfig = node_kubeconfig(kubernetes_plane, node, place / "credentials")
        process = NodeProcess(kubeconfig, place / "n", "--taint", "attack=yes:NoSchedule")
        if kind == "an ordinary user":
            process.run_as_ordinary_user(python_of_ordinary_users(), place)
        elif os.geteuid() != 0:
            pytest.skip("a node started by root")
        elif kind == "root that allows root":
            process.add("--allow-root")
        process.start()
        try:
            async with attacker(kubernetes_plane, cluster, namespace) as mallory:
                files = [path for path in kubeconfig.parent.iterdir() if path.suffix != ".crt"]
                # Root can do anything to a process; by path even root in a pod does not find the files.
                agent = None if kind == "root that allows root" else process.pid
                script = thefts([*files, place / "n" / "agent-id"], place / "n", agent)
                await mallory.create(POD, attack("thief", node, script), namespace)
                assert await ended(mallory, namespace, "thief") == "Succeeded"
                said = await log_of(mallory, namespace, "thief")
        finally:
            process.stop()
    own = user_of_namespace(namespace)
    user = {"root": f"{own} {own}", "root that allows root": "0 0", "an ordinary user": "65534 65534"}[kind]
    assert said == [f"user {user} NoNewPrivs: 1", "end"]


@NEEDS_ROOT
async def test_a_pod_becomes_no_account_of_the_machine(kubernetes_plane: ControlPlane) -> None:
    async with (
        reached(kubernetes_plane) as (cluster, namespace),
        attacker(kubernetes_plane, cluster, namespace) as user,
    ):
        for name, context in (("root", {"runAsUser": 0}), ("daemon", {"runAsUser": 1}), ("disk", {"runAsGroup": 6})):
            await user.create(POD, attack(name, NODE, "id", securityContext=context), namespace)
            found = await wait_for_pod(user, name, is_waiting, namespace)
            waits = (found or {})["status"]["containerStatuses"][0]["state"]["waiting"]
            assert waits["reason"] == "CreateContainerConfigError"
            assert "of this machine; pods of this node may not" in waits["message"]


def is_waiting(pod: Obj | None) -> bool:
    told = ((pod or {}).get("status") or {}).get("containerStatuses") or [{}]
    return (told[0].get("state") or {}).get("waiting", {}).get("reason") == "CreateContainerConfigError"


@NEEDS_ROOT
async def test_the_agent_makes_no_folder_for_a_pod(kubernetes_plane: ControlPlane, place: Path) -> None:
    async with (
        reached(kubernetes_plane) as (cluster, namespace),
        attacker(kubernetes_plane, cluster, namespace) as user,
    ):
        wanted = attack("makes", NODE, "true")
        wanted["spec"]["volumes"][0]["hostPath"] = {"path": str(place / "made"), "type": "DirectoryOrCreate"}
        await user.create(POD, wanted, namespace)
        await wait_for_pod(user, "makes", lambda pod: bool(pod and pod["status"].get("containerStatuses")), namespace)
        assert not (place / "made").exists()


async def test_pods_of_other_namespaces_fail_and_nothing_is_read_for_them(
    kubernetes_plane: ControlPlane, place: Path
) -> None:
    async with reached(kubernetes_plane) as (cluster, namespace):
        node = f"n-{namespace}"
        kubeconfig = node_kubeconfig(kubernetes_plane, node, place / "credentials")
        process = NodeProcess(kubeconfig, place / "n", "--namespaces", "team-a,team-b", "--allow-root")
        process.start()
        try:
            async with attacker(kubernetes_plane, cluster, namespace) as mallory:
                wanted = attack("stranger", node, "id")
                wanted["spec"]["volumes"].append({"name": "s", "secret": {"secretName": "missing"}})
                await mallory.create(POD, wanted, namespace)
                found = await wait_for_pod(mallory, "stranger", phase_is("Failed"), namespace)
        finally:
            process.stop()
    assert found is not None
    assert found["status"]["reason"] == "NamespaceNotAllowed"
    assert found["status"]["message"].endswith(f"pods of team-a, team-b only, not of {namespace}")


async def test_the_credentials_of_a_node_get_nothing_of_others(kubernetes_plane: ControlPlane, tmp_path: Path) -> None:
    """As if a pod had them nevertheless."""
    async with reached(kubernetes_plane) as (cluster, namespace):
        await cluster.create(SECRET, {"metadata": {"name": "key"}, "stringData": {"key": "sesame"}}, namespace)
        await cluster.create(SERVICE_ACCOUNT, {"metadata": {"name": "chief"}}, namespace)
        theirs = attack("theirs", NODE, "exec sleep 1000")
        theirs["spec"]["volumes"].append({"name": "s", "secret": {"secretName": "key"}})
        await cluster.create(POD, theirs, namespace)
        await wait_for_pod(cluster, "theirs", phase_is("Running"), namespace)
        kubeconfig = node_kubeconfig(kubernetes_plane, f"n-{namespace}", tmp_path)
        chief = {"kind": "ServiceAccount", "name": "chief", "namespace": namespace}
        admin = {"apiGroup": RBAC[0], "kind": "ClusterRole", "name": "cluster-admin"}
        token = Kind("", "v1", "TokenRequest", "serviceaccounts/chief/token")
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": {}, "spec": {}}
        bound = {"metadata": {"name": namespace}, "roleRef": admin, "subjects": [chief]}
        ready = {"status": {"phase": "Failed"}}
        async with open_client(from_kubeconfig(kubeconfig)) as node:
            steps = {
                "bind cluster-admin": node.create(CLUSTER_ROLE_BINDING, bound),
                "create a token": node.create(token, request, namespace),
                "read a secret of another node's pod": node.get(SECRET, "key", namespace),
                "list secrets": node.list(SECRET),
                "list pods": node.list(POD),
                "read another node": node.get(kinds.NODE, NODE),
                "label another node": node.patch(kinds.NODE, NODE, patch={"metadata": {"labels": {"a": "b"}}}),
                "take another node's lease": node.patch(LEASE, NODE, "kube-node-lease", patch={"spec": {}}),
                "fail a pod": node.patch(POD, "theirs", namespace, patch=ready, subresource="status"),
                "delete a pod": node.delete(POD, "theirs", namespace, DeleteOptions(grace_seconds=0)),
                "create a pod": node.create(POD, attack("own", f"n-{namespace}", "id"), namespace),
            }
            answers = {name: await code_of(step) for name, step in steps.items()}
        await cluster.delete(POD, "theirs", namespace)
    assert answers == dict.fromkeys(steps, 403)


async def code_of(step: Any) -> int:
    try:
        await step
    except ApiError as refused:
        return refused.code
    return 200


def python_of_ordinary_users() -> str:
    python = usable_python()
    if os.geteuid() != 0 or python is None:
        pytest.skip("root starts the node as an ordinary user here, with an interpreter that user may run")
    return python


def test_the_cluster_of_shoal_up_is_refused(tmp_path: Path) -> None:
    env = {**os.environ, "SHOAL_DATA": str(tmp_path / "up")}
    shoal = [sys.executable, "-m", "shoal"]
    subprocess.run([*shoal, "up", "--detach"], env=env, check=True, capture_output=True)
    try:
        words = ["--kubeconfig", str(tmp_path / "up" / "kubeconfig"), "--data", str(tmp_path / "n")]
        done = subprocess.run(
            [*shoal, "node", *words, "--address", "127.0.0.1"], env=env, capture_output=True, text=True
        )
    finally:
        subprocess.run([*shoal, "down"], env=env, check=True, capture_output=True)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: this is a cluster of `shoal up`, which runs its pods on this machine itself")
