"""A shim: the process that holds one pod. It outlives agent and zygote, and nothing of the pod outlives it.

It is a loop over descriptors: the socket where agents find it, the connections of agents, the pipes of its processes,
and the notifications that children have ended. It decides nothing: the agent requests what to start and when to stop.
It is the subreaper of all it starts, so no descendant can slip away to init, and its direct children die with it. All
code it needs is imported before it begins, so that an upgrade of the package below a running pod does it no harm.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import time

from shoal.node.sandbox import (
    cgroups,
    child_exec,
    exec_sessions,
    proctree,
    shim_journal,
    syscalls,
    wire,
)
from shoal.node.sandbox.event_loop import WRITABLE, EventLoop
from shoal.node.sandbox.namespaces import PodNamespaces
from shoal.node.sandbox.process import Process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SOCKET = "socket"
SCRATCH = "root"


def main(config: dict[str, Any], fds: list[int]) -> None:
    """Become the shim of a sandbox. `fds`: the channel to the agent, then the network process's namespaces."""
    agent = wire.Channel(socket.socket(fileno=fds[0]))
    try:
        _daemonize(config["folder"])
        namespaces = PodNamespaces(config, fds[1:])
        namespaces.enter()
        shim = Shim(config, namespaces)
    except OSError as error:
        agent.send({"event": "failed", "message": _describe_error(error)})
        return
    # An agent that died while this shim started may have been followed by one that looked for shims before
    # this one was visible. From here on it is visible; if there is no agent any more, it was never wanted.
    try:
        agent.receive()
    except wire.Closed:
        shim.abandon()
        return
    shim.add_channel(agent)
    gc.enable()
    shim.run()


def _daemonize(folder: str) -> None:
    os.setsid()
    syscalls.set_title("shoal-shim")
    syscalls.set_child_subreaper()
    child_exec.note_shim()
    devnull = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    error_log = os.open(f"{folder}/keeper.err", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    for target, fd in ((0, devnull), (1, devnull), (2, error_log)):
        os.dup2(fd, target)
    os.close(devnull)
    os.close(error_log)
    # Ctrl-C and a closing terminal reach every process of a session; pods end when the agent says so.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


class Shim:
    """The pod's processes and the agents that query them."""

    def __init__(self, config: dict[str, Any], namespaces: PodNamespaces) -> None:
        self._config = config
        self._folder: str = config["folder"]
        self._namespaces = namespaces
        self._loop = EventLoop()
        self._processes: dict[str, Process] = {}
        self._start_waiters: dict[str, list[tuple[wire.Channel, int]]] = {}  # process -> who requested its start
        self._channels: list[wire.Channel] = []
        self._executions = exec_sessions.ExecSessions()
        self._is_closing = False
        self._close_waiters: list[tuple[wire.Channel, int]] = []
        self._journal = self._open_journal()
        self._loop.on_child(self._on_children_exited)
        self._server = wire.listen(self._folder, SOCKET)
        self._loop.watch(self._server.fileno(), lambda _: self.add_channel(wire.Channel(self._server.accept()[0])))
        self._deletions = syscalls.watch_deletions(self._folder)

        def on_deletion(_: int) -> None:
            # A data folder that is deleted takes its pods along: no agent could ever find them again.
            if shim_journal.NAME in syscalls.read_deletions(self._deletions):
                self._begin_closing()

        self._loop.watch(self._deletions, on_deletion)

    def _open_journal(self) -> shim_journal.ShimJournal:
        name = os.open(f"{self._folder}/hostname", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        os.write(name, self._config["spec"]["hostname"].encode() + b"\n")
        os.close(name)
        os.makedirs(f"{self._folder}/{SCRATCH}", exist_ok=True)
        record = shim_journal.ShimJournal(self._folder)
        pid = os.getpid()
        start = proctree.start_time(pid)
        record.append("sandbox", spec=self._config["spec"], keeper=pid, keeper_start=start, boot=proctree.boot_id())
        return record

    def run(self) -> None:
        self._loop.run()

    def abandon(self) -> None:
        """Nothing was started or requested: leave no trace."""
        self._namespaces.remove_veth()
        for name in (SOCKET, shim_journal.NAME):
            os.unlink(f"{self._folder}/{name}")

    # -- agents

    def add_channel(self, channel: wire.Channel) -> None:
        self._channels.append(channel)
        self._loop.watch(channel.fileno(), lambda events: self._on_channel_event(channel, events))
        processes = {proc.id: _state(proc) for proc in self._processes.values()}
        hello = {
            "event": "hello",
            "spec": self._config["spec"],
            "isolated": self._config["isolated"],
            "keeper": os.getpid(),
            "processes": processes,
        }
        self._send(channel, hello)

    def _on_channel_event(self, channel: wire.Channel, events: int) -> None:
        try:
            if events & WRITABLE:
                channel.flush()
                if not channel.waiting_to_send:
                    self._loop.watch(channel.fileno(), lambda events: self._on_channel_event(channel, events))
            for message, _ in channel.receive():
                self._handle(channel, message)
        except wire.Closed:
            self._drop_channel(channel)

    def _send(self, channel: wire.Channel, message: dict[str, Any], fds: tuple[int, ...] = ()) -> None:
        if channel not in self._channels:
            return
        number = channel.fileno()
        try:
            channel.send(message, fds)
        except wire.Closed:
            self._drop_channel(channel, number)
            return
        if channel.waiting_to_send:
            self._loop.watch(number, lambda events: self._on_channel_event(channel, events), also_writable=True)

    def _drop_channel(self, channel: wire.Channel, number: int | None = None) -> None:
        if channel in self._channels:
            self._channels.remove(channel)
            self._loop.unwatch(channel.fileno() if number is None else number)
            channel.close()

    def _handle(self, channel: wire.Channel, message: dict[str, Any]) -> None:
        request_id = message["n"]
        if message["do"] == "start":
            self._start(channel, request_id, message["process"])
        elif message["do"] == "signal":
            self._signal(message["process"], message["signal"])
            self._send(channel, {"n": request_id})
        elif message["do"] == "execute":
            self._execute(channel, request_id, message)
        elif message["do"] == "kill_execution":
            self._executions.kill(message["execution"])
            self._send(channel, {"n": request_id})
        elif message["do"] == "socket":
            sock = socket.socket(message["family"], socket.SOCK_STREAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
            self._send(channel, {"n": request_id}, (sock.detach(),))
        elif message["do"] == "namespaces":
            self._send(channel, {"n": request_id}, tuple(os.dup(fd) for fd in self._namespaces.network_fds))
        elif message["do"] == "close":
            self._close_waiters.append((channel, request_id))
            self._begin_closing()

    # -- processes

    def _start(self, channel: wire.Channel, request_id: int, process: dict[str, Any]) -> None:
        known = self._processes.get(process["id"])
        if known is not None and (known.started or known.exited):
            self._send(channel, {"n": request_id, **_state(known)})
            return
        self._start_waiters.setdefault(process["id"], []).append((channel, request_id))
        if known is not None:
            return
        proc = Process(process, sandbox=self._config["spec"]["id"], journal=self._journal, loop=self._loop)
        proc.on_state = self._broadcast_state
        self._processes[proc.id] = proc
        group = None
        if (cgroup_root := self._cgroup_root()) is not None:
            group = cgroups.Cgroup(
                cgroup_root,
                self._config["cluster"],
                self._config["spec"]["id"],
                process["id"],
                cgroups.Limits(
                    memory_bytes=process["memory_bytes"], cpu_milli=process["cpu_milli"], pids=self._config["pids"]
                ),
            )
        proc.start(self._namespaces, scratch=f"{self._folder}/{SCRATCH}", group=group)

    def _cgroup_root(self) -> cgroups.CgroupRoot | None:
        cgroup_root = self._config["cgroup"]
        return None if cgroup_root is None else cgroups.CgroupRoot(**cgroup_root)

    def _broadcast_state(self, proc: Process) -> None:
        """A fact about a process is on record: send it to all agents, and answer pending requests."""
        state = {"event": "state", "process": proc.id, **_state(proc)}
        for channel in list(self._channels):
            self._send(channel, state)
        for channel, request_id in self._start_waiters.pop(proc.id, []):
            self._send(channel, {"n": request_id, **_state(proc)})

    def _signal(self, process: str, number: int) -> None:
        proc = self._processes.get(process)
        if proc is None or not proc.pid or proc.status is not None:
            return
        if number == signal.SIGKILL:
            proc.killed_by_shim = True
            proc.kill_all(self._orphans_of(proc))
            return
        try:
            os.killpg(proc.pid, number)
        except ProcessLookupError:
            return  # between fork and its own session there is no group yet, and nothing to stop either

    def _execute(self, channel: wire.Channel, request_id: int, message: dict[str, Any]) -> None:
        proc = self._processes.get(message["process"])
        try:
            if proc is None or proc.started is None or proc.status is not None:
                raise ProcessLookupError
            number, pid, fds = self._executions.begin(proc, message)
        except ProcessLookupError:
            self._send(channel, {"n": request_id, "error": f"{message['process']} is not running"})
            return
        except OSError as error:
            refused = f"no command can run beside {message['process']}: {_describe_error(error)}"
            self._send(channel, {"n": request_id, "error": refused, "is_running": True})
            return
        proc.executions.add(pid)
        self._send(channel, {"n": request_id, "execution": number}, fds)

    # -- ends

    def _on_children_exited(self) -> None:
        by_pid = {proc.pid: proc for proc in self._processes.values() if proc.status is None}
        for pid, status in _reap():
            if pid in by_pid:
                by_pid[pid].mark_ended(status)
            elif (number := self._executions.mark_ended(pid)) is not None:
                for proc in self._processes.values():
                    proc.executions.discard(pid)
                code = os.waitstatus_to_exitcode(status)
                ended = {"event": "executed", "execution": number, "code": code if code >= 0 else 128 - code}
                for channel in list(self._channels):
                    self._send(channel, ended)
        # Finish what has ended and left nothing; kill again what is left and look when the next child ends.
        for proc in self._processes.values():
            if proc.exited is None and proc.status is not None and proc.kill_all(self._orphans_of(proc)):
                proc.finish()
        if self._is_closing:
            self._close_if_empty()

    def _orphans_of(self, proc: Process) -> list[int]:
        """Descendants reparented to the shim when their parent died, as far as they are this process's.
        Unclaimed ones end with the last process."""
        others = [other for other in self._processes.values() if other is not proc and other.exited is None]
        mine = {other.pid for other in self._processes.values()} | self._executions.pids()
        found = []
        for pid in proctree.children(os.getpid()):
            if pid in mine or (seen := proctree.stat(pid)) is None:
                continue
            if proc.owns(seen, pid) or not others:
                found.append(pid)
        return found

    def _begin_closing(self) -> None:
        self._is_closing = True
        for proc in self._processes.values():
            if proc.exited is None:
                proc.killed_by_shim = True
                proc.kill_all(self._orphans_of(proc))
        self._close_if_empty()

    def _close_if_empty(self) -> None:
        if any(proc.exited is None for proc in self._processes.values()):
            return
        survivors = [
            pid for pid in proctree.descendants([os.getpid()])[1:] if (seen := proctree.stat(pid)) and seen.is_alive
        ]
        for pid in survivors:
            proctree.kill(pid)
        if survivors:
            return
        _reap()  # what was killed just now is gone altogether at the reported end
        self._namespaces.remove_veth()
        if (cgroup_root := self._cgroup_root()) is not None:
            cgroups.remove_pod(cgroup_root, self._config["cluster"], self._config["spec"]["id"])
        self._journal.append_if_possible("closed", process="", at=time.time())
        for channel, request_id in self._close_waiters:
            self._send(channel, {"n": request_id})
        self._loop.is_running = False


def _state(proc: Process) -> dict[str, Any]:
    return {"started": proc.started, "exited": proc.exited}


def _describe_error(error: OSError) -> str:
    return f"{error.strerror} ({error.filename})" if error.filename else str(error.strerror)


def _reap() -> list[tuple[int, int]]:
    ended: list[tuple[int, int]] = []
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended.append((pid, status))
