"""All sandboxes of one data folder, seen from the agent: `SandboxManager` implements `interface.Sandboxes`.

    sandboxes = await SandboxManager.open(data / "sandboxes")
    kept, lost = await sandboxes.adopt()
    sandbox = await sandboxes.create(SandboxSpec(...))
    started = await sandbox.start(ProcessSpec(...))

A folder per sandbox holds its shim's socket and journal; the folder is made before the shim, and removed when the
sandbox is closed. The zygote and the network process are supervised here: one that dies is replaced.
"""

from __future__ import annotations

import fcntl
import hashlib
import ipaddress
import logging
import os
import shutil
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.request import getproxies_environment

from shoal.kube.messages import Message
from shoal.node.messages import MessageError
from shoal.node.sandbox import shim, shim_journal, wire
from shoal.node.sandbox.egress_outside import host_resolv_conf
from shoal.node.sandbox.external_dns import resolv_conf
from shoal.node.sandbox.interface import Exited, LostSandbox, Network, SandboxSpec, ShimLost
from shoal.node.sandbox.network_client import NetworkClient
from shoal.node.sandbox.shim_client import (
    SandboxFailed,
    ShimClient,
    kill_leftovers,
    remove_cgroups,
    spec_as_json,
    spec_from_json,
    state_of,
    wait_gone,
)
from shoal.node.sandbox.zygote_client import Zygote

GATEWAY = "10.77.0.1"
PREFIX = 16

_log = logging.getLogger(__name__)


class NetworkUnavailable(MessageError):
    """The requested network cannot be had here: `reason` is why, and `advice` what to do about it."""

    def __init__(self, reason: Message, advice: Message) -> None:
        super().__init__(Message("Network.Unavailable", {"reason": reason, "advice": advice}))
        self.reason = reason


class FolderInUse(MessageError):
    """Another agent keeps its sandboxes in this folder."""


class SandboxManager:
    """Implements `interface.Sandboxes`. Made by `open`."""

    def __init__(self, folder: Path, zygote: Zygote, *, network: Network, lock: int, pids_limit: int | None) -> None:
        self._folder = folder
        self.zygote = zygote
        self._network = network
        self._lock = lock
        default_limit: int = zygote.allowed["pids"]
        self._pids_limit = (default_limit if pids_limit is None else pids_limit) or None
        self.cluster = "shoal-" + hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]
        self._sandboxes: dict[str, ShimClient] = {}
        self._refused: frozenset[str] = frozenset()  # what cannot be served, logged once
        self.network_client = NetworkClient(zygote, folder, self._network_config())

    @classmethod
    async def open(
        cls,
        folder: Path,
        *,
        network: Network | None = None,
        pids_limit: int | None = None,
        python: str = sys.executable,
    ) -> SandboxManager:
        """`network` None: isolated where this machine allows it, loopback where not. `pids_limit` is the number of
        processes and threads of a pod; None: a quarter of what the machine can hold, 0: no limit."""
        folder, lock = _lock_folder(folder)
        zygote = Zygote(python, folder)
        manager = None
        try:
            await zygote.start()
            manager = cls(
                folder, zygote, network=choose_network(network, zygote.allowed), lock=lock, pids_limit=pids_limit
            )
            await manager.network_client.find()
            # Pods of an earlier agent live in a network of one kind; new ones join them there.
            found = Network.ISOLATED if manager.network_client.is_isolated else Network.LOOPBACK
            if network is not None and network is not found:
                other_kind = Message("Network.OtherKind", {"network": str(found)})
                raise NetworkUnavailable(other_kind, Message("Advice.StopPods"))
            manager._network = found
            path = folder / "resolv.conf"
            path.write_text(resolv_conf(host_resolv_conf(), GATEWAY))
            path.chmod(0o644)
        except BaseException:
            if manager is not None:
                await manager.network_client.disconnect(wait=False)
            await zygote.stop()
            os.close(lock)
            raise
        return manager

    def _network_config(self) -> dict[str, Any]:
        return {
            "folder": str(self._folder),
            "isolated": self._network is Network.ISOLATED,
            "privilege": self.zygote.allowed["privilege"],
            "gateway": GATEWAY,
            "prefix": PREFIX,
        }

    @property
    def network(self) -> Network:
        return self._network

    @property
    def allowed(self) -> Mapping[str, Any]:
        """What the trial at the start found this machine to allow."""
        return self.zygote.allowed

    def environment(self) -> Mapping[str, str]:
        """Nothing where pods reach the outside by themselves.
        Shoal's proxy where they do not, and where the caller uses a proxy: Shoal's passes on to that one, which may
        listen where no pod can reach it."""
        if self._network is Network.LOOPBACK or (self.network_client.is_open and not getproxies_environment()):
            return {}
        proxy = self.network_client.proxy_url
        inside = ipaddress.ip_network(f"{GATEWAY}/{PREFIX}", strict=False)
        direct = f"localhost,127.0.0.1,::1,.svc,.cluster.local,{inside}"
        data = {"http_proxy": proxy, "https_proxy": proxy, "no_proxy": direct}
        return data | {name.upper(): value for name, value in data.items()}

    # -- sandboxes

    async def create(self, spec: SandboxSpec) -> ShimClient:
        known = self._sandboxes.get(spec.id)
        if known is not None and not known.is_lost:
            return known
        await self.remove(spec.id)  # a shim that died may have left its folder and processes
        folder = self._folder / spec.id
        folder.mkdir(mode=0o700)
        await self.network_client.ready()
        sandbox = await self._fork_shim(spec, folder)
        self._sandboxes[spec.id] = sandbox
        self.network_client.add_pod(*_network_entry(spec))
        return sandbox

    async def _fork_shim(self, spec: SandboxSpec, folder: Path) -> ShimClient:
        config = {
            **self._network_config(),
            "folder": str(folder),
            "spec": spec_as_json(spec),
            "cgroup": self.zygote.allowed["cgroup"],
            "pids": self._pids_limit,
            "cluster": self.cluster,
            "resolv_conf": str(self._folder / "resolv.conf"),
        }
        for attempt in (1, 2):
            ours, theirs = socket.socketpair()
            fds = [theirs.detach(), *(os.dup(fd) for fd in self.network_client.namespaces)]
            sandbox = self._shim_client(ours, folder)
            try:
                await self.zygote.send({"do": "fork_shim", "config": config}, fds)
                await sandbox.handshake()
            except (ShimLost, wire.Closed) as lost:
                if attempt == 2:  # a zygote killed just now took the message with it; twice is no accident
                    shutil.rmtree(folder, ignore_errors=True)
                    raise SandboxFailed(Message("Sandbox.ShimDied")) from lost
            except SandboxFailed:
                sandbox.disconnect()
                shutil.rmtree(folder, ignore_errors=True)
                raise
            else:
                return sandbox
        raise AssertionError("unreachable: the second attempt returns or raises")

    def _shim_client(self, sock: socket.socket, folder: Path) -> ShimClient:
        return ShimClient(sock, folder, on_gone=self._on_shim_gone)

    def _on_shim_gone(self, sandbox: ShimClient) -> None:
        remove_cgroups(self.zygote.allowed["cgroup"], self.cluster, sandbox.id)  # a shim that was killed left them
        for name, known in list(self._sandboxes.items()):
            if known is sandbox:
                del self._sandboxes[name]
                self.network_client.remove_pod(_network_entry(sandbox.spec)[0])

    async def adopt(self) -> tuple[list[ShimClient], list[LostSandbox]]:
        kept: list[ShimClient] = []
        lost: list[LostSandbox] = []
        for folder in sorted(path for path in self._folder.iterdir() if path.is_dir()):
            if folder.name in self._sandboxes:
                kept.append(self._sandboxes[folder.name])
                continue
            sandbox = await self._find_shim(folder)
            if sandbox is not None:
                self._sandboxes[folder.name] = sandbox
                kept.append(sandbox)
            elif (record := shim_journal.read(str(folder))) is not None:
                lost.append(await self._clean_up(record))
            else:
                shutil.rmtree(folder, ignore_errors=True)
        self.network_client.set_pods(dict(_network_entry(sandbox.spec) for sandbox in self._sandboxes.values()))
        return kept, lost

    async def _find_shim(self, folder: Path) -> ShimClient | None:
        try:
            sandbox = self._shim_client(wire.connect(str(folder), shim.SOCKET), folder)
        except OSError:
            return None
        try:
            await sandbox.handshake()
        except ShimLost:
            return None
        return sandbox

    async def _clean_up(self, record: shim_journal.Record) -> LostSandbox:
        await wait_gone(kill_leftovers(record))
        spec = spec_from_json(record.spec)
        remove_cgroups(self.zygote.allowed["cgroup"], self.cluster, spec.id)
        states = {name: state_of(name, data) for name, data in record.processes.items()}
        for name, state in states.items():
            if state.exited is not None:
                continue
            message = Message("Lost.BeforeStart") if state.started is None else Message("Lost.Killed")
            states[name] = replace(state, exited=Exited(name, time.time(), None, None, message=message))
        return LostSandbox(spec, states)

    async def remove(self, sandbox: str) -> None:
        folder = self._folder / sandbox
        record = shim_journal.read(str(folder))
        if record is not None:
            await self._clean_up(record)
        shutil.rmtree(folder, ignore_errors=True)

    # -- services, and leaving

    async def serve(self, services: Mapping[tuple[str, int], tuple[tuple[str, int], ...]]) -> None:
        refused = await self.network_client.serve(services)
        for sentence in refused:
            if sentence not in self._refused:
                _log.warning("service address %s", sentence)
        self._refused = frozenset(refused)

    async def close(self) -> None:
        # Not adopted is not the same as none; but with the folder everything in it was removed.
        is_empty = not self._folder.exists() or not any(path.is_dir() for path in self._folder.iterdir())
        for sandbox in self._sandboxes.values():
            sandbox.disconnect()
        if is_empty:
            # the network process stays for pods; a shim may have died unreported
            self.network_client.set_pods({})
        await self.network_client.disconnect(wait=is_empty)
        await self.zygote.stop()
        os.close(self._lock)


def _network_entry(spec: SandboxSpec) -> tuple[str, str]:
    """How the network process identifies a pod, and where its hosts file lies."""
    return spec.ip or spec.id, str(spec.hosts_file)


def _lock_folder(folder: Path) -> tuple[Path, int]:
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(lock)
        raise FolderInUse(Message("Sandbox.FolderInUse", {"folder": str(folder)})) from error
    return folder, lock


def choose_network(wanted: Network | None, allowed: Mapping[str, Any]) -> Network:
    if wanted is Network.ISOLATED and not allowed["network"]:
        not_allowed = Message("Network.NotAllowed", {"error": allowed["network_detail"]})
        raise NetworkUnavailable(not_allowed, Message("Advice.Loopback"))
    if wanted is not None:
        return wanted
    return Network.ISOLATED if allowed["network"] else Network.LOOPBACK


__all__ = ["FolderInUse", "NetworkUnavailable", "SandboxFailed", "SandboxManager"]
