"""A Framework as the engine's model: roles with sizes, and the policies of this dialect as data.

All semantics of a Framework are in this module: pods are owned by a ConfigMap per attempt and identified by uid; an
attempt is over only when its object is deleted; two retry policies are nested; counts of failed and succeeded tasks
decide the outcome of the whole, and all other tasks are stopped.
"""

from __future__ import annotations

from typing import NamedTuple

from shoal.dialects.dialect import ManifestInvalid
from shoal.dialects.framework import controller_outcomes
from shoal.dialects.framework.settings import FrameworkSettings
from shoal.dialects.framework.spec import FrameworkSpec, RetryPolicy, spec_errors, spec_of
from shoal.dialects.memo import memoize
from shoal.engine import Job, Policies, Role
from shoal.engine.policies import (
    ALL,
    Bound,
    BudgetScope,
    BudgetUnit,
    Completion,
    CompletionRule,
    CountCondition,
    CreationRefusal,
    DecisionSource,
    DecisiveContainer,
    Delay,
    DropMark,
    EarliestOf,
    ExternalDeletion,
    ExternalGate,
    FailurePolicy,
    Finish,
    KeepPods,
    Memory,
    PodEndPolicy,
    PodNames,
    PodPolicy,
    Propagation,
    Ready,
    Retry,
    RetryBudget,
    RetryTiming,
    RunOwnerPolicy,
    ShrinkPolicy,
    SlotRelease,
    Tally,
    Teardown,
    TeardownVia,
    Timeouts,
    UniformDelay,
    VictimOrder,
)
from shoal.engine.types import FailureClass, Outcome
from shoal.kube.objects import Obj, is_terminating, name_of, namespace_of, uid_of

ALWAYS = -2  # of maxRetryCount: success is retried too

_POD_POLICY = PodPolicy(
    names=PodNames.INDEX,
    memory=Memory.RECORD,
    run_owner=RunOwnerPolicy(
        leaving=controller_outcomes.CONFIGMAP_LEAVING,
        gone=controller_outcomes.CONFIGMAP_GONE,
        unseen=controller_outcomes.CONFIGMAP_UNSEEN,
    ),
)
_POD_END = PodEndPolicy(
    decisive_container=DecisiveContainer.LAST_FAILED,
    external_deletion=ExternalDeletion.LOST,
    at_termination=True,
    leaving=controller_outcomes.POD_LEAVING,
    gone=controller_outcomes.POD_GONE,
    unseen=controller_outcomes.POD_UNSEEN,
    ok=controller_outcomes.POD_SUCCEEDED,
    retry_at=RetryTiming.OVER,
    release=SlotRelease.GONE,
)
_REFUSALS = (
    CreationRefusal(None, texts=("object provided is unrecognized", "exceeded quota")),
    CreationRefusal(controller_outcomes.POD_REFUSED_UNKNOWN, codes=frozenset({400, 403})),
    # A truncated response is no evidence about the pod, whatever its code.
    CreationRefusal(
        controller_outcomes.POD_REFUSED_UNKNOWN,
        codes=frozenset({413, 422}),
        texts=("connection reset by peer", "unexpected EOF", ": EOF"),
    ),
    CreationRefusal(controller_outcomes.POD_REFUSED, codes=frozenset({413, 422})),
)
_SHRINK = ShrinkPolicy(victims=VictimOrder.HIGHEST, mark=DropMark.LEDGER, outcome=controller_outcomes.SCALED_AWAY)
_TEARDOWN = Teardown(
    at_done=KeepPods.NONE, at_end=KeepPods.NONE, via=TeardownVia.RUN_OWNER, cut=controller_outcomes.CUT_OFF
)
_READY = Ready((CountCondition(Tally.RUNNING, at_least=1),), sticky=True)

_FAILED_TEXT = "FailedTaskCount {count} has reached MinFailedTaskCount {need} in the TaskRole"
_SUCCEEDED_TEXT = "SucceededTaskCount {count} has reached MinSucceededTaskCount {need} in the TaskRole"
_ALL_TEXT = (
    "CompletedTaskCount {count} has reached TotalTaskCount {need} and no user specified conditions in "
    "FrameworkAttemptCompletionPolicy have ever been triggered"
)
_ALL_DONE = CompletionRule(
    (CountCondition(Tally.DONE, of=ALL, at_least=Bound.SIZE),),
    Outcome(
        FailureClass.OK,
        code=controller_outcomes.ALL_COMPLETED.code,
        phrase=controller_outcomes.ALL_COMPLETED.phrase,
        text=_ALL_TEXT,
    ),
    finish=Finish.DRAINED,
    names_trigger=True,
    trigger_text=_ALL_TEXT,
)


def read(manifest: Obj, settings: FrameworkSettings) -> Job:
    """The job a Framework describes. Raises ManifestInvalid where `admit` would have refused it."""
    understood = _parse_spec(manifest, settings)
    return Job(
        uid=uid_of(manifest),
        name=name_of(manifest),
        namespace=namespace_of(manifest),
        roles=understood.roles,
        policies=understood.policies,
        stop=understood.stop,
        deleting=is_terminating(manifest),
    )


class _ParsedSpec(NamedTuple):
    """All that follows from a spec alone."""

    roles: tuple[Role, ...]
    policies: Policies
    stop: bool


def _parse_spec(manifest: Obj, settings: FrameworkSettings) -> _ParsedSpec:
    def read_afresh() -> _ParsedSpec:
        mistakes = spec_errors(manifest)
        if mistakes:
            raise ManifestInvalid(mistakes)
        spec = spec_of(manifest)
        roles = tuple(
            Role(
                role.name,
                size=role.task_number,
                retry=retry(role.task.retry_policy),
                budget=_budget(role.task.retry_policy, BudgetScope.TASK),
                force_after_seconds=role.task.pod_graceful_deletion_timeout_sec,
            )
            for role in spec.task_roles
        )
        return _ParsedSpec(roles, _policies(spec, settings), spec.execution_type == "Stop")

    known: _ParsedSpec = memoize(settings.understood, manifest.get("spec"), read_afresh)
    return known


def _policies(spec: FrameworkSpec, settings: FrameworkSettings) -> Policies:
    delay = UniformDelay(
        settings.framework_min_retry_delay_sec_for_transient_conflict_failed,
        settings.framework_max_retry_delay_sec_for_transient_conflict_failed,
    )
    return Policies(
        pod_policy=_POD_POLICY,
        pod_end=_POD_END,
        classify=FailurePolicy(
            rules=settings.rules,
            no_code=controller_outcomes.NO_FAILED_CONTAINER,
            refusals=_REFUSALS,
            matched="Pod failed: PodPattern matched: ",
            unmatched="Pod failed: PodPattern unmatched: ",
            refused="Failed to create Pod: ",
        ),
        run_retry=retry(spec.retry_policy, delay),
        budgets=(_budget(spec.retry_policy, BudgetScope.JOB),),
        completion=_completion(spec),
        ready=_READY,
        shrink=_SHRINK,
        gates=(ExternalGate(spec.execution_type != "Create", message="The Framework waits for executionType Start"),),
        clock=Timeouts(
            ttl_seconds=settings.framework_completed_retain_sec,
            propagation=Propagation.FOREGROUND,
            creation_seconds=settings.object_local_cache_creation_timeout_sec,
        ),
        teardown=_TEARDOWN,
    )


def retry(policy: RetryPolicy, delay: Delay = None) -> Retry:
    """The letters are the answers to: success, transient, unknown, permanent failure, loss.

    Only the fancy policy looks at the kind of failure, so only there a conflict is worth a delay.
    """
    ok = "c" if policy.max_retry_count == ALWAYS else "d"
    if policy.fancy_retry_policy:
        return Retry.from_letters(f"{ok}fcdf", delay)
    return Retry.from_letters(f"{ok}cccc")


def _budget(policy: RetryPolicy, scope: BudgetScope) -> RetryBudget:
    permits = policy.max_retry_count if policy.max_retry_count >= 0 else None
    return RetryBudget(BudgetUnit.ATTEMPTS, scope, permits)


def _completion(spec: FrameworkSpec) -> Completion:
    """The first count reached decides; if none is reached, the end of all tasks is a success."""
    counts: list[CompletionRule] = []
    for role in spec.task_roles:
        policy = role.framework_attempt_completion_policy
        for tally, need, text in (
            (Tally.BAD, policy.min_failed_task_count, _FAILED_TEXT),
            (Tally.OK, policy.min_succeeded_task_count, _SUCCEEDED_TEXT),
        ):
            if need >= 1:
                rule = CompletionRule(
                    (CountCondition(tally, of=role.name, at_least=need),),
                    Outcome(FailureClass.OK if tally is Tally.OK else FailureClass.UNKNOWN),
                    finish=Finish.DRAINED,
                    inherits=True,  # the outcome of the task that reached the count
                    names_trigger=True,
                    trigger_text=text,
                )
                counts.append(rule)
    return Completion(
        rules=(EarliestOf(tuple(counts)), _ALL_DONE),
        order=(DecisionSource.STOP, DecisionSource.COMPLETION),
        stop=controller_outcomes.STOP_REQUESTED,
        too_large=controller_outcomes.TOO_LARGE,
        stop_finish=Finish.DRAINED,
    )
