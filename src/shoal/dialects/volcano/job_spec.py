"""A Volcano Job in the engine's words: its tasks as roles, and the policies of this language as data.

The story of a Job is this one page: a PodGroup per run is let in before any pod is made; what happens to pods meets
the policies people wrote, the task's before the job's; restarts of any reach cost one of maxRetry; all pods having
ended, minima decide; Commands hold, release and end it.
"""

from __future__ import annotations

from typing import NamedTuple

from shoal.dialects.dialect import ManifestInvalid
from shoal.dialects.memo import remembered
from shoal.dialects.volcano import completion_codes, lifecycle_policies, names
from shoal.dialects.volcano.children import claim_key, claims_of_others, companions, group_plans, scene_of
from shoal.dialects.volcano.settings import Settings
from shoal.dialects.volcano.spec import Spec, Task, spec_of
from shoal.dialects.volcano.validation import admit
from shoal.engine import Job, Policies, Role
from shoal.engine.policies import (
    ALL,
    After,
    AnswerAt,
    Bound,
    Budget,
    Claim,
    Classify,
    Clock,
    Completion,
    Deleted,
    Drained,
    DropMark,
    Embodiment,
    Ending,
    Finish,
    GroupGate,
    Hold,
    Judged,
    Keep,
    Life,
    Memory,
    Names,
    Opens,
    Propagation,
    Ready,
    Release,
    Retry,
    Rule,
    Scope,
    Shrink,
    Source,
    Tally,
    Teardown,
    Unit,
    Victims,
    When,
    WhenEmpty,
    WishGate,
)
from shoal.engine.types import Action, Nature
from shoal.kube.objects import Obj, annotations_of, is_terminating, name_of, namespace_of, uid_of

CREATION_SECONDS = 300  # a pod that was made and shows nowhere for so long is lost

_EMBODIMENT = Embodiment(names=Names.INDEX, memory=Memory.ROSTER)
_ENDING = Ending(
    judged=Judged.FIRST,
    by_others=Deleted.LOST,
    at_leaving=True,
    success_beats_leaving=True,
    disruption_is_loss=True,
    leaving=completion_codes.POD_LEAVING,
    gone=completion_codes.POD_GONE,
    unseen=completion_codes.POD_UNSEEN,
    ok=completion_codes.POD_SUCCEEDED,
    answer_at=AnswerAt.VERDICT,
    release=Release.GONE,
)
_CLASSIFY = Classify(rules=(Rule(Nature.UNKNOWN, phrase="PodFailed"),), no_code=completion_codes.NO_CODE)
_RETRY = Retry.word("ddddf")  # a failed pod just counts; a lost one is made again
_TEARDOWN = Teardown(at_restart=Keep.NONE, at_end=Keep.FINISHED, restart_drained=Drained.ENOUGH)
_RESTARTS_OF = frozenset({"Running", "Pending"})  # phases in which a pod's restarts count
_EVERYBODY_ENDED = Claim(Tally.DONE, ALL, Bound.SIZE)


def read(manifest: Obj, settings: Settings) -> Job:
    """The job a manifest asks for. Raises ManifestInvalid where `admit` would have refused it."""
    understood = _understood(manifest, settings)
    return Job(
        uid=uid_of(manifest),
        name=name_of(manifest),
        namespace=namespace_of(manifest),
        roles=understood.roles,
        policies=understood.policies,
        minimum=understood.minimum,
        deleting=is_terminating(manifest),
    )


class _Understood(NamedTuple):
    """All that follows from a spec and the wishes beside it."""

    roles: tuple[Role, ...]
    policies: Policies
    minimum: int


def _understood(manifest: Obj, settings: Settings) -> _Understood:
    wishes = {key: annotations_of(manifest).get(key) for key in (names.SHRINK, names.VICTIMS, names.RESUME_COUNTS)}

    def read_afresh() -> _Understood:
        mistakes = admit(manifest)
        if mistakes:
            raise ManifestInvalid(mistakes)
        spec = spec_of(manifest)
        victims = _victims(wishes[names.VICTIMS] or "")
        roles = tuple(_role(task, victims.get(task.name, ())) for task in spec.tasks)
        return _Understood(roles, _policies(spec, manifest, wishes, settings), spec.min_available)

    written = (name_of(manifest), namespace_of(manifest), wishes, manifest.get("spec"))
    known: _Understood = remembered(settings.understood, written, read_afresh)
    return known


def _victims(text: str) -> dict[str, tuple[int, ...]]:
    """`worker=3,1 ps=0`; what cannot be read is nobody."""
    found: dict[str, tuple[int, ...]] = {}
    for word in text.split():
        task, _, listed = word.partition("=")
        numbers = [number for number in listed.split(",") if number.isascii() and number.isdigit()]
        found[task] = tuple(int(number) for number in numbers)
    return found


def _role(task: Task, victims: tuple[int, ...]) -> Role:
    permits = max(task.max_retry - 1, 0) if task.max_retry >= 0 else None
    after = task.depends_on
    return Role(
        task.name,
        size=task.replicas,
        minimum=task.minimum,
        retry=_RETRY,
        budget=Budget(Unit.CONTAINERS, Scope.ROLE, permits, when_empty=WhenEmpty.EVENT, phases=_RESTARTS_OF),
        reactions=lifecycle_policies.reactions(task.policies),
        after=After(tuple(after.name), any=after.iteration == "any", ready=True) if after and after.name else None,
        partition_size=task.partition_policy.partition_size if task.partition_policy else 0,
        victims=victims,
    )


def _policies(spec: Spec, manifest: Obj, wishes: dict[str, str | None], settings: Settings) -> Policies:
    counts = wishes[names.RESUME_COUNTS] == "true" or settings.resume_counts
    return Policies(
        embodiment=_EMBODIMENT,
        ending=_ENDING,
        classify=_CLASSIFY,
        budgets=(
            Budget(
                Unit.ACTIONS,
                Scope.JOB,
                max(spec.max_retry - 1, 0),
                when_empty=WhenEmpty.CHARGE_AND_FAIL,
                outcome=completion_codes.OUT_OF_RETRIES,
            ),
        ),
        reactions=lifecycle_policies.reactions(spec.policies),
        commands=lifecycle_policies.commands(),
        actions=lifecycle_policies.ACTION_NAMES,
        completion=_completion(spec),
        ready=_ready(spec),
        shrink=_shrink(wishes),
        gates=_gates(spec),
        # A gang never starts with fewer than its minimum: whoever failed would keep a resumed job waiting for ever.
        hold=Hold(
            from_spec=False,
            keeps=Keep.FINISHED,
            resume_charged=counts,
            renews_failed=True,
            release_counts=True,
            ignores=frozenset({Action.COMPLETE}),
        ),
        clock=Clock(
            ttl_seconds=spec.ttl_seconds_after_finished,
            propagation=Propagation.FOREGROUND,
            creation_seconds=CREATION_SECONDS,
        ),
        teardown=_TEARDOWN,
        companions=companions(spec, scene_of(manifest, spec)),
    )


def _ready(spec: Spec) -> Ready:
    """Running with enough pods that run or ended; Pending again when more are missing than may be."""
    too_many_missing = Claim(Tally.PENDING, ALL, at_least=spec.total - spec.min_available + 1)
    return Ready((Claim(Tally.STARTED, ALL, Bound.MIN),), sticky=False, falls_back=(too_many_missing,))


def _completion(spec: Spec) -> Completion:
    """minSuccess at once; once all have ended, the tasks' minima, then minSuccess, then the job's minimum."""
    verdicts: list[When] = []
    if spec.min_success is not None:
        enough = Claim(Tally.OK, ALL, at_least=spec.min_success)
        verdicts.append(When((enough,), completion_codes.COMPLETED_BY_COUNT, finish=Finish.AT_ONCE))
    if spec.min_available >= spec.minima:
        for task in spec.tasks:
            if task.minimum:
                verdicts += _failures(Claim(Tally.OK, task.name, below=task.minimum))
    if spec.min_success is None:
        enough = Claim(Tally.OK, ALL, at_least=Bound.MIN)
        verdicts.append(When((_EVERYBODY_ENDED, enough), completion_codes.COMPLETED, finish=Finish.AT_ONCE))
    verdicts += _failures()
    return Completion(
        verdicts=tuple(verdicts), order=(Source.COMMAND, Source.REACTIONS, Source.COMPLETION), needs_ready=True
    )


def _failures(*because: Claim) -> list[When]:
    """The end of all without enough successes; told with the pod that failed last, where one did."""
    somebody = Claim(Tally.BAD, ALL, at_least=1)
    text = "{who} was the last to fail; failed pods: {count}"
    return [
        When(
            (somebody, _EVERYBODY_ENDED, *because),
            completion_codes.FAILED,
            finish=Finish.AT_ONCE,
            names_trigger=True,
            takes_code=True,
            trigger_text=text,
        ),
        When((_EVERYBODY_ENDED, *because), completion_codes.FAILED, finish=Finish.AT_ONCE),
    ]


def _shrink(wishes: dict[str, str | None]) -> Shrink:
    victims = Victims.PENDING_FIRST if wishes[names.SHRINK] == "pending-first" else Victims.HIGHEST
    if wishes[names.VICTIMS]:
        victims = Victims.NAMED
    return Shrink(victims=victims, mark=DropMark.POD, outcome=completion_codes.SCALED_AWAY)


def _gates(spec: Spec) -> tuple[GroupGate | WishGate, ...]:
    claims = [
        WishGate(
            key=claim_key(name),
            sentence=f"The job waits for the PersistentVolumeClaim {name}: somebody has to create it",
            reason="PVCError",
        )
        for name in claims_of_others(spec)
    ]
    group = GroupGate(group_plans(spec), opens=Opens.ADMITTED, follows=True, life=Life.RUN, reason="PodGroupPending")
    return (*claims, group)
