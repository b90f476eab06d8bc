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
    Claim,
    Completion,
    Earliest,
    Finish,
    Ready,
    Source,
    Tally,
    When,
)
from shoal.engine.policies.gates import (
    After,
    Gate,
    Giving,
    GroupGate,
    GroupPlan,
    Hold,
    HoldClock,
    Keep,
    Life,
    Opens,
    WhenShut,
    WishGate,
)
from shoal.engine.policies.lifetime import Base, Clock, Drained, Propagation, Teardown, Via
from shoal.engine.policies.outcomes import BAD, DROPPED, GOOD, POD_GONE, POD_LEAVING, POD_OK, POD_UNSEEN
from shoal.engine.policies.owned_objects import Companion, Rendezvous
from shoal.engine.policies.pods import (
    AnchorPolicy,
    AnswerAt,
    Classify,
    ContainerPattern,
    Deleted,
    Embodiment,
    Ending,
    Judged,
    Memory,
    Names,
    PodPattern,
    Refusal,
    Release,
    Rule,
    Span,
)
from shoal.engine.policies.retry import (
    Answer,
    Budget,
    Delay,
    ExponentialDelay,
    Reaction,
    Retry,
    Scope,
    Spent,
    UniformDelay,
    Unit,
    WhenEmpty,
)
from shoal.engine.policies.size import (
    CompletionsSize,
    DropMark,
    FixedSize,
    Shrink,
    Size,
    Victims,
    WeightedSize,
)
from shoal.engine.types import Action


@dataclass(frozen=True, slots=True)
class Policies:
    """What a job language asks of the engine, for the whole job. Retry, reactions and order also sit on each Role."""

    embodiment: Embodiment = field(default_factory=Embodiment)
    ending: Ending = field(default_factory=Ending)
    classify: Classify = field(default_factory=Classify)
    run_retry: Retry | None = None  # None: a run that ended is the end of the job
    budgets: tuple[Budget, ...] = ()  # scopes ROLE and JOB
    reactions: tuple[Reaction, ...] = ()
    commands: Mapping[str, Reaction] = field(default_factory=dict)  # what each command's word asks for
    actions: Mapping[Action, str] = field(default_factory=dict)  # names of actions in Events about them; none: no Event
    completion: Completion = field(default_factory=Completion)
    ready: Ready = field(default_factory=Ready)
    size: Size = field(default_factory=FixedSize)
    shrink: Shrink = field(default_factory=Shrink)
    gates: tuple[Gate, ...] = ()
    hold: Hold = field(default_factory=Hold)
    clock: Clock = field(default_factory=Clock)
    teardown: Teardown = field(default_factory=Teardown)
    companions: tuple[Companion, ...] = ()
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
    "AnchorPolicy",
    "Answer",
    "AnswerAt",
    "Base",
    "Bound",
    "Budget",
    "Claim",
    "Classify",
    "Clock",
    "Companion",
    "Completion",
    "CompletionsSize",
    "ContainerPattern",
    "Delay",
    "Deleted",
    "Drained",
    "DropMark",
    "Earliest",
    "Embodiment",
    "Ending",
    "ExponentialDelay",
    "Finish",
    "FixedSize",
    "Gate",
    "Giving",
    "GroupGate",
    "GroupPlan",
    "Hold",
    "HoldClock",
    "Judged",
    "Keep",
    "Life",
    "Memory",
    "Names",
    "Opens",
    "PodPattern",
    "Policies",
    "Propagation",
    "Reaction",
    "Ready",
    "Refusal",
    "Release",
    "Rendezvous",
    "Retry",
    "Rule",
    "Scope",
    "Shrink",
    "Size",
    "Source",
    "Span",
    "Spent",
    "Tally",
    "Teardown",
    "UniformDelay",
    "Unit",
    "Via",
    "Victims",
    "WeightedSize",
    "When",
    "WhenEmpty",
    "WhenShut",
    "WishGate",
]
