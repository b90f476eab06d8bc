"""What a process sees in its file system: folders and files at any path, in a mount namespace of its own.

A target that is there is mounted over. One that is missing is made first: inside another mount of the same
process simply as a folder, as a container runtime does; never on the machine's own file system. There the deepest
parent that exists is *mirrored*: covered by a small tmpfs in which every entry of the covered folder appears again
as a bind mount, beside room for the new one. For `/` itself that mirror becomes the root (pivot_root). So
`/workspace` works for an ordinary user, and no mount point outlives its pod. The price: new entries made directly in
a mirrored folder are in memory and end with the process.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress

from shoal.node.sandbox import syscalls
from shoal.node.sandbox.openat2 import PathEscapes, open_beneath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_OLD_ROOT = "/.shoal-old-root"
_MAX_MIRRORED_ENTRIES = 10_000  # each is a mount, and the kernel allows a namespace 100,000 of them


class MountFailed(Exception):
    """The message has path and reason."""


def set_up_mounts(mounts: list[dict[str, Any]], *, scratch: str, hidden: list[str]) -> None:
    """Leave the machine's mount namespace for one with these mounts. `scratch` is an empty folder to build on.
    `hidden` files and folders are covered; a mount whose source lies inside one shows that source."""
    syscalls.unshare(syscalls.NEW_NS)
    # Slave: what the machine mounts or unmounts later is followed, what happens here stays here.
    syscalls.mount(None, "/", flags=syscalls.MS_REC | syscalls.MS_SLAVE)
    _MountTree(scratch, hidden).mount_all(sorted(mounts, key=lambda mount: mount["target"].rstrip("/").count("/")))


class _MountTree:
    """The file system as it grows."""

    def __init__(self, scratch: str, hidden: list[str]) -> None:
        self._scratch = scratch
        self._hidden = hidden
        self._mounted: list[str] = []  # targets done: inside them folders may be made
        self._made: set[str] = set()  # folders of our own tmpfs mirrors

    def mount_all(self, mounts: list[dict[str, Any]]) -> None:
        # Sources first: a mount may cover the source of another one.
        # Those inside hidden folders are the pod's own and are opened before the covers are mounted, all others after:
        # a symbolic link, or a bind mount of `/`, then leads to the cover.
        own = {id(mount): self._open_source(mount) for mount in mounts if self._is_hidden(mount["source"])}
        self._hide()
        sources = [own[id(mount)] if id(mount) in own else self._open_source(mount) for mount in mounts]
        deepest = [_deepest_existing(os.path.realpath(mount["target"])) for mount in mounts]
        root_is_mirrored = any(parent == "/" and missing for parent, missing in deepest)
        if root_is_mirrored:
            self._mirror_root()
        for mount, source in zip(mounts, sources, strict=True):
            try:
                self._mount_one(mount, source)
            except OSError as error:
                raise MountFailed(f"mount {mount['target']}: {_describe_error(error)}") from error
        for source in sources:
            if source is not None:
                os.close(source)
        if root_is_mirrored:
            syscalls.unmount(_OLD_ROOT)
            os.rmdir(_OLD_ROOT)

    def _is_hidden(self, path: str | None) -> bool:
        return path is not None and any(path == place or path.startswith(place + "/") for place in self._hidden)

    def _hide(self) -> None:
        """Cover folders with an empty tmpfs and files with /dev/null. The scratch folder exists again on its cover."""
        for place in self._hidden:
            try:
                if os.path.isdir(place):
                    options = "mode=0700,size=64k"
                    syscalls.mount(
                        "tmpfs", place, fs_type="tmpfs", flags=syscalls.MS_NOSUID | syscalls.MS_NODEV, options=options
                    )
                elif os.path.exists(place):
                    syscalls.mount("/dev/null", place, flags=syscalls.MS_BIND)
            except OSError as error:
                raise MountFailed(f"hide {place}: {_describe_error(error)}") from error
        if self._is_hidden(self._scratch):
            os.makedirs(self._scratch, exist_ok=True)

    def _open_source(self, mount: dict[str, Any]) -> int | None:
        if mount["source"] is None:
            return None
        try:
            if mount.get("sub_path"):
                return open_beneath(mount["source"], mount["sub_path"])
            return os.open(mount["source"], os.O_PATH | os.O_CLOEXEC)
        except PathEscapes as escape:
            raise MountFailed(f"mount {mount['target']}: {escape} leads out of {mount['source']}") from escape
        except OSError as error:
            raise MountFailed(f"mount {mount['target']}: the source {mount['source']}: {error.strerror}") from error

    def _mount_one(self, mount: dict[str, Any], source: int | None) -> None:
        target = os.path.realpath(mount["target"])
        if target == "/":
            raise OSError(22, "nothing can be mounted over the root folder", "/")
        is_folder = source is None or stat.S_ISDIR(os.stat(source).st_mode)
        self._make_target(target, is_folder=is_folder)
        if source is None:
            size = "" if mount["size_bytes"] is None else f",size={mount['size_bytes']}"
            flags = syscalls.MS_NOSUID | syscalls.MS_NODEV
            syscalls.mount("tmpfs", target, fs_type="tmpfs", flags=flags, options=f"mode=0777{size}")
        else:
            syscalls.mount(f"/proc/self/fd/{source}", target, flags=syscalls.MS_BIND | syscalls.MS_REC)
        if mount["read_only"]:
            # A bind mount ignores MS_RDONLY when it is made; it takes a remount.
            kept = syscalls.mount_flags(target)
            syscalls.mount(None, target, flags=syscalls.MS_REMOUNT | syscalls.MS_BIND | syscalls.MS_RDONLY | kept)
        self._mounted.append(target)

    def _make_target(self, target: str, *, is_folder: bool) -> None:
        parent, missing = _deepest_existing(target)
        if not missing:
            return
        # What is made in a mirror, or in a mount of the pod, stays within the pod.
        is_private = parent in self._made or any(
            parent == done or parent.startswith(done + "/") for done in self._mounted
        )
        if not is_private:
            self._mirror(parent, target)
        for name in missing[:-1] if not is_folder else missing:
            is_ours = parent in self._made
            parent = os.path.join(parent, name)
            os.makedirs(parent, exist_ok=True)
            if is_ours:
                self._made.add(parent)
        if not is_folder:
            os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644))

    def _mirror(self, folder: str, target: str) -> None:
        covered = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            names = os.listdir(covered)
            if len(names) > _MAX_MIRRORED_ENTRIES:
                raise MountFailed(
                    f"mount {target}: {folder} holds {len(names)} entries, too many to show beside a mount point that "
                    f"is missing on the machine; create {target} there first"
                )
            before = os.stat(covered)
            mode = f"mode={stat.S_IMODE(before.st_mode):o}"
            syscalls.mount("tmpfs", folder, fs_type="tmpfs", flags=syscalls.MS_NOSUID, options=mode)
            # So that a program that runs as the owner of the covered folder may write in the mirror as well. An owner
            # that the user namespace does not map is refused; the mirror then stays the user's own.
            with suppress(OSError):
                os.chown(folder, before.st_uid, before.st_gid)
            for name in names:
                _bind_entry(f"/proc/self/fd/{covered}/{name}", os.path.join(folder, name))
            self._made.add(folder)
        finally:
            os.close(covered)

    def _mirror_root(self) -> None:
        new = self._scratch
        syscalls.mount("tmpfs", new, fs_type="tmpfs", flags=syscalls.MS_NOSUID, options="mode=0755")
        first_folder = new.split("/")[1]
        # The folder that holds the new root is first: its copy then contains an empty new root, which the
        # unmount below takes away, instead of a second copy of everything.
        for name in sorted(os.listdir("/"), key=lambda name: name != first_folder):
            _bind_entry(f"/{name}", f"{new}/{name}")
        os.mkdir(new + _OLD_ROOT)
        syscalls.pivot_root(new, new + _OLD_ROOT)
        os.chdir("/")
        syscalls.unmount(new)
        self._made.add("/")


def _deepest_existing(path: str) -> tuple[str, list[str]]:
    """The deepest prefix of `path` that exists, and the names that are missing below it."""
    missing: list[str] = []
    while not os.path.lexists(path):
        path, name = os.path.split(path)
        missing.insert(0, name)
    return path, missing


def _bind_entry(old: str, new: str) -> None:
    """Show one entry of a covered folder again. An entry that is removed by then is left out."""
    try:
        mode = os.lstat(old).st_mode
        if stat.S_ISLNK(mode):
            os.symlink(os.readlink(old), new)
            return
    except FileNotFoundError:
        return
    is_folder = stat.S_ISDIR(mode)
    if is_folder:
        os.mkdir(new)
    else:
        os.close(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    try:
        syscalls.mount(old, new, flags=syscalls.MS_BIND | syscalls.MS_REC)
    except FileNotFoundError:
        remove = os.rmdir if is_folder else os.unlink
        remove(new)


def _describe_error(error: OSError) -> str:
    about = error.filename if isinstance(error.filename, str) and not error.filename.startswith("/proc/self") else ""
    return f"{error.strerror} ({about})" if about else str(error.strerror)
