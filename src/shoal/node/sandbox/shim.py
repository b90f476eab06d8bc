"""A keeper: the process that holds one pod. It outlives agent and zygote, and nothing of the pod outlives it.

It is a loop over descriptors: the socket where agents find it, the conversations with them, the pipes of its
processes, and the news that children have ended. It decides nothing: the agent says what to start and when to
stop. It is the subreaper of all it starts, so no descendant can slip away to init, and its direct children die
with it. All code it needs is imported before it begins, so that an upgrade of the package below a running pod
does it no harm.
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
    messages,
    proctree,
    shim_journal,
    syscalls,
)
from shoal.node.sandbox.event_loop import WRITABLE, Loop
from shoal.node.sandbox.namespaces import Dwelling
from shoal.node.sandbox.process import Charge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SOCKET = "socket"
SCRATCH = "root"


def main(config: dict[str, Any], fds: list[int]) -> None:
    """Become the keeper of a sandbox. `fds`: the conversation with the agent, then the fabric's namespaces."""
    agent = messages.Channel(socket.socket(fileno=fds[0]))
    try:
        _settle(config["folder"])
        dwelling = Dwelling(config, fds[1:])
        dwelling.enter()
        keeper = Keeper(config, dwelling)
    except OSError as error:
        agent.send({"event": "failed", "message": _words(error)})
        return
    # An agent that died while this keeper came up may have been followed by one that looked for keepers before
    # this one could be seen. From here on it can be seen; if nobody is there any more, it was never wanted.
    try:
        agent.receive()
    except messages.Closed:
        keeper.vanish()
        return
    keeper.converse(agent)
    gc.enable()
    keeper.run()


def _settle(folder: str) -> None:
    os.setsid()
    syscalls.set_title("shoal-keeper")
    syscalls.become_subreaper()
    child_exec.note_keeper()
    nothing = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    complaints = os.open(f"{folder}/keeper.err", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    for target, fd in ((0, nothing), (1, nothing), (2, complaints)):
        os.dup2(fd, target)
    os.close(nothing)
    os.close(complaints)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


class Keeper:
    """The pod's processes and those who ask about them."""

    def __init__(self, config: dict[str, Any], dwelling: Dwelling) -> None:
        self._config = config
        self._folder: str = config["folder"]
        self._dwelling = dwelling
        self._loop = Loop()
        self._charges: dict[str, Charge] = {}
        self._waiting: dict[str, list[tuple[messages.Channel, int]]] = {}  # process -> who asked to start it
        self._channels: list[messages.Channel] = []
        self._executions = exec_sessions.Executions()
        self._is_closing = False
        self._told_to_close: list[tuple[messages.Channel, int]] = []
        self._journal = self._begin_record()
        self._loop.on_child(self._children_ended)
        self._server = messages.listen(self._folder, SOCKET)
        self._loop.watch(self._server.fileno(), lambda _: self._accept())
        self._deletions = syscalls.watch_deletions(self._folder)
        self._loop.watch(self._deletions, lambda _: self._hear_deletions())

    def _begin_record(self) -> shim_journal.Journal:
        name = os.open(f"{self._folder}/hostname", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        os.write(name, self._config["spec"]["hostname"].encode() + b"\n")
        os.close(name)
        os.makedirs(f"{self._folder}/{SCRATCH}", exist_ok=True)
        record = shim_journal.Journal(self._folder)
        pid = os.getpid()
        start = proctree.start_time(pid)
        record.note("sandbox", spec=self._config["spec"], keeper=pid, keeper_start=start, boot=proctree.boot_id())
        return record

    def run(self) -> None:
        self._loop.run()

    def vanish(self) -> None:
        """Nothing was started and nobody asked: leave no trace."""
        self._dwelling.leave()
        for name in (SOCKET, shim_journal.NAME):
            os.unlink(f"{self._folder}/{name}")

    # -- conversations

    def _accept(self) -> None:
        sock, _ = self._server.accept()
        self.converse(messages.Channel(sock))

    def converse(self, channel: messages.Channel) -> None:
        self._channels.append(channel)
        self._loop.watch(channel.fileno(), lambda events: self._hear(channel, events))
        processes = {charge.id: _state(charge) for charge in self._charges.values()}
        hello = {
            "event": "hello",
            "spec": self._config["spec"],
            "isolated": self._config["isolated"],
            "keeper": os.getpid(),
            "processes": processes,
        }
        self._say(channel, hello)

    def _hear(self, channel: messages.Channel, events: int) -> None:
        try:
            if events & WRITABLE:
                channel.flush()
                if not channel.waiting_to_send:
                    self._loop.watch(channel.fileno(), lambda events: self._hear(channel, events))
            for message, _ in channel.receive():
                self._answer(channel, message)
        except messages.Closed:
            self._hang_up(channel)

    def _say(self, channel: messages.Channel, message: dict[str, Any], fds: tuple[int, ...] = ()) -> None:
        if channel not in self._channels:
            return
        number = channel.fileno()
        try:
            channel.send(message, fds)
        except messages.Closed:
            self._hang_up(channel, number)
            return
        if channel.waiting_to_send:
            self._loop.watch(number, lambda events: self._hear(channel, events), also_writable=True)

    def _hang_up(self, channel: messages.Channel, number: int | None = None) -> None:
        if channel in self._channels:
            self._channels.remove(channel)
            self._loop.forget(channel.fileno() if number is None else number)
            channel.close()

    def _answer(self, channel: messages.Channel, message: dict[str, Any]) -> None:
        asked = message["n"]
        if message["do"] == "start":
            self._start(channel, asked, message["process"])
        elif message["do"] == "signal":
            self._signal(message["process"], message["signal"])
            self._say(channel, {"n": asked})
        elif message["do"] == "execute":
            self._execute(channel, asked, message)
        elif message["do"] == "kill_execution":
            self._executions.kill(message["execution"])
            self._say(channel, {"n": asked})
        elif message["do"] == "socket":
            made = socket.socket(message["family"], socket.SOCK_STREAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
            self._say(channel, {"n": asked}, (made.detach(),))
        elif message["do"] == "namespaces":
            self._say(channel, {"n": asked}, tuple(os.dup(fd) for fd in self._dwelling.fabric))
        elif message["do"] == "close":
            self._close(channel, asked)

    # -- processes

    def _start(self, channel: messages.Channel, asked: int, process: dict[str, Any]) -> None:
        known = self._charges.get(process["id"])
        if known is not None and (known.started or known.exited):
            self._say(channel, {"n": asked, **_state(known)})
            return
        self._waiting.setdefault(process["id"], []).append((channel, asked))
        if known is not None:
            return
        charge = Charge(process, sandbox=self._config["spec"]["id"], journal=self._journal, loop=self._loop)
        charge.tell = self._tell
        self._charges[charge.id] = charge
        charge.start(self._dwelling, scratch=f"{self._folder}/{SCRATCH}", group=self._group(process))

    def _place(self) -> cgroups.Place | None:
        place = self._config["cgroup"]
        return None if place is None else cgroups.Place(**place)

    def _group(self, process: dict[str, Any]) -> cgroups.Group | None:
        if (place := self._place()) is None:
            return None
        return cgroups.Group(
            place,
            self._config["cluster"],
            self._config["spec"]["id"],
            process["id"],
            cgroups.Limits(
                memory_bytes=process["memory_bytes"], cpu_milli=process["cpu_milli"], pids=self._config["pids"]
            ),
        )

    def _tell(self, charge: Charge) -> None:
        """A fact about a process is on record: tell those who listen, answer those who asked."""
        state = {"event": "state", "process": charge.id, **_state(charge)}
        for channel in list(self._channels):
            self._say(channel, state)
        for channel, asked in self._waiting.pop(charge.id, []):
            self._say(channel, {"n": asked, **_state(charge)})

    def _signal(self, process: str, number: int) -> None:
        charge = self._charges.get(process)
        if charge is None or not charge.pid or charge.status is not None:
            return
        if number == signal.SIGKILL:
            charge.was_killed_here = True
            charge.kill_all(self._orphans_of(charge))
            return
        try:
            os.killpg(charge.pid, number)
        except ProcessLookupError:
            return  # between fork and its own session there is no group yet, and nothing to stop either

    def _execute(self, channel: messages.Channel, asked: int, message: dict[str, Any]) -> None:
        charge = self._charges.get(message["process"])
        try:
            if charge is None or charge.started is None or charge.status is not None:
                raise ProcessLookupError
            number, pid, fds = self._executions.begin(charge, message)
        except ProcessLookupError:
            self._say(channel, {"n": asked, "error": f"{message['process']} is not running"})
            return
        except OSError as error:
            refused = f"no command can run beside {message['process']}: {_words(error)}"
            self._say(channel, {"n": asked, "error": refused, "is_running": True})
            return
        charge.executions.add(pid)
        self._say(channel, {"n": asked, "execution": number}, fds)

    # -- ends

    def _children_ended(self) -> None:
        by_pid = {charge.pid: charge for charge in self._charges.values() if charge.status is None}
        for pid, status in _reap():
            if pid in by_pid:
                by_pid[pid].mark_ended(status)
            elif (number := self._executions.mark_ended(pid)) is not None:
                for charge in self._charges.values():
                    charge.executions.discard(pid)
                code = os.waitstatus_to_exitcode(status)
                ended = {"event": "executed", "execution": number, "code": code if code >= 0 else 128 - code}
                for channel in list(self._channels):
                    self._say(channel, ended)
        self._sweep()

    def _sweep(self) -> None:
        """Finish what has ended and left nothing; kill again what is left and look when the next child ends."""
        for charge in self._charges.values():
            if charge.exited is None and charge.status is not None and charge.kill_all(self._orphans_of(charge)):
                charge.finish()
        if self._is_closing:
            self._close_if_empty()

    def _orphans_of(self, charge: Charge) -> list[int]:
        """Descendants that came to the keeper when their parent died, as far as they are this process's.
        Those nobody claims go with the last process."""
        others = [other for other in self._charges.values() if other is not charge and other.exited is None]
        mine = {other.pid for other in self._charges.values()} | self._executions.pids()
        found = []
        for pid in proctree.children(os.getpid()):
            if pid in mine or (seen := proctree.stat(pid)) is None:
                continue
            if charge.owns(seen, pid) or not others:
                found.append(pid)
        return found

    def _hear_deletions(self) -> None:
        """A data folder that is deleted takes its pods along: no agent could ever find them again."""
        if shim_journal.NAME in syscalls.deleted(self._deletions):
            self._begin_closing()

    def _close(self, channel: messages.Channel, asked: int) -> None:
        self._told_to_close.append((channel, asked))
        self._begin_closing()

    def _begin_closing(self) -> None:
        self._is_closing = True
        for charge in self._charges.values():
            if charge.exited is None:
                charge.was_killed_here = True
                charge.kill_all(self._orphans_of(charge))
        self._close_if_empty()

    def _close_if_empty(self) -> None:
        if any(charge.exited is None for charge in self._charges.values()):
            return
        left = [
            pid for pid in proctree.descendants([os.getpid()])[1:] if (seen := proctree.stat(pid)) and seen.is_alive
        ]
        for pid in left:
            proctree.kill(pid)
        if left:
            return
        _reap()  # what was killed just now is gone altogether when the end is told
        self._dwelling.leave()
        if (place := self._place()) is not None:
            cgroups.remove_pod(place, self._config["cluster"], self._config["spec"]["id"])
        self._journal.note_if_possible("closed", process="", at=time.time())
        for channel, asked in self._told_to_close:
            self._say(channel, {"n": asked})
        self._loop.is_running = False


def _state(charge: Charge) -> dict[str, Any]:
    return {"started": charge.started, "exited": charge.exited}


def _words(error: OSError) -> str:
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
