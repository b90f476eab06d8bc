"""The cluster's network: one namespace with a bridge that all pods' veth pairs end at, and its servers.

The network process runs in that namespace (on the machine's own network in loopback mode). It answers at the
virtual addresses of Services and passes connections on to the pods behind them, and at the bridge's address it
is the proxy to the outside (through the egress process). It ends when no agent is connected and no pod is left; if it
is killed, the agent starts another in the same namespace. Each cluster has its own, so all can use the same
addresses side by side.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from contextlib import suppress

from shoal.node.sandbox import (
    egress_outside,
    external_dns,
    feature_probe,
    netfilter,
    rtnetlink,
    syscalls,
    wire,
)
from shoal.node.sandbox.connection_limits import (
    CONNECTIONS_PER_POD,
    ConnectionLimits,
    max_connections,
    raise_descriptor_limit,
)
from shoal.node.sandbox.egress_inside import PROXY_PORT, REDIRECT_PORT, EgressProxy
from shoal.node.sandbox.fault_log import FaultLog
from shoal.node.sandbox.namespaces import BRIDGE
from shoal.node.sandbox.relay import CHUNK
from shoal.node.sandbox.rpc import RpcConnection
from shoal.node.sandbox.service_proxy import ServiceProxy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SOCKET = "fabric"
LOG = "fabric.log"


def main(config: dict[str, Any], fds: list[int]) -> None:
    """Become the network process. `fds`: the channel to the agent, then the namespaces of the process before it."""
    agent = wire.Channel(socket.socket(fileno=fds[0]))
    try:
        os.setsid()
        syscalls.set_title("shoal-network")
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        devnull = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        log_flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        error_log = os.open(f"{config['folder']}/fabric.err", log_flags, 0o600)
        for target, fd in ((0, devnull), (1, devnull), (2, error_log)):
            os.dup2(fd, target)
        raise_descriptor_limit()
        outside = (
            egress_outside.start(os.getpid(), folder=config["folder"], closing=fds) if config["isolated"] else None
        )
        namespaces = _enter_namespaces(config, fds[1:])
        bridge = _create_bridge(config) if config["isolated"] else None
    except OSError as error:
        with suppress(wire.Closed):  # the agent no longer waits
            agent.send({"event": "failed", "message": f"{error.filename}: {error.strerror}"})
        return
    asyncio.run(PodNetwork(config, bridge, namespaces).run(agent, outside))


def _enter_namespaces(config: dict[str, Any], existing: list[int]) -> list[int]:
    """Enter the network process's namespace; returns its descriptors (network, then user) for the shims."""
    if not config["isolated"]:
        return []
    is_user = config["privilege"] == feature_probe.USER
    if existing:
        if is_user:
            syscalls.setns(existing[1], syscalls.NEW_USER)
            syscalls.set_dumpable()
        syscalls.setns(existing[0], syscalls.NEW_NET)
        return existing
    if is_user:
        syscalls.enter_own_user_namespace()
    syscalls.unshare(syscalls.NEW_NET)
    return [syscalls.open_namespace(name) for name in (("net", "user") if is_user else ("net",))]


def _create_bridge(config: dict[str, Any]) -> int:
    net = rtnetlink.Netlink()
    try:
        return net.index_of(BRIDGE)
    except OSError:
        net.set_up(1)
        bridge = net.add_bridge(BRIDGE, hardware=rtnetlink.hardware_address(config["gateway"]))
        net.add_address(bridge, config["gateway"], config["prefix"])
        net.forward(bridge)
        net.add_prohibited_default()
        return bridge
    finally:
        net.close()


class PodNetwork:
    """The connected agents, and what they set: the table of services, the pods and their hosts files."""

    def __init__(self, config: dict[str, Any], bridge: int | None, namespaces: list[int]) -> None:
        self._config = config
        self._bridge = bridge
        self._namespaces = namespaces
        self._agents: set[RpcConnection] = set()
        self._pods: dict[str, str] = {}  # address -> hosts file
        self._is_open = bool(config["isolated"])  # whether any TCP connection finds its way out
        self._done = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, agent: wire.Channel, outside: socket.socket | None) -> None:
        faults = FaultLog(f"{self._config['folder']}/{LOG}")
        faults.attach(asyncio.get_running_loop())
        # On the machine's own network all pods connect from one address.
        per_pod = CONNECTIONS_PER_POD if self._config["isolated"] else None
        self._limits = ConnectionLimits(faults, total=max_connections(), per_source=per_pod)
        self._egress = EgressProxy(self._config, outside, self._pods, services=lambda: self._services, faults=faults)
        self._services = ServiceProxy(self._bridge, self._egress.dial, self._limits)
        server = wire.listen(self._config["folder"], SOCKET)
        asyncio.get_running_loop().add_reader(
            server.fileno(), lambda: self._add_agent(wire.Channel(server.accept()[0]))
        )
        if self._config["isolated"]:
            await self._start_egress()
        self._add_agent(agent)
        deletions = syscalls.watch_deletions(self._config["folder"])

        def on_deletion() -> None:
            if SOCKET in syscalls.read_deletions(deletions):
                self._done.set()  # a network process that cannot be found any more is of no use

        asyncio.get_running_loop().add_reader(deletions, on_deletion)
        await self._done.wait()
        with suppress(FileNotFoundError):
            os.unlink(f"{self._config['folder']}/{SOCKET}")

    async def _start_egress(self) -> None:
        gateway = self._config["gateway"]
        limited = self._limits.limited
        await asyncio.start_server(limited(self._egress.serve), gateway, PROXY_PORT, limit=1 << 16, backlog=512)
        await asyncio.start_server(
            limited(self._egress.forward_redirected), gateway, REDIRECT_PORT, limit=CHUNK, backlog=512
        )
        await asyncio.start_server(limited(self._egress.forward_dns_tcp), gateway, external_dns.PORT)
        names = external_dns.DnsForwarder(self._egress.query_dns, self._limits)
        await asyncio.get_running_loop().create_datagram_endpoint(lambda: names, (gateway, external_dns.PORT))
        try:
            netfilter.redirect_outgoing_tcp(gateway, self._config["prefix"], REDIRECT_PORT)
        except OSError:
            self._is_open = False  # this kernel cannot; the proxy is there

    def _add_agent(self, channel: wire.Channel) -> None:
        def on_event(message: dict[str, Any], _: list[int]) -> None:
            task = asyncio.create_task(self._handle(rpc, message))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        def disconnect() -> None:
            self._agents.discard(rpc)
            self._exit_if_unused()

        rpc = RpcConnection(channel, on_message=on_event, on_closed=disconnect)
        self._agents.add(rpc)
        with suppress(wire.Closed):  # its end is reported soon
            rpc.send(
                {
                    "event": "hello",
                    "pid": os.getpid(),
                    "isolated": self._config["isolated"],
                    "is_open": self._is_open,
                },
                [os.dup(fd) for fd in self._namespaces],
            )

    async def _handle(self, agent: RpcConnection, message: dict[str, Any]) -> None:
        refused: list[str] = []
        if message["do"] == "serve":
            table = {(host, port): [tuple(end) for end in ends] for host, port, ends in message["table"]}
            refused = await self._services.replace(table)
        elif message["do"] == "ping":
            with suppress(wire.Closed):  # without egress this process ends, and the agent starts another
                await self._egress.ping()
        elif message["do"] == "pods":
            self._pods.clear()
            self._pods.update(message["pods"])
        elif message["do"] == "pod" and message["hosts_file"] is not None:
            self._pods[message["pod"]] = message["hosts_file"]
        elif message["do"] == "pod":
            self._pods.pop(message["pod"], None)
        if "n" in message:
            with suppress(wire.Closed):  # a disconnected agent needs no response
                agent.send({"n": message["n"], "refused": refused})
        self._exit_if_unused()

    def _exit_if_unused(self) -> None:
        if not self._agents and not self._pods:
            self._done.set()
