"""Lifecycle policies: the events and actions of a manifest, as the engine's types, and the validation rules.

A policy is an action for an event, for several, or for an exit code, perhaps after a time. Events and actions that are
internal to the controller are rejected.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from shoal.dialects.volcano.completion_codes import ABORTED, COMPLETED, TERMINATED
from shoal.dialects.volcano.spec import LifecyclePolicy, seconds_of
from shoal.engine import Action, EventType, Outcome
from shoal.engine.policies import Reaction
from shoal.kube.errors import Cause
from shoal.kube.validation.errors import invalid, not_supported, required

ANY = "*"
# JobUpdated may be written and is never raised, so it maps to no event.
EVENTS: dict[str, frozenset[EventType]] = {
    "PodPending": frozenset({EventType.TASK_PENDING}),
    "PodFailed": frozenset({EventType.TASK_FAILED}),
    "PodEvicted": frozenset({EventType.TASK_LOST}),
    "TaskCompleted": frozenset({EventType.ROLE_SUCCEEDED}),
    "TaskFailed": frozenset({EventType.ROLE_EXHAUSTED}),
    "Unknown": frozenset({EventType.GROUP_UNKNOWN}),
    "JobUpdated": frozenset(),
    ANY: frozenset({EventType.ANY}),
}
ACTIONS: dict[str, Action] = {
    "AbortJob": Action.HOLD,
    "RestartJob": Action.RESTART_RUN,
    "RestartTask": Action.RESTART_ROLE,
    "RestartPod": Action.RESTART_TASK,
    "RestartPartition": Action.RESTART_PARTITION,
    "TerminateJob": Action.TERMINATE,
    "CompleteJob": Action.COMPLETE,
    "ResumeJob": Action.RELEASE,
}
ACTION_NAMES = {action: name for name, action in ACTIONS.items()}
_OUTCOMES: dict[str, Outcome] = {
    "CompleteJob": COMPLETED,
    "TerminateJob": TERMINATED,
    "AbortJob": ABORTED,
}
COMMANDS = ("AbortJob", "ResumeJob", "RestartJob", "TerminateJob", "CompleteJob")


def reactions(policies: Sequence[LifecyclePolicy]) -> tuple[Reaction, ...]:
    """In the order written."""
    return tuple(_reaction(policy) for policy in policies)


def _reaction(policy: LifecyclePolicy) -> Reaction:
    happenings = frozenset(happening for event in policy.named for happening in EVENTS[event])
    return Reaction(
        ACTIONS[policy.action],
        happenings,
        code=policy.exit_code if not policy.named else None,
        after_seconds=math.ceil(seconds_of(policy.timeout)) if policy.timeout else 0,
        outcome=_OUTCOMES.get(policy.action, COMPLETED),
    )


def commands() -> dict[str, Reaction]:
    """The reaction to a Command's action; partial restarts need a target and have no command."""
    return {word: Reaction(ACTIONS[word], outcome=_OUTCOMES.get(word, COMPLETED)) for word in COMMANDS}


# --- mistakes ------------------------------------------------------------------------------------------------------


def find_errors(policies: Sequence[LifecyclePolicy], path: str) -> Iterator[Cause]:
    events: list[str] = []
    codes: list[int] = []
    for place, policy in enumerate(policies):
        here = f"{path}[{place}]"
        yield from _of_one(policy, here)
        for event in dict.fromkeys(policy.named):  # one policy may name an event twice
            if event in events:
                yield Cause("FieldValueDuplicate", f"duplicate event {event}: give each event one action", here)
            events.append(event)
        if policy.exit_code is not None:
            if policy.exit_code in codes:
                yield Cause("FieldValueDuplicate", f"duplicate exitCode {policy.exit_code}", f"{here}.exitCode")
            codes.append(policy.exit_code)
    if ANY in events and len(events) > 1:
        yield Cause("FieldValueInvalid", "if there is * here, there must be no other event beside it", path)


def _places(policy: LifecyclePolicy, path: str) -> Iterator[tuple[str, str]]:
    """The events it names, each with where it is written."""
    if policy.event:
        yield f"{path}.event", policy.event
    yield from ((f"{path}.events[{place}]", event) for place, event in enumerate(policy.events))


def _of_one(policy: LifecyclePolicy, path: str) -> Iterator[Cause]:
    if policy.named and policy.exit_code is not None:
        yield Cause("FieldValueInvalid", "must not specify event and exitCode simultaneously", path)
    elif not policy.named and policy.exit_code is None:
        yield required(path, "either event, events or exitCode must be specified")
    for where, event in _places(policy, path):
        if event not in EVENTS:
            yield not_supported(where, event, EVENTS)
    if policy.exit_code == 0:
        yield invalid(f"{path}.exitCode", 0, "0 is not a valid error code")
    if not policy.action:
        yield required(f"{path}.action", "say what should happen")
    elif policy.action not in ACTIONS:
        yield not_supported(f"{path}.action", policy.action, ACTIONS)
