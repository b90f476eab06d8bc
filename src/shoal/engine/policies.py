"""The policies that a dialect chooses from, under one name. Each is defined in the module that applies it.

Their fields are the only places where two dialects may differ. The defaults are the plainest value, so a dialect writes
down only what is special about it. Durations are seconds. An Outcome in a policy is the dialect's own wording (code,
phrase, text) for a cause the engine finds.
"""

from __future__ import annotations

from shoal.engine.completion import (
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
from shoal.engine.failure_classification import (
    ContainerPattern,
    CreationRefusal,
    DecisiveContainer,
    FailurePolicy,
    FailureRule,
    PodPattern,
    Span,
)
from shoal.engine.gates import After, ExternalGate, Gate, GroupGate, GroupPlan, Opens, WhenShut
from shoal.engine.membership import Rendezvous
from shoal.engine.model import PodPolicy, Policies, RunOwnerPolicy
from shoal.engine.owned_objects import OwnedObject
from shoal.engine.pod_outcomes import ExternalDeletion, PodEndPolicy, RetryTiming, SlotRelease
from shoal.engine.reactions import Reaction
from shoal.engine.reclaim import ReclaimLimits
from shoal.engine.retry import (
    BudgetScope,
    BudgetUnit,
    Delay,
    ExponentialDelay,
    Retry,
    RetryBudget,
    RetryDecision,
    SpentOn,
    UniformDelay,
    WhenEmpty,
)
from shoal.engine.run_lifecycle import Drained, Hold, HoldClock, Teardown, TeardownVia
from shoal.engine.scaling import DropMark, FixedSize, ShrinkPolicy, Size, VictimOrder, WeightedSize
from shoal.engine.timeouts import DeadlineBase, Propagation, Timeouts
from shoal.engine.types import (
    BAD,
    DROPPED,
    GOOD,
    POD_GONE,
    POD_LEAVING,
    POD_OK,
    POD_UNSEEN,
    KeepPods,
    Lifetime,
    Memory,
    PodNames,
)
from shoal.engine.unindexed_pods import CompletionsSize

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
