"""What a Volcano Job means to the engine: every event and action, minima, stages, and who leaves first."""

from __future__ import annotations

from typing import Any

import pytest

from kit.capabilities import capability
from kit.volcano_jobs import policy, task, vcjob
from shoal.dialects.capabilities import ManifestWarnings, Scaling
from shoal.dialects.volcano import DIALECT
from shoal.engine import Action, EventType, Job
from shoal.engine.policies import After, BudgetUnit, GroupGate, VictimOrder
from shoal.kube.objects import Obj


def read(manifest: Obj) -> Job:
    stored = DIALECT.default(manifest)
    stored["metadata"] |= {"uid": "u", "namespace": "default"}
    job = DIALECT.to_job(stored, DIALECT.settings(None))
    assert job is not None
    return job


EVENTS = {
    "PodPending": EventType.TASK_PENDING,
    "PodFailed": EventType.TASK_FAILED,
    "PodEvicted": EventType.TASK_LOST,
    "TaskCompleted": EventType.ROLE_SUCCEEDED,
    "TaskFailed": EventType.ROLE_EXHAUSTED,
    "Unknown": EventType.GROUP_UNKNOWN,
    "*": EventType.ANY,
}
ACTIONS = {
    "AbortJob": Action.HOLD,
    "RestartJob": Action.RESTART_RUN,
    "RestartTask": Action.RESTART_ROLE,
    "RestartPod": Action.RESTART_TASK,
    "RestartPartition": Action.RESTART_PARTITION,
    "TerminateJob": Action.TERMINATE,
    "CompleteJob": Action.COMPLETE,
    "ResumeJob": Action.RELEASE,
}


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("event", EVENTS)
def test_every_event_may_have_every_action(event: str, action: str):
    job = read(vcjob("a", task(policies=[policy(event, action, "90s")]), policies=[policy(event, action)]))
    own, shared = job.roles[0].reactions[0], job.policies.reactions[0]
    assert (own.action, own.events, own.after_seconds) == (ACTIONS[action], {EVENTS[event]}, 90)
    assert (shared.action, shared.events, shared.after_seconds) == (ACTIONS[action], {EVENTS[event]}, 0)


@pytest.mark.parametrize(("written", "seconds"), [("10s", 10), ("1m30s", 90), ("500ms", 1), ("1h", 3600), ("1.5s", 2)])
def test_times_are_whole_seconds_and_never_shorter(written: str, seconds: int):
    job = read(vcjob("a", task(), policies=[policy("PodFailed", "AbortJob", written)]))
    assert job.policies.reactions[0].after_seconds == seconds


def test_an_exit_code_stands_for_itself():
    (reaction,) = read(vcjob("a", task(), policies=[policy(137, "AbortJob")])).policies.reactions
    assert (reaction.code, reaction.events) == (137, frozenset())


@pytest.mark.parametrize(("written", "permits"), [(3, 2), (1, 0), (0, 2), (10, 9)])
def test_max_retry_counts_runs(written: int, permits: int):
    (budget,) = read(vcjob("a", task(), maxRetry=written)).policies.budgets
    assert (budget.unit, budget.permits) == (BudgetUnit.ACTIONS, permits)


@pytest.mark.parametrize(("written", "permits"), [(3, 2), (-1, None), (1, 0)])
def test_a_task_has_a_limit_of_restarts_in_place(written: int, permits: int | None):
    budget = read(vcjob("a", task(maxRetry=written))).roles[0].budget
    assert budget is not None
    assert (budget.unit, budget.permits) == (BudgetUnit.CONTAINERS, permits)


def groups(job: Job) -> list[tuple[str, set[str]]]:
    (gate,) = (gate for gate in job.policies.gates if isinstance(gate, GroupGate))
    return [(plan.key, set(plan.roles)) for plan in gate.groups]


def test_each_stage_is_a_gang_of_its_own():
    job = read(vcjob("a", task("c", after=["a", "b"]), task("a"), task("b", after=["a"])))
    assert groups(job) == [("", {"a"}), ("1", {"b"}), ("2", {"c"})]
    assert job.roles[0].after == After(("a", "b"), any=False, ready=True)
    assert groups(read(vcjob("a", task("a"), task("b")))) == [("", set())]


@pytest.mark.parametrize(
    ("notes", "victims", "first"),
    [
        ({}, VictimOrder.HIGHEST, ()),
        ({"shoal.dev/shrink": "pending-first"}, VictimOrder.PENDING_FIRST, ()),
        ({"shoal.dev/victims": "worker=3,1 other=0"}, VictimOrder.NAMED, (3, 1)),
    ],
)
def test_who_leaves_first_may_be_wished(notes: dict[str, str], victims: VictimOrder, first: tuple[int, ...]):
    job = read(vcjob("a", task(replicas=4), annotations=notes))
    assert (job.policies.shrink.victims, job.roles[0].victims) == (victims, first)


def test_resuming_costs_a_retry_only_where_that_is_wished():
    notes = {"shoal.dev/resume-counts": "true"}
    assert not read(vcjob("a", task())).policies.hold.resume_charged
    assert read(vcjob("a", task(), annotations=notes)).policies.hold.resume_charged


@pytest.mark.parametrize(
    ("sizes", "patch"),
    [
        ({"worker": 4}, {"worker": (4, 4), "job": 5}),
        ({"worker": 0}, {"worker": (0, 0), "job": 1}),
        ({"ps": 3}, {"ps": (3, 3), "job": 5}),
    ],
)
def test_scaling_keeps_what_asked_for_all(sizes: dict[str, int], patch: dict[str, Any]):
    manifest = DIALECT.default(vcjob("a", task("ps", 1), task("worker", 2)))
    operations = {
        each["path"]: each["value"]
        for each in capability(DIALECT, Scaling).patch(manifest, sizes)
        if each["op"] == "add"
    }
    (name,) = sizes
    path = f"/spec/tasks/{('ps', 'worker').index(name)}"
    assert (operations[f"{path}/replicas"], operations[f"{path}/minAvailable"]) == patch[name]
    assert operations["/spec/minAvailable"] == patch["job"]


def test_scaling_a_task_that_is_not_there_names_those_that_are():
    with pytest.raises(LookupError, match="there is no task 'chief'; the tasks are: ps, worker"):
        capability(DIALECT, Scaling).patch(vcjob("a", task("ps"), task("worker")), {"chief": 1})


def test_what_is_probably_not_meant_is_told():
    silent = task("a", pod={"restartPolicy": "OnFailure"}, policies=[policy("PodFailed", "RestartJob")])
    pending = policy("PodPending", "AbortJob")
    told = capability(DIALECT, ManifestWarnings).warn(
        vcjob("a", silent, policies=[pending, policy("JobUpdated", "AbortJob")]), None
    )
    assert [sentence.partition(": ")[0] for sentence in told] == [
        "spec.tasks[0].template.spec.restartPolicy",
        "spec.policies[0].timeout",
        "spec.policies[1].event",
    ]
