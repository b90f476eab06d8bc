"""Following jobs until they end: every change of the job, and what its processes say meanwhile.

Copies are kept by watches that resume by themselves; a log is followed from the moment its container runs, so that a
pod that is removed right after its end has still been heard to the last line.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import replace

from shoal.cli.jobs import Found
from shoal.cluster.port import Cluster, LogOptions, OutcomeUnknown
from shoal.cluster.reflecting import Change, Reflector
from shoal.engine import TaskRef
from shoal.kube.errors import ApiError
from shoal.kube.kinds import POD
from shoal.kube.objects import Key, Obj, uid_of

OnChange = Callable[[Found], None]
OnLine = Callable[[Found, str, str], None]  # the job, the task such as worker-0, the line
OnRefusal = Callable[[str, ApiError], None]  # the task, and why its log is not to be had

_SPEAKING = ("Running", "Succeeded", "Failed")


class Follower:
    """Follows several jobs. `run` returns them as they were last seen: ended, or gone."""

    def __init__(
        self,
        cluster: Cluster,
        jobs: Iterable[Found],
        *,
        on_change: OnChange = lambda _: None,
        on_line: OnLine | None = None,
        on_refusal: OnRefusal = lambda *_: None,
        hears: Callable[[TaskRef], bool] = lambda _: True,
        options: LogOptions | None = None,
    ) -> None:
        """`hears` says whose logs are followed, `options` how; pods that come later are heard from their first line."""
        self._cluster = cluster
        self._on_change = on_change
        self._on_line = on_line
        self._on_refusal = on_refusal
        self._hears = hears
        self._options = replace(options or LogOptions(), follow=True)
        self.jobs = {uid_of(job.manifest): job for job in jobs}
        self._open = set(self.jobs)
        self._over = asyncio.Event()
        self._logs: dict[tuple[str, int], asyncio.Task[None]] = {}  # by pod and restarts of its container
        self._heard: dict[str, str] = {}  # by pod, the time of the last line

    async def run(self) -> list[Found]:
        copies = [self._jobs_of(kind_and_namespace) for kind_and_namespace in self._places()]
        if self._on_line is not None:
            namespaces = {job.namespace for job in self.jobs.values()}
            copies += [self._pods_of(name) for name in namespaces]
        tasks = [asyncio.create_task(copy.run()) for copy in copies]
        try:
            await self._over.wait()
            await asyncio.gather(*self._logs.values(), return_exceptions=True)  # the last lines
        finally:
            for task in (*tasks, *self._logs.values()):
                task.cancel()
            await asyncio.gather(*tasks, *self._logs.values(), return_exceptions=True)
        return list(self.jobs.values())

    def _places(self) -> set[tuple[int, str]]:
        self._dialects = {id(job.dialect): job.dialect for job in self.jobs.values()}
        return {(id(job.dialect), job.namespace) for job in self.jobs.values()}

    def _jobs_of(self, place: tuple[int, str]) -> Reflector:
        dialect = self._dialects[place[0]]
        return Reflector(self._cluster, dialect.kind, place[1], on_change=self._job_changed)

    def _job_changed(self, change: Change) -> None:
        seen = change.new or change.old or {}
        known = self.jobs.get(uid_of(seen))
        if known is None:
            return
        if change.new is not None:
            known = self.jobs[uid_of(seen)] = Found(change.new, known.dialect)
            self._on_change(known)
        if change.new is None or known.state.is_ended:
            self._open.discard(uid_of(seen))
            if not self._open:
                self._over.set()

    def _pods_of(self, namespace: str) -> Reflector:
        def changed(change: Change) -> None:
            self._pod_changed(change, is_late=copy.synced.is_set())

        copy = Reflector(self._cluster, POD, namespace, on_change=changed)
        return copy

    def _pod_changed(self, change: Change, *, is_late: bool) -> None:
        pod = change.new
        if pod is None or (pod.get("status") or {}).get("phase") not in _SPEAKING:
            return
        life = (uid_of(pod), restarts_of(pod, self._options.container))
        if life in self._logs:
            return
        for job in self.jobs.values():
            ref = task_of(job, pod)
            if ref is not None and self._hears(ref):
                options = replace(self._options, tail_lines=None) if is_late else self._options
                self._logs[life] = asyncio.create_task(self._listen(job, str(ref), change.key, life, options))

    async def _listen(self, job: Found, task: str, key: Key, life: tuple[str, int], options: LogOptions) -> None:
        before = [heard for (uid, number), heard in self._logs.items() if uid == life[0] and number < life[1]]
        await asyncio.gather(*before)
        try:
            await self._hear(job, task, key, life[0], options)
        except ApiError as refused:
            if refused.code != 404:  # else the pod has gone, and its words with it
                self._on_refusal(task, refused)
        except (OutcomeUnknown, OSError):
            return

    async def _hear(self, job: Found, task: str, key: Key, uid: str, options: LogOptions) -> None:
        """Line by line. Whoever asks late may have got the log of the next start already: nothing is told twice."""
        assert self._on_line is not None
        told = self._heard.get(uid, "")
        async for line in lines(self._cluster, key, replace(options, timestamps=True)):
            stamp, _, text = line.partition(" ")
            if stamp > told:
                self._heard[uid] = stamp
                self._on_line(job, task, line if options.timestamps else text)


def task_of(job: Found, pod: Obj) -> TaskRef | None:
    """The task whose pod this is, if it is one of the job's."""
    owner = job.dialect.owner(pod)
    if owner is None or owner.uid != uid_of(job.manifest):
        return None
    body = job.dialect.body(pod, job.manifest)
    return TaskRef(body.role, body.index or 0) if body is not None and body.owned else None


def restarts_of(pod: Obj, container: str) -> int:
    """How often the container was started again in its pod; without a name, the first one."""
    name = container or pod["spec"]["containers"][0]["name"]
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return next((int(each.get("restartCount") or 0) for each in statuses if each.get("name") == name), 0)


async def lines(cluster: Cluster, key: Key, options: LogOptions) -> AsyncIterator[str]:
    """A log line by line, without their ends."""
    rest = b""
    async for chunk in cluster.logs(key.name, key.namespace, options):
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line.decode(errors="replace").rstrip("\r")
    if rest:
        yield rest.decode(errors="replace")
