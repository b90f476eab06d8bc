"""The agent is killed, or the API server restarted, while pods run: each goes on, and each was started once."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from kit import control_plane
from kit.control_plane import ControlPlane
from kit.control_plane_with_node import NODE, PROGRAMS, WorldKeeper
from kit.kubernetes_node import ended, own_node, pod, reached
from kit.pods import phase_is, wait_for_pod
from shoal.cluster.kubernetes import KubernetesCluster
from shoal.kube.kinds import POD
from shoal.kube.objects import Obj

pytestmark = [pytest.mark.kubernetes, pytest.mark.processes]


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that pods reach and write to by its path, although they run as another user."""
    with tempfile.TemporaryDirectory(prefix="shoal-notes-") as made:
        folder = Path(made)
        folder.chmod(0o777)
        (folder / "notes").touch()
        (folder / "notes").chmod(0o666)
        yield folder


def noting(notes: Path, then: str) -> str:
    return f'echo "$HOSTNAME" >> {notes}; {then}'


async def begin(cluster: KubernetesCluster, namespace: str, notes: Path, *, node: str) -> Path:
    """Two pods: one stays, one ends when its pipe is written to."""
    pipe = notes.with_name("pipe")
    os.mkfifo(pipe)
    pipe.chmod(0o666)
    scripts = {"stays": "exec sleep 1000", "ends": f"read word < {pipe}; exit 0"}
    for name, then in scripts.items():
        await cluster.create(POD, pod(name, noting(notes, then), node=node), namespace)
        await wait_for_pod(cluster, name, phase_is("Running"), namespace)
    return pipe


def restarts(found: Obj) -> int:
    return int(found["status"]["containerStatuses"][0]["restartCount"])


async def test_an_agent_killed_with_minus_nine_finds_its_pods(
    kubernetes_plane: ControlPlane, tmp_path: Path, shared: Path
) -> None:
    process, name = own_node(kubernetes_plane, tmp_path / "n")
    process.start()
    notes = shared / "notes"
    try:
        async with reached(kubernetes_plane) as (cluster, namespace):
            pipe = await begin(cluster, namespace, notes, node=name)
            process.kill()
            pipe.write_text("go\n")  # it ends while nobody looks
            process.start()
            assert await ended(cluster, namespace, "ends") == "Succeeded"
            stays = await cluster.get(POD, "stays", namespace)
            assert (stays["status"]["phase"], restarts(stays)) == ("Running", 0)
            assert Counter(notes.read_text().split()) == {"stays": 1, "ends": 1}
            process.leave()  # as a service manager restarts it
            process.start()
            stays = await cluster.get(POD, "stays", namespace)
            assert (stays["status"]["phase"], restarts(stays)) == ("Running", 0)
            await cluster.create(POD, pod("later", noting(notes, "exit 0"), node=name), namespace)
            assert await ended(cluster, namespace, "later") == "Succeeded"
            assert Counter(notes.read_text().split()) == {"stays": 1, "ends": 1, "later": 1}
    finally:
        process.stop()


async def test_a_restarted_api_server_finds_the_node_at_work(tmp_path: Path, shared: Path) -> None:
    notes = shared / "notes"
    with control_plane.kept(WorldKeeper, tmp_path / "plane", PROGRAMS) as keeper:
        async with reached(keeper.plane) as (cluster, namespace):
            pipe = await begin(cluster, namespace, notes, node="")
            keeper.kill_apiserver()
            pipe.write_text("go\n")  # it ends while nobody can be told
            keeper.begin_apiserver()
            keeper.await_apiserver()
            assert await ended(cluster, namespace, "ends") == "Succeeded"
            stays = await cluster.get(POD, "stays", namespace)
            assert (stays["status"]["phase"], restarts(stays), stays["spec"]["nodeName"]) == ("Running", 0, NODE)
            assert Counter(notes.read_text().split()) == {"stays": 1, "ends": 1}
