"""A pod turned into a Body. Whose it is (role, index, stamp, owner) the dialect reads from labels and annotations.

A Body depends on the pod alone, so a cache may keep it as long as it keeps that version of the pod.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from shoal.engine.observed import DISRUPTED, ContainerState, ObservedPod, PodPhase
from shoal.kube import times
from shoal.kube.objects import Obj

_PHASES = {phase.value: phase for phase in PodPhase}
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


def read_pod(
    pod: Obj,
    *,
    role: str,
    index: int | None,
    run: int = 0,
    attempt: int = 0,
    instance: str = "",
    owned: bool = True,
    marked: bool = False,
    finalizer: str = "",
) -> ObservedPod:
    meta, spec, status = pod.get("metadata") or {}, pod.get("spec") or {}, pod.get("status") or {}
    conditions = {c.get("type", ""): c for c in status.get("conditions") or () if c.get("status") == "True"}
    return ObservedPod(
        uid=meta.get("uid") or "",
        name=meta.get("name") or "",
        role=role,
        index=index,
        run=run,
        attempt=attempt,
        instance=instance,
        owned=owned,
        phase=_PHASES.get(status.get("phase") or "Pending", PodPhase.UNKNOWN),
        reason=status.get("reason") or "",
        message=status.get("message") or "",
        leaving=bool(meta.get("deletionTimestamp")),
        leaving_since=_leaving_since(meta),
        node=spec.get("nodeName") or "",
        ip=status.get("podIP") or "",
        host_ip=status.get("hostIP") or "",
        containers=_containers(status),
        created=_moment(meta.get("creationTimestamp")),
        ready="Ready" in conditions,
        ready_since=_moment((conditions.get("Ready") or {}).get("lastTransitionTime")),
        restarts_in_place=(spec.get("restartPolicy") or "Always") != "Never",
        conditions=frozenset(conditions),
        disruption=str((conditions.get(DISRUPTED) or {}).get("message") or ""),
        marked=marked,
        finalizer=bool(finalizer) and finalizer in (meta.get("finalizers") or ()),
        deletion_cost=_deletion_cost(meta),
    )


def _containers(status: Mapping[str, Any]) -> tuple[ContainerState, ...]:
    init = [_container(entry, init=True) for entry in status.get("initContainerStatuses") or ()]
    main = [_container(entry, init=False) for entry in status.get("containerStatuses") or ()]
    return (*init, *main)


def _container(entry: Mapping[str, Any], *, init: bool) -> ContainerState:
    restarts = int(entry.get("restartCount") or 0)
    before = int(((entry.get("lastState") or {}).get("terminated") or {}).get("exitCode") or 0)
    state = entry.get("state") or {}
    ended = state.get("terminated")
    if not ended:
        return ContainerState(
            entry.get("name") or "", init=init, has_started="running" in state, restarts=restarts, last_code=before
        )
    return ContainerState(
        entry.get("name") or "",
        init=init,
        code=int(ended.get("exitCode") or 0),
        signal=int(ended.get("signal") or 0),
        reason=ended.get("reason") or "",
        message=ended.get("message") or "",
        has_started=True,
        finished=_moment(ended.get("finishedAt")),
        restarts=restarts,
        last_code=before,
    )


def _leaving_since(meta: Mapping[str, Any]) -> datetime | None:
    """When the deletion began: the timestamp is the moment it should be over."""
    stamp = _moment(meta.get("deletionTimestamp"))
    return stamp - timedelta(seconds=int(meta.get("deletionGracePeriodSeconds") or 0)) if stamp else None


def _moment(text: str | None) -> datetime | None:
    return times.parse(text) if text else None


def _deletion_cost(meta: Mapping[str, Any]) -> int:
    text = (meta.get("annotations") or {}).get(_DELETION_COST, "0")
    try:
        return int(text)
    except ValueError:
        return 0
