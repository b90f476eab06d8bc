"""Mount points that a pod needs are made in the pod's own view: the machine's folders are the same afterwards."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from kit.sandboxes import Place, opened
from kit.shoal_command import shoal
from shoal.node.host_checks import probe_host
from shoal.node.sandbox.interface import Exited, Mount, Network

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(not probe_host()["mounts"], reason="this machine allows no private mounts"),
]

KEYS = ("id_rsa", "id_rsa.pub", "authorized_keys", "config")


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with opened(tmp_path, Network.LOOPBACK) as place:
        yield place


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    (folder / "project").mkdir(parents=True)
    (folder / "notes").write_text("mine\n")
    return folder


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    folder = tmp_path / "keys"
    folder.mkdir()
    for name in KEYS:
        (folder / name).write_text(f"{name}\n")
    return folder


def tree(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def key_mounts(keys: Path, folder: Path) -> tuple[Mount, ...]:
    """As Volcano's ssh plugin mounts them: each file of a secret by its subPath."""
    return tuple(Mount(str(folder / name), keys / name) for name in KEYS)


@pytest.mark.parametrize("there", [False, True], ids=["missing", "there"])
async def test_files_mounted_in_a_home_folder_leave_it_as_it_was(
    place: Place, home: Path, keys: Path, there: bool
) -> None:
    if there:
        (home / ".ssh").mkdir()
        (home / ".ssh/known_hosts").write_text("a host\n")
    before = tree(home)
    pod = await place.pod()
    text = await pod.output(
        f"cat {home}/.ssh/id_rsa {home}/notes; ls {home}/.ssh", mounts=key_mounts(keys, home / ".ssh")
    )

    hosts = ["known_hosts"] if there else []
    assert text.split("\n")[:-1] == ["id_rsa", "mine", *sorted([*KEYS, *hosts])]
    assert tree(home) == before


async def test_a_folder_beside_a_mount_point_is_still_the_machines(place: Place, home: Path, keys: Path) -> None:
    pod = await place.pod()
    script = f"echo kept > {home}/project/model; echo more >> {home}/notes; stat -c %a {home}"
    text = await pod.output(script, mounts=(Mount(f"{home}/deep/data", keys),))

    assert text == f"{home.stat().st_mode & 0o7777:o}\n"
    assert (home / "project/model").read_text() == "kept\n"
    assert (home / "notes").read_text() == "mine\nmore\n"
    assert tree(home) == ["notes", "project", "project/model"]


async def test_the_owner_of_a_folder_with_a_mount_point_may_still_write_there(
    place: Place, home: Path, keys: Path
) -> None:
    if os.getuid() != 0:
        pytest.skip("only root runs programs as others")
    for folder in (home, *home.parents):
        if folder == Path("/tmp"):
            break
        folder.chmod(0o755)
    os.chown(home, 1234, 1234)
    pod = await place.pod()
    text = await pod.output(f"touch {home}/new && echo may", mounts=(Mount(f"{home}/data", keys),), uid=1234, gid=1234)

    assert text == "may\n"
    assert not (home / "new").exists()


async def test_a_folder_with_too_many_entries_is_refused_with_the_way_out(place: Place, home: Path, keys: Path) -> None:
    crowded = home / "crowded"
    crowded.mkdir()
    for number in range(10_001):
        (crowded / f"{number}").touch()
    pod = await place.pod()
    result = await pod.shell("true", mounts=(Mount(f"{crowded}/data", keys),))

    assert isinstance(result, Exited)
    assert (result.code, result.message) == (
        128,
        f"mount {crowded}/data: {crowded} holds 10001 entries, too many to show beside a mount point that is "
        f"missing on the machine; create {crowded}/data there first",
    )


async def test_a_job_with_the_ssh_plugin_leaves_no_key_files_after_shoal_run(tmp_path: Path, home: Path) -> None:
    task = {
        "name": "worker",
        "replicas": 1,
        "policies": [{"event": "TaskCompleted", "action": "CompleteJob"}],
        "template": {
            "spec": {
                "restartPolicy": "Never",
                "containers": [
                    {"name": "main", "image": "busybox", "command": ["sh", "-c", f"ls {home}/.ssh | tr '\\n' ' '"]}
                ],
            }
        },
    }
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "keys"},
        "spec": {
            "schedulerName": "volcano",
            "minAvailable": 1,
            "plugins": {"ssh": [f"--ssh-key-file-path={home}/.ssh"]},
            "tasks": [task],
        },
    }
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
    before = tree(home)
    done = await shoal("run", str(tmp_path / "job.yaml"), "--plain", TMPDIR=str(tmp_path))

    assert (done.code, "authorized_keys config id_rsa id_rsa.pub" in done.out + done.err) == (0, True), done
    assert tree(home) == before
