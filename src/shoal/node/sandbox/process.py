"""One process supervised by a shim: its start, its output, everything it forks, and its end.

The order of facts is the point: `intent` is on record before the fork, `started` before it is reported, `exited` after
the last descendant is gone and the last line of output is in the log. The end of the main process is the end of all it
left behind, as it would be in a container.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable

from shoal.node.sandbox import cgroups, child_exec, cri_log, proctree
from shoal.node.sandbox.event_loop import EventLoop
from shoal.node.sandbox.namespaces import PodNamespaces
from shoal.node.sandbox.shim_journal import ShimJournal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PIPE_BYTES = 1 << 16
_MAX_READS = 64  # of a pipe after the end: more than it can hold, and an end even if an escaped process writes


class Process:
    """A process from the request to start it to the record of its end."""

    def __init__(self, process: dict[str, Any], *, sandbox: str, journal: ShimJournal, loop: EventLoop) -> None:
        self.process = process
        self.id: str = process["id"]
        self.mark = f"{sandbox}/{self.id}"
        self.process["env"] = {**process["env"], proctree.MARK: self.mark}
        self._journal = journal
        self._loop = loop
        self.pid = 0
        self.status: int | None = None  # as wait gives it
        self.started: dict[str, Any] | None = None
        self.exited: dict[str, Any] | None = None
        self.executions: set[int] = set()  # pids of commands run beside it
        self.killed_by_shim = False
        self.on_state: Callable[[Process], None] = lambda _: None
        self.group: cgroups.Cgroup | None = None
        self._streams: dict[int, cri_log.Stream] = {}
        self._log: cri_log.LogFile | None = None
        self._report = -1
        self._ended_at = 0.0
        self._host_oom_kills = 0

    def start(self, namespaces: PodNamespaces, *, scratch: str, group: cgroups.Cgroup | None) -> None:
        try:
            self._journal.append("intent", process=self.id, at=time.time())
            self._log = cri_log.LogFile(
                self.process["log_file"],
                max_bytes=self.process["log_max_bytes"],
                max_files=self.process["log_max_files"],
            )
            self._host_oom_kills = cgroups.host_oom_kills()
            if group:
                self.group = group
                group.make()
        except OSError as error:
            self._fail_start(child_exec.NOT_PREPARED, f"{error.filename}: {error.strerror}")
            return
        # Exec closes the child's end of the report pipe: its end without data means that the program runs.
        out, err, report = (os.pipe2(os.O_CLOEXEC) for _ in range(3))
        devnull = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
        self.pid = os.fork()
        if self.pid == 0:
            child_exec.run_process(
                self.process,
                stdio=(devnull, out[1], err[1]),
                report=report[1],
                mounts=namespaces.base_mounts(),
                scratch=scratch,
                group=self.group,
            )
        for fd in (out[1], err[1], report[1], devnull):
            os.close(fd)
        assert self._log is not None
        self._watch_output(out[0], cri_log.Stream("stdout", self._log))
        self._watch_output(err[0], cri_log.Stream("stderr", self._log))
        self._report = report[0]
        self._loop.watch(self._report, lambda _: self._read_report())

    def _read_report(self) -> None:
        """The report pipe has closed: by exec, or by a child that reports why there was none."""
        if self._report < 0:
            return
        data = b""
        while chunk := os.read(self._report, _PIPE_BYTES):
            data += chunk
        self._loop.unwatch(self._report)
        os.close(self._report)
        self._report = -1
        if data:
            failure = json.loads(data)
            if self.status is None:
                _, self.status = os.waitpid(self.pid, 0)
            self._fail_start(failure["code"], failure["message"])
            return
        start = proctree.start_time(self.pid) if self.status is None else 0  # the pid may be another process's now
        self.started = {"pid": self.pid, "start": start, "at": time.time()}
        self._journal.append_if_possible("started", process=self.id, **self.started)
        self.on_state(self)

    def _fail_start(self, code: int, message: str) -> None:
        self._end(code=code, signal_number=None, message=message, at=time.time())

    # -- output

    def _watch_output(self, fd: int, stream: cri_log.Stream) -> None:
        os.set_blocking(fd, False)
        self._streams[fd] = stream

        def read(_: int) -> None:
            self._read(fd)

        self._loop.watch(fd, read)

    def _read(self, fd: int) -> bool:
        """One read; False when there is nothing more for now."""
        try:
            data = os.read(fd, _PIPE_BYTES)
        except BlockingIOError:
            return False
        if data:
            self._streams[fd].feed(data)
            return True
        self._close_stream(fd)
        return False

    def _close_stream(self, fd: int) -> None:
        self._streams.pop(fd).finish()
        self._loop.unwatch(fd)
        os.close(fd)

    # -- the end

    def mark_ended(self, status: int) -> None:
        """Its main process was reaped, perhaps before the result of its start was read."""
        self.status = status
        self._read_report()
        self._ended_at = time.time()  # last: no end may precede the start that is reported now

    def kill_all(self, orphans: list[int]) -> bool:
        """SIGKILL for the process, its descendants, commands beside it, and `orphans`. True when none was left."""
        main = [self.pid] if self.pid and self.status is None else []
        grouped = self.group.members() if self.group is not None else []
        members = proctree.descendants([*main, *self.executions, *orphans, *grouped])
        left = [pid for pid in members if (seen := proctree.stat(pid)) is not None and seen.is_alive]
        for pid in left:
            proctree.kill(pid)
        return not left

    def owns(self, seen: proctree.Stat, pid: int) -> bool:
        """Whether an orphan that was reparented to the shim was left by this process."""
        return seen.session in (self.pid, *self.executions) or proctree.mark(pid) == self.mark

    def finish(self) -> None:
        """The main process has ended and nothing of it is left: drain, record, report."""
        if self.exited is not None or self.status is None:
            return
        code = os.waitstatus_to_exitcode(self.status)
        if self.group is not None and self.group.limits_memory:
            kills = self.group.oom_kills() if code != 0 else 0
        elif code == -signal.SIGKILL and not self.killed_by_shim:
            # Without a group of its own, a kill that the shim did not send is the kernel's if it counts more of them.
            kills = cgroups.host_oom_kills() - self._host_oom_kills
        else:
            kills = 0
        self._end(
            code=code if code >= 0 else None,
            signal_number=-code if code < 0 else None,
            message="",
            at=self._ended_at,
            oom_killed=kills > 0,
        )

    def _end(
        self, *, code: int | None, signal_number: int | None, message: str, at: float, oom_killed: bool = False
    ) -> None:
        for fd in list(self._streams):
            for _ in range(_MAX_READS):
                if not self._read(fd):
                    break
            if fd in self._streams:
                self._close_stream(fd)
        if self._log is not None:
            self._log.close()
        if self.group is not None:
            self.group.remove()
        self.exited = {"at": at, "code": code, "signal": signal_number, "oom_killed": oom_killed, "message": message}
        self._journal.append_if_possible("exited", process=self.id, **self.exited)
        self.on_state(self)
