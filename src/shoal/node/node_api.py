"""What a node serves besides the status of its pods: logs, commands in containers, measurements."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime

import psutil

from shoal.cluster.client import ExecRequest, LogOptions, NodeUsage, Streams, Usage
from shoal.kube.errors import ApiError, bad_request, not_found, unavailable
from shoal.kube.kinds import POD
from shoal.kube.messages import Message
from shoal.kube.objects import Obj, name_of, uid_of
from shoal.node import pod_lifecycle
from shoal.node.checkpoint import ContainerRun
from shoal.node.config import NodeConfig
from shoal.node.container_record_recovery import process_id
from shoal.node.log_reader import read_log
from shoal.node.messages import text
from shoal.node.pod_lifecycle import all_containers
from shoal.node.pod_worker import PodWorker
from shoal.node.sandbox.interface import Execution, ShimLost

CONNECT_SECONDS = 10.0  # to a port of a pod
MIN_WINDOW_SECONDS = 0.25

Sample = dict[tuple[str, str], tuple[float, int]]  # (pod uid, process) -> cpu seconds, bytes


class NodeApi:
    """`NodeServices` of one node, over the pods its workers hold."""

    def __init__(self, config: NodeConfig, workers: Mapping[str, PodWorker]) -> None:
        self._config = config
        self._workers = workers
        self._last_sample: tuple[float, Sample, float] | None = None

    # Logs

    def logs(self, pod: Obj, options: LogOptions) -> AsyncIterator[bytes]:
        """Rejects at once, so that the caller may begin its response before there is a line to send."""
        worker = self._worker(pod)
        name = _container_name(pod, options.container)
        run = _run_for_logs(worker, name, previous=options.previous)
        return read_log(
            worker.folder.log_file(name, run.attempt),
            options,
            now=datetime.fromtimestamp(self._config.clock(), UTC),
            is_over=lambda: run.is_over or worker.is_torn_down or worker.record.container(name).run is not run,
            subscribe=worker.subscribe,
        )

    def _worker(self, pod: Obj) -> PodWorker:
        worker = self._workers.get(uid_of(pod))
        if worker is None:
            raise not_found(POD, name_of(pod))
        return worker

    # Commands

    async def execute(self, pod: Obj, request: ExecRequest, streams: Streams) -> int:
        worker = self._worker(pod)
        name = _container_name(pod, request.container)
        run = worker.record.container(name).run
        if run is None or not run.is_running or worker.container_manager.sandbox is None:
            raise _not_running(pod, name)
        try:
            execution = await worker.container_manager.sandbox.execute(
                process_id(name, run.attempt), request.command, tty=request.tty
            )
        except (ShimLost, ProcessLookupError) as lost:  # it ended just now
            raise _not_running(pod, name) from lost
        except OSError as refused:  # by the machine, with the reason
            raise unavailable(str(refused)) from None
        return await _stream(execution, streams)

    # Ports

    async def connect(self, pod: Obj, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        sandbox = self._worker(pod).container_manager.sandbox
        if sandbox is None:
            raise ConnectionRefusedError(f"pod {name_of(pod)} is not running")
        try:
            connection = await sandbox.dial("localhost", port, timeout=CONNECT_SECONDS)
        except ShimLost as lost:
            raise ConnectionRefusedError(f"pod {name_of(pod)} is not running") from lost
        return await asyncio.open_connection(sock=connection)

    # Measurements

    async def usage(self) -> NodeUsage:
        """Processor use since the last question; the first question waits a moment for a second sample."""
        if self._last_sample is None:
            self._last_sample = self._sample()
            await asyncio.sleep(MIN_WINDOW_SECONDS)
        at, sample, machine = self._sample()
        then, before, machine_before = self._last_sample
        if at - then >= MIN_WINDOW_SECONDS:
            self._last_sample = (at, sample, machine)
        window = max(at - then, 1e-6)
        pods: dict[str, dict[str, Usage]] = {}
        for (uid, process), (seconds, memory) in sample.items():
            spent = max(seconds - before.get((uid, process), (seconds, 0))[0], 0.0)
            pods.setdefault(uid, {})[process.rpartition(".")[0]] = Usage(spent / window, memory)
        if self._config.share == 1:
            whole = Usage((machine - machine_before) / window, psutil.virtual_memory().used)
        else:  # the machine's numbers are those of several nodes
            used = [usage for containers in pods.values() for usage in containers.values()]
            whole = Usage(sum(each.cpu_cores for each in used), sum(each.memory_bytes for each in used))
        return NodeUsage(whole, pods, window)

    def _sample(self) -> tuple[float, Sample, float]:
        sample: Sample = {}
        for uid, worker in self._workers.items():
            if worker.container_manager.sandbox is None:
                continue
            with suppress(ShimLost):
                for process, used in worker.container_manager.sandbox.usage().items():
                    sample[(uid, process)] = used
        times = psutil.cpu_times()
        return time.monotonic(), sample, sum(times) - times.idle - times.iowait - times.guest - times.guest_nice


# Which container is meant


def _container_name(pod: Obj, requested: str) -> str:
    names = [c["name"] for c in all_containers(pod)]
    if requested in names:
        return requested
    if requested:
        raise bad_request(text(Message("Request.UnknownContainer", {"container": requested, "pod": name_of(pod)})))
    mains = [c["name"] for c in pod["spec"]["containers"]]
    if len(mains) > 1:
        raise bad_request(text(Message("Request.NoContainer", {"pod": name_of(pod), "containers": names})))
    return str(mains[0])


def _run_for_logs(worker: PodWorker, name: str, *, previous: bool) -> ContainerRun:
    known = worker.record.container(name)
    parameters = {"container": name, "pod": worker.record.name}
    if previous:
        if known.run is not None and pod_lifecycle.will_restart(worker.pod, worker.record, name):
            return known.run  # the container waits to run again: what it did last is already the past
        if known.last is None:
            raise bad_request(text(Message("Request.NoPreviousContainer", parameters)))
        return known.last
    if known.run is None or (known.run.started_at is None and not known.run.is_over):
        if known.last is not None:
            return known.last
        parameters["reason"] = worker.waiting_reason(name)
        raise bad_request(text(Message("Request.WaitingContainer", parameters)))
    return known.run


def _not_running(pod: Obj, name: str) -> ApiError:
    return bad_request(text(Message("Request.NotRunning", {"container": name, "pod": name_of(pod)})))


# Streams


async def _stream(execution: Execution, streams: Streams) -> int:
    """Carry bytes both ways until the command ends; a client that disconnects ends the command."""

    async def forward_stdin() -> None:
        if streams.stdin is not None:
            with suppress(BrokenPipeError, ConnectionResetError):
                async for data in streams.stdin:
                    await execution.write(data)
        await execution.close_stdin()

    async def forward_resize() -> None:
        if streams.resize is not None:
            async for columns, rows in streams.resize:
                await execution.resize(columns, rows)

    forwarders = [asyncio.create_task(forward_stdin()), asyncio.create_task(forward_resize())]
    try:
        async for stream, data in execution.output():
            await (streams.stdout if stream == 1 else streams.stderr)(data)
        return await execution.wait()
    except BaseException:
        await execution.kill()
        raise
    finally:
        for task in forwarders:
            task.cancel()
