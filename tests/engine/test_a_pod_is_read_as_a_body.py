"""What the engine takes from a pod."""

from __future__ import annotations

from datetime import UTC, datetime

from shoal.engine import ContainerState, ObservedPod, PodPhase, read_pod

POD = {
    "metadata": {
        "name": "fw-a-0",
        "uid": "u1",
        "creationTimestamp": "2026-11-16T04:00:00Z",
        "deletionTimestamp": "2026-11-16T04:01:00Z",
        "deletionGracePeriodSeconds": 30,
        "finalizers": ["batch.kubernetes.io/job-tracking"],
        "annotations": {"controller.kubernetes.io/pod-deletion-cost": "-7"},
    },
    "spec": {"nodeName": "n1", "restartPolicy": "OnFailure"},
    "status": {
        "phase": "Failed",
        "reason": "Evicted",
        "message": "out of memory",
        "podIP": "10.0.0.7",
        "hostIP": "10.0.0.1",
        "conditions": [
            {"type": "Ready", "status": "False", "lastTransitionTime": "2026-11-16T04:00:40Z"},
            {"type": "DisruptionTarget", "status": "True", "message": "make room"},
        ],
        "initContainerStatuses": [{"name": "i", "restartCount": 1, "state": {"running": {}}}],
        "containerStatuses": [
            {
                "name": "c",
                "restartCount": 2,
                "state": {
                    "terminated": {
                        "exitCode": 137,
                        "signal": 9,
                        "reason": "OOMKilled",
                        "message": "m",
                        "finishedAt": "2026-11-16T04:00:30Z",
                    }
                },
            }
        ],
    },
}


def at(minute: int, second: int) -> datetime:
    return datetime(2026, 11, 16, 4, minute, second, tzinfo=UTC)


def test_a_pod_with_everything():
    pod = read_pod(POD, role="a", index=0, run=2, attempt=3, marked=True, finalizer="batch.kubernetes.io/job-tracking")

    assert pod == ObservedPod(
        uid="u1",
        name="fw-a-0",
        role="a",
        index=0,
        run=2,
        attempt=3,
        phase=PodPhase.FAILED,
        reason="Evicted",
        message="out of memory",
        leaving=True,
        leaving_since=at(0, 30),
        node="n1",
        ip="10.0.0.7",
        host_ip="10.0.0.1",
        containers=(
            ContainerState("i", init=True, restarts=1, has_started=True),
            ContainerState("c", False, 137, 9, "OOMKilled", "m", at(0, 30), 2, has_started=True),
        ),
        created=at(0, 0),
        restarts_in_place=True,
        conditions=frozenset({"DisruptionTarget"}),
        disruption="make room",
        marked=True,
        finalizer=True,
        deletion_cost=-7,
    )
    assert pod.restarts == 3


def test_a_pod_nobody_has_looked_at_yet():
    assert read_pod({"metadata": {"name": "p", "uid": "u"}}, role="a", index=None) == ObservedPod(
        "u", "p", "a", None, restarts_in_place=True
    )
