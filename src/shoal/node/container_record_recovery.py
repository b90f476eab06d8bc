"""Recovering, after a restart of the agent, the state of the containers on record.

Pure. Three sources are combined: the record (what was meant), the sandbox (what happened), and, where the record itself
is gone, the pod's status in the API (what was reported). A container whose end was not observed is reported as ended
with ContainerStatusUnknown and exit code 137; the restart policy then applies as to any other end. Restart counts are
the highest in any source.
"""

from __future__ import annotations

from collections.abc import Mapping

from shoal.kube.messages import Message
from shoal.kube.objects import Obj
from shoal.kube.times import parse
from shoal.node import pod_lifecycle
from shoal.node.checkpoint import ContainerRecord, ContainerRun, Ended, PodRecord
from shoal.node.pod_status import UNKNOWN_EXIT_CODE, UNKNOWN_REASON
from shoal.node.sandbox.interface import Exited, ProcessState

NEVER_RAN = "StartError"


def ended_by(exited: Exited, *, never_ran: bool = False, message: str = "") -> Ended:
    """A sandbox's account of an end, as the record keeps it."""
    if exited.code is None and exited.signal is None:
        return unknown_end(exited.at, exited.message or Message("Lost.Unobserved"))
    code = exited.code if exited.code is not None else 128 + (exited.signal or 0)
    reason = "OOMKilled" if exited.oom_killed else NEVER_RAN if never_ran else ""
    return Ended(exited.at, code, exited.signal, reason, exited.message or message)


def unknown_end(at: float, why: Message | str) -> Ended:
    return Ended(at, UNKNOWN_EXIT_CODE, None, UNKNOWN_REASON, why)


def process_id(container: str, attempt: int) -> str:
    return f"{container}.{attempt}"


def recover_from_sandbox(record: PodRecord, processes: Mapping[str, ProcessState]) -> None:
    """Update the record to what the sandbox observed; processes missing in the record are added."""
    for process, state in processes.items():
        container, _, number = process.rpartition(".")
        if not container or not number.isdigit():
            continue
        known, attempt = record.container(container), int(number)
        if attempt >= known.attempts:
            at = state.started.at if state.started else state.exited.at if state.exited else record.accepted_at
            known.last, known.run = known.run or known.last, ContainerRun(attempt=attempt, intended_at=at)
            known.attempts = attempt + 1
        if known.run is None or known.run.attempt != attempt:
            continue
        if state.started is not None:
            known.mark_started(state.started.at)
        if state.exited is not None:
            known.mark_ended(ended_by(state.exited, never_ran=state.started is None))


def mark_running_lost(record: PodRecord, now: float, why: Message) -> list[str]:
    """Every run that was going on has ended unseen; the containers it happened to."""
    lost = []
    for name, known in record.containers.items():
        if known.run is not None and not known.run.is_over:
            known.mark_ended(unknown_end(now, why))
            lost.append(name)
    return lost


def reset_for_new_sandbox(pod: Obj, record: PodRecord) -> None:
    """The sandbox is gone. Where the pod continues, its init containers have to prepare the new one."""
    record.sandboxed_at = 0.0
    if pod_lifecycle.main_containers_are_over(pod, record) or pod_lifecycle.stop_grace(pod, record) is not None:
        return
    for container in pod_lifecycle.init_containers(pod):
        if not pod_lifecycle.is_sidecar(container) and container["name"] in record.containers:
            record.containers[container["name"]].mark_for_rerun()


def recover_from_status(pod: Obj, record: PodRecord, now: float) -> None:
    """For a pod that ran here before according to the API, without a record on this node."""
    status = pod.get("status") or {}
    for status_entry in [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]:
        run = _run_from_status(status_entry, now)
        if run is not None:
            record.containers[status_entry["name"]] = ContainerRecord(attempts=run.attempt + 1, run=run)


def _run_from_status(status_entry: Obj, now: float) -> ContainerRun | None:
    state, attempt = status_entry.get("state") or {}, int(status_entry.get("restartCount") or 0)
    finished = state.get("terminated") or (status_entry.get("lastState") or {}).get("terminated")
    if "running" in state or finished is None:
        if "running" not in state and not status_entry.get("containerID"):
            return None
        at = _seconds((state.get("running") or {}).get("startedAt"), now)
        lost = unknown_end(now, Message("Lost.NoRecord"))
        return ContainerRun(attempt=attempt, intended_at=at, started_at=at, ended=lost)
    at = _seconds(finished.get("startedAt"), now)
    ended = Ended(
        _seconds(finished.get("finishedAt"), now),
        int(finished.get("exitCode") or 0),
        finished.get("signal"),
        finished.get("reason") or "",
        finished.get("message") or "",
    )
    return ContainerRun(attempt=attempt, intended_at=at, started_at=at, ended=ended)


def _seconds(text: str | None, otherwise: float) -> float:
    try:
        return parse(text).timestamp() if text else otherwise
    except ValueError:
        return otherwise
