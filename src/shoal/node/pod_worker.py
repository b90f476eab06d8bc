"""One pod on this node, from the moment it is bound here until nothing of it is left.

A worker is woken by events (the pod changed, a process ended, a probe's verdict, an object appeared, a moment
was reached) and makes one pass: ask `lifecycle.decide`, take the actions, tell the API once. What it needs to
go on after a crash is in the record before it acts, so a pass after a restart is an ordinary pass.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from dataclasses import replace

from shoal.kube.objects import Obj, annotations_of, is_terminating, labels_of
from shoal.kube.quantity_format import requests_of
from shoal.logs import Logger
from shoal.node import pod_lifecycle, volumes
from shoal.node.checkpoint import Outcome, PodFolder, PodRecord
from shoal.node.config import NodeConfig
from shoal.node.container_manager import Runs
from shoal.node.container_spec import CannotStart, Premises, process_spec, surroundings
from shoal.node.events import Events
from shoal.node.pod_lifecycle import (
    Action,
    BeginStop,
    Condemn,
    Kill,
    RunPreStop,
    Situation,
    Start,
    Terminate,
    Waiting,
)
from shoal.node.pod_references import references_of
from shoal.node.pod_status import Place, pod_status
from shoal.node.sandbox.interface import KeeperLost, Sandbox, SandboxSpec
from shoal.node.sandbox.shim_client import SandboxFailed
from shoal.node.service_names import hostname_of, neighbour
from shoal.node.shared_state import NODE_LABEL, OWN_LABEL, Host
from shoal.node.status_manager import Answered, Publisher
from shoal.node.volume_files import is_written

log = Logger(__name__)

TERMINAL = ("Succeeded", "Failed")
SANDBOX_RETRY_SECONDS = 5.0
MOST_STEPS = 50


class PodWorker:
    """`run` ends when nothing of the pod is left here. `update` and `gone` may be called at any time."""

    def __init__(
        self,
        pod: Obj,
        record: PodRecord,
        folder: PodFolder,
        sandbox: Sandbox | None,
        *,
        host: Host,
        config: NodeConfig,
        events: Events,
    ) -> None:
        self._api_access = host.api_access if host.api_access is not None and host.api_access.is_for(pod) else None
        self.pod = self._with_api_access(pod)
        self.requests = requests_of(pod)
        self.record = record
        self.folder = folder
        self.is_torn_down = False
        self._host = host
        self._config = config
        self._events = events
        self._awake = asyncio.Event()
        self._listeners: set[Callable[[], None]] = set()
        self.runs = Runs(lambda: self.pod, record, folder, config=config, events=events, wake=self.wake)
        self._publisher = Publisher(host.cluster, pod)
        self._premises = Premises(config, offered_env=host.environment(), projects=host.projects)
        self._blocked: dict[str, Waiting] = {}
        self._pod_blocked: Waiting | None = None
        self._last_block: Waiting | None = None
        self._retry_at: float | None = None
        self._references_stale = True
        self._maybe_gone = False
        self._deleted = False  # the API was told that the pod may go
        self._has_kept_logs = False
        self._said: set[tuple[str, int]] = set()  # back-offs of (container, attempt) that people were told of
        # A pod that ended before this agent began has been told about; its record may not even be here any more.
        self._silent = record.finished and (pod.get("status") or {}).get("phase") in TERMINAL
        if sandbox is not None:
            self.runs.settle(sandbox)

    # What others tell the worker

    def update(self, pod: Obj) -> None:
        if is_terminating(self.pod) and not is_terminating(pod):
            return  # a deletion cannot be taken back: this is an older version
        pod = self._with_api_access(pod)
        self._references_stale |= _differs(self.pod, pod)
        self.pod = pod
        self.wake()

    def _with_api_access(self, pod: Obj) -> Obj:
        return pod if self._api_access is None else self._api_access.added_to(pod)

    def gone(self) -> None:
        """The pod seems to be gone from the API."""
        self._maybe_gone = True
        self.wake()

    def waiting_reason(self, name: str) -> str:
        """Why a container has not been started, in one word, for those who ask for its logs."""
        status = self._status()
        for told in [*status.get("initContainerStatuses", ()), *status["containerStatuses"]]:
            if told["name"] == name and "waiting" in told["state"]:
                return str(told["state"]["waiting"]["reason"])
        return "ContainerCreating"

    def wake(self) -> None:
        self._awake.set()
        for listener in list(self._listeners):
            listener()

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Have `listener` called at every change; the result takes it back."""
        self._listeners.add(listener)
        return lambda: self._listeners.discard(listener)

    # The story

    async def run(self) -> None:
        try:
            while True:
                self._awake.clear()
                try:
                    at = await self._pass()
                except Exception:
                    # A mistake of ours with one pod must not end the node; the next event or moment tries again.
                    log.exception("pass over a pod broke", pod=str(self.record.key))
                    at = self._config.clock() + SANDBOX_RETRY_SECONDS
                if self.is_torn_down:
                    return
                await self._sleep_until(at)
        finally:
            self.runs.release()
            self._host.references.release(self.record.uid)
            if self._host.accounts is not None:
                self._host.accounts.forget(self.record.uid)

    async def _pass(self) -> float | None:
        """One pass; returns when to make the next if nothing happens before."""
        if self._maybe_gone and await self._is_really_gone():
            await self._tear_down()
            return None
        self._heed_the_api()
        if self._references_stale:
            await self._look_up_references()
        wake_at = await self._advance()
        answer = await self._tell()
        if answer is Answered.GONE:
            self._maybe_gone = True
            return self._config.clock() + self._publisher.pause_seconds
        pause = self._config.clock() + self._publisher.pause_seconds if answer is Answered.AGAIN else None
        return min((at for at in (wake_at, pause, self._retry_at) if at is not None), default=None)

    async def _advance(self) -> float | None:
        """Act until there is nothing left to do now; a container that ends as fast as it starts must not hold us."""
        for _ in range(MOST_STEPS):
            decision = pod_lifecycle.decide(
                self.pod, self.record, self._situation(), now=self._config.clock(), backoff=self._config.backoff
            )
            for action in decision.actions:
                await self._take(action)
            if not decision.actions:
                break
        else:
            return self._config.clock()
        if decision.is_finished and not self.record.finished:
            await self._finish()
        self._note_backoffs()
        return decision.wake_at

    def _situation(self) -> Situation:
        return Situation(self._blocked, self._pod_blocked, self.runs.unhealthy)

    async def _sleep_until(self, at: float | None) -> None:
        loop = asyncio.get_running_loop()
        timer = None if at is None else loop.call_later(max(at - self._config.clock(), 0.0), self._awake.set)
        try:
            await self._awake.wait()
        finally:
            if timer is not None:
                timer.cancel()

    # Actions

    async def _take(self, action: Action) -> None:
        match action:
            case Start(name):
                await self._start(name)
            case BeginStop(name, grace, why):
                self.record.container(name).mark_stopping(self._config.clock(), grace, why)
                self.runs.stop_probing(name)
                self.runs.unhealthy.pop(name, None)
                self.runs.save()
                spoken = why if why.startswith("Container ") else f"Stopping container {name}"
                self._events.note(self.pod, "Killing", spoken, container=name)
            case RunPreStop(name):
                self.runs.run_pre_stop(name)
            case Terminate(name):
                # Signals go out before they are noted: after a crash a second one does no harm, a missing one would.
                await self.runs.signal(name, signal.SIGTERM)
                self._note_stop(name, termed=True)
            case Kill(name):
                await self.runs.signal(name, signal.SIGKILL)
                self._note_stop(name, killed=True)
            case Condemn(outcome):
                self.condemn(outcome)

    def _note_stop(self, name: str, *, termed: bool = False, killed: bool = False) -> None:
        run = self.record.container(name).run
        if run is None or run.stopping is None:
            return
        run.stopping.termed_at = self._config.clock() if termed else run.stopping.termed_at
        run.stopping.killed = killed or run.stopping.killed
        self.runs.save()

    def condemn(self, outcome: Outcome) -> None:
        self.record.outcome = outcome
        self.runs.save()
        self._events.note(self.pod, outcome.reason, outcome.message, warning=True)

    async def _start(self, name: str) -> None:
        container = pod_lifecycle.find_container(self.pod, name)
        assert container is not None
        known = self.record.container(name)
        meant = known.run is not None and known.run.started_at is None and not known.run.is_over
        attempt = known.run.attempt if meant and known.run is not None else known.attempts
        try:
            spec = process_spec(self.pod, container, self.record, self.folder, self._premises, attempt)
        except CannotStart as cannot:
            self._block(name, cannot)
            return
        if not await self._ensure_sandbox():
            return
        if not meant:
            await self._host.keep_metrics(self.folder, self.record, name)
            if attempt > 1:
                await self._host.keep_logs(self.folder, self.record, self.pod, before=attempt - 1)
            known.mark_intended(self._config.clock(), pod_lifecycle.next_backoff(known, self._config.backoff))
            self.runs.save()
            self.folder.drop_logs_before(name, attempt - 1)
        await self.runs.start(name, spec)

    def _block(self, name: str, cannot: CannotStart) -> None:
        if cannot.is_volume:
            self._pod_blocked = cannot.waiting
            if cannot.waiting != self._last_block:
                self._events.note(self.pod, "FailedMount", cannot.waiting.message, warning=True)
        else:
            self._blocked[name] = cannot.waiting
            if cannot.path is None or cannot.waiting != self._last_block:  # else said, and only looked at again
                said = f"Error: {cannot.waiting.message}"
                self._events.note(self.pod, "Failed", said, container=name, warning=True)
        self._last_block = cannot.waiting
        if cannot.path is not None:
            self.runs.wake_when_near(cannot.path, self._references_changed)

    def _note_backoffs(self) -> None:
        """Say once for every end that the container waits before it runs again."""
        now = self._config.clock()
        for name, known in self.record.containers.items():
            if self.record.finished or known.run is None or not known.run.is_over:
                continue
            waits = pod_lifecycle.restart_at(known, self._config.backoff) > now
            if (
                waits
                and pod_lifecycle.will_restart(self.pod, self.record, name)
                and (name, known.attempts) not in self._said
            ):
                self._said.add((name, known.attempts))
                said = f"Back-off restarting failed container {name} in pod {self.record.name}"
                self._events.note(self.pod, "BackOff", said, container=name, warning=True)

    async def _ensure_sandbox(self) -> bool:
        """A place for the pod's processes; where it cannot be had now the pod waits and tries again."""
        if self.runs.sandbox is not None:
            return True
        self.record.sandboxed_at = self._config.clock()
        self.runs.save()
        try:
            self.runs.settle(await self._host.sandboxes.create(self._sandbox_spec()))
        except (OSError, KeeperLost, SandboxFailed) as refused:
            self._pod_blocked = Waiting("ContainerCreating", f"the pod's sandbox could not be made: {refused}")
            self._retry_at = self._config.clock() + SANDBOX_RETRY_SECONDS
            self._events.note(self.pod, "FailedCreatePodSandBox", self._pod_blocked.message, warning=True)
            return False
        return True

    def _register_names(self) -> None:
        self._host.names.register(self.record.uid, neighbour(self.pod, self.record.ip), self.folder.hosts_file)

    def _sandbox_spec(self) -> SandboxSpec:
        self._register_names()
        return SandboxSpec(
            id=self.record.uid,
            hostname=self._config.machine.hostname if self._on_host_network else hostname_of(self.pod),
            ip=self.record.ip,
            hosts_file=self.folder.hosts_file,
            labels={NODE_LABEL: self._config.name, OWN_LABEL: str(self.record.key)},
        )

    @property
    def _on_host_network(self) -> bool:
        return bool(self.pod["spec"].get("hostNetwork"))

    # References

    async def _look_up_references(self) -> None:
        """Look again at everything the pod refers to; what was missing may be there, files may have to change."""
        self._references_stale = False
        self._blocked.clear()
        self._pod_blocked = self._retry_at = None
        if self.record.finished or self.record.outcome is not None:
            return  # no container starts any more: nothing is read, and no token requested, for a rejected pod
        names, references = self._host.names, self._host.references
        await names.synced()
        if self.runs.sandbox is not None:
            self._register_names()
        lookup = await references.hold(self.record.uid, references_of(self.pod), self._references_changed)
        if self._host.accounts is not None:
            issued = await self._host.accounts.issue(self.pod, self._config.clock())
            lookup, self._retry_at = replace(lookup, issued=issued), issued.again_at
        services = names.services(self.record.namespace)
        if (access := self._host.api_access) is not None:
            lookup = access.completed(lookup, self.record.namespace)
            services = access.reachable_services(services) if self._on_host_network else services
        self._premises = replace(
            self._premises,
            services=services,
            lookup=lookup,
            offered_env=self._host.environment(),
        )
        if self.runs.sandbox is not None and any(is_written(v) for v in self.pod["spec"].get("volumes") or ()):
            volumes.refresh(self.pod, self.folder, surroundings(self.pod, self.record, self._premises))

    def _references_changed(self) -> None:
        self._references_stale = True
        self.wake()

    # Telling the API, and the end

    def _heed_the_api(self) -> None:
        """A verdict somebody else wrote (the node was given up, the pod was evicted) holds here too."""
        if self._retry_at is not None and self._config.clock() >= self._retry_at:
            self._references_stale = True
        status = self.pod.get("status") or {}
        if status.get("phase") in TERMINAL and not self.record.finished and self.record.outcome is None:
            self.record.outcome = Outcome(status["phase"], status.get("reason") or "", status.get("message") or "")
            self.runs.save()

    async def _tell(self) -> Answered:
        answer = Answered.DONE if self._silent else await self._publisher.publish(self._status())
        if answer is not Answered.DONE or not (self.record.finished and is_terminating(self.pod)) or self._deleted:
            return answer
        await self._keep_logs()  # first: a client that sees the job without the pod finds them
        answer = await self._publisher.delete_for_good()
        self._deleted = answer is Answered.DONE
        return answer

    def _status(self) -> Obj:
        place = Place(self._config.machine.host_ip, self._pod_ip)
        now, backoff = self._config.clock(), self._config.backoff
        return pod_status(self._view(), self.record, self._situation(), place, now=now, backoff=backoff)

    @property
    def _pod_ip(self) -> str:
        if self._on_host_network:
            return self._config.machine.host_ip
        had_place = self.record.sandboxed_at or any(known.attempts for known in self.record.containers.values())
        return self.record.ip if had_place else ""

    def _view(self) -> Obj:
        """The pod with the conditions this node told last: a watch may still bring older ones."""
        told = {c["type"]: c for c in self._publisher.told.get("conditions") or ()}
        seen = {c["type"]: c for c in (self.pod.get("status") or {}).get("conditions") or ()}
        return {**self.pod, "status": {"conditions": list({**seen, **told}.values())}}

    async def _finish(self) -> None:
        """Nothing runs and nothing will: free what the pod held. Its logs stay until the pod goes."""
        await self.runs.close()
        self._host.names.forget(self.record.uid)
        for name in list(self.record.containers):
            await self._host.keep_metrics(self.folder, self.record, name)
        self.record.finished = True
        self.runs.save()

    async def _is_really_gone(self) -> bool:
        answer, pod = await self._publisher.look()
        if answer is Answered.AGAIN:
            self._retry_at = self._config.clock() + self._publisher.pause_seconds
            return False
        self._maybe_gone = False
        if pod is not None:
            self.update(pod)
        return answer is Answered.GONE

    async def _keep_logs(self) -> None:
        if not self._has_kept_logs:
            await self._host.keep_logs(self.folder, self.record, self.pod)
            self._has_kept_logs = True

    async def _tear_down(self) -> None:
        """The pod is gone: kill what is left of it, archive its logs and remove every other trace."""
        await self.runs.close()
        self._host.names.forget(self.record.uid)
        await self._keep_logs()
        self.folder.remove()
        volumes.forget(self.record.uid)
        self.is_torn_down = True
        self.wake()  # whoever follows a log of the pod: nothing more will come


def _differs(old: Obj, new: Obj) -> bool:
    """Whether anything changed that a volume, a variable or a start depends on; most changes are of the status."""
    same = old["spec"] == new["spec"] and labels_of(old) == labels_of(new)
    return not same or annotations_of(old) != annotations_of(new)
