"""Step 5, turn: a closed run drains, is over, and then the job ends, rests, or opens the next run.

A run is over only when everything it may not keep is gone; where an anchor owns the bodies, when the anchor is gone.
The next run is built from the spec of the moment it opens. A job that is being deleted opens none.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from hashlib import blake2b

from msgspec.structs import replace

from shoal.engine.model import Job
from shoal.engine.observed import AnchorRef, Body
from shoal.engine.pass_context import Scene
from shoal.engine.policies import (
    Answer,
    Base,
    Drained,
    GroupGate,
    HoldClock,
    Keep,
    Life,
    Memory,
    Scope,
    UniformDelay,
    Unit,
)
from shoal.engine.run_closing import end, kept
from shoal.engine.scaling import fresh_roles
from shoal.engine.state import JobState, RoleState, Run, TaskState
from shoal.engine.types import Intent, Nature, NoticeKind, Stage


def begin(job: Job, state: JobState, scene: Scene) -> JobState:
    """The first look at a job: its first run opens, and values that outlive an edit are copied."""
    stamps = replace(state.stamps, started=scene.stamp, clock_from=_clock_from(job, scene))
    state = replace(state, run=_opened(job, scene, 0), stamps=stamps, frozen=dict(job.policies.rendezvous.frozen))
    scene.emit("", "Started", job=job.name, run=0)
    return state


def turn(job: Job, state: JobState, scene: Scene) -> JobState:
    if state.is_ended:
        return state
    if state.run.is_open:
        return _start_clock(job, state, scene)
    if state.run.stage is not Stage.OVER:
        if not is_drained(job, state, scene):
            return state
        state = _over(job, state, scene)
    intent = state.run.intent
    if intent is Intent.END:
        return _after_end(job, state, scene)
    if intent is Intent.RESTART and not job.deleting:
        if scene.released and job.policies.hold.release_counts:
            scene.again = True  # people see that it begins anew before it has begun
            return state
        return _open_next(job, state, scene)
    return state


def is_drained(job: Job, state: JobState, scene: Scene) -> bool:
    run = state.run
    if job.policies.embodiment.anchor is not None:
        if run.stage <= Stage.REQUESTED:
            return (AnchorRef(), run.anchor or "") in scene.gone
        return scene.anchor is None
    if any(_lives_for_a_run(gate) and gate.groups and scene.observed.groups for gate in _group_gates(job)):
        return False
    remaining = [body for body in _all(scene) if must_go(job, state, body)]
    if job.policies.embodiment.memory is Memory.FINALIZER:
        # Who was let go of has no seat any more and may still be here.
        remaining += [body for body in scene.observed.bodies if body.owned and body.leaving and not body.is_finished]
    if run.intent is Intent.RESTART and job.policies.teardown.restart_drained is Drained.ENOUGH:
        need = job.minimum if job.minimum is not None else scene.total
        return all(body.leaving for body in remaining) and scene.total - len(remaining) >= need
    return not remaining


def must_go(job: Job, state: JobState, body: Body) -> bool:
    """Whether a closed run may not keep this body."""
    keep = kept(job, state)
    if body.leaving or keep is Keep.NONE:
        return True
    return keep is Keep.FINISHED and not body.is_finished


def _all(scene: Scene) -> list[Body]:
    return [*scene.bodies.values(), *scene.doomed, *scene.strays]


def _group_gates(job: Job) -> list[GroupGate]:
    return [gate for gate in job.policies.gates if isinstance(gate, GroupGate)]


def _lives_for_a_run(gate: GroupGate) -> bool:
    return gate.life is Life.RUN


def _over(job: Job, state: JobState, scene: Scene) -> JobState:
    """Everything is gone. Where tasks are recorded, whatever was left of them is done with the run."""
    state = replace(state, run=state.run.at(Stage.OVER, scene.stamp))
    if job.policies.embodiment.memory is Memory.RECORD:
        state = replace(state, roles=tuple(_all_done(role, scene) for role in state.roles))
    return state


def _all_done(role: RoleState, scene: Scene) -> RoleState:
    if all(task.is_done for task in role.tasks):
        return role
    now = scene.stamp
    tasks = [task if task.is_done else task.at(Stage.OVER, now).at(Stage.DONE, now) for task in role.tasks]
    return replace(role, tasks=tuple(tasks))


def _after_end(job: Job, state: JobState, scene: Scene) -> JobState:
    """The run's own retry: once decided it is carried out after its delay, or at once where a stop is wished."""
    run = state.run
    if run.delay_seconds is None:
        reply = _reply(job, state)
        if reply is Answer.DONE or job.deleting:
            return _ended(job, state, scene) if reply is Answer.DONE else state
        delay = _delay(job, state, scene)
        if delay and not job.stop:
            scene.emit("", "RunDelayed", job=job.name, seconds=delay, run=run.number + 1)
            return replace(state, run=replace(run, delay_seconds=delay))
    elif job.deleting or not _is_due(run, job, scene):
        return state
    scene.tell(NoticeKind.JOB_RETRY, "", state)
    if _reply(job, state) is Answer.CHARGED:
        state = state.with_charge("")
        scene.charge(f"run {run.number}", "")
    return _open_next(job, state, scene)


def _ended(job: Job, state: JobState, scene: Scene) -> JobState:
    outcome = state.run.outcome
    if outcome is not None and outcome.final and not outcome.is_ok:
        scene.emit("", "Stopped", job=job.name)
        return end(state, scene)
    what = "Succeeded" if outcome is not None and outcome.is_ok else "Failed"
    scene.emit("", what, warning=what == "Failed", job=job.name, phrase=outcome.phrase if outcome else what)
    return end(state, scene)


def _is_due(run: Run, job: Job, scene: Scene) -> bool:
    assert run.since is not None
    assert run.delay_seconds is not None
    return job.stop or scene.now >= run.since + timedelta(seconds=run.delay_seconds)


def _reply(job: Job, state: JobState) -> Answer:
    retry, outcome = job.policies.run_retry, state.run.outcome
    if retry is None or outcome is None:
        return Answer.DONE
    reply = retry.answer(outcome)
    if reply is not Answer.CHARGED:
        return reply
    budget = next((b for b in job.policies.budgets if b.unit is Unit.ATTEMPTS and b.scope is Scope.JOB), None)
    empty = budget is not None and budget.permits is not None and state.charged >= budget.permits
    # A retry that was decided stands, even if the budget was cut since.
    return Answer.DONE if empty and state.run.delay_seconds is None else reply


def _delay(job: Job, state: JobState, scene: Scene) -> int:
    """Seconds until the next run, drawn from this pass's nonce; stored, so that a restart keeps it."""
    retry, outcome = job.policies.run_retry, state.run.outcome
    if retry is None or outcome is None or outcome.nature is not Nature.CONFLICT:
        return 0
    if not isinstance(retry.delay, UniformDelay):
        return 0
    seed = f"{job.uid}/{scene.observed.nonce}/delay/{state.run.number}".encode()
    drawn = int.from_bytes(blake2b(seed, digest_size=8).digest(), "big")
    return retry.delay.low + drawn % (retry.delay.high - retry.delay.low + 1)


def _open_next(job: Job, state: JobState, scene: Scene) -> JobState:
    number = state.run.number + 1
    scene.emit("", "RunOpened", job=job.name, run=number)
    roles = fresh_roles(job, scene)
    if kept(job, state) is not Keep.NONE and job.policies.embodiment.memory is not Memory.RECORD:
        ok_only = state.run.held and job.policies.hold.renews_failed
        roles = tuple(_with_achieved(role, state.role(role.name), ok_only=ok_only) for role in roles)
    stamps = state.stamps
    if state.run.held and job.policies.hold.clock is HoldClock.RESTARTS:
        stamps = replace(stamps, clock_from=_clock_from(job, scene))
    scene.again = scene.again or job.stop or job.policies.hold.wish
    return replace(state, run=_opened(job, scene, number), roles=roles, stamps=stamps)


def _with_achieved(role: RoleState, before: RoleState | None, *, ok_only: bool) -> RoleState:
    """What was done before a hold stays done. A failure that does not is no task's any more: its body goes as a
    stray, and the name is free for the next attempt."""
    done: dict[int, TaskState] = {}
    if before is not None:
        stays = [task for task in before.tasks if task.is_done and not task.dropped]
        done = {task.index: task for task in stays if not ok_only or (task.outcome and task.outcome.is_ok)}
        role = replace(role, ok_count=before.ok_count, bad_count=before.bad_count)
    return replace(role, tasks=tuple([done.get(task.index, task) for task in role.tasks]))


def _opened(job: Job, scene: Scene, number: int) -> Run:
    stage = Stage.PREPARING if job.policies.embodiment.anchor is None else Stage.WAITING
    return Run(number, stage, since=scene.stamp, started=scene.stamp)


def _clock_from(job: Job, scene: Scene) -> datetime | None:
    """Only kept where a deadline may ask for it."""
    return scene.stamp if job.policies.clock.deadline_from is Base.STARTED and _has_clock(job) else None


def _has_clock(job: Job) -> bool:
    return job.policies.clock.deadline_seconds is not None or job.policies.embodiment.memory is not Memory.RECORD


def _start_clock(job: Job, state: JobState, scene: Scene) -> JobState:
    """The clock that runs from the moment all bodies of the run exist."""
    if state.stamps.clock_from is not None or job.policies.clock.deadline_from is not Base.CLOCK:
        return state
    living = [task for role in state.roles for task in role.tasks if not task.is_done]
    if not living or any(task.uid is None for task in living):
        return state
    return replace(state, stamps=replace(state.stamps, clock_from=scene.stamp))
