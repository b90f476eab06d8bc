"""Volumes: from the manifest to folders on this machine, and from those to the mounts of a container.

`prepare` makes every volume of a pod exist and returns where; it may be called again at any time (after a crash, when a
ConfigMap changed) and then only brings the files up to date. `mounts_for` is what one container sees. Whatever cannot
be had yet raises `ReferenceMissing` with the message for the pod's events and status; the pod continues when the
missing object appears.

A memory-backed emptyDir that one container mounts is a tmpfs of its own with the size limit enforced; it is removed
with that container's process. One that containers share, or mount by a subPath, is a folder on /dev/shm inside one that
only this user may enter; only the machine limits its size. The size limit of a disk-backed emptyDir is not enforced.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from shoal.kube.kinds import PERSISTENT_VOLUME_CLAIM
from shoal.kube.messages import Message
from shoal.kube.objects import Obj, name_of, namespace_of, uid_of
from shoal.kube.persistent_volumes import path_of
from shoal.kube.quantity import Quantity
from shoal.node import atomic_files
from shoal.node.checkpoint import PodFolder
from shoal.node.environment import EnvContext, expand, unknown_names
from shoal.node.pod_lifecycle import all_containers
from shoal.node.pod_references import ReferenceMissing, bound_volume, is_bound, not_found
from shoal.node.sandbox.interface import Mount
from shoal.node.sandbox.openat2 import PathEscapes, open_beneath
from shoal.node.volume_files import files_of, has_files

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - the machine's tmpfs, entered by the pod's uid


@dataclass(frozen=True, slots=True)
class PreparedVolume:
    """A volume that is there: a place on this machine, or (None) a tmpfs made for the container that mounts it."""

    path: Path | None
    size_bytes: int | None = None
    read_only: bool = False
    may_create: bool = True  # missing paths below it


def prepare(pod: Obj, folder: PodFolder, env_context: EnvContext) -> dict[str, PreparedVolume]:
    """Every volume of the pod by name; raises ReferenceMissing for the first that cannot be had."""
    volumes = {}
    for volume in pod["spec"].get("volumes") or ():
        volumes[volume["name"]] = _prepare_one(pod, volume, folder, env_context)
    return volumes


def refresh(pod: Obj, folder: PodFolder, env_context: EnvContext) -> bool:
    """Bring the files of configMap, secret and downwardAPI volumes up to date; whether any changed.

    A volume whose object has gone keeps its files: the containers that run have been promised them.
    """
    changed = False
    for volume in pod["spec"].get("volumes") or ():
        if not has_files(volume):
            continue
        try:
            files = files_of(pod, volume, env_context)
        except ReferenceMissing:
            continue
        changed |= atomic_files.write_all(folder.volumes / volume["name"], files, owner=env_context.owner)
    return changed


def remove(uid: str) -> None:
    """Remove what a pod's shared memory volumes left outside its folder."""
    shutil.rmtree(_shared_memory_of(uid), ignore_errors=True)


def _shared_memory_of(uid: str) -> Path:
    return SHARED_MEMORY / f"shoal-{uid}"


def _prepare_one(pod: Obj, volume: Obj, folder: PodFolder, env_context: EnvContext) -> PreparedVolume:
    place = folder.volumes / volume["name"]
    if has_files(volume):
        atomic_files.write_all(place, files_of(pod, volume, env_context), owner=env_context.owner)
        return PreparedVolume(place, read_only=True)
    if "emptyDir" in volume:
        return _empty_dir(pod, volume, place)
    if source := volume.get("hostPath"):
        may_create = env_context.owner is None  # else a pod without rights here would have root make it
        place = _host_path(Path(source["path"]), source.get("type") or "", may_create=may_create)
        return PreparedVolume(place, may_create=may_create)
    if source := volume.get("persistentVolumeClaim"):
        return _claim_volume(pod, source, env_context)
    kinds = [key for key in volume if key != "name"]
    if not kinds:
        return _empty_dir(pod, {"name": volume["name"], "emptyDir": {}}, place)
    raise ReferenceMissing(Message("Volume.UnknownKind", {"volume": volume["name"], "kinds": kinds}))


def _empty_dir(pod: Obj, volume: Obj, place: Path) -> PreparedVolume:
    source = volume["emptyDir"] or {}
    medium = source.get("medium") or ""
    if medium not in ("", "Memory"):
        raise ReferenceMissing(Message("Volume.UnknownMedium", {"volume": volume["name"], "medium": medium}))
    size = Quantity.parse(str(source["sizeLimit"])).value() if source.get("sizeLimit") else None
    if medium == "Memory":
        mounts = [m for c in all_containers(pod) for m in c.get("volumeMounts") or () if m["name"] == volume["name"]]
        if len(mounts) < 2 and not any(m.get("subPath") or m.get("subPathExpr") for m in mounts):
            return PreparedVolume(None, size_bytes=size or None)
        if SHARED_MEMORY.is_dir() and os.access(SHARED_MEMORY, os.W_OK):
            place = _private_folder(_shared_memory_of(uid_of(pod))) / volume["name"]
    place.mkdir(parents=True, exist_ok=True)
    place.chmod(0o777)  # as a kubelet makes it: containers may run as any user
    return PreparedVolume(place)


def _private_folder(path: Path) -> Path:
    """A folder that only this user may enter, in a place where all users may create files."""
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    try:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as refused:
        raise ReferenceMissing(
            Message("SharedMemory.Unusable", {"path": str(path), "error": refused.strerror})
        ) from refused
    try:
        if (owner := os.fstat(folder).st_uid) != os.geteuid():
            raise ReferenceMissing(Message("SharedMemory.NotOurs", {"path": str(path), "owner": owner}))
        os.fchmod(folder, 0o700)
    finally:
        os.close(folder)
    return path


def _claim_volume(pod: Obj, source: Obj, env_context: EnvContext) -> PreparedVolume:
    name, namespace = source["claimName"], namespace_of(pod)
    claim = env_context.lookup.get(PERSISTENT_VOLUME_CLAIM, namespace, name)
    if claim is None:
        raise not_found(PERSISTENT_VOLUME_CLAIM, name)
    behind = bound_volume(claim)
    if behind is None or not is_bound(claim):
        phase = (claim.get("status") or {}).get("phase")
        raise ReferenceMissing(Message("Claim.NotBound", {"claim": name, "phase": phase or "Pending"}))
    volume = env_context.lookup.objects.get(behind)
    if volume is None:
        raise ReferenceMissing(Message("Claim.NoVolume", {"volume": behind.key.name, "claim": name}))
    path = path_of(volume)
    if not path:
        raise ReferenceMissing(Message("Claim.NotMountable", {"volume": name_of(volume)}))
    _make_folder(Path(path), 0o777)
    return PreparedVolume(Path(path), read_only=bool(source.get("readOnly")))


# Paths of the machine


def _make_folder(path: Path, mode: int) -> None:
    if path.is_dir():
        return
    try:
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(mode)
    except OSError as refused:
        raise ReferenceMissing(
            Message("HostPath.FolderNotMade", {"path": str(path), "error": refused.strerror})
        ) from refused


_CHECKS: Mapping[str, tuple[Callable[[int], bool], str]] = {
    "Directory": (stat.S_ISDIR, "a directory"),
    "DirectoryOrCreate": (stat.S_ISDIR, "a directory"),
    "File": (stat.S_ISREG, "a file"),
    "FileOrCreate": (stat.S_ISREG, "a file"),
    "Socket": (stat.S_ISSOCK, "a socket file"),
    "CharDevice": (stat.S_ISCHR, "a character device"),
    "BlockDevice": (stat.S_ISBLK, "a block device"),
}


def _host_path(path: Path, kind: str, *, may_create: bool) -> Path:
    if not path.exists():
        if not may_create:
            raise ReferenceMissing(Message("HostPath.Missing", {"path": str(path)}), path)
        if kind in ("", "DirectoryOrCreate"):
            _make_folder(path, 0o755)
        elif kind == "FileOrCreate":
            try:
                path.touch(mode=0o644, exist_ok=True)
            except OSError as refused:
                parameters = {"path": str(path), "error": refused.strerror}
                raise ReferenceMissing(Message("HostPath.FileNotMade", parameters)) from refused
    if kind:
        fits, what = _CHECKS[kind]
        if not path.exists() or not fits(path.stat().st_mode):
            raise ReferenceMissing(Message("HostPath.WrongType", {"path": str(path), "type": what}), path)
    return path


# What a container sees


def mounts_for(
    container: Obj, volumes: Mapping[str, PreparedVolume], variables: Mapping[str, str]
) -> tuple[Mount, ...]:
    """The container's mounts, outer folders before what is mounted inside them."""
    mounts = []
    for volume_mount in container.get("volumeMounts") or ():
        volume = volumes.get(volume_mount["name"])
        if volume is None:
            parameters = {"container": container["name"], "volume": volume_mount["name"]}
            raise ReferenceMissing(Message("Mount.NoVolume", parameters))
        read_only = volume.read_only or bool(volume_mount.get("readOnly"))
        target = _without_nul("mountPath", str(PurePosixPath("/") / volume_mount["mountPath"]))
        if volume.path is None:
            mounts.append(Mount(target, None, read_only, volume.size_bytes))
            continue
        if expression := volume_mount.get("subPathExpr"):
            if unknown := unknown_names(expression, variables):
                parameters = {"mount": volume_mount["name"], "variables": unknown}
                raise ReferenceMissing(Message("SubPath.UnknownVariable", parameters))
            sub_path = expand(expression, variables)
        else:
            sub_path = volume_mount.get("subPath") or ""
        sub_path = _without_nul("subPath", sub_path)
        if sub_path:
            _check_sub_path(volume.path, sub_path, make=volume.may_create and not volume.read_only)
        mounts.append(Mount(target, volume.path, read_only, sub_path=sub_path))
    return tuple(sorted(mounts, key=lambda mount: len(PurePosixPath(mount.target).parts)))


def _without_nul(field: str, path: str) -> str:
    if "\0" in path:
        raise ReferenceMissing(Message("Mount.NulByte", {"field": field, "path": path}))
    return path


def _check_sub_path(volume: Path, sub_path: str, *, make: bool) -> None:
    """Make a path within a volume where it is missing.
    The sandbox resolves it again when it mounts it: the pod may change its volumes at any time."""
    if PurePosixPath(sub_path).is_absolute() or ".." in PurePosixPath(sub_path).parts:
        raise ReferenceMissing(Message("SubPath.NotRelative", {"path": sub_path}))
    try:
        os.close(open_beneath(str(volume), sub_path, make=make))
    except PathEscapes as escape:
        raise ReferenceMissing(Message("SubPath.Escapes", {"path": sub_path})) from escape
    except FileNotFoundError as missing:
        raise ReferenceMissing(Message("SubPath.Missing", {"path": sub_path})) from missing
    except OSError as refused:
        parameters = {"path": sub_path, "error": refused.strerror}
        raise ReferenceMissing(Message("SubPath.NotOpened", parameters)) from refused
