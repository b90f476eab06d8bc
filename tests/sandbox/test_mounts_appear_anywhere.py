"""Folders and files are seen at any path, also where the machine has no such path, and only inside."""

from __future__ import annotations

from pathlib import Path

import pytest

from kit.sandboxes import Place, folder_mount
from shoal.node.sandbox.interface import Exited, Mount

pytestmark = pytest.mark.processes


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    folder = tmp_path / "volume"
    folder.mkdir()
    (folder / "file").write_text("from the volume\n")
    return folder


def there(path: str) -> bool:
    return Path(path).exists()


def names(folder: str) -> list[str]:
    return [path.name for path in Path(folder).iterdir()]


@pytest.mark.parametrize(
    "target",
    [
        pytest.param("/shoal-workspace", id="missing at the root"),
        pytest.param("/shoal-a/b/c", id="several missing levels"),
        pytest.param("/etc/shoal-config", id="missing in a system folder"),
        pytest.param("/usr/local/shoal-model/data", id="missing deep in a system folder"),
        pytest.param("/mnt", id="there already"),
        pytest.param("/var/run/shoal-run", id="behind a symlink"),
        pytest.param("/dev/shm", id="shared memory"),
    ],
)
async def test_a_folder_is_seen_at_its_target(loopback: Place, volume: Path, target: str) -> None:
    before = there(target)
    pod = await loopback.pod()
    script = f"cat {target}/file; echo written > {target}/new; cat /etc/hostname; test -x /bin/sh && test -d /proc/self"
    text = await pod.output(script, mounts=(folder_mount(target, volume),))

    assert text == "from the volume\npod\n"
    assert (volume / "new").read_text() == "written\n"
    assert there(target) == before


async def test_a_single_file_is_seen_at_a_path_that_does_not_exist(loopback: Place, volume: Path) -> None:
    pod = await loopback.pod()
    mounts = (Mount("/etc/shoal-config/settings.ini", volume / "file"), Mount("/shoal-file", volume / "file"))
    text = await pod.output("cat /etc/shoal-config/settings.ini /shoal-file; ls /etc/shoal-config", mounts=mounts)

    assert text == "from the volume\nfrom the volume\nsettings.ini\n"


async def test_the_rest_of_a_mirrored_folder_is_still_there(loopback: Place, volume: Path) -> None:
    pod = await loopback.pod()
    text = await pod.output("ls -A /; ls -A /etc", mounts=(Mount("/shoal-w", volume), Mount("/etc/shoal-c", volume)))

    expected = [*names("/"), "shoal-w", *names("/etc"), "shoal-c"]
    assert sorted(text.split()) == sorted(expected)


async def test_a_mount_inside_another_makes_its_folder_there(loopback: Place, volume: Path) -> None:
    other = loopback.root / "other"
    other.mkdir()
    (other / "inner").write_text("inner\n")
    pod = await loopback.pod()
    mounts = (Mount("/shoal-w/deep/conf", other), Mount("/shoal-w", volume))  # given in the wrong order
    text = await pod.output("cat /shoal-w/file /shoal-w/deep/conf/inner", mounts=mounts)

    assert text == "from the volume\ninner\n"
    assert (volume / "deep/conf").is_dir()


async def test_a_read_only_mount_cannot_be_written(loopback: Place, volume: Path) -> None:
    pod = await loopback.pod()
    mounts = (Mount("/shoal-ro", volume, read_only=True), Mount("/shoal-rw", volume))
    script = "cat /shoal-ro/file; touch /shoal-ro/x 2>/dev/null || echo refused; touch /shoal-rw/y && echo allowed"

    assert await pod.output(script, mounts=mounts) == "from the volume\nrefused\nallowed\n"


async def test_a_tmpfs_has_its_size_and_is_writable_for_all(loopback: Place) -> None:
    pod = await loopback.pod()
    script = "stat -c %a /shoal-tmp; df --output=size -B1 /shoal-tmp | tail -1; echo x > /shoal-tmp/x && echo ok"
    text = await pod.output(script, mounts=(Mount("/shoal-tmp", None, size_bytes=1 << 20),))

    assert text.split() == ["777", str(1 << 20), "ok"]


async def test_a_volume_may_cover_the_place_another_comes_from(loopback: Place, volume: Path) -> None:
    pod = await loopback.pod()
    empty = loopback.root / "empty"
    empty.mkdir()
    mounts = (Mount(str(volume.parent), empty), Mount("/shoal-w", volume))

    assert await pod.output("cat /shoal-w/file", mounts=mounts) == "from the volume\n"


async def test_a_folder_over_a_file_is_refused_with_the_path(loopback: Place, volume: Path) -> None:
    pod = await loopback.pod()
    result = await pod.shell("true", mounts=(Mount("/etc/passwd", volume),))

    assert isinstance(result, Exited)
    assert (result.code, result.message) == (128, "mount /etc/passwd: Not a directory (/etc/passwd)")


async def test_the_root_itself_cannot_be_covered(loopback: Place, volume: Path) -> None:
    pod = await loopback.pod()
    result = await pod.shell("true", mounts=(Mount("/", volume),))

    assert isinstance(result, Exited)
    assert (result.code, result.message) == (128, "mount /: nothing can be mounted over the root folder (/)")
