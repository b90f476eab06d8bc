"""Removing the folder of a pod: all that is in it, and nothing that only a link in it leads to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from shoal.node.sandbox import shim_client
from shoal.node.sandbox.shim_client import remove_folder


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    """A file of somebody else."""
    made = tmp_path / "home" / "thesis"
    made.parent.mkdir()
    made.write_text("three years")
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "pod"
    (made / "volumes" / "scratch" / "deep").mkdir(parents=True)
    (made / "volumes" / "scratch" / "deep" / "file").write_text("x")
    (made / "record.jsonl").write_text("{}")
    return made


def test_files_folders_and_links_go(folder: Path, precious: Path) -> None:
    (folder / "link").symlink_to(precious)
    (folder / "volumes" / "link").symlink_to(precious.parent)
    remove_folder(folder)
    assert not folder.exists()
    assert precious.read_text() == "three years"


def test_a_folder_that_is_not_there_is_no_trouble(tmp_path: Path) -> None:
    remove_folder(tmp_path / "nobody")


def test_a_link_in_the_place_of_the_folder_leads_nowhere(tmp_path: Path, precious: Path) -> None:
    link = tmp_path / "pod"
    link.symlink_to(precious.parent)
    remove_folder(link)
    assert precious.read_text() == "three years"


def test_a_link_put_there_just_after_the_look_leads_nowhere(
    folder: Path, precious: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that still lives swaps the folder for a link between the look at it and its removal."""
    volumes = folder / "volumes"

    class Swapping:
        def __init__(self, entry: os.DirEntry[str]) -> None:
            self.name, self.path, self._entry = entry.name, entry.path, entry

        def is_dir(self, *, follow_symlinks: bool) -> bool:
            found = self._entry.is_dir(follow_symlinks=follow_symlinks)
            if self.name == "volumes" and not volumes.is_symlink():
                volumes.rename(folder.parent / "elsewhere")
                volumes.symlink_to(precious.parent)
            return found

    class Entries:
        def __init__(self, where: object) -> None:
            self._entries = real(where)

        def __enter__(self) -> list[Swapping]:
            return [Swapping(entry) for entry in self._entries]

        def __exit__(self, *_: object) -> None:
            self._entries.close()

    real = os.scandir

    class System:
        """The system as `kept` sees it."""

        scandir = staticmethod(lambda where: Entries(where))

        def __getattr__(self, name: str) -> object:
            return getattr(os, name)

    monkeypatch.setattr(shim_client, "os", System())
    remove_folder(folder)
    assert precious.read_text() == "three years"
