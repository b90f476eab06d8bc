"""Links in a volume lead nowhere else, shared memory is private, and folders of other users are refused."""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from kit.pods import config, container, pod, running_agent, stored, wait_for_pod
from kit.sandboxes import Place, opened
from kit.shoal_command import shoal
from shoal.cluster.embedded import EmbeddedCluster
from shoal.kube.kinds import POD
from shoal.kube.objects import Obj
from shoal.local.data_dir import DataFolder, FolderUnusable
from shoal.node import volumes
from shoal.node.checkpoint import PodFolder
from shoal.node.environment import EnvContext
from shoal.node.host_checks import probe_host
from shoal.node.pod_references import ReferenceMissing
from shoal.node.sandbox.interface import Exited, Mount, Network
from shoal.node.volumes import PreparedVolume, mounts_for, prepare

STRANGER = 1234
needs_mounts = pytest.mark.skipif(not probe_host()["mounts"], reason="this machine allows no private mounts")
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can make what belongs to another user")


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    folder = tmp_path / "volume"
    folder.mkdir()
    folder.chmod(0o770)
    return folder


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "secret").write_text("secret\n")
    return folder


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with opened(tmp_path, Network.LOOPBACK) as place:
        yield place


def mounted(volume: Path, part: str, *, read_only: bool = False) -> tuple[Mount, ...]:
    holder = container("a", volumeMounts=[{"name": "v", "mountPath": "/a", "subPath": part}])
    return mounts_for(holder, {"v": PreparedVolume(volume, read_only=read_only)}, {})


# subPath


@pytest.mark.parametrize(
    "link",
    [
        pytest.param(lambda volume, elsewhere: elsewhere, id="absolute"),
        pytest.param(lambda volume, elsewhere: Path("../elsewhere"), id="relative"),
        pytest.param(lambda volume, elsewhere: Path("inner/../../elsewhere"), id="by way of a folder inside"),
        pytest.param(lambda volume, elsewhere: elsewhere / "not-there-yet", id="to a path that does not exist"),
        pytest.param(lambda volume, elsewhere: Path("out"), id="to itself"),
    ],
)
@pytest.mark.parametrize("part", ["out", "out/made", "out/made/deep", "inner/../out/made"])
def test_nothing_is_made_through_a_link_that_leads_out_of_the_volume(
    volume: Path, elsewhere: Path, link: Callable[[Path, Path], Path], part: str
) -> None:
    (volume / "inner").mkdir()
    (volume / "out").symlink_to(link(volume, elsewhere))
    with pytest.raises(ReferenceMissing, match="subPath"):
        mounted(volume, part)

    assert [path.name for path in elsewhere.iterdir()] == ["secret"]
    assert sorted(path.name for path in volume.iterdir()) == ["inner", "out"]


def test_a_part_is_made_with_the_mode_of_its_volume(volume: Path) -> None:
    (volume / "link").symlink_to("real")
    (volume / "real").mkdir()
    mounted(volume, "link/a/b")

    assert [stat.S_IMODE((volume / "real" / part).stat().st_mode) for part in ("a", "a/b")] == [0o770, 0o770]


def test_a_part_of_a_read_only_volume_is_not_made(volume: Path) -> None:
    with pytest.raises(ReferenceMissing, match="subPath a does not exist"):
        mounted(volume, "a", read_only=True)

    assert list(volume.iterdir()) == []


@pytest.mark.processes
@needs_mounts
async def test_a_link_put_in_place_after_the_check_is_refused_at_the_mount(
    place: Place, volume: Path, elsewhere: Path
) -> None:
    (mount,) = mounted(volume, "part")
    (volume / "part").rmdir()
    (volume / "part").symlink_to(elsewhere)
    sandbox = await place.pod()
    result = await sandbox.shell("cat /a/secret", mounts=(mount,))

    assert isinstance(result, Exited)
    assert (result.code, result.message) == (128, f"mount /a: part leads out of {volume}")


@pytest.mark.processes
@pytest.mark.parametrize("field", ["subPath", "mountPath"])
async def test_a_nul_byte_in_a_path_of_a_mount_is_a_reason_of_the_container(tmp_path: Path, field: str) -> None:
    def tells(obj: Obj | None) -> bool:
        return bool(message_of(obj))

    mount = {"name": "v", "mountPath": "/v", field: "/v/a\0b" if field == "mountPath" else "a\0b"}
    spec = {"volumes": [{"name": "v", "emptyDir": {}}], "restartPolicy": "Never"}
    cluster = await EmbeddedCluster.open(":memory:")
    async with opened(tmp_path, Network.LOOPBACK) as place:
        settings = config(tmp_path / "data", caller_env={"PATH": os.environ["PATH"]}, working_dir="/")
        async with running_agent(cluster, place.keepers, settings):
            await cluster.create(POD, pod("p", container("main", "true", volumeMounts=[mount]), **spec), "default")
            told = await wait_for_pod(cluster, "p", tells)
    await cluster.close()

    assert "NUL byte" in message_of(told)


def message_of(obj: Obj | None) -> str:
    statuses = ((obj or {}).get("status") or {}).get("containerStatuses") or [{}]
    state = statuses[0].get("state") or {}
    told = state.get("waiting") or state.get("terminated") or {}
    return str(told.get("message") or "")


# Shared memory


@pytest.fixture
def shared() -> Iterator[tuple[Obj, str]]:
    uid = f"test-{uuid4()}"
    mount = [{"name": "m", "mountPath": "/m"}]
    made = stored(pod("p", container("a", volumeMounts=mount), container("b", volumeMounts=mount)), uid=uid)
    made["spec"]["volumes"] = [{"name": "m", "emptyDir": {"medium": "Memory"}}]
    yield made, uid
    for path in volumes.SHARED_MEMORY.glob(f"*{uid}*"):
        path.unlink() if path.is_symlink() else volumes.shutil.rmtree(path)


AROUND = EnvContext("n1", "192.0.2.1", "10.77.1.4", "p")


def test_shared_memory_of_a_pod_lies_in_a_folder_that_only_its_owner_enters(
    tmp_path: Path, shared: tuple[Obj, str]
) -> None:
    made, uid = shared
    (prepared,) = prepare(made, PodFolder(tmp_path), AROUND).values()
    assert prepared.path is not None
    (top,) = volumes.SHARED_MEMORY.glob(f"*{uid}*")

    assert prepared.path != top
    assert stat.S_IMODE(top.stat().st_mode) == 0o700
    assert stat.S_IMODE(prepared.path.stat().st_mode) == 0o777
    volumes.remove(uid)
    assert not top.exists()


@pytest.mark.parametrize("planted", ["link", "folder of another user"])
def test_shared_memory_that_another_user_prepared_is_refused(
    tmp_path: Path, shared: tuple[Obj, str], elsewhere: Path, planted: str
) -> None:
    made, uid = shared
    elsewhere.chmod(0o750)
    for name in (f"shoal-{uid}", f"shoal-{uid}-m"):
        path = volumes.SHARED_MEMORY / name
        if planted == "link":
            path.symlink_to(elsewhere)
        elif os.getuid() == 0:
            path.mkdir()
            os.chown(path, STRANGER, STRANGER)
        else:
            pytest.skip("only root can make what belongs to another user")
    with pytest.raises((ReferenceMissing, OSError)):
        prepare(made, PodFolder(tmp_path), AROUND)

    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o750


# The data folder


def cluster_folder(path: Path) -> DataFolder:
    data = DataFolder(path)
    data.make()
    with data.locked():
        data.token()
    data.store.touch()
    data.kubeconfig.touch()
    return data


@needs_root
@pytest.mark.parametrize("name", [".", "lock", "token", "store.sqlite"])
def test_a_data_folder_with_a_part_of_another_user_is_refused(tmp_path: Path, name: str) -> None:
    data = cluster_folder(tmp_path / "data")
    os.chown(data.path / name, STRANGER, STRANGER)
    with pytest.raises(FolderUnusable, match=f"belongs to user {STRANGER}"):
        data.make()


@needs_root
@pytest.mark.parametrize("name", ["lock", "token", "store.sqlite"])
def test_a_link_of_another_user_in_a_data_folder_is_refused(tmp_path: Path, elsewhere: Path, name: str) -> None:
    data = cluster_folder(tmp_path / "data")
    (data.path / name).unlink()
    (data.path / name).symlink_to(elsewhere / "secret")
    os.chown(data.path / name, STRANGER, STRANGER, follow_symlinks=False)
    with pytest.raises(FolderUnusable, match=f"belongs to user {STRANGER}"):
        data.make()

    assert (elsewhere / "secret").read_text() == "secret\n"


@needs_root
@pytest.mark.parametrize("command", [("up",), ("status",), ("get",), ("kubeconfig",), ("down",)], ids=" ".join)
async def test_commands_do_not_use_the_data_folder_of_another_user(tmp_path: Path, command: tuple[str, ...]) -> None:
    data = cluster_folder(tmp_path / "data")
    os.chown(data.path, STRANGER, STRANGER)
    done = await shoal(*command, "--data", str(data.path))

    assert done.code != 0
    assert f"{data.path} belongs to user {STRANGER}" in done.err


def test_a_folder_of_ones_own_may_be_used_again(tmp_path: Path) -> None:
    data = cluster_folder(tmp_path / "data")
    before: Any = data.token()
    data.make()

    assert data.token() == before
