"""The small words: conditions keep their transition time, owners are known by uid, times are UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.kube import times
from shoal.kube.conditions import condition_of, is_true, with_condition
from shoal.kube.objects import Obj
from shoal.kube.owners import controller_of, is_controlled_by, owner_reference

T0, T1 = "2026-11-16T04:00:00Z", "2026-11-16T05:00:00Z"


def test_a_condition_moves_its_time_only_when_its_status_changes() -> None:
    first = with_condition(None, "Ready", False, now=T0, reason="Starting")
    said_again = with_condition(first, "Ready", False, now=T1, reason="Pulling", message="one of two")
    changed = with_condition(said_again, "Ready", True, now=T1)
    assert first == [{"type": "Ready", "status": "False", "reason": "Starting", "lastTransitionTime": T0}]
    assert said_again == [
        {"type": "Ready", "status": "False", "reason": "Pulling", "message": "one of two", "lastTransitionTime": T0}
    ]
    assert changed == [{"type": "Ready", "status": "True", "lastTransitionTime": T1}]


def test_a_condition_keeps_its_place_and_its_other_fields() -> None:
    before = [
        {"type": "A", "status": "True", "lastProbeTime": None, "lastTransitionTime": T0},
        {"type": "B", "status": "True"},
    ]
    after = with_condition(before, "A", "Unknown", now=T1, reason="Lost")
    assert after == [
        {"type": "A", "status": "Unknown", "lastProbeTime": None, "lastTransitionTime": T1, "reason": "Lost"},
        {"type": "B", "status": "True"},
    ]
    assert before[0]["status"] == "True"


def test_conditions_are_read_from_the_status() -> None:
    pod = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    assert condition_of(pod, "Ready") == {"type": "Ready", "status": "True"}
    assert (condition_of({}, "Ready"), is_true(pod, "Ready"), is_true({}, "Ready")) == (None, True, False)


def owner(uid: str = "u1") -> Obj:
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train", "uid": uid}}


def test_an_owner_is_known_by_its_uid_not_its_name() -> None:
    pod = {"metadata": {"ownerReferences": [owner_reference(owner("u1"))]}}
    assert controller_of(pod) == {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": "train",
        "uid": "u1",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    asked = [is_controlled_by(pod, owner("u1")), is_controlled_by(pod, owner("u2")), is_controlled_by(pod, "u1")]
    assert (asked, is_controlled_by({}, owner("u1"))) == ([True, False, True], False)


def test_an_owner_without_a_uid_owns_nothing() -> None:
    pod = {"metadata": {"ownerReferences": [owner_reference(owner(""))]}}
    assert is_controlled_by(pod, owner("")) is False
    assert controller_of({"metadata": {"ownerReferences": [owner_reference(owner(), controller=False)]}}) is None


@given(st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30)), st.integers(-720, 720))
def test_moments_survive_being_written(naive: datetime, offset_minutes: int) -> None:
    moment = naive.replace(tzinfo=timezone(timedelta(minutes=offset_minutes)))
    assert times.parse(times.rfc3339_micro(moment)) == moment
    assert times.parse(times.rfc3339(moment)) == moment.astimezone(UTC).replace(microsecond=0)


def test_times_are_read_in_any_zone_and_any_fineness() -> None:
    moment = datetime(2026, 11, 16, 4, 0, 0, 123456, UTC)
    assert times.parse("2026-11-16T05:00:00.123456789+01:00") == moment
    assert times.parse("2026-11-16T04:00:00.1Z") == moment.replace(microsecond=100000)
    assert times.rfc3339(moment) == "2026-11-16T04:00:00Z"


@pytest.mark.parametrize(
    "text", ["", "now", "2026-11-16", "2026-11-16T04:00:00", "20261116T040000Z", "2026-13-01T00:00:00Z"]
)
def test_other_forms_of_time_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        times.parse(text)
