"""Opening a path below a folder whose content is not trusted, as openat2 does with RESOLVE_BENEATH.

A pod writes to its volumes while the node, often as root, opens and creates paths in them. Each component is opened
relative to the one before without following links; links are resolved here, and one that is absolute or climbs above
the folder is refused. Nothing is created before its location is known to be inside. Written with openat and mkdirat,
which every kernel has; openat2 alone could not create the missing folders.
"""

from __future__ import annotations

import os
import stat
from collections import deque

_MAX_LINKS = 40  # as the kernel's own limit


class PathEscapes(Exception):
    """The path leaves the folder, by a link or by `..`."""


def open_beneath(folder: str, path: str, *, make: bool = False) -> int:
    """An O_PATH descriptor of `path` below `folder`; FileNotFoundError where it is missing and not to be made.

    Folders that are made get the mode of `folder`. `folder` itself is trusted: links in it are followed.
    """
    stack = [os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)]
    try:
        mode = stat.S_IMODE(os.fstat(stack[0]).st_mode)
        left = deque(_components(path))
        links = 0
        while left:
            name = left.popleft()
            if name == "..":
                if len(stack) == 1:
                    raise PathEscapes(path)
                os.close(stack.pop())
                continue
            opened = _open(name, stack[-1], mode if make else None)
            if not stat.S_ISLNK(os.fstat(opened).st_mode):
                stack.append(opened)
                continue
            try:
                target = os.readlink("", dir_fd=opened)
            finally:
                os.close(opened)
            links += 1
            if target.startswith("/") or links > _MAX_LINKS:
                raise PathEscapes(path)
            left.extendleft(reversed(_components(target)))
        return stack.pop()
    finally:
        for fd in stack:
            os.close(fd)


def _components(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in ("", ".")]


def _open(name: str, parent: int, mode: int | None) -> int:
    flags = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(name, flags, dir_fd=parent)
    except FileNotFoundError:
        if mode is None:
            raise
    try:
        os.mkdir(name, mode, dir_fd=parent)
    except FileExistsError:
        return os.open(name, flags, dir_fd=parent)
    made = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        os.fchmod(made, mode)  # the umask has taken bits away
    finally:
        os.close(made)
    return os.open(name, flags, dir_fd=parent)
