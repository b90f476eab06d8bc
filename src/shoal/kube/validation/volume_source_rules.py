"""Places a volume can come from that pods and PersistentVolumes share: a host path, NFS, a local disk."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.kube.errors import Cause
from shoal.kube.objects import Obj
from shoal.kube.validation.errors import invalid, required
from shoal.kube.validation.value_rules import no_backsteps, optional_choice

HOST_PATH_TYPES = (
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket",
)  # fmt: skip


def host_path(source: Obj, path: str) -> Iterator[Cause]:
    if not source.get("path"):
        yield required(f"{path}.path")
        return
    yield from no_backsteps(source["path"], f"{path}.path")
    yield from optional_choice(source.get("type"), HOST_PATH_TYPES, f"{path}.type")


def nfs(source: Obj, path: str) -> Iterator[Cause]:
    if not source.get("server"):
        yield required(f"{path}.server")
    where = source.get("path") or ""
    if not where:
        yield required(f"{path}.path")
    if not where.startswith("/"):
        yield invalid(f"{path}.path", where, "must be an absolute path")


def local(source: Obj, path: str) -> Iterator[Cause]:
    if not source.get("path"):
        yield required(f"{path}.path")
    else:
        yield from no_backsteps(source["path"], f"{path}.path")
