"""Step 4, decide: events trigger reactions, ends trigger retries, and at most one job-wide decision is made.

The sources of a job-wide decision (stop, command, reactions, completion, limits, hold) are evaluated in the dialect's
order; the first with a proposal closes the run. Stop and commands, if they are first, are evaluated before any retry,
so that nothing restarts in a run that ends. A closed run can only be closed for a stronger reason.
"""

from __future__ import annotations

from datetime import timedelta

import msgspec
from msgspec.structs import replace

from shoal.engine.completion import DecisionSource, Finish, Tally, evaluate_completion, falls_back, is_ready, tally
from shoal.engine.gates import is_hold_requested
from shoal.engine.messages import describe_trigger, stated
from shoal.engine.model import Job
from shoal.engine.pass_context import PassContext
from shoal.engine.reactions import Proposal, act, announce, attribute_failure, charge_restart, react
from shoal.engine.retry import decide_retries
from shoal.engine.run_lifecycle import close
from shoal.engine.state import JobState
from shoal.engine.timeouts import exceeded_limit
from shoal.engine.types import ENDINGS, RESTARTS, Action, Event, EventType, Intent, Outcome, Stage
from shoal.kube.messages import Message

_EARLY_SOURCES = (DecisionSource.STOP, DecisionSource.COMMAND)


TARGETED = RESTARTS - {Action.RESTART_RUN}


class DecisionInputs(msgspec.Struct):
    """What the sources evaluate, beside the state."""

    proposal: Proposal | None = None
    exhausted: Outcome | None = None  # of the job, where no retry is left


def decide(job: Job, state: JobState, context: PassContext, events: list[Event]) -> JobState:
    if state.is_ended:
        # Commands to an ended job are handled without effect.
        fresh = tuple(command.uid for command in context.observed.commands if command.uid not in state.handled)
        return replace(state, handled=(*state.handled, *fresh)) if fresh else state
    order = job.policies.completion.order
    case = DecisionInputs()
    for source in order:
        if source in _EARLY_SOURCES:
            state = _apply_source(source, job, state, context, case)
    if state.run.is_open:
        state, consumed, case.proposal = react(job, state, context, events)
        state, case.exhausted = decide_retries(job, state, context, consumed)
        state = _update_readiness(job, state, context)
    for source in order:
        if source not in _EARLY_SOURCES:
            state = _apply_source(source, job, state, context, case)
    if not state.run.is_open:
        state, _ = decide_retries(job, state, context, set())  # tasks that ended in the pass that closed the run
    return state


def _apply_source(
    source: DecisionSource, job: Job, state: JobState, context: PassContext, case: DecisionInputs
) -> JobState:
    if state.is_ended:
        return state
    completion = job.policies.completion
    if source is DecisionSource.STOP:
        if not job.stop or state.run.intent is Intent.END:
            return state
        return _end_run(job, state, context, completion.stop, Message("Cause.Stop"), completion.stop_finish)
    if source is DecisionSource.COMMAND:
        return _execute_commands(job, state, context)
    if source is DecisionSource.HOLD:
        return _hold_or_release(job, state, context)
    if not state.run.is_open:
        return state
    if source is DecisionSource.REACTIONS:
        return execute_proposal(job, state, context, case.proposal) if case.proposal else state
    if source is DecisionSource.COMPLETION:
        return _complete(job, state, context)
    limit = exceeded_limit(job, state, context, case.exhausted)
    if limit is None:
        return state
    outcome, why, at_deadline = limit
    return _end_run(job, state, context, outcome, why, completion.limit_finish, at_deadline=at_deadline)


def handle_lost_run_owner(job: Job, state: JobState, context: PassContext) -> JobState:
    """The loss of the run owner ends the run. It is also why the pods are deleted: they are not evaluated."""
    policy, run = job.policies.pod_policy.run_owner, state.run
    if policy is None or not run.is_open or run.stage is Stage.WAITING:
        return state
    if run.stage is Stage.REQUESTED:
        limit = job.policies.clock.creation_seconds
        if job.stop or limit is None or run.since is None or context.now < run.since + timedelta(seconds=limit):
            return state
        return _end_run(job, state, context, policy.unseen, Message("Cause.OwnerUnseen"))
    if run.stage is Stage.LEAVING:
        return _end_run(job, state, context, policy.leaving, Message("Cause.OwnerLeaving"))
    if context.run_owner is None:
        return _end_run(job, state, context, policy.gone, Message("Cause.OwnerGone"))
    return state


def _complete(job: Job, state: JobState, context: PassContext) -> JobState:
    if job.policies.completion.needs_ready and state.run.stage is not Stage.RUNNING:
        return state
    found = evaluate_completion(job, state, tally(job, state, context), frozenset(context.ended_attempts))
    if found is None:
        return state
    rule, outcome = found
    text = describe_trigger(outcome.trigger) if outcome.trigger else outcome.text
    return _end_run(job, state, context, outcome, stated(text) if text else Message("Cause.Rule"), rule.finish)


def _hold_or_release(job: Job, state: JobState, context: PassContext) -> JobState:
    requested = is_hold_requested(job, context)
    if requested and (state.run.intent is None or state.run.intent < Intent.HOLD):
        context.emit("", "Held", job=job.name)
        return close(job, state, context, Intent.HOLD)
    if not requested and job.policies.hold.from_spec:
        return _release(job, state, context)
    return state


def _release(job: Job, state: JobState, context: PassContext) -> JobState:
    if state.run.intent is not Intent.HOLD:
        return state
    context.emit("", "Released", job=job.name)
    context.released = True
    if job.policies.hold.resume_charged:
        state = state.with_charge("")
        context.charge("", "")  # a run may be held and released again and again
    return replace(state, run=state.run.released(counts=job.policies.hold.release_counts))


def _execute_commands(job: Job, state: JobState, context: PassContext) -> JobState:
    """Commands take effect and are recorded in one job state; the command object is deleted afterwards."""
    for command in context.observed.commands:
        if command.uid in state.handled:
            continue
        state = replace(state, handled=(*state.handled, command.uid))
        reaction = job.policies.commands.get(command.action)
        if reaction is None:
            context.emit("", "CommandUnknown", warning=True, job=job.name, command=command.action)
            continue
        if state.run.intent is Intent.HOLD and reaction.action in job.policies.hold.ignores:
            context.emit("", "CommandIgnored", warning=True, job=job.name, command=command.action)
            continue
        context.emit("", "CommandIssued", command=command.action)
        if reaction.action in TARGETED and not state.run.is_open:
            continue  # all tasks restart in any case
        event = Event(EventType.COMMAND, context.stamp, command.role, command.index, command.uid)
        state, proposal = act(job, state, context, reaction.action, event, reaction.outcome)
        if proposal is not None:
            state = execute_proposal(job, state, context, proposal)
    return state


def execute_proposal(job: Job, state: JobState, context: PassContext, proposal: Proposal) -> JobState:
    """A job-wide action, with an Event where it changes the job."""
    action, after = proposal.action, state
    if action in ENDINGS:
        assert proposal.outcome is not None
        after = _end_run(job, state, context, proposal.outcome, proposal.why)
    elif action is Action.RELEASE:
        after = _release(job, state, context)
    elif action is not Action.HOLD:
        after = _restart_run(job, state, context, proposal)
    elif state.run.intent is None or state.run.intent < Intent.HOLD:
        context.emit("", "Held.ByAction", job=job.name, cause=proposal.why)
        after = close(job, state, context, Intent.HOLD, outcome=proposal.outcome)
    if after is not state:
        announce(job, context, action, proposal.why)
    return after


def _restart_run(job: Job, state: JobState, context: PassContext, proposal: Proposal) -> JobState:
    if not state.run.is_open:
        return state
    if proposal.charged:
        state, refusal = charge_restart(job, state, context, proposal.cause)
        if refusal is not None:
            outcome = attribute_failure(state, refusal.outcome, proposal.event)
            assert outcome is not None
            return _end_run(job, state, context, outcome, Message("Cause.NoRestart", {"cause": proposal.why}))
    context.emit("", "Restarting", warning=True, job=job.name, cause=proposal.why)
    return close(job, state, context, Intent.RESTART)


def _end_run(
    job: Job,
    state: JobState,
    context: PassContext,
    outcome: Outcome,
    why: Message,
    finish: Finish = Finish.DRAINED,
    *,
    at_deadline: bool = False,
) -> JobState:
    closed = close(job, state, context, Intent.END, outcome=outcome, finish=finish, at_deadline=at_deadline)
    if closed is state:
        return state
    if outcome.is_ok:
        how = "Succeeded"
    elif outcome.final:
        how = "Stopped"  # an end the user requested is no failure
    else:
        how = "Failed" if outcome.label.lower() == "failed" else "FailedWith"
    parameters = {"job": job.name, "run": state.run.number, "outcome": outcome.label, "cause": why}
    context.emit("", f"RunEnding.{how}", warning=how.startswith("Failed"), **parameters)
    return closed


def _update_readiness(job: Job, state: JobState, context: PassContext) -> JobState:
    """The run is running once enough of it is; how much is the dialect's Ready."""
    stage = state.run.stage
    if stage is Stage.RUNNING and job.policies.ready.sticky:
        return state
    if stage is not Stage.PREPARING and stage is not Stage.RUNNING:
        return state
    tallies = tally(job, state, context)
    if stage is Stage.PREPARING and is_ready(job, tallies):
        context.emit("", "Running", job=job.name)
        stamps = replace(state.stamps, ran=state.stamps.ran or context.stamp)
        return replace(state, run=state.run.at(Stage.RUNNING, context.stamp), stamps=stamps)
    if stage is Stage.RUNNING and falls_back(job, tallies):
        started = tallies.all.of(Tally.STARTED)
        context.emit("", "NotReady", job=job.name, started=started, size=tallies.all.size)
        return replace(state, run=state.run.at(Stage.PREPARING, context.stamp))
    return state
