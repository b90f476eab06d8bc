"""A batch/v1 Job as the engine's model: one role whose slots are filled until enough pods have succeeded.

All semantics of a Job are in this module: as many pods at once as parallelism and the missing successes allow; a failed
one is retried after a growing delay, charged to backoffLimit; limits precede success, and both wait until the last pod
is gone; suspend deletes the running pods and keeps what was achieved.
"""

from __future__ import annotations

from msgspec.structs import replace

from shoal.dialects.dialect import ManifestInvalid
from shoal.dialects.job_limits import LARGEST_INDEXED, size_error
from shoal.dialects.memo import memoize
from shoal.dialects.native import pod_failure_policy
from shoal.dialects.native.pod_builder import template_errors
from shoal.dialects.native.settings import NativeSettings
from shoal.engine import Job, Outcome, Policies, Role
from shoal.engine.policies import (
    ALL,
    BudgetScope,
    BudgetUnit,
    Completion,
    CompletionRule,
    CompletionsSize,
    CountCondition,
    DecisionSource,
    ExponentialDelay,
    ExternalDeletion,
    Finish,
    Hold,
    KeepPods,
    Memory,
    PodEndPolicy,
    PodNames,
    PodPolicy,
    Propagation,
    Retry,
    RetryBudget,
    SlotRelease,
    SpentOn,
    Tally,
    Teardown,
    Timeouts,
    WhenEmpty,
)
from shoal.kube.errors import Cause
from shoal.kube.kinds import JOB
from shoal.kube.objects import Obj, is_terminating, name_of, namespace_of, uid_of
from shoal.kube.validation.errors import invalid
from shoal.kube.validation.success_policy import size_of, spans_of

ROLE = "pod"
FINALIZER = "batch.kubernetes.io/job-tracking"
MANAGER = "kubernetes.io/job-controller"  # manages a Job that names no manager
CREATION_SECONDS = 300
_BACKOFF = ExponentialDelay(base=10, cap=600)  # as the Job controller of Kubernetes

_POD_POLICY = PodPolicy(names=PodNames.RANDOM, memory=Memory.FINALIZER)
_TEARDOWN = Teardown(at_retry=KeepPods.FINISHED, at_end=KeepPods.FINISHED)
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


def admit(manifest: Obj) -> list[Cause]:
    """What the API server refuses; and more pods than are made or remembered, which it does not."""
    if found := template_errors(JOB, manifest, _complete):
        return found
    spec = manifest["spec"]
    parallelism, completions = int(spec.get("parallelism", 1)), spec.get("completions")
    at_once = parallelism if completions is None else min(parallelism, int(completions))
    if wrong := size_error(at_once):
        return [invalid("spec.parallelism", parallelism, wrong)]
    if is_indexed(spec) and int(completions or 0) > LARGEST_INDEXED:
        return [invalid("spec.completions", completions, f"a Job by index has at most {LARGEST_INDEXED} completions")]
    return []


def read(manifest: Obj, settings: NativeSettings) -> Job | None:
    """The job a manifest describes; None where it names another controller. Raises ManifestInvalid as ever."""
    spec = manifest.get("spec") or {}
    if spec.get("managedBy") not in (None, MANAGER):
        return None
    policies: Policies = memoize(settings.understood, spec, lambda: _policies(manifest))
    budget, per_index = None, spec.get("backoffLimitPerIndex")
    if per_index is not None:
        budget = RetryBudget(
            BudgetUnit.ATTEMPTS, BudgetScope.TASK, int(per_index), spent=SpentOn.ON_FAILURE, when_empty=WhenEmpty.DONE
        )
    retry = Retry.from_letters("dfcdc", _BACKOFF)
    return Job(
        uid=uid_of(manifest),
        name=name_of(manifest),
        namespace=namespace_of(manifest),
        roles=(Role(ROLE, int(spec.get("parallelism", 1)), retry=retry, budget=budget),),
        policies=policies,
        deleting=is_terminating(manifest),
    )


def is_indexed(spec: Obj) -> bool:
    return spec.get("completionMode") == "Indexed"


def _policies(manifest: Obj) -> Policies:
    mistakes = admit(manifest)
    if mistakes:
        raise ManifestInvalid(mistakes)
    spec = manifest["spec"]
    return Policies(
        pod_policy=_POD_POLICY,
        pod_end=_pod_end_policy(spec),
        classify=pod_failure_policy.classify(spec),
        budgets=_budgets(spec),
        completion=Completion(
            tuple(_completion_rules(spec)),
            order=(DecisionSource.LIMITS, DecisionSource.COMPLETION, DecisionSource.HOLD),
            limit_finish=Finish.DRAINED,
        ),
        size=CompletionsSize(int(spec.get("parallelism", 1)), spec.get("completions"), is_indexed(spec)),
        hold=Hold(requested=bool(spec.get("suspend")), keeps=KeepPods.FINISHED),
        clock=Timeouts(
            deadline_seconds=spec.get("activeDeadlineSeconds"),
            deadline_outcome=pod_failure_policy.DEADLINE_EXCEEDED,
            ttl_seconds=spec.get("ttlSecondsAfterFinished"),
            propagation=Propagation.FOREGROUND,
            creation_seconds=CREATION_SECONDS,
        ),
        teardown=_TEARDOWN,
    )


def _pod_end_policy(spec: Obj) -> PodEndPolicy:
    """A pod that others delete counts at once, or, where it is to be replaced late, when it has ended."""
    waits = spec.get("podReplacementPolicy") == "Failed"
    return PodEndPolicy(
        external_deletion=ExternalDeletion.FAILED,
        at_termination=not waits,
        success_beats_leaving=True,
        leaving=pod_failure_policy.POD_DELETED,
        gone=pod_failure_policy.POD_DELETED,
        unseen=pod_failure_policy.POD_UNSEEN,
        ok=pod_failure_policy.POD_SUCCEEDED,
        release=SlotRelease.TERMINAL if waits else SlotRelease.LEAVING,
    )


def _budgets(spec: Obj) -> tuple[RetryBudget, ...]:
    limit = int(spec.get("backoffLimit", 6))
    failed = RetryBudget(
        BudgetUnit.PODS, BudgetScope.JOB, limit,
        spent=SpentOn.ON_FAILURE, when_empty=WhenEmpty.FAIL, outcome=pod_failure_policy.BACKOFF_LIMIT_EXCEEDED,
    )  # fmt: skip
    if (spec["template"].get("spec") or {}).get("restartPolicy") != "OnFailure":
        return (failed,)
    restarted = RetryBudget(
        BudgetUnit.CONTAINERS, BudgetScope.JOB, max(limit - 1, 0),
        when_empty=WhenEmpty.FAIL, outcome=pod_failure_policy.BACKOFF_LIMIT_EXCEEDED, phases=_ENDED_LATE,
    )  # fmt: skip
    return (failed, restarted)


def _completion_rules(spec: Obj) -> list[CompletionRule]:
    """Failed indexes before success, success by policy before success by number."""
    found: list[CompletionRule] = []
    completions, most = spec.get("completions"), spec.get("maxFailedIndexes")
    if spec.get("backoffLimitPerIndex") is None:
        if spec.get("podFailurePolicy"):
            found.append(_when(pod_failure_policy.BY_FAILURE_POLICY, CountCondition(Tally.BAD, ALL, 1)))
    else:
        if most is not None:
            found.append(
                _when(pod_failure_policy.TOO_MANY_INDEXES_FAILED, CountCondition(Tally.BAD, ALL, int(most) + 1))
            )
        everybody = CountCondition(Tally.DONE, ALL, int(completions or 0))
        found.append(_when(pod_failure_policy.INDEXES_FAILED, CountCondition(Tally.BAD, ALL, 1), everybody))
    for place, rule in enumerate((spec.get("successPolicy") or {}).get("rules") or ()):
        met = replace(pod_failure_policy.BY_SUCCESS_POLICY, text=f"Matched rules at index {place}")
        # So many of these indexes; all of them where the rule gives no number.
        written, count = rule.get("succeededIndexes"), rule.get("succeededCount")
        spans = spans_of(written, int(completions or 0)) if written else ()
        enough = CountCondition(Tally.OK, ALL, int(count if count is not None else size_of(spans)), among=spans)
        found.append(_when(met, CountCondition(Tally.OK, ALL, 1), enough))
    if completions is None:
        found.append(
            _when(
                pod_failure_policy.COMPLETE, CountCondition(Tally.OK, ALL, 1), CountCondition(Tally.LIVE, ALL, below=1)
            )
        )
    else:
        found.append(_when(pod_failure_policy.COMPLETE, CountCondition(Tally.OK, ALL, int(completions))))
    return found


def _when(outcome: Outcome, *claims: CountCondition) -> CompletionRule:
    """A failure names the pod that failed last, and takes its code."""
    is_bad, text = not outcome.is_ok, "{who} was the last to fail"
    return CompletionRule(claims, outcome, Finish.DRAINED, names_trigger=is_bad, takes_code=is_bad, trigger_text=text)
