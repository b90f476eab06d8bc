"""Jobs in the engine's words, shaped after four job languages. Builders only: no behaviour of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from shoal.engine import Action, Happening, Job, Nature, Outcome, Policies, Role, TaskRef
from shoal.engine.policies import (
    ALL,
    LEAD,
    AnchorPolicy,
    Answer,
    AnswerAt,
    Base,
    Bound,
    Budget,
    Claim,
    Classify,
    Clock,
    Companion,
    Completion,
    CompletionsSize,
    Deleted,
    Drained,
    DropMark,
    Earliest,
    Embodiment,
    Ending,
    Finish,
    Giving,
    GroupGate,
    GroupPlan,
    Hold,
    Judged,
    Keep,
    Life,
    Memory,
    Names,
    Opens,
    Reaction,
    Ready,
    Refusal,
    Release,
    Retry,
    Rule,
    Scope,
    Shrink,
    Source,
    Spent,
    Tally,
    Teardown,
    UniformDelay,
    Unit,
    Via,
    Victims,
    WeightedSize,
    When,
    WhenEmpty,
    WishGate,
)

STOPPED = Outcome(
    Nature.PERMANENT, -210, "StopFrameworkRequested", "User has requested to stop the Framework", final=True
)
CUT = Outcome(Nature.PERMANENT, -220, "FrameworkAttemptCompletion", "Stop to complete current attempt", final=True)
DROPPED = Outcome(Nature.PERMANENT, -230, "DeleteTaskRequested", "Scaled down", final=True)
POD_LEAVING = Outcome(Nature.LOST, -101, "PodExternalDeleted", "Pod is being deleted by others")
POD_GONE = Outcome(Nature.LOST, -101, "PodExternalDeleted", "Pod was deleted by others")
POD_UNSEEN = Outcome(Nature.LOST, -111, "PodLocalCacheCreationTimeout", "Pod was never seen")
ANCHOR_LEAVING = Outcome(Nature.LOST, -100, "ConfigMapExternalDeleted", "ConfigMap is being deleted by others")
ANCHOR_GONE = Outcome(Nature.LOST, -100, "ConfigMapExternalDeleted", "ConfigMap was deleted by others")
ANCHOR_UNSEEN = Outcome(Nature.LOST, -110, "ConfigMapLocalCacheCreationTimeout", "ConfigMap was never seen")
NO_CONTAINER = Outcome(Nature.UNKNOWN, -300, "PodFailedWithoutFailedContainer")
INVALID = Outcome(Nature.PERMANENT, -200, "PodCreationPermanentError")
FORBIDDEN = Outcome(Nature.UNKNOWN, -310, "PodCreationUnknownError")
SUCCEEDED = Outcome(Nature.OK, 0, "Succeeded", "done")
FAILED = Outcome(Nature.UNKNOWN, 1, "Failed", "failed")
LATE = Outcome(Nature.PERMANENT, 2, "DeadlineExceeded", "too late")


def retry(fancy: bool, maximum: int) -> Retry:
    """The retry policy of a Framework or its tasks."""
    ok = Answer.CHARGED if maximum == -2 else Answer.DONE
    if fancy:
        return Retry(ok, Answer.FREE, Answer.CHARGED, Answer.DONE, Answer.FREE, UniformDelay(5, 5))
    return Retry(ok, Answer.CHARGED, Answer.CHARGED, Answer.CHARGED, Answer.CHARGED)


def permits(maximum: int) -> int | None:
    return None if maximum < 0 else maximum


def fc_role(
    name: str,
    size: int,
    *,
    task: tuple[bool, int] = (False, 0),
    force: int | None = None,
) -> Role:
    budget = Budget(Unit.ATTEMPTS, Scope.TASK, permits(task[1]))
    return Role(name, size, retry=retry(*task), budget=budget, force_after_seconds=force)


FC_RULES = (
    Rule(Nature.TRANSIENT, phrase="ContainerTransientFailed", codes=frozenset({200})),
    Rule(Nature.CONFLICT, phrase="ContainerTransientConflictFailed", codes=frozenset({201})),
    Rule(Nature.PERMANENT, phrase="ContainerPermanentFailed", codes=frozenset({210})),
    Rule(Nature.UNKNOWN, phrase="ContainerUnrecognizedFailed"),
)


def fc_verdicts(rules: dict[str, tuple[int, int]]) -> tuple[Earliest | When, ...]:
    """Per role minFailed and minSucceeded, then "all are done"."""
    whens = []
    for name, (failed, succeeded) in rules.items():
        if failed > 0:
            text = "FailedTaskCount {count} has reached MinFailedTaskCount {need} in the TaskRole"
            whens.append(
                When((Claim(Tally.BAD, name, failed),), FAILED, Finish.DRAINED, inherits=True, trigger_text=text)
            )
        if succeeded > 0:
            text = "SucceededTaskCount {count} has reached MinSucceededTaskCount {need} in the TaskRole"
            claim = Claim(Tally.OK, name, succeeded)
            whens.append(When((claim,), SUCCEEDED, Finish.DRAINED, inherits=True, trigger_text=text))
    text = "CompletedTaskCount {count} has reached TotalTaskCount {need}"
    everybody = Outcome(Nature.OK, 0, "Succeeded", text)
    done = When((Claim(Tally.DONE, ALL, Bound.SIZE),), everybody, Finish.DRAINED, names_trigger=True, trigger_text=text)
    return (Earliest(tuple(whens)), done)


def framework(
    *roles: Role,
    rules: dict[str, tuple[int, int]] | None = None,
    run: tuple[bool, int] = (False, 0),
    start: bool = True,
    stop: bool = False,
    deleting: bool = False,
    ttl: int | None = None,
) -> Job:
    """A job in the manner of a Framework: anchor, records, answers once the body is gone."""
    rules = rules if rules is not None else {role.name: (1, -1) for role in roles}
    policies = Policies(
        embodiment=Embodiment(
            memory=Memory.RECORD,
            anchor=AnchorPolicy(ANCHOR_LEAVING, ANCHOR_GONE, ANCHOR_UNSEEN),
        ),
        ending=Ending(
            leaving=POD_LEAVING,
            gone=POD_GONE,
            unseen=POD_UNSEEN,
            answer_at=AnswerAt.OVER,
        ),
        classify=Classify(
            rules=FC_RULES,
            no_code=NO_CONTAINER,
            refusals=(
                Refusal(None, texts=("exceeded quota",)),
                Refusal(FORBIDDEN, codes=frozenset({400, 403})),
                Refusal(INVALID, codes=frozenset({422, 413})),
            ),
        ),
        run_retry=retry(*run),
        budgets=(Budget(Unit.ATTEMPTS, Scope.JOB, permits(run[1])),),
        completion=Completion(fc_verdicts(rules), order=(Source.STOP, Source.COMPLETION), stop=STOPPED),
        shrink=Shrink(mark=DropMark.LEDGER, outcome=DROPPED),
        gates=(WishGate(open=start),),
        clock=Clock(ttl_seconds=ttl, creation_seconds=300),
        teardown=Teardown(at_end=Keep.NONE, via=Via.ANCHOR, cut=CUT),
    )
    return Job("job-uid", "fw", tuple(roles), policies, stop=stop, deleting=deleting)


EXIT_CODE = Retry.word("dcddf")


def t9(
    size: int = 3,
    *,
    minimum: int = 2,
    retry: Retry = EXIT_CODE,
    backoff: int | None = 3,
    pause: bool = False,
    clean: Keep = Keep.FINISHED,
    deadline: int | None = None,
) -> Job:
    """A job in the manner of a T9k PyTorchTrainingJob: levels, a lead, pause and resume."""
    policies = Policies(
        ending=Ending(judged=Judged.TRAINING, container="python", disruption_is_loss=True),
        classify=Classify(
            rules=(
                Rule(Nature.TRANSIENT, codes=frozenset({130, 137, 138, 143})),
                Rule(Nature.TRANSIENT, code=0, no_code=True),
                Rule(Nature.PERMANENT),
            )
        ),
        budgets=(Budget(Unit.PODS, Scope.JOB, backoff),),
        completion=Completion(
            (When((Claim(Tally.OK, LEAD, 1),), SUCCEEDED), When((Claim(Tally.BAD, LEAD, 1),), FAILED)),
            order=(Source.COMPLETION, Source.LIMITS, Source.HOLD),
        ),
        ready=Ready((Claim(Tally.UP, ALL, Bound.MIN),)),
        size=WeightedSize(size),
        gates=(GroupGate((GroupPlan("", "group"),), life=Life.UNTIL_DELETED),),
        hold=Hold(wish=pause, companions=frozenset({"service"})),
        clock=Clock(deadline_seconds=deadline, deadline_from=Base.CLOCK, deadline_outcome=LATE),
        teardown=Teardown(at_end=clean, at_deadline=Keep.FINISHED),
        companions=(Companion("service", Scope.TASK, Life.UNTIL_DELETED, "svc"),),
    )
    role = Role("worker", retry=retry, spared=frozenset({0}))
    return Job("job-uid", "t9", (role,), policies, lead=TaskRef("worker", 0), minimum=minimum)


VC_POLICIES = (
    Reaction(Action.RESTART_RUN, frozenset({Happening.TASK_LOST})),
    Reaction(Action.RESTART_RUN, frozenset({Happening.TASK_FAILED})),
)


def volcano(
    *roles: Role,
    minimum: int | None = None,
    reactions: tuple[Reaction, ...] = VC_POLICIES,
    max_retry: int = 3,
    victims: Victims = Victims.HIGHEST,
    gives: Giving | None = None,
) -> Job:
    """A job in the manner of Volcano: a roster, reactions, a group per run, commands."""
    roles = roles or (
        Role("pserver", 2, retry=Retry.word("ddddf")),
        Role(
            "trainer",
            2,
            retry=Retry.word("ddddf"),
            reactions=(Reaction(Action.COMPLETE, frozenset({Happening.ROLE_SUCCEEDED}), outcome=SUCCEEDED),),
        ),
    )
    total = sum(role.size for role in roles)
    done = Claim(Tally.DONE, ALL, Bound.SIZE)
    policies = Policies(
        embodiment=Embodiment(memory=Memory.ROSTER),
        ending=Ending(judged=Judged.FIRST, disruption_is_loss=True),
        classify=Classify(rules=(Rule(Nature.UNKNOWN),)),
        budgets=(Budget(Unit.ACTIONS, Scope.JOB, max_retry - 1, when_empty=WhenEmpty.CHARGE_AND_FAIL, outcome=FAILED),),
        reactions=reactions,
        commands={
            "AbortJob": Reaction(Action.HOLD),
            "ResumeJob": Reaction(Action.RELEASE),
            "RestartJob": Reaction(Action.RESTART_RUN),
            "TerminateJob": Reaction(Action.TERMINATE, outcome=FAILED),
            "CompleteJob": Reaction(Action.COMPLETE, outcome=SUCCEEDED),
        },
        completion=Completion(
            (When((done, Claim(Tally.OK, ALL, Bound.MIN)), SUCCEEDED), When((done,), FAILED)),
            order=(Source.COMMAND, Source.REACTIONS, Source.COMPLETION),
            needs_ready=True,
        ),
        ready=Ready((Claim(Tally.STARTED, ALL, Bound.MIN),), sticky=False, falls_back=(Claim(Tally.RUNNING, below=0),)),
        shrink=Shrink(mark=DropMark.POD, victims=victims),
        gates=(GroupGate((GroupPlan("", f"min-{total}", gives=gives),), Opens.ADMITTED, follows=True, life=Life.RUN),),
        hold=Hold(from_spec=False, keeps=Keep.FINISHED, renews_failed=True, release_counts=True),
        teardown=Teardown(at_end=Keep.FINISHED, restart_drained=Drained.ENOUGH),
    )
    return Job("job-uid", "vc", tuple(roles), policies, minimum=minimum if minimum is not None else total)


def elastic(size: int = 4, *more: Role, least: int = 2, of_role: dict[str, int] | None = None, **options: Any) -> Job:
    """A job in the manner of Volcano that can do with fewer workers, and restarts as a whole when it loses one."""
    roles = (Role("worker", size, minimum=least, retry=Retry.word("ddddf")), *more)
    return volcano(*roles, minimum=least, gives=Giving(least, of_role or {}), **options)


def batch(
    *,
    parallelism: int = 2,
    completions: int | None = 3,
    backoff: int = 2,
    indexed: bool = False,
    suspend: bool = False,
) -> Job:
    """A job in the manner of batch/v1: random names, finalizers, counters."""
    need = completions if completions is not None else 1
    policies = Policies(
        embodiment=Embodiment(names=Names.RANDOM, memory=Memory.FINALIZER),
        ending=Ending(
            by_others=Deleted.FAILED,
            success_beats_leaving=True,
            release=Release.LEAVING,
            leaving=Outcome(Nature.UNKNOWN, 1, "PodDeleted"),
        ),
        budgets=(
            Budget(Unit.PODS, Scope.JOB, backoff, spent=Spent.ON_FAILURE, when_empty=WhenEmpty.FAIL, outcome=FAILED),
        ),
        completion=Completion(
            (When((Claim(Tally.OK, ALL, need),), SUCCEEDED, Finish.DRAINED),),
            order=(Source.LIMITS, Source.COMPLETION, Source.HOLD),
            limit_finish=Finish.DRAINED,
        ),
        size=CompletionsSize(parallelism, completions, indexed),
        hold=Hold(wish=suspend, keeps=Keep.FINISHED),
        teardown=Teardown(at_retry=Keep.FINISHED, at_end=Keep.FINISHED),
    )
    role = Role("main", parallelism, retry=Retry.word("dccdc"))
    return Job("job-uid", "batch", (role,), policies)


def replica_set(size: int = 3) -> Job:
    """A job in the manner of a ReplicaSet: random names, nothing is ever done."""
    policies = Policies(
        embodiment=Embodiment(names=Names.RANDOM, memory=Memory.LEVEL),
        ending=Ending(by_others=Deleted.NOTHING, release=Release.LEAVING),
        shrink=Shrink(victims=Victims.RANKED),
    )
    return Job("job-uid", "rs", (Role("main", size, retry=Retry.word("fffff")),), policies)


def resized(job: Job, rules: dict[str, tuple[int, int]] | None = None, **sizes: int) -> Job:
    """The job with other sizes, and for a Framework with other completion rules, as one patch would make it."""
    roles = tuple(replace(role, size=sizes.get(role.name, role.size)) for role in job.roles)
    policies = job.policies
    if isinstance(policies.size, WeightedSize):
        policies = replace(policies, size=WeightedSize(sum(sizes.values())))
    if rules is not None:
        policies = replace(policies, completion=replace(policies.completion, verdicts=fc_verdicts(rules)))
    return replace(job, roles=roles, policies=policies)


def paused(job: Job, wish: bool = True) -> Job:
    return replace(job, policies=replace(job.policies, hold=replace(job.policies.hold, wish=wish)))
