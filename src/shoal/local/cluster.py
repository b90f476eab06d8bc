"""A whole cluster in this process: the store, the API on top, the loops beside, the nodes below.

`host` runs a cluster from opening its folder to leaving it. It may be killed anywhere: pods live in sandboxes of their
own, the store commits before it answers, and the next start finds both.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from shoal.apiserver import kubeconfig_file
from shoal.apiserver.app import build_application
from shoal.apiserver.server import Server, ServerListenError
from shoal.apiserver.serving_certificate import Certificate, ensure
from shoal.cluster.apimachinery import Machinery
from shoal.cluster.clock import SystemClock
from shoal.cluster.embedded import EmbeddedCluster
from shoal.cluster.registry import RegistrySettings
from shoal.cluster.store.sqlite import StoreBroken
from shoal.cluster.store.tables import Store
from shoal.cluster.token_signer import TokenSigner
from shoal.controller_runtime.metrics import Metrics
from shoal.controller_runtime.runnables import run_all
from shoal.dialects import dialects
from shoal.kube.errors import ApiError
from shoal.kube.kinds import NODE, POD, SERVICE
from shoal.kube.objects import Obj, at_path, name_of
from shoal.local import loopback_ranges
from shoal.local.data_dir import ESSENTIAL, ClusterInfo, DataFolder
from shoal.local.embedded_controllers import standard_loops
from shoal.local.pod_api_endpoint import automounts, certificate_for_pods, publish_service, serve_to_pods
from shoal.logs import Logger
from shoal.node.agent import Agent
from shoal.node.config import NodeConfig, split
from shoal.node.images import Images
from shoal.node.log_archive import ArchiveBudget, LogArchive
from shoal.node.node_object import detect_machine
from shoal.node.pod_api_credentials import ApiAccess
from shoal.node.projects import Projects
from shoal.node.sandbox import syscalls
from shoal.node.sandbox.interface import Network
from shoal.node.sandbox.sandbox_manager import SandboxManager
from shoal.node.service_account_tokens import TokenManager
from shoal.node.shared_state import SharedState
from shoal.operator.embedded import JobReconciler, job_reconcilers, prepare
from shoal.scheduler.effects.queue_controller import ensure_default_queues
from shoal.scheduler.planner.gang_types import PlannerSettings as PlannerSettings
from shoal.scheduler.queue_validation import admit

log = Logger(__name__)

KUBECONFIG_IN_PODS = "SHOAL_KUBECONFIG"
MAX_NODE_NAME_LENGTH = 60  # a label has 63 letters, and `-63` is the last of 64 nodes


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    """The settings of a cluster on this machine."""

    nodes: int | None = None  # None: as many as the last time, else one
    capacity: Mapping[str, str] = field(default_factory=dict)
    network: Network | None = None  # None: the better one that works here
    pod_pids_limit: int | None = None  # None: a quarter of what the machine can hold; 0: no limit
    host: str = "127.0.0.1"
    port: int = 0  # 0: the last one, else any
    certificate: Certificate | None = None  # None: one of our own
    images: Images = field(default_factory=Images)
    dialects: Mapping[str, Any] = field(default_factory=dict)  # settings of job languages, by name
    scheduler: PlannerSettings | None = None  # None: as the planner has it
    logs: ArchiveBudget = field(default_factory=ArchiveBudget)  # of pods that are gone
    on_job_loop: Callable[[JobReconciler], None] = lambda _: None  # called with every loop that begins; for observers

    def shown(self) -> dict[str, Any]:
        """The settings of nodes and network under their names in shoal.yaml, as JSON can hold them."""
        network = self.network.value if self.network is not None else "auto"
        return {"capacity": dict(self.capacity), "network": network, "pod_pids_limit": self.pod_pids_limit}


@dataclass(frozen=True, slots=True)
class RunningCluster:
    """A cluster that answers."""

    url: str
    network: Network
    nodes: tuple[NodeConfig, ...]
    cluster: EmbeddedCluster
    agents: tuple[Agent, ...]
    metrics: Metrics
    broken: asyncio.Future[Any]  # fails as soon as a cluster component does

    async def wait_or_raise(self, *awaited: Coroutine[Any, Any, Any]) -> None:
        """Wait for all of `awaited`, or raise the first failure of a component of the cluster."""
        await _wait_or_raise(self.broken, *awaited)

    def pods(self) -> list[Obj]:
        """All there are."""
        return [stored.obj() for stored in self.cluster.machinery.list(POD).items]

    async def stop_pods(self) -> None:
        """Their processes, each with its grace period."""
        await asyncio.gather(*(agent.shut_down() for agent in self.agents))


class NodesInUse(Exception):
    """The cluster was split another way before, and pods live on nodes that would be no more."""


class StartInterrupted(Exception):
    """SIGTERM or SIGINT arrived before the cluster was up."""


class FolderRemoved(Exception):
    """The cluster's folder was removed while it ran; no client could find it any more."""


async def host(
    data: DataFolder,
    config: ClusterConfig,
    *,
    on_ready: Callable[[RunningCluster], None],
    on_stop: Callable[[], None] = lambda: None,
) -> bool:
    """Run until SIGTERM or SIGINT, then stop the pods' processes; a second SIGINT leaves them to the next start.
    Whether they were all stopped."""
    stop, force = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_signal_handler(signal.SIGINT, lambda: (force if stop.is_set() else stop).set())
    loop.add_signal_handler(signal.SIGUSR2, log_tasks)
    async with cancelled_by(stop) as start, start_cluster(data, config) as hosted, watch_folder(data):
        start.cancel()  # from here on the body itself waits for the signal
        log.info("cluster is up", url=hosted.url, nodes=len(hosted.nodes), network=str(hosted.network))
        on_ready(hosted)
        await hosted.wait_or_raise(stop.wait())
        log.info("cluster stops")
        on_stop()
        await _wait_or_raise(asyncio.ensure_future(force.wait()), hosted.stop_pods())
    log.info("cluster has stopped", left_pods_running=force.is_set())
    return not force.is_set()


@asynccontextmanager
async def start_cluster(data: DataFolder, config: ClusterConfig) -> AsyncIterator[RunningCluster]:
    """A whole cluster, from the moment it answers; it ends with the body. The pods' processes do not."""
    metrics = Metrics(CollectorRegistry())

    def load_certificate() -> Certificate:
        dialects()  # every job language is loaded while another process probes what this machine allows
        return config.certificate or ensure(data.certificates, config.host)

    certificate_task = asyncio.create_task(asyncio.to_thread(load_certificate))  # takes as long as step 1
    sandboxes = await SandboxManager.open(  # 1. where pods can live
        data.sandboxes, network=config.network, pids_limit=config.pod_pids_limit
    )
    try:
        async with (
            open_store(data, sandboxes.network) as (cluster, pod_range, services),  # 2. the store, and the API to it
            serve_api(data, config, cluster, metrics, await certificate_task) as server,
            make_shared_state(data, config, cluster, sandboxes, services, server, await certificate_task) as shared,
        ):
            await prepare(cluster)  # 3. the kinds of jobs, and the queues they enter
            admit(cluster.machinery)
            await ensure_default_queues(cluster)
            nodes = node_configs(data, config, await _known_nodes(cluster), pod_range)
            await delete_other_nodes(cluster, {node.name for node in nodes})
            agents = [Agent(cluster, sandboxes, node, host=shared) for node in nodes]
            cluster.nodes.update({agent.config.name: agent for agent in agents})
            clock = SystemClock()
            loops = standard_loops(
                cluster, volumes=data.volumes, clock=clock, gangs=True,
                registry=metrics.registry, settings=config.scheduler,
            )  # fmt: skip
            loops += job_reconcilers(
                cluster, clock=clock, metrics=metrics, settings=config.dialects, on_made=config.on_job_loop
            )
            parts = (run_all(loops), shared.run(), *(agent.run() for agent in agents))
            async with run_together(*parts) as broken:  # 4. loops, nodes
                with first_refused_write(cluster.machinery.store) as refused:
                    await _wait_or_raise(broken, _wait_or_raise(refused, *(agent.ready.wait() for agent in agents)))
                data.write_info(ClusterInfo(os.getpid(), server.url, time.time(), config.shown()))
                yield RunningCluster(
                    server.url, sandboxes.network, tuple(nodes), cluster, tuple(agents), metrics, broken
                )
    finally:
        await sandboxes.close()


@asynccontextmanager
async def open_store(data: DataFolder, network: Network) -> AsyncIterator[tuple[EmbeddedCluster, str, IPv4Network]]:
    """What the cluster knew, the range of its pods' addresses, '' for the usual one, and that of its Services, which
    the pods' network can reach."""
    with ExitStack() as held:
        settings, pod_range = RegistrySettings(), ""
        if network is not Network.ISOLATED:
            is_new = not data.store.exists()
            ranges = held.enter_context(
                loopback_ranges.reserved_ranges(
                    data.loopback, is_new=is_new, addresses=lambda: used_addresses(data.store)
                )
            )
            settings, pod_range = RegistrySettings(service_network=ranges.services), ranges.pods
        try:
            cluster = await EmbeddedCluster.open(data.store, settings=settings)
        except OSError as error:
            raise _unwritable(error) from None
        try:
            yield cluster, pod_range, settings.service_network
        except ApiError as refused:
            if isinstance(refused.__cause__, OSError):
                raise _unwritable(refused.__cause__) from None
            raise
        finally:
            await cluster.close()


def _unwritable(error: OSError) -> StoreBroken:
    return StoreBroken(f"{error}. Make room on the disk, or choose another data folder.")


@contextmanager
def first_refused_write(store: Store) -> Iterator[asyncio.Future[None]]:
    """A future that fails with the first write the disk refuses. Nodes retry their registration for as long as it
    takes, so a start on a full disk would wait for them for ever."""
    refused: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def fail(error: OSError) -> None:
        if not refused.done():
            refused.set_exception(_unwritable(error))

    store.after_failed_commit.append(fail)
    try:
        yield refused
    finally:
        store.after_failed_commit.remove(fail)
        if not refused.cancel():
            refused.exception()  # retrieved, so that asyncio does not log it


def used_addresses(store: Path) -> list[str]:
    """All that were given out; those of Services, which stay, before those of pods."""
    with closing(Machinery.open(store)) as known:
        services = [str(at_path(each.obj(), "spec", "clusterIP")) for each in known.list(SERVICE).items]
        return services + [str(at_path(each.obj(), "status", "podIP")) for each in known.list(POD).items]


@asynccontextmanager
async def serve_api(
    data: DataFolder, config: ClusterConfig, cluster: EmbeddedCluster, metrics: Metrics, certificate: Certificate
) -> AsyncIterator[Server]:
    token = data.token()
    app = build_application(cluster, token=token, signer=TokenSigner(token), metrics=metrics.exposition)
    # On the requested port; else on the last one, so that kubeconfigs handed out keep working; else on any.
    last = 0 if config.port else data.last_port()
    server = Server(app, config.host, config.port or last, ssl=certificate.context())
    try:
        await server.start()
    except ServerListenError:
        if not last:
            raise
        server = Server(app, config.host, 0, ssl=certificate.context())
        await server.start()
    context = f"shoal-{data.name}"
    try:
        kubeconfig_file.write(
            data.kubeconfig, server=server.url, token=token, context=context, ca_pem=certificate.authority()
        )
        yield server
    finally:
        await server.stop()


@asynccontextmanager
async def make_shared_state(
    data: DataFolder,
    config: ClusterConfig,
    cluster: EmbeddedCluster,
    sandboxes: SandboxManager,
    services: IPv4Network,
    server: Server,
    server_certificate: Certificate,
) -> AsyncIterator[SharedState]:
    """What all nodes share, while pods can reach the API."""
    signer = TokenSigner(data.token())
    address = await publish_service(cluster, services)
    certificate = await asyncio.to_thread(certificate_for_pods, data.certificates, address)
    async with serve_to_pods(cluster, signer, certificate) as api:
        # Pods on the machine's network reach the server itself, whose port outlives a restart.
        authority = b"\n".join((certificate.authority(), server_certificate.authority()))
        is_isolated = sandboxes.network is Network.ISOLATED
        yield SharedState(
            cluster,
            sandboxes,
            token_manager=TokenManager(cluster, signer=signer),
            api=api,
            api_access=ApiAccess(
                authority.decode(), (config.host, server.port) if is_isolated else None, partial(automounts, cluster)
            ),
            archive=LogArchive(data.path, config.logs),
            projects=Projects(data.path),
        )


def node_configs(data: DataFolder, config: ClusterConfig, known: list[str], pod_range: str) -> list[NodeConfig]:
    """As many nodes as requested, else as before; under their old names, even if the machine was renamed."""
    machine = detect_machine(data.path, host_ip=own_address())
    count = config.nodes or len(known) or 1
    name = node_name(machine.hostname) if count != len(known) else known[0] if count == 1 else known[0][: -len("-0")]
    # A client in a pod finds this cluster by default, at an address that the pod's network reaches.
    # A kubeconfig of the caller's is for programs of the machine's network; pods have a service account.
    shown = {**os.environ, KUBECONFIG_IN_PODS: str(data.kubeconfig)}
    shown.pop("KUBECONFIG", None)
    whole = NodeConfig(
        name, data.path, machine, pod_range=pod_range,
        capacity=config.capacity, images=config.images, caller_env=shown,
    )  # fmt: skip
    return split(whole, count)


def own_address() -> str:
    """The address other programs of this machine reach it by, also from a pod's own network. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.1"  # this machine is on no network
        address: str = probe.getsockname()[0]
        return address


def node_name(hostname: str) -> str:
    """The machine's name as a label can have it, with room for the number of a node."""
    return re.sub(r"[^a-z0-9-]+", "-", hostname.lower())[:MAX_NODE_NAME_LENGTH].strip("-") or "node"


@asynccontextmanager
async def cancelled_by(stop: asyncio.Event) -> AsyncIterator[asyncio.Future[None]]:
    """End the body with StartInterrupted when `stop` is set, until the future is cancelled."""
    task = asyncio.current_task()
    assert task is not None

    async def interrupt() -> None:
        await stop.wait()
        task.cancel()

    start = asyncio.ensure_future(interrupt())
    try:
        yield start
    except asyncio.CancelledError:
        if not start.done() or start.cancelled():
            raise
        task.uncancel()
        raise StartInterrupted("stopped before the cluster was up.") from None
    finally:
        start.cancel()


@asynccontextmanager
async def watch_folder(data: DataFolder) -> AsyncIterator[None]:
    """End the body with FolderRemoved when an essential entry of the folder is deleted, as `rm -r` does.
    The kernel reports the deletion. The pods' shims observe it in the same way, and end their pods."""
    task = asyncio.current_task()
    assert task is not None
    deletions = syscalls.watch_deletions(str(data.path))
    is_removed = False

    def on_deletion() -> None:
        nonlocal is_removed
        if not is_removed and ESSENTIAL & set(syscalls.read_deletions(deletions)):
            is_removed = True
            log.warning("the cluster's folder was removed: stopping", folder=str(data.path))
            task.cancel()

    asyncio.get_running_loop().add_reader(deletions, on_deletion)
    try:
        yield
    except asyncio.CancelledError:
        if not is_removed:
            raise
        task.uncancel()
        raise FolderRemoved(
            f"{data.path} was removed while its cluster ran. The cluster has stopped, and its pods with it."
        ) from None
    finally:
        asyncio.get_running_loop().remove_reader(deletions)
        os.close(deletions)


async def _known_nodes(cluster: EmbeddedCluster) -> list[str]:
    return sorted((name_of(node) for node in (await cluster.list(NODE)).items), key=lambda name: (len(name), name))


async def delete_other_nodes(cluster: EmbeddedCluster, ours: set[str]) -> None:
    """Nodes of an earlier start that was split another way; refused while pods live there."""
    others = [name for name in await _known_nodes(cluster) if name not in ours]
    for name in others:
        pods = (await cluster.list(POD, fields=f"spec.nodeName={name}")).items
        live_pods = [name_of(pod) for pod in pods if at_path(pod, "status", "phase") not in ("Succeeded", "Failed")]
        if live_pods:
            shown = ", ".join(sorted(live_pods)[:3]) + (", ..." if len(live_pods) > 3 else "")
            raise NodesInUse(
                f"pods run on node {name} ({shown}), which does not exist with this number of nodes. "
                f"Start without --nodes to keep the nodes as they are, or delete the pods first."
            )
    for name in others:
        await cluster.delete(NODE, name)


@asynccontextmanager
async def run_together(*parts: Coroutine[Any, Any, None]) -> AsyncIterator[asyncio.Future[Any]]:
    """Run the coroutines beside the body, until it ends; the future fails as soon as one of them does."""
    together = asyncio.gather(*parts)
    try:
        yield together
    finally:
        together.cancel()
        await asyncio.gather(together, return_exceptions=True)


async def _wait_or_raise(cut: asyncio.Future[Any], *awaited: Coroutine[Any, Any, Any]) -> None:
    """Wait for all of `awaited`, or for `cut`, whichever is first; what went wrong in it is raised."""
    waiting = asyncio.ensure_future(asyncio.gather(*awaited))
    waiting.add_done_callback(lambda each: each.cancelled() or each.exception())  # asyncio logs unretrieved exceptions
    try:
        await asyncio.wait((cut, waiting), return_when=asyncio.FIRST_COMPLETED)
        (cut if cut.done() else waiting).result()
    finally:
        waiting.cancel()


def log_tasks() -> None:
    """Log what every task waits for, to diagnose a cluster that seems to hang."""
    for task in asyncio.all_tasks():
        frames = [f"{frame.f_code.co_qualname}:{frame.f_lineno}" for frame in task.get_stack()]
        log.info("task waits", task=task.get_name(), at=" > ".join(frames))
