"""Scaling a Job keeps what its minima mean, through sizes at which the numbers alone do not say it."""

from __future__ import annotations

import pytest

from kit.capabilities import capability
from kit.volcano_jobs import task, vcjob
from shoal.dialects.capabilities import Scaling
from shoal.dialects.volcano import DIALECT
from shoal.dialects.volcano.min_available import MEANING
from shoal.dialects.volcano.spec import default
from shoal.kube.objects import Obj, annotations_of
from shoal.kube.patching.json_patch import json_patch


def scaled(manifest: Obj, **sizes: int) -> Obj:
    made: Obj = json_patch(manifest, capability(DIALECT, Scaling).patch(manifest, sizes))
    assert DIALECT.validate(made, manifest) == []
    return made


def minima(manifest: Obj) -> tuple[int, ...]:
    """The job's, then the tasks'."""
    spec = manifest["spec"]
    return (spec["minAvailable"], *(each["minAvailable"] for each in spec["tasks"]))


# Sizes of worker one after the other, beside one ps, with the minima there: the job's, ps's, worker's.
Walk = list[tuple[int, tuple[int, ...]]]
WALKS: dict[str, tuple[Obj, Walk]] = {
    "everything": (vcjob("a", task("ps"), task(replicas=4)), [(1, (2, 1, 1)), (0, (1, 1, 0)), (6, (7, 1, 6))]),
    "all pods of the job, fewer of the task": (
        vcjob("a", task("ps"), task(replicas=4, least=2), minAvailable=5),
        [(2, (3, 1, 2)), (1, (2, 1, 1)), (5, (6, 1, 2))],
    ),
    "so many": (
        vcjob("a", task("ps"), task(replicas=4, least=2), minAvailable=4),
        [(6, (4, 1, 2)), (1, (2, 1, 1)), (0, (1, 1, 0)), (3, (4, 1, 2)), (8, (4, 1, 2))],
    ),
    "less than the tasks' minima": (
        vcjob("a", task("ps"), task(replicas=4), minAvailable=3),
        [(1, (2, 1, 1)), (2, (3, 1, 2)), (7, (3, 1, 7))],
    ),
}


@pytest.mark.parametrize("case", WALKS)
def test_minima_mean_the_same_at_every_size(case: str) -> None:
    manifest, walk = WALKS[case]
    job = default(manifest)
    before = minima(job)
    for size, expected in walk:
        job = scaled(job, worker=size)
        assert (size, minima(job)) == (size, expected)
    back = scaled(job, worker=4)
    assert (minima(back), annotations_of(back)) == (before, {})


def test_who_writes_a_minimum_since_is_taken_at_his_word() -> None:
    job = scaled(default(vcjob("a", task(replicas=4, least=3))), worker=1)
    assert MEANING in annotations_of(job)
    job["spec"]["minAvailable"] = job["spec"]["tasks"][0]["minAvailable"] = 0
    assert minima(scaled(job, worker=4)) == (0, 0)


def test_the_same_size_changes_nothing() -> None:
    job = default(vcjob("a", task("ps"), task(replicas=4, least=2)))
    assert capability(DIALECT, Scaling).patch(job, {"worker": 4, "ps": 1}) == []


@pytest.mark.parametrize("words", ["[]", "no JSON", '{"worker": 7}', '{"worker": {"at": [1, 1], "means": "none"}}'])
def test_words_of_somebody_else_are_not_believed(words: str) -> None:
    job = default(vcjob("a", task(replicas=1), annotations={MEANING: words}))
    assert minima(scaled(job, worker=3)) == (3, 3)
