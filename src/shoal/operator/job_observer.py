"""Observes a job for one pass: its pods, its run owner and its other objects, as the informers show them.

What the API server has confirmed as deleted is left out, even if an informer still shows it, and responses to the last
writes are added: a pass may precede the watch events of the last one's writes.
"""

from __future__ import annotations

import random

from msgspec.structs import replace

from shoal.cluster.client import Cluster
from shoal.dialects.capabilities import RunOwner
from shoal.dialects.dialect import Dialect
from shoal.engine import JobState, Observed, ObservedPod, Stage
from shoal.kube.kinds import CONFIG_MAP
from shoal.kube.objects import Key, uid_of
from shoal.operator.job_cache import JobCacheEntry
from shoal.operator.job_index import OBSERVED_POD, JobIndex
from shoal.operator.live_lookup import find
from shoal.operator.related_objects import RelatedObjectIndex


class JobObserver:
    """Of the jobs of one dialect."""

    def __init__(
        self,
        cluster: Cluster,
        dialect: Dialect,
        pods: JobIndex,
        run_owners: JobIndex | None,
        related: RelatedObjectIndex,
        rng: random.Random,
    ) -> None:
        self._cluster = cluster
        self._dialect = dialect
        self._run_owner = dialect.capability(RunOwner)
        self._pods = pods
        self._run_owners = run_owners
        self._related = related
        self._rng = rng

    def is_cached(self, uid: str) -> bool:
        """Whether an informer shows the object with that uid."""
        indexes = (self._pods, self._run_owners, self._related)
        return any(index is not None and index.name_of(uid) is not None for index in indexes)

    async def observe(self, key: Key, entry: JobCacheEntry) -> Observed:
        manifest, deleted = entry.manifest, entry.expectations.deleted_uids
        pods: list[ObservedPod] = []
        for pod in self._pods.of(key):
            # The result is kept beside the cached pod: for the same version and the same job it is the same.
            kept: tuple[str, ObservedPod | None] | None = pod.get(OBSERVED_POD)
            if kept is None or kept[0] != entry.uid:
                kept = pod[OBSERVED_POD] = (entry.uid, self._dialect.observe_pod(pod, manifest))
            if kept[1] is not None and kept[1].uid not in deleted:
                pods.append(kept[1])
        run_owner = None
        if self._run_owner is not None and self._run_owners is not None:
            place = Key(key.namespace, self._run_owner.name(manifest))
            if (found := self._run_owners.get(place)) is not None and uid_of(found) not in deleted:
                run_owner = self._run_owner.observe(found, manifest)
                if not run_owner.owned:
                    self._run_owners.await_end(place, key)
        related = self._related.of(key, manifest, deleted)
        observed = Observed(
            pods=tuple(pods),
            run_owner=run_owner,
            groups=related.groups,
            owned_objects=related.owned_objects,
            commands=related.commands,
            open_gates=related.open_gates,
            write_results=entry.expectations.begin_pass(entry.state),
            nonce=f"{self._rng.getrandbits(64):016x}",
        )
        if self._run_owner is None or run_owner is None or run_owner.leaving or not run_owner.owned:
            return observed
        if not entry.state.run.is_open or not is_pod_missing(entry.state, observed):
            return observed
        # Pods may be terminating because their run owner is, and its copy may be late. The end of the run must not
        # depend on which of two watches is faster, so a live read decides.
        found = await find(self._cluster, CONFIG_MAP, self._run_owner.name(manifest), key.namespace)
        live = self._run_owner.observe(found, manifest) if found is not None else None
        return replace(observed, run_owner=live)


def is_pod_missing(state: JobState, observed: Observed) -> bool:
    """Whether a pod the job state relies on is leaving or absent without a decision of the operator."""
    leaving = {pod.uid: pod.leaving for pod in observed.pods}
    return any(
        leaving.get(task.uid, True)
        for role in state.roles
        for task in role.tasks
        if task.uid is not None and task.outcome is None and Stage.PREPARING <= task.stage <= Stage.RUNNING
    )
