"""A batch/v1 Job in the engine's words: one role whose places are filled until enough pods have succeeded.

The story of a Job is this one page: as many pods at once as parallelism and the successes still missing allow; a failed
one is tried again after a growing while, at the cost of backoffLimit; limits come before success, and both wait until
the last pod is gone; suspend takes the living away and keeps what was achieved.
"""

from __future__ import annotations

from msgspec.structs import replace

from shoal.dialects.dialect import ManifestInvalid
from shoal.dialects.job_limits import LARGEST_INDEXED, too_many
from shoal.dialects.memo import remembered
from shoal.dialects.native import pod_failure_policy
from shoal.dialects.native.pod_builder import mistakes_of
from shoal.dialects.native.settings import Settings
from shoal.engine import Job, Outcome, Policies, Role
from shoal.engine.policies import (
    ALL,
    Budget,
    Claim,
    Clock,
    Completion,
    CompletionsSize,
    Deleted,
    Embodiment,
    Ending,
    ExponentialDelay,
    Finish,
    Hold,
    Keep,
    Memory,
    Names,
    Propagation,
    Release,
    Retry,
    Scope,
    Source,
    Spent,
    Tally,
    Teardown,
    Unit,
    When,
    WhenEmpty,
)
from shoal.kube.errors import Cause
from shoal.kube.kinds import JOB
from shoal.kube.objects import Obj, is_terminating, name_of, namespace_of, uid_of
from shoal.kube.validation.errors import invalid
from shoal.kube.validation.success_policy import size_of, spans_of

ROLE = "pod"
FINALIZER = "batch.kubernetes.io/job-tracking"
MANAGER = "kubernetes.io/job-controller"  # who takes care of a Job that names nobody
CREATION_SECONDS = 300
_FIRST_DELAY, _LONGEST_DELAY = 10, 600

_EMBODIMENT = Embodiment(names=Names.RANDOM, memory=Memory.FINALIZER)
_TEARDOWN = Teardown(at_retry=Keep.FINISHED, at_end=Keep.FINISHED)
_ENDED_LATE = frozenset({"Running", "Pending"})  # phases in which a pod's restarts count


def _complete(job: Obj) -> Obj:
    """What a server writes into a new Job: which pods are its own."""
    spec = job["spec"]
    if not spec.get("selector"):
        own = {"batch.kubernetes.io/controller-uid": uid_of(job)}
        metadata = spec["template"].setdefault("metadata", {})
        metadata["labels"] = {**(metadata.get("labels") or {}), **own}
        spec["selector"] = {"matchLabels": own}
    return job


_mistakes = mistakes_of(JOB, _complete)


def admit(manifest: Obj) -> list[Cause]:
    """What the API server refuses; and more pods than are made or remembered, which it does not."""
    return _mistakes(manifest) or _too_large(manifest["spec"])


def read(manifest: Obj, settings: Settings) -> Job | None:
    """The job a manifest asks for; None where it names another controller. Raises ManifestInvalid as ever."""
    spec = manifest.get("spec") or {}
    if spec.get("managedBy") not in (None, MANAGER):
        return None
    policies: Policies = remembered(settings.understood, spec, lambda: _policies(manifest))
    return Job(
        uid=uid_of(manifest),
        name=name_of(manifest),
        namespace=namespace_of(manifest),
        roles=(_role(spec),),
        policies=policies,
        deleting=is_terminating(manifest),
    )


def is_indexed(spec: Obj) -> bool:
    return spec.get("completionMode") == "Indexed"


def _role(spec: Obj) -> Role:
    per_index = spec.get("backoffLimitPerIndex")
    budget = None
    if per_index is not None:
        budget = Budget(Unit.ATTEMPTS, Scope.TASK, int(per_index), spent=Spent.ON_FAILURE, when_empty=WhenEmpty.DONE)
    retry = Retry.word("dfcdc", ExponentialDelay(_FIRST_DELAY, _LONGEST_DELAY))
    return Role(ROLE, int(spec.get("parallelism", 1)), retry=retry, budget=budget)


def _policies(manifest: Obj) -> Policies:
    mistakes = admit(manifest)
    if mistakes:
        raise ManifestInvalid(mistakes)
    spec = manifest["spec"]
    return Policies(
        embodiment=_EMBODIMENT,
        ending=_ending(spec),
        classify=pod_failure_policy.classify(spec),
        budgets=_budgets(spec),
        completion=Completion(
            tuple(_verdicts(spec)),
            order=(Source.LIMITS, Source.COMPLETION, Source.HOLD),
            limit_finish=Finish.DRAINED,
        ),
        size=CompletionsSize(int(spec.get("parallelism", 1)), spec.get("completions"), is_indexed(spec)),
        hold=Hold(wish=bool(spec.get("suspend")), keeps=Keep.FINISHED),
        clock=Clock(
            deadline_seconds=spec.get("activeDeadlineSeconds"),
            deadline_outcome=pod_failure_policy.TOO_LATE,
            ttl_seconds=spec.get("ttlSecondsAfterFinished"),
            propagation=Propagation.FOREGROUND,
            creation_seconds=CREATION_SECONDS,
        ),
        teardown=_TEARDOWN,
    )


def _too_large(spec: Obj) -> list[Cause]:
    parallelism, completions = int(spec.get("parallelism", 1)), spec.get("completions")
    at_once = parallelism if completions is None else min(parallelism, int(completions))
    if wrong := too_many(at_once):
        return [invalid("spec.parallelism", parallelism, wrong)]
    if is_indexed(spec) and int(completions or 0) > LARGEST_INDEXED:
        return [invalid("spec.completions", completions, f"a Job by index has at most {LARGEST_INDEXED} completions")]
    return []


def _ending(spec: Obj) -> Ending:
    """A pod that others delete counts at once, or, where it is to be replaced late, when it has ended."""
    waits = spec.get("podReplacementPolicy") == "Failed"
    return Ending(
        by_others=Deleted.FAILED,
        at_leaving=not waits,
        success_beats_leaving=True,
        leaving=pod_failure_policy.POD_DELETED,
        gone=pod_failure_policy.POD_DELETED,
        unseen=pod_failure_policy.POD_UNSEEN,
        ok=pod_failure_policy.POD_SUCCEEDED,
        release=Release.TERMINAL if waits else Release.LEAVING,
    )


def _budgets(spec: Obj) -> tuple[Budget, ...]:
    limit = int(spec.get("backoffLimit", 6))
    failed = Budget(
        Unit.PODS, Scope.JOB, limit,
        spent=Spent.ON_FAILURE, when_empty=WhenEmpty.FAIL, outcome=pod_failure_policy.OUT_OF_PATIENCE,
    )  # fmt: skip
    if (spec["template"].get("spec") or {}).get("restartPolicy") != "OnFailure":
        return (failed,)
    restarted = Budget(
        Unit.CONTAINERS, Scope.JOB, max(limit - 1, 0),
        when_empty=WhenEmpty.FAIL, outcome=pod_failure_policy.OUT_OF_PATIENCE, phases=_ENDED_LATE,
    )  # fmt: skip
    return (failed, restarted)


def _verdicts(spec: Obj) -> list[When]:
    """Failed indexes before success, success by policy before success by number."""
    found: list[When] = []
    completions, most = spec.get("completions"), spec.get("maxFailedIndexes")
    if spec.get("backoffLimitPerIndex") is None:
        if spec.get("podFailurePolicy"):
            found.append(_when(pod_failure_policy.BY_FAILURE_POLICY, Claim(Tally.BAD, ALL, 1)))
    else:
        if most is not None:
            found.append(_when(pod_failure_policy.TOO_MANY_INDEXES_FAILED, Claim(Tally.BAD, ALL, int(most) + 1)))
        everybody = Claim(Tally.DONE, ALL, int(completions or 0))
        found.append(_when(pod_failure_policy.INDEXES_FAILED, Claim(Tally.BAD, ALL, 1), everybody))
    for place, rule in enumerate((spec.get("successPolicy") or {}).get("rules") or ()):
        met = replace(pod_failure_policy.BY_SUCCESS_POLICY, text=f"Matched rules at index {place}")
        found.append(_when(met, Claim(Tally.OK, ALL, 1), _success(rule, int(completions or 0))))
    if completions is None:
        found.append(_when(pod_failure_policy.COMPLETE, Claim(Tally.OK, ALL, 1), Claim(Tally.LIVE, ALL, below=1)))
    else:
        found.append(_when(pod_failure_policy.COMPLETE, Claim(Tally.OK, ALL, int(completions))))
    return found


def _success(rule: Obj, completions: int) -> Claim:
    """So many of these indexes; all of them, or of all of them, where the rule does not say."""
    written, count = rule.get("succeededIndexes"), rule.get("succeededCount")
    spans = spans_of(written, completions) if written else ()
    return Claim(Tally.OK, ALL, int(count if count is not None else size_of(spans)), among=spans)


def _when(outcome: Outcome, *claims: Claim) -> When:
    """A failure names the pod that failed last, and takes its code."""
    is_bad, text = not outcome.is_ok, "{who} was the last to fail"
    return When(claims, outcome, Finish.DRAINED, names_trigger=is_bad, takes_code=is_bad, trigger_text=text)
