"""A Framework in the engine's words: roles with sizes, and the policies of this language as data.

The story of a Framework is this one page: pods hang on a ConfigMap per attempt and are known by uid; an attempt is
over only when its object is gone; two retry policies sit inside each other; counts of failed and succeeded tasks
decide about the whole, and everybody else is cut off.
"""

from __future__ import annotations

from typing import NamedTuple

from shoal.dialects.dialect import ManifestInvalid
from shoal.dialects.framework import completion_codes
from shoal.dialects.framework.settings import Settings
from shoal.dialects.framework.spec import RetryPolicy, Spec, TaskRole, spec_mistakes, spec_of
from shoal.dialects.memo import remembered
from shoal.engine import Job, Policies, Role
from shoal.engine.policies import (
    ALL,
    AnchorPolicy,
    AnswerAt,
    Bound,
    Budget,
    Claim,
    Classify,
    Clock,
    Completion,
    Delay,
    Deleted,
    DropMark,
    Earliest,
    Embodiment,
    Ending,
    Finish,
    Judged,
    Keep,
    Memory,
    Names,
    Propagation,
    Ready,
    Refusal,
    Release,
    Retry,
    Scope,
    Shrink,
    Source,
    Tally,
    Teardown,
    UniformDelay,
    Unit,
    Via,
    Victims,
    When,
    WishGate,
)
from shoal.engine.types import Nature, Outcome
from shoal.kube.objects import Obj, is_terminating, name_of, namespace_of, uid_of

ALWAYS = -2  # of maxRetryCount: success is retried too

_EMBODIMENT = Embodiment(
    names=Names.INDEX,
    memory=Memory.RECORD,
    anchor=AnchorPolicy(
        leaving=completion_codes.CONFIGMAP_LEAVING,
        gone=completion_codes.CONFIGMAP_GONE,
        unseen=completion_codes.CONFIGMAP_UNSEEN,
    ),
)
_ENDING = Ending(
    judged=Judged.LAST_FAILED,
    by_others=Deleted.LOST,
    at_leaving=True,
    leaving=completion_codes.POD_LEAVING,
    gone=completion_codes.POD_GONE,
    unseen=completion_codes.POD_UNSEEN,
    ok=completion_codes.POD_SUCCEEDED,
    answer_at=AnswerAt.OVER,
    release=Release.GONE,
)
_REFUSALS = (
    Refusal(None, texts=("object provided is unrecognized", "exceeded quota")),
    Refusal(completion_codes.POD_REFUSED_UNKNOWN, codes=frozenset({400, 403})),
    # An answer cut short says nothing about the pod, whatever its number.
    Refusal(
        completion_codes.POD_REFUSED_UNKNOWN,
        codes=frozenset({413, 422}),
        texts=("connection reset by peer", "unexpected EOF", ": EOF"),
    ),
    Refusal(completion_codes.POD_REFUSED, codes=frozenset({413, 422})),
)
_SHRINK = Shrink(victims=Victims.HIGHEST, mark=DropMark.LEDGER, outcome=completion_codes.SCALED_AWAY)
_TEARDOWN = Teardown(at_done=Keep.NONE, at_end=Keep.NONE, via=Via.ANCHOR, cut=completion_codes.CUT_OFF)
_READY = Ready((Claim(Tally.RUNNING, at_least=1),), sticky=True)

_FAILED_TEXT = "FailedTaskCount {count} has reached MinFailedTaskCount {need} in the TaskRole"
_SUCCEEDED_TEXT = "SucceededTaskCount {count} has reached MinSucceededTaskCount {need} in the TaskRole"
_ALL_TEXT = (
    "CompletedTaskCount {count} has reached TotalTaskCount {need} and no user specified conditions in "
    "FrameworkAttemptCompletionPolicy have ever been triggered"
)
_ALL_DONE = When(
    (Claim(Tally.DONE, of=ALL, at_least=Bound.SIZE),),
    Outcome(
        Nature.OK,
        code=completion_codes.ALL_COMPLETED.code,
        phrase=completion_codes.ALL_COMPLETED.phrase,
        text=_ALL_TEXT,
    ),
    finish=Finish.DRAINED,
    names_trigger=True,
    trigger_text=_ALL_TEXT,
)


def read(manifest: Obj, settings: Settings) -> Job:
    """The job a Framework asks for. Raises ManifestInvalid where `admit` would have refused it."""
    understood = _understood(manifest, settings)
    return Job(
        uid=uid_of(manifest),
        name=name_of(manifest),
        namespace=namespace_of(manifest),
        roles=understood.roles,
        policies=understood.policies,
        stop=understood.stop,
        deleting=is_terminating(manifest),
    )


class _Understood(NamedTuple):
    """All that follows from a spec alone."""

    roles: tuple[Role, ...]
    policies: Policies
    stop: bool


def _understood(manifest: Obj, settings: Settings) -> _Understood:
    def read_afresh() -> _Understood:
        mistakes = spec_mistakes(manifest)
        if mistakes:
            raise ManifestInvalid(mistakes)
        spec = spec_of(manifest)
        roles = tuple(_role(role) for role in spec.task_roles)
        return _Understood(roles, _policies(spec, settings), spec.execution_type == "Stop")

    known: _Understood = remembered(settings.understood, manifest.get("spec"), read_afresh)
    return known


def _role(role: TaskRole) -> Role:
    policy = role.task.retry_policy
    return Role(
        role.name,
        size=role.task_number,
        retry=retry(policy),
        budget=_budget(policy, Scope.TASK),
        force_after_seconds=role.task.pod_graceful_deletion_timeout_sec,
    )


def _policies(spec: Spec, settings: Settings) -> Policies:
    delay = UniformDelay(
        settings.framework_min_retry_delay_sec_for_transient_conflict_failed,
        settings.framework_max_retry_delay_sec_for_transient_conflict_failed,
    )
    return Policies(
        embodiment=_EMBODIMENT,
        ending=_ENDING,
        classify=_classify(settings),
        run_retry=retry(spec.retry_policy, delay),
        budgets=(_budget(spec.retry_policy, Scope.JOB),),
        completion=_completion(spec),
        ready=_READY,
        shrink=_SHRINK,
        gates=(WishGate(spec.execution_type != "Create", sentence="The Framework waits for executionType Start"),),
        clock=Clock(
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
        return Retry.word(f"{ok}fcdf", delay)
    return Retry.word(f"{ok}cccc")


def _budget(policy: RetryPolicy, scope: Scope) -> Budget:
    permits = policy.max_retry_count if policy.max_retry_count >= 0 else None
    return Budget(Unit.ATTEMPTS, scope, permits)


def _completion(spec: Spec) -> Completion:
    """Whoever reaches a count first decides; if nobody does, all being done is a success."""
    counts: list[When] = []
    for role in spec.task_roles:
        policy = role.framework_attempt_completion_policy
        for tally, need, text in (
            (Tally.BAD, policy.min_failed_task_count, _FAILED_TEXT),
            (Tally.OK, policy.min_succeeded_task_count, _SUCCEEDED_TEXT),
        ):
            if need >= 1:
                counts.append(_count(role.name, tally, need, text))
    return Completion(
        verdicts=(Earliest(tuple(counts)), _ALL_DONE),
        order=(Source.STOP, Source.COMPLETION),
        stop=completion_codes.STOP_REQUESTED,
        too_large=completion_codes.TOO_LARGE,
        stop_finish=Finish.DRAINED,
    )


def _count(role: str, tally: Tally, need: int, text: str) -> When:
    """The outcome is that of the task that reached the count."""
    return When(
        (Claim(tally, of=role, at_least=need),),
        Outcome(Nature.OK if tally is Tally.OK else Nature.UNKNOWN),
        finish=Finish.DRAINED,
        inherits=True,
        names_trigger=True,
        trigger_text=text,
    )


def _classify(settings: Settings) -> Classify:
    return Classify(
        rules=settings.rules,
        no_code=completion_codes.NO_FAILED_CONTAINER,
        refusals=_REFUSALS,
        matched="Pod failed: PodPattern matched: ",
        unmatched="Pod failed: PodPattern unmatched: ",
        refused="Failed to create Pod: ",
    )
