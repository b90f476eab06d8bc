"""Keeps the hosts files and the table of virtual addresses true while Services come and go.

One `HostsFiles` per process: every agent in it registers the hosts files of its pods. Changes are taken together:
however many Services change in one turn of the loop, each file is written at most once, and only if its text
differs. A file is rewritten in place, because it is what the pod has mounted; a reader at any moment finds
the old text or the new one followed by empty lines, never nothing.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from shoal.cluster.client import Cluster
from shoal.cluster.informer import Change, Informer, strip_managed_fields
from shoal.kube.kinds import ENDPOINT_SLICE, SERVICE
from shoal.kube.objects import Key, Obj, name_of, namespace_of
from shoal.logs import Logger
from shoal.node.cluster_dns import (
    Directory,
    Peer,
    PodHosts,
    Table,
    build_directory,
    hosts_file,
    peer_lines,
    reachable_slice,
    service_lines,
    service_table,
    undiscovered_peers,
)
from shoal.node.config import default_range
from shoal.node.environment import API
from shoal.node.sandbox.interface import Sandboxes

log = Logger(__name__)

SERVE_RETRY_SECONDS = 5.0


def rewrite(path: Path, text: str) -> None:
    """Replace the text of a file that others have open or mounted."""
    data = text.encode()
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        size = os.fstat(fd).st_size
        # In place and padded, then cut: replacing the file would leave the old one mounted in the pod.
        os.pwrite(fd, data.ljust(size, b"\n"), 0)
        os.ftruncate(fd, len(data))
    finally:
        os.close(fd)


@dataclass(slots=True)
class _Registered:
    pod: PodHosts
    path: Path
    text: str


class HostsFiles:
    """Run `run` in a task; `synced` is set once the Services are known. `api` is where the node itself finds the API:
    its Service leads there too, because a server may name itself by an address that is of no use on this machine.
    `local_nodes` are the nodes of this machine, which may become more."""

    def __init__(
        self,
        cluster: Cluster,
        sandboxes: Sandboxes,
        *,
        local_nodes: Collection[str] = (),
        api: tuple[str, int] | None = None,
    ) -> None:
        self._sandboxes = sandboxes
        self._local_nodes = local_nodes
        self._api = api
        self._services = Informer(cluster, SERVICE, on_change=self._on_change, trim=strip_managed_fields)
        self._slices = Informer(cluster, ENDPOINT_SLICE, on_change=self._on_change, trim=strip_managed_fields)
        self._files: dict[str, _Registered] = {}
        self._peers: dict[str, Peer] = {}
        self._dirty = asyncio.Event()
        self._lines: dict[str, str] = {}
        self._directory: Directory | None = None
        self._table: Table | None = None

    def services(self, namespace: str) -> tuple[Obj, ...]:
        """Those of the namespace, and that of the API itself, which every pod gets."""
        found = {name_of(s): s for s in self._services.objects.values() if namespace_of(s) == namespace}
        if (api := self._services.objects.get(Key(*API))) is not None:
            found.setdefault(name_of(api), api)
        return tuple(found.values())

    async def synced(self) -> None:
        await self._services.synced.wait()
        await self._slices.synced.wait()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._services.run())
            group.create_task(self._slices.run())
            await self.synced()
            self._dirty.set()
            while True:
                await self._dirty.wait()
                self._dirty.clear()
                self._sync_hosts_files()
                await self._sync_services()

    def register(self, uid: str, pod: PodHosts, path: Path) -> None:
        """Write the pod's hosts file now and keep it true until `remove`."""
        text = hosts_file(pod, self._lines_for(pod.namespace))
        path.parent.mkdir(parents=True, exist_ok=True)
        rewrite(path, text)
        self._files[uid] = _Registered(pod, path, text)

    def add_peer(self, uid: str, pod: Peer) -> None:
        """Add a pod that is about to run to the others' names, until `remove`."""
        self._peers[uid] = pod
        self._lines.clear()
        self._dirty.set()

    def remove(self, uid: str) -> None:
        self._files.pop(uid, None)
        if self._peers.pop(uid, None) is not None:
            self._lines.clear()
            self._dirty.set()

    def _on_change(self, _: Change) -> None:
        self._directory = None
        self._lines.clear()
        self._dirty.set()

    def _current_directory(self) -> Directory:
        if self._directory is None:
            own = default_range(self._sandboxes.network)
            endpoint_slices = [
                reachable_slice(endpoint_slice, self._local_nodes, own)
                for endpoint_slice in self._slices.objects.values()
            ]
            self._directory = build_directory(self._services.objects.values(), endpoint_slices)
            self._peers = undiscovered_peers(self._directory, self._peers)
        return self._directory

    def _lines_for(self, namespace: str) -> str:
        if namespace not in self._lines:
            directory = self._current_directory()
            self._lines[namespace] = service_lines(directory, namespace) + peer_lines(
                directory, self._peers.values(), namespace
            )
        return self._lines[namespace]

    def _sync_hosts_files(self) -> None:
        for registered in list(self._files.values()):
            text = hosts_file(registered.pod, self._lines_for(registered.pod.namespace))
            if text == registered.text:
                continue
            try:
                rewrite(registered.path, text)
                registered.text = text
            except OSError as refused:
                log.warning("hosts file not written", path=str(registered.path), error=str(refused))

    async def _sync_services(self) -> None:
        table = service_table(self._current_directory())
        service = self._services.objects.get(Key(*API))
        if self._api is not None and service is not None:
            for port in service["spec"].get("ports") or ():
                table[(service["spec"]["clusterIP"], int(port["port"]))] = (self._api,)
        if table == self._table:
            return
        try:
            await self._sandboxes.serve(table)
            self._table = table
        except Exception:
            # A proxy that fails must not stop names and pods; the next change, or a timer, tries again.
            log.exception("service addresses not served")
            asyncio.get_running_loop().call_later(SERVE_RETRY_SECONDS, self._dirty.set)
