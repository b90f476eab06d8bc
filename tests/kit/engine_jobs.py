"""Jobs in the engine's words, shaped after four job languages. Builders only: no behaviour of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from shoal.engine import Action, EventType, FailureClass, Job, Outcome, Policies, Role, TaskRef
from shoal.engine.policies import (
    ALL,
    LEAD,
    Bound,
    BudgetScope,
    BudgetUnit,
    Completion,
    CompletionRule,
    CompletionsSize,
    CountCondition,
    CreationRefusal,
    DeadlineBase,
    DecisionSource,
    DecisiveContainer,
    Drained,
    DropMark,
    EarliestOf,
    ExternalDeletion,
    ExternalGate,
    FailurePolicy,
    FailureRule,
    Finish,
    GroupGate,
    GroupPlan,
    Hold,
    KeepPods,
    Lifetime,
    Memory,
    Opens,
    OwnedObject,
    PodEndPolicy,
    PodNames,
    PodPolicy,
    Reaction,
    Ready,
    ReclaimLimits,
    Retry,
    RetryBudget,
    RetryDecision,
    RetryTiming,
    RunOwnerPolicy,
    ShrinkPolicy,
    SlotRelease,
    SpentOn,
    Tally,
    Teardown,
    TeardownVia,
    Timeouts,
    UniformDelay,
    VictimOrder,
    WeightedSize,
    WhenEmpty,
)

STOPPED = Outcome(
    FailureClass.PERMANENT, -210, "StopFrameworkRequested", "User has requested to stop the Framework", final=True
)
CUT = Outcome(
    FailureClass.PERMANENT, -220, "FrameworkAttemptCompletion", "Stop to complete current attempt", final=True
)
DROPPED = Outcome(FailureClass.PERMANENT, -230, "DeleteTaskRequested", "Scaled down", final=True)
POD_LEAVING = Outcome(FailureClass.LOST, -101, "PodExternalDeleted", "Pod is being deleted by others")
POD_GONE = Outcome(FailureClass.LOST, -101, "PodExternalDeleted", "Pod was deleted by others")
POD_UNSEEN = Outcome(FailureClass.LOST, -111, "PodLocalCacheCreationTimeout", "Pod was never seen")
ANCHOR_LEAVING = Outcome(FailureClass.LOST, -100, "ConfigMapExternalDeleted", "ConfigMap is being deleted by others")
ANCHOR_GONE = Outcome(FailureClass.LOST, -100, "ConfigMapExternalDeleted", "ConfigMap was deleted by others")
ANCHOR_UNSEEN = Outcome(FailureClass.LOST, -110, "ConfigMapLocalCacheCreationTimeout", "ConfigMap was never seen")
NO_CONTAINER = Outcome(FailureClass.UNKNOWN, -300, "PodFailedWithoutFailedContainer")
INVALID = Outcome(FailureClass.PERMANENT, -200, "PodCreationPermanentError")
FORBIDDEN = Outcome(FailureClass.UNKNOWN, -310, "PodCreationUnknownError")
SUCCEEDED = Outcome(FailureClass.OK, 0, "Succeeded", "done")
FAILED = Outcome(FailureClass.UNKNOWN, 1, "Failed", "failed")
LATE = Outcome(FailureClass.PERMANENT, 2, "DeadlineExceeded", "too late")


def retry(fancy: bool, maximum: int) -> Retry:
    """The retry policy of a Framework or its tasks."""
    ok = RetryDecision.CHARGED if maximum == -2 else RetryDecision.DONE
    if fancy:
        return Retry(
            ok, RetryDecision.FREE, RetryDecision.CHARGED, RetryDecision.DONE, RetryDecision.FREE, UniformDelay(5, 5)
        )
    return Retry(ok, RetryDecision.CHARGED, RetryDecision.CHARGED, RetryDecision.CHARGED, RetryDecision.CHARGED)


def permits(maximum: int) -> int | None:
    return None if maximum < 0 else maximum


def fc_role(
    name: str,
    size: int,
    *,
    task: tuple[bool, int] = (False, 0),
    force: int | None = None,
) -> Role:
    budget = RetryBudget(BudgetUnit.ATTEMPTS, BudgetScope.TASK, permits(task[1]))
    return Role(name, size, retry=retry(*task), budget=budget, force_after_seconds=force)


FC_RULES = (
    FailureRule(FailureClass.TRANSIENT, phrase="ContainerTransientFailed", codes=frozenset({200})),
    FailureRule(FailureClass.CONFLICT, phrase="ContainerTransientConflictFailed", codes=frozenset({201})),
    FailureRule(FailureClass.PERMANENT, phrase="ContainerPermanentFailed", codes=frozenset({210})),
    FailureRule(FailureClass.UNKNOWN, phrase="ContainerUnrecognizedFailed"),
)


def fc_verdicts(rules: dict[str, tuple[int, int]]) -> tuple[EarliestOf | CompletionRule, ...]:
    """Per role minFailed and minSucceeded, then "all are done"."""
    whens = []
    for name, (failed, succeeded) in rules.items():
        if failed > 0:
            text = "FailedTaskCount {count} has reached MinFailedTaskCount {need} in the TaskRole"
            whens.append(
                CompletionRule(
                    (CountCondition(Tally.BAD, name, failed),), FAILED, Finish.DRAINED, inherits=True, trigger_text=text
                )
            )
        if succeeded > 0:
            text = "SucceededTaskCount {count} has reached MinSucceededTaskCount {need} in the TaskRole"
            claim = CountCondition(Tally.OK, name, succeeded)
            whens.append(CompletionRule((claim,), SUCCEEDED, Finish.DRAINED, inherits=True, trigger_text=text))
    text = "CompletedTaskCount {count} has reached TotalTaskCount {need}"
    everybody = Outcome(FailureClass.OK, 0, "Succeeded", text)
    done = CompletionRule(
        (CountCondition(Tally.DONE, ALL, Bound.SIZE),), everybody, Finish.DRAINED, names_trigger=True, trigger_text=text
    )
    return (EarliestOf(tuple(whens)), done)


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
        pod_policy=PodPolicy(
            memory=Memory.RECORD,
            run_owner=RunOwnerPolicy(ANCHOR_LEAVING, ANCHOR_GONE, ANCHOR_UNSEEN),
        ),
        pod_end=PodEndPolicy(
            leaving=POD_LEAVING,
            gone=POD_GONE,
            unseen=POD_UNSEEN,
            retry_at=RetryTiming.OVER,
        ),
        classify=FailurePolicy(
            rules=FC_RULES,
            no_code=NO_CONTAINER,
            refusals=(
                CreationRefusal(None, texts=("exceeded quota",)),
                CreationRefusal(FORBIDDEN, codes=frozenset({400, 403})),
                CreationRefusal(INVALID, codes=frozenset({422, 413})),
            ),
        ),
        run_retry=retry(*run),
        budgets=(RetryBudget(BudgetUnit.ATTEMPTS, BudgetScope.JOB, permits(run[1])),),
        completion=Completion(fc_verdicts(rules), order=(DecisionSource.STOP, DecisionSource.COMPLETION), stop=STOPPED),
        shrink=ShrinkPolicy(mark=DropMark.LEDGER, outcome=DROPPED),
        gates=(ExternalGate(open=start),),
        clock=Timeouts(ttl_seconds=ttl, creation_seconds=300),
        teardown=Teardown(at_end=KeepPods.NONE, via=TeardownVia.RUN_OWNER, cut=CUT),
    )
    return Job("job-uid", "fw", tuple(roles), policies, stop=stop, deleting=deleting)


EXIT_CODE = Retry.from_letters("dcddf")


def t9(
    size: int = 3,
    *,
    minimum: int = 2,
    retry: Retry = EXIT_CODE,
    backoff: int | None = 3,
    pause: bool = False,
    clean: KeepPods = KeepPods.FINISHED,
    deadline: int | None = None,
) -> Job:
    """A job in the manner of a T9k PyTorchTrainingJob: levels, a lead, pause and resume."""
    policies = Policies(
        pod_end=PodEndPolicy(
            decisive_container=DecisiveContainer.TRAINING, container="python", disruption_is_loss=True
        ),
        classify=FailurePolicy(
            rules=(
                FailureRule(FailureClass.TRANSIENT, codes=frozenset({130, 137, 138, 143})),
                FailureRule(FailureClass.TRANSIENT, code=0, no_code=True),
                FailureRule(FailureClass.PERMANENT),
            )
        ),
        budgets=(RetryBudget(BudgetUnit.PODS, BudgetScope.JOB, backoff),),
        completion=Completion(
            (
                CompletionRule((CountCondition(Tally.OK, LEAD, 1),), SUCCEEDED),
                CompletionRule((CountCondition(Tally.BAD, LEAD, 1),), FAILED),
            ),
            order=(DecisionSource.COMPLETION, DecisionSource.LIMITS, DecisionSource.HOLD),
        ),
        ready=Ready((CountCondition(Tally.UP, ALL, Bound.MIN),)),
        size=WeightedSize(size),
        gates=(GroupGate((GroupPlan("", "group"),), lifetime=Lifetime.UNTIL_DELETED),),
        hold=Hold(requested=pause, owned_objects=frozenset({"service"})),
        clock=Timeouts(deadline_seconds=deadline, deadline_from=DeadlineBase.CLOCK, deadline_outcome=LATE),
        teardown=Teardown(at_end=clean, at_deadline=KeepPods.FINISHED),
        owned_objects=(OwnedObject("service", BudgetScope.TASK, Lifetime.UNTIL_DELETED, "svc"),),
    )
    role = Role("worker", retry=retry, protected=frozenset({0}))
    return Job("job-uid", "t9", (role,), policies, lead=TaskRef("worker", 0), minimum=minimum)


VC_POLICIES = (
    Reaction(Action.RESTART_RUN, frozenset({EventType.TASK_LOST})),
    Reaction(Action.RESTART_RUN, frozenset({EventType.TASK_FAILED})),
)


def volcano(
    *roles: Role,
    minimum: int | None = None,
    reactions: tuple[Reaction, ...] = VC_POLICIES,
    max_retry: int = 3,
    victims: VictimOrder = VictimOrder.HIGHEST,
    reclaim_limits: ReclaimLimits | None = None,
) -> Job:
    """A job in the manner of Volcano: a roster, reactions, a group per run, commands."""
    roles = roles or (
        Role("pserver", 2, retry=Retry.from_letters("ddddf")),
        Role(
            "trainer",
            2,
            retry=Retry.from_letters("ddddf"),
            reactions=(Reaction(Action.COMPLETE, frozenset({EventType.ROLE_SUCCEEDED}), outcome=SUCCEEDED),),
        ),
    )
    total = sum(role.size for role in roles)
    done = CountCondition(Tally.DONE, ALL, Bound.SIZE)
    policies = Policies(
        pod_policy=PodPolicy(memory=Memory.ROSTER),
        pod_end=PodEndPolicy(decisive_container=DecisiveContainer.FIRST, disruption_is_loss=True),
        classify=FailurePolicy(rules=(FailureRule(FailureClass.UNKNOWN),)),
        budgets=(
            RetryBudget(
                BudgetUnit.ACTIONS, BudgetScope.JOB, max_retry - 1, when_empty=WhenEmpty.CHARGE_AND_FAIL, outcome=FAILED
            ),
        ),
        reactions=reactions,
        commands={
            "AbortJob": Reaction(Action.HOLD),
            "ResumeJob": Reaction(Action.RELEASE),
            "RestartJob": Reaction(Action.RESTART_RUN),
            "TerminateJob": Reaction(Action.TERMINATE, outcome=FAILED),
            "CompleteJob": Reaction(Action.COMPLETE, outcome=SUCCEEDED),
        },
        completion=Completion(
            (
                CompletionRule((done, CountCondition(Tally.OK, ALL, Bound.MIN)), SUCCEEDED),
                CompletionRule((done,), FAILED),
            ),
            order=(DecisionSource.COMMAND, DecisionSource.REACTIONS, DecisionSource.COMPLETION),
            needs_ready=True,
        ),
        ready=Ready(
            (CountCondition(Tally.STARTED, ALL, Bound.MIN),),
            sticky=False,
            falls_back=(CountCondition(Tally.RUNNING, below=0),),
        ),
        shrink=ShrinkPolicy(mark=DropMark.POD, victims=victims),
        gates=(
            GroupGate(
                (GroupPlan("", f"min-{total}", reclaim_limits=reclaim_limits),),
                Opens.ADMITTED,
                follows=True,
                lifetime=Lifetime.RUN,
            ),
        ),
        hold=Hold(from_spec=False, keeps=KeepPods.FINISHED, renews_failed=True, release_counts=True),
        teardown=Teardown(at_end=KeepPods.FINISHED, restart_drained=Drained.ENOUGH),
    )
    return Job("job-uid", "vc", tuple(roles), policies, minimum=minimum if minimum is not None else total)


def elastic(size: int = 4, *more: Role, least: int = 2, of_role: dict[str, int] | None = None, **options: Any) -> Job:
    """A job in the manner of Volcano that can do with fewer workers, and restarts as a whole when it loses one."""
    roles = (Role("worker", size, minimum=least, retry=Retry.from_letters("ddddf")), *more)
    return volcano(*roles, minimum=least, reclaim_limits=ReclaimLimits(least, of_role or {}), **options)


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
        pod_policy=PodPolicy(names=PodNames.RANDOM, memory=Memory.FINALIZER),
        pod_end=PodEndPolicy(
            external_deletion=ExternalDeletion.FAILED,
            success_beats_leaving=True,
            release=SlotRelease.LEAVING,
            leaving=Outcome(FailureClass.UNKNOWN, 1, "PodDeleted"),
        ),
        budgets=(
            RetryBudget(
                BudgetUnit.PODS,
                BudgetScope.JOB,
                backoff,
                spent=SpentOn.ON_FAILURE,
                when_empty=WhenEmpty.FAIL,
                outcome=FAILED,
            ),
        ),
        completion=Completion(
            (CompletionRule((CountCondition(Tally.OK, ALL, need),), SUCCEEDED, Finish.DRAINED),),
            order=(DecisionSource.LIMITS, DecisionSource.COMPLETION, DecisionSource.HOLD),
            limit_finish=Finish.DRAINED,
        ),
        size=CompletionsSize(parallelism, completions, indexed),
        hold=Hold(requested=suspend, keeps=KeepPods.FINISHED),
        teardown=Teardown(at_retry=KeepPods.FINISHED, at_end=KeepPods.FINISHED),
    )
    role = Role("main", parallelism, retry=Retry.from_letters("dccdc"))
    return Job("job-uid", "batch", (role,), policies)


def replica_set(size: int = 3) -> Job:
    """A job in the manner of a ReplicaSet: random names, nothing is ever done."""
    policies = Policies(
        pod_policy=PodPolicy(names=PodNames.RANDOM, memory=Memory.LEVEL),
        pod_end=PodEndPolicy(external_deletion=ExternalDeletion.NOTHING, release=SlotRelease.LEAVING),
        shrink=ShrinkPolicy(victims=VictimOrder.RANKED),
    )
    return Job("job-uid", "rs", (Role("main", size, retry=Retry.from_letters("fffff")),), policies)


def resized(job: Job, rules: dict[str, tuple[int, int]] | None = None, **sizes: int) -> Job:
    """The job with other sizes, and for a Framework with other completion rules, as one patch would make it."""
    roles = tuple(replace(role, size=sizes.get(role.name, role.size)) for role in job.roles)
    policies = job.policies
    if isinstance(policies.size, WeightedSize):
        policies = replace(policies, size=WeightedSize(sum(sizes.values())))
    if rules is not None:
        policies = replace(policies, completion=replace(policies.completion, rules=fc_verdicts(rules)))
    return replace(job, roles=roles, policies=policies)


def paused(job: Job, requested: bool = True) -> Job:
    return replace(job, policies=replace(job.policies, hold=replace(job.policies.hold, requested=requested)))
