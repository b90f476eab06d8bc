"""Events: one object with two faces, folded by count, gone after an hour."""

from __future__ import annotations

import pytest

from kit.cluster_objects import key, machinery, names, obj, pod
from shoal.cluster.client import PatchType
from shoal.cluster.embedded import EmbeddedCluster
from shoal.cluster.event_recorder import NORMAL, WARNING, EventRecorder
from shoal.cluster.types import ListOptions
from shoal.kube import kinds


@pytest.fixture
def cluster():
    return machinery()


@pytest.fixture
def recorder(cluster):
    return EventRecorder(EmbeddedCluster(cluster), "kubelet", host="n1", clock=cluster.clock)


@pytest.fixture
def about(cluster):
    return cluster.create(kinds.POD, "default", pod("p")).stored.obj()


def events(cluster, **options):
    return [stored.obj() for stored in cluster.list(kinds.EVENT, "default", ListOptions(**options)).items]


async def test_an_event_refers_to_its_object(cluster, recorder, about):
    await recorder.record(about, NORMAL, "Started", "Started container main", field_path="spec.containers{main}")
    [event] = events(cluster)
    event.pop("metadata")
    assert event == {
        "apiVersion": "v1",
        "kind": "Event",
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "p",
            "namespace": "default",
            "uid": about["metadata"]["uid"],
            "resourceVersion": about["metadata"]["resourceVersion"],
            "fieldPath": "spec.containers{main}",
        },
        "type": "Normal",
        "reason": "Started",
        "message": "Started container main",
        "source": {"component": "kubelet", "host": "n1"},
        "reportingComponent": "kubelet",
        "reportingInstance": "n1",
        "count": 1,
        "firstTimestamp": "2030-01-01T00:00:00Z",
        "lastTimestamp": "2030-01-01T00:00:00Z",
        "eventTime": None,
    }


async def test_a_repeated_event_increments_the_count(cluster, recorder, about):
    for _ in range(3):
        await recorder.record(about, WARNING, "BackOff", "Back-off restarting")
        cluster.clock.advance(10)
    await recorder.record(about, WARNING, "BackOff", "Back-off restarting another")
    assert [(e["message"], e["count"], e["firstTimestamp"], e["lastTimestamp"]) for e in events(cluster)] == [
        ("Back-off restarting", 3, "2030-01-01T00:00:00Z", "2030-01-01T00:00:20Z"),
        ("Back-off restarting another", 1, "2030-01-01T00:00:30Z", "2030-01-01T00:00:30Z"),
    ]


async def test_a_deleted_event_is_created_again(cluster, recorder, about):
    await recorder.record(about, WARNING, "BackOff", "again")
    cluster.clock.advance(7200)
    await recorder.record(about, WARNING, "BackOff", "again")
    assert [(e["count"], e["firstTimestamp"]) for e in events(cluster)] == [(1, "2030-01-01T02:00:00Z")]


async def test_events_expire_an_hour_after_their_last_write(cluster, recorder, about):
    await recorder.record(about, NORMAL, "First", "said once")
    await recorder.record(about, NORMAL, "Second", "said twice")
    cluster.clock.advance(1800)
    await recorder.record(about, NORMAL, "Second", "said twice")
    cluster.clock.advance(1800)
    assert [e["reason"] for e in events(cluster)] == ["Second"]
    cluster.clock.advance(1800)
    assert events(cluster) == []


async def test_events_of_cluster_wide_objects_are_in_the_default_namespace(cluster, recorder):
    node = cluster.create(kinds.NODE, "", obj("n1")).stored.obj()
    await recorder.record(node, NORMAL, "Starting", "Starting agent")
    assert [e["involvedObject"]["name"] for e in events(cluster)] == ["n1"]


async def test_both_apis_show_the_same_event(cluster, recorder, about):
    await recorder.record(about, NORMAL, "Started", "Started container main")
    [stored] = cluster.list(kinds.EVENT_V1, "default").items
    shown = stored.obj()
    assert (shown["apiVersion"], shown["note"], shown["regarding"]["name"], shown["reportingController"]) == (
        "events.k8s.io/v1", "Started container main", "p", "kubelet",
    )  # fmt: skip
    assert (shown["deprecatedCount"], "message" in shown, "involvedObject" in shown) == (1, False, False)


def test_an_event_made_by_the_new_api_is_read_by_the_old(cluster, about):
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "p", "namespace": "default"}
    sent = obj(
        "e", regarding=reference, reason="Scheduled", note="Placed on n1", type="Normal", action="Binding",
        reportingController="shoal/scheduler", reportingInstance="here", eventTime="2030-01-01T00:00:00.000000Z",
    )  # fmt: skip
    cluster.create(kinds.EVENT_V1, "default", sent)
    shown = cluster.get(kinds.EVENT, key("e")).obj()
    assert (shown["apiVersion"], shown["message"], shown["involvedObject"], shown["reportingComponent"]) == (
        "v1", "Placed on n1", reference, "shoal/scheduler",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "fields", "found"),
    [
        (kinds.EVENT, "involvedObject.name=p", 1),
        (kinds.EVENT, "involvedObject.name=q", 0),
        (kinds.EVENT, "reason=Started,type=Normal", 1),
        (kinds.EVENT, "source=kubelet", 1),
        (kinds.EVENT_V1, "regarding.name=p", 1),
        (kinds.EVENT_V1, "reportingController=nobody", 0),
    ],
)
async def test_events_are_selected_by_what_they_are_about(cluster, recorder, about, kind, fields, found):
    await recorder.record(about, NORMAL, "Started", "Started container main")
    assert len(cluster.list(kind, "default", ListOptions(fields=fields)).items) == found


async def test_old_events_are_not_kept_across_a_restart(tmp_path):
    cluster = machinery(tmp_path / "store.db")
    about = cluster.create(kinds.POD, "default", pod("p")).stored.obj()
    recorder = EventRecorder(EmbeddedCluster(cluster), "kubelet", clock=cluster.clock)
    await recorder.record(about, NORMAL, "Started", "Started")
    cluster.close()
    later = machinery(tmp_path / "store.db")
    assert len(names(later.list(kinds.EVENT))) == 1
    later.clock.advance(3601)
    assert names(later.list(kinds.EVENT)) == []
    later.close()


async def test_a_lost_answer_does_not_double_an_event(cluster, recorder, about):
    await recorder.record(about, NORMAL, "Started", "Started")
    second = EventRecorder(EmbeddedCluster(cluster), "kubelet", host="n1", clock=cluster.clock)
    await second.record(about, NORMAL, "Started", "Started")
    assert len(events(cluster)) == 1


def test_an_event_is_counted_by_a_patch(cluster, about):
    reference = {"kind": "Pod", "name": "p", "namespace": "default"}
    cluster.create(kinds.EVENT, "default", obj("e", involvedObject=reference, reason="R", message="m", count=1))
    after = cluster.patch(kinds.EVENT, key("e"), {"count": 2}, PatchType.MERGE).stored.obj()
    assert (after["count"], after["message"]) == (2, "m")
