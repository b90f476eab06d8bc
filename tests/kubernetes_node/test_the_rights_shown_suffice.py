"""A node with exactly the rights that the documentation shows runs pods, tells of them and is asked for their logs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kit.asking import answer_becomes
from kit.control_plane import ROOT, ControlPlane
from kit.kubernetes_plane import NodeProcess
from kit.pods import is_gone, phase_is, wait_for_pod
from kit.shore import KEEP_AWAY, ended, log_of, pod, reached, token_of
from shoal.cluster.connecting import from_kubeconfig
from shoal.cluster.kubernetes import KubernetesCluster, opened
from shoal.kube.kinds import CONFIG_MAP, EVENT, POD, SERVICE_ACCOUNT, Kind
from shoal.kube.objects import Obj
from shoal.node.rights import NEEDS, Need, missing

pytestmark = [pytest.mark.kubernetes, pytest.mark.processes]

RBAC = ("rbac.authorization.k8s.io", "v1")
ROLE = Kind(*RBAC, "ClusterRole", "clusterroles", namespaced=False)
BINDING = Kind(*RBAC, "ClusterRoleBinding", "clusterrolebindings", namespaced=False)


def role_shown() -> Obj:
    shown = re.search(r"```yaml\n(apiVersion: rbac.*?)```", (ROOT / "docs" / "node.md").read_text(), re.DOTALL)
    assert shown is not None
    role: Obj = yaml.safe_load(shown[1])
    return role


def kubeconfig(plane: ControlPlane, token: str, place: Path) -> Path:
    config: dict[str, Any] = json.loads(Path(plane.kubeconfig).read_text())
    config["users"][0]["user"] = {"token": token}
    place.write_text(json.dumps(config))
    return place


def test_the_role_shown_holds_what_the_node_asks_for_and_no_more() -> None:
    shown = {
        (group, resource, verb)
        for rule in role_shown()["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert shown == {(need.kind.group, need.resource, verb) for need in NEEDS for verb in need.verbs}


async def test_a_user_without_rights_is_told_all_that_is_missing(
    kubernetes_plane: ControlPlane, tmp_path: Path
) -> None:
    async with reached(kubernetes_plane) as (cluster, namespace):
        token = await token_of(cluster, namespace, "default")
        process = NodeProcess(kubeconfig(kubernetes_plane, token, tmp_path / "kubeconfig"), tmp_path / "n")
        with pytest.raises(AssertionError, match="may not do what a node has to") as caught:
            process.start()
    said = str(caught.value)
    assert [line for line in said.splitlines() if line.startswith("  ")] == [
        f"  {', '.join(need.verbs)} {need.resource}, {need.why}" for need in NEEDS
    ]


async def is_granted(own: Path) -> None:
    """The server learns of roles a moment after they are written; a node asks once, when it starts."""
    async with opened(from_kubeconfig(own)) as account:

        async def may(verb: str, need: Need) -> bool:
            return (await account.may(verb, need.kind, subresource=need.subresource)).is_allowed

        await answer_becomes(lambda: missing(may), lambda lacking: not lacking)


async def is_told(cluster: KubernetesCluster, namespace: str, reason: str) -> None:
    """Events go out behind the node's back, after what they tell of."""
    async for event in cluster.watch(EVENT, namespace, initial_events=True):
        if event.object.get("reason") == reason:
            return
    raise AssertionError("the watch ended")


async def test_a_node_with_the_rights_shown_runs_pods(kubernetes_plane: ControlPlane, tmp_path: Path) -> None:
    async with reached(kubernetes_plane) as (cluster, namespace):
        name = f"n-{namespace}"
        await cluster.create(SERVICE_ACCOUNT, {"metadata": {"name": "node"}}, namespace)
        await cluster.create(ROLE, {**role_shown(), "metadata": {"name": name}})
        who = {"kind": "ServiceAccount", "name": "node", "namespace": namespace}
        role = {"apiGroup": RBAC[0], "kind": "ClusterRole", "name": name}
        await cluster.create(BINDING, {"metadata": {"name": name}, "roleRef": role, "subjects": [who]})
        own = kubeconfig(kubernetes_plane, await token_of(cluster, namespace, "node"), tmp_path / "kubeconfig")
        await is_granted(own)
        process = NodeProcess(own, tmp_path / "n", "--name", name, "--taint", f"{KEEP_AWAY}=yes:NoSchedule")
        process.start()
        try:
            await cluster.create(CONFIG_MAP, {"metadata": {"name": "words"}, "data": {"word": "hello"}}, namespace)
            volume = {"name": "w", "configMap": {"name": "words"}}
            speaks = pod("speaks", "cat /words/word; echo", node=name, volumes=[volume])
            speaks["spec"]["containers"][0]["volumeMounts"] = [{"name": "w", "mountPath": "/words"}]
            await cluster.create(POD, speaks, namespace)
            assert await ended(cluster, namespace, "speaks") == "Succeeded"
            assert await log_of(cluster, namespace, "speaks") == ["hello"]
            await is_told(cluster, namespace, "Started")
            await cluster.create(POD, pod("stays", "exec sleep 1000", node=name), namespace)
            await wait_for_pod(cluster, "stays", phase_is("Running"), namespace)
            await cluster.delete(POD, "stays", namespace)  # of one that has ended the server itself would let go
            await wait_for_pod(cluster, "stays", is_gone, namespace)
        finally:
            process.stop()
        assert "forbidden" not in process.log()
