"""The description of a job in prose: what it is, what happened and why, how its tasks are, and what is next.

Made from the job state, the pods and the Events; what is next is what the engine itself would report at this moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from shoal.cli.event_grouping import Line, group_events
from shoal.cli.job_lookup import FoundJob
from shoal.cli.job_table import format_duration, job_status
from shoal.cli.last_failure import FailedAttempt
from shoal.cli.policy_summary import describe_completion, describe_reactions
from shoal.cli.reasons import last_message_lines, why_ended, why_idle
from shoal.cli.task_table import observed_pods, task_lines
from shoal.dialects.capabilities import CompletionProgress, Gangs, OwnedObjects, RunOwner
from shoal.dialects.children import observe_children, open_gates
from shoal.dialects.dialect import StateUnreadable
from shoal.dialects.gang_backends.delegate import unsupported_features
from shoal.engine import JobState, Observed, ObservedRunOwner
from shoal.engine.advance import advance
from shoal.kube import times
from shoal.kube.messages import MESSAGE, decoded
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
    parts = [
        headline(found, state, context.now),
        last_message(state),
        _lines_of_failure(context.failure),
        _section("What happened", _history(found, state, context)),
        _section("Tasks", task_lines(found, state, context.pods)),
        _section("What is next", _next(found, state, context)),
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
        what = f"{found} in namespace {found.namespace} ({roles}) {_verb(status)}{_duration(state)}{why}"
    elif state.is_held and run.outcome is not None:
        what += f": {why_ended(state, run.outcome)}"
    if run.number:  # a resumed job has runs that did nothing wrong
        after = f", after {run.number} {'retry' if run.number == 1 else 'retries'}" if state.stamps.held is None else ""
        what += f"; this is run {run.number}{after}"
    return f"{what}."


def _roles(found: FoundJob) -> str:
    job = found.job
    if job is None:
        return f"managed by {found.other_controller}" if found.other_controller else "unreadable"
    counts = _counts(found)
    if counts is not None:
        pace = f", {counts.parallelism} at a time" if counts.parallelism < counts.wanted else ""
        return f"{job.roles[0].name} x {counts.wanted}{pace}"
    return ", ".join(f"{role.name} x {role.size}" for role in job.roles)


def _counts(found: FoundJob) -> CompletionProgress | None:
    """None if the progress cannot be read."""
    try:
        return found.counts
    except StateUnreadable:
        return None


def _verb(status: str) -> str:
    """Of a job that has ended."""
    return "was stopped" if status == "stopped" else status


def _duration(state: JobState) -> str:
    stamps = state.stamps
    if stamps.started is None or stamps.ended is None:
        return ""
    return f" after {format_duration((stamps.ended - stamps.started).total_seconds())}"


def resume_hint(found: FoundJob) -> str:
    """What becomes of a job that is held, and how."""
    name, end = found.name, "delete" if found.stop_keeps_work else "stop"
    return f"`shoal start {name}` resumes it, what has succeeded is not run again; `shoal {end} {name}` ends it"


def last_message(state: JobState) -> str:
    """The last output of the task that made the job fail; empty if it left no message."""
    is_over = state.is_ended or state.is_held
    message = last_message_lines(state, state.run.outcome) if is_over and state.run.outcome is not None else []
    return _section("Last output", message)


def _lines_of_failure(failure: FailedAttempt | None) -> str:
    """The last log lines of the attempt that failed last, also while the job retries it."""
    if failure is None:
        return ""
    return _section(f"Last log lines of {failure.task}, which failed with code {failure.code}", failure.lines)


# --- what happened -------------------------------------------------------------------------------------------------


def _history(found: FoundJob, state: JobState, context: DescribeContext) -> Iterator[str]:
    lines: list[Line] = []
    created = found.manifest["metadata"].get("creationTimestamp")
    if created:
        lines.append(Line(times.parse(created), "It was submitted."))
    stamps = state.stamps
    if stamps.ran is not None:
        lines.append(Line(stamps.ran, "Its first task started."))
    lines += [line for event in sorted(context.events, key=_number) if (line := _line_of(event)) is not None]
    if stamps.ended is not None:
        lines.append(Line(stamps.ended, f"It {_verb(job_status(state))}."))
    for line in group_events(lines):
        ago = format_duration((context.now - line.at).total_seconds())
        yield f"{line.at.astimezone():%H:%M:%S} ({ago} ago)  {_printable(line.text)}"


def _line_of(event: Obj) -> Line | None:
    when = event.get("lastTimestamp") or event.get("firstTimestamp") or event["metadata"].get("creationTimestamp")
    if not when or event.get("reason") in _STATED_ELSEWHERE:
        return None
    count = event.get("count") or 1
    repeats = f" ({count} times)" if count > 1 else ""
    text = (event.get("message") or "").rstrip(".")
    return Line(times.parse(when), f"{text}{repeats}.", decoded(annotations_of(event).get(MESSAGE) or ""))


def _printable(text: str) -> str:
    """Without control characters: Events are written by others, and the page may go to a terminal."""
    return "".join(char if char.isprintable() else " " for char in text)


def _number(event: Obj) -> int:
    """The rank of an Event among those of its second: a server numbers what it receives."""
    number = str(event["metadata"].get("resourceVersion"))
    return int(number) if number.isdecimal() else 0


# --- what is next --------------------------------------------------------------------------------------------------


def _next(found: FoundJob, state: JobState, context: DescribeContext) -> Iterator[str]:
    job = found.job
    if job is None:
        if controller := found.other_controller:
            yield f"That is up to the controller {controller}, which spec.managedBy names."
        return
    if state.is_ended:
        ttl, ended = job.policies.clock.ttl_seconds, state.stamps.ended
        kept = f" It is kept until {_day(ended + timedelta(seconds=ttl))}." if ttl is not None and ended else ""
        yield f"Nothing: it has ended.{kept} {_remaining(found, context)}"
        return
    if job.deleting:
        yield "It is being deleted: it vanishes when the last of its pods is gone."
        return
    why = why_idle(found, state)
    rests = bool(why) and not any(role.size for role in job.roles)
    if rests:
        hint = f"`shoal scale {found.name} {job.roles[0].name}=1` gives it one" if job.roles else _WRITE
        yield f"It waits because {why}: {hint}."
    if state.is_held:
        yield f"It is held: {resume_hint(found)}."
        return
    step = advance(job, found.dialect.load_state(found.manifest), _observed(found, context), context.now)
    yield from dict.fromkeys(
        gate_status.message.rstrip(".") + "." for gate_status in step.gate_statuses if gate_status.message
    )
    yield from _why_groups_wait(found, context)
    if state.run.delay_seconds is not None and state.run.since is not None:
        due = state.run.since + timedelta(seconds=state.run.delay_seconds)
        yield f"It is tried again at {due.astimezone():%H:%M:%S} as run {state.run.number + 1}."
    elif step.wake_at is not None and step.wake_at - context.now < timedelta(days=1):
        yield f"It is looked at again at {step.wake_at.astimezone():%H:%M:%S}, unless something happens before."
    if state.run.is_open and not rests:
        yield from describe_reactions(job, state)
        yield from describe_completion(job)


def _remaining(found: FoundJob, context: DescribeContext) -> str:
    """Where to look afterwards: some languages take the pods away with the end, others leave them."""
    # several may have had one place
    count = sum(observed_pod.owned for _, observed_pod in observed_pods(found, context.pods))
    if not count:
        return f"Its pods are gone; `shoal get {found.name} -o yaml` shows what it left."
    there = "Its pod is" if count == 1 else f"{count} of its pods are"
    return f"{there} still there; `shoal logs {found.name}` shows what was printed."


def _day(moment: datetime) -> str:
    return f"{moment.astimezone():%Y-%m-%d %H:%M}"


def _observed(found: FoundJob, context: DescribeContext) -> Observed:
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


def _why_groups_wait(found: FoundJob, context: DescribeContext) -> Iterator[str]:
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
