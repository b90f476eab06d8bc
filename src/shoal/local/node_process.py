"""This machine as a node of a cluster that runs elsewhere: the agent, what serves the API server, and their end.

`join` runs a node from the first check to leaving. It may be killed anywhere: pods live in sandboxes of their own,
and the next start in the same folder finds them.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from shoal.apiserver.server import ServerListenError
from shoal.apiserver.serving_certificate import Certificate, ensure
from shoal.cluster.client import Cluster
from shoal.cluster.kubernetes import KubernetesCluster
from shoal.kube.errors import ApiError
from shoal.kube.kinds import LEASE, NODE, Kind
from shoal.kube.objects import Obj, at_path
from shoal.local.cluster import node_name, own_address
from shoal.local.data_dir import DataFolder
from shoal.logs import Logger
from shoal.node import lease
from shoal.node.agent import Agent
from shoal.node.config import Confinement, NodeConfig
from shoal.node.heartbeat import NodeRefused
from shoal.node.images import Images
from shoal.node.kubeconfig_node_name import GROUP, PREFIX, review_self
from shoal.node.kubelet_api.authorization import CallerAuthorizer, ClientCaWatcher
from shoal.node.kubelet_api.server import KubeletServer
from shoal.node.messages import text
from shoal.node.node_object import detect_machine
from shoal.node.rbac import REQUIRED_PERMISSIONS, NodePermission, lease_permission, missing_permissions
from shoal.node.sandbox.interface import Network
from shoal.node.sandbox.sandbox_manager import NetworkUnavailable, SandboxManager
from shoal.node.service_account_tokens import TokenManager
from shoal.node.shared_state import SharedState

log = Logger(__name__)

KUBELET_PORT = 10250
RUNTIME_PREFIX = "shoal://"  # how the runtime of a node of ours begins
LABEL = {"shoal.dev/process-node": "true"}
# Pods here are anybody's in the cluster: of this machine's environment they see what every program needs.
POD_ENV_ALLOWLIST = ("PATH", "HOME", "LANG", "LC_ALL", "TZ")


class CannotJoin(Exception):
    """The cluster must not get this node; the message has the reason and the way out."""


@dataclass(frozen=True, slots=True)
class JoinConfig:
    """The settings of a node. Empty means: as this machine has it."""

    name: str = ""
    address: str = ""  # where the API server reaches this machine
    port: int | None = None  # None: a kubelet's, or any where that is taken
    capacity: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Obj, ...] = ()
    certificate: Certificate | None = None  # None: one of our own
    images: Images = field(default_factory=Images)
    namespaces: frozenset[str] = frozenset()  # whose pods run here; empty: all
    allow_root: bool = False  # pods run as the agent's own user, root included, or as any user they name
    hidden: tuple[Path, ...] = ()  # files with credentials of the agent, besides its data folder
    api: tuple[str, int] | None = None  # where pods find the API; None: at the cluster's address
    pod_pids_limit: int | None = None  # None: a quarter of what the machine can hold; 0: no limit


@dataclass(frozen=True, slots=True)
class JoinedNode:
    """A node that is registered and runs its pods."""

    config: NodeConfig
    agent: Agent
    broken: asyncio.Task[None]  # ends only when a component of the node fails


async def join(
    data: DataFolder,
    cluster: KubernetesCluster,
    config: JoinConfig,
    *,
    on_ready: Callable[[JoinedNode], None],
    on_stop: Callable[[], None] = lambda: None,
) -> bool:
    """Run until SIGTERM, which leaves the pods' processes to the next start, or SIGINT, which stops them first; a
    second SIGINT leaves them too. Whether they were stopped."""
    version = await cluster.require_supported()
    if version is not None and version.is_shoal:
        raise CannotJoin(
            "this is a cluster of `shoal up`, which runs its pods on this machine itself; a second node here would run "
            "each of them twice. Name a Kubernetes cluster with --kubeconfig or --context."
        )
    name = await find_name(cluster, config.name)
    await check_rights(cluster, name)
    leave, stop = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, leave.set)
    loop.add_signal_handler(signal.SIGINT, lambda: (leave if stop.is_set() else stop).set())
    async with start_node(data, cluster, replace(config, name=name)) as node:
        log.info("node has joined", node=node.config.name)
        on_ready(node)
        await _wait_first(node.broken, leave.wait(), stop.wait())
        if leave.is_set():
            return False
        on_stop()
        # At once: pods end also where the cluster does not answer.
        stopped = asyncio.gather(node.agent.set_not_ready(), node.agent.shut_down())
        await _wait_first(node.broken, leave.wait(), stopped)
    return not leave.is_set()


@asynccontextmanager
async def start_node(data: DataFolder, cluster: Cluster, config: JoinConfig) -> AsyncIterator[JoinedNode]:
    """A node from the moment the cluster may place pods on it; it ends with the body, its pods' processes do not."""
    address = config.address or own_address()
    machine = detect_machine(data.path, host_ip=address)
    name, folder = config.name or node_name(machine.hostname), data.path.resolve()
    holder = f"{name}_{agent_id(folder)}"
    await check_may_join(cluster, name, holder, now=datetime.now(UTC))  # 1. no other agent is this node
    sandboxes = await open_sandboxes(data, config.pod_pids_limit)  # 2. where pods can live
    separate_users = os.geteuid() == 0 and not config.allow_root
    pod_env = {name: os.environ[name] for name in POD_ENV_ALLOWLIST if name in os.environ}
    if separate_users:
        pod_env["HOME"] = "/"  # root's home is of no use to other users
    listener = listen(address, config.port)
    try:
        settings = NodeConfig(
            name, folder, machine,
            capacity=config.capacity, labels={**LABEL, **config.labels}, taints=config.taints, images=config.images,
            kubelet_port=listener.getsockname()[1], caller_env=pod_env, working_dir="/",
            namespaces=config.namespaces, holder=holder,
            confinement=Confinement(hidden=(folder, *config.hidden), separate_users=separate_users),
        )  # fmt: skip
        host = SharedState(
            cluster, sandboxes, token_manager=TokenManager(cluster), api=config.api, watches_claims=False
        )
        agent = Agent(cluster, sandboxes, settings, host=host)
        tls = (config.certificate or ensure(data.certificates, address)).context()
        running = asyncio.create_task(run_agent(agent, host, cluster, listener, tls))
        try:
            await _wait_first(running, agent.ready.wait())  # 3. registered, every pod has its worker
            yield JoinedNode(settings, agent, running)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
    finally:
        listener.close()
        await sandboxes.close()


async def run_agent(
    agent: Agent, host: SharedState, cluster: Cluster, listener: socket.socket, tls: ssl.SSLContext
) -> None:
    """The agent, its names and references, and the answers to the API server, until one of them breaks."""
    kubelet = KubeletServer(agent, CallerAuthorizer(cluster, agent.config.name))
    try:
        async with kubelet.served(listener, tls=tls), asyncio.TaskGroup() as group:
            group.create_task(ClientCaWatcher(cluster, tls).run())
            group.create_task(host.run())
            group.create_task(agent.run())
    except ExceptionGroup as several:
        refused = several.subgroup(NodeRefused)
        if refused is None:
            raise
        raise CannotJoin(str(refused.exceptions[0])) from None


async def open_sandboxes(data: DataFolder, pids_limit: int | None) -> SandboxManager:
    try:
        return await SandboxManager.open(data.sandboxes, network=Network.ISOLATED, pids_limit=pids_limit)
    except NetworkUnavailable as refused:
        raise CannotJoin(
            f"{text(refused.reason)}. A node of a cluster that runs elsewhere needs them: an API "
            "server takes no 127.x.y.z address for a Service's pods. `shoal doctor` shows what would allow them."
        ) from None


def listen(address: str, port: int | None) -> socket.socket:
    """Where a kubelet would be, unless one is there or another port is wanted."""
    for candidate in (KUBELET_PORT, 0) if port is None else (port,):
        try:
            return socket.create_server((address, candidate), backlog=128)
        except OSError as refused:
            problem = f"cannot listen on {address} port {candidate}: {os.strerror(refused.errno or 0)}"
    raise ServerListenError(f"{problem}. Choose another --address or --port; 0 takes any free one.")


def agent_id(folder: Path) -> str:
    """Made once per data folder: a start in the same folder continues as the same agent."""
    path = folder / "agent-id"
    try:
        return path.read_text()
    except FileNotFoundError:
        draft = path.with_suffix(".draft")
        draft.write_text(secrets.token_hex(8))
        draft.replace(path)  # a crash leaves the whole id or none
        return path.read_text()


# Whether the cluster takes us


async def find_name(cluster: Cluster, wanted: str) -> str:
    """The name of the node that the kubeconfig's credentials are for; CannotJoin where they are for none."""
    identity = await review_self(cluster)
    node = identity.node
    if not node:
        raise CannotJoin(
            f"the kubeconfig authenticates as {identity.user or 'an unknown user'}, not as a node: a node needs "
            f"credentials of its own, of user {PREFIX}NAME in group {GROUP}, which reach no more than its own pods' "
            "objects. docs/node.md shows how to make them."
        )
    if wanted and wanted != node:
        raise CannotJoin(
            f"the kubeconfig is for node {node}, not for {wanted}. Leave --name out, or use credentials of {wanted}."
        )
    return node


async def check_rights(cluster: KubernetesCluster, node: str) -> None:
    """All that is missing at once, before anything is registered."""

    async def check_access(verb: str, need: NodePermission) -> bool:
        return (await cluster.check_access(verb, need.kind, need.namespace, need.name)).is_allowed

    if await missing_permissions(check_access, (lease_permission(node),)):
        raise CannotJoin(
            f"the cluster does not let user {PREFIX}{node} be a node: its API servers need "
            "--authorization-mode=Node,RBAC and the admission plugin NodeRestriction."
        )
    if missing_lines := await missing_permissions(check_access, REQUIRED_PERMISSIONS):
        listed = "\n".join(f"  {line}" for line in missing_lines)
        raise CannotJoin(
            f"the user of the kubeconfig lacks permissions that a node needs:\n{listed}\n"
            "Apply the roles that docs/node.md shows."
        )


async def check_may_join(cluster: Cluster, name: str, holder: str, *, now: datetime) -> None:
    """A Node that runs containers, or that another agent keeps alive, is not ours to take."""
    node = await _get_or_empty(cluster, NODE, name)
    runtime = at_path(node, "status", "nodeInfo", "containerRuntimeVersion") or ""
    if runtime and not runtime.startswith(RUNTIME_PREFIX):
        raise CannotJoin(
            f"there is a node {name} already, and it runs containers ({runtime}). Choose another name, "
            "with credentials for it."
        )
    if other := lease.other_holder(await _get_or_empty(cluster, LEASE, name, lease.NAMESPACE), holder, now):
        raise CannotJoin(text(lease.held_message(name, other)))


async def _get_or_empty(cluster: Cluster, kind: Kind, name: str, namespace: str = "") -> Obj:
    """Empty where there is none."""
    try:
        return await cluster.get(kind, name, namespace)
    except ApiError as refused:
        if refused.code == 404:
            return {}
        raise


# Waiting and ending


async def _wait_first(broken: asyncio.Task[None], *awaited: Awaitable[Any]) -> None:
    """Wait for the first of `awaited`; where the node breaks before, raise what broke it."""
    waiting = [asyncio.ensure_future(each) for each in awaited]
    try:
        await asyncio.wait((broken, *waiting), return_when=asyncio.FIRST_COMPLETED)
        for each in (broken, *waiting):
            if each.done():
                each.result()
    finally:
        for each in waiting:
            each.cancel()
