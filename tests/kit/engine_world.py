"""A tiny world for the engine: pods in a dict, an anchor, groups and companions; writes are applied to it at once.

A pass may crash: the ledger write may be lost, or only the first few writes go out and their answers are lost with
the operator. What is remembered is then what the dialect's ledger would hold. Every pass is held to the invariants.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from shoal.engine import (
    Accepted,
    Apply,
    Command,
    CommandRef,
    ContainerState,
    Create,
    Created,
    Delete,
    Gone,
    GroupRef,
    Job,
    JobState,
    Mark,
    Observed,
    ObservedGroup,
    ObservedObject,
    ObservedPod,
    ObservedRunOwner,
    OwnedObjectRef,
    PodPhase,
    Refused,
    RemoveFinalizer,
    RunOwnerRef,
    Signal,
    StateChange,
    Step,
    StepHistory,
    TaskRef,
    TaskState,
    Write,
    WriteResult,
    advance,
    check,
    compact_state,
)
from shoal.engine.policies import Memory, PodNames

T0 = datetime(2026, 11, 16, 4, 0, tzinfo=UTC)
LOST_LEDGER = -1


class World:
    def __init__(self, job: Job) -> None:
        self.job = job
        self.now = T0
        self.state = JobState()  # the operator's own last ledger
        self.durable = JobState()  # the one that survives it
        self.lazy = False  # a ledger without a decision is not stored
        self.pods: dict[str, ObservedPod] = {}
        self.run_owner: ObservedRunOwner | None = None
        self.groups: dict[str, ObservedGroup] = {}
        self.owned_objects: dict[OwnedObjectRef, ObservedObject] = {}
        self.commands: list[Command] = []
        self.signals: list[Signal] = []
        self.open_gates: set[str] = set()  # gates others have opened
        self.write_results: list[WriteResult] = []
        self.refusals: dict[TaskRef, Refused] = {}
        self.lost_creates: set[TaskRef] = set()  # answered with success, and gone before anybody sees them
        self.history = StepHistory()
        self.steps: list[Step] = []
        self.job_deleted = False
        self.admits = True  # groups are admitted as soon as they exist
        self._serial = 0

    # One pass ---------------------------------------------------------------------------------------------------

    def observed(self) -> Observed:
        return Observed(
            pods=tuple(self.pods.values()),
            run_owner=self.run_owner,
            groups=dict(self.groups),
            owned_objects=dict(self.owned_objects),
            commands=tuple(self.commands),
            signals=tuple(self.signals),
            write_results=tuple(self.write_results),
            open_gates=frozenset(self.open_gates),
            nonce=f"nonce-{len(self.steps)}",
        )

    def step(self, *, crash_after: int | None = None) -> Step:
        """One pass; `crash_after` writes the operator dies (LOST_LEDGER: before its ledger is stored)."""
        observed, before = self.observed(), self.state
        kept_before = copy.deepcopy(before)
        step = advance(self.job, before, observed, self.now)
        assert advance(self.job, before, observed, self.now) == step, "equal inputs give equal steps"
        assert before == kept_before, "the pass changed its input"
        # What a lost ledger decided was never decided; the promises are then held against a copy.
        history = copy.deepcopy(self.history) if crash_after == LOST_LEDGER else self.history
        broken = check(self.job, before, step, observed, history, now=self.now)
        assert not broken, broken
        self.steps.append(step)
        self.write_results = []
        if crash_after == LOST_LEDGER:
            self._crash(self.durable)
            return step
        self.state = step.state
        if step.state_change > StateChange.FACTS or not self.lazy:
            self.durable = step.state
        for number, write in enumerate(step.writes):
            if number == crash_after:
                break
            self._apply(write)
        if crash_after is not None:
            self._crash(self.durable)
        return step

    def _crash(self, stored: JobState) -> None:
        self.write_results = []
        self.history.restarted()
        self.state = compact_state(stored, self.job.policies.pod_policy.memory)

    def settle(self, *, reap: bool = True, limit: int = 60) -> Step:
        """Passes until nothing moves any more; leaving pods go away on their own."""
        for _ in range(limit):
            before = self._everything()
            refused = any(isinstance(result, Refused) for result in self.write_results)  # tried again after a back-off
            step = self.step()
            if reap:
                self.reap()
            if not refused and not self.write_results and not step.requeue and before == self._everything():
                return step
        raise AssertionError(f"no rest after {limit} passes: {step.writes}")

    def _everything(self) -> tuple[object, ...]:
        there = (dict(self.pods), dict(self.groups), dict(self.owned_objects), tuple(self.commands))
        return self.state, self.run_owner, *there

    # What writes do ---------------------------------------------------------------------------------------------

    def _apply(self, write: Write) -> None:
        if isinstance(write, Create):
            self._create(write)
        elif isinstance(write, Apply):
            self._bring(write)
        elif isinstance(write, Delete):
            self._delete(write)
        elif isinstance(write, Mark):
            self._edit(write.uid, marked=True)
        elif isinstance(write, RemoveFinalizer):
            self._free(write.uid)

    def _uid(self) -> str:
        self._serial += 1
        return f"uid-{self._serial}"

    def _create(self, write: Create) -> None:
        target, uid = write.target, self._uid()
        if isinstance(target, RunOwnerRef):
            if self.run_owner is not None:
                self.write_results.append(Refused(target, 409, "already exists"))
                return
            self.run_owner = ObservedRunOwner(uid, run=write.build_context.run)
            self.write_results.append(Created(target, uid))
            return
        assert isinstance(target, TaskRef)
        if target in self.refusals:
            self.write_results.append(replace(self.refusals.pop(target), target=target))  # once
            return
        random = self.job.policies.pod_policy.names is PodNames.RANDOM
        name = f"{target}-{uid}" if random else str(target)
        if name in self.pods:
            self.write_results.append(Refused(target, 409, "already exists"))
            return
        if target in self.lost_creates:
            self.lost_creates.discard(target)
        else:
            self.pods[name] = self._pod(name, uid, target, write)
        self.write_results.append(Created(target, uid))

    def _pod(self, name: str, uid: str, target: TaskRef, write: Create) -> ObservedPod:
        size = self.job.policies.size
        counted = self.job.policies.pod_policy.names is PodNames.RANDOM and not getattr(size, "indexed", False)
        return ObservedPod(
            uid,
            name,
            target.role,
            None if counted else target.index,
            run=write.build_context.run,
            attempt=write.attempt,
            instance=write.instance,
            created=self.now,
            finalizer=self.job.policies.pod_policy.memory is Memory.FINALIZER,
        )

    def _bring(self, write: Apply) -> None:
        target, uid = write.target, self._uid()
        if isinstance(target, GroupRef):
            old = self.groups.get(target.key)
            admitted = self.admits if old is None else old.admitted
            asked = {} if old is None else {"asked": old.asked, "reclaim_reason": old.reclaim_reason}
            self.groups[target.key] = ObservedGroup(
                old.uid if old else uid, target.key, write.digest, admitted, **asked
            )
        elif isinstance(target, OwnedObjectRef):
            self.owned_objects[target] = ObservedObject(uid, write.digest)

    def _delete(self, write: Delete) -> None:
        target = write.target
        if isinstance(target, TaskRef):
            self._delete_pod(target, write)
        elif isinstance(target, RunOwnerRef):
            self._delete_anchor(write)
        elif isinstance(target, GroupRef):
            self.groups.pop(target.key, None)
        elif isinstance(target, OwnedObjectRef):
            self.owned_objects.pop(target, None)
        elif isinstance(target, CommandRef):
            self.commands = [command for command in self.commands if command.uid != target.uid]
        else:
            self.job_deleted = True

    def _delete_pod(self, target: TaskRef, write: Delete) -> None:
        body = next((pod for pod in self.pods.values() if pod.uid == write.uid), None)
        if body is None and not write.uid:
            body = next(
                (p for p in self.pods.values() if p.owned and (p.role, p.index) == (target.role, target.index)), None
            )
        if body is None:
            self.write_results.append(Gone(target, write.uid))
        elif write.grace_seconds == 0 or (write.confirm and not write.uid):
            del self.pods[body.name]
            self.write_results.append(Gone(target, write.uid))
        else:
            self.leave(body.name)
            self.write_results.append(Accepted(target, write.uid))

    def _delete_anchor(self, write: Delete) -> None:
        if self.run_owner is None or (write.uid and self.run_owner.uid != write.uid):
            self.write_results.append(Gone(write.target, write.uid))
            return
        self.write_results.append(Accepted(write.target, write.uid))
        self.delete_anchor()

    # What the world does ----------------------------------------------------------------------------------------

    def _edit(self, uid: str, **changes: object) -> None:
        for name, pod in self.pods.items():
            if pod.uid == uid:
                self.pods[name] = replace(pod, **changes)

    def _free(self, uid: str) -> None:
        self._edit(uid, finalizer=False)

    def run(self, *names: str) -> None:
        for name in names or tuple(self.pods):
            pod = self.pods.get(name)
            if pod is not None and pod.phase is PodPhase.PENDING and not pod.leaving:
                self.pods[name] = replace(pod, phase=PodPhase.RUNNING, ip="10.0.0.1", node="n1", ready=True)

    def exits(self, name: str, code: int, **changes: object) -> None:
        phase = PodPhase.FAILED if code else PodPhase.SUCCEEDED
        ended = ContainerState("python", code=code, finished=self.now)
        self.pods[name] = replace(self.pods[name], phase=phase, containers=(ended,), **changes)

    def leave(self, *names: str) -> None:
        """Somebody deletes these pods; they go once `reap` finds them."""
        for name in names:
            if not self.pods[name].leaving:
                self.pods[name] = replace(self.pods[name], leaving=True, leaving_since=self.now)

    def ask(self, *names: str, reclaim_reason: str = "") -> None:
        """The scheduler asks for these pods and no others, as long as it is not told otherwise."""
        uids = tuple(self.pods[name].uid for name in names)
        self.groups = {
            key: replace(group, asked=uids, reclaim_reason=reclaim_reason) for key, group in self.groups.items()
        }

    def delete_anchor(self) -> None:
        """A foreground deletion: the pods leave first."""
        assert self.run_owner is not None
        self.run_owner = replace(self.run_owner, leaving=True)
        self.leave(*(name for name, pod in self.pods.items() if pod.owned))
        self._collect()

    def reap(self, *names: str) -> None:
        for name in names or tuple(self.pods):
            pod = self.pods.get(name)
            if pod is not None and pod.leaving and not pod.finalizer:
                del self.pods[name]
        self._collect()

    def _collect(self) -> None:
        if self.run_owner is not None and self.run_owner.leaving and not any(pod.owned for pod in self.pods.values()):
            self.run_owner = None

    def tick(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def edit(self, change: Callable[[Job], Job]) -> None:
        self.job = change(self.job)

    # What tests ask ---------------------------------------------------------------------------------------------

    def task(self, role: str, index: int) -> TaskState:
        task = self.state.task(TaskRef(role, index))
        assert task is not None, f"no task {role}-{index}"
        return task

    def story(self) -> dict[str, str]:
        """Every task as stage, attempt and code: `a-0: running 0`, with a quote mark where it is dropped."""
        told = {}
        for role in self.state.roles:
            for task in role.tasks:
                code = "" if task.outcome is None else f" {task.outcome.code}"
                mark = "'" if task.dropped else ""
                told[f"{role.name}-{task.index}{mark}"] = f"{task.stage.name.lower()} {task.attempt.number}{code}"
        return told


def started(job: Job) -> World:
    """A world in which all bodies of the job run and nothing moves."""
    world = World(job)
    world.settle()
    world.run()
    world.settle()
    return world
