"""Files that are replaced all at once while a program reads them.

A volume's folder holds one hidden folder per version and a link `..data` to the current one; every visible name is a
link through `..data`. Swapping that one link (a rename) changes all files together, and a program that has a file of
the old version open keeps reading it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path, PurePosixPath

from shoal.node.volume_files import Files

CURRENT = "..data"
_INCOMING = "..data_new"


def write_all(folder: Path, files: Files, *, owner: tuple[int, int] | None = None) -> bool:
    """Make the folder hold exactly these files, owned by `owner`; False where it already did."""
    folder.mkdir(parents=True, exist_ok=True)
    current = folder / CURRENT
    old = folder / current.readlink() if current.is_symlink() else None
    if old is not None and _holds(old, files):
        _link_names(folder, files)  # an agent killed after the swap may have left some out
        return False
    version = Path(tempfile.mkdtemp(prefix="..", dir=folder))
    version.chmod(0o755)
    for name, file in files.items():
        path = version / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.data)
        if owner is not None:
            os.chown(path, *owner)
        path.chmod(file.mode)
    incoming = folder / _INCOMING
    incoming.unlink(missing_ok=True)
    incoming.symlink_to(version.name)
    incoming.replace(current)  # the rename that changes all files at once
    _link_names(folder, files)
    for stale in folder.glob("..*"):
        if stale.is_dir() and not stale.is_symlink() and stale.name != version.name:
            shutil.rmtree(stale, ignore_errors=True)
    return True


def _holds(version: Path, files: Files) -> bool:
    there = {str(p.relative_to(version)) for p in version.rglob("*") if p.is_file()}
    if there != {str(PurePosixPath(name)) for name in files}:
        return False
    return all(
        (version / name).read_bytes() == file.data and (version / name).stat().st_mode & 0o7777 == file.mode
        for name, file in files.items()
    )


def _link_names(folder: Path, files: Files) -> None:
    """Links for the first component of every path; links whose file is gone are removed."""
    wanted = {PurePosixPath(name).parts[0] for name in files}
    for name in wanted:
        link = folder / name
        if not link.is_symlink():
            link.symlink_to(f"{CURRENT}/{name}")
    for link in folder.iterdir():
        if not link.name.startswith("..") and link.name not in wanted:
            link.unlink()
