"""A job as the engine sees it: roles with sizes, and policies. Read from the manifest in each pass.

Everything is plain data; the one function a job may carry is its dialect's `guard`. The manifest itself is not
included: names, labels, environment and templates are added by the dialect when it builds a write.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from shoal.engine.completion import Completion, Ready
from shoal.engine.failure_classification import FailurePolicy
from shoal.engine.gates import After, Gate
from shoal.engine.membership import Rendezvous
from shoal.engine.owned_objects import OwnedObject
from shoal.engine.pod_outcomes import PodEndPolicy
from shoal.engine.reactions import Reaction
from shoal.engine.retry import Retry, RetryBudget
from shoal.engine.run_lifecycle import Hold, Teardown
from shoal.engine.scaling import FixedSize, ShrinkPolicy, Size
from shoal.engine.timeouts import Timeouts
from shoal.engine.types import BAD, Action, Memory, Outcome, PodNames, TaskRef

if TYPE_CHECKING:
    from datetime import datetime

    from shoal.engine.writes import Write


@dataclass(frozen=True, slots=True)
class RunOwnerPolicy:
    """An object that owns all pods of a run; its loss ends the run."""

    leaving: Outcome = BAD  # another client is deleting it
    gone: Outcome = BAD  # another client deleted it
    unseen: Outcome = BAD  # created, and never seen within the creation time-out


@dataclass(frozen=True, slots=True)
class PodPolicy:
    names: PodNames = PodNames.INDEX
    memory: Memory = Memory.LEVEL
    run_owner: RunOwnerPolicy | None = None


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


@dataclass(frozen=True, slots=True)
class Role:
    """Members that share a template and a size."""

    name: str
    size: int = 1  # under WeightedSize: for weight 0 only
    minimum: int | None = None  # None: the size
    weight: int = 1
    retry: Retry = field(default_factory=Retry)
    budget: RetryBudget | None = None  # scope TASK or ROLE: this role's own
    reactions: tuple[Reaction, ...] = ()  # before the job's
    after: After | None = None
    partition_size: int = 0  # members per partition; 0: no partitions
    victims: tuple[int, ...] = ()  # Victims.NAMED: removed first
    protected: frozenset[int] = frozenset()  # never chosen as long as another can be
    force_after_seconds: int | None = None  # a terminating pod is deleted by force then; None: never


@dataclass(frozen=True, slots=True)
class GuardResult:
    """The result of a guard: its new memo, what it blocks, decorations, and why."""

    memo: Any = None
    blocks: frozenset[str] = frozenset()  # of "create", "delete"
    writes: tuple[Write, ...] = ()  # PatchBody only
    message: str = ""


Guard = Callable[["Job", Any, Any, "datetime"], GuardResult]


@dataclass(frozen=True, slots=True)
class Job:
    """The user's object as the engine's model."""

    uid: str
    name: str
    roles: tuple[Role, ...]
    policies: Policies = field(default_factory=Policies)
    namespace: str = ""
    lead: TaskRef | None = None  # the task whose own end decides, if any
    minimum: int | None = None  # members needed together; None: all
    stop: bool = False  # the user requests the end
    deleting: bool = False
    guard: Guard | None = None
