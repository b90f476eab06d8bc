"""Commands that run beside a process of the pod (`kubectl exec`): forked by the shim, controlled by the agent.

The ends of their streams are handed to the agent as descriptors, so not a byte of them passes through the
shim. A terminal is a pty whose one end the agent gets.
"""

from __future__ import annotations

import os
from contextlib import ExitStack

from shoal.node.sandbox import child_exec, proctree, syscalls, wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from shoal.node.sandbox.process import Process


class ExecSessions:
    """The commands that run now, by number."""

    def __init__(self) -> None:
        self._last = 0
        self._pids: dict[int, int] = {}

    def pids(self) -> set[int]:
        return set(self._pids.values())

    def begin(self, proc: Process, message: dict[str, Any]) -> tuple[int, int, tuple[int, ...]]:
        """Its number, its pid, and the agent's ends of its streams: stdin, stdout, stderr, or the one terminal.
        ProcessLookupError where the process beside which it is to run has ended, OSError where the machine refuses
        one of the things it takes; nothing is left open then."""
        with ExitStack() as here, ExitStack() as agents:
            try:
                # The files it sees, taken now: from here on the command ends by being killed, whenever that is.
                mount_ns = syscalls.open_namespace("mnt", proc.pid)
            except FileNotFoundError as gone:  # it has ended and is not reaped yet
                raise ProcessLookupError from gone
            here.callback(os.close, mount_ns)
            ours: tuple[int, ...]
            if message["tty"]:
                terminal, program = os.openpty()
                theirs, ours = (program, program, program), (terminal,)
            else:
                theirs, ours = _open_pipes()
            here.callback(wire.close_all, tuple(set(theirs)))  # a terminal is all three
            agents.callback(wire.close_all, ours)
            pid = os.fork()
            if pid == 0:
                wire.close_all(ours)
                child_exec.run_exec(
                    proc.process,
                    message["argv"],
                    {**proc.process["env"], **message["env"]},
                    mount_ns=mount_ns,
                    stdio=theirs,
                    tty=message["tty"],
                    group=proc.group,
                )
            agents.pop_all()
        self._last += 1
        self._pids[self._last] = pid
        return self._last, pid, ours

    def mark_ended(self, pid: int) -> int | None:
        """The number of the command that was `pid`; None where it was something else."""
        for number, its_pid in self._pids.items():
            if its_pid == pid:
                del self._pids[number]
                return number
        return None

    def kill(self, number: int) -> None:
        pid = self._pids.get(number)
        if pid is not None:
            for member in proctree.descendants([pid]):
                proctree.kill(member)


def _open_pipes() -> tuple[tuple[int, int, int], tuple[int, ...]]:
    made = []
    with ExitStack() as opened:
        for _ in range(3):
            made.append(os.pipe2(os.O_CLOEXEC))
            opened.callback(wire.close_all, made[-1])
        opened.pop_all()
    stdin, stdout, stderr = made
    return (stdin[0], stdout[1], stderr[1]), (stdin[1], stdout[0], stderr[0])
