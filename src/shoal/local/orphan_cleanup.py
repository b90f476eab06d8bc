"""What a process that was killed left behind: pods of a cluster, and whole clusters of `shoal run`."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shoal.local.data_dir import DataFolder, FolderLocked

if TYPE_CHECKING:
    from shoal.kube.objects import Obj

THROWAWAY, KEPT = "shoal-run-", "shoal-kept-"  # how the folders of `shoal run` begin
RUN = "run"  # a file in the folder while its `shoal run` runs, and after that was killed


def make_throwaway(*, is_kept: bool) -> DataFolder:
    return DataFolder(Path(tempfile.mkdtemp(prefix=KEPT if is_kept else THROWAWAY)))


@contextmanager
def marked_run(folder: DataFolder) -> Iterator[None]:
    """Mark the folder while `shoal run` uses it.
    A kept folder may be used by `shoal up` later, whose pods continue when it is killed: the mark separates the two."""
    mark = folder.path / RUN
    mark.touch()
    try:
        yield
    finally:
        mark.unlink(missing_ok=True)


def end_throwaways() -> None:
    """End the clusters of `shoal run` that were killed, and remove those that were not to be kept. Those whose process
    lives hold their lock."""
    for folder in killed_runs():
        with suppress(FolderLocked, click.ClickException), folder.locked():
            if count := folder.count_sandboxes():
                left = "1 pod" if count == 1 else f"{count} pods"
                click.echo(f"Stopping {left} left by a `shoal run` that was killed ...", err=True)
                end_pods(folder)
            if folder.path.name.startswith(KEPT):
                (folder.path / RUN).unlink(missing_ok=True)
            else:
                shutil.rmtree(folder.path, ignore_errors=True)


def killed_runs() -> Iterator[DataFolder]:
    """Folders of this user in which a cluster was started. A new one has no process in its lock yet."""
    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            is_kept = entry.name.startswith(KEPT)
            if not (is_kept or entry.name.startswith(THROWAWAY)):
                continue
            if entry.stat(follow_symlinks=False).st_uid != os.geteuid():
                continue
            folder = DataFolder(Path(entry.path))
            if folder.last_holder() and (not is_kept or (folder.path / RUN).exists()):
                yield folder


def end_pods(folder: DataFolder) -> tuple[int, list[Obj]]:
    """Stop the pods of a cluster that does not run; how many there were, and the pods it has stored. The caller holds
    the folder."""
    import asyncio

    from shoal.node.orphaned_pods import stop_orphans
    from shoal.node.pod_lifecycle import DEFAULT_GRACE_SECONDS, spec_grace

    stored = {pod["metadata"]["uid"]: pod for pod in stored_pods(folder)}

    def grace_of(uid: str) -> float:
        return spec_grace(stored[uid]) if uid in stored else DEFAULT_GRACE_SECONDS

    count = asyncio.run(stop_orphans(folder.path, folder.sandboxes, grace_of))
    return count, list(stored.values())


def stored_pods(folder: DataFolder) -> list[Obj]:
    """Of a cluster that does not run. The caller holds the folder."""
    from contextlib import closing

    from shoal.cluster.apimachinery import Machinery
    from shoal.kube.kinds import POD

    if not folder.store.exists():
        return []
    with closing(Machinery.open(folder.store)) as known:
        return [stored.obj() for stored in known.list(POD).items]
