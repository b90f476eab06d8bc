"""What to do next for a pod, given what is on record and the time."""

from __future__ import annotations

from typing import Any

import pytest

from kit.pods import T0, container, pod, stored
from shoal.kube.messages import Message
from shoal.kube.objects import Obj
from shoal.node.checkpoint import (
    ContainerRecord,
    ContainerRun,
    Ended,
    PodOutcome,
    PodRecord,
    Stopping,
    new_record,
)
from shoal.node.pod_lifecycle import (
    BackOff,
    BeginStop,
    Decision,
    FailPod,
    Kill,
    RunPreStop,
    RuntimeState,
    Start,
    Terminate,
    Waiting,
    decide,
)

GRACE = 30.0
STOPPED, SIDECAR_STOPPED = (Message("Killing", {"container": name}) for name in ("a", "s"))
LATE = PodOutcome("Failed", "DeadlineExceeded", "too late")


def meant(**more: Any) -> ContainerRecord:
    return ContainerRecord(attempts=1, run=ContainerRun(0, T0, **more))


def runs(**more: Any) -> ContainerRecord:
    return meant(started_at=T0, **more)


def ended(
    code: int, *, attempt: int = 0, at: float = T0 + 5, backoff: float = 0.0, started: float = T0
) -> ContainerRecord:
    run = ContainerRun(attempt, T0, started_at=started, ended=Ended(at, code))
    return ContainerRecord(attempts=attempt + 1, run=run, backoff_seconds=backoff)


def stopping(
    termed: float | None = None, *, killed: bool = False, hook: str = "", grace: float = GRACE
) -> ContainerRecord:
    return runs(stopping=Stopping(T0, grace, hook, termed, killed))


def decided(obj: Obj, containers: dict[str, ContainerRecord], *, now: float = T0 + 5, **runtime: Any) -> Decision:
    made = stored(obj)
    made["metadata"] = {**made["metadata"], **obj["metadata"]}
    record: PodRecord = new_record(made, T0)
    record.sandboxed_at = T0
    record.containers = containers
    record.outcome = runtime.pop("outcome", None)
    return decide(made, record, RuntimeState(**runtime), now=now, backoff=BackOff())


def leaving(obj: Obj, grace: int = 30) -> Obj:
    meta = {**obj["metadata"], "deletionTimestamp": "2030-01-01T00:00:00Z", "deletionGracePeriodSeconds": grace}
    return {**obj, "metadata": meta}


def does(*actions: Any, wake_at: float | None = None, finished: bool = False) -> Decision:
    return Decision(tuple(actions), wake_at, finished)


TWO = pod("p", container("a"), container("b"))
NEVER = pod("p", container("a"), restartPolicy="Never")
ON_FAILURE = pod("p", container("a"), restartPolicy="OnFailure")
ALWAYS = pod("p", container("a"))
INITS = pod("p", container("a"), inits=(container("i"), container("j")), restartPolicy="OnFailure")
SIDECAR = pod("p", container("a"), inits=(container("s", restartPolicy="Always"),), restartPolicy="Never")
PROBED_SIDECAR = pod("p", container("a"), inits=(container("s", restartPolicy="Always", startupProbe={"exec": {}}),))
HOOKED = pod("p", container("a", lifecycle={"preStop": {"exec": {"command": ["x"]}}}))

STARTING: dict[str, tuple[Obj, dict[str, ContainerRecord], dict[str, Any], Decision]] = {
    "all containers start together": (TWO, {}, {}, does(Start("a"), Start("b"))),
    "a running one is left alone": (TWO, {"a": runs()}, {}, does(Start("b"))),
    "a start nobody confirmed is asked for again": (ALWAYS, {"a": meant()}, {}, does(Start("a"))),
    "the first init container goes alone": (INITS, {}, {}, does(Start("i"))),
    "the second init container follows": (INITS, {"i": ended(0)}, {}, does(Start("j"))),
    "nothing starts while an init container runs": (INITS, {"i": runs()}, {}, does()),
    "a failed init container is tried again": (INITS, {"i": ended(1)}, {}, does(Start("i"))),
    "main containers follow the last init container": (INITS, {"i": ended(0), "j": ended(0)}, {}, does(Start("a"))),
    "a running sidecar lets the rest start": (SIDECAR, {"s": runs()}, {}, does(Start("a"))),
    "a sidecar that has not passed its startup probe does not": (PROBED_SIDECAR, {"s": runs()}, {}, does()),
    "a sidecar that fell over later comes back beside the rest": (
        SIDECAR, {"s": ended(1), "a": runs()}, {}, does(Start("s")),
    ),
    "a blocked container waits": (TWO, {}, {"blocked": {"a": Waiting("X")}}, does(Start("b"))),
    "a blocked pod waits": (TWO, {}, {"pod_blocked": Waiting("X")}, does()),
}  # fmt: skip


@pytest.mark.parametrize("case", STARTING, ids=str)
def test_containers_start_in_their_order(case: str) -> None:
    obj, containers, runtime, expected = STARTING[case]
    assert decided(obj, containers, **runtime) == expected


RESTARTING: dict[str, tuple[Obj, ContainerRecord, float, Decision]] = {
    "Always restarts a success at once the first time": (ALWAYS, ended(0), T0 + 5, does(Start("a"))),
    "OnFailure restarts a failure": (ON_FAILURE, ended(1), T0 + 5, does(Start("a"))),
    "OnFailure is finished by a success": (ON_FAILURE, ended(0), T0 + 5, does(finished=True)),
    "Never is finished by a failure": (NEVER, ended(1), T0 + 5, does(finished=True)),
    "the second end waits ten seconds": (ALWAYS, ended(1, backoff=10), T0 + 6, does(wake_at=T0 + 15)),
    "and is over then": (ALWAYS, ended(1, backoff=10), T0 + 15, does(Start("a"))),
    "ten minutes of running forget the pause": (ALWAYS, ended(1, backoff=300, at=T0 + 600), T0 + 600, does(Start("a"))),
    "a little less do not": (ALWAYS, ended(1, backoff=300, at=T0 + 599), T0 + 599, does(wake_at=T0 + 899)),
}


@pytest.mark.parametrize("case", RESTARTING, ids=str)
def test_the_restart_policy_and_the_pause_decide_what_follows_an_end(case: str) -> None:
    obj, known, now, expected = RESTARTING[case]
    assert decided(obj, {"a": known}, now=now) == expected


def test_a_failed_init_container_ends_a_pod_that_never_restarts() -> None:
    once = pod("p", container("a"), inits=(container("i"),), restartPolicy="Never")
    assert decided(once, {"i": ended(1)}) == does(finished=True)


STOPPING: dict[str, tuple[Obj, dict[str, ContainerRecord], float, Decision]] = {
    "a deleted pod begins to stop": (leaving(ALWAYS), {"a": runs()}, T0, does(BeginStop("a", GRACE, STOPPED))),
    "then it is asked": (leaving(ALWAYS), {"a": stopping()}, T0, does(Terminate("a"))),
    "then there is patience": (leaving(ALWAYS), {"a": stopping(T0)}, T0 + 29, does(wake_at=T0 + 30)),
    "then there is none": (leaving(ALWAYS), {"a": stopping(T0)}, T0 + 30, does(Kill("a"))),
    "a kill is not repeated": (leaving(ALWAYS), {"a": stopping(T0, killed=True)}, T0 + 31, does()),
    "an ended container finishes the pod": (leaving(ALWAYS), {"a": ended(143)}, T0, does(finished=True)),
    "a pod that never started is finished at once": (leaving(ALWAYS), {}, T0, does(finished=True)),
    "a start nobody confirmed does not hold it up": (leaving(ALWAYS), {"a": meant()}, T0, does(finished=True)),
    "a second delete shortens the grace": (
        leaving(ALWAYS, 1), {"a": stopping(T0)}, T0 + 3, does(BeginStop("a", 1.0, STOPPED)),
    ),
    "a second delete cannot lengthen it": (leaving(ALWAYS, 90), {"a": stopping(T0)}, T0 + 3, does(wake_at=T0 + 30)),
    "the hook comes first": (leaving(HOOKED), {"a": stopping()}, T0, does(RunPreStop("a"))),
    "the hook has the grace period": (leaving(HOOKED), {"a": stopping(hook="running")}, T0 + 5, does(wake_at=T0 + 30)),
    "a hook that takes too long is overtaken": (
        leaving(HOOKED), {"a": stopping(hook="running")}, T0 + 30, does(Terminate("a")),
    ),
    "after a hook there are two seconds at least": (
        leaving(HOOKED), {"a": stopping(T0 + 30, hook="done")}, T0 + 31, does(wake_at=T0 + 32),
    ),
    "no grace, no hook": (leaving(HOOKED, 0), {"a": stopping(grace=0)}, T0, does(Terminate("a"))),
    "sidecars go after the others": (
        leaving(SIDECAR), {"s": runs(), "a": runs()}, T0, does(BeginStop("a", GRACE, STOPPED)),
    ),
    "and then themselves": (
        leaving(SIDECAR), {"s": runs(), "a": ended(0)}, T0, does(BeginStop("s", GRACE, SIDECAR_STOPPED)),
    ),
    "the end of the work ends the sidecars": (
        SIDECAR, {"s": runs(), "a": ended(0)}, T0, does(BeginStop("s", GRACE, SIDECAR_STOPPED)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", STOPPING, ids=str)
def test_a_pod_is_wound_down_step_by_step(case: str) -> None:
    obj, containers, now, expected = STOPPING[case]
    assert decided(obj, containers, now=now) == expected


def test_a_failed_liveness_probe_stops_the_container_with_the_probes_own_grace() -> None:
    probed = pod("p", container("a", livenessProbe={"exec": {}, "terminationGracePeriodSeconds": 3}))
    said = Message("Killing.Probe", {"container": "a", "probe": "liveness"})
    assert decided(probed, {"a": runs()}, unhealthy={"a": said}) == does(BeginStop("a", 3.0, said))


def test_the_deadline_condemns_the_pod_and_is_waited_for() -> None:
    short = pod("p", container("a"), activeDeadlineSeconds=60)
    assert decided(short, {"a": runs()}, now=T0 + 59) == does(wake_at=T0 + 60)
    assert decided(short, {"a": runs()}, now=T0 + 60) == does(FailPod(Message("DeadlineExceeded")))
    assert decided(short, {"a": runs()}, now=T0 + 60, outcome=LATE) == does(BeginStop("a", GRACE, STOPPED))


def test_the_deadline_is_nothing_to_a_pod_that_has_finished() -> None:
    short = pod("p", container("a"), activeDeadlineSeconds=60, restartPolicy="Never")
    assert decided(short, {"a": ended(0)}, now=T0 + 90) == does(finished=True)


def test_pauses_double_up_to_five_minutes() -> None:
    pauses = [0.0]
    for _ in range(8):
        pauses.append(BackOff().next(pauses[-1], ran_seconds=1))
    assert pauses == [0, 10, 20, 40, 80, 160, 300, 300, 300]
    assert BackOff().next(300, ran_seconds=600) == 10
