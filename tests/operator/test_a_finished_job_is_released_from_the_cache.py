"""Of a job that ended little is kept, but not before its end is stored, reported and observed."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from shoal.engine import Created, JobState, Notification, Run, RunOwnerRef, Stage
from shoal.kube.messages import Message
from shoal.kube.objects import Key, Obj
from shoal.operator.job_cache import CreateBackoff, JobCache, JobCacheEntry, PendingEvents, StoredState

KEY = Key("default", "job")
ENDED = JobState(run=Run(stage=Stage.DONE))
DONE = Notification("", Message("Succeeded", {}))


def manifest(version: int = 5, uid: str = "uid") -> Obj:
    return {"metadata": {"namespace": "default", "name": "job", "uid": uid, "resourceVersion": str(version)}}


def cache_with(state: JobState = ENDED) -> tuple[JobCache, JobCacheEntry]:
    cache = JobCache()
    entry = JobCacheEntry(manifest(), state, StoredState(state), CreateBackoff(random.Random(0)))
    cache.active[KEY] = entry
    return cache, entry


def test_a_job_whose_end_is_stored_and_observed_is_released() -> None:
    cache, _ = cache_with()
    cache.release_finished(KEY, manifest(5))
    assert (list(cache.active), list(cache.finished)) == ([], [KEY])


def expects_a_pod(entry: JobCacheEntry) -> None:
    entry.expectations.set_expectations([Created(RunOwnerRef(), "uid-o")], is_cached=bool)


def waits_to_be_written(entry: JobCacheEntry) -> None:
    entry.stored.unwritten_since = datetime(2026, 1, 1, tzinfo=UTC)


def has_no_response(entry: JobCacheEntry) -> None:
    entry.stored.is_unknown = True


def has_an_event(entry: JobCacheEntry) -> None:
    entry.events.add([DONE])


def runs(entry: JobCacheEntry) -> None:
    entry.state = JobState()


def is_ahead_of_the_informer(entry: JobCacheEntry) -> None:
    entry.observe(manifest(6))


@pytest.mark.parametrize(
    "change", [expects_a_pod, waits_to_be_written, has_no_response, has_an_event, runs, is_ahead_of_the_informer]
)
def test_a_job_with_more_to_do_stays_active(change: Callable[[JobCacheEntry], None]) -> None:
    cache, entry = cache_with()
    change(entry)
    cache.release_finished(KEY, manifest(5))
    assert (list(cache.active), list(cache.finished)) == ([KEY], [])


@pytest.mark.parametrize("is_finished", [False, True])
def test_a_job_that_was_deleted_or_replaced_leaves_the_cache(is_finished: bool) -> None:
    for current in (None, manifest(9, uid="another")):
        cache, _ = cache_with()
        if is_finished:
            cache.release_finished(KEY, manifest())
        assert cache.remove_former(KEY, manifest(8)) is None
        former = cache.remove_former(KEY, current)
        assert former is not None
        assert (former.uid, list(cache)) == ("uid", [])


def test_events_are_taken_once() -> None:
    events = PendingEvents()
    events.add([DONE])
    assert (events.take(), events.take()) == ((DONE,), ())
