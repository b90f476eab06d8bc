"""The text of every message of the engine, by code. The one place to change it.

Codes that begin with `Cause.` are clauses of other messages: they follow `because`. Those with `Gate.` and `Trigger.`
are no Events: they are the messages of a closed gate, and of the task that decided about a run.
"""

from __future__ import annotations

from shoal.engine.types import Event, EventType, Trigger
from shoal.kube.messages import Catalog, Message

CATALOG = Catalog(
    {
        # the job
        "Started": "Run {run} of {job} started",
        "RunOpened": "Run {run} of {job} started",
        "RunDelayed": "{job} is retried in {seconds} s as run {run}",
        "RunEnding.Succeeded": "Run {run} of {job} succeeded, because {cause}",
        "RunEnding.Stopped": "Run {run} of {job} is stopped, because {cause}",
        "RunEnding.Failed": "Run {run} of {job} failed, because {cause}",
        "RunEnding.FailedWith": "Run {run} of {job} failed: {outcome}, because {cause}",
        "Running": "{job} is running",
        "NotReady": "{job} is not ready: {started} of {size} tasks run or have ended",
        "Held": "{job} is held: its running pods are deleted",
        "Held.ByAction": "{job} is held, because {cause}",
        "Released": "{job} resumes: new pods are created once the old ones have terminated",
        "Restarting": "{job} restarts with all its tasks, because {cause}",
        "Stopped": "{job} has been stopped",
        "Succeeded": "{job} has ended: {phrase}",
        "Failed": "{job} has ended: {phrase}",
        "RoundChanged": "Membership round {round} of {job}: {size} active tasks",
        # commands
        "CommandIssued": "Received command {command}",
        "CommandIgnored": "Command {command} has no effect while {job} is held",
        "CommandUnknown": "{job} does not support command {command!r}",
        "ExecuteAction": "Start to execute action {action}: {cause}",
        "Guarded": "{text}",
        # roles and their size
        "ScaledUp": "Scaled up to {size}: {tasks} added",
        "ScaledDown": "Scaled down to {size}: {tasks} removed",
        "GaveBack": "{job} releases {count} pods, {tasks}: {cause}",
        "GaveBack.One": "{job} releases 1 pod, {tasks}: {cause}",
        # tasks
        "FailedCreate": "{task} could not be created yet: {cause}",
        "TaskSucceeded": "{task} succeeded in attempt {attempt}",
        "TaskFailed": "{task} failed in attempt {attempt}: {cause}",
        "TaskFailed.Evicted": "{task} was evicted in attempt {attempt}: {cause}",
        "TaskLost": "{task} was lost in attempt {attempt}: {cause}",
        "TaskLost.Evicted": "{task} was evicted in attempt {attempt}: {cause}",
        "TaskRetried": "{task} is retried as attempt {attempt} (counted retries: {charged})",
        "TaskRetried.Free": "{task} is retried as attempt {attempt} (not counted)",
        "TaskReplaced": "{task} is created again, because its role was scaled up",
        "RetriesExhausted": "{task} is not retried: no retry is left",
        "Restarting.Task": "{tasks} restarts, because {cause}",
        "Restarting.Tasks": "{tasks} restart, because {cause}",
        # what a task did that decided about the run
        "Trigger.RetriesExhausted": "{task} failed and no retry is left",
        "Trigger.Restarts": "{task} restarted {times} times",
        # gates: why no pods are created
        "Gate.Ended": "The job has ended",
        "Gate.Deleting": "The job is being deleted",
        "Gate.Stopping": "The job is being stopped",
        "Gate.Held": "The job is held",
        "Gate.RunClosed": "The run has ended; its pods must terminate first",
        "Gate.External": "The job is waiting to be started",
        "Gate.RunOwner": "The object that owns the pods has not been created yet",
        "Gate.GroupCreation": "{role} waits for its group to be created",
        "Gate.GroupAdmission": "{role} waits for its group to be admitted",
        "Gate.GroupPending": "PodGroup {group} is not admitted: {cause}",
        "Gate.GroupPending.Only": "The PodGroup is not admitted: {cause}",
        "Gate.Dependency": "{role} waits for {awaited}",
        # causes
        "Cause.Text": "{text}",
        "Cause.Stop": "a stop was requested",
        "Cause.Rule": "its completion rule is satisfied",
        "Cause.NoRetry": "no retry is left",
        "Cause.NoRestart": "no restart is left: {cause}",
        "Cause.Scheduler": "the scheduler requested it",
        "Cause.Restarts": "containers restarted {count} times, {permitted} permitted",
        "Cause.Deadline": "it was active longer than the specified deadline",
        "Cause.OwnerUnseen": "the object that owns its pods was created but never observed",
        "Cause.OwnerLeaving": "the object that owns its pods is being deleted",
        "Cause.OwnerGone": "the object that owns its pods was deleted",
        "Cause.TaskPending": "{subject} was pending for too long",
        "Cause.TaskFailed": "{subject} failed",
        "Cause.TaskFailedWithCode": "{subject} failed with code {code}",
        "Cause.TaskLost": "the pod of {subject} was deleted or evicted",
        "Cause.RoleSucceeded": "all of {subject} have succeeded",
        "Cause.RoleExhausted": "containers of {subject} were restarted too often",
        "Cause.GroupUnknown": "some pods of the gang are running and the others cannot be placed",
        "Cause.GroupEvicted": "its gang was evicted",
        "Cause.StoreLost": "the rendezvous store of the group was lost",
        "Cause.RoundClosed": "the membership round was closed",
        "Cause.GroupDone": "the group has finished",
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
        "TaskRetried": "{tasks} are retried as attempt {attempt} (counted retries: {charged} each)",
        "TaskRetried.Free": "{tasks} are retried as attempt {attempt} (not counted)",
        "RetriesExhausted": "{tasks} are not retried: no retry is left",
    }
)


# The text of the last message of a series, with how often and since when.
REPEATED = Catalog(
    {
        "TaskFailed": "{task} failed {times} times since {since}; the last failure: {cause}",
        "RunEnding.Failed": "{times} runs of {job} failed since {since}, the last one because {cause}",
        "RunEnding.FailedWith": (
            "{times} runs of {job} failed since {since}, the last one with {outcome}, because {cause}"
        ),
        "RunOpened": "Run {run} of {job} started; {times} runs have started since {since}",
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


def describe_trigger(trigger: Trigger) -> str:
    """What the task did that decided about the run, beginning with its name."""
    name = f"{trigger.role}-{trigger.index}"
    # The text is a dialect's, which may name the task, or read back from a status.
    return trigger.text if trigger.text.startswith(name) else f"{name}: {trigger.text}".rstrip(": ")
