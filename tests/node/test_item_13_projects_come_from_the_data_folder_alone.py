"""Projects are stored under a name made of their content, readable by their owner alone; nothing else is one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from shoal.node.images import ImageEntry, Images
from shoal.node.messages import text
from shoal.node.projects import Project, Projects

PROJECT = Project(
    "/work", {"PATH": "/venv/bin", "VIRTUAL_ENV": None}, {"a:*": {"mounts": {"/in": "src"}}}, "/p/shoal.yaml"
)


def test_a_project_is_read_as_it_was_stored(tmp_path: Path) -> None:
    projects = Projects(tmp_path)
    name = projects.store(PROJECT)
    assert (projects.store(PROJECT), projects.load(name)) == (name, PROJECT)
    assert [path.name for path in (tmp_path / "projects").iterdir()] == [name]
    assert [path.stat().st_mode & 0o777 for path in (tmp_path / "projects", tmp_path / "projects" / name)] == [
        0o700,
        0o600,
    ]


def test_a_file_that_was_changed_is_no_project(tmp_path: Path) -> None:
    name = Projects(tmp_path).store(PROJECT)
    file = tmp_path / "projects" / name
    file.write_bytes(file.read_bytes().replace(b"/work", b"/etc/"))
    assert Projects(tmp_path).load(name) is None


@pytest.mark.parametrize("name", ["", "..", "../lock", "/etc/passwd", "0" * 40, "0" * 39 + "\n", "a\0"])
def test_no_path_is_a_project(tmp_path: Path, name: str) -> None:
    Projects(tmp_path).store(PROJECT)
    assert Projects(tmp_path).load(name) is None


def test_a_variable_that_was_not_set_is_taken_away() -> None:
    assert PROJECT.environment({"PATH": "/bin", "VIRTUAL_ENV": "/of/the/cluster", "HOME": "/root"}) == {
        "PATH": "/venv/bin",
        "HOME": "/root",
    }


def test_images_start_at_the_folder_of_their_file() -> None:
    images = PROJECT.read_images(Images())
    assert [mount.source for mount in images.mounts("a:1")] == [Path("/p/src")]
    assert "delete the job and submit it again" in text(images.missing_command("a:1", "main"))


def test_without_images_those_of_the_cluster_hold() -> None:
    cluster = Images({"acme/t:1": ImageEntry(command=["true"])})
    assert Project("/work", {}).read_images(cluster) == replace(cluster, job_file="/work/shoal.yaml")
