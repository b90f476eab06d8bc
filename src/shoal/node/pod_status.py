"""The status of a pod, built from the record: what `kubectl get` and `kubectl describe` show.

Pure. `pod_status` returns only what the node owns: conditions other programs wrote are not in it, and the patch
that carries it leaves them alone. Reasons and messages are the kubelet's wherever those are widely used.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from shoal.kube import conditions
from shoal.kube.messages import Message
from shoal.kube.objects import Obj, is_terminating
from shoal.kube.times import rfc3339
from shoal.node import pod_lifecycle
from shoal.node.checkpoint import ContainerRecord, ContainerRun, PodRecord
from shoal.node.messages import CATALOG, text
from shoal.node.pod_lifecycle import BackOff, RuntimeState, Waiting

UNKNOWN_EXIT_CODE = 137
UNKNOWN_REASON = "ContainerStatusUnknown"

Claim = tuple[str, bool, Message | None]  # type and status of a condition, and why: its reason and message


@dataclass(frozen=True, slots=True)
class PodAddresses:
    """Where the pod is: the addresses in its status."""

    host_ip: str
    pod_ip: str


def pod_status(
    pod: Obj, record: PodRecord, runtime: RuntimeState, addresses: PodAddresses, *, now: float, backoff: BackOff
) -> Obj:
    """The node's share of the pod's status now."""
    inits = [_container_status(pod, c, record, runtime, now, backoff) for c in pod_lifecycle.init_containers(pod)]
    mains = [_container_status(pod, c, record, runtime, now, backoff) for c in pod_lifecycle.containers(pod)]
    phase = _phase(pod, record, mains)
    status: Obj = {
        "phase": phase,
        "conditions": _conditions(pod, record, phase, mains, now),
        "hostIP": addresses.host_ip,
        "hostIPs": [{"ip": addresses.host_ip}],
        "startTime": format_time(record.accepted_at),
        "containerStatuses": mains,
    }
    if inits:
        status["initContainerStatuses"] = inits
    if addresses.pod_ip:
        status["podIP"] = addresses.pod_ip
        status["podIPs"] = [{"ip": addresses.pod_ip}]
    if record.outcome is not None:
        status["reason"] = record.outcome.reason
        status["message"] = text(record.outcome.message)
    return status


def format_time(at: float) -> str:
    return rfc3339(datetime.fromtimestamp(at, UTC))


# Containers


def _container_status(
    pod: Obj, container: Obj, record: PodRecord, runtime: RuntimeState, now: float, backoff: BackOff
) -> Obj:
    known = record.containers.get(container["name"]) or ContainerRecord()
    run = known.run
    state, shown = _state(pod, container, record, known, runtime, now, backoff)
    last = run if shown != "terminated" and run is not None and run.is_over else known.last
    is_init = any(c is container for c in pod_lifecycle.init_containers(pod))
    if is_init and not pod_lifecycle.is_sidecar(container):
        ready = pod_lifecycle.init_is_done(container, run)
    else:
        ready = pod_lifecycle.is_ready(container, run)
    status: Obj = {
        "name": container["name"],
        "state": state,
        "lastState": {"terminated": _terminated(record, container, last)} if last is not None and last.is_over else {},
        "ready": ready,
        "restartCount": known.restarts,
        "image": container.get("image", ""),
        "imageID": "",
        "started": run is not None and pod_lifecycle.has_started(container, run),
    }
    if run is not None:
        status["containerID"] = container_id(record, container["name"], run)
    return status


def container_id(record: PodRecord, name: str, run: ContainerRun) -> str:
    return f"shoal://{record.uid}/{name}.{run.attempt}"


def _state(
    pod: Obj,
    container: Obj,
    record: PodRecord,
    known: ContainerRecord,
    runtime: RuntimeState,
    now: float,
    backoff: BackOff,
) -> tuple[Obj, str]:
    run, name = known.run, container["name"]
    if run is not None and run.is_running:
        assert run.started_at is not None
        return {"running": {"startedAt": format_time(run.started_at)}}, "running"
    if run is not None and run.is_over:
        if not pod_lifecycle.will_restart(pod, record, name):
            return {"terminated": _terminated(record, container, run)}, "terminated"
        if name not in runtime.blocked and pod_lifecycle.restart_at(known, backoff) <= now:
            return {"terminated": _terminated(record, container, run)}, "terminated"
    waiting = _waiting(pod, container, record, known, runtime)
    message = {"message": text(waiting.message)} if waiting.message else {}
    return {"waiting": {"reason": waiting.reason, **message}}, "waiting"


def _waiting(pod: Obj, container: Obj, record: PodRecord, known: ContainerRecord, runtime: RuntimeState) -> Waiting:
    name = container["name"]
    if name in runtime.blocked:
        return runtime.blocked[name]
    if known.run is not None and known.run.is_over:
        minutes, seconds = divmod(known.backoff_seconds, 60)
        parameters = {
            "pause": f"{int(minutes)}m{seconds:g}s" if minutes else f"{seconds:g}s",  # as Go writes a duration
            "container": name,
            "pod": record.name,
            "namespace": record.namespace,
            "uid": record.uid,
        }
        return Waiting("CrashLoopBackOff", Message("CrashLoopBackOff", parameters))
    if runtime.pod_blocked is not None:
        return runtime.pod_blocked
    is_init = any(c is container for c in pod_lifecycle.init_containers(pod))
    waits_for_init = pod_lifecycle.init_containers(pod) and (is_init or not pod_lifecycle.is_initialized(pod, record))
    return Waiting("PodInitializing" if waits_for_init else "ContainerCreating")


def _terminated(record: PodRecord, container: Obj, run: ContainerRun) -> Obj:
    ended = run.ended
    assert ended is not None
    state: Obj = {
        "exitCode": ended.exit_code,
        "reason": ended.reason or ("Completed" if ended.exit_code == 0 else "Error"),
        "finishedAt": format_time(ended.at),
        "containerID": container_id(record, container["name"], run),
    }
    if run.started_at is not None:
        state["startedAt"] = format_time(run.started_at)
    if ended.signal is not None:
        state["signal"] = ended.signal
    if ended.message:
        state["message"] = text(ended.message)
    return state


# The pod


def _phase(pod: Obj, record: PodRecord, mains: list[Obj]) -> str:
    if record.outcome is not None and not record.running():
        return record.outcome.phase
    if pod_lifecycle.main_containers_are_over(pod, record) and not record.running():
        ends = [run.ended for c in pod_lifecycle.containers(pod) if (run := _run(record, c)) is not None]
        all_succeeded = len(ends) == len(mains) and all(end is not None and end.exit_code == 0 for end in ends)
        return "Succeeded" if all_succeeded else "Failed"
    if is_terminating(pod) and record.finished:
        return "Failed"
    if not pod_lifecycle.is_initialized(pod, record):
        return "Pending"
    never_ran = [c for c in mains if "waiting" in c["state"] and not c["lastState"]]
    return "Pending" if never_ran else "Running"


def _conditions(pod: Obj, record: PodRecord, phase: str, mains: list[Obj], now: float) -> list[Obj]:
    sidecars = [c for c in pod_lifecycle.init_containers(pod) if pod_lifecycle.is_sidecar(c)]
    unready = [c["name"] for c in sidecars if not pod_lifecycle.is_ready(c, _run(record, c))]
    unready += [c["name"] for c in mains if not c["ready"]]
    ended = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(phase)
    containers_ready: Claim = ("ContainersReady", True, None)
    if ended:
        containers_ready = ("ContainersReady", False, Message(ended))
    elif unready:
        containers_ready = ("ContainersReady", False, Message("ContainersNotReady", {"containers": unready}))
    desired: list[Claim] = [
        ("PodReadyToStartContainers", bool(record.sandboxed_at) and not record.finished, None),
        _initialized(pod, record, phase),
        ("Ready", *(containers_ready[1:] if unready or ended else _readiness_gates(pod))),
        containers_ready,
        ("PodScheduled", True, None),
    ]
    previous = (pod.get("status") or {}).get("conditions") or []
    written: list[Obj] = [
        c for condition_type, *_ in desired if (c := conditions.find_condition(previous, condition_type)) is not None
    ]
    for condition_type, holds, why in desired:
        reason, message = (why.reason, CATALOG.text(why)) if why is not None else ("", "")
        written = conditions.with_condition(
            written, condition_type, holds, now=format_time(now), reason=reason, message=message
        )
    return written


def _run(record: PodRecord, container: Obj) -> ContainerRun | None:
    known = record.containers.get(container["name"])
    return None if known is None else known.run


def _initialized(pod: Obj, record: PodRecord, phase: str) -> Claim:
    if phase == "Succeeded":
        return ("Initialized", True, Message("PodCompleted"))
    if pod_lifecycle.is_initialized(pod, record):
        return ("Initialized", True, None)
    incomplete = [
        c["name"] for c in pod_lifecycle.init_containers(pod) if not pod_lifecycle.init_is_done(c, _run(record, c))
    ]
    return ("Initialized", False, Message("ContainersNotInitialized", {"containers": incomplete}))


def _readiness_gates(pod: Obj) -> tuple[bool, Message | None]:
    current = (pod.get("status") or {}).get("conditions") or []
    for gate in pod["spec"].get("readinessGates") or ():
        condition_type = gate["conditionType"]
        condition = conditions.find_condition(current, condition_type)
        if condition is None:
            return False, Message("ReadinessGatesNotReady", {"gate": condition_type})
        if (status := condition.get("status")) != "True":
            return False, Message("ReadinessGatesNotReady.Status", {"gate": condition_type, "status": status})
    return True, None
