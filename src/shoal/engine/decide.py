"""Step 4, decide: what it means. Events meet reactions, ends meet retries, and at most one job-wide decision falls.

The sources of a job-wide decision (stop, command, reactions, completion, limits, hold) are asked in the dialect's
order; the first that wants something closes the run. Stop and commands that stand first are asked before anybody is
retried, so that nothing begins anew in a run that ends. A closed run can only be closed for a stronger reason.
"""

from __future__ import annotations

from datetime import timedelta

import msgspec
from msgspec.structs import replace

from shoal.engine.completion import falls_back, is_ready, tally, verdict
from shoal.engine.gates import is_hold_wished
from shoal.engine.limits import reached
from shoal.engine.messages import stated
from shoal.engine.model import Job
from shoal.engine.pass_context import Scene
from shoal.engine.policies import Budget, Finish, Source, Tally
from shoal.engine.reactions import Proposal, act, announce, blamed, charge_restart, react
from shoal.engine.retry import answer
from shoal.engine.run_closing import close
from shoal.engine.state import JobState
from shoal.engine.types import ENDINGS, RESTARTS, Action, Event, Happening, Intent, Outcome, Stage
from shoal.kube.messages import Message

_EARLY = (Source.STOP, Source.COMMAND)
TARGETED = RESTARTS - {Action.RESTART_RUN}


class Case(msgspec.Struct):
    """What the sources look at, beside the state."""

    proposal: Proposal | None = None
    exhausted: Outcome | None = None  # of the job, where no retry is left


def decide(job: Job, state: JobState, scene: Scene, events: list[Event]) -> JobState:
    if state.is_ended:
        return _settle_commands(state, scene)
    order = job.policies.completion.order
    early = [source for source in order if source in _EARLY]
    case = Case()
    for source in early:
        state = _ask(source, job, state, scene, case)
    if state.run.is_open:
        state, consumed, case.proposal = react(job, state, scene, events)
        state, case.exhausted = answer(job, state, scene, consumed)
        state = _make_ready(job, state, scene)
    for source in order:
        if source not in _EARLY:
            state = _ask(source, job, state, scene, case)
    if not state.run.is_open:
        state, _ = answer(job, state, scene, set())  # whoever ended in the pass that closed the run
    return state


def _ask(source: Source, job: Job, state: JobState, scene: Scene, case: Case) -> JobState:
    if state.is_ended:
        return state
    if source is Source.STOP:
        return _stop(job, state, scene)
    if source is Source.COMMAND:
        return _obey(job, state, scene)
    if source is Source.HOLD:
        return _hold(job, state, scene)
    if not state.run.is_open:
        return state
    if source is Source.REACTIONS:
        return carry_out(job, state, scene, case.proposal) if case.proposal else state
    if source is Source.COMPLETION:
        return _complete(job, state, scene)
    return _limit(job, state, scene, case.exhausted)


def lose_anchor(job: Job, state: JobState, scene: Scene) -> JobState:
    """The loss of the object that owns the bodies ends the run, and explains why the bodies go: they are not judged."""
    policy, run = job.policies.embodiment.anchor, state.run
    if policy is None or not run.is_open or run.stage is Stage.WAITING:
        return state
    if run.stage is Stage.REQUESTED:
        limit = job.policies.clock.creation_seconds
        if job.stop or limit is None or run.since is None or scene.now < run.since + timedelta(seconds=limit):
            return state
        return _end(job, state, scene, policy.unseen, Message("Cause.OwnerUnseen"))
    if run.stage is Stage.LEAVING:
        return _end(job, state, scene, policy.leaving, Message("Cause.OwnerLeaving"))
    if scene.anchor is None:
        return _end(job, state, scene, policy.gone, Message("Cause.OwnerGone"))
    return state


def _stop(job: Job, state: JobState, scene: Scene) -> JobState:
    if not job.stop or state.run.intent is Intent.END:
        return state
    completion = job.policies.completion
    return _end(job, state, scene, completion.stop, Message("Cause.Stop"), completion.stop_finish)


def _complete(job: Job, state: JobState, scene: Scene) -> JobState:
    completion = job.policies.completion
    if completion.needs_ready and state.run.stage is not Stage.RUNNING:
        return state
    found = verdict(job, state, tally(job, state, scene), frozenset(scene.over))
    if found is None:
        return state
    when, outcome = found
    text = str(outcome.trigger) if outcome.trigger else outcome.text
    return _end(job, state, scene, outcome, stated(text) if text else Message("Cause.Rule"), when.finish)


def _limit(job: Job, state: JobState, scene: Scene, exhausted: Outcome | None) -> JobState:
    limit = reached(job, state, scene, exhausted)
    if limit is None:
        return state
    outcome, why, at_deadline = limit
    finish = job.policies.completion.limit_finish
    return _end(job, state, scene, outcome, why, finish, at_deadline=at_deadline)


def _hold(job: Job, state: JobState, scene: Scene) -> JobState:
    wished = is_hold_wished(job, scene)
    if wished and (state.run.intent is None or state.run.intent < Intent.HOLD):
        scene.emit("", "Held", job=job.name)
        return close(job, state, scene, Intent.HOLD)
    if not wished and state.run.intent is Intent.HOLD and job.policies.hold.from_spec:
        return _release(job, state, scene)
    return state


def _release(job: Job, state: JobState, scene: Scene) -> JobState:
    if state.run.intent is not Intent.HOLD:
        return state
    scene.emit("", "Released", job=job.name)
    scene.released = True
    if job.policies.hold.resume_charged:
        state = state.with_charge("")
        scene.charge("", "")  # a run may be held and released again and again
    return replace(state, run=state.run.released(counts=job.policies.hold.release_counts))


def _obey(job: Job, state: JobState, scene: Scene) -> JobState:
    """Commands take effect and are remembered in one ledger; the command object goes afterwards."""
    for command in scene.observed.commands:
        if command.uid in state.handled:
            continue
        state = replace(state, handled=(*state.handled, command.uid))
        reaction = job.policies.commands.get(command.word)
        if reaction is None:
            scene.emit("", "CommandUnknown", warning=True, job=job.name, command=command.word)
            continue
        if state.run.intent is Intent.HOLD and reaction.action in job.policies.hold.ignores:
            scene.emit("", "CommandIgnored", warning=True, job=job.name, command=command.word)
            continue
        scene.emit("", "CommandIssued", command=command.word)
        if reaction.action in TARGETED and not state.run.is_open:
            continue  # everybody begins anew in any case
        event = Event(Happening.COMMAND, scene.stamp, command.role, command.index, command.uid)
        state, proposal = act(job, state, scene, reaction.action, event, reaction.outcome)
        if proposal is not None:
            state = carry_out(job, state, scene, proposal)
    return state


def _settle_commands(state: JobState, scene: Scene) -> JobState:
    """An ended job hears commands and does nothing about them."""
    fresh = tuple(command.uid for command in scene.observed.commands if command.uid not in state.handled)
    return replace(state, handled=(*state.handled, *fresh)) if fresh else state


def carry_out(job: Job, state: JobState, scene: Scene, proposal: Proposal) -> JobState:
    """A job-wide action, with an Event where it changes the job."""
    after = _carried_out(job, state, scene, proposal)
    if after is not state:
        announce(job, scene, proposal.action, proposal.why)
    return after


def _carried_out(job: Job, state: JobState, scene: Scene, proposal: Proposal) -> JobState:
    action = proposal.action
    if action in ENDINGS:
        assert proposal.outcome is not None
        return _end(job, state, scene, proposal.outcome, proposal.why)
    if action is Action.HOLD:
        if state.run.intent is not None and state.run.intent >= Intent.HOLD:
            return state
        scene.emit("", "Held.ByAction", job=job.name, cause=proposal.why)
        return close(job, state, scene, Intent.HOLD, outcome=proposal.outcome)
    if action is Action.RELEASE:
        return _release(job, state, scene)
    return _restart_run(job, state, scene, proposal)


def _restart_run(job: Job, state: JobState, scene: Scene, proposal: Proposal) -> JobState:
    if not state.run.is_open:
        return state
    refusal: Budget | None = None
    if proposal.charged:
        state, refusal = charge_restart(job, state, scene, proposal.cause)
    if refusal is not None:
        outcome = blamed(state, refusal.outcome, proposal.event)
        assert outcome is not None
        return _end(job, state, scene, outcome, Message("Cause.NoRestart", {"cause": proposal.why}))
    scene.emit("", "Restarting", warning=True, job=job.name, cause=proposal.why)
    return close(job, state, scene, Intent.RESTART)


def _end(
    job: Job,
    state: JobState,
    scene: Scene,
    outcome: Outcome,
    why: Message,
    finish: Finish = Finish.DRAINED,
    *,
    at_deadline: bool = False,
) -> JobState:
    closed = close(job, state, scene, Intent.END, outcome=outcome, finish=finish, at_deadline=at_deadline)
    if closed is not state:
        is_warning = not (outcome.is_ok or outcome.final)
        parameters = {"job": job.name, "run": state.run.number, "outcome": outcome.label, "cause": why}
        scene.emit("", f"RunEnding.{_ending(outcome)}", warning=is_warning, **parameters)
    return closed


def _ending(outcome: Outcome) -> str:
    """How a run ends; what a user asked for is no failure."""
    if outcome.is_ok:
        return "Succeeded"
    if outcome.final:
        return "Stopped"
    return "Failed" if outcome.label.lower() == "failed" else "FailedWith"


def _make_ready(job: Job, state: JobState, scene: Scene) -> JobState:
    """The run is running once enough of it is; how much is the dialect's Ready."""
    stage = state.run.stage
    if stage is Stage.RUNNING and job.policies.ready.sticky:
        return state
    if stage is not Stage.PREPARING and stage is not Stage.RUNNING:
        return state
    tallies = tally(job, state, scene)
    if stage is Stage.PREPARING and is_ready(job, tallies):
        scene.emit("", "Running", job=job.name)
        stamps = replace(state.stamps, ran=state.stamps.ran or scene.stamp)
        return replace(state, run=state.run.at(Stage.RUNNING, scene.stamp), stamps=stamps)
    if stage is Stage.RUNNING and falls_back(job, tallies):
        up = tallies.all.of(Tally.STARTED)
        scene.emit("", "NotReady", job=job.name, started=up, size=tallies.all.size)
        return replace(state, run=state.run.at(Stage.PREPARING, scene.stamp))
    return state
