"""The invariants of the engine as code: what must hold after every step, for every dialect.

`check` compares one step with the job state before it, with what was observed, and with a History that the caller keeps
over all steps of one job, and returns a message per violated invariant. Used by tests and simulated clusters; a pass
itself never pays for it. Invariants over several passes (quiet at rest, crash equivalence) are tests; `leftovers` is
what such a test checks for a job at rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime

import msgspec

from shoal.engine.gates import GroupGate
from shoal.engine.membership import members
from shoal.engine.model import Job
from shoal.engine.observed import Created, GroupRef, JobRef, Observed, Refused, RunOwnerRef
from shoal.engine.pod_outcomes import RetryTiming
from shoal.engine.reclaim import RECLAIMED, is_up
from shoal.engine.retry import BudgetScope, BudgetUnit, SpentOn, WhenEmpty
from shoal.engine.run_lifecycle import must_delete, pods_to_keep
from shoal.engine.scaling import VictimOrder, target_sizes
from shoal.engine.state import JobState, TaskState
from shoal.engine.types import Intent, KeepPods, Memory, Outcome, PodNames, Stage, TaskRef
from shoal.engine.unindexed_pods import CompletionsSize
from shoal.engine.writes import Apply, Create, Delete, Mark, RemoveFinalizer, Step

Identity = tuple[int, str, int, str, int]  # run, role, index, instance, attempt


class StepHistory:
    """What a caller keeps between the steps of one job."""

    __slots__ = ("charged", "outcomes", "sent", "verdicts")

    def __init__(self) -> None:
        self.outcomes: dict[Identity, Outcome] = {}
        self.verdicts: dict[str, int] = {}  # by uid of the decided pod
        self.charged: set[str] = set()  # causes that cost something already
        self.sent: set[TaskRef] = set()  # creates without an observed response

    def copy(self) -> StepHistory:
        """For a step that may be discarded."""
        made = StepHistory()
        made.outcomes, made.verdicts, made.sent = dict(self.outcomes), dict(self.verdicts), set(self.sent)
        made.charged = set(self.charged)
        return made

    def restarted(self) -> None:
        """The operator stopped: results of writes are lost, and the next pass observes everything."""
        self.sent.clear()


class CheckedStep(msgspec.Struct):
    """One step with everything an invariant may refer to."""

    job: Job
    before: JobState
    step: Step
    observed: Observed
    history: StepHistory
    now: datetime

    @property
    def after(self) -> JobState:
        return self.step.state


def check(
    job: Job, before: JobState, step: Step, observed: Observed, history: StepHistory, *, now: datetime
) -> list[str]:
    """A message for each invariant this step violates."""
    case = CheckedStep(job, before, step, observed, history, now)
    return [f"{invariant.__name__}: {text}" for invariant in INVARIANTS for text in invariant(case)]


def leftovers(job: Job, state: JobState, observed: Observed) -> list[str]:
    """What an ended job at rest should not have left behind (I14)."""
    left = [f"pod {pod.name}" for pod in observed.pods if pod.owned and must_delete(job, state, pod)]
    if observed.run_owner is not None and observed.run_owner.owned:
        left.append("the run owner")
    return left


def one_pod_per_task(case: CheckedStep) -> Iterator[str]:
    """I1"""
    seen: set[tuple[str, int]] = set()
    by_name = case.job.policies.pod_policy.names is PodNames.INDEX
    for pod in case.observed.pods:
        if not pod.owned or pod.index is None or (not by_name and (pod.is_finished or pod.leaving)):
            continue
        place = (pod.role, pod.index)
        if place in seen:
            yield f"two pods of {pod.role}-{pod.index}"
        seen.add(place)


def no_create_when_gate_closed(case: CheckedStep) -> Iterator[str]:
    """I2 and I3"""
    state, job = case.after, case.job
    gate_statuses = {gate_status.role: gate_status.open for gate_status in case.step.gate_statuses}
    for ref, write in _creates(case.step):
        task = state.task(ref)
        if not state.run.is_open or state.is_ended or job.deleting or job.stop or job.policies.hold.requested:
            yield f"{ref} is created although the job or its run is closed"
        if not gate_statuses.get(ref.role):
            yield f"{ref} is created although its gate is closed"
        if task is None or task.is_done or task.dropped:
            yield f"{ref} is created and not wanted"
        elif task.attempt.number != write.attempt or write.build_context.run != state.run.number:
            yield f"{ref} is created with another stamp than the job state has"


def name_free(case: CheckedStep) -> Iterator[str]:
    """I4"""
    if case.job.policies.pod_policy.names is not PodNames.INDEX:
        return
    held = {(pod.role, pod.index) for pod in case.observed.pods}
    answered = {result.target for result in case.observed.write_results if isinstance(result, Created | Refused)}
    case.history.sent = {ref for ref in case.history.sent if ref not in answered and (ref.role, ref.index) not in held}
    for ref, _ in _creates(case.step):
        if (ref.role, ref.index) in held:
            yield f"{ref} is created while its name is in use"
        if ref in case.history.sent:
            yield f"{ref} is created a second time before the result of the first one was observed"
        case.history.sent.add(ref)


def judged_once(case: CheckedStep) -> Iterator[str]:
    """I5: a pod gets an outcome in its task's record, or is settled by a retry or a count, in one step only."""
    settled, before = case.after.settled, case.before.settled
    decided = [uid for uid, why in settled.items() if uid not in before and why.reason in ("retry", "counted")]
    for role, task in _tasks(case.after):
        if task.uid is None or task.outcome is None or task.uid in settled:
            continue
        old = case.before.task(TaskRef(role, task.index))
        if old is None or old.uid != task.uid or old.outcome is None:
            decided.append(task.uid)
    for uid in decided:
        case.history.verdicts[uid] = case.history.verdicts.get(uid, 0) + 1
        if case.history.verdicts[uid] > 1:
            yield f"the end of pod {uid} was evaluated twice"


def charged_once(case: CheckedStep) -> Iterator[str]:
    """I5: every counter rises by exactly what this step charged, and nothing is ever charged twice."""
    charges = case.step.charges
    for cause in filter(None, (charge.cause for charge in charges)):
        if cause in case.history.charged:
            yield f"{cause!r} was charged twice"
        case.history.charged.add(cause)
    scopes = Counter(scope for charge in charges for scope in charge.scopes)
    for scope in {*scopes, *case.after.charges, *case.before.charges}:
        raised = case.after.charges.get(scope, 0) - case.before.charges.get(scope, 0)
        if raised != scopes[scope]:
            yield f"{scope or 'the job'} has {raised} charges more, and {scopes[scope]} were taken"
    if case.after.run.number != case.before.run.number:
        return  # the tasks of a new run begin at nothing
    tasks = Counter(charge.task for charge in charges if charge.task is not None)
    for role, task in _tasks(case.after):
        ref = TaskRef(role, task.index)
        old = case.before.task(ref)
        raised = task.charged - (old.charged if old is not None and old.instance == task.instance else 0)
        if raised != tasks[ref]:
            yield f"{ref} has {raised} charges more, and {tasks[ref]} were taken"


def run_is_monotone(case: CheckedStep) -> Iterator[str]:
    """I6"""
    before, after = case.before, case.after
    if after.run.number < before.run.number:
        yield "the run number fell"
    if any(after.charges.get(scope, 0) < count for scope, count in before.charges.items()):
        yield "a charge was taken back"
    if after.round.number < before.round.number:
        yield "the round fell"
    if after.run.number == before.run.number and before.run.intent is not None:
        lowered = before.run.intent is Intent.HOLD and after.run.intent is Intent.RESTART
        if after.run.intent is None or (after.run.intent < before.run.intent and not lowered):
            yield "the intent fell"
        is_same = after.run.intent is before.run.intent  # an outcome belongs to the reason for which a run is closed
        if is_same and before.run.outcome is not None and after.run.outcome != before.run.outcome:
            yield "the outcome of the run changed"


def records_stay(case: CheckedStep) -> Iterator[str]:
    """I6, for job states that record every task."""
    if case.job.policies.pod_policy.memory is not Memory.RECORD:
        return
    for role, task in _tasks(case.after):
        if task.charged > task.attempt.number:
            yield f"{role}-{task.index} has more charges than retries"
        if task.outcome is None:
            continue
        identity = (case.after.run.number, role, task.index, task.instance, task.attempt.number)
        known = case.history.outcomes.setdefault(identity, task.outcome)
        if known != task.outcome:
            yield f"the outcome of {role}-{task.index} changed"


def final_states_stay(case: CheckedStep) -> Iterator[str]:
    """I7"""
    if not case.before.is_ended:
        return
    pruned = msgspec.structs.replace(
        case.after, settled=case.before.settled, handled=case.before.handled, roles=case.before.roles
    )
    if pruned != case.before:
        yield "an ended job changed"
    if any(isinstance(write, Create) for write in case.step.writes):
        yield "an ended job created something"


def justified_delete(case: CheckedStep) -> Iterator[str]:
    """I8"""
    state, pods = case.after, {pod.uid: pod for pod in case.observed.pods}
    for write in case.step.writes:
        if not isinstance(write, Delete) or not isinstance(write.target, TaskRef):
            continue
        if not write.uid and not write.confirm:
            yield f"{write.target} is deleted by name alone"
        pod = pods.get(write.uid)
        if pod is None:
            continue
        if not pod.owned:
            yield f"foreign pod {pod.name} is deleted"
        task = state.task(TaskRef(pod.role, pod.index)) if pod.index is not None else None
        is_current = task is not None and task.uid == pod.uid and pod.uid not in state.settled and state.run.is_open
        if is_current and task is not None and not (pod.leaving or task.dropped or task.outcome is not None):
            yield f"{pod.name} is deleted for no reason"


def reclaims_only_surplus(case: CheckedStep) -> Iterator[str]:
    """Members are given back only on request, above what their group needs, and at no cost."""
    before, after = case.before.settled, case.after.settled
    given = {uid for uid, why in after.items() if why.reason == RECLAIMED and uid not in before}
    if not given:
        return
    asked = {uid for group in case.observed.groups.values() for uid in group.asked}
    if given - asked:
        yield f"{sorted(given - asked)} were given back without a request"
    if "GaveBack" not in {each.reason for each in case.step.notifications}:
        yield "members were given back without an Event"
    gates = (gate for gate in case.job.policies.gates if isinstance(gate, GroupGate))
    for plan in (plan for gate in gates for plan in gate.groups if plan.reclaim_limits is not None):
        assert plan.reclaim_limits is not None
        up = Counter(pod.role for pod in case.observed.pods if pod.uid not in given and pod.owned and is_up(pod))
        up.update(role for role, task in _tasks(case.after) if task.is_done and task.outcome and task.outcome.is_ok)
        mine = {role.name for role in case.job.roles if not plan.roles or role.name in plan.roles}
        took = {after[uid].role for uid in given} & mine
        if took and up.total() < (case.job.minimum or 0):
            yield f"fewer than {case.job.minimum} members are left of a job that gave some back"
        if took and sum(up[role] for role in mine) < plan.reclaim_limits.minimum:
            yield f"fewer than {plan.reclaim_limits.minimum} members are left of a group that gave some back"
        yield from (
            f"too few of {role} are left" for role in took if up[role] < plan.reclaim_limits.of_role.get(role, 0)
        )


def sizes_match_spec(case: CheckedStep) -> Iterator[str]:
    """I10"""
    state, policies = case.after, case.job.policies
    if not state.run.is_open or isinstance(policies.size, CompletionsSize):
        return
    sizes = target_sizes(case.job, state)
    for role in state.roles:
        size = sizes.get(role.name, 0)
        undropped = [task.index for task in role.tasks if not task.dropped]
        if len(undropped) > size:
            yield f"{role.name} has {len(undropped)} tasks, {size} wanted"
        if policies.shrink.victims is VictimOrder.HIGHEST and any(index >= size for index in undropped):
            yield f"{role.name} has a task beyond its size"
        if len(role.tasks) < size:
            yield f"{role.name} has {len(role.tasks)} entries, {size} wanted"


def within_budget(case: CheckedStep) -> Iterator[str]:
    """I11"""
    if case.after.charged == case.before.charged:
        return
    for budget in case.job.policies.budgets:
        if budget.scope is not BudgetScope.JOB or budget.permits is None or budget.unit is BudgetUnit.CONTAINERS:
            continue
        spare = budget.when_empty is WhenEmpty.CHARGE_AND_FAIL or budget.spent is SpentOn.ON_FAILURE
        if not spare and case.after.charged > budget.permits:
            yield f"{case.after.charged} charges, {budget.permits} permitted"
        if spare and case.before.charged > budget.permits:
            yield "a charge after the budget was overdrawn"


def no_pods_while_held(case: CheckedStep) -> Iterator[str]:
    """I13"""
    state = case.after
    if state.is_held and state.run.stage is Stage.OVER and pods_to_keep(case.job, state) is KeepPods.NONE:
        yield from (f"{pod.name} is there although the job is held" for pod in case.observed.pods if pod.owned)


def settled_bounded(case: CheckedStep) -> Iterator[str]:
    """I15"""
    present = {pod.uid for pod in case.observed.pods}
    for uid in case.after.settled:
        if ":" not in uid and uid not in present:
            yield f"{uid} is settled and not there"


def wakeup_set(case: CheckedStep) -> Iterator[str]:
    """I19"""
    if case.step.wake_at is not None and case.step.wake_at <= case.now:
        yield "the next pass is in the past"
    if any(due.at <= case.now for due in case.after.due.values()):
        yield "a delayed reaction is overdue"


def changes_have_messages(case: CheckedStep) -> Iterator[str]:
    """I20"""
    before, after = case.before, case.after
    subjects = {each.subject for each in case.step.notifications}
    job_changed = (before.run.intent, before.run.outcome) != (after.run.intent, after.run.outcome)
    if job_changed and "" not in subjects:
        yield "the run's intent or outcome changed without an Event"
    if before.charges != after.charges and not subjects:
        yield "a charge was taken without an Event"
    for role in after.roles:
        old = before.role(role.name)
        dropped = {task.index for task in role.tasks if task.dropped}
        if old is not None and dropped - {task.index for task in old.tasks if task.dropped} and not subjects:
            yield f"tasks of {role.name} were dropped without an Event"


def members_published(case: CheckedStep) -> Iterator[str]:
    """I12 and I22"""
    if not case.job.policies.rendezvous.published:
        return
    after, before = case.after.round, case.before.round
    expected = members(case.after) if case.after.run.is_open else ()
    if after.members != expected:
        yield "the published members are not the living tasks"
    changed = after.members != before.members or after.asked != before.asked
    if (after.number > before.number) != changed:
        yield "the round moved without a change, or a change did not move it"


def ends_answered_at_once(case: CheckedStep) -> Iterator[str]:
    """Where a retry is decided as soon as an end is known, no task is stored between the two."""
    if case.job.policies.pod_end.retry_at is RetryTiming.VERDICT:
        for role, task in _tasks(case.after):
            if task.outcome is not None and not task.is_done:
                yield f"{role}-{task.index} has an outcome, and is neither retried nor done"


def known_writes(case: CheckedStep) -> Iterator[str]:
    """Deletes of things that are there only; one write per target and kind."""
    groups = {group.uid for group in case.observed.groups.values()}
    for write in case.step.writes:
        if isinstance(write, Delete) and isinstance(write.target, GroupRef) and write.uid not in groups:
            yield f"group {write.uid} is deleted and not there"
        if isinstance(write, Delete) and isinstance(write.target, JobRef) and not case.after.is_ended:
            yield "a job that has not ended is deleted"
    targets = [
        (type(write), write.target)
        for write in case.step.writes
        if isinstance(write, Create | Apply | Mark | RemoveFinalizer)
    ]
    if case.job.policies.pod_policy.names is PodNames.INDEX and len(set(targets)) < len(targets):
        yield "the same thing is written twice"
    run_owner_creates = [
        write for write in case.step.writes if isinstance(write, Create) and isinstance(write.target, RunOwnerRef)
    ]
    if run_owner_creates and case.observed.run_owner is not None:
        yield "a run owner is created while its name is in use"


def _creates(step: Step) -> Iterator[tuple[TaskRef, Create]]:
    for write in step.writes:
        if isinstance(write, Create) and isinstance(write.target, TaskRef):
            yield write.target, write


def _tasks(state: JobState) -> Iterator[tuple[str, TaskState]]:
    for role in state.roles:
        for task in role.tasks:
            yield role.name, task


INVARIANTS: tuple[Callable[[CheckedStep], Iterator[str]], ...] = (
    one_pod_per_task,
    no_create_when_gate_closed,
    name_free,
    judged_once,
    charged_once,
    run_is_monotone,
    records_stay,
    final_states_stay,
    justified_delete,
    reclaims_only_surplus,
    sizes_match_spec,
    within_budget,
    no_pods_while_held,
    settled_bounded,
    wakeup_set,
    changes_have_messages,
    members_published,
    ends_answered_at_once,
    known_writes,
)
