"""On a node with separate users, a process runs as its namespace's user or as one the machine does not know."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kit.pods import config, container, pod, stored
from shoal.kube.objects import Obj
from shoal.node.checkpoint import PodFolder, new_record
from shoal.node.config import Confinement
from shoal.node.container_spec import CannotStart, SpecContext, process_spec
from shoal.node.pod_user import COUNT, FIRST, resolve_user, user_of_namespace
from shoal.node.sandbox.interface import ProcessSpec

FREE = FIRST - 1  # a number that no account has


def test_namespaces_have_users_that_differ_and_stay() -> None:
    users = [user_of_namespace(f"team-{number}") for number in range(1000)]
    assert len(set(users)) == 1000
    assert all(FIRST <= user < FIRST + COUNT <= 1 << 31 for user in users)
    assert user_of_namespace("default") == 0x77A8EEC1  # files on shared storage belong to it


def started(tmp_path: Path, context: Obj, *volumes: Obj, part: str = "", **confinement: Any) -> ProcessSpec:
    mounts = [{"name": v["name"], "mountPath": "/v", "subPath": part} for v in volumes]
    main = container("main", "run", volumeMounts=mounts)
    made = stored(pod("p", main, securityContext=context, volumes=list(volumes)))
    settings = config(tmp_path, confinement=Confinement(**confinement), working_dir="/")
    return process_spec(made, main, new_record(made, 0.0), PodFolder(tmp_path / "pod"), SpecContext(settings), 0)


@pytest.mark.parametrize(
    ("context", "user"),
    [
        ({}, (user_of_namespace("default"), user_of_namespace("default"))),
        ({"runAsUser": FREE}, (FREE, user_of_namespace("default"))),
        ({"runAsUser": FREE, "runAsGroup": FREE}, (FREE, FREE)),
        ({"runAsNonRoot": True}, (user_of_namespace("default"), user_of_namespace("default"))),
    ],
    ids=["none", "user", "user and group", "not root"],
)
def test_a_process_never_runs_as_an_account_of_the_machine(tmp_path: Path, context: Obj, user: tuple[int, int]) -> None:
    spec = started(tmp_path, context, separate_users=True)
    assert ((spec.uid, spec.gid), spec.no_new_privs) == (user, True)


@pytest.mark.parametrize("context", [{"runAsUser": 0}, {"runAsUser": 1}, {"runAsGroup": 0}], ids=str)
def test_an_account_of_the_machine_is_refused(tmp_path: Path, context: Obj) -> None:
    with pytest.raises(
        CannotStart, match=r"runAs(User|Group) [01] is a .* of this machine; pods .* may not (run as|use) one"
    ):
        started(tmp_path, context, separate_users=True)


@pytest.mark.parametrize("field", ["runAsUser", "runAsGroup"])
def test_the_user_of_another_namespace_is_refused(tmp_path: Path, field: str) -> None:
    with pytest.raises(CannotStart, match=rf"{field} \d+ is reserved for the pods of a namespace other than default"):
        started(tmp_path, {field: user_of_namespace("another")}, separate_users=True)
    assert started(tmp_path, {field: user_of_namespace("default")}, separate_users=True).uid == user_of_namespace(
        "default"
    )


def test_a_missing_folder_is_not_made_for_a_pod(tmp_path: Path) -> None:
    wanted = {"name": "h", "hostPath": {"path": str(tmp_path / "made"), "type": "DirectoryOrCreate"}}
    with pytest.raises(CannotStart, match="does not exist, and this node does not create it for pods"):
        started(tmp_path, {}, wanted, separate_users=True)
    assert not (tmp_path / "made").exists()


def test_a_missing_part_of_a_folder_is_not_made_for_a_pod(tmp_path: Path) -> None:
    wanted = {"name": "h", "hostPath": {"path": str(tmp_path)}}
    with pytest.raises(CannotStart, match="subPath made does not exist in its volume"):
        started(tmp_path, {}, wanted, part="made", separate_users=True)
    assert not (tmp_path / "made").exists()


def test_the_nodes_own_folder_cannot_be_mounted(tmp_path: Path) -> None:
    (tmp_path / "data" / "sandboxes").mkdir(parents=True)
    wanted = {"name": "h", "hostPath": {"path": str(tmp_path / "data" / "sandboxes")}}
    with pytest.raises(CannotStart, match="data/sandboxes belongs to the node and cannot be mounted"):
        started(tmp_path, {}, wanted, hidden=(tmp_path / "data",))


def test_files_of_a_volume_belong_to_the_pods_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owners: list[tuple[int, int]] = []
    monkeypatch.setattr("os.chown", lambda _, uid, gid: owners.append((uid, gid)))
    items = [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}, "mode": 0o400}]
    started(tmp_path, {"runAsUser": FREE}, {"name": "d", "downwardAPI": {"items": items}}, separate_users=True)
    assert owners == [(FREE, user_of_namespace("default"))]


def test_without_separate_users_pods_choose(tmp_path: Path) -> None:
    assert resolve_user("default", None, None) == (user_of_namespace("default"),) * 2
    assert (started(tmp_path, {"runAsUser": 0}).uid, started(tmp_path, {}).uid) == (0, None)
