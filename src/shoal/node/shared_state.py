"""What the agents of one process share: the sandboxes, the names, and the objects pods refer to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from shoal.cluster.client import Cluster
from shoal.kube.objects import Obj
from shoal.logs import Logger
from shoal.node.checkpoint import PodFolder, PodRecord
from shoal.node.hosts_files import HostsFiles
from shoal.node.log_archive import LogArchive
from shoal.node.pod_api_credentials import ApiAccess
from shoal.node.projects import Projects
from shoal.node.reference_watcher import ReferenceWatcher
from shoal.node.sandbox.interface import LostSandbox, Sandbox, Sandboxes
from shoal.node.service_account_tokens import TokenManager

log = Logger(__name__)

NODE_LABEL = "shoal.dev/node"
OWN_LABEL = "shoal.dev/pod"


@dataclass(slots=True)
class RecoveredSandboxes:
    """What one node finds again after a restart, by pod uid."""

    kept: dict[str, Sandbox] = field(default_factory=dict)
    lost: dict[str, LostSandbox] = field(default_factory=dict)
    lost_uids: tuple[str, ...] = ()  # the uids of `lost`, which is emptied as it is read


class SharedState:
    """Run `run` in a task beside the agents that use it."""

    def __init__(
        self,
        cluster: Cluster,
        sandboxes: Sandboxes,
        *,
        token_manager: TokenManager | None = None,
        api: tuple[str, int] | None = None,
        api_access: ApiAccess | None = None,
        archive: LogArchive | None = None,
        projects: Projects | None = None,
        watches_claims: bool = True,
    ) -> None:
        """`watches_claims` False where the cluster permits a node only to get claims and volumes (Node authorizer)."""
        self.cluster = cluster
        self.sandboxes = sandboxes
        self.nodes: set[str] = set()  # the names of the agents that share this
        self.hosts_files = HostsFiles(cluster, sandboxes, local_nodes=self.nodes, api=api)
        self.reference_watcher = ReferenceWatcher(cluster, watches_claims=watches_claims)
        self.token_manager = token_manager  # None where the cluster issues no tokens
        self.api_access = api_access  # None where admission adds the volume to pods, as Kubernetes does
        self.archive = archive  # None: logs go with their pods, as on Kubernetes
        self.projects = projects  # None: pods name none
        self._adopting = asyncio.Lock()
        self._recovered: dict[str, RecoveredSandboxes] | None = None

    async def run(self) -> None:
        try:
            await self.hosts_files.run()
        finally:
            self.reference_watcher.close()

    async def adopt(self, node: str) -> RecoveredSandboxes:
        """The sandboxes of one node from an earlier agent. The sandboxes themselves are adopted once."""
        async with self._adopting:
            if self._recovered is None:
                self._recovered = {}
                kept, lost = await self.sandboxes.adopt()
                for sandbox in kept:
                    if sandbox.spec.labels.get(NODE_LABEL) not in self.nodes:
                        await sandbox.close()  # of a node that is no longer here: nothing else would end it
                        continue
                    self._of_node(sandbox.spec.labels.get(NODE_LABEL, "")).kept[sandbox.spec.id] = sandbox
                for gone in lost:
                    self._of_node(gone.spec.labels.get(NODE_LABEL, "")).lost[gone.spec.id] = gone
            found = self._recovered.pop(node, RecoveredSandboxes())
            found.lost_uids = tuple(found.lost)
            return found

    def _of_node(self, node: str) -> RecoveredSandboxes:
        assert self._recovered is not None
        return self._recovered.setdefault(node, RecoveredSandboxes())

    async def archive_logs(
        self, folder: PodFolder, record: PodRecord, pod: Obj | None = None, *, before: int | None = None
    ) -> None:
        """Keep logs of a pod in the archive, where there is one."""
        if self.archive is not None and record.job is not None:
            await _in_thread(partial(self.archive.store, folder, record, pod, before=before), record)

    async def archive_metrics(self, folder: PodFolder, record: PodRecord, container: str) -> None:
        """Add what the last run of the container printed of steps and losses to the metrics of its job."""
        run = record.container(container).run
        if self.archive is None or record.job is None or run is None or run.started_at is None:
            return
        await _in_thread(partial(self.archive.add_metrics, folder, record, container, run.attempt), record)

    def environment(self) -> Mapping[str, str]:
        """Variables that the sandboxes require in every process, such as the way out of their network."""
        offered = getattr(self.sandboxes, "environment", None)
        return offered() if offered is not None else {}


async def _in_thread(work: Callable[[], None], record: PodRecord) -> None:
    """In a thread, since it may read or remove many files. An error in it keeps no pod from ending."""
    try:
        await asyncio.to_thread(work)
    except Exception:
        log.exception("logs or metrics not kept", pod=str(record.key))
