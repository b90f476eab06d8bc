"""Following jobs until they end: every change of the job, and the output of its processes.

Copies are kept by watches that resume by themselves; a log is followed from the moment its container runs, so that a
pod that is removed right after its end has still been read to the last line. A log that breaks off is requested again
from the last line that was printed. A missing right to watch is reported, and so is a job with an unreadable status.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterable
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, cast

from shoal.cli.feasibility import OWNED_OBJECT_FAILED, FitResult, fit_of_event, fit_of_group, fit_of_pod
from shoal.cli.job_lookup import FoundJob
from shoal.cli.reasons import why_name_taken, why_waiting
from shoal.cli.wait_for import MAX_FAILURES, NOT_ALLOWED
from shoal.cluster.client import Cluster, LogOptions, OutcomeUnknown
from shoal.cluster.clock import Clock, SystemClock
from shoal.cluster.informer import INITIAL_BACKOFF_SECONDS, MAX_BACKOFF_SECONDS, Change, Informer
from shoal.dialects.capabilities import Gangs, OwnedObjects
from shoal.dialects.dialect import StateUnreadable
from shoal.engine import GroupRef, OwnedObjectRef, TaskRef
from shoal.engine.policies import ExternalGate
from shoal.kube.errors import ApiError
from shoal.kube.kinds import EVENT, POD
from shoal.kube.messages import MESSAGE, decode
from shoal.kube.objects import Key, Obj, annotations_of, uid_of
from shoal.training_progress import visible

OnChange = Callable[[FoundJob], None]
OnLogFailure = Callable[[str, str], None]  # the source of the log, and why it is unavailable


@dataclass(frozen=True, slots=True)
class LogSource:
    """The source of a line: the task, such as worker-0, and the prefix of its lines."""

    task: str
    head: str


OnLine = Callable[[FoundJob, LogSource, str], None]


@dataclass(frozen=True, slots=True)
class PodView:
    """What the pod of a task shows of it: where it is, and why it does not run; '' when it does."""

    pod_uid: str
    node: str = ""
    why: str = ""


OnPod = Callable[[FoundJob, str, PodView], None]  # the job, the task, its pod
OnGang = Callable[[FoundJob, str], None]  # the job, and why its gang is not let in; '' when it is
# the job, which of its pods and groups; None: it needs no place
OnFit = Callable[[FoundJob, str, FitResult | None], None]
# the job, and why something it needs cannot be made; each reason once
OnCreateFailure = Callable[[FoundJob, str], None]

_CREATE_FAILED = "FailedCreate"  # what the engine calls a pod that the cluster did not take
_PHASES_WITH_LOGS = ("Running", "Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class _Position:
    """How far a pod's log was read: the time of the last line, and how many lines of that time were printed."""

    stamp: str = ""
    lines: int = 0

    def after(self, stamp: str) -> _Position:
        return _Position(stamp, self.lines + 1 if stamp == self.stamp else 1)


@dataclass(frozen=True, slots=True)
class _LogFailure:
    """Why a log is not read to its end, and whether a retry is of no use."""

    sentence: str
    is_refusal: bool = False
    is_final: bool = False


class Follower:
    """Follows several jobs. `run` returns them as they were last seen: ended, or gone."""

    def __init__(
        self,
        cluster: Cluster,
        jobs: Iterable[FoundJob],
        *,
        on_change: OnChange = lambda _: None,
        on_line: OnLine | None = None,
        on_progress: OnLine = lambda *_: None,
        on_log_failure: OnLogFailure = lambda *_: None,
        on_pod: OnPod = lambda *_: None,
        on_gang: OnGang = lambda *_: None,
        on_create_failure: OnCreateFailure | None = None,
        on_fit: OnFit = lambda *_: None,
        is_over: Callable[[FoundJob], bool] = lambda found: found.state.is_ended,
        follows_log: Callable[[TaskRef, str], bool] = lambda *_: True,
        options: LogOptions | None = None,
        clock: Clock | None = None,
    ) -> None:
        """`on_progress` gets the states of a line that is not whole yet, such as a moving progress bar.
        `follows_log` selects the logs that are followed, by task and prefix, `options` how; later pods are read from
        their first line. `is_over` returns which jobs are no longer waited for."""
        self._cluster = cluster
        self._on_change = on_change
        self._on_line = on_line
        self._on_progress = on_progress
        self._on_log_failure = on_log_failure
        self._on_pod = on_pod
        self._on_gang = on_gang
        self._on_create_failure = on_create_failure
        self._on_fit = on_fit
        self._create_failures: set[tuple[str, str]] = set()  # shown, by job
        self._is_over = is_over
        self._follows_log = follows_log
        self._options = replace(options or LogOptions(), follow=True)
        self.jobs = {uid_of(job.manifest): job for job in jobs}
        self._open = set(self.jobs)
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._clock = clock or SystemClock()
        self._logs: dict[tuple[str, int], asyncio.Task[None]] = {}  # by pod and restarts of its container
        self._endless: set[tuple[str, int]] = set()  # logs that have no last line
        self._positions: dict[str, _Position] = {}  # by pod

    async def run(self) -> list[FoundJob]:
        places = {(id(job.dialect), job.namespace): job for job in self.jobs.values()}
        tasks = [self._spawn_required(self._watch_jobs(job)) for job in places.values()]
        if self._on_line is not None:
            namespaces = {job.namespace for job in self.jobs.values()}
            tasks += [self._spawn_required(self._watch_pods(name)) for name in namespaces]
            tasks += [asyncio.create_task(self._watch_groups(job)) for job in places.values()]
        if self._on_create_failure is not None:
            tasks += [asyncio.create_task(self._watch_create_failures(job)) for job in self.jobs.values()]
        try:
            await self._over
            final_logs = [log for container_run, log in self._logs.items() if container_run not in self._endless]
            await asyncio.gather(*final_logs, return_exceptions=True)
        finally:
            for task in (*tasks, *self._logs.values()):
                task.cancel()
            await asyncio.gather(*tasks, *self._logs.values(), return_exceptions=True)
        return list(self.jobs.values())

    def _spawn_required(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """A task without which nothing can be followed: an exception in it ends the whole."""

        def ended(task: asyncio.Task[None]) -> None:
            if not task.cancelled() and (broken := task.exception()) is not None:
                self._fail(broken)

        task = asyncio.create_task(work)
        task.add_done_callback(ended)
        return task

    def _fail(self, broken: BaseException) -> None:
        if not self._over.done():
            self._over.set_exception(broken)

    async def _watch_jobs(self, like: FoundJob) -> None:
        """The jobs of one kind in one namespace. One deleted before the first list is in no copy: it is over."""
        informer = Informer(
            self._cluster, like.dialect.kind, like.namespace, on_change=self._job_changed, fatal_codes=NOT_ALLOWED,
            max_failures=MAX_FAILURES,
        )  # fmt: skip
        running = self._spawn_required(informer.run())
        try:
            await informer.synced.wait()
            there = {uid_of(each) for each in informer.objects.values()}
            for uid, job in self.jobs.items():
                if job.dialect is like.dialect and job.namespace == like.namespace and uid not in there:
                    self._end(uid)
            await running
        finally:
            running.cancel()

    def _job_changed(self, change: Change) -> None:
        seen = change.new or change.old or {}
        known = self.jobs.get(uid_of(seen))
        if known is None:
            return
        if change.new is not None:
            known = self.jobs[uid_of(seen)] = FoundJob(change.new, known.dialect)
            try:
                is_over = self._is_over(known)
            except StateUnreadable as problem:
                self._fail(problem)
                return
            self._on_change(known)
        if change.new is None or is_over:
            self._end(uid_of(seen))

    def _end(self, uid: str) -> None:
        self._open.discard(uid)
        if not self._open and not self._over.done():
            self._over.set_result(None)

    async def _watch_groups(self, like: FoundJob) -> None:
        """The groups of the jobs of one kind in one namespace; who may not see them does without."""
        owned, gangs = like.dialect.capability(OwnedObjects), like.dialect.capability(Gangs)
        if owned is None or gangs is None:
            return

        def changed(change: Change) -> None:
            group = change.new
            for job in self.jobs.values():
                known = owned.observe_child(group or change.old or {}, job.manifest)
                if known is None:
                    continue
                fit = fit_of_group(group, roles_before(gangs, job.manifest, known[0])) if group is not None else None
                self._on_fit(job, f"group {change.key.name}", fit)
                if group is not None:
                    self._on_gang(job, gangs.pending_reason(group))

        informer = Informer(
            self._cluster, gangs.group, like.namespace, on_change=changed, fatal_codes=(*NOT_ALLOWED, 404)
        )
        with suppress(ApiError):
            await informer.run()

    async def _watch_create_failures(self, job: FoundJob) -> None:
        """The Events about one job that say why its pods or owned objects are not created: no object could say so."""
        uid, since = uid_of(job.manifest), self._clock.now()
        gates = job.job.policies.gates if job.job is not None else ()
        reasons = {_CREATE_FAILED, *(gate.reason for gate in gates if isinstance(gate, ExternalGate) and gate.reason)}

        def changed(change: Change) -> None:
            event = change.new or {}
            reported = uid, str(event.get("message") or "")
            message = decode(annotations_of(event).get(MESSAGE) or "")
            if (
                (event.get("reason") in reasons or (message is not None and message.reason == OWNED_OBJECT_FAILED))
                and reported not in self._create_failures
                and self._on_create_failure is not None
            ):
                self._create_failures.add(reported)
                self._on_create_failure(job, reported[1])
            if (fit := fit_of_event(event, message, since)) is not None:
                self._on_fit(self.jobs[uid], "an owned object", fit)

        fields = f"involvedObject.uid={uid}"
        informer = Informer(
            self._cluster, EVENT, job.namespace, fields=fields, on_change=changed, fatal_codes=NOT_ALLOWED
        )
        with suppress(ApiError):
            await informer.run()

    async def _watch_pods(self, namespace: str) -> None:
        def changed(change: Change) -> None:
            pod, seen = change.new, change.new or change.old or {}
            for job in self.jobs.values():
                if (ref := task_of(job, seen)) is not None:
                    self._pod_changed(job, ref, change, is_new_pod=informer.synced.is_set())
                    continue
                # Another owner's pod may have the name of a task's pod, until it is deleted.
                other = job.dialect.observe_pod(seen, job.manifest)
                if other is not None and not other.owned:
                    task = str(TaskRef(other.role, other.index or 0))
                    self._on_pod(job, task, PodView("", why=why_name_taken(seen) if pod is not None else ""))

        informer = Informer(
            self._cluster, POD, namespace, on_change=changed, fatal_codes=NOT_ALLOWED, max_failures=MAX_FAILURES
        )
        await informer.run()

    def _pod_changed(self, job: FoundJob, ref: TaskRef, change: Change, *, is_new_pod: bool) -> None:
        pod, seen = change.new, change.new or change.old or {}
        head = head_of(job, ref, seen)
        self._on_fit(job, f"pod {change.key.name}", fit_of_pod(pod, head) if pod is not None else None)
        if pod is None:
            return
        self._on_pod(job, str(ref), PodView(uid_of(pod), pod["spec"].get("nodeName") or "", why_waiting(pod)))
        container_run = (uid_of(pod), restarts_of(pod, self._options.container))
        is_silent = (pod.get("status") or {}).get("phase") not in _PHASES_WITH_LOGS
        if is_silent or container_run in self._logs or not self._follows_log(ref, head):
            return
        options = replace(self._options, tail_lines=None) if is_new_pod else self._options
        if job.dialect.never_completes:
            self._endless.add(container_run)
        source = LogSource(str(ref), head)
        self._logs[container_run] = asyncio.create_task(
            self._follow_log(job, source, change.key, container_run, options)
        )

    async def _follow_log(
        self, job: FoundJob, source: LogSource, key: Key, container_run: tuple[str, int], options: LogOptions
    ) -> None:
        before = [
            streamed
            for (uid, number), streamed in self._logs.items()
            if uid == container_run[0] and number < container_run[1]
        ]
        await asyncio.gather(*before)
        seconds, reported = INITIAL_BACKOFF_SECONDS, ""
        while True:
            position = self._positions.get(container_run[0])
            try:
                await self._stream(job, source, key, container_run[0], options)
                return
            except ApiError as refused:
                if refused.code == 404:  # the pod was deleted, and its log with it
                    return
                is_final = refused.code != 429 and refused.code < 500
                failure = _LogFailure(refused.message, is_refusal=True, is_final=is_final)
            except (OutcomeUnknown, OSError) as broken:
                failure = _LogFailure(str(broken))
            if failure.sentence != reported and (failure.is_final or failure.is_refusal):
                reported = failure.sentence
                self._on_log_failure(source.head, reported)
            if failure.is_final:
                return
            streamed = self._positions.get(container_run[0])
            if streamed is not None:
                options = replace(options, since_time=streamed.stamp, since_seconds=None, tail_lines=None)
            if streamed != position:
                seconds = INITIAL_BACKOFF_SECONDS
            elif self._over.done():  # no more output is written, and the retry did not help
                self._on_log_failure(source.head, failure.sentence)
                return
            await self.sleep(seconds)
            seconds = min(seconds * 2, MAX_BACKOFF_SECONDS)

    async def sleep(self, seconds: float) -> None:
        """Sleep, at most until the jobs are over: logs not read by then are soon deleted."""
        due: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        timer = self._clock.call_later(seconds, lambda: None if due.done() else due.set_result(None))
        try:
            await asyncio.wait((due, self._over), return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()

    async def _stream(self, job: FoundJob, source: LogSource, key: Key, uid: str, options: LogOptions) -> None:
        """Print a log line by line, each line once.
        A late request may return the log of the next start already, and a repeated one returns the last lines again."""
        assert self._on_line is not None
        position = self._positions.get(uid, _Position())
        known = position.lines
        stamped = replace(options, timestamps=True)
        logs = cast("AsyncGenerator[bytes]", self._cluster.logs(key.name, key.namespace, stamped))
        async with aclosing(logs) as chunks:
            async for line in lines(chunks, stamped):
                if line.stamp < position.stamp:
                    continue
                if line.stamp == position.stamp and known:
                    known -= line.is_whole
                    continue
                text = line.stamped if options.timestamps else line.text
                try:
                    if not line.is_whole:
                        self._on_progress(job, source, text)
                        continue
                    self._positions[uid] = self._positions.get(uid, _Position()).after(line.stamp)
                    self._on_line(job, source, text)
                except OSError as unwritable:  # of the output, not of the log: asking again would not help
                    self._fail(unwritable)
                    return


def roles_before(gangs: Gangs, manifest: Obj, group: GroupRef | OwnedObjectRef) -> frozenset[str]:
    """The roles of the gangs before this one: gangs are reported in the order in which they start."""
    if not isinstance(group, GroupRef):
        return frozenset()
    before = takewhile(lambda each: each[0] != group.key, gangs.specs(manifest).items())
    return frozenset(part.role for _, gang in before for part in gang.roles)


def task_of(job: FoundJob, pod: Obj) -> TaskRef | None:
    """The task whose pod this is, if it is one of the job's."""
    owner = job.dialect.owner_of(pod)
    if owner is None or owner.uid != uid_of(job.manifest):
        return None
    body = job.dialect.observe_pod(pod, job.manifest)
    return TaskRef(body.role, body.index or 0) if body is not None and body.owned else None


def head_of(job: FoundJob, ref: TaskRef, pod: Obj) -> str:
    """The prefix of a pod's lines: its task, or what distinguishes it from others where its number does not."""
    names = job.names
    return (names.of(pod, job.manifest) if names is not None else "") or str(ref)


def restarts_of(pod: Obj, container: str) -> int:
    """How often the container was started again in its pod; without a name, the first one."""
    name = container or pod["spec"]["containers"][0]["name"]
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return next((int(each.get("restartCount") or 0) for each in statuses if each.get("name") == name), 0)


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line of a log as a terminal would show it; not yet whole where a progress bar still moves in it."""

    text: str
    stamp: str = ""  # where timestamps were requested
    is_whole: bool = True

    @property
    def stamped(self) -> str:
        return f"{self.stamp} {self.text}" if self.stamp else self.text


async def lines(chunks: AsyncIterator[bytes], options: LogOptions) -> AsyncIterator[LogLine]:
    """A log line by line, without their ends, and every progress bar as it moves."""
    rest = b""
    async for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield _log_line(line, options)
        if b"\r" in rest:
            yield (moving := replace(_log_line(rest, options), is_whole=False))
            # The states of a progress bar that were overwritten are dropped: the line may go on for days.
            before, _, last = rest.rpartition(b"\r")
            stamp = before.partition(b" ")[0] + b" " if moving.stamp else b""
            rest = stamp + b"\r" + (last if last.strip() else moving.text.encode() + b"\r" + last)
    if rest:
        yield _log_line(rest, options)


def _log_line(line: bytes, options: LogOptions) -> LogLine:
    stamp, _, text = line.partition(b" ") if options.timestamps else (b"", b"", line)
    return LogLine(visible(text.decode(errors="replace").rstrip("\r")), stamp.decode(errors="replace"))
