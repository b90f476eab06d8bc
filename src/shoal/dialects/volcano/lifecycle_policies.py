"""Lifecycle policies: the events and actions of a manifest, as the engine's types.

A policy is an action for an event, for several, or for an exit code, perhaps after a time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from shoal.dialects.volcano.completion_codes import ABORTED, COMPLETED, TERMINATED
from shoal.dialects.volcano.spec import LifecyclePolicy, seconds_of
from shoal.engine import Action, EventType, Outcome
from shoal.engine.policies import Reaction

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
OUTCOMES: dict[str, Outcome] = {
    "CompleteJob": COMPLETED,
    "TerminateJob": TERMINATED,
    "AbortJob": ABORTED,
}


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
        outcome=OUTCOMES.get(policy.action, COMPLETED),
    )
