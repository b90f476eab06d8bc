"""A Volcano Job as the engine's model: its tasks as roles, and the policies of this dialect as data.

All semantics of a Job are in this module: a PodGroup per run is admitted before any pod is created; events of pods are
matched to the policies of the manifest, the task's before the job's; restarts of any reach cost one of maxRetry; when
all pods have ended, minima decide; Commands hold, release and end it.
"""

from __future__ import annotations

from typing import NamedTuple

from shoal.dialects.dialect import ManifestInvalid
from shoal.dialects.memo import memoize
from shoal.dialects.volcano import commands, completion_codes, lifecycle_policies, names
from shoal.dialects.volcano.children import claim_key, claims_of_others, group_plans, owned_objects, plugin_job_of
from shoal.dialects.volcano.settings import VolcanoSettings
from shoal.dialects.volcano.spec import JobSpec, TaskSpec, spec_of
from shoal.dialects.volcano.validation import admit
from shoal.engine import Job, Policies, Role
from shoal.engine.policies import (
    ALL,
    After,
    Bound,
    BudgetScope,
    BudgetUnit,
    Completion,
    CompletionRule,
    CountCondition,
    DecisionSource,
    DecisiveContainer,
    Drained,
    DropMark,
    ExternalDeletion,
    ExternalGate,
    FailurePolicy,
    FailureRule,
    Finish,
    GroupGate,
    Hold,
    KeepPods,
    Lifetime,
    Memory,
    Opens,
    PodEndPolicy,
    PodNames,
    PodPolicy,
    Propagation,
    Ready,
    Retry,
    RetryBudget,
    RetryTiming,
    ShrinkPolicy,
    SlotRelease,
    Tally,
    Teardown,
    Timeouts,
    VictimOrder,
    WhenEmpty,
)
from shoal.engine.types import Action, FailureClass
from shoal.kube.objects import Obj, annotations_of, is_terminating, name_of, namespace_of, uid_of

CREATION_SECONDS = 300  # a pod that was made and shows nowhere for so long is lost

_POD_POLICY = PodPolicy(names=PodNames.INDEX, memory=Memory.ROSTER)
_POD_END = PodEndPolicy(
    decisive_container=DecisiveContainer.FIRST,
    external_deletion=ExternalDeletion.LOST,
    at_termination=True,
    success_beats_leaving=True,
    disruption_is_loss=True,
    leaving=completion_codes.POD_LEAVING,
    gone=completion_codes.POD_GONE,
    unseen=completion_codes.POD_UNSEEN,
    ok=completion_codes.POD_SUCCEEDED,
    retry_at=RetryTiming.VERDICT,
    release=SlotRelease.GONE,
)
_CLASSIFY = FailurePolicy(
    rules=(FailureRule(FailureClass.UNKNOWN, phrase="PodFailed"),), no_code=completion_codes.NO_CODE
)
_RETRY = Retry.from_letters("ddddf")  # a failed pod just counts; a lost one is made again
_TEARDOWN = Teardown(at_restart=KeepPods.NONE, at_end=KeepPods.FINISHED, restart_drained=Drained.ENOUGH)
_RESTARTS_OF = frozenset({"Running", "Pending"})  # phases in which a pod's restarts count
_ALL_DONE = CountCondition(Tally.DONE, ALL, Bound.SIZE)


def read(manifest: Obj, settings: VolcanoSettings) -> Job:
    """The job a manifest specifies. Raises ManifestInvalid where `admit` would have rejected it."""
    understood = _parse_spec(manifest, settings)
    return Job(
        uid=uid_of(manifest),
        name=name_of(manifest),
        namespace=namespace_of(manifest),
        roles=understood.roles,
        policies=understood.policies,
        minimum=understood.minimum,
        deleting=is_terminating(manifest),
    )


class _ParsedSpec(NamedTuple):
    """All that follows from a spec and the annotations beside it."""

    roles: tuple[Role, ...]
    policies: Policies
    minimum: int


def _parse_spec(manifest: Obj, settings: VolcanoSettings) -> _ParsedSpec:
    wishes = {key: annotations_of(manifest).get(key) for key in (names.SHRINK, names.VICTIMS, names.RESUME_COUNTS)}

    def read_afresh() -> _ParsedSpec:
        mistakes = admit(manifest)
        if mistakes:
            raise ManifestInvalid(mistakes)
        spec = spec_of(manifest)
        victims = _victims(wishes[names.VICTIMS] or "")
        roles = tuple(_role(task, victims.get(task.name, ())) for task in spec.tasks)
        return _ParsedSpec(roles, _policies(spec, manifest, wishes, settings), spec.min_available)

    written = (name_of(manifest), namespace_of(manifest), wishes, manifest.get("spec"))
    known: _ParsedSpec = memoize(settings.understood, written, read_afresh)
    return known


def _victims(text: str) -> dict[str, tuple[int, ...]]:
    """`worker=3,1 ps=0`; an invalid entry selects no task."""
    found: dict[str, tuple[int, ...]] = {}
    for word in text.split():
        task, _, listed = word.partition("=")
        numbers = [number for number in listed.split(",") if number.isascii() and number.isdigit()]
        found[task] = tuple(int(number) for number in numbers)
    return found


def _role(task: TaskSpec, victims: tuple[int, ...]) -> Role:
    permits = max(task.max_retry - 1, 0) if task.max_retry >= 0 else None
    after = task.depends_on
    return Role(
        task.name,
        size=task.replicas,
        minimum=task.minimum,
        retry=_RETRY,
        budget=RetryBudget(
            BudgetUnit.CONTAINERS, BudgetScope.ROLE, permits, when_empty=WhenEmpty.EVENT, phases=_RESTARTS_OF
        ),
        reactions=lifecycle_policies.reactions(task.policies),
        after=After(tuple(after.name), any=after.iteration == "any", ready=True) if after and after.name else None,
        partition_size=task.partition_policy.partition_size if task.partition_policy else 0,
        victims=victims,
    )


def _policies(spec: JobSpec, manifest: Obj, wishes: dict[str, str | None], settings: VolcanoSettings) -> Policies:
    counts = wishes[names.RESUME_COUNTS] == "true" or settings.resume_counts
    too_many_missing = CountCondition(Tally.PENDING, ALL, at_least=spec.total - spec.min_available + 1)
    victims = VictimOrder.PENDING_FIRST if wishes[names.SHRINK] == "pending-first" else VictimOrder.HIGHEST
    if wishes[names.VICTIMS]:
        victims = VictimOrder.NAMED
    return Policies(
        pod_policy=_POD_POLICY,
        pod_end=_POD_END,
        classify=_CLASSIFY,
        budgets=(
            RetryBudget(
                BudgetUnit.ACTIONS,
                BudgetScope.JOB,
                max(spec.max_retry - 1, 0),
                when_empty=WhenEmpty.CHARGE_AND_FAIL,
                outcome=completion_codes.OUT_OF_RETRIES,
            ),
        ),
        reactions=lifecycle_policies.reactions(spec.policies),
        commands=commands.reactions_to_commands(),
        actions=lifecycle_policies.ACTION_NAMES,
        completion=_completion(spec),
        # Running with enough pods that run or ended; Pending again when more are missing than may be.
        ready=Ready((CountCondition(Tally.STARTED, ALL, Bound.MIN),), sticky=False, falls_back=(too_many_missing,)),
        shrink=ShrinkPolicy(victims=victims, mark=DropMark.POD, outcome=completion_codes.SCALED_AWAY),
        gates=_gates(spec),
        # A gang never starts with fewer than its minimum: failed members would block a resumed job for ever.
        hold=Hold(
            from_spec=False,
            keeps=KeepPods.FINISHED,
            resume_charged=counts,
            renews_failed=True,
            release_counts=True,
            ignores=frozenset({Action.COMPLETE}),
        ),
        clock=Timeouts(
            ttl_seconds=spec.ttl_seconds_after_finished,
            propagation=Propagation.FOREGROUND,
            creation_seconds=CREATION_SECONDS,
        ),
        teardown=_TEARDOWN,
        owned_objects=owned_objects(spec, plugin_job_of(manifest, spec)),
    )


def _completion(spec: JobSpec) -> Completion:
    """minSuccess at once; once all have ended, the tasks' minima, then minSuccess, then the job's minimum."""
    rules: list[CompletionRule] = []
    if spec.min_success is not None:
        enough = CountCondition(Tally.OK, ALL, at_least=spec.min_success)
        rules.append(CompletionRule((enough,), completion_codes.COMPLETED_BY_COUNT, finish=Finish.AT_ONCE))
    if spec.min_available >= spec.minima:
        for task in spec.tasks:
            if task.minimum:
                rules += _failures(CountCondition(Tally.OK, task.name, below=task.minimum))
    if spec.min_success is None:
        enough = CountCondition(Tally.OK, ALL, at_least=Bound.MIN)
        rules.append(CompletionRule((_ALL_DONE, enough), completion_codes.COMPLETED, finish=Finish.AT_ONCE))
    rules += _failures()
    return Completion(
        rules=tuple(rules),
        order=(DecisionSource.COMMAND, DecisionSource.REACTIONS, DecisionSource.COMPLETION),
        needs_ready=True,
    )


def _failures(*because: CountCondition) -> list[CompletionRule]:
    """The end of all without enough successes; reported with the pod that failed last, where one did."""
    any_failed = CountCondition(Tally.BAD, ALL, at_least=1)
    text = "{who} was the last to fail; failed pods: {count}"
    return [
        CompletionRule(
            (any_failed, _ALL_DONE, *because),
            completion_codes.FAILED,
            finish=Finish.AT_ONCE,
            names_trigger=True,
            takes_code=True,
            trigger_text=text,
        ),
        CompletionRule((_ALL_DONE, *because), completion_codes.FAILED, finish=Finish.AT_ONCE),
    ]


def _gates(spec: JobSpec) -> tuple[GroupGate | ExternalGate, ...]:
    claims = [
        ExternalGate(
            key=claim_key(name),
            message=f"The job waits for the PersistentVolumeClaim {name}: create it",
            reason="PVCError",
        )
        for name in claims_of_others(spec)
    ]
    group = GroupGate(
        group_plans(spec), opens_when=Opens.ADMITTED, follows=True, lifetime=Lifetime.RUN, reason="PodGroupPending"
    )
    return (*claims, group)
