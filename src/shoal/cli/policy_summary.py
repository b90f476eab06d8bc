"""What may become of a running job, in prose: what its policies react to, and what its completion rules wait for.

Rules are evaluated in their order, and the first that holds decides. Those that wait for the end of all tasks are
described together, because each of them means: if none before it held.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from shoal.engine import Action, EventType, Job, JobState
from shoal.engine.policies import (
    ALL,
    Bound,
    BudgetScope,
    BudgetUnit,
    CompletionRule,
    CountCondition,
    EarliestOf,
    Reaction,
    Tally,
)

_TALLY_PHRASES = {Tally.OK: "succeeded", Tally.BAD: "failed", Tally.DONE: "ended"}
_EVENT_PHRASES = {
    EventType.TASK_PENDING: "a task{of} stays pending",
    EventType.TASK_FAILED: "a task{of} fails",
    EventType.TASK_LOST: "a task{of} is evicted or its pod is deleted",
    EventType.ROLE_SUCCEEDED: "all tasks {of_it} have succeeded",
    EventType.ROLE_EXHAUSTED: "containers {of_it} are restarted too often",
    EventType.GROUP_UNKNOWN: "some pods of the gang are running and the others cannot be placed",
    EventType.STORE_LOST: "the rendezvous store of the group is lost",
    EventType.ROUND_CLOSED: "the membership round is closed",
    EventType.GROUP_DONE: "the group has finished",
    EventType.ANY: "anything happens to a task{of}",
}
_ACTION_PHRASES = {
    Action.RESTART_TASK: "it is restarted",
    Action.RESTART_PARTITION: "its partition is restarted",
    Action.RESTART_ROLE: "all tasks of its role are restarted",
    Action.RESTART_RUN: "the whole job is restarted",
    Action.HOLD: "the job is held until it is resumed",
    Action.COMPLETE: "the job succeeds",
    Action.FAIL: "the job fails",
    Action.TERMINATE: "the job is stopped",
}
_CLAIM_OF_ALL = CountCondition(Tally.DONE, ALL, Bound.SIZE)


# --- policies ------------------------------------------------------------------------------------------------------


def describe_reactions(job: Job, state: JobState) -> Iterator[str]:
    """Yield the reaction to each event: the policies of roles first, as they are evaluated first."""
    sentences = [f"{sentence}." for role in job.roles for sentence in _reactions(role.reactions, role.name)]
    sentences += [f"{sentence}." for sentence in _reactions(job.policies.reactions, "")]
    yield from sentences
    for budget in job.policies.budgets if sentences else ():
        if budget.unit is BudgetUnit.ACTIONS and budget.scope is BudgetScope.JOB and budget.permits is not None:
            left = max(budget.permits - state.charged, 0)
            yield f"{left} restart{'s' * (left != 1)} left; the next failure after that fails the job."


def _reactions(reactions: Iterable[Reaction], role: str) -> Iterator[str]:
    of, of_it = (f" of {role}", f"of {role}") if role else ("", "of a role")
    for reaction in reactions:
        if reaction.action not in _ACTION_PHRASES:
            continue
        events = [_EVENT_PHRASES[kind].format(of=of, of_it=of_it) for kind in _EVENT_PHRASES if kind in reaction.events]
        if reaction.code is not None:
            events.append(f"a task{of} fails with code {reaction.code}")
        later = f" {reaction.after_seconds} s later" if reaction.after_seconds else ""
        if events:
            yield f"If {' or '.join(events)}, {_ACTION_PHRASES[reaction.action]}{later}"


# --- completion ----------------------------------------------------------------------------------------------------


def describe_completion(job: Job) -> Iterator[str]:
    """The completion rules."""
    at_the_end: list[CompletionRule] = []
    sentences: list[str] = []
    for each in job.policies.completion.rules:
        for rule in each.rules if isinstance(each, EarliestOf) else (each,):
            if _CLAIM_OF_ALL in rule.conditions and (at_the_end or len(rule.conditions) > 1):
                at_the_end.append(rule)
            elif claims := _claims(rule.conditions, job):
                sentences.append(f"It {_verb(rule)} as soon as {' and '.join(claims)}.")
    yield from dict.fromkeys(sentences)
    if at_the_end:
        yield f"Once all tasks have ended, {'; '.join(describe_branches(at_the_end, job))}."


def describe_branches(rule_list: Sequence[CompletionRule], job: Job) -> Iterator[str]:
    """Consecutive rules of one verdict are one branch; a rule that another of them covers is omitted."""
    runs: list[tuple[str, list[CompletionRule]]] = []
    for rule in rule_list:
        if not runs or runs[-1][0] != _verb(rule):
            runs.append((_verb(rule), []))
        runs[-1][1].append(rule)
    for verb, members in runs:
        kept = [each for each in members if not any(set(other.conditions) < set(each.conditions) for other in members)]
        sentences = [" and ".join(_claims(each.conditions, job, but=_CLAIM_OF_ALL)) for each in kept]
        conditions = list(dict.fromkeys(filter(None, sentences)))
        if all(sentences):
            yield f"it {verb} if {' or '.join(conditions)}"
        else:
            yield f"otherwise it {verb}" if len(runs) > 1 else f"it {verb}"


def _verb(rule: CompletionRule) -> str:
    return "succeeds" if rule.outcome.is_ok else "fails"


def _claims(claims: Iterable[CountCondition], job: Job, but: CountCondition | None = None) -> list[str]:
    return [sentences for claim in claims if claim != but and (sentences := describe_condition(claim, job))]


def describe_condition(claim: CountCondition, job: Job) -> str:
    phrase = _TALLY_PHRASES.get(claim.tally)
    whose = "" if claim.of == ALL else f" of {claim.of}"
    if phrase is not None and isinstance(claim.below, int):
        return f"fewer than {claim.below} task{'s' * (claim.below != 1)}{whose} {_has(claim.below)} {phrase}"
    if phrase is None or claim.at_least is None:
        return ""
    if claim.at_least is Bound.SIZE:
        return f"all tasks{whose} have {phrase}"
    if claim.at_least is Bound.MIN and job.minimum is None:
        return f"the minimum of tasks{whose} have {phrase}"
    count = claim.at_least if isinstance(claim.at_least, int) else job.minimum or 0
    return f"{count} task{'s' * (count != 1)}{whose} {_has(count)} {phrase}"


def _has(count: int) -> str:
    return "has" if count == 1 else "have"
