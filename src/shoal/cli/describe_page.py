"""The description of a job in prose: what it is, what happened and why, how its tasks are, and what is next.

Made from the job state, the pods and the Events; what is next is what the engine itself would report at this moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from shoal.cli.event_grouping import Line, group_events
from shoal.cli.job_lookup import FoundJob
from shoal.cli.job_table import format_duration, job_status
from shoal.cli.last_failure import FailedAttempt
from shoal.cli.policy_summary import describe_completion, describe_reactions
from shoal.cli.reasons import last_message_lines, why_ended, why_idle
from shoal.cli.task_table import observed_pods, task_lines
from shoal.dialects.capabilities import Gangs, OwnedObjects, RunOwner
from shoal.dialects.children import observe_children, open_gates
from shoal.dialects.dialect import StateUnreadable
from shoal.dialects.gang_backends.delegate import unsupported_features
from shoal.engine import JobState, Observed, ObservedRunOwner
from shoal.engine.advance import advance
from shoal.kube import times
from shoal.kube.messages import MESSAGE, decode
from shoal.kube.objects import Obj, annotations_of, name_of

_WRITE = "write some into its spec"
# Reasons of Events whose fact another line states: the headline, or the Event about what the action did.
_STATED_ELSEWHERE = frozenset({"Running", "Succeeded", "Failed", "Stopped", "ExecuteAction"})


@dataclass(frozen=True, slots=True)
class DescribeContext:
    """What is there besides the job."""

    pods: list[Obj]
    events: list[Obj]
    run_owner: Obj | None
    now: datetime
    owned_objects: tuple[Obj, ...] = ()  # groups and other owned objects the job may wait for
    failure: FailedAttempt | None = None  # the last one, of a job that continues


def describe_job(found: FoundJob, context: DescribeContext) -> str:
    """The whole page; for a job whose status cannot be read, only that and what happened."""
    try:
        state = found.state
    except StateUnreadable as problem:
        head = f"{found} in namespace {found.namespace} ({_roles(found)}) is unreadable: {problem}"
        return "\n\n".join((head, _section("What happened", _history(found, JobState(), context))))
    failure, last_lines = context.failure, ""
    if failure is not None:
        title = f"Last log lines of {failure.task}, which failed with code {failure.code}"
        last_lines = _section(title, failure.lines)
    parts = [
        headline(found, state, context.now),
        last_message(state),
        last_lines,
        _section("What happened", _history(found, state, context)),
        _section("Tasks", task_lines(found, state, context.pods)),
        _section("What is next", next_lines(found, state, context)),
    ]
    return "\n\n".join(part for part in parts if part)


def _section(title: str, lines: Iterable[str]) -> str:
    listed = [f"  {line}" for line in lines]
    return "\n".join([f"{title}:", *listed]) if listed else ""


def headline(found: FoundJob, state: JobState, now: datetime) -> str:
    """The job in one line: what it is, its state, and why."""
    run, roles = state.run, _roles(found)
    status = job_status(state)
    since = (
        f" for {format_duration((now - run.since).total_seconds())}"
        if run.since is not None and not state.is_ended
        else ""
    )
    what = f"{found} in namespace {found.namespace} ({roles}) is {status}{since}"
    if state.is_ended and run.outcome is not None:
        why = f": {why_ended(state, run.outcome)}" if status != "stopped" or run.outcome.trigger else ""
        started, ended = state.stamps.started, state.stamps.ended
        took = (ended - started).total_seconds() if started is not None and ended is not None else None
        after = f" after {format_duration(took)}" if took is not None else ""
        what = f"{found} in namespace {found.namespace} ({roles}) {_verb(status)}{after}{why}"
    elif state.is_held and run.outcome is not None:
        what += f": {why_ended(state, run.outcome)}"
    if run.number:  # a resumed job has runs that did nothing wrong
        after = f", after {run.number} unsuccessful run{'s' * (run.number > 1)}" if state.stamps.held is None else ""
        what += f"; this is run {run.number}{after}"
    return f"{what}."


def _roles(found: FoundJob) -> str:
    job = found.job
    if job is None:
        return f"managed by {found.other_controller}" if found.other_controller else "unreadable"
    counts = None
    with suppress(StateUnreadable):
        counts = found.counts
    if counts is not None:
        pace = f", {counts.parallelism} at a time" if counts.parallelism < counts.wanted else ""
        return f"{job.roles[0].name} x {counts.wanted}{pace}"
    return ", ".join(f"{role.name} x {role.size}" for role in job.roles)


def _verb(status: str) -> str:
    """Of a job that has ended."""
    return "was stopped" if status == "stopped" else status


def resume_hint(found: FoundJob) -> str:
    """What becomes of a job that is held, and how."""
    name, end = found.name, "delete" if found.stop_keeps_work else "stop"
    return f"`shoal start {name}` resumes it without repeating tasks that have succeeded; `shoal {end} {name}` ends it"


def last_message(state: JobState) -> str:
    """The last output of the task that made the job fail; empty if it left no message."""
    is_over = state.is_ended or state.is_held
    message = last_message_lines(state, state.run.outcome) if is_over and state.run.outcome is not None else []
    return _section("Last output", message)


# --- what happened -------------------------------------------------------------------------------------------------


def _history(found: FoundJob, state: JobState, context: DescribeContext) -> Iterator[str]:
    lines: list[Line] = []
    created = found.manifest["metadata"].get("creationTimestamp")
    if created:
        lines.append(Line(times.parse(created), "It was submitted."))
    stamps = state.stamps
    if stamps.ran is not None:
        lines.append(Line(stamps.ran, "Its first task started."))
    lines += event_lines(context.events)
    if stamps.ended is not None:
        lines.append(Line(stamps.ended, f"It {_verb(job_status(state))}."))
    for line in group_events(lines):
        ago = format_duration((context.now - line.at).total_seconds())
        # Events are written by other programs too, and the page may go to a terminal: no control characters.
        text = "".join(char if char.isprintable() else " " for char in line.text)
        yield f"{line.at.astimezone():%H:%M:%S} ({ago} ago)  {text}"


def event_lines(events: Iterable[Obj]) -> Iterator[Line]:
    """In the order in which the server received the Events: their times are in whole seconds."""
    numbers = ((str(event["metadata"].get("resourceVersion")), event) for event in events)
    numbered = [(int(number) if number.isdecimal() else 0, event) for number, event in numbers]
    for _, event in sorted(numbered, key=lambda pair: pair[0]):
        when = event.get("lastTimestamp") or event.get("firstTimestamp") or event["metadata"].get("creationTimestamp")
        if not when or event.get("reason") in _STATED_ELSEWHERE:
            continue
        count = event.get("count") or 1
        repeats = f" ({count} times)" if count > 1 else ""
        text = (event.get("message") or "").rstrip(".")
        yield Line(times.parse(when), f"{text}{repeats}.", decode(annotations_of(event).get(MESSAGE) or ""))


# --- what is next --------------------------------------------------------------------------------------------------


def next_lines(found: FoundJob, state: JobState, context: DescribeContext) -> Iterator[str]:
    job = found.job
    if job is None:
        if controller := found.other_controller:
            yield f"The controller {controller} manages it (spec.managedBy)."
        return
    if state.is_ended:
        ttl, ended = job.policies.clock.ttl_seconds, state.stamps.ended
        until = ended + timedelta(seconds=ttl) if ttl is not None and ended else None
        kept = f" It is kept until {until.astimezone():%Y-%m-%d %H:%M}." if until is not None else ""
        # Some languages delete the pods at the end, others keep them. Several pods may have had one place.
        count = sum(observed_pod.owned for _, observed_pod in observed_pods(found, context.pods))
        there = "Its pod is" if count == 1 else f"{count} of its pods are"
        logs = f"{there} still there; `shoal logs {found.name}` shows what was printed."
        gone = f"Its pods are gone; `shoal get {found.name} -o yaml` shows what it left."
        yield f"Nothing: it has ended.{kept} {logs if count else gone}"
        return
    if job.deleting:
        yield "It is being deleted: first its pods, then the job."
        return
    why = why_idle(found, state)
    rests = bool(why) and not any(role.size for role in job.roles)
    if rests:
        hint = f"`shoal scale {found.name} {job.roles[0].name}=1` gives it one" if job.roles else _WRITE
        yield f"It waits because {why}: {hint}."
    if state.is_held:
        yield f"It is held: {resume_hint(found)}."
        return
    step = advance(job, found.dialect.load_state(found.manifest), observe(found, context), context.now)
    yield from dict.fromkeys(
        gate_status.message.rstrip(".") + "." for gate_status in step.gate_statuses if gate_status.message
    )
    yield from reasons_of_groups(found, context)
    if state.run.delay_seconds is not None and state.run.since is not None:
        due = state.run.since + timedelta(seconds=state.run.delay_seconds)
        yield f"It is tried again at {due.astimezone():%H:%M:%S} as run {state.run.number + 1}."
    elif step.wake_at is not None and step.wake_at - context.now < timedelta(days=1):
        at = f"{step.wake_at.astimezone():%H:%M:%S}"
        yield f"The operator reconciles it again at {at}, or earlier if something changes."
    if state.run.is_open and not rests:
        yield from describe_reactions(job, state)
        yield from describe_completion(job)


def observe(found: FoundJob, context: DescribeContext) -> Observed:
    dialect, manifest = found.dialect, found.manifest
    owned, owner = dialect.capability(OwnedObjects), dialect.capability(RunOwner)
    pods = tuple(
        observed_pod for pod in context.pods if (observed_pod := dialect.observe_pod(pod, manifest)) is not None
    )
    run_owner: ObservedRunOwner | None = None
    if context.run_owner is not None and owner is not None:
        run_owner = owner.observe(context.run_owner, manifest)
    if owned is None:
        return Observed(pods=pods, run_owner=run_owner, nonce=name_of(manifest))
    groups, children = observe_children(owned, dialect.capability(Gangs), context.owned_objects, manifest)
    there = {(obj.get("kind"), name_of(obj)) for obj in context.owned_objects}
    gates = open_gates(owned.required_objects(manifest), lambda kind, name: (kind.kind, name) in there)
    return Observed(pods=pods, run_owner=run_owner, groups=groups, owned_objects=children, open_gates=gates)


def reasons_of_groups(found: FoundJob, context: DescribeContext) -> Iterator[str]:
    """The reason each group waits, as its scheduler reports it."""
    owned, gangs = found.dialect.capability(OwnedObjects), found.dialect.capability(Gangs)
    if owned is None or gangs is None:
        return
    groups = (obj for obj in context.owned_objects if obj.get("kind") == gangs.group.kind)
    for group in groups:
        if owned.observe_child(group, found.manifest) is None:
            continue
        if why := gangs.pending_reason(group):
            yield f"{gangs.group.kind} {name_of(group)} waits: {why}."
        if unsupported := unsupported_features(group):
            yield f"Its scheduler does not support {unsupported}."
