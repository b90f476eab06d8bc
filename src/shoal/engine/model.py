"""A job as the engine sees it: roles with sizes, and policies. Read from the manifest in each pass.

Everything is plain data; the one function a job may carry is its dialect's `guard`. The manifest itself is not
included: names, labels, environment and templates are added by the dialect when it builds a write.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from shoal.engine.policies import After, Policies, Reaction, Retry, RetryBudget
from shoal.engine.types import TaskRef

if TYPE_CHECKING:
    from datetime import datetime

    from shoal.engine.writes import Write


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
    force_after_seconds: int | None = None  # a leaving body is deleted by force then; None: never


@dataclass(frozen=True, slots=True)
class GuardResult:
    """What a guard answers: its new memo, what it blocks, decorations, and why."""

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
