"""Seventeen questions a job language answers with data.

Each record is one policy of the engine; its fields are the only places where two dialects may differ. The defaults
are the plainest value, so a dialect writes down only what is special about it. Durations are seconds. An Outcome in
a policy is the dialect's own wording (code, phrase, text) for a cause the engine finds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shoal.engine.policies.completion import (
    ALL,
    LEAD,
    Bound,
    Completion,
    CompletionRule,
    CountCondition,
    DecisionSource,
    EarliestOf,
    Finish,
    Ready,
    Tally,
)
from shoal.engine.policies.gates import (
    After,
    ExternalGate,
    Gate,
    GroupGate,
    GroupPlan,
    Hold,
    HoldClock,
    KeepPods,
    Lifetime,
    Opens,
    ReclaimLimits,
    WhenShut,
)
from shoal.engine.policies.lifetime import DeadlineBase, Drained, Propagation, Teardown, TeardownVia, Timeouts
from shoal.engine.policies.outcomes import BAD, DROPPED, GOOD, POD_GONE, POD_LEAVING, POD_OK, POD_UNSEEN
from shoal.engine.policies.owned_objects import OwnedObject, Rendezvous
from shoal.engine.policies.pods import (
    ContainerPattern,
    CreationRefusal,
    DecisiveContainer,
    ExternalDeletion,
    FailurePolicy,
    FailureRule,
    Memory,
    PodEndPolicy,
    PodNames,
    PodPattern,
    PodPolicy,
    RetryTiming,
    RunOwnerPolicy,
    SlotRelease,
    Span,
)
from shoal.engine.policies.retry import (
    BudgetScope,
    BudgetUnit,
    Delay,
    ExponentialDelay,
    Reaction,
    Retry,
    RetryBudget,
    RetryDecision,
    SpentOn,
    UniformDelay,
    WhenEmpty,
)
from shoal.engine.policies.size import (
    CompletionsSize,
    DropMark,
    FixedSize,
    ShrinkPolicy,
    Size,
    VictimOrder,
    WeightedSize,
)
from shoal.engine.types import Action


@dataclass(frozen=True, slots=True)
class Policies:
    """What a dialect requires of the engine, for the whole job. Retry, reactions and order are also on each Role."""

    pod_policy: PodPolicy = field(default_factory=PodPolicy)
    pod_end: PodEndPolicy = field(default_factory=PodEndPolicy)
    classify: FailurePolicy = field(default_factory=FailurePolicy)
    run_retry: Retry | None = None  # None: a run that ended is the end of the job
    budgets: tuple[RetryBudget, ...] = ()  # scopes ROLE and JOB
    reactions: tuple[Reaction, ...] = ()
    commands: Mapping[str, Reaction] = field(default_factory=dict)  # what each command requests, by name
    actions: Mapping[Action, str] = field(default_factory=dict)  # names of actions in Events about them; none: no Event
    completion: Completion = field(default_factory=Completion)
    ready: Ready = field(default_factory=Ready)
    size: Size = field(default_factory=FixedSize)
    shrink: ShrinkPolicy = field(default_factory=ShrinkPolicy)
    gates: tuple[Gate, ...] = ()
    hold: Hold = field(default_factory=Hold)
    clock: Timeouts = field(default_factory=Timeouts)
    teardown: Teardown = field(default_factory=Teardown)
    owned_objects: tuple[OwnedObject, ...] = ()
    rendezvous: Rendezvous = field(default_factory=Rendezvous)


__all__ = [
    "ALL",
    "BAD",
    "DROPPED",
    "GOOD",
    "LEAD",
    "POD_GONE",
    "POD_LEAVING",
    "POD_OK",
    "POD_UNSEEN",
    "After",
    "Bound",
    "BudgetScope",
    "BudgetUnit",
    "Completion",
    "CompletionRule",
    "CompletionsSize",
    "ContainerPattern",
    "CountCondition",
    "CreationRefusal",
    "DeadlineBase",
    "DecisionSource",
    "DecisiveContainer",
    "Delay",
    "Drained",
    "DropMark",
    "EarliestOf",
    "ExponentialDelay",
    "ExternalDeletion",
    "ExternalGate",
    "FailurePolicy",
    "FailureRule",
    "Finish",
    "FixedSize",
    "Gate",
    "GroupGate",
    "GroupPlan",
    "Hold",
    "HoldClock",
    "KeepPods",
    "Lifetime",
    "Memory",
    "Opens",
    "OwnedObject",
    "PodEndPolicy",
    "PodNames",
    "PodPattern",
    "PodPolicy",
    "Policies",
    "Propagation",
    "Reaction",
    "Ready",
    "ReclaimLimits",
    "Rendezvous",
    "Retry",
    "RetryBudget",
    "RetryDecision",
    "RetryTiming",
    "RunOwnerPolicy",
    "ShrinkPolicy",
    "Size",
    "SlotRelease",
    "Span",
    "SpentOn",
    "Tally",
    "Teardown",
    "TeardownVia",
    "Timeouts",
    "UniformDelay",
    "VictimOrder",
    "WeightedSize",
    "WhenEmpty",
    "WhenShut",
]
