"""Policies 1 to 3: how a task becomes a pod, how its end is observed, and what an end means."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from shoal.engine.policies.outcomes import BAD, POD_GONE, POD_LEAVING, POD_OK, POD_UNSEEN
from shoal.engine.types import FailureClass, Outcome
from shoal.kube.structural_schema.re2 import Pattern


class PodNames(Enum):
    INDEX = "index"  # one name per task for life
    RANDOM = "random"  # a fresh name per pod; several pods of one task may overlap


class Memory(Enum):
    RECORD = "record"  # every task whole: uid, stage, times (the job state is the status)
    LEVEL = "level"  # nothing about living pods: an absent one is created again, free
    ROSTER = "roster"  # which tasks had a body in this run: an absent one is a loss
    FINALIZER = "finalizer"  # finished pods stay until counted


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


class DecisiveContainer(Enum):
    """Which container decides the outcome of the pod."""

    NAMED = "named"  # the container of that name
    TRAINING = "training"  # the named one; if that is 0 the first non-zero
    FIRST = "first"
    LAST_FAILED = "last failed"  # non-zero, finished last


class RetryTiming(Enum):
    VERDICT = "verdict"  # retried or done as soon as the end is known
    OVER = "over"  # only once the body is gone


class SlotRelease(Enum):
    """When the place of a body is free for the next one."""

    GONE = "gone"
    TERMINAL = "terminal"
    LEAVING = "leaving"


class ExternalDeletion(Enum):
    """How a deletion by another client counts."""

    LOST = "lost"
    FAILED = "failed"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class PodEndPolicy:
    decisive_container: DecisiveContainer = DecisiveContainer.LAST_FAILED
    container: str = ""  # for NAMED and TRAINING
    while_running: bool = False  # evaluate that container even while others keep the pod running
    external_deletion: ExternalDeletion = ExternalDeletion.LOST
    at_termination: bool = True  # else only when the body is gone
    success_beats_leaving: bool = False  # a leaving body that succeeded did succeed
    disruption_is_loss: bool = False  # a failed body under DisruptionTarget counts as deleted by others
    leaving: Outcome = POD_LEAVING
    gone: Outcome = POD_GONE
    unseen: Outcome = POD_UNSEEN
    ok: Outcome = POD_OK
    retry_at: RetryTiming = RetryTiming.VERDICT
    release: SlotRelease = SlotRelease.GONE


@dataclass(frozen=True, slots=True)
class Span:
    """A closed range of numbers, open where a side is missing."""

    low: int | None = None
    high: int | None = None

    def __contains__(self, number: int) -> bool:
        return (self.low is None or number >= self.low) and (self.high is None or number <= self.high)


@dataclass(frozen=True, slots=True)
class ContainerPattern:
    """All given fields must match one container; all but the name need a container that terminated."""

    name: Pattern | None = None
    reason: Pattern | None = None
    message: Pattern | None = None
    signal: Span | None = None
    code: Span | None = None


@dataclass(frozen=True, slots=True)
class PodPattern:
    """All given fields must match; each container pattern needs some container that matches it."""

    name: Pattern | None = None
    reason: Pattern | None = None
    message: Pattern | None = None
    containers: tuple[ContainerPattern, ...] = ()


@dataclass(frozen=True, slots=True)
class FailureRule:
    """First match wins; a rule without conditions matches every failed pod. code None: the decisive container's."""

    failure_class: FailureClass
    code: int | None = None
    phrase: str = "Failed"
    attributes: tuple[str, ...] = ()
    patterns: tuple[PodPattern, ...] = ()  # any of them
    codes: frozenset[int] = frozenset()  # of the decisive container
    code_span: Span | None = None
    no_code: bool = False
    reasons: frozenset[str] = frozenset()  # of the pod
    condition: str = ""  # of the pod, True
    peer_ok: bool = False  # another task of the role already succeeded


@dataclass(frozen=True, slots=True)
class CreationRefusal:
    """What a refused creation means; outcome None: wait and try again. Conditions left out match anything."""

    outcome: Outcome | None
    codes: frozenset[int] = frozenset()
    texts: tuple[str, ...] = ()  # any of them within the answer


@dataclass(frozen=True, slots=True)
class FailurePolicy:
    rules: tuple[FailureRule, ...] = (FailureRule(FailureClass.UNKNOWN),)
    no_code: Outcome = BAD  # no rule matched and no container failed
    refusals: tuple[CreationRefusal, ...] = ()  # no match: wait and try again
    matched: str = "Pod failed: "  # texts in front of the evidence
    unmatched: str = "Pod failed: "
    refused: str = "Failed to create the pod: "
