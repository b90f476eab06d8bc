"""The processes of one pod: starts them, observes their ends, executes their probes and hooks.

`ContainerManager` acts on the sandbox and writes what happened into the record; it makes no decisions. Whatever happens
independently (an end, a verdict, a completed hook) changes the record and wakes the worker, which then calls
`pod_lifecycle.decide` for the next actions.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from shoal.kube.messages import Message
from shoal.kube.objects import Obj
from shoal.logs import Logger
from shoal.node import container_record_recovery, pod_lifecycle, probe_handlers
from shoal.node.checkpoint import ContainerRun, PodFolder, PodRecord
from shoal.node.config import NodeConfig
from shoal.node.container_record_recovery import process_id
from shoal.node.events import Events
from shoal.node.inotify import FolderWatch
from shoal.node.log_reader import LogFormatter
from shoal.node.probe_results import ProbeKind, ProbeResult
from shoal.node.probes import Prober, ProbeUpdate
from shoal.node.sandbox.interface import Exited, ProcessSpec, Sandbox, ShimLost
from shoal.training_progress import visible

log = Logger(__name__)

MAX_MESSAGE_BYTES = 4096
FALLBACK_BYTES = 2048
FALLBACK_LINES = 80
HOOK_SECONDS = 3600.0


class ContainerManager:
    """The running side of a pod. `pod` is a function, because the manifest's metadata may change."""

    def __init__(
        self,
        pod: Callable[[], Obj],
        record: PodRecord,
        folder: PodFolder,
        *,
        config: NodeConfig,
        events: Events,
        wake: Callable[[], None],
    ) -> None:
        self.sandbox: Sandbox | None = None
        self.unhealthy: dict[str, Message] = {}
        self._pod = pod
        self._record = record
        self._folder = folder
        self._config = config
        self._events = events
        self._wake = wake
        self._probers: dict[str, Prober] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def save(self) -> None:
        self._folder.save(self._record)

    def _save_and_wake(self) -> None:
        """Store a change that happened by itself, and wake the worker."""
        self._wake()
        self._save_if_possible()

    def _save_if_possible(self) -> None:
        """For what has happened already. A full disk must not keep it from the worker: the sandbox remembers starts
        and ends too, and the next step writes the record again."""
        try:
            self.save()
        except OSError as refused:
            log.warning("pod record not written", pod=str(self._record.key), error=str(refused))

    def attach_sandbox(self, sandbox: Sandbox) -> None:
        """Take over a sandbox with whatever runs in it."""
        self.sandbox = sandbox
        for name in self._record.running():
            run = self._record.container(name).run
            assert run is not None
            if run.hook == "running":
                run.hook = "done"  # it may have run; running it twice would be worse than once
            if run.stopping is not None and run.stopping.hook == "running":
                run.stopping.hook = "done"
            self._attach(name, run)

    async def start(self, name: str, spec: ProcessSpec) -> None:
        """Start what is on record as meant. Asking twice for the same process starts it once."""
        assert self.sandbox is not None
        known = self._record.container(name)
        try:
            outcome = await self.sandbox.start(spec)
        except ShimLost:
            self.mark_sandbox_lost(Message("Lost.Starting"))
            return
        if isinstance(outcome, Exited):
            known.mark_ended(container_record_recovery.ended_by(outcome, never_ran=True))
            message = Message("Failed", {"cause": outcome.message})
            self._events.emit(self._pod(), message, container=name, warning=True)
            self._save_if_possible()
            return
        known.mark_started(outcome.at)
        self.unhealthy.pop(name, None)
        self._save_if_possible()
        self._events.emit(self._pod(), Message("Started", {"container": name}), container=name)
        assert known.run is not None
        self._attach(name, known.run)
        container = pod_lifecycle.find_container(self._pod(), name) or {}
        if hook := (container.get("lifecycle") or {}).get("postStart"):
            known.run.hook = "running"
            self._save_if_possible()
            self._spawn(self._post_start(container, known.run, hook))

    def stop_probing(self, name: str) -> None:
        prober = self._probers.pop(name, None)
        if prober is not None:
            prober.stop()

    def run_pre_stop(self, name: str) -> None:
        run = self._record.container(name).run
        container = pod_lifecycle.find_container(self._pod(), name)
        assert run is not None
        assert run.stopping is not None
        assert container is not None
        run.stopping.hook = "running"
        self._save_if_possible()
        self._spawn(self._pre_stop(container, run))

    async def signal(self, name: str, number: signal.Signals) -> None:
        run = self._record.container(name).run
        if self.sandbox is None or run is None:
            return
        try:
            await self.sandbox.signal(process_id(name, run.attempt), number)
        except ProcessLookupError:
            return  # it ended by itself, and its exit status is about to arrive
        except ShimLost:
            self.mark_sandbox_lost(Message("Lost.Signalled"))

    def mark_sandbox_lost(self, why: Message) -> None:
        """The shim is gone and its processes with it."""
        lost = container_record_recovery.mark_running_lost(self._record, self._config.clock(), why)
        log.warning("shim lost", pod=str(self._record.key), containers=lost)
        self.sandbox = None
        for name in list(self._probers):
            self.stop_probing(name)
        container_record_recovery.reset_for_new_sandbox(self._pod(), self._record)
        self._save_and_wake()

    async def close(self) -> None:
        """Kill what is left and give the place back."""
        self.detach()
        if self.sandbox is not None:
            with suppress(ShimLost):
                await self.sandbox.close()
            self.sandbox = None

    async def shut_down(self, grace_seconds: float) -> None:
        """Stop every process as a machine that is shut down does: TERM, the grace, KILL.
        The end of each is recorded; what becomes of the pod is decided when the node starts again."""
        self.detach()
        if self.sandbox is None:
            return
        with suppress(ShimLost):
            await stop_all(self.sandbox, grace_seconds)
            container_record_recovery.recover_from_sandbox(self._record, self.sandbox.processes())
            self._save_and_wake()
        await self.close()

    def detach(self) -> None:
        """Stop watching; the processes go on."""
        for name in list(self._probers):
            self.stop_probing(name)
        for task in list(self._tasks):
            task.cancel()

    def release(self) -> None:
        """The pod's worker is done. It and this hold each other: let go, so that both are gone at once."""
        pod = self._pod()
        self.detach()
        self._pod, self._wake = (lambda: pod), lambda: None

    def wake_on_change(self, path: Path, wake: Callable[[], None]) -> None:
        """Call `wake` once something changes in the folder of `path`, or the nearest one above it that exists."""
        self._spawn(_wait_for_change(path, _path_state(path), wake))

    # What runs beside the worker

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _attach(self, name: str, run: ContainerRun) -> None:
        self._spawn(self._await_end(name, run))
        container = pod_lifecycle.find_container(self._pod(), name)
        if container is None or run.stopping is not None or not any(container.get(kind) for kind in ProbeKind):
            return

        def emit_unhealthy(kind: ProbeKind, output: Message | str) -> None:
            message = Message("Unhealthy", {"probe": kind.label, "output": output})
            self._events.emit(self._pod(), message, container=name, warning=True)

        prober = Prober(
            container,
            partial(self._run_handler, container, run),
            passed_startup=run.passed_startup,
            on_update=partial(self._on_probe_update, name, run),
            on_failure=emit_unhealthy,
        )
        self._probers[name] = prober
        prober.start(max(self._config.clock() - (run.started_at or 0.0), 0.0))

    async def _await_end(self, name: str, run: ContainerRun) -> None:
        assert self.sandbox is not None
        try:
            exited = await self.sandbox.wait(process_id(name, run.attempt))
        except ShimLost:
            if not run.is_over:
                self.mark_sandbox_lost(Message("Lost.Running"))
            return
        known = self._record.container(name)
        if known.run is not run:
            return
        self.stop_probing(name)
        self.unhealthy.pop(name, None)
        known.mark_ended(
            container_record_recovery.ended_by(exited, message=self._termination_message(name, run, exited))
        )
        self._save_and_wake()

    async def _run_handler(self, container: Obj, run: ContainerRun, handler: Obj, timeout: float) -> ProbeResult:
        if self.sandbox is None:
            return ProbeResult(False, Message("Handler.ContainerGone"))
        return await probe_handlers.run_handler(
            self.sandbox,
            process_id(container["name"], run.attempt),
            self._pod(),
            container,
            handler,
            ip=self._record.ip or self._config.machine.host_ip,
            timeout=timeout,
        )

    def _on_probe_update(self, name: str, run: ContainerRun, update: ProbeUpdate) -> None:
        if update.kind is ProbeKind.READINESS:
            run.ready = update.ok
        elif update.kind is ProbeKind.STARTUP and update.ok:
            run.passed_startup = True
        elif not update.ok:
            probe = update.kind.label.lower()
            self.unhealthy[name] = Message("Killing.Probe", {"container": name, "probe": probe})
        self._save_and_wake()

    async def _post_start(self, container: Obj, run: ContainerRun, hook: Obj) -> None:
        result = await self._run_handler(container, run, hook, HOOK_SECONDS)
        run.hook = "done" if result.ok else "failed"
        if not result.ok and not run.is_over:
            name, message = container["name"], Message("FailedPostStartHook", {"output": result.output})
            self._events.emit(self._pod(), message, container=name, warning=True)
            self.unhealthy[name] = Message("Killing.PostStartHook", {"container": name})
        self._save_and_wake()

    async def _pre_stop(self, container: Obj, run: ContainerRun) -> None:
        stopping = run.stopping
        assert stopping is not None
        result = await self._run_handler(container, run, container["lifecycle"]["preStop"], HOOK_SECONDS)
        if not result.ok:
            message = Message("FailedPreStopHook", {"output": result.output})
            self._events.emit(self._pod(), message, container=container["name"], warning=True)
        stopping.hook = "done"
        self._save_and_wake()

    def _termination_message(self, name: str, run: ContainerRun, exited: Exited) -> str:
        """What the container left in its termination message, or the end of its log where it requests that."""
        container = pod_lifecycle.find_container(self._pod(), name) or {}
        text = ""
        with suppress(OSError), self._folder.message_file(name, run.attempt).open("rb") as file:
            text = file.read(MAX_MESSAGE_BYTES).decode(errors="replace")
        falls_back = container.get("terminationMessagePolicy") == "FallbackToLogsOnError"
        if text or not falls_back or exited.code == 0:
            return text
        return _log_end(self._folder.log_file(name, run.attempt))


def _path_state(path: Path) -> tuple[Path, bool]:
    """The nearest folder above `path` that exists, and whether it does itself."""
    return next(parent for parent in path.parents if parent.is_dir()), path.exists()


async def _wait_for_change(path: Path, before: tuple[Path, bool], wake: Callable[[], None]) -> None:
    folder, _ = before
    try:
        with FolderWatch(folder) as watch:
            if _path_state(path) == before:  # else it came before there was a watch
                await watch.changed()
    except OSError as refused:
        log.warning("folder not watched", folder=str(folder), error=str(refused))
        return
    wake()


def _log_end(path: Path) -> str:
    try:
        lines = path.read_bytes().splitlines()[-FALLBACK_LINES:]
    except OSError:
        return ""
    complete = [line for line in lines if line.count(b" ") >= 3]
    if not complete:
        return ""  # the join below would make a line of nothing
    texts = LogFormatter().format(b"\n".join(complete)).split(b"\n")
    shown = [visible(text.decode(errors="replace").rstrip("\r")) for text in texts]  # of progress bars the last state
    return ("\n".join(shown).rstrip("\n") + "\n").encode()[-FALLBACK_BYTES:].decode(errors="replace")


async def stop_all(sandbox: Sandbox, grace_seconds: float) -> None:
    """TERM to every process, KILL to those that outlive the grace period."""
    running = [name for name, state in sandbox.processes().items() if state.started and not state.exited]
    ends = [asyncio.ensure_future(sandbox.wait(name)) for name in running]
    for number, seconds in ((signal.SIGTERM, grace_seconds), (signal.SIGKILL, None)):
        for name, end in zip(running, ends, strict=True):
            if not end.done():
                with suppress(ProcessLookupError):
                    await sandbox.signal(name, number)
        if ends:
            await asyncio.wait(ends, timeout=seconds)  # after KILL without a limit: the kernel ends them
