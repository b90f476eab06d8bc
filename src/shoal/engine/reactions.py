"""Reactions: edge-triggered rules from an event to an action. The role's list is asked before the job's.

A reaction consumes its event: the retry policy does not see it. Restarts of a task, a partition or a role act here;
anything job-wide is proposed, at most one per pass, and deciding.py takes it in its turn. Levels such as "the role
succeeded" are latched in `settled`, so that they fire once. A delayed reaction is stored with its time, does not
consume its event, and lapses when the task runs again.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import msgspec
from msgspec.structs import replace

from shoal.engine.messages import CATALOG, cause_of
from shoal.engine.model import Job
from shoal.engine.observed import Body, Phase, SignalKind
from shoal.engine.pass_context import Scene
from shoal.engine.policies import Budget, Reaction, Scope, Unit, WhenEmpty
from shoal.engine.retry import restart
from shoal.engine.state import Due, JobState, TaskState, Why, named
from shoal.engine.types import (
    RESTARTS,
    Action,
    Event,
    Happening,
    Intent,
    Outcome,
    Stage,
    TaskRef,
    Trigger,
)
from shoal.kube.messages import Message

_SIGNALS = {
    SignalKind.ROUND_CLOSED: Happening.ROUND_CLOSED,
    SignalKind.STORE_LOST: Happening.STORE_LOST,
    SignalKind.GROUP_DONE: Happening.GROUP_DONE,
}


_ONCE = {Happening.TASK_FAILED, Happening.TASK_LOST, Happening.TASK_PENDING, Happening.COMMAND}


class Proposal(msgspec.Struct, frozen=True):
    """A job-wide action somebody asked for, and why."""

    action: Action
    why: Message
    outcome: Outcome | None = None
    cause: str = ""  # names what is charged, where it can be named
    event: Event | None = None  # that it answers
    charged: bool = True


def react(
    job: Job, state: JobState, scene: Scene, events: list[Event]
) -> tuple[JobState, set[TaskRef], Proposal | None]:
    """Targeted restarts done, the tasks whose events were consumed, and the job-wide action proposed first."""
    awaited = _named(job)
    consumed: set[TaskRef] = set()
    if not awaited and not state.due:
        return state, consumed, None
    state, raised = _levels(job, state, scene, awaited)
    state = _lapse(state)
    proposal: Proposal | None = None
    for event in [*events, *raised]:
        reaction = _find(job, scene, event)
        if reaction is None or reaction.action is Action.RELEASE:
            continue  # an open run is not held
        if reaction.after_seconds and event.kind is not Happening.TASK_PENDING:
            state = _postpone(state, event, reaction)
            continue
        state, proposed = act(job, state, scene, reaction.action, event, reaction.outcome)
        if proposed is not None and not reaction.charged:
            proposed = replace(proposed, charged=False)
        consumed.add(TaskRef(event.role, event.index))
        proposal = proposal or proposed
    state, fired = _fire(job, state, scene)
    return state, consumed, proposal or fired


def _named(job: Job) -> set[Happening]:
    """The kinds of events anybody reacts to; exit codes are asked of failed tasks."""
    reactions = [*job.policies.reactions, *(reaction for role in job.roles for reaction in role.reactions)]
    found = {kind for reaction in reactions for kind in reaction.events}
    if any(reaction.code is not None for reaction in reactions):
        found.add(Happening.TASK_FAILED)
    return set(Happening) if Happening.ANY in found else found


def _find(job: Job, scene: Scene, event: Event) -> Reaction | None:
    """In each list the event before the exit code; pending counts only where a time is given."""
    role = scene.roles.get(event.role)
    for reactions in (role.reactions if role else (), job.policies.reactions):
        for reaction in reactions:
            is_meant = event.kind in reaction.events or Happening.ANY in reaction.events
            if is_meant and (event.kind is not Happening.TASK_PENDING or reaction.after_seconds):
                return reaction
        for reaction in reactions:
            if reaction.code is not None and event.kind is Happening.TASK_FAILED and reaction.code == event.code:
                return reaction
    return None


def act(
    job: Job, state: JobState, scene: Scene, action: Action, event: Event, outcome: Outcome | None
) -> tuple[JobState, Proposal | None]:
    """A restart of part of the job is carried out; anything job-wide is handed back as a proposal."""
    why = cause_of(event)
    if action not in RESTARTS or action is Action.RESTART_RUN:
        return state, Proposal(action, why, blamed(state, outcome, event), _charge_cause(action, event), event)
    state, refusal = charge_restart(job, state, scene, _charge_cause(action, event))
    if refusal is not None:
        return state, Proposal(
            Action.FAIL, Message("Cause.NoRestart", {"cause": why}), blamed(state, refusal.outcome, event)
        )
    refs = _scope(job, state, action, event)
    announce(job, scene, action, why)
    if refs:
        tasks = named(event.role, (ref.index for ref in refs))
        code = "Restarting.Tasks" if len(refs) > 1 else "Restarting.Task"
        scene.emit(event.subject, code, tasks=tasks, cause=why)
    return restart(_cancel(state, refs), scene, refs), None


def announce(job: Job, scene: Scene, action: Action, why: Message) -> None:
    """The Event that tools of the job's language look for."""
    if name := job.policies.actions.get(action):
        scene.emit("", "ExecuteAction", action=name, cause=why)


def blamed(state: JobState, outcome: Outcome | None, event: Event | None) -> Outcome | None:
    """An end that is no success with the task that brought it about, and that task's own code."""
    if outcome is None or outcome.is_ok or event is None or event.index < 0:
        return outcome
    task = state.task(TaskRef(event.role, event.index))
    code = task.outcome.code if task is not None and task.outcome is not None else event.code
    return outcome.blaming(Trigger(event.role, event.index, CATALOG.text(cause_of(event))), code or 0)


def _scope(job: Job, state: JobState, action: Action, event: Event) -> list[TaskRef]:
    role = state.role(event.role)
    tasks = [task for task in role.tasks if not task.dropped] if role else []
    if action is Action.RESTART_TASK:
        tasks = [task for task in tasks if task.index == event.index]
    elif action is Action.RESTART_PARTITION:
        size = next((spec.partition_size for spec in job.roles if spec.name == event.role), 0)
        if size:
            tasks = [task for task in tasks if task.index // size == event.index // size]
    return [TaskRef(event.role, task.index) for task in tasks]


def _charge_cause(action: Action, event: Event) -> str:
    """What is charged. A level has no name of its own: it may become true again, and is then another event."""
    return f"{action.value} {event.uid}" if event.uid and event.kind in _ONCE else ""


def charge_restart(job: Job, state: JobState, scene: Scene, cause: str) -> tuple[JobState, Budget | None]:
    """One action taken from the budget, or the budget that refuses it. Free while a restart is under way."""
    budget = next((b for b in job.policies.budgets if b.scope is Scope.JOB and b.unit is Unit.ACTIONS), None)
    if budget is None or is_restarting(state, scene):
        return state, None
    has_one = budget.permits is None or state.charged < budget.permits
    if has_one or budget.when_empty is WhenEmpty.CHARGE_AND_FAIL:
        state = state.with_charge("")
        scene.charge(cause, "")
    return state, None if has_one else budget


def is_restarting(state: JobState, scene: Scene) -> bool:
    """An earlier restart is still being carried out; a further one widens it at no cost."""
    if state.run.intent is Intent.RESTART:
        return True
    return any(state.settled[body.uid].reason == "restart" for body in scene.doomed if body.uid in state.settled)


def _levels(job: Job, state: JobState, scene: Scene, awaited: set[Happening]) -> tuple[JobState, list[Event]]:
    """Events of conditions that just became true; those that are no longer true may fire again."""
    holding = dict(_holding(job, state, scene, awaited))
    latched = {key for key in state.settled if ":" in key}
    raised = [event for key, event in holding.items() if key not in latched]
    state = state.unsettle(latched - holding.keys())
    pending = Happening.TASK_PENDING
    latches = {k: Why(e.role, e.index, "latched") for k, e in holding.items() if e.kind is not pending}
    return state.settle(latches), raised


def _holding(job: Job, state: JobState, scene: Scene, awaited: set[Happening]) -> Iterator[tuple[str, Event]]:
    now = scene.stamp
    if Happening.ROLE_SUCCEEDED in awaited:
        for role in state.roles:
            size = scene.sizes.get(role.name, 0)
            if size and sum(1 for task in role.tasks if _is_ok(task)) >= size:
                yield f"ok:{role.name}", Event(Happening.ROLE_SUCCEEDED, now, role.name)
    if Happening.ROLE_EXHAUSTED in awaited:
        for name in exhausted_roles(job, scene):
            yield f"exhausted:{name}", Event(Happening.ROLE_EXHAUSTED, now, name)
    if Happening.GROUP_UNKNOWN in awaited:
        for group in scene.observed.groups.values():
            if group.unknown:
                yield f"group:{group.uid}", Event(Happening.GROUP_UNKNOWN, now, uid=group.uid)
    if Happening.GROUP_EVICTED in awaited:
        for group in scene.observed.groups.values():
            if group.evicted:
                yield f"evicted:{group.uid}", Event(Happening.GROUP_EVICTED, now, uid=group.uid)
    for signal in scene.observed.signals:
        kind = _SIGNALS.get(signal.kind)
        if kind in awaited and kind is not None:
            yield f"signal:{signal.key}", Event(kind, now, uid=signal.key)
    if Happening.TASK_PENDING in awaited:
        yield from _pending(job, state, scene)


def _pending(job: Job, state: JobState, scene: Scene) -> Iterator[tuple[str, Event]]:
    """Bodies that stayed pending for the time a reaction gives them."""
    for (role, index), body in scene.bodies.items():
        if body.phase is Phase.PENDING and body.created is not None and not body.leaving:
            if is_excused(state, role, index):
                continue
            event = Event(Happening.TASK_PENDING, scene.stamp, role, index, body.uid)
            reaction = _find(job, scene, event)
            if reaction and scene.now >= body.created + timedelta(seconds=reaction.after_seconds):
                yield f"pending:{body.uid}", event


def is_excused(state: JobState, role: str, index: int) -> bool:
    """Whether a task waits because it made room for others: that it waits is no trouble of its own."""
    task = state.task(TaskRef(role, index))
    return task is not None and task.given


def _is_ok(task: TaskState) -> bool:
    return not task.dropped and task.outcome is not None and task.outcome.is_ok


def exhausted_roles(job: Job, scene: Scene) -> list[str]:
    """Roles whose containers restarted in place more often than a budget with when_empty EVENT permits."""
    found: list[str] = []
    for role in job.roles:
        budgets = [b for b in (role.budget, *job.policies.budgets) if b and b.unit is Unit.CONTAINERS]
        for budget in budgets:
            is_meant = budget.when_empty is WhenEmpty.EVENT and (not budget.roles or role.name in budget.roles)
            if (
                is_meant
                and budget.permits is not None
                and container_restarts(budget, scene, role.name) > budget.permits
            ):
                found.append(role.name)
    return found


def container_restarts(budget: Budget, scene: Scene, role: str = "") -> int:
    """Restarts in place over the living bodies the budget speaks of."""
    return sum(
        body.restarts
        for (name, _), body in scene.bodies.items()
        if counts(budget, name, body) and (not role or name == role)
    )


def counts(budget: Budget, role: str, body: Body) -> bool:
    """Whether the budget speaks of this body."""
    return body.phase.value in budget.phases and (not budget.roles or role in budget.roles)


def _postpone(state: JobState, event: Event, reaction: Reaction) -> JobState:
    """One timer per subject; a second event with the same action does not reset it."""
    key = f"{event.role}/{event.index}" if event.index >= 0 else f"{event.kind.value}/{event.role}"
    if key in state.due and state.due[key].action is reaction.action:
        return state
    at = event.at + timedelta(seconds=reaction.after_seconds)
    due = Due(at, reaction.action, event.kind, event.role, event.index, event.uid, reaction.outcome)
    return replace(state, due={**state.due, key: due})


def _lapse(state: JobState) -> JobState:
    """Delayed reactions to a failure or a loss lapse when the task runs again, or is wanted no more."""
    if not state.due:
        return state
    kept = {key: due for key, due in state.due.items() if not _has_lapsed(state, due)}
    return replace(state, due=kept) if len(kept) < len(state.due) else state


def _has_lapsed(state: JobState, due: Due) -> bool:
    if due.index < 0:
        return False
    task = state.task(TaskRef(due.role, due.index))
    return task is None or task.dropped or (task.stage is Stage.RUNNING and task.uid != due.uid)


def _fire(job: Job, state: JobState, scene: Scene) -> tuple[JobState, Proposal | None]:
    proposal: Proposal | None = None
    for key, due in sorted(state.due.items(), key=lambda item: item[1].at):
        if due.at > scene.now or key not in state.due:
            continue
        state = replace(state, due={k: d for k, d in state.due.items() if k != key})
        event = Event(due.event, due.at, due.role, due.index, due.uid)
        state, proposed = act(job, state, scene, due.action, event, due.outcome)
        proposal = proposal or proposed
    return state, proposal


def _cancel(state: JobState, refs: list[TaskRef]) -> JobState:
    """A restart cancels the delayed reactions of everything it reaches."""
    if not state.due:
        return state
    reached = {f"{ref.role}/{ref.index}" for ref in refs}
    return replace(state, due={key: due for key, due in state.due.items() if key not in reached})
