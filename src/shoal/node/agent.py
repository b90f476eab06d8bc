"""The node agent: registers a Node, keeps its Lease, and gives every pod bound to it a worker.

It uses the cluster through the port alone, so it serves the embedded cluster and a real one alike. What it did before
it was killed it finds in its folder and in the sandboxes: running pods are adopted, dead ones reported, pods that were
deleted since are torn down. Several agents of one process share a `SharedState`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from shoal.cluster.client import Cluster, ExecRequest, LogOptions, NodeUsage, Streams, WatchEvent
from shoal.cluster.event_recorder import EventRecorder
from shoal.cluster.informer import Change, Informer, strip_managed_fields
from shoal.kube.kinds import POD
from shoal.kube.messages import Message
from shoal.kube.objects import Key, Obj, key_of, uid_of
from shoal.logs import Logger
from shoal.node import container_record_recovery, gpus, volumes
from shoal.node.admission import reject_by_namespace, reject_by_resources
from shoal.node.checkpoint import NodeFolder, PodOutcome, PodRecord, new_record
from shoal.node.cluster_dns import peer
from shoal.node.config import NodeConfig
from shoal.node.events import Events
from shoal.node.heartbeat import Heartbeat
from shoal.node.ipam import NoAddressLeft, next_address, node_range
from shoal.node.node_api import NodeApi
from shoal.node.pod_lifecycle import spec_grace
from shoal.node.pod_worker import TERMINAL, PodWorker
from shoal.node.sandbox.interface import Sandbox, Sandboxes
from shoal.node.shared_state import OWN_LABEL, RecoveredSandboxes, SharedState

log = Logger(__name__)


class Agent:
    """`run` until cancelled; the pods' processes go on. Also offers the node's `NodeServices`.

    `ready` is set once the node is registered and every pod that was bound to it has its worker.
    """

    def __init__(
        self,
        cluster: Cluster,
        sandboxes: Sandboxes,
        config: NodeConfig,
        *,
        host: SharedState | None = None,
        recorder: EventRecorder | None = None,
    ) -> None:
        self.config = config
        self.ready = asyncio.Event()
        self._owns_host = host is None
        self._shared = host or SharedState(cluster, sandboxes)
        self._shared.nodes.add(config.name)
        self._events = Events(recorder or EventRecorder(cluster, "shoal-node", host=config.name))
        self._folder = NodeFolder(config.data, config.name)
        self._pod_network = node_range(config.range_for(sandboxes.network), config.index)
        # On a cluster with kubelets the ranges of nodes are given out by the cluster, and are not ours to name.
        self._heartbeat = Heartbeat(cluster, config, "" if config.kubelet_port else str(self._pod_network))
        field_selector = f"spec.nodeName={config.name}"
        self._pods = Informer(cluster, POD, fields=field_selector, on_change=self._on_pod_change, trim=self._trim)
        self._recovered = RecoveredSandboxes()
        self._last_ip = ""
        self._workers: dict[str, PodWorker] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._node_api = NodeApi(config, self._workers)
        self._accepting = False

    async def run(self) -> None:
        """Register, start a worker per pod, and run until cancelled."""
        self._recovered = await self._shared.adopt(self.config.name)  # 1. sandboxes of an earlier agent
        await self._heartbeat.register()  # 2. the Node and its Lease
        try:
            async with asyncio.TaskGroup() as group:
                if self._owns_host:
                    group.create_task(self._shared.run())
                group.create_task(self._heartbeat.run())
                group.create_task(self._events.run())
                group.create_task(self._pods.run())
                await self._pods.synced.wait()
                await self._accept_all()  # 3. a worker per pod, running pods first
                self.ready.set()
        finally:
            await self._stop_workers()

    async def set_not_ready(self) -> None:
        """Have no more pods placed here: the Node is reported as not ready, until its agent starts again."""
        await self._heartbeat.set_not_ready()

    async def shut_down(self) -> None:
        """Stop the processes of every pod, each with its grace period, and take no more.
        For an orderly end of the node while `run` is still active. The pods themselves stay: the next start decides by
        their restart policies."""
        self._accepting = False
        workers = list(self._workers.values())
        await self._stop_workers()
        async with asyncio.TaskGroup() as group:
            for worker in workers:
                group.create_task(worker.container_manager.shut_down(spec_grace(worker.pod)))

    def find(self, key: Key) -> Obj | None:
        """The pod of that name, where it is bound to this node."""
        return self._pods.objects.get(key)

    # NodeServices

    def logs(self, pod: Obj, options: LogOptions) -> AsyncIterator[bytes]:
        return self._node_api.logs(pod, options)

    async def execute(self, pod: Obj, request: ExecRequest, streams: Streams) -> int:
        return await self._node_api.execute(pod, request, streams)

    async def connect(self, pod: Obj, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await self._node_api.connect(pod, port)

    async def usage(self) -> NodeUsage:
        return await self._node_api.usage()

    # Pods come and go

    def _on_pod_change(self, change: Change) -> None:
        if not self._accepting:
            return  # the first list is taken as a whole, by _accept_all
        if change.old is not None and (change.new is None or uid_of(change.new) != uid_of(change.old)):
            worker = self._workers.get(uid_of(change.old))
            if worker is not None:
                worker.mark_gone()
        if change.new is not None:
            pod = change.new
            worker = self._workers.get(uid_of(pod))
            if worker is not None:
                worker.update(pod)
            else:
                self._start_worker(pod, self._load_record(pod))

    def _trim(self, event: WatchEvent) -> Obj:
        """Drop bookkeeping fields; an unchanged spec, the larger share of a pod, is replaced by the cached one."""
        pod = strip_managed_fields(event)
        known = self._pods.objects.get(key_of(pod))
        if known is not None and known["spec"] == pod["spec"]:
            pod["spec"] = known["spec"]
        return pod

    async def _accept_all(self) -> None:
        """Adopted pods before new ones: what they hold (addresses, devices) is not free."""
        # What a dead shim had on record goes to the agent's own record first; only then may its report be dropped.
        for pod in list(self._pods.objects.values()):
            uid = uid_of(pod)
            if uid in self._recovered.lost and (record := self._load_record(pod)) is not None:
                self._folder.pod(uid).save(record)
        for uid in self._recovered.lost_uids:
            await self._shared.sandboxes.remove(uid)
        loaded = [(pod, self._load_record(pod)) for pod in self._pods.objects.values()]
        self._accepting = True
        for pod, record in sorted(loaded, key=lambda pair: pair[1] is None):
            self._start_worker(pod, record)
        await self._remove_orphans()

    def _load_record(self, pod: Obj) -> PodRecord | None:
        """The record of a pod this node has seen before, brought up to date with what its sandbox saw."""
        uid, now = uid_of(pod), self.config.clock()
        record = self._folder.pod(uid).load()
        kept, lost = self._recovered.kept.get(uid), self._recovered.lost.pop(uid, None)
        if record is None:
            record = self._rebuild_record(pod, kept)
            if record is None:
                return None
        if record.finished:
            return record
        if kept is not None:
            container_record_recovery.recover_from_sandbox(record, kept.processes())
        elif record.sandboxed_at:
            if lost is not None:
                container_record_recovery.recover_from_sandbox(record, lost.processes)
            container_record_recovery.mark_running_lost(record, now, Message("Lost.AgentAway"))
            container_record_recovery.reset_for_new_sandbox(pod, record)
        return record

    def _rebuild_record(self, pod: Obj, kept: Sandbox | None) -> PodRecord | None:
        """A record for a pod that must have been here although its record is gone; None for a new pod."""
        now = self.config.clock()
        status = pod.get("status") or {}
        record = new_record(pod, now)
        if status.get("phase") in TERMINAL:
            record.finished = True
            return record
        if not status.get("startTime") and kept is None:
            return None
        record.ip = kept.spec.ip if kept is not None else status.get("podIP") or ""
        container_record_recovery.recover_from_status(pod, record, now)
        if kept is not None:
            record.containers.clear()
            record.sandboxed_at = now
        return record if record.containers or kept is not None else None

    def _start_worker(self, pod: Obj, record: PodRecord | None) -> None:
        uid = uid_of(pod)
        if record is None:
            record = self._admit(pod)
        if record.outcome is None and not record.finished:  # also of an earlier start, which may have allowed more
            record.outcome = reject_by_namespace(pod, self.config.namespaces)
        folder = self._folder.pod(uid)
        folder.save(record)
        if not record.finished and record.outcome is None and (named := peer(pod, record.ip)) is not None:
            self._shared.hosts_files.add_peer(uid, named)
        sandbox = self._recovered.kept.pop(uid, None)
        worker = PodWorker(pod, record, folder, sandbox, host=self._shared, config=self.config, events=self._events)
        self._workers[uid] = worker
        task = asyncio.create_task(worker.run(), name=f"pod {record.key}")
        self._tasks[uid] = task

        def drop(_: asyncio.Task[None]) -> None:
            self._workers.pop(uid, None)
            self._tasks.pop(uid, None)

        task.add_done_callback(drop)

    # What a pod holds

    def _admit(self, pod: Obj) -> PodRecord:
        """A record for a new pod with an address and devices, or with the outcome that it is rejected."""
        record = new_record(pod, self.config.clock())
        active = [worker for worker in self._workers.values() if not worker.record.finished]
        record.outcome = reject_by_resources(pod, (worker.requests for worker in active), self.config.allocatable)
        if record.outcome is not None:
            return record
        assigned = {index for worker in active for given in worker.record.gpus.values() for index in given}
        # From the records, not from the API: an adopted pod keeps the devices its processes have open.
        devices = gpus.assign(pod, set(self.config.devices or ()) - assigned)
        if devices is None:
            message = Message("Rejected.Devices", {"resource": gpus.RESOURCE})
            record.outcome = PodOutcome("Failed", "UnexpectedAdmissionError", message)
            return record
        record.gpus = devices
        if not pod["spec"].get("hostNetwork"):
            try:
                self._last_ip = next_address(self._pod_network, {worker.record.ip for worker in active}, self._last_ip)
                record.ip = self._last_ip
            except NoAddressLeft as none_left:
                record.outcome = PodOutcome("Failed", "OutOfaddresses", none_left.message)
        return record

    # Leftovers

    async def _remove_orphans(self) -> None:
        """Sandboxes and folders of pods the API does not have, once the API itself confirms that."""
        for uid, sandbox in list(self._recovered.kept.items()):
            namespace, _, name = sandbox.spec.labels.get(OWN_LABEL, "").partition("/")
            if await self._is_unknown(uid, Key(namespace, name)):
                self._recovered.kept.pop(uid, None)
                await sandbox.close()
        for uid, folder in list(self._folder.all()):
            record = folder.load()
            if uid not in self._workers and (record is None or await self._is_unknown(uid, record.key)):
                if record is not None:
                    await self._shared.archive_logs(folder, record)
                folder.remove()
                volumes.remove(uid)
        for folder in self._folder.of_other_nodes(self._shared.nodes):
            if (record := folder.load()) is not None:
                await self._shared.archive_logs(folder, record)
        self._folder.remove_other_nodes(self._shared.nodes)

    async def _is_unknown(self, uid: str, key: Key) -> bool:
        """Whether no pod with this uid belongs here. Queries the API server again, because the list may be old."""
        pod = await self._heartbeat.find_pod(key)
        if uid in self._workers:
            return False
        return pod is None or uid_of(pod) != uid

    async def _stop_workers(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
