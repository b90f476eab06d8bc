"""A node with exactly the credentials and roles that the documentation shows runs pods, and needs no others."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from pathlib import Path

import pytest

from kit import control_plane
from kit.control_plane import ControlPlane
from kit.control_plane_with_node import NODE, NodeProcess
from kit.eventually import answer_becomes
from kit.kubernetes_node import KEEP_AWAY, ended, log_of, pod, reached, token_of
from kit.node_credentials import docs_block, node_kubeconfig, roles_shown
from kit.pods import is_gone, phase_is, wait_for_pod
from shoal.cluster.kubeconfig import from_kubeconfig
from shoal.cluster.kubernetes import KubernetesCluster, open_client
from shoal.kube.kinds import CONFIG_MAP, EVENT, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, POD, SECRET
from shoal.node.kubeconfig_node_name import review_self
from shoal.node.rbac import REQUIRED_PERMISSIONS

pytestmark = [pytest.mark.kubernetes, pytest.mark.processes]


def test_the_roles_shown_hold_what_the_node_asks_for_and_no_more() -> None:
    role, *bindings = roles_shown()
    shown = {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    everywhere = [need for need in REQUIRED_PERMISSIONS if not need.name]
    assert shown == {(need.kind.group, need.kind.plural, verb) for need in everywhere for verb in need.verbs}
    assert [(binding["kind"], binding["roleRef"]["name"]) for binding in bindings] == [
        ("ClusterRoleBinding", "shoal-node"),
        ("RoleBinding", "extension-apiserver-authentication-reader"),
    ]


def test_the_commands_shown_make_credentials_of_a_node(kubernetes_plane: ControlPlane, tmp_path: Path) -> None:
    (tmp_path / "node-roles.yaml").write_text(docs_block("yaml"))
    kubectl = control_plane.binaries(["kubectl"])
    env = {"PATH": f"{kubectl}:{os.environ['PATH']}", "KUBECONFIG": kubernetes_plane.kubeconfig, "HOME": str(tmp_path)}
    done = subprocess.run(["sh", "-e"], input=docs_block("sh"), text=True, capture_output=True, cwd=tmp_path, env=env)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    assert asyncio.run(node_of(tmp_path / "node.kubeconfig")) == "workbench"


async def node_of(kubeconfig: Path) -> str:
    async with open_client(from_kubeconfig(kubeconfig)) as cluster:
        return (await review_self(cluster)).node


async def test_credentials_of_anybody_else_are_refused_with_a_sentence(
    kubernetes_plane: ControlPlane, tmp_path: Path
) -> None:
    async with reached(kubernetes_plane) as (cluster, namespace):
        config = json.loads(Path(kubernetes_plane.kubeconfig).read_text())
        config["users"][0]["user"] = {"token": await token_of(cluster, namespace, "default")}
        (tmp_path / "kubeconfig").write_text(json.dumps(config))
        for own, user in ((kubernetes_plane.kubeconfig, "admin"), (tmp_path / "kubeconfig", "system:serviceaccount:")):
            with pytest.raises(AssertionError, match=f"the kubeconfig authenticates as {user}.*, not as a node"):
                NodeProcess(own, tmp_path / "n").start()


async def test_a_node_is_refused_a_name_that_is_not_its_own(kubernetes_plane: ControlPlane, tmp_path: Path) -> None:
    own = node_kubeconfig(kubernetes_plane, "n-one", tmp_path)
    with pytest.raises(AssertionError, match=f"the kubeconfig is for node n-one, not for {NODE}"):
        NodeProcess(own, tmp_path / "n", "--name", NODE).start()


async def test_a_second_agent_of_a_live_node_is_refused(kubernetes_plane: ControlPlane, tmp_path: Path) -> None:
    own = node_kubeconfig(kubernetes_plane, NODE, tmp_path)
    with pytest.raises(AssertionError, match=f"another agent runs as node {NODE} and holds its Lease"):
        NodeProcess(own, tmp_path / "n").start()


async def test_a_label_that_nodes_may_not_set_is_refused(kubernetes_plane: ControlPlane, tmp_path: Path) -> None:
    own = node_kubeconfig(kubernetes_plane, "n-two", tmp_path)
    label = "node-role.kubernetes.io/control-plane="
    with pytest.raises(AssertionError, match="is not allowed to set the following labels: node-role"):
        NodeProcess(own, tmp_path / "n", "--label", label).start()


async def is_granted(cluster: KubernetesCluster) -> None:
    """The server learns of roles a moment after they are written; a node asks once, when it starts."""

    async def lacking() -> list[str]:
        found = [
            (await cluster.check_access(verb, need.kind, need.namespace, need.name))
            for need in REQUIRED_PERMISSIONS
            for verb in need.verbs
        ]
        return [access.reason for access in found if not access.is_allowed]

    await answer_becomes(lacking, lambda reasons: not reasons)


async def is_told(cluster: KubernetesCluster, namespace: str, reason: str) -> None:
    """Events go out behind the node's back, after what they tell of."""
    async for event in cluster.watch(EVENT, namespace, initial_events=True):
        if event.object.get("reason") == reason:
            return
    raise AssertionError("the watch ended")


async def test_a_node_with_the_rights_shown_runs_pods(kubernetes_plane: ControlPlane, tmp_path: Path) -> None:
    async with reached(kubernetes_plane) as (cluster, namespace):
        name = f"n-{namespace}"
        own = node_kubeconfig(kubernetes_plane, name, tmp_path)
        async with open_client(from_kubeconfig(own)) as node:
            await is_granted(node)
        process = NodeProcess(own, tmp_path / "n", "--taint", f"{KEEP_AWAY}=yes:NoSchedule")
        process.start()
        try:
            await cluster.create(CONFIG_MAP, {"metadata": {"name": "words"}, "data": {"word": "hello"}}, namespace)
            secret = {"metadata": {"name": "key"}, "stringData": {"key": "sesame"}}
            await cluster.create(SECRET, secret, namespace)
            await claim_folder(cluster, namespace, tmp_path / "claimed")
            volumes = [
                {"name": "w", "configMap": {"name": "words"}},
                {"name": "k", "secret": {"secretName": "key", "defaultMode": 0o400}},
                {"name": "c", "persistentVolumeClaim": {"claimName": "kept"}},
            ]
            speaks = pod("speaks", "cat /w/word /k/key; echo; echo said > /c/said", node=name, volumes=volumes)
            mounts = [{"name": letter, "mountPath": f"/{letter}"} for letter in "wkc"]
            speaks["spec"]["containers"][0]["volumeMounts"] = mounts
            await cluster.create(POD, speaks, namespace)
            assert await ended(cluster, namespace, "speaks") == "Succeeded"
            assert await log_of(cluster, namespace, "speaks") == ["hellosesame"]
            assert (tmp_path / "claimed" / "said").read_text() == "said\n"
            await is_told(cluster, namespace, "Started")
            await cluster.create(POD, pod("stays", "exec sleep 1000", node=name), namespace)
            await wait_for_pod(cluster, "stays", phase_is("Running"), namespace)
            await cluster.delete(POD, "stays", namespace)  # of one that has ended the server itself would let go
            await wait_for_pod(cluster, "stays", is_gone, namespace)
        finally:
            process.stop()
            await cluster.delete(PERSISTENT_VOLUME, namespace)
        lines = [line for line in process.log().splitlines() if "forbidden" in line]
        # The Node authorizer learns of a pod from its own informer, at times after the node does.
        assert [line for line in lines if "no relationship found" not in line] == []


async def claim_folder(cluster: KubernetesCluster, namespace: str, folder: Path) -> None:
    """A claim `kept` that is bound to a folder of this machine, as the binder of a cluster leaves it."""
    room = {"accessModes": ["ReadWriteOnce"], "storageClassName": "none"}
    bound = {"pv.kubernetes.io/bind-completed": "yes"}
    claim = {
        "metadata": {"name": "kept", "annotations": bound},
        "spec": {**room, "resources": {"requests": {"storage": "1Mi"}}},
    }
    claim["spec"]["volumeName"] = namespace
    made = await cluster.create(PERSISTENT_VOLUME_CLAIM, claim, namespace)
    ref = {"kind": "PersistentVolumeClaim", "namespace": namespace, "name": "kept", "uid": made["metadata"]["uid"]}
    spec = {**room, "capacity": {"storage": "1Mi"}, "hostPath": {"path": str(folder)}, "claimRef": ref}
    await cluster.create(PERSISTENT_VOLUME, {"metadata": {"name": namespace}, "spec": spec})
    for kind, name, place in ((PERSISTENT_VOLUME, namespace, ""), (PERSISTENT_VOLUME_CLAIM, "kept", namespace)):
        await cluster.patch(kind, name, place, patch={"status": {"phase": "Bound"}}, subresource="status")
