"""The few Linux calls that Python 3.11 does not have: namespaces, mounts, process settings.

Everything here is a thin layer over the C library that raises OSError with the path or the step in it. The
processes that import this file (zygote, shim, network process) are forked hundreds of times, so it stays light: no
dataclasses, no typing, no pathlib.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

NEW_NS = 0x00020000
NEW_UTS = 0x04000000
NEW_USER = 0x10000000
NEW_NET = 0x40000000

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_REMOUNT = 32
MS_NOATIME = 1024
MS_NODIRATIME = 2048
MS_BIND = 4096
MS_REC = 16384
MS_SLAVE = 1 << 19
MS_RELATIME = 1 << 21
MNT_DETACH = 2

_ST_RELATIME = 4096
_IN_DELETE = 0x200
_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "riscv64": 41}

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mount.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p]
_libc.umount2.argtypes = [ctypes.c_char_p, ctypes.c_int]
_libc.unshare.argtypes = [ctypes.c_int]
_libc.setns.argtypes = [ctypes.c_int, ctypes.c_int]
_libc.prctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong]
_libc.sethostname.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
_libc.syscall.restype = ctypes.c_long


def _check(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


def unshare(flags: int) -> None:
    _check(_libc.unshare(flags), "unshare")


def setns(fd: int, kind: int = 0) -> None:
    _check(_libc.setns(fd, kind), "setns")


def mount(
    source: str | None, target: str, *, fs_type: str | None = None, flags: int = 0, options: str | None = None
) -> None:
    def text(value: str | None) -> bytes | None:
        return None if value is None else os.fsencode(value)

    _check(_libc.mount(text(source), os.fsencode(target), text(fs_type), flags, text(options)), target)


def unmount(target: str, flags: int = MNT_DETACH) -> None:
    _check(_libc.umount2(os.fsencode(target), flags), target)


def pivot_root(new_root: str, put_old: str) -> None:
    number = _SYS_PIVOT_ROOT.get(os.uname().machine)
    if number is None:
        raise OSError(38, f"pivot_root is not known for {os.uname().machine}", new_root)
    old = ctypes.c_char_p(os.fsencode(put_old))
    _check(_libc.syscall(ctypes.c_long(number), ctypes.c_char_p(os.fsencode(new_root)), old), new_root)


def set_hostname(name: str) -> None:
    data = name.encode()
    _check(_libc.sethostname(data, len(data)), "sethostname")


def set_parent_death_signal(parent: int) -> None:
    """SIGKILL for this process when its parent dies. Credentials changed later take the setting away again."""
    _check(_libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")
    if os.getppid() != parent:  # it died before the setting could see it
        os.kill(os.getpid(), signal.SIGKILL)


def set_child_subreaper() -> None:
    """Orphans below this process come to it instead of to the machine's init."""
    _check(_libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl")


def set_no_new_privs() -> None:
    """No exec of this process or its children grants privileges: neither setuid programs nor file capabilities."""
    _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")


def set_dumpable() -> None:
    """Entering a user namespace hides a process from its own user in /proc; undo that."""
    _check(_libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0), "prctl")


def set_title(name: str) -> None:
    buffer = ctypes.create_string_buffer(name.encode()[:15])
    _check(_libc.prctl(_PR_SET_NAME, ctypes.addressof(buffer), 0, 0, 0), "prctl")


def enter_own_user_namespace() -> None:
    """A user namespace of one's own in which one's uid and gid stay what they are: files and `id` look as
    always, and until the next exec the process may mount and set up networks inside."""
    uid, gid = os.geteuid(), os.getegid()
    unshare(NEW_USER)
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{uid} {uid} 1")
    _write("/proc/self/gid_map", f"{gid} {gid} 1")


def mount_flags(path: str) -> int:
    """The flags of the mount at `path`: a remount in a user namespace must repeat those it may not clear."""
    have = os.statvfs(path).f_flag
    flags = have & (MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOATIME | MS_NODIRATIME)
    return flags | (MS_RELATIME if have & _ST_RELATIME else 0)


def watch_deletions(folder: str) -> int:
    """A descriptor that becomes readable when something in `folder` is deleted; `read_deletions` returns what."""
    fd: int = _libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    _check(fd, "inotify")
    _check(_libc.inotify_add_watch(fd, ctypes.c_char_p(os.fsencode(folder)), ctypes.c_uint32(_IN_DELETE)), folder)
    return fd


def read_deletions(fd: int) -> list[str]:
    """The names deleted since the last call."""
    try:
        data = os.read(fd, 1 << 16)
    except BlockingIOError:
        return []
    names = []
    while data:
        length = int.from_bytes(data[12:16], sys.byteorder)
        names.append(os.fsdecode(data[16 : 16 + length].rstrip(b"\0")))
        data = data[16 + length :]
    return names


def open_namespace(name: str, pid: int | str = "self") -> int:
    return os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC)


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
