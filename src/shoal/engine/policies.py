"""Seventeen questions a job language answers with data.

Each record is one policy of the engine; its fields are the only places where two dialects may differ. The defaults
are the plainest value, so a dialect writes down only what is special about it. Durations are seconds. An Outcome in
a policy is the dialect's own wording (code, phrase, text) for a cause the engine finds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from shoal.engine.words import Action, Happening, Nature, Outcome

BAD = Outcome(Nature.UNKNOWN, code=1, phrase="Failed")
GOOD = Outcome(Nature.OK, phrase="Succeeded")
POD_OK = Outcome(Nature.OK, phrase="Succeeded", text="Pod succeeded")
POD_LEAVING = Outcome(Nature.LOST, phrase="Lost", text="The pod is being deleted by others")
POD_GONE = Outcome(Nature.LOST, phrase="Lost", text="The pod was deleted by others")
POD_UNSEEN = Outcome(Nature.LOST, phrase="Unseen", text="The pod was created and never seen")
DROPPED = Outcome(Nature.PERMANENT, phrase="Dropped", text="The task was scaled away", final=True)


# 1. How a task becomes a pod -------------------------------------------------------------------------------------


class Names(Enum):
    INDEX = "index"  # one name per task for life
    RANDOM = "random"  # a fresh name per body; several bodies of one task may overlap


class Unrecorded(Enum):
    """A body that carries our stamp while the ledger does not know it."""

    ADOPT = "adopt"
    DELETE = "delete"


class Memory(Enum):
    RECORD = "record"  # every task whole: uid, stage, times (the ledger is the status)
    LEVEL = "level"  # nothing about living bodies: an absent one is made again, free
    ROSTER = "roster"  # which tasks had a body in this run: an absent one is a loss
    FINALIZER = "finalizer"  # finished bodies stay until counted


@dataclass(frozen=True, slots=True)
class AnchorPolicy:
    """An object that owns all bodies of a run; its loss ends the run."""

    leaving: Outcome = BAD  # somebody else is deleting it
    gone: Outcome = BAD  # somebody else deleted it
    unseen: Outcome = BAD  # created, and never seen within the creation time-out


@dataclass(frozen=True, slots=True)
class Embodiment:
    names: Names = Names.INDEX
    memory: Memory = Memory.LEVEL
    unrecorded: Unrecorded = Unrecorded.ADOPT
    orphans: bool = False  # adopt matching bodies nobody owns
    anchor: AnchorPolicy | None = None


# 2. How a body ends ----------------------------------------------------------------------------------------------


class Judged(Enum):
    """Which container's code speaks for the pod."""

    NAMED = "named"  # the container of that name
    TRAINING = "training"  # the named one; if that is 0 the first non-zero
    FIRST = "first"
    LAST_FAILED = "last failed"  # non-zero, finished last


class AnswerAt(Enum):
    VERDICT = "verdict"  # retried or done as soon as the end is known
    OVER = "over"  # only once the body is gone


class Release(Enum):
    """When the place of a body is free for the next one."""

    GONE = "gone"
    TERMINAL = "terminal"
    LEAVING = "leaving"


class Deleted(Enum):
    """What a deletion by somebody else is."""

    LOST = "lost"
    FAILED = "failed"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Ending:
    judged: Judged = Judged.LAST_FAILED
    container: str = ""  # for NAMED and TRAINING
    while_running: bool = False  # judge that container even while others keep the pod running
    by_others: Deleted = Deleted.LOST
    at_leaving: bool = True  # else only when the body is gone
    success_beats_leaving: bool = False  # a leaving body that succeeded did succeed
    disruption_is_loss: bool = False  # a failed body under DisruptionTarget counts as deleted by others
    leaving: Outcome = POD_LEAVING
    gone: Outcome = POD_GONE
    unseen: Outcome = POD_UNSEEN
    ok: Outcome = POD_OK
    answer_at: AnswerAt = AnswerAt.VERDICT
    release: Release = Release.GONE


# 3. What an end means --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Span:
    """A closed range of numbers, open where a side is missing."""

    low: int | None = None
    high: int | None = None

    def __contains__(self, number: int) -> bool:
        return (self.low is None or number >= self.low) and (self.high is None or number <= self.high)


@dataclass(frozen=True, slots=True)
class ContainerPattern:
    """All given parts must match one container; all but the name need a container that terminated."""

    name: re.Pattern[str] | None = None
    reason: re.Pattern[str] | None = None
    message: re.Pattern[str] | None = None
    signal: Span | None = None
    code: Span | None = None


@dataclass(frozen=True, slots=True)
class PodPattern:
    """All given parts must match; each container pattern needs some container that matches it."""

    name: re.Pattern[str] | None = None
    reason: re.Pattern[str] | None = None
    message: re.Pattern[str] | None = None
    containers: tuple[ContainerPattern, ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """First match wins; a rule without conditions matches every failed body. code None: the judged container's."""

    nature: Nature
    code: int | None = None
    phrase: str = "Failed"
    attributes: tuple[str, ...] = ()
    patterns: tuple[PodPattern, ...] = ()  # any of them
    codes: frozenset[int] = frozenset()  # of the judged container
    code_span: Span | None = None
    no_code: bool = False
    reasons: frozenset[str] = frozenset()  # of the pod
    condition: str = ""  # of the pod, True
    peer_ok: bool = False  # another task of the role already succeeded


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a refused creation means; outcome None: wait and try again. Conditions left out match anything."""

    outcome: Outcome | None
    codes: frozenset[int] = frozenset()
    texts: tuple[str, ...] = ()  # any of them within the answer


@dataclass(frozen=True, slots=True)
class Classify:
    rules: tuple[Rule, ...] = (Rule(Nature.UNKNOWN),)
    no_code: Outcome = BAD  # no rule matched and no container failed
    refusals: tuple[Refusal, ...] = ()  # no match: wait and try again
    matched: str = "Pod failed: "  # texts in front of the evidence
    unmatched: str = "Pod failed: "
    refused: str = "Failed to create the pod: "


# 4 and 5. Trying again, and how often ----------------------------------------------------------------------------


class Answer(Enum):
    DONE = "d"
    FREE = "f"
    CHARGED = "c"


@dataclass(frozen=True, slots=True)
class UniformDelay:
    """A random whole number of seconds, after a conflict only."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class ExponentialDelay:
    base: int
    cap: int


Delay = UniformDelay | ExponentialDelay | None


@dataclass(frozen=True, slots=True)
class Retry:
    """What to do about each nature of end. `Retry.word("dfcdf")` reads ok, transient, unknown, permanent, lost."""

    ok: Answer = Answer.DONE
    transient: Answer = Answer.DONE
    unknown: Answer = Answer.DONE
    permanent: Answer = Answer.DONE
    lost: Answer = Answer.DONE
    delay: Delay = None

    @classmethod
    def word(cls, letters: str, delay: Delay = None) -> Retry:
        ok, transient, unknown, permanent, lost = (Answer(letter) for letter in letters)
        return cls(ok, transient, unknown, permanent, lost, delay)

    def answer(self, outcome: Outcome) -> Answer:
        if outcome.final:
            return Answer.DONE
        nature = Nature.TRANSIENT if outcome.nature is Nature.CONFLICT else outcome.nature
        chosen: Answer = getattr(self, nature.value)
        return chosen


class Unit(Enum):
    ATTEMPTS = "attempts"
    PODS = "pods"
    ACTIONS = "actions"
    CONTAINERS = "containers"  # restarts in place, summed over living bodies; never stored


class Scope(Enum):
    TASK = "task"
    ROLE = "role"
    JOB = "job"


class Spent(Enum):
    ON_RESTART = "on restart"
    ON_FAILURE = "on failure"


class WhenEmpty(Enum):
    DONE = "done"  # the task keeps its end
    FAIL = "fail"  # the job fails
    CHARGE_AND_FAIL = "charge and fail"  # the refused one is counted too
    EVENT = "event"  # raises ROLE_EXHAUSTED


@dataclass(frozen=True, slots=True)
class Budget:
    unit: Unit
    scope: Scope
    permits: int | None = None  # None: no limit
    spent: Spent = Spent.ON_RESTART
    when_empty: WhenEmpty = WhenEmpty.DONE
    outcome: Outcome = BAD  # of the job, where it fails
    phases: frozenset[str] = frozenset({"Running"})  # CONTAINERS: which bodies count
    roles: frozenset[str] = frozenset()  # CONTAINERS: whose; empty: all


# 6. Events and what to do about them -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reaction:
    action: Action
    events: frozenset[Happening] = frozenset()
    code: int | None = None  # instead of events: a failed task whose judged code is this
    after_seconds: int = 0
    outcome: Outcome = GOOD  # for COMPLETE, FAIL and TERMINATE


# 7 and 8. When the job ends, when it is ready --------------------------------------------------------------------


class Tally(Enum):
    """Counts over undropped tasks. `live` has a body or will get one, `able` may still end well."""

    OK = "ok"
    BAD = "bad"
    DONE = "done"  # ok + bad
    LIVE = "live"  # neither
    ABLE = "able"  # live + ok
    PENDING = "pending"  # live, not running
    RUNNING = "running"
    UP = "up"  # running + ok
    STARTED = "started"  # running + ok + bad


class Bound(Enum):
    SIZE = "size"  # of what is counted; a size of 0 satisfies nothing
    MIN = "min"  # the role's minimum, the job's for ALL


LEAD = "<lead>"
ALL = "<all>"


@dataclass(frozen=True, slots=True)
class Claim:
    """`tally` of `of` (a role's name, LEAD or ALL) is at least, or below, an amount."""

    tally: Tally
    of: str = ALL
    at_least: int | Bound | None = None
    below: int | Bound | None = None


class Finish(Enum):
    AT_ONCE = "at once"
    DRAINED = "drained"


@dataclass(frozen=True, slots=True)
class When:
    """A verdict: if all claims hold the run ends with `outcome`.

    `inherits` takes code, phrase, nature and text from the trigger: the task that made the first claim true, or for
    a count of all tasks the one that ended last. In `trigger_text` and outcome.text, {count} and {need} are filled in.
    """

    claims: tuple[Claim, ...]
    outcome: Outcome
    finish: Finish = Finish.AT_ONCE
    inherits: bool = False
    names_trigger: bool = False
    trigger_text: str = ""


@dataclass(frozen=True, slots=True)
class Earliest:
    """Several verdicts of equal right: the one whose trigger ended first wins, ties in the order written."""

    verdicts: tuple[When, ...]


class Source(Enum):
    STOP = "stop"
    COMMAND = "command"
    REACTIONS = "reactions"
    COMPLETION = "completion"
    LIMITS = "limits"
    HOLD = "hold"


@dataclass(frozen=True, slots=True)
class Completion:
    verdicts: tuple[When | Earliest, ...] = ()
    order: tuple[Source, ...] = (
        Source.STOP,
        Source.COMMAND,
        Source.REACTIONS,
        Source.COMPLETION,
        Source.LIMITS,
        Source.HOLD,
    )
    needs_ready: bool = False
    stop: Outcome = BAD  # the outcome of Job.stop
    stop_finish: Finish = Finish.DRAINED
    limit_finish: Finish = Finish.AT_ONCE


@dataclass(frozen=True, slots=True)
class Ready:
    """The job counts as running when all claims hold. Sticky: for the rest of the run."""

    claims: tuple[Claim, ...] = (Claim(Tally.RUNNING, at_least=1),)
    sticky: bool = True
    falls_back: tuple[Claim, ...] | None = None  # not sticky: back when these hold (None: when claims no longer do)


# 9 and 10. How many, and who goes --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FixedSize:
    """Each role has the size it names."""


@dataclass(frozen=True, slots=True)
class WeightedSize:
    """`total` members shared among the roles with a weight; roles of weight 0 keep their size."""

    total: int


@dataclass(frozen=True, slots=True)
class CompletionsSize:
    """As many at once as `parallelism` and the successes still missing allow; completions None: one success."""

    parallelism: int
    completions: int | None
    indexed: bool = False  # each success belongs to an index of its own


Size = FixedSize | WeightedSize | CompletionsSize


class Victims(Enum):
    HIGHEST = "highest"
    PENDING_FIRST = "pending first"
    NAMED = "named"  # Role.victims, then the highest
    RANKED = "ranked"  # as a ReplicaSet ranks pods


class DropMark(Enum):
    LEDGER = "ledger"  # a dropped task lives on until its body is gone
    POD = "pod"  # its body is marked before the delete
    INFERRED = "inferred"


class Reborn(Enum):
    NEW_INSTANCE = "new instance"
    SAME_PLACE = "same place"


@dataclass(frozen=True, slots=True)
class Shrink:
    victims: Victims = Victims.HIGHEST
    mark: DropMark = DropMark.INFERRED
    reborn: Reborn = Reborn.SAME_PLACE
    outcome: Outcome = DROPPED


# 11 and 12. When bodies may be made ------------------------------------------------------------------------------


class Life(Enum):
    TASK = "task"
    RUN = "run"
    UNTIL_END = "until end"
    UNTIL_DELETED = "until deleted"


class Opens(Enum):
    EXISTS = "exists"
    ADMITTED = "admitted"


class WhenShut(Enum):
    IGNORE = "ignore"
    HOLD = "hold"


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """One request for all-or-nothing placement. `digest` names its setting; roles empty: all."""

    key: str  # '' for a job's only group, else a role's or stage's name
    digest: str = ""
    roles: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class GroupGate:
    groups: tuple[GroupPlan, ...]
    opens: Opens = Opens.EXISTS
    follows: bool = False  # the group is applied again when its digest changes
    life: Life = Life.UNTIL_END
    when_shut: WhenShut = WhenShut.IGNORE


@dataclass(frozen=True, slots=True)
class WishGate:
    """Open or shut by the manifest itself, or by somebody who writes `key` (Observed.opened)."""

    open: bool = True
    key: str = ""
    sentence: str = "The job waits for its start"
    when_shut: WhenShut = WhenShut.IGNORE


Gate = GroupGate | WishGate


@dataclass(frozen=True, slots=True)
class After:
    """A role waits until `roles` (all of them, or any) have enough members at a level; count None: their minimum."""

    roles: tuple[str, ...]
    any: bool = False
    ready: bool = False  # else running is enough
    or_ok: bool = True
    count: int | None = None


# 13. Holding -----------------------------------------------------------------------------------------------------


class Keep(Enum):
    """Which bodies stay."""

    NONE = "none"
    FINISHED = "finished"
    ALL = "all"


class HoldClock(Enum):
    RESTARTS = "restarts"
    RUNS_ON = "runs on"


@dataclass(frozen=True, slots=True)
class Hold:
    wish: bool = False
    from_spec: bool = True  # the wish is a level: without it a held job is released; else only an action releases
    keeps: Keep = Keep.NONE  # FINISHED also keeps what was achieved
    companions: frozenset[str] = frozenset()  # names of those that go
    group: bool = True  # the group goes
    clock: HoldClock = HoldClock.RESTARTS
    resume_charged: bool = False
    release_counts: bool = False  # the release is a run of its own that nobody sees


# 14. Clocks ------------------------------------------------------------------------------------------------------


class Base(Enum):
    STARTED = "started"  # first pass
    CLOCK = "clock"  # all bodies of the run created


class Propagation(Enum):
    FOREGROUND = "Foreground"
    BACKGROUND = "Background"


@dataclass(frozen=True, slots=True)
class Clock:
    deadline_seconds: int | None = None
    deadline_from: Base = Base.STARTED
    deadline_outcome: Outcome = BAD
    ttl_seconds: int | None = None  # the job is deleted that long after its end
    propagation: Propagation = Propagation.FOREGROUND
    creation_seconds: int | None = None  # a created body or anchor must be seen within


# 15. Taking down -------------------------------------------------------------------------------------------------


class Via(Enum):
    ANCHOR = "anchor"  # delete the anchor; the cascade takes the bodies
    EACH = "each"


class Drained(Enum):
    """When a closed run counts as empty."""

    GONE = "gone"  # nothing that must go is left
    ENOUGH = "enough"  # size less leaving bodies reaches the job's minimum


@dataclass(frozen=True, slots=True)
class Teardown:
    at_retry: Keep = Keep.NONE  # the body a retried attempt leaves behind
    at_done: Keep = Keep.ALL  # a task that will not be retried
    at_restart: Keep = Keep.NONE
    at_end: Keep = Keep.FINISHED
    at_failed_end: Keep | None = None  # None: as at_end
    at_deadline: Keep | None = None
    via: Via = Via.EACH
    cut: Outcome | None = None  # of tasks that had no outcome when the run closed
    restart_drained: Drained = Drained.GONE


# 16 and 17. Other children, and the group inside -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Companion:
    """Any other child. `digest` names its setting; it is applied where the object shows another one."""

    name: str
    scope: Scope = Scope.JOB
    life: Life = Life.UNTIL_END
    digest: str = ""
    roles: frozenset[str] = frozenset()  # for scope ROLE and TASK; empty: all
    write_back: bool = False  # its name goes into the spec


@dataclass(frozen=True, slots=True)
class Rendezvous:
    published: bool = False  # the members and their round are part of the ledger
    frozen: Mapping[str, int] = field(default_factory=dict)  # values of the spec fixed when the first run opens


@dataclass(frozen=True, slots=True)
class Policies:
    """What a job language asks of the engine, for the whole job. Retry, reactions and order also sit on each Role."""

    embodiment: Embodiment = Embodiment()
    ending: Ending = Ending()
    classify: Classify = Classify()
    run_retry: Retry | None = None  # None: a run that ended is the end of the job
    budgets: tuple[Budget, ...] = ()  # scopes ROLE and JOB
    reactions: tuple[Reaction, ...] = ()
    commands: Mapping[str, Reaction] = field(default_factory=dict)  # what each command's word asks for
    completion: Completion = Completion()
    ready: Ready = Ready()
    size: Size = FixedSize()
    shrink: Shrink = Shrink()
    gates: tuple[Gate, ...] = ()
    hold: Hold = Hold()
    clock: Clock = Clock()
    teardown: Teardown = Teardown()
    companions: tuple[Companion, ...] = ()
    rendezvous: Rendezvous = Rendezvous()
