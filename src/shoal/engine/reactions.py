"""Reactions: edge-triggered rules from an event to an action. The role's list is searched before the job's.

A reaction consumes its event: the retry policy does not see it. Restarts of a task, a partition or a role act here;
anything job-wide is proposed, at most one per pass, and decide.py takes it in its turn. Levels such as "the role
succeeded" are latched in `settled`, so that they fire once. A delayed reaction is stored with its time, does not
consume its event, and lapses when the task runs again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from shoal.engine.messages import CATALOG, cause_of
from shoal.engine.observed import PodPhase, SignalKind
from shoal.engine.pass_context import PassContext
from shoal.engine.retry import BudgetScope, BudgetUnit, RetryBudget, WhenEmpty, restart
from shoal.engine.state import DelayedAction, JobState, SettledReason, format_tasks
from shoal.engine.types import GOOD, RESTARTS, Action, Event, EventType, Intent, Outcome, TaskRef, Trigger
from shoal.kube.messages import Message

if TYPE_CHECKING:
    from shoal.engine.model import Job


@dataclass(frozen=True, slots=True)
class Reaction:
    action: Action
    events: frozenset[EventType] = frozenset()
    code: int | None = None  # instead of events: a TASK_FAILED with this code
    after_seconds: int = 0
    outcome: Outcome = GOOD  # for COMPLETE, FAIL and TERMINATE
    charged: bool = True  # False: a restart that costs nothing, because the job is not to blame


_SIGNALS = {
    SignalKind.ROUND_CLOSED: EventType.ROUND_CLOSED,
    SignalKind.STORE_LOST: EventType.STORE_LOST,
    SignalKind.GROUP_DONE: EventType.GROUP_DONE,
}


_ONCE = {EventType.TASK_FAILED, EventType.TASK_LOST, EventType.TASK_PENDING, EventType.COMMAND}


class Proposal(msgspec.Struct, frozen=True):
    """A requested job-wide action, and why."""

    action: Action
    why: Message
    outcome: Outcome | None = None
    cause: str = ""  # names what is charged, where it can be named
    event: Event | None = None  # that caused it
    charged: bool = True


def react(
    job: Job, state: JobState, context: PassContext, events: list[Event]
) -> tuple[JobState, set[TaskRef], Proposal | None]:
    """Targeted restarts done, the tasks whose events were consumed, and the job-wide action proposed first."""
    awaited = _awaited_events(job)
    consumed: set[TaskRef] = set()
    if not awaited and not state.due:
        return state, consumed, None
    state, raised = _raise_levels(job, state, context, awaited)
    state = _drop_due(state, lambda due: due.lapses(state))
    proposal: Proposal | None = None
    for event in [*events, *raised]:
        reaction = _find(job, context, event)
        if reaction is None or reaction.action is Action.RELEASE:
            continue  # an open run is not held
        if reaction.after_seconds and event.kind is not EventType.TASK_PENDING:
            state = _delay_reaction(state, event, reaction)
            continue
        state, proposed = act(job, state, context, reaction.action, event, reaction.outcome)
        if proposed is not None and not reaction.charged:
            proposed = replace(proposed, charged=False)
        consumed.add(TaskRef(event.role, event.index))
        proposal = proposal or proposed
    for key, due in sorted(state.due.items(), key=lambda item: item[1].at):
        if due.at > context.now or key not in state.due:  # an earlier one may have cancelled it
            continue
        state = replace(state, due={k: d for k, d in state.due.items() if k != key})
        event = Event(due.event, due.at, due.role, due.index, due.uid)
        state, proposed = act(job, state, context, due.action, event, due.outcome)
        proposal = proposal or proposed
    return state, consumed, proposal


def _awaited_events(job: Job) -> set[EventType]:
    """The kinds of events that have a reaction; exit codes are read from failed tasks."""
    reactions = [*job.policies.reactions, *(reaction for role in job.roles for reaction in role.reactions)]
    found = {kind for reaction in reactions for kind in reaction.events}
    if any(reaction.code is not None for reaction in reactions):
        found.add(EventType.TASK_FAILED)
    return set(EventType) if EventType.ANY in found else found


def _find(job: Job, context: PassContext, event: Event) -> Reaction | None:
    """In each list the event before the exit code; pending counts only where a time is given."""
    role = context.roles.get(event.role)
    for reactions in (role.reactions if role else (), job.policies.reactions):
        for reaction in reactions:
            is_meant = event.kind in reaction.events or EventType.ANY in reaction.events
            if is_meant and (event.kind is not EventType.TASK_PENDING or reaction.after_seconds):
                return reaction
        for reaction in reactions:
            if reaction.code is not None and event.kind is EventType.TASK_FAILED and reaction.code == event.code:
                return reaction
    return None


def act(
    job: Job, state: JobState, context: PassContext, action: Action, event: Event, outcome: Outcome | None
) -> tuple[JobState, Proposal | None]:
    """Carry out a partial restart of the job; return any job-wide action as a proposal."""
    why = cause_of(event)
    # A level has no charge of its own name: it may become true again, and is then another event.
    charge = f"{action.value} {event.uid}" if event.uid and event.kind in _ONCE else ""
    if action not in RESTARTS or action is Action.RESTART_RUN:
        return state, Proposal(action, why, attribute_failure(state, outcome, event), charge, event)
    state, refusal = charge_restart(job, state, context, charge)
    if refusal is not None:
        outcome = attribute_failure(state, refusal.outcome, event)
        return state, Proposal(Action.FAIL, Message("Cause.NoRestart", {"cause": why}), outcome)
    refs = _restarted_tasks(state, context, action, event)
    announce(job, context, action, why)
    if refs:
        tasks = format_tasks(event.role, (ref.index for ref in refs))
        code = "Restarting.Tasks" if len(refs) > 1 else "Restarting.Task"
        context.emit(event.subject, code, tasks=tasks, cause=why)
    reached = set(refs)
    # A restart cancels the delayed reactions of everything it reaches.
    state = _drop_due(state, lambda due: TaskRef(due.role, due.index) in reached)
    return restart(state, context, refs), None


def announce(job: Job, context: PassContext, action: Action, why: Message) -> None:
    """The Event that tools for this kind of job expect."""
    if name := job.policies.actions.get(action):
        context.emit("", "ExecuteAction", action=name, cause=why)


def attribute_failure(state: JobState, outcome: Outcome | None, event: Event | None) -> Outcome | None:
    """An end that is no success with the task that brought it about, and that task's own code."""
    if outcome is None or outcome.is_ok or event is None or event.index < 0:
        return outcome
    task = state.task(TaskRef(event.role, event.index))
    code = task.outcome.code if task is not None and task.outcome is not None else event.code
    return outcome.blaming(Trigger(event.role, event.index, CATALOG.text(cause_of(event))), code or 0)


def _restarted_tasks(state: JobState, context: PassContext, action: Action, event: Event) -> list[TaskRef]:
    role, spec = state.role(event.role), context.roles.get(event.role)
    indexes = [task.index for task in role.tasks if not task.dropped] if role else []
    if action is Action.RESTART_TASK:
        indexes = [index for index in indexes if index == event.index]
    elif action is Action.RESTART_PARTITION and spec is not None and spec.partition_size:
        partition = event.index // spec.partition_size
        indexes = [index for index in indexes if index // spec.partition_size == partition]
    return [TaskRef(event.role, index) for index in indexes]


def charge_restart(job: Job, state: JobState, context: PassContext, cause: str) -> tuple[JobState, RetryBudget | None]:
    """One action taken from the budget, or the budget that refuses it. Free while a restart is under way."""
    budgets = (b for b in job.policies.budgets if b.scope is BudgetScope.JOB and b.unit is BudgetUnit.ACTIONS)
    budget = next(budgets, None)
    if budget is None or is_restarting(state, context):
        return state, None
    has_one = budget.permits is None or state.charged < budget.permits
    if has_one or budget.when_empty is WhenEmpty.CHARGE_AND_FAIL:
        state = state.with_charge("")
        context.charge(cause, "")
    return state, None if has_one else budget


def is_restarting(state: JobState, context: PassContext) -> bool:
    """An earlier restart is still being carried out; a further one widens it at no cost."""
    if state.run.intent is Intent.RESTART:
        return True
    return any(state.settled[pod.uid].reason == "restart" for pod in context.settled_pods if pod.uid in state.settled)


def _raise_levels(
    job: Job, state: JobState, context: PassContext, awaited: set[EventType]
) -> tuple[JobState, list[Event]]:
    """Events of conditions that just became true; those that are no longer true may fire again."""
    holding = dict(_levels(job, state, context, awaited))
    latched = {key for key in state.settled if ":" in key}
    raised = [event for key, event in holding.items() if key not in latched]
    state = state.unsettle(latched - holding.keys())
    pending = EventType.TASK_PENDING
    latches = {k: SettledReason(e.role, e.index, "latched") for k, e in holding.items() if e.kind is not pending}
    return state.settle(latches), raised


def _levels(job: Job, state: JobState, context: PassContext, awaited: set[EventType]) -> Iterator[tuple[str, Event]]:
    """The conditions that hold now, each by the key it is latched under."""
    now = context.stamp
    if EventType.ROLE_SUCCEEDED in awaited:
        for role in state.roles:
            succeeded = [t for t in role.tasks if not t.dropped and t.outcome is not None and t.outcome.is_ok]
            if 0 < context.sizes.get(role.name, 0) <= len(succeeded):
                yield f"ok:{role.name}", Event(EventType.ROLE_SUCCEEDED, now, role.name)
    if EventType.ROLE_EXHAUSTED in awaited:
        for name in exhausted_roles(job, context):
            yield f"exhausted:{name}", Event(EventType.ROLE_EXHAUSTED, now, name)
    for group in context.observed.groups.values():
        if group.unknown and EventType.GROUP_UNKNOWN in awaited:
            yield f"group:{group.uid}", Event(EventType.GROUP_UNKNOWN, now, uid=group.uid)
    for group in context.observed.groups.values():
        if group.evicted and EventType.GROUP_EVICTED in awaited:
            yield f"evicted:{group.uid}", Event(EventType.GROUP_EVICTED, now, uid=group.uid)
    for signal in context.observed.signals:
        kind = _SIGNALS.get(signal.kind)
        if kind in awaited and kind is not None:
            yield f"signal:{signal.key}", Event(kind, now, uid=signal.key)
    if EventType.TASK_PENDING not in awaited:
        return
    for (name, index), pod in context.pods.items():
        if pod.phase is not PodPhase.PENDING or pod.created is None or pod.leaving or is_excused(state, name, index):
            continue
        event = Event(EventType.TASK_PENDING, now, name, index, pod.uid)
        reaction = _find(job, context, event)
        if reaction and context.now >= pod.created + timedelta(seconds=reaction.after_seconds):
            yield f"pending:{pod.uid}", event


def is_excused(state: JobState, role: str, index: int) -> bool:
    """Whether a task is pending because its pod was reclaimed: no reaction is due for that."""
    task = state.task(TaskRef(role, index))
    return task is not None and task.reclaimed


def exhausted_roles(job: Job, context: PassContext) -> list[str]:
    """Roles whose containers restarted in place more often than a budget with when_empty EVENT permits."""
    found: list[str] = []
    for role in job.roles:
        for budget in (role.budget, *job.policies.budgets):
            if budget is None or budget.unit is not BudgetUnit.CONTAINERS or budget.when_empty is not WhenEmpty.EVENT:
                continue
            if budget.permits is None or (budget.roles and role.name not in budget.roles):
                continue
            if container_restarts(budget, context, role.name) > budget.permits:
                found.append(role.name)
    return found


def container_restarts(budget: RetryBudget, context: PassContext, role: str = "") -> int:
    """Restarts in place, summed over the living pods that the budget covers."""
    return sum(
        pod.restarts
        for (name, _), pod in context.pods.items()
        if budget.covers(name, pod) and (not role or name == role)
    )


def _delay_reaction(state: JobState, event: Event, reaction: Reaction) -> JobState:
    """One timer per subject; a second event with the same action does not reset it."""
    key = f"{event.role}/{event.index}" if event.index >= 0 else f"{event.kind.value}/{event.role}"
    if key in state.due and state.due[key].action is reaction.action:
        return state
    at = event.at + timedelta(seconds=reaction.after_seconds)
    due = DelayedAction(at, reaction.action, event.kind, event.role, event.index, event.uid, reaction.outcome)
    return replace(state, due={**state.due, key: due})


def _drop_due(state: JobState, lapses: Callable[[DelayedAction], bool]) -> JobState:
    """Without the delayed reactions that lapse."""
    if not any(lapses(due) for due in state.due.values()):
        return state
    return replace(state, due={key: due for key, due in state.due.items() if not lapses(due)})
