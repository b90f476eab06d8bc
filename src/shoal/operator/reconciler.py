"""The loop that runs every job of one language.

Copies of the jobs and of what they own are kept by watches; every change wakes the job it belongs to, one pass at a
time per job, what arrives meanwhile folded into one more. A pass asks the engine and carries out its answer in the
order that makes a crash harmless: history, the ledger in one conditional write, the writes, the report, Events.

The last ledger of this process counts, not a copy that may be stale; after a write that failed or got lost, what is
stored counts. Receipts of a step reach the very next pass, and stay until a stored ledger holds what they say.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from datetime import datetime, timedelta

from msgspec.structs import replace

from shoal.cluster.client import Cluster, PatchType, WatchEvent
from shoal.cluster.clock import Clock
from shoal.cluster.event_recorder import EventRecorder
from shoal.cluster.informer import Change, Informer
from shoal.controller_runtime.metrics import Metrics
from shoal.controller_runtime.workqueue import WORKERS, WorkQueue
from shoal.dialects.dialect import Dialect, LedgerUnreadable, ManifestInvalid, Owner, Settings, Snapshot
from shoal.engine import (
    Body,
    Create,
    Created,
    Gone,
    Job,
    JobState,
    News,
    Notification,
    Observed,
    Stage,
    Step,
    TaskRef,
    bare,
)
from shoal.engine.advance import advance
from shoal.engine.run_closing import give_up
from shoal.kube.errors import ApiError, is_too_large
from shoal.kube.kinds import CONFIG_MAP, POD
from shoal.kube.messages import Message
from shoal.kube.objects import Key, Obj, key_of, uid_of
from shoal.kube.times import rfc3339
from shoal.logs import Logger
from shoal.operator.job_cache import Known, Pauses, Resting, still_news, still_unseen, wishes_of, word_for
from shoal.operator.job_events import History, Teller, to_log, withholding
from shoal.operator.orphan_adoption import take_orphans
from shoal.operator.owned_informers import BODY, Children
from shoal.operator.related_objects import KinCopies
from shoal.operator.write_executor import Carried, Executor, find
from shoal.scheduler.transforms import without_managed_fields

log = Logger(__name__)

ON_JOB_END = "OnJobEnd"  # the trigger of the snapshot of a job that has ended

# What is no decision (that a body was made, where it runs, that it runs) may wait this long for company in the ledger.
FACTS_WAIT = timedelta(milliseconds=300)
# While tasks of the job are starting there is more to come: then it may be as many times the time of gathering.
STARTING_GATHERS = 10


class JobLoop:
    """`run` until cancelled; may be cut anywhere."""

    def __init__(
        self,
        cluster: Cluster,
        dialect: Dialect,
        *,
        settings: Settings = None,
        clock: Clock,
        metrics: Metrics,
        rng: random.Random | None = None,
        history: History = to_log,
        component: str = "shoal",
        namespace: str | None = None,
        labels: str = "",
        serves: Callable[[Key], bool] | None = None,
        coalesce_seconds: float = 0.0,
    ) -> None:
        """Of all jobs those of `namespace` (None: of every one) that `labels` select and `serves` agrees to.

        `coalesce_seconds`: how long news of a pod may wait for that of others of its job.
        """
        self._cluster = cluster
        self._dialect = dialect
        self._kind = dialect.kind
        self._settings = settings if settings is not None else dialect.settings(None)
        self._clock = clock
        self._metrics = metrics
        self._chance = rng or random.Random()  # noqa: S311 - names, delays and jitter; guards nothing
        self._history = history
        self._serves = serves or _everybody
        self._selects = bool(labels)
        self._out_of_sight: list[Obj] = []  # jobs that are no longer among ours, gone or not
        self.advance = advance  # the engine; tests look over its shoulder
        self._known: dict[Key, Known] = {}
        self._resting: dict[Key, Resting] = {}
        self._work = WorkQueue(
            self.name,
            self._timed_pass,
            clock=clock,
            jitter=self._chance,
            coalesce_seconds=coalesce_seconds,
            workers=dialect.workers(self._settings) if dialect.workers is not None else WORKERS,
            in_progress=self._known.__contains__,
        )
        self._starting_wait = max(FACTS_WAIT, STARTING_GATHERS * timedelta(seconds=coalesce_seconds))
        self._jobs = Informer(
            cluster, self._kind, namespace,
            labels=labels, trim=self._trimmed, on_change=self._job_changed, clock=clock, jitter=self._chance,
        )  # fmt: skip
        gone = self._child_gone if dialect.deletion_snapshot is not None else None
        self._pods = Children(
            cluster,
            POD,
            self._owner,
            namespace=namespace,
            wake=self._work.add_after_delay,
            freed=self._freed,
            gone=gone,
            went=self._pod_went,
            clock=clock,
        )
        self._anchors = Children(
            cluster, CONFIG_MAP, self._owner, namespace=namespace, wake=self._work.add, freed=self._freed, clock=clock
        )
        self._kin = KinCopies(cluster, dialect, self._owner, namespace=namespace, wake=self._wake_served, clock=clock)
        self._executor = Executor(cluster, dialect, self._pods, self._kin, metrics, self._chance)
        self._teller = Teller(EventRecorder(cluster, component, clock=clock), metrics)

    @property
    def name(self) -> str:
        return f"{self._kind.kind} jobs"

    @property
    def idle(self) -> bool:
        """Whether no pass runs or is due at once; for tests."""
        return self._work.depth == 0

    @property
    def resting(self) -> frozenset[Key]:
        """The jobs that ended and are remembered by little more than their names."""
        return frozenset(self._resting)

    @property
    def is_synced(self) -> bool:
        """Whether the copies have caught up with the cluster once."""
        return all(copies.synced.is_set() for copies in self._copies)

    @property
    def _copies(self) -> tuple[Informer, ...]:
        anchors = (self._anchors.reflector,) if self._dialect.anchor_name is not None else ()
        return self._pods.reflector, *anchors, *self._kin.reflectors, self._jobs

    async def run(self) -> None:
        try:
            with self._metrics.observe_depth(self._kind, lambda: self._work.depth):
                async with asyncio.TaskGroup() as group:
                    for reflector in self._copies:
                        group.create_task(reflector.run())
                    group.create_task(self._teller.run())
        finally:
            for known in self._known.values():
                known.set_timer(None)
                self._metrics.count_state_change(self._kind, known.word, "")
            for resting in self._resting.values():
                resting.cancel()
                self._metrics.count_state_change(self._kind, resting.word, "")
            await self._work.close()

    # What wakes a job

    def _trimmed(self, event: WatchEvent) -> Obj:
        """Of somebody else's job only that it is there."""
        job = event.object
        if self._serves(key_of(job)):
            return without_managed_fields(job)
        return {"metadata": {name: job["metadata"][name] for name in ("name", "namespace", "uid", "resourceVersion")}}

    def _owner(self, obj: Obj) -> Owner | None:
        owner = self._dialect.owner(obj)
        return owner if owner is not None and self._serves(owner.key) else None

    def _wake_served(self, key: Key) -> None:
        if self._serves(key):
            self._work.add(key)

    def _job_changed(self, change: Change) -> None:
        if not self._serves(change.key):
            return
        if change.old is not None and (change.new is None or uid_of(change.new) != uid_of(change.old)):
            if self._selects:
                self._out_of_sight.append(change.old)
            else:
                self._child_gone(change.old)
        known = self._known.get(change.key)
        if change.new is None or known is None:
            self._work.add(change.key)
        elif known.is_writing:
            known.is_unsure = True  # most likely a watch that is faster than the answer to our own write
        else:
            self._take_copy(known, change.new)
            if not self._work.is_pending(change.key):
                self._let_rest(change.key, known)

    def _take_copy(self, known: Known, job: Obj) -> None:
        if known.echo == job["metadata"]["resourceVersion"]:
            known.saw(job)  # one object instead of two that are equal
        else:
            self._work.add(key_of(job))

    def _child_gone(self, obj: Obj) -> None:
        """A job or pod that is no longer there leaves its last version in the history."""
        if self._dialect.deletion_snapshot is not None:
            self._remember(self._dialect.deletion_snapshot(obj, self._settings))

    # One pass

    async def _timed_pass(self, key: Key) -> None:
        for copies in self._copies:
            await copies.synced.wait()
        with self._metrics.time_reconcile(self._kind):
            await self._pass(key)

    async def _look_after(self, key: Key) -> None:
        """A job that left the selection may merely be somebody else's now: only a live look tells."""
        for job in [job for job in self._out_of_sight if key_of(job) == key]:
            found = await find(self._cluster, self._kind, key.name, key.namespace)
            self._out_of_sight.remove(job)
            if found is None or uid_of(found) != uid_of(job):
                self._child_gone(job)

    async def _discard_commands(self, key: Key) -> None:
        """A command for a job that does not exist is consumed without effect: a later job of that name is not meant.

        The copy of the jobs may be behind, or select only some of them, so the API server decides.
        """
        commands = self._kin.orders_for(key)
        if commands and await find(self._cluster, self._kind, key.name, key.namespace) is None:
            await self._executor.discard(commands)

    async def _free_left_behind(self, key: Key) -> None:
        """Pods of a job that has gone: nobody counts them any more, so nothing may hold them."""
        job = self._jobs.objects.get(key)
        for pod in list(self._pods.of(key)):
            owner = self._dialect.owner(pod)
            is_held = self._dialect.finalizer in (pod["metadata"].get("finalizers") or ())
            if owner is not None and is_held and (job is None or uid_of(job) != owner.uid):
                await self._executor.free(pod, uid_of(pod))

    async def _pass(self, key: Key) -> None:
        if self._out_of_sight:
            await self._look_after(key)
        if self._dialect.finalizer:
            await self._free_left_behind(key)
        if key not in self._jobs.objects:
            await self._discard_commands(key)
        known = await self._recall(key)  # 1. what it is, and what was stored
        job = self._read(known) if known is not None else None
        if known is None or job is None:
            return
        if known.state.is_new and self._dialect.take is not None:
            await self._take_in(known)
        now = self._clock.now()
        observed = await self._look_closer(known, self._observe(key, known))  # 2. what is there
        step = self.advance(job, known.state, observed, now)  # 3. what it means
        self._tell_history(known, job, observed, step, now)  # 4. history, then the ledger
        try:
            await self._store(known, job, step, now)
        except ApiError as refused:
            if not is_too_large(refused):
                raise
            await self._give_up(key, known, job, refused, now)
            return
        writes = [
            write
            for write in step.writes
            if not isinstance(write, Create) or known.pauses.allow(write, step.state, now)
        ]
        carried = await self._executor.carry_out(known.manifest, writes, barred=known.pauses.barred)  # 5. the writes
        self._note(key, known, carried, now)
        report_due = await self._report(known, job, observed, now)  # 6. what people see
        troubles = (*withholding(carried), *carried.complaints, *known.news_of_doors(step.doors))
        self._say(known, (*step.notifications, *troubles))
        again = step.again or carried.is_urgent
        self._plan_next(key, known, step, since=now, report_due=report_due, again=again)  # 7. when to look again
        are_up = known.state.run.stage is Stage.RUNNING
        await self._executor.answer(known.manifest, carried, are_up=are_up, now=rfc3339(now))
        if carried.failure is not None:
            raise carried.failure
        if not step.again:
            self._let_rest(key, known)

    # 1. Recalling

    async def _recall(self, key: Key) -> Known | None:
        """The job under that key as far as we know it; None where it is gone, or nobody can read it."""
        seen, known = self._jobs.objects.get(key), self._known.get(key)
        if known is not None and (seen is None or uid_of(seen) != known.uid):
            known.set_timer(None)
            del self._known[key]
            self._forget(key, known)
            known = None
        resting = self._resting.pop(key, None)
        if resting is not None and (seen is None or uid_of(seen) != resting.uid):
            resting.cancel()
            self._forget(key, resting)
            resting = None
        if seen is None:
            return None
        if known is None:
            return self._meet(key, seen, resting)
        known.saw(seen)
        return await self._look_again(known) if known.is_doubtful else known

    def _meet(self, key: Key, manifest: Obj, resting: Resting | None) -> Known | None:
        word, timer = (resting.word, resting.timer) if resting is not None else ("", None)
        state = self._restore(manifest)
        if state is None:
            self._metrics.count_state_change(self._kind, word, "")
            return None
        known = self._known[key] = Known(manifest, state, state, Pauses(self._chance), timer=timer, word=word)
        return known

    async def _look_again(self, known: Known) -> Known | None:
        """A ledger write failed or its answer got lost: what is stored counts, and only a live look shows it."""
        key = key_of(known.manifest)
        found = await find(self._cluster, self._kind, key.name, key.namespace)
        state = self._restore(found) if found is not None and uid_of(found) == known.uid else None
        if found is None or state is None:
            return None
        known.births = still_news(known.births, known.state, state)
        known.receipts = still_news(known.receipts, known.state, state)
        state = still_unseen(state, known.state)
        known.manifest, known.state, known.stored = without_managed_fields(found), state, state
        known.unwritten_since, known.is_doubtful = None, False
        return known

    def _restore(self, manifest: Obj) -> JobState | None:
        try:
            return self._dialect.restore(manifest)
        except LedgerUnreadable as problem:
            self._complain(manifest, "LedgerUnreadable", str(problem))
            return None

    def _read(self, known: Known) -> Job | None:
        wishes = wishes_of(known.manifest)
        if known.reading is None or known.reading[0] != wishes:
            known.reading = (wishes, self._read_afresh(known.manifest))
        return known.reading[1]

    def _read_afresh(self, manifest: Obj) -> Job | None:
        try:
            return self._dialect.read(manifest, self._settings)
        except ManifestInvalid as problem:
            self._complain(manifest, "InvalidManifest", str(problem))
            return None

    def _complain(self, manifest: Obj, reason: str, text: str) -> None:
        log.warning("job cannot be run", job=str(key_of(manifest)), reason=reason, problem=text)
        self._teller.say(manifest, (Notification("", Message(reason, {"cause": text}), warning=True),))

    def _forget(self, key: Key, known: Known | Resting) -> None:
        self._metrics.count_state_change(self._kind, known.word, "")
        self._kin.forget(key)
        self._executor.forget(known.uid)

    # 2. Observing

    async def _take_in(self, known: Known) -> None:
        """What a new job finds that is nobody's: counted before it makes pods of its own."""
        if (version := await take_orphans(self._cluster, self._dialect, known.manifest)) is not None:
            await self._pods.reflector.wait_for_version(version)

    def _observe(self, key: Key, known: Known) -> Observed:
        dialect, manifest = self._dialect, known.manifest
        copies = [body for pod in self._pods.of(key) if (body := self._body(pod, known)) is not None]
        bodies = tuple([body for body in copies if body.uid not in known.gone])
        anchor = None
        if dialect.anchor_name is not None and dialect.anchor is not None:
            place = Key(key.namespace, dialect.anchor_name(manifest))
            if (found := self._anchors.get(place)) is not None and uid_of(found) not in known.gone:
                anchor = dialect.anchor(found, manifest)
                if not anchor.owned:
                    self._anchors.await_end(place, key)
        relatives = self._kin.of(key, manifest, known.gone)
        known.heard = known.went
        return Observed(
            bodies=bodies,
            anchor=anchor,
            groups=relatives.groups,
            companions=relatives.companions,
            commands=relatives.commands,
            opened=relatives.opened,
            receipts=known.births + known.receipts + known.vanished(),
            nonce=f"{self._chance.getrandbits(64):016x}",
        )

    async def _look_closer(self, known: Known, observed: Observed) -> Observed:
        """Bodies that leave may do so because their anchor does, and its copy may be late: then a live look decides.

        The end of the whole must not depend on which of two watches is faster.
        """
        anchor = observed.anchor
        if anchor is None or anchor.leaving or not anchor.owned or not known.state.run.is_open:
            return observed
        if not _misses_somebody(known.state, observed):
            return observed
        assert self._dialect.anchor_name is not None
        assert self._dialect.anchor is not None
        found = await find(
            self._cluster, CONFIG_MAP, self._dialect.anchor_name(known.manifest), key_of(known.manifest).namespace
        )
        seen = self._dialect.anchor(found, known.manifest) if found is not None else None
        return replace(observed, anchor=seen)

    def _body(self, pod: Obj, known: Known) -> Body | None:
        """Kept beside the copy of the pod: the same version of it, looked at for the same job, is the same body."""
        kept: tuple[str, Body | None] | None = pod.get(BODY)
        if kept is None or kept[0] != known.uid:
            kept = pod[BODY] = (known.uid, self._dialect.body(pod, known.manifest))
        return kept[1]

    # 4. Storing

    def _tell_history(self, known: Known, job: Job, observed: Observed, step: Step, now: datetime) -> None:
        if self._dialect.snapshot is None:
            if step.state.is_ended and not known.state.is_ended:
                self._remember(self._end_snapshot(known.manifest, job, observed, step, now))
        else:
            for notice in step.notices:
                self._remember(self._dialect.snapshot(known.manifest, known.state, notice, self._settings, now))

    def _end_snapshot(self, manifest: Obj, job: Job, observed: Observed, step: Step, now: datetime) -> Snapshot:
        """The job as it ended, for languages that define no snapshots of their own."""
        status = self._dialect.report(job, step.state, observed, manifest, now).status
        whole = {"apiVersion": self._kind.api_version, "kind": self._kind.kind, **manifest}
        return Snapshot(str(key_of(manifest)), ON_JOB_END, whole if status is None else {**whole, "status": status})

    def _remember(self, snapshot: Snapshot | None) -> None:
        if snapshot is not None:
            self._history(snapshot)

    async def _store(self, known: Known, job: Job, step: Step, now: datetime) -> None:
        """The ledger, in one write that fails if anybody changed the job meanwhile. Some news may wait a moment.

        The job is counted first: who reads of its end finds it among the ended ones.
        """
        self._count(known, word_for(step.state))
        memory = job.policies.embodiment.memory
        if step.state is known.stored or bare(step.state, memory) == bare(known.stored, memory):
            known.unwritten_since, known.births = None, ()
        elif self._may_wait(known, step, now):
            known.unwritten_since = known.unwritten_since or now
            known.births += tuple(receipt for receipt in known.receipts if isinstance(receipt, Created))
        else:
            await self._write_ledger(known, job, step.state)
        known.state, known.receipts, known.went = step.state, (), known.went - known.heard

    async def _give_up(self, key: Key, known: Known, job: Job, refused: ApiError, now: datetime) -> None:
        """The server does not store a state of this size, today or after a pause: the job ends, and says why."""
        outcome = job.policies.completion.too_large
        state = give_up(known.state, outcome, now)
        await self._write_ledger(known, job, state)
        known.state, known.receipts, known.unsaid = state, (), ()
        self._count(known, word_for(state))
        message = Message("StateTooLarge", {"text": outcome.text, "cause": refused.message})
        self._teller.say(known.manifest, (Notification("", message, warning=True),))
        self._work.add(key)  # its objects go, and the status says so

    def _count(self, known: Known, word: str) -> None:
        self._metrics.count_state_change(self._kind, known.word, word)
        known.word = word

    def _may_wait(self, known: Known, step: Step, now: datetime) -> bool:
        """No decision, and for a moment only: what a crash leaves unstored is read from the objects again."""
        if step.news is News.DECISIONS or step.notices:
            return False
        due = self._facts_due(known, step.state)
        return due is None or now < due

    def _facts_due(self, known: Known, state: JobState) -> datetime | None:
        """When what waits for company has waited enough; None where nothing waits."""
        if known.unwritten_since is None:
            return None
        return known.unwritten_since + (self._starting_wait if _is_starting(state) else FACTS_WAIT)

    async def _write_ledger(self, known: Known, job: Job, state: JobState) -> None:
        version = known.manifest["metadata"]["resourceVersion"]
        ledger = self._dialect.record(job, state, self._settings)
        condition = {"op": "replace", "path": "/metadata/resourceVersion", "value": version}
        known.is_doubtful = True  # until the answer is here, also where we are cut off before it
        patch = [condition, *ledger.patch(known.manifest)]
        known.manifest = await self._patch_job(known, patch, PatchType.JSON, ledger.subresource)
        known.stored = state
        known.unwritten_since, known.births, known.is_doubtful = None, (), False

    async def _patch_job(self, known: Known, patch: Obj | list[Obj], form: PatchType, subresource: str) -> Obj:
        """The job as the write leaves it. What a watch tells of the write is no news, even if it comes before the
        answer; what the write met that we did not know is."""
        key = key_of(known.manifest)
        self._metrics.count_write(self._kind, "patch")
        known.is_writing = True
        try:
            answer = await self._cluster.patch(
                self._kind, key.name, key.namespace, patch=patch, patch_type=form, subresource=self._served(subresource)
            )
            if wishes_of(answer) == wishes_of(known.manifest):
                known.echo = answer["metadata"]["resourceVersion"]
        finally:
            known.is_writing = False
            if known.is_unsure:
                known.is_unsure = False
                if (seen := self._jobs.objects.get(key)) is not None:
                    self._take_copy(known, seen)
        seen = self._jobs.objects.get(key)
        if seen is not None and seen["metadata"]["resourceVersion"] == answer["metadata"]["resourceVersion"]:
            return seen  # one object instead of two that are equal
        return without_managed_fields(answer)

    def _served(self, subresource: str) -> str:
        """Definitions of other people may have none: then the status is a field like any other."""
        return subresource if subresource in self._kind.subresources else ""

    # 5. to 7. After the writes

    def _note(self, key: Key, known: Known, carried: Carried, now: datetime) -> None:
        known.receipts = tuple(carried.receipts)
        known.gone = frozenset(uid for uid in known.gone if self._is_shown(uid))
        known.gone |= {receipt.uid for receipt in carried.receipts if isinstance(receipt, Gone) and receipt.uid}
        for create in carried.made:
            known.pauses.made(create)
        for create in carried.refused:
            if not isinstance(create.target, TaskRef) or create.target.role not in carried.full:
                known.pauses.refused(create.target, now)
        for role in carried.full:
            known.pauses.refused(role, now)
        known.pauses.barred = {role: first.target for role, first in carried.barred.items()} | known.pauses.barred
        for place in carried.in_the_way:
            self._pods.await_end(place, key)

    def _is_shown(self, uid: str) -> bool:
        return any(copies.name_of(uid) is not None for copies in (self._pods, self._anchors, self._kin))

    async def _report(self, known: Known, job: Job, observed: Observed, now: datetime) -> datetime | None:
        """The projection, where it is not the ledger; written only where it differs from what stands there. Returns
        when it changes by time alone."""
        manifest = known.manifest
        report = self._dialect.report(job, known.state, observed, manifest, now)
        operations: list[Obj] = []
        if report.status is not None and report.status != manifest.get("status"):
            operations = [{"op": "add", "path": "/status", "value": report.status}]
            await self._project(known, operations, PatchType.JSON, "status")
        standing = manifest["metadata"].get("annotations") or {}
        changed = {name: text for name, text in report.annotations.items() if standing.get(name) != text}
        if changed:
            await self._project(known, {"metadata": {"annotations": changed}}, PatchType.MERGE, "")
        if report.spec:
            uid = {"op": "test", "path": "/metadata/uid", "value": known.uid}
            await self._project(known, [uid, *report.spec], PatchType.JSON, "")
        return report.wake_at

    async def _project(self, known: Known, patch: Obj | list[Obj], form: PatchType, subresource: str) -> None:
        known.saw(await self._patch_job(known, patch, form, subresource))

    def _say(self, known: Known, notifications: tuple[Notification, ...]) -> None:
        """What a ledger says that is not stored yet is not said either."""
        known.unsaid += notifications
        if known.unwritten_since is None:
            self._teller.say(known.manifest, known.unsaid)
            known.unsaid = ()

    def _plan_next(
        self, key: Key, known: Known, step: Step, *, since: datetime, report_due: datetime | None, again: bool
    ) -> None:
        now = self._clock.now()
        facts = self._facts_due(known, step.state)
        refused = known.pauses.next_end(since)  # a short pause may have ended while the pass went on
        moments = [moment for moment in (step.wake_at, report_due, refused, facts) if moment is not None]
        timer = None
        if moments:
            seconds = max((min(moments) - now).total_seconds(), 0.0)
            timer = self._clock.call_later(seconds, lambda: self._work.add(key))
        known.set_timer(timer)
        if again:
            self._work.add(key)

    def _let_rest(self, key: Key, known: Known) -> None:
        copy = self._jobs.objects.get(key)
        resting = known.at_rest(copy) if copy is not None else None
        if resting is not None:
            self._resting[key] = resting
            del self._known[key]

    def _pod_went(self, key: Key, uid: str) -> None:
        """It may have come and gone between two passes, and then no copy will ever show it."""
        known = self._known.get(key)
        if known is not None:
            known.went |= {uid}

    def _freed(self, key: Key) -> None:
        """What stood in a job's way has gone."""
        known = self._known.get(key)
        if known is not None:
            known.pauses.end()


def _everybody(_: Key) -> bool:
    return True


def _is_starting(state: JobState) -> bool:
    """Whether a task has no address yet; where all have one, others may wait to hear of it."""
    return any(task.outcome is None and not task.attempt.ip for role in state.roles for task in role.tasks)


def _misses_somebody(state: JobState, observed: Observed) -> bool:
    """Whether a body the ledger counts on is leaving or absent without anybody having decided so."""
    there = {body.uid: body.leaving for body in observed.bodies}
    return any(
        there.get(task.uid, True)
        for role in state.roles
        for task in role.tasks
        if task.uid is not None and task.outcome is None and Stage.PREPARING <= task.stage <= Stage.RUNNING
    )
