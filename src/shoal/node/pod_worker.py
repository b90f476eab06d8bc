"""One pod on this node, from the moment it is bound here until nothing of it is left.

A worker is woken by events (the pod changed, a process ended, a probe's result, an object appeared, a moment was
reached) and makes one pass: call `pod_lifecycle.decide`, take the actions, write to the API once. What it needs to
continue after a crash is in the record before it acts, so a pass after a restart is an ordinary pass.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from dataclasses import replace

from shoal.kube.messages import Message
from shoal.kube.objects import Obj, annotations_of, is_terminating, labels_of
from shoal.kube.quantity_format import requests_of
from shoal.logs import Logger
from shoal.node import pod_lifecycle, volumes
from shoal.node.checkpoint import PodFolder, PodOutcome, PodRecord
from shoal.node.cluster_dns import hostname_of, pod_hosts
from shoal.node.config import NodeConfig
from shoal.node.container_manager import ContainerManager
from shoal.node.container_spec import CannotStart, SpecContext, make_env_context, process_spec
from shoal.node.events import Events
from shoal.node.messages import MessageError
from shoal.node.pod_lifecycle import (
    Action,
    BeginStop,
    FailPod,
    Kill,
    RunPreStop,
    RuntimeState,
    Start,
    Terminate,
    Waiting,
)
from shoal.node.pod_references import references_of
from shoal.node.pod_status import PodAddresses, pod_status
from shoal.node.sandbox.interface import Sandbox, SandboxSpec, ShimLost
from shoal.node.sandbox.shim_client import SandboxFailed
from shoal.node.shared_state import NODE_LABEL, OWN_LABEL, SharedState
from shoal.node.status_manager import PublishResult, StatusPublisher
from shoal.node.volume_files import has_files

log = Logger(__name__)

TERMINAL = ("Succeeded", "Failed")
SANDBOX_RETRY_SECONDS = 5.0
MAX_STEPS = 50


class PodWorker:
    """`run` ends when nothing of the pod is left here. `update` and `mark_gone` may be called at any time."""

    def __init__(
        self,
        pod: Obj,
        record: PodRecord,
        folder: PodFolder,
        sandbox: Sandbox | None,
        *,
        host: SharedState,
        config: NodeConfig,
        events: Events,
    ) -> None:
        self._api_access = host.api_access if host.api_access is not None and host.api_access.is_for(pod) else None
        self.pod = self._with_api_access(pod)
        self.requests = requests_of(pod)
        self.record = record
        self.folder = folder
        self.is_torn_down = False
        self._shared = host
        self._config = config
        self._events = events
        self._wakeup = asyncio.Event()
        self._listeners: set[Callable[[], None]] = set()
        self.container_manager = ContainerManager(
            lambda: self.pod, record, folder, config=config, events=events, wake=self.wake
        )
        self._publisher = StatusPublisher(host.cluster, pod)
        self._spec_context = SpecContext(config, offered_env=host.environment(), projects=host.projects)
        self._blocked: dict[str, Waiting] = {}
        self._pod_blocked: Waiting | None = None
        self._last_block: Waiting | None = None
        self._retry_at: float | None = None
        self._references_stale = True
        self._maybe_gone = False
        self._deleted = False  # the pod's final deletion was sent
        self._logs_archived = False
        # back-offs of (container, attempt) that were reported
        self._reported_backoffs: set[tuple[str, int]] = set()
        # A pod that ended before this agent began was reported then; its record may no longer exist here.
        self._skip_status = record.finished and (pod.get("status") or {}).get("phase") in TERMINAL
        if sandbox is not None:
            self.container_manager.attach_sandbox(sandbox)

    # Notifications to the worker

    def update(self, pod: Obj) -> None:
        if is_terminating(self.pod) and not is_terminating(pod):
            return  # a deletion cannot be taken back: this is an older version
        pod = self._with_api_access(pod)
        # All that a volume, a variable or a start depends on; most changes are of the status alone.
        parts = (lambda obj: obj["spec"], labels_of, annotations_of)
        self._references_stale |= any(part(self.pod) != part(pod) for part in parts)
        self.pod = pod
        self.wake()

    def _with_api_access(self, pod: Obj) -> Obj:
        return pod if self._api_access is None else self._api_access.add_to(pod)

    def mark_gone(self) -> None:
        """The pod seems to be gone from the API."""
        self._maybe_gone = True
        self.wake()

    def waiting_reason(self, name: str) -> str:
        """Why a container has not been started, as a single term, for requests for its logs."""
        status = self._status()
        for published in [*status.get("initContainerStatuses", ()), *status["containerStatuses"]]:
            if published["name"] == name and "waiting" in published["state"]:
                return str(published["state"]["waiting"]["reason"])
        return "ContainerCreating"

    def wake(self) -> None:
        self._wakeup.set()
        for listener in list(self._listeners):
            listener()

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Have `listener` called at every change; the result takes it back."""
        self._listeners.add(listener)
        return lambda: self._listeners.discard(listener)

    # The story

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while True:
                self._wakeup.clear()
                try:
                    at = await self._sync()
                except Exception:
                    # A mistake of ours with one pod must not end the node; the next event or moment tries again.
                    log.exception("pass over a pod broke", pod=str(self.record.key))
                    at = self._config.clock() + SANDBOX_RETRY_SECONDS
                if self.is_torn_down:
                    return
                delay = None if at is None else max(at - self._config.clock(), 0.0)
                timer = None if delay is None else loop.call_later(delay, self._wakeup.set)
                try:
                    await self._wakeup.wait()
                finally:
                    if timer is not None:
                        timer.cancel()
        finally:
            self.container_manager.release()
            self._shared.reference_watcher.release(self.record.uid)
            if self._shared.token_manager is not None:
                self._shared.token_manager.remove(self.record.uid)

    async def _sync(self) -> float | None:
        """One pass; returns when to make the next if nothing happens before."""
        if self._maybe_gone and await self._confirm_gone():
            await self._tear_down()
            return None
        if self._retry_at is not None and self._config.clock() >= self._retry_at:
            self._references_stale = True
        status = self.pod.get("status") or {}
        if status.get("phase") in TERMINAL and not self.record.finished and self.record.outcome is None:
            # A verdict of another component (the node was given up, the pod was evicted) holds here too.
            self.record.outcome = PodOutcome(status["phase"], status.get("reason") or "", status.get("message") or "")
            self.container_manager.save()
        if self._references_stale:
            await self._load_references()
        wake_at = await self._advance()
        result = await self._publish_status()
        if result is PublishResult.GONE:
            self._maybe_gone = True
            return self._config.clock() + self._publisher.backoff_seconds
        pause = self._config.clock() + self._publisher.backoff_seconds if result is PublishResult.RETRY else None
        return min((at for at in (wake_at, pause, self._retry_at) if at is not None), default=None)

    async def _advance(self) -> float | None:
        """Act until there is nothing left to do now; a container that ends as fast as it starts must not hold us."""
        for _ in range(MAX_STEPS):
            decision = pod_lifecycle.decide(
                self.pod, self.record, self._runtime_state(), now=self._config.clock(), backoff=self._config.backoff
            )
            for action in decision.actions:
                await self._execute(action)
            if not decision.actions:
                break
        else:
            return self._config.clock()
        if decision.is_finished and not self.record.finished:
            # Nothing runs and nothing will: free what the pod held. Its logs stay until the pod is deleted.
            await self.container_manager.close()
            self._shared.hosts_files.remove(self.record.uid)
            for name in list(self.record.containers):
                await self._shared.archive_metrics(self.folder, self.record, name)
            self.record.finished = True
            self.container_manager.save()
        self._note_backoffs()
        return decision.wake_at

    def _runtime_state(self) -> RuntimeState:
        return RuntimeState(self._blocked, self._pod_blocked, self.container_manager.unhealthy)

    # Actions

    async def _execute(self, action: Action) -> None:
        match action:
            case Start(name):
                await self._start(name)
            case BeginStop(name, grace, message):
                self.record.container(name).mark_stopping(self._config.clock(), grace)
                self.container_manager.stop_probing(name)
                self.container_manager.unhealthy.pop(name, None)
                self.container_manager.save()
                self._events.emit(self.pod, message, container=name)
            case RunPreStop(name):
                self.container_manager.run_pre_stop(name)
            case Terminate(name):
                # Signals go out before they are noted: after a crash a second one does no harm, a missing one would.
                await self.container_manager.signal(name, signal.SIGTERM)
                self._note_stop(name, termed=True)
            case Kill(name):
                await self.container_manager.signal(name, signal.SIGKILL)
                self._note_stop(name, killed=True)
            case FailPod(message):
                self.record.outcome = PodOutcome("Failed", message.reason, message)
                self.container_manager.save()
                self._events.emit(self.pod, message, warning=True)

    def _note_stop(self, name: str, *, termed: bool = False, killed: bool = False) -> None:
        run = self.record.container(name).run
        if run is None or run.stopping is None:
            return
        run.stopping.termed_at = self._config.clock() if termed else run.stopping.termed_at
        run.stopping.killed = killed or run.stopping.killed
        self.container_manager.save()

    async def _start(self, name: str) -> None:
        container = pod_lifecycle.find_container(self.pod, name)
        assert container is not None
        known = self.record.container(name)
        intended = known.run is not None and known.run.started_at is None and not known.run.is_over
        attempt = known.run.attempt if intended and known.run is not None else known.attempts
        try:
            spec = process_spec(self.pod, container, self.record, self.folder, self._spec_context, attempt)
        except CannotStart as cannot:
            self._block(name, cannot)
            return
        if not await self._ensure_sandbox():
            return
        if not intended:
            await self._shared.archive_metrics(self.folder, self.record, name)
            if attempt > 1:
                await self._shared.archive_logs(self.folder, self.record, self.pod, before=attempt - 1)
            known.mark_intended(self._config.clock(), pod_lifecycle.next_backoff(known, self._config.backoff))
            self.container_manager.save()  # before the start: after a crash it is repeated, never forgotten
            self.folder.drop_logs_before(name, attempt - 1)
        await self.container_manager.start(name, spec)

    def _block(self, name: str, cannot: CannotStart) -> None:
        if cannot.is_volume:
            self._pod_blocked = cannot.waiting
            if cannot.waiting != self._last_block:
                self._events.emit(self.pod, Message("FailedMount", {"cause": cannot.waiting.message}), warning=True)
        else:
            self._blocked[name] = cannot.waiting
            if cannot.path is None or cannot.waiting != self._last_block:  # else reported, and only checked again
                message = Message("Failed", {"cause": cannot.waiting.message})
                self._events.emit(self.pod, message, container=name, warning=True)
        self._last_block = cannot.waiting
        if cannot.path is not None:
            self.container_manager.wake_on_change(cannot.path, self._references_changed)

    def _note_backoffs(self) -> None:
        """One BackOff Event for every end after which the container waits."""
        now = self._config.clock()
        for name, known in self.record.containers.items():
            if self.record.finished or known.run is None or not known.run.is_over:
                continue
            waits = pod_lifecycle.restart_at(known, self._config.backoff) > now
            if (
                waits
                and pod_lifecycle.will_restart(self.pod, self.record, name)
                and (name, known.attempts) not in self._reported_backoffs
            ):
                self._reported_backoffs.add((name, known.attempts))
                message = Message("BackOff", {"container": name, "pod": self.record.name})
                self._events.emit(self.pod, message, container=name, warning=True)

    async def _ensure_sandbox(self) -> bool:
        """A place for the pod's processes; where it cannot be had now the pod waits and tries again."""
        if self.container_manager.sandbox is not None:
            return True
        self.record.sandboxed_at = self._config.clock()
        self.container_manager.save()
        self._register_names()
        spec = SandboxSpec(
            id=self.record.uid,
            hostname=self._config.machine.hostname if self._on_host_network else hostname_of(self.pod),
            ip=self.record.ip,
            hosts_file=self.folder.hosts_file,
            labels={NODE_LABEL: self._config.name, OWN_LABEL: str(self.record.key)},
        )
        try:
            self.container_manager.attach_sandbox(await self._shared.sandboxes.create(spec))
        except (OSError, ShimLost, SandboxFailed) as refused:
            cause = refused.message if isinstance(refused, MessageError) else str(refused)
            message = Message("FailedCreatePodSandBox", {"cause": cause})
            self._pod_blocked = Waiting("ContainerCreating", message)
            self._retry_at = self._config.clock() + SANDBOX_RETRY_SECONDS
            self._events.emit(self.pod, message, warning=True)
            return False
        return True

    def _register_names(self) -> None:
        self._shared.hosts_files.register(self.record.uid, pod_hosts(self.pod, self.record.ip), self.folder.hosts_file)

    @property
    def _on_host_network(self) -> bool:
        return bool(self.pod["spec"].get("hostNetwork"))

    # References

    async def _load_references(self) -> None:
        """Look again at everything the pod refers to; what was missing may be there, files may have to change."""
        self._references_stale = False
        self._blocked.clear()
        self._pod_blocked = self._retry_at = None
        if self.record.finished or self.record.outcome is not None:
            return  # no container starts any more: nothing is read, and no token requested, for a rejected pod
        names, references = self._shared.hosts_files, self._shared.reference_watcher
        await names.synced()
        if self.container_manager.sandbox is not None:
            self._register_names()
        lookup = await references.acquire(self.record.uid, references_of(self.pod), self._references_changed)
        if self._shared.token_manager is not None:
            issued = await self._shared.token_manager.issue(self.pod, self._config.clock())
            lookup, self._retry_at = replace(lookup, issued=issued), issued.refresh_at
        services = names.services(self.record.namespace)
        if (access := self._shared.api_access) is not None:
            lookup = access.with_root_ca(lookup, self.record.namespace)
            services = access.reachable_services(services) if self._on_host_network else services
        self._spec_context = replace(
            self._spec_context,
            services=services,
            lookup=lookup,
            offered_env=self._shared.environment(),
        )
        if self.container_manager.sandbox is not None and any(
            has_files(v) for v in self.pod["spec"].get("volumes") or ()
        ):
            volumes.refresh(self.pod, self.folder, make_env_context(self.pod, self.record, self._spec_context))

    def _references_changed(self) -> None:
        self._references_stale = True
        self.wake()

    # Reports to the API; the end

    async def _publish_status(self) -> PublishResult:
        result = PublishResult.DONE if self._skip_status else await self._publisher.publish(self._status())
        if result is not PublishResult.DONE or not (self.record.finished and is_terminating(self.pod)) or self._deleted:
            return result
        await self._archive_logs()  # first: a client that sees the job without the pod finds them
        result = await self._publisher.delete_pod()
        self._deleted = result is PublishResult.DONE
        return result

    def _status(self) -> Obj:
        host_ip, now, backoff = self._config.machine.host_ip, self._config.clock(), self._config.backoff
        had_sandbox = self.record.sandboxed_at or any(known.attempts for known in self.record.containers.values())
        pod_ip = host_ip if self._on_host_network else self.record.ip if had_sandbox else ""
        # With the conditions this node wrote last: a watch may still bring older ones.
        published = {c["type"]: c for c in self._publisher.published.get("conditions") or ()}
        seen = {c["type"]: c for c in (self.pod.get("status") or {}).get("conditions") or ()}
        pod = {**self.pod, "status": {"conditions": list({**seen, **published}.values())}}
        addresses = PodAddresses(host_ip, pod_ip)
        return pod_status(pod, self.record, self._runtime_state(), addresses, now=now, backoff=backoff)

    async def _confirm_gone(self) -> bool:
        result, pod = await self._publisher.get_pod()
        if result is PublishResult.RETRY:
            self._retry_at = self._config.clock() + self._publisher.backoff_seconds
            return False
        self._maybe_gone = False
        if pod is not None:
            self.update(pod)
        return result is PublishResult.GONE

    async def _archive_logs(self) -> None:
        if not self._logs_archived:
            await self._shared.archive_logs(self.folder, self.record, self.pod)
            self._logs_archived = True

    async def _tear_down(self) -> None:
        """The pod is gone: kill what is left of it, archive its logs and remove every other trace."""
        await self.container_manager.close()
        self._shared.hosts_files.remove(self.record.uid)
        await self._archive_logs()
        self.folder.remove()
        volumes.remove(self.record.uid)
        self.is_torn_down = True
        self.wake()  # for clients that follow a log of the pod: it is complete
