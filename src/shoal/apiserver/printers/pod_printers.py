"""Rows of pods and nodes. The STATUS of a pod is a small story: what keeps it from running, or how it ended."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from shoal.apiserver import durations
from shoal.apiserver.printers.table import AGE, NAME, NONE, UNKNOWN, TablePrinter, age, mapping, name, text
from shoal.kube.objects import Obj

_POD = (
    NAME,
    text("Ready", "Containers that are ready, of all the pod has."),
    text("Status", "What the pod is doing, or what keeps it from doing it."),
    text("Restarts", "How often containers were started again, and when last."),
    AGE,
    text("IP", "Address of the pod.", wide=True),
    text("Node", "Node the pod runs on.", wide=True),
    text("Nominated Node", "Node where room is being made for the pod.", wide=True),
    text("Readiness Gates", "Extra readiness conditions that hold, of all the pod names.", wide=True),
)


class _PodSummary(NamedTuple):
    """What a walk over container statuses found."""

    reason: str
    ready: int
    restarts: int
    last_restart: str
    is_stuck: bool = False  # an init container has not finished


def pod_cells(pod: Obj, now: datetime) -> list[Any]:
    spec, status = mapping(pod, "spec"), mapping(pod, "status")
    summary = _summary(pod)
    sidecars = _sidecars(spec)
    total = len(spec.get("containers") or ()) + len(sidecars)
    restarts = str(summary.restarts)
    if summary.restarts and summary.last_restart:
        restarts += f" ({durations.age_since(summary.last_restart, now)} ago)"
    ips = status.get("podIPs") or []
    gates = [gate.get("conditionType", "") for gate in spec.get("readinessGates") or ()]
    return [
        name(pod),
        f"{summary.ready}/{total}",
        summary.reason,
        restarts,
        age(pod, now),
        (ips[0].get("ip") if ips else status.get("podIP")) or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        f"{sum(_holds(status, gate) for gate in gates)}/{len(gates)}" if gates else NONE,
    ]


def _summary(pod: Obj) -> _PodSummary:
    status = mapping(pod, "status")
    summary = _initial(pod)
    if not summary.is_stuck or _holds(status, "Initialized"):
        summary = _running(pod, summary)
    leaving = bool((pod.get("metadata") or {}).get("deletionTimestamp"))
    if leaving and status.get("reason") == "NodeLost":
        return summary._replace(reason="Unknown")
    if leaving and status.get("phase") not in ("Succeeded", "Failed"):
        return summary._replace(reason="Terminating")
    return summary


def _initial(pod: Obj) -> _PodSummary:
    """The init containers, in order, up to the first that holds the rest up."""
    spec, status = mapping(pod, "spec"), mapping(pod, "status")
    reason = str(status.get("reason") or status.get("phase") or "Unknown")
    if any(
        c.get("type") == "PodScheduled" and c.get("reason") == "SchedulingGated" for c in status.get("conditions") or ()
    ):
        reason = "SchedulingGated"
    sidecars = _sidecars(spec)
    ready = restarts = 0
    last = ""
    for index, container in enumerate(status.get("initContainerStatuses") or ()):
        restarts += container.get("restartCount") or 0
        last = max(last, _last_end(container))
        state = container.get("state") or {}
        terminated = state.get("terminated")
        if terminated is not None and not terminated.get("exitCode"):
            continue
        if container.get("name") in sidecars and container.get("started"):
            ready += bool(container.get("ready"))
            continue
        wait_reason = _init_reason(state, index, len(spec.get("initContainers") or ()))
        return _PodSummary(wait_reason, ready, restarts, last, is_stuck=True)
    return _PodSummary(reason, ready, restarts, last)


def _init_reason(state: Obj, index: int, total: int) -> str:
    terminated = state.get("terminated")
    if terminated is not None:
        return f"Init:{_ending(terminated)}"
    waiting = (state.get("waiting") or {}).get("reason")
    if waiting and waiting != "PodInitializing":
        return f"Init:{waiting}"
    return f"Init:{index}/{total}"


def _running(pod: Obj, before: _PodSummary) -> _PodSummary:
    """The containers proper. The first one that waits or has ended gives the reason."""
    spec, status = mapping(pod, "spec"), mapping(pod, "status")
    sidecars = _sidecars(spec)
    watched = [c for c in status.get("initContainerStatuses") or () if c.get("name") in sidecars]
    restarts = sum(c.get("restartCount") or 0 for c in watched)
    last = max((_last_end(c) for c in watched), default="")
    reason, ready, any_running, error = before.reason, before.ready, False, ""
    # Backwards, so that the reason of the first container is set last: it is the one that is shown.
    for container in reversed(status.get("containerStatuses") or ()):
        restarts += container.get("restartCount") or 0
        last = max(last, _last_end(container))
        state = container.get("state") or {}
        if (state.get("waiting") or {}).get("reason"):
            reason = state["waiting"]["reason"]
        elif state.get("terminated") is not None:
            reason = _ending(state["terminated"])
            error = reason if state["terminated"].get("exitCode") else error
        elif container.get("ready") and state.get("running") is not None:
            any_running, ready = True, ready + 1
    if reason == "Completed":  # one container is done; the pod as a whole may still run, or another may have failed
        if any_running and _holds(status, "Ready"):
            reason = "Running"
        elif error:
            reason = error
        elif any_running:
            reason = "NotReady"
    return _PodSummary(reason, ready, restarts, last)


def _ending(terminated: Obj) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode') or 0}"


def _last_end(container: Obj) -> str:
    return str(((container.get("lastState") or {}).get("terminated") or {}).get("finishedAt") or "")


def _sidecars(spec: Obj) -> frozenset[str]:
    """Init containers that keep running beside the others."""
    return frozenset(
        c.get("name") or "" for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"
    )


def _holds(status: Obj, condition: str) -> bool:
    return any(c.get("type") == condition and c.get("status") == "True" for c in status.get("conditions") or ())


def finished_conditions(pod: Obj) -> list[dict[str, str]]:
    phase = mapping(pod, "status").get("phase")
    message = {
        "Succeeded": "Every container of the pod ended well.",
        "Failed": "A container of the pod ended badly and is not started again.",
    }.get(str(phase))
    return [{"type": "Completed", "status": "True", "reason": str(phase), "message": message}] if message else []


_NODE = (
    NAME,
    text("Status", "Whether the node is ready and takes new pods."),
    text("Roles", "Roles from the node's labels."),
    AGE,
    text("Version", "Version of the node's agent."),
    text("Internal-IP", "Address inside the cluster.", wide=True),
    text("External-IP", "Address outside the cluster.", wide=True),
    text("OS-Image", "Operating system the node reports.", wide=True),
    text("Kernel-Version", "Kernel the node reports.", wide=True),
    text("Container-Runtime", "What runs the containers.", wide=True),
)

_ROLE_PREFIX = "node-role.kubernetes.io/"


def node_cells(node: Obj, now: datetime) -> list[Any]:
    info = mapping(mapping(node, "status"), "nodeInfo")
    kernel = info.get("kernelVersion") or UNKNOWN
    if info.get("architecture"):
        kernel += f" ({info['architecture']})"
    conditions = {c.get("type"): c.get("status") for c in mapping(node, "status").get("conditions") or ()}
    states = ["Unknown"]
    if "Ready" in conditions:
        states = ["Ready" if conditions["Ready"] == "True" else "NotReady"]
    if mapping(node, "spec").get("unschedulable"):
        states.append("SchedulingDisabled")
    labels = (node.get("metadata") or {}).get("labels") or {}
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)} - {""}
    if labels.get("kubernetes.io/role"):
        roles.add(labels["kubernetes.io/role"])
    return [
        name(node),
        ",".join(states),
        ",".join(sorted(roles)) or NONE,
        age(node, now),
        info.get("kubeletVersion") or "",
        _address(node, "InternalIP"),
        _address(node, "ExternalIP"),
        info.get("osImage") or UNKNOWN,
        kernel,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _address(node: Obj, kind: str) -> str:
    addresses = mapping(node, "status").get("addresses") or ()
    return next((str(a.get("address")) for a in addresses if a.get("type") == kind), NONE)


PRINTERS: dict[tuple[str, str], TablePrinter] = {
    ("", "Pod"): TablePrinter(_POD, pod_cells, finished_conditions),
    ("", "Node"): TablePrinter(_NODE, node_cells),
}
