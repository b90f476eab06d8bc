"""Counts of the pods of each role, as the status of a training job shows them.

Finished tasks count also when their pods are gone. `restarts` is not a field of the original: it keeps how many pods
of the role were created again, so that the next report can tell a new failure from one that was reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from shoal.dialects.training.restart_rules import EVICTED
from shoal.engine import JobState, Observed, ObservedPod, PodPhase

ACTIVE, SUCCEEDED, FAILED, EVICTIONS, RESTARTS = "active", "succeeded", "failed", "evicted", "restarts"
Counts = Mapping[str, Counter[str]]  # by role


def count_replicas(state: JobState, observed: Observed, *, leaving_counts_as: str) -> dict[str, Counter[str]]:
    """`leaving_counts_as`: what a running pod counts as that is being deleted."""
    counts: dict[str, Counter[str]] = {role.name: Counter() for role in state.roles}
    present = set()
    for pod in observed.pods:
        if not pod.owned:
            continue
        present.add((pod.role, pod.index))
        found = counts.setdefault(pod.role, Counter())
        if pod.phase is PodPhase.SUCCEEDED:
            found[SUCCEEDED] += 1
        elif pod.phase is PodPhase.FAILED:
            found[FAILED] += 1
            found[EVICTIONS] += pod.reason == EVICTED
        elif is_active(pod):
            found[leaving_counts_as if pod.leaving else ACTIVE] += 1
    for role in state.roles:
        for task in role.tasks:
            if task.is_done and task.outcome and not task.dropped and (role.name, task.index) not in present:
                counts[role.name][SUCCEEDED if task.outcome.is_ok else FAILED] += 1
        if restarts := state.charges.get(role.name, 0):
            counts[role.name][RESTARTS] = restarts
    succeeded = state.run.outcome is not None and state.run.outcome.is_ok and not state.run.is_open
    for found in counts.values():
        if succeeded:
            found[SUCCEEDED] += found.pop(ACTIVE, 0)
    return counts


def is_active(pod: ObservedPod) -> bool:
    """Running, or about to: a pod that waits for a node or for its init containers counts nowhere."""
    if pod.phase is PodPhase.RUNNING:
        return True
    if pod.phase is not PodPhase.PENDING or not pod.node:
        return False
    return all(each.has_started for each in pod.containers if each.init)
