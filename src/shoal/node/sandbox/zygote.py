"""The zygote: a small Python process that forks shims, so that a new pod costs a fork and not a start of Python.

The agent starts it with the standard library only (no site packages, nothing of the agent's memory) and communicates
with it over one socket. It keeps no state: a shim gets all it needs in its message, and when the agent ends, the zygote
ends too, while the shims stay.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys

from shoal.node.sandbox import cgroups, feature_probe, proctree, shim, syscalls, wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def main(fd: int) -> None:
    syscalls.set_title("shoal-zygote")
    agent = wire.Channel(socket.socket(fileno=fd))
    place, _ = cgroups.find()
    cgroup = None if place is None else place.as_json()
    try:
        agent.send(
            {
                "event": "hello",
                "allowed": {**feature_probe.probe_features(), "cgroup": cgroup, "pids": cgroups.default_pids_limit()},
            }
        )
    except wire.Closed:
        return  # the agent was interrupted while it started, and needs no zygote any more
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no process waits for the shims
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    proctree.boot_id()
    gc.collect()
    gc.disable()
    gc.freeze()  # a collection in a child would copy every page it looks at
    poll = select.poll()
    poll.register(agent.fileno(), select.POLLIN | select.POLLHUP)
    while True:
        poll.poll()
        try:
            messages = agent.receive()
        except wire.Closed:
            return
        for message, fds in messages:
            _fork(agent, message, fds)


def _fork(agent: wire.Channel, message: dict[str, Any], fds: list[int]) -> None:
    if os.fork() > 0:
        for fd in fds:
            os.close(fd)
        return
    try:
        agent.close()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        if message["do"] == "fork_shim":
            shim.main(message["config"], fds)
        else:
            # Only the network process needs asyncio; shims should not carry it.
            from shoal.node.sandbox import network_process

            network_process.main(message["config"], fds)
    except BaseException:
        kind, error, trace = sys.exc_info()
        if kind is not None and error is not None:
            sys.excepthook(kind, error, trace)
        sys.stderr.flush()
    finally:
        os._exit(0)
