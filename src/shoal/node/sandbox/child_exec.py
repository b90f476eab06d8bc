"""The child's side of a start: from the fork to the exec.

Everything here runs in the forked child of a shim and ends in exec or in `_exit`; nothing returns to the shim's loop.
An error is sent as text through a pipe that exec would have closed, with the code a shell or runc would give: 126 not
executable, 127 not found, 128 the place could not be prepared.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import pwd
import signal
import termios

from shoal.node.sandbox import cgroups, syscalls
from shoal.node.sandbox import mounts as mounting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

NOT_EXECUTABLE, NOT_FOUND, NOT_PREPARED = 126, 127, 128


class ExecFailed(Exception):
    """Why the program never ran."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def run_process(
    process: dict[str, Any],
    *,
    stdio: tuple[int, int, int],
    report: int,
    mounts: list[dict[str, Any]] | None,
    scratch: str,
    group: cgroups.Cgroup | None,
) -> NoReturn:
    """Become a container's program. `mounts` None: this machine allows no private mounts."""
    try:
        _detach_from_shim(stdio)
        if group is not None:
            group.enter()
        _mount(process["mounts"], mounts, scratch, process["hidden"])
        _drop_privileges(process, stdio)
        syscalls.set_parent_death_signal(_SHIM_PID)  # again: the kernel clears it when the user changes
        _execute(process["argv"], process["env"], process["cwd"])
    except ExecFailed as failed:
        _write_report(report, failed.code, failed.message)
    except OSError as error:
        _write_report(
            report, NOT_PREPARED, f"{error.strerror}: {error.filename}" if error.filename else str(error.strerror)
        )
    except BaseException as error:
        _write_report(report, NOT_PREPARED, f"{type(error).__name__}: {error}")
    finally:
        os._exit(NOT_PREPARED)


def run_exec(
    process: dict[str, Any],
    argv: list[str],
    env: dict[str, str],
    *,
    mount_ns: int,
    stdio: tuple[int, int, int],
    tty: bool,
    group: cgroups.Cgroup | None,
) -> NoReturn:
    """Become a command that sees the files of a running process: `mount_ns` is its mount namespace. Failures go to its
    stderr, as a shell's would."""
    code = NOT_PREPARED
    try:
        _detach_from_shim(stdio)
        if group is not None:
            group.enter()
        if tty:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        if os.readlink(f"/proc/self/fd/{mount_ns}") != os.readlink("/proc/self/ns/mnt"):
            syscalls.setns(mount_ns, syscalls.NEW_NS)
        _drop_privileges(process, stdio)
        syscalls.set_parent_death_signal(_SHIM_PID)
        _execute(argv, env, process["cwd"])
    except ExecFailed as failed:
        code = failed.code
        os.write(2, failed.message.encode() + b"\n")
    except OSError as error:
        os.write(2, f"{error.strerror}: {error.filename}\n".encode())
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}\n".encode(errors="replace"))
    finally:
        os._exit(code)


_SHIM_PID = 0


def note_shim() -> None:
    """Called by a shim once it is one; its children compare their parent with it."""
    global _SHIM_PID
    _SHIM_PID = os.getpid()


def _detach_from_shim(stdio: tuple[int, int, int]) -> None:
    os.setsid()
    syscalls.set_parent_death_signal(_SHIM_PID)
    signal.set_wakeup_fd(-1)  # it is the shim's: a signal to this process would wake the shim's loop
    for number in range(1, signal.NSIG):
        try:
            signal.signal(number, signal.SIG_DFL)
        except (OSError, ValueError):
            continue  # KILL, STOP and those the C library keeps for itself
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for target, fd in enumerate(stdio):
        os.dup2(fd, target)
    os.umask(0o022)


def _mount(requested: list[dict[str, Any]], base: list[dict[str, Any]] | None, scratch: str, hidden: list[str]) -> None:
    if base is None:
        if hidden:
            raise ExecFailed(
                NOT_PREPARED, "this machine allows no private mounts, so the node's files cannot be hidden"
            )
        for mount in requested:
            source = mount["source"]
            # A mount that shows a folder where it is anyway needs no mounting.
            if source is None or os.path.realpath(mount["target"]) != os.path.realpath(
                os.path.join(source, mount.get("sub_path", ""))
            ):
                raise ExecFailed(
                    NOT_PREPARED,
                    f"mount {mount['target']}: this machine allows no private mounts. `shoal doctor` shows why.",
                )
        return
    try:
        mounting.set_up_mounts(base + requested, scratch=scratch, hidden=hidden)
    except mounting.MountFailed as failed:
        raise ExecFailed(NOT_PREPARED, str(failed)) from failed


def _drop_privileges(process: dict[str, Any], stdio: tuple[int, int, int]) -> None:
    if process["no_new_privs"]:
        syscalls.set_no_new_privs()
    uid, gid = process["uid"], process["gid"]
    if uid in (None, os.getuid()) and gid in (None, os.getgid()):
        return
    user = os.getuid() if uid is None else uid
    group = gid
    if group is None:
        try:
            group = pwd.getpwuid(user).pw_gid
        except KeyError:  # no account: root's group, as container runtimes do
            group = 0
    try:
        for fd in stdio[1:]:
            os.fchown(fd, user, group)  # so that the program may open /dev/stdout again
        os.setgroups([group])
        os.setresgid(group, group, group)
        os.setresuid(user, user, user)
    except OSError as error:
        raise ExecFailed(
            NOT_PREPARED,
            f"cannot run as user {user} and group {group}: only root can run programs as others. "
            f"Leave runAsUser and runAsGroup out, or start shoal as root.",
        ) from error


def _execute(argv: list[str], env: dict[str, str], cwd: str) -> None:
    _check_strings(argv, env, cwd)
    try:
        os.chdir(cwd)
    except OSError as error:
        raise ExecFailed(NOT_PREPARED, f"working folder {cwd}: {error.strerror}") from error
    env = dict(env, PWD=cwd) if "PWD" in env else env
    program = argv[0]
    if "/" in program:
        candidates = [program]
    else:
        candidates = [f"{folder or '.'}/{program}" for folder in env.get("PATH", os.defpath).split(":")]
    worst = ExecFailed(NOT_FOUND, f'exec: "{program}": executable file not found in $PATH')
    for candidate in candidates:
        try:
            os.execve(candidate, argv, env)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR):
                if "/" in program:
                    # A script whose interpreter is missing fails with the same error as a missing script.
                    interpreter = _interpreter_of(program)
                    reason = f"its interpreter {interpreter} is missing" if interpreter else error.strerror
                    worst = ExecFailed(NOT_FOUND, f'exec: "{program}": {reason}')
                continue
            worst = ExecFailed(NOT_EXECUTABLE, f'exec: "{candidate}": {error.strerror}')
    raise worst


def _check_strings(argv: list[str], env: dict[str, str], cwd: str) -> None:
    """The kernel takes NUL-terminated strings, so none can hold a NUL byte; nor can it take what is no text."""
    strings = {f"argument {number} of the command": string for number, string in enumerate(argv)}
    strings |= {f"the value of variable {name!r}": value for name, value in env.items()}
    strings |= {f"the name of variable {name!r}": name for name in env} | {"the working folder": cwd}
    for what, string in strings.items():
        if "\0" in string:
            raise ExecFailed(NOT_PREPARED, f"exec: {what} holds a NUL byte, which no program can be given")
        try:
            os.fsencode(string)
        except UnicodeEncodeError:
            raise ExecFailed(
                NOT_PREPARED, f"exec: {what} holds half a character, which no program can be given"
            ) from None


def _interpreter_of(program: str) -> str:
    """'' of a file that is no script, or cannot be read."""
    try:
        with open(program, "rb") as file:
            first = file.readline(256)
    except OSError:
        return ""
    return first[2:].strip().decode(errors="replace") if first[:2] == b"#!" else ""


def _write_report(report: int, code: int, message: str) -> None:
    os.write(report, json.dumps({"code": code, "message": message}).encode()[:60_000])
