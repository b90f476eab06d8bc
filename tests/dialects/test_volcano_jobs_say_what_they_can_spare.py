"""Which Volcano Jobs are elastic: what their groups say about it, what they keep, and to whom they say it."""

from __future__ import annotations

from typing import Any

import pytest

from kit.capabilities import capability
from kit.volcano_jobs import task, vcjob
from shoal.dialects.capabilities import OwnedObjects
from shoal.dialects.dialect import Dialect
from shoal.dialects.gang_backends import NAMES, backend
from shoal.dialects.gang_backends.delegate import with_backend
from shoal.dialects.volcano import DIALECT
from shoal.engine import Apply, BuildContext, GroupRef, ObservedGroup
from shoal.engine.policies import GroupGate, GroupPlan, ReclaimLimits
from shoal.kube.objects import Obj, annotations_of
from shoal.scheduler.api.pod_groups import ELASTIC, RECLAIM, RECLAIM_REASON

CUT = {"totalPartitions": 2, "partitionSize": 2, "minPartitions": 1}


def stored(*tasks: Obj, **spec: Any) -> Obj:
    made = DIALECT.default(vcjob("a", *tasks, **spec))
    made["metadata"] |= {"uid": "u", "namespace": "default"}
    return made


def plans(manifest: Obj, dialect: Dialect = DIALECT) -> list[GroupPlan]:
    job = dialect.to_job(manifest, dialect.settings(None))
    assert job is not None
    return [plan for gate in job.policies.gates if isinstance(gate, GroupGate) for plan in gate.groups]


def group(manifest: Obj, dialect: Dialect = DIALECT, *, is_new: bool = True) -> Obj:
    (plan,) = plans(manifest, dialect)
    return capability(dialect, OwnedObjects).build_object(
        manifest, Apply(GroupRef(""), BuildContext(), plan.digest), is_new=is_new
    )


@pytest.mark.parametrize(
    ("manifest", "reclaim_limits"),
    [
        pytest.param(stored(task(replicas=4)), [None], id="all-are-needed"),
        pytest.param(
            stored(task(replicas=4), minAvailable=2), [ReclaimLimits(2)], id="the-minima-of-tasks-are-not-meant"
        ),
        pytest.param(
            stored(task(replicas=4, least=2)), [ReclaimLimits(2, {"worker": 2})], id="a-task-can-do-with-fewer"
        ),
        pytest.param(
            stored(task("ps", 2), task("worker", 4, least=1), minAvailable=4),
            [ReclaimLimits(4, {"ps": 2, "worker": 1})],
            id="one-task-of-two",
        ),
        pytest.param(
            stored(task("ps", 2), task("worker", 4, least=1, after=["ps"]), minAvailable=3),
            [None, ReclaimLimits(1, {"worker": 1})],
            id="each-stage-for-itself",
        ),
        pytest.param(stored(task(replicas=4, partitionPolicy=CUT)), [None], id="of-partitions-nobody"),
    ],
)
def test_a_job_gives_back_what_is_beyond_its_minima(manifest: Obj, reclaim_limits: list[ReclaimLimits | None]) -> None:
    assert [plan.reclaim_limits for plan in plans(manifest)] == reclaim_limits


def test_a_group_follows_when_its_job_becomes_elastic_or_ceases_to_be() -> None:
    """Its spec may stay the same all the while."""
    firm, loose = stored(task(replicas=2, least=2)), stored(task(replicas=4, least=2))
    assert group(firm)["spec"] == group(loose)["spec"]
    assert plans(firm)[0].digest != plans(loose)[0].digest
    marks = [annotations_of(group(job, is_new=is_new)) for job in (firm, loose) for is_new in (True, False)]
    assert [notes.get(ELASTIC, "unsaid") for notes in marks] == ["unsaid", None, "true", "true"]


@pytest.mark.parametrize("name", [name for name in NAMES if name != "none"])
def test_only_who_asks_is_told_and_answered(name: str) -> None:
    """Whom another scheduler evicts, and when, is its own affair."""
    dialect, manifest = with_backend(DIALECT, backend(name)), stored(task(replicas=4, least=2))
    told = (annotations_of(group(manifest, dialect)).get(ELASTIC), plans(manifest, dialect)[0].reclaim_limits)
    assert told == (("true", ReclaimLimits(2, {"worker": 2})) if name == "shoal" else (None, None))


@pytest.mark.parametrize(
    ("notes", "asked", "reclaim_reason"),
    [
        ({}, (), ""),
        ({RECLAIM: "a-worker-3=u3,a-worker-2=u2", RECLAIM_REASON: "for b"}, ("u3", "u2"), "for b"),
        ({RECLAIM: "what=, ever,=u1 , "}, ("u1",), ""),
    ],
)
def test_what_a_scheduler_asks_for_is_read_from_the_group(
    notes: dict[str, str], asked: tuple[str, ...], reclaim_reason: str
):
    manifest = stored(task(replicas=4, least=2))
    made = group(manifest)
    made["metadata"] |= {"uid": "g", "annotations": {**annotations_of(made), **notes}}
    digest = plans(manifest)[0].digest
    seen = capability(DIALECT, OwnedObjects).observe_child(made, manifest)
    assert seen == (GroupRef(""), ObservedGroup("g", "", digest, asked=asked, reclaim_reason=reclaim_reason))
