"""The text of every message of the engine, by code. The one place to change it.

Codes that begin with `Cause.` are clauses of other messages: they follow `because`.
"""

from __future__ import annotations

from shoal.engine.types import Event, EventType
from shoal.kube.messages import Catalog, Message

CATALOG = Catalog(
    {
        # the job
        "Started": "Run {run} of {job} is open",
        "RunOpened": "Run {run} of {job} is open",
        "RunDelayed": "{job} is tried again in {seconds} s as run {run}",
        "RunEnding.Succeeded": "Run {run} of {job} succeeded, because {cause}",
        "RunEnding.Stopped": "Run {run} of {job} is stopped, because {cause}",
        "RunEnding.Failed": "Run {run} of {job} failed, because {cause}",
        "RunEnding.FailedWith": "Run {run} of {job} failed: {outcome}, because {cause}",
        "Running": "{job} is running",
        "NotReady": "{job} waits for members: {started} of {size} run or have ended",
        "Held": "{job} is held: its members go, what it achieved stays",
        "Held.ByAction": "{job} is held, because {cause}",
        "Released": "{job} is released: its members return once the old ones are gone",
        "Restarting": "{job} restarts as a whole, because {cause}",
        "Stopped": "{job} has been stopped",
        "Succeeded": "{job} has ended: {phrase}",
        "Failed": "{job} has ended: {phrase}",
        "RoundChanged": "Round {round} of {job} has {size} member(s)",
        # commands
        "CommandIssued": "The order {command} has arrived",
        "CommandIgnored": "Command {command} has no effect while {job} is held",
        "CommandUnknown": "Command {command!r} means nothing to {job}",
        "ExecuteAction": "Start to execute action {action}: {cause}",
        "Guarded": "{text}",
        # roles and their size
        "ScaledUp": "{tasks} added: {size} wanted",
        "ScaledDown": "{tasks} scaled away: {size} wanted",
        "ScaledDown.Unindexed": "{tasks} not needed: {size} slot(s) wanted",
        "GaveBack": "{job} gives {count} pods back, {tasks}: {cause}",
        "GaveBack.One": "{job} gives a pod back, {tasks}: {cause}",
        # tasks
        "FailedCreate": "{task} could not be created yet: {cause}",
        "TaskSucceeded": "{task} succeeded in attempt {attempt}",
        "TaskFailed": "{task} failed in attempt {attempt}: {cause}",
        "TaskFailed.Evicted": "{task} was evicted in attempt {attempt}: {cause}",
        "TaskLost": "{task} was lost in attempt {attempt}: {cause}",
        "TaskLost.Evicted": "{task} was evicted in attempt {attempt}: {cause}",
        "TaskRetried": "{task} is tried again as attempt {attempt} ({charged} charged)",
        "TaskRetried.Free": "{task} is tried again as attempt {attempt}, at no cost",
        "TaskReplaced": "{task} is wanted again and restarts",
        "RetriesExhausted": "{task} is not tried again: no retry is left",
        "Restarting.Task": "{tasks} restarts, because {cause}",
        "Restarting.Tasks": "{tasks} restart, because {cause}",
        # what a task did that decided about the run
        "Trigger.RetriesExhausted": "{task} failed and no retry is left",
        "Trigger.Restarts": "{task} restarted {times} times",
        # causes
        "Cause.Text": "{text}",
        "Cause.Stop": "its user asked to stop it",
        "Cause.Rule": "its completion rule is satisfied",
        "Cause.NoRetry": "no retry is left",
        "Cause.NoRestart": "no restart is left: {cause}",
        "Cause.Scheduler": "its scheduler asked for it",
        "Cause.Restarts": "containers restarted {count} times, {permitted} permitted",
        "Cause.Deadline": "it was active longer than its deadline allows",
        "Cause.OwnerUnseen": "its run owner was created and never observed",
        "Cause.OwnerLeaving": "its run owner is being deleted",
        "Cause.OwnerGone": "its run owner was deleted",
        "Cause.TaskPending": "{subject} was pending for too long",
        "Cause.TaskFailed": "{subject} failed",
        "Cause.TaskFailedWithCode": "{subject} failed with code {code}",
        "Cause.TaskLost": "{subject} was taken away by others",
        "Cause.RoleSucceeded": "all of {subject} have succeeded",
        "Cause.RoleExhausted": "containers of {subject} were restarted too often",
        "Cause.GroupUnknown": "a part of the gang runs and the rest cannot be placed",
        "Cause.GroupEvicted": "the place of its gang was taken back",
        "Cause.StoreLost": "the store of the group was lost",
        "Cause.RoundClosed": "the round was closed",
        "Cause.GroupDone": "the group is done",
        "Cause.Command": "a Command requested it",
    }
)


# The text of a message about several tasks, for readers that group them.
SEVERAL = Catalog(
    {
        "TaskFailed": "{tasks} failed in attempt {attempt}: {cause}",
        "TaskFailed.Evicted": "{tasks} were evicted in attempt {attempt}: {cause}",
        "TaskLost": "{tasks} were lost in attempt {attempt}: {cause}",
        "TaskLost.Evicted": "{tasks} were evicted in attempt {attempt}: {cause}",
        "TaskRetried": "{tasks} are tried again as attempt {attempt} ({charged} charged each)",
        "TaskRetried.Free": "{tasks} are tried again as attempt {attempt}, at no cost",
        "RetriesExhausted": "{tasks} are not tried again: no retry is left",
    }
)


# The text of the last message of a series, with how often and since when.
REPEATED = Catalog(
    {
        "TaskFailed": "{task} failed {times} times since {since}, the last time: {cause}",
        "RunEnding.Failed": "{job} failed as a whole {times} times since {since}, the last time because {cause}",
        "RunEnding.FailedWith": (
            "{job} failed as a whole {times} times since {since}, the last time: {outcome}, because {cause}"
        ),
        "RunOpened": "Run {run} of {job} is open, the last of {times} since {since}",
    }
)


def cause_of(event: Event) -> Message:
    """An event as the cause of what it leads to."""
    words = "".join(word.capitalize() for word in event.kind.value.split())
    if event.kind is EventType.TASK_FAILED and event.code:
        return Message("Cause.TaskFailedWithCode", {"subject": event.subject, "code": event.code})
    return Message(f"Cause.{words}", {"subject": event.subject})


def stated(text: str) -> Message:
    """A cause with text from outside: a pod, a scheduler, the rules of a dialect."""
    return Message("Cause.Text", {"text": text})
