"""The cache of the scheduler: events and the outcomes of requests, applied to the planner's view in their order.

The view is ahead of the watches: a pod that is being bound is on its node already, one that is being evicted leaves. An
event from before that changes neither; one that shows it, or a rejected request, ends the assumption. What was written
to a group (its phase, since when it is in the queue) is not read back: watches show it late, and no other component
decides it.
An object that cannot be read is kept out with a message instead of blocking all others. Where another scheduler admits
groups, theirs are known here as far as their pods are on nodes, so that their pods are not taken for spare ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from shoal.cluster.clock import Clock
from shoal.cluster.informer import Change
from shoal.kube.kinds import (
    NAMESPACE,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    POD_DISRUPTION_BUDGET,
    PRIORITY_CLASS,
    RESOURCE_QUOTA,
    STORAGE_CLASS,
)
from shoal.kube.messages import Message
from shoal.kube.objects import Key, Obj, is_terminating, labels_of, uid_of
from shoal.logs import Logger
from shoal.scheduler.api.hypernodes import HYPER_NODE
from shoal.scheduler.api.pod_groups import POD_GROUP, QUEUE
from shoal.scheduler.cache.assumed_pods import AssumedPods
from shoal.scheduler.cache.gang_tracker import GangTracker
from shoal.scheduler.cache.hypernode_domains import HyperNodeResolver
from shoal.scheduler.cache.pod_reader import UNREADABLE, PodReader, bounded, moved_pod, only_started, with_since
from shoal.scheduler.cache.quotas_and_budgets import LimitsUpdater
from shoal.scheduler.cache.volume_claims import VolumeClaims
from shoal.scheduler.channels import (
    BindFailed,
    CacheChanges,
    ClaimFailed,
    ClaimRetry,
    ClaimsReleased,
    CycleDue,
    Decisions,
    Event,
    EvictionFailed,
    EvictionRefused,
    EvictionRetry,
    GangStarted,
    Outcome,
    QueueUpdated,
)
from shoal.scheduler.planner.from_objects import group_from, queue_from
from shoal.scheduler.planner.gang_types import PodGroup, PodGroupPhase
from shoal.scheduler.planner.message_parts import waiting
from shoal.scheduler.planner.node_and_pod_types import Pod, PodState, node_from
from shoal.scheduler.planner.plan_types import Plan
from shoal.scheduler.scope import SchedulerScope

if TYPE_CHECKING:
    from shoal.scheduler.planner.cluster_view import ClusterView

log = Logger(__name__)


class SchedulerCache:
    """`apply`, `take_changes` and `assume` are its interface; everything else that is public is for reading."""

    def __init__(
        self,
        view: ClusterView,
        scope: SchedulerScope,
        clock: Clock,
        *,
        pods: Mapping[Key, Obj],
        groups: Mapping[Key, Obj],
    ) -> None:
        """`pods` and `groups` are the objects that the informers have; they may be ahead of the events."""
        self.view = view
        self.claims = VolumeClaims(lambda node: node in view.resources.rows)
        self.unreadable: dict[Key, Message] = {}  # groups, and why
        self.needs_cycle = False  # another plan may come out differently
        self._scope = scope
        self._clock = clock
        self._pods = pods
        self._group_objects = groups
        self._limits = LimitsUpdater(view)
        self._hypernodes = HyperNodeResolver(view)
        self._starting = GangTracker(view)
        self._reader = PodReader(scope, self.claims)
        self._assumed = AssumedPods()
        self._changes = CacheChanges()
        self._groups: dict[Key, Obj] = {}  # where another scheduler admits those that none of our pods names
        self._named: set[Key] = set()  # by our pods
        self._classes: dict[str, Obj] = {}
        self._handlers: dict[str, Callable[[Change], None]] = {
            POD.kind: self._pod_changed,
            NODE.kind: self._node_changed,
            POD_GROUP.kind: self._group_changed,
            QUEUE.kind: self._queue_changed,
            PRIORITY_CLASS.kind: self._class_changed,
            NAMESPACE.kind: self._namespace_changed,
            HYPER_NODE.kind: self._hypernodes.changed,
            RESOURCE_QUOTA.kind: self._quota_changed,
            POD_DISRUPTION_BUDGET.kind: self._budget_changed,
            STORAGE_CLASS.kind: self.claims.changed,
            PERSISTENT_VOLUME.kind: self.claims.changed,
            PERSISTENT_VOLUME_CLAIM.kind: self.claims.changed,
        }

    @property
    def now(self) -> float:
        return self._clock.now().timestamp()

    # The interface: events in, changes out, decisions in

    def apply(self, events: Iterable[Event]) -> None:
        for event in events:
            try:
                if isinstance(event, Change):
                    self._changes.objects.append(event)
                    if (handler := self._handlers.get(event.kind.kind)) is not None:
                        handler(event)
                else:
                    self._apply_outcome(event)
            except Exception:
                # One event of many: the others must be applied all the same.
                log.exception("event could not be applied", kind=type(event).__name__)
        # Pods that may find other volumes than before are read once after all events. A pod that is being bound has
        # its volumes, or is read again when that fails.
        for key in self.claims.take_stale():
            if key in self._pods and key not in self._assumed.binds:
                self._pod_changed(Change(POD, key, None, self._pods[key]))
        if self._hypernodes.update_view():
            self.needs_cycle = True

    def take_changes(self) -> CacheChanges:
        """What has changed since the last call."""
        for key in self._starting.started:
            gang = self.view.groups.get(key)
            if gang is not None:
                seconds = None if self._starting.is_foreign(key) else self.now - gang.group.created
                self._changes.started.append(GangStarted(key, seconds))
        self._starting.started.clear()
        taken, self._changes = self._changes, CacheChanges()
        return taken

    def assume(self, decisions: Decisions) -> None:
        """Write the decisions in, as the cluster will show them soon."""
        self.assume_plan(decisions.plan)
        for volumes in decisions.volumes:
            self.claims.begin(volumes.choices)

    def assume_plan(self, made: Plan) -> None:
        self._assumed.assume(made, self.now)
        self._starting.assume(made, self.now)

    def is_ours(self, key: Key) -> bool:
        """Whether this scheduler admits the group and writes its status."""
        return self._scope.all_groups or key in self._named

    def is_starting(self, key: Key) -> bool:
        """Whether pods of the gang are being bound that never were together before."""
        return key in self._starting

    # Nodes, queues, priorities, limits

    def _node_changed(self, change: Change) -> None:
        self._update_node(change)
        self._hypernodes.node_changed(change)
        if change.old is None or change.new is None:
            self.reread(self.claims.selected_on(change.key.name))

    def _update_node(self, change: Change) -> None:
        name = change.key.name
        if change.new is None:
            self.view.remove_node(name)
        else:
            try:
                node = node_from(change.new)
            except UNREADABLE as wrong:
                log.warning("node cannot be read and stays as it was", node=name, error=str(wrong))
                return
            row = self.view.resources.rows.get(name)
            if row is not None and self.view.resources.nodes[row] == node:
                return  # a heartbeat changes nothing here
            self.view.set_node(replace(node, allocatable=bounded(node.allocatable)))
        self.needs_cycle = True

    def _queue_changed(self, change: Change) -> None:
        name = change.key.name
        if change.new is None:
            self.view.remove_queue(name)
        else:
            try:
                queue = queue_from(change.new)
            except UNREADABLE as wrong:
                log.warning("queue cannot be read and stays as it was", queue=name, error=str(wrong))
                return
            queue = replace(
                queue,
                capability=bounded(queue.capability),
                deserved=bounded(queue.deserved),
                guarantee=bounded(queue.guarantee),
            )
            if self.view.queues.get(name) == queue:
                return
            self.view.set_queue(queue)
        self.needs_cycle = True

    def _class_changed(self, change: Change) -> None:
        """A class may come after the groups that name it."""
        if change.new is None:
            self._classes.pop(change.key.name, None)
        else:
            self._classes[change.key.name] = change.new
        for key, obj in self._group_objects.items():
            gang = self.view.groups.get(key)
            if gang is not None and gang.known and gang.group.priority != self._priority(obj):
                self._read_group(key, obj)

    def _priority(self, group: Obj) -> int:
        name = (group.get("spec") or {}).get("priorityClassName")
        found = self._classes.get(name or "") or next((c for c in self._classes.values() if c.get("globalDefault")), {})
        return int(found.get("value") or 0)

    def _namespace_changed(self, change: Change) -> None:
        """A namespace may get the labels that a rule of a pod selects after the pod was read."""
        labels = labels_of(change.new) if change.new is not None else None
        if not self._reader.set_namespace(change.key.name, labels):
            return
        for key in sorted(self._reader.selects_namespaces & self.view.pods.keys() & self._pods.keys()):
            pod, obj = self.view.pods[key], self._pods[key]
            if uid_of(obj) == pod.uid and any(
                term.selection_changes(change.key.name, labels) for term in (*pod.together, *pod.apart)
            ):
                together, apart = self._reader.affinity_terms(obj)
                self.view.set_pod(replace(pod, together=together, apart=apart))
                self.needs_cycle = True

    def _quota_changed(self, change: Change) -> None:
        if self._limits.quota_changed(change):
            self.needs_cycle = True

    def _budget_changed(self, change: Change) -> None:
        if not self._limits.budget_changed(change):
            return
        for key, uid in list(self._reader.protected.items()):
            if key.namespace == change.key.namespace:
                self._apply_outcome(EvictionRetry(key, uid))
        self.needs_cycle = True

    # Groups

    def _group_changed(self, change: Change) -> None:
        key, obj = change.key, change.new
        if obj is not None and not is_terminating(obj):
            if self._scope.all_groups:
                self._read_group(key, obj)
            else:
                self._groups[key] = obj
                self._sync_group(key, fresh=True)
            return
        self._groups.pop(key, None)
        if self.unreadable.pop(key, None) is not None:
            self.needs_cycle = True  # its pods report that it cannot be read
        gang = self.view.groups.get(key)
        if gang is not None and gang.known:
            self._changes.queues[gang.group.queue] = None
            self.view.remove_group(key)
            self.needs_cycle = True
        self._remove_group(key)

    def _remove_group(self, key: Key) -> None:
        self._starting.group_gone(key)
        if key not in self.view.groups:
            self._named.discard(key)

    def _sync_group(self, key: Key, *, fresh: bool = False) -> None:
        """Add it to the view, or remove it. `fresh`: its event has just arrived."""
        obj = self._groups.get(key)
        if obj is None:
            return
        gang = self.view.groups.get(key)
        is_shown = gang is not None and gang.known
        if key not in self._named and (gang is None or not gang.placed):
            if is_shown:
                self.view.remove_group(key)
        elif fresh or not is_shown:
            self._read_group(key, obj)

    def _read_group(self, key: Key, obj: Obj) -> None:
        try:
            group = validated_group(group_from(obj, priority=self._priority(obj)))
        except UNREADABLE as wrong:
            why = waiting(Message("Group.Unreadable", {"group": key.name, "error": str(wrong)}))
            if self.is_ours(key) and self.unreadable.get(key) != why:
                self.unreadable[key] = why
                self.needs_cycle = True
            self.view.remove_group(key)
            return
        self.unreadable.pop(key, None)
        gang = self.view.groups.get(key)
        known = gang.group if gang is not None and gang.known else None
        if known is not None and known.uid != group.uid:
            self.view.remove_group(key)
            known = None
        group = self._with_history(group, known)
        if group != known:
            self.view.set_group(group)
            self._starting.check_started(key)
            self.needs_cycle = True

    def _with_history(self, group: PodGroup, known: PodGroup | None) -> PodGroup:
        """The group with what this scheduler remembers of it, or can conclude."""
        if not self.is_ours(group.key):  # its pods are on nodes, so it has been admitted
            return replace(
                group, ran=True, phase=PodGroupPhase.INQUEUE if group.phase is PodGroupPhase.PENDING else group.phase
            )
        if known is None:
            # Admitted by an earlier process: its time in the queue starts again, because its start was not recorded.
            if group.phase is PodGroupPhase.INQUEUE:
                group = replace(group, inqueue_since=self.now)
            return replace(group, ran=True) if self._starting.is_foreign(group.key) else group
        return replace(
            group,
            phase=known.phase,
            inqueue_since=known.inqueue_since,
            not_before=known.not_before,
            timeouts=known.timeouts,
            ran=known.ran,
        )

    # Pods

    def _pod_changed(self, change: Change) -> None:
        obj, known = change.new, self.view.pods.get(change.key)
        if known is not None and (obj is None or known.uid != uid_of(obj)):
            self._remove_pod(known)
            known = None
        if obj is None:
            return
        pod = self._assumed_pod(moved_pod(known, change) or self._reader.read(obj), known)
        if pod.group is not None:
            if not self._scope.is_responsible_for(obj):
                self._starting.placed_by_other(pod.group)
            elif not self._scope.all_groups:
                self._named.add(pod.group)
        if pod != known:
            self.view.set_pod(pod)
            self._changes.queues[self.view.gang_of(pod).group.queue] = None
        if known is not None and known.gated and not pod.gated:
            gang = self.view.gang_of(pod)
            if gang.known and not gang.lone and gang.group.inqueue_since is not None:
                # The group's time in the queue starts now: before, it could not use it.
                self.view.set_group(replace(gang.group, inqueue_since=self.now))
        if pod.group is not None:
            if pod != known:
                self._sync_group(pod.group)
                self._changes.groups[pod.group] = None
            if obj["spec"].get("nodeName"):
                self._starting.bind_finished(pod.group, pod.key)
        if obj["spec"].get("nodeName"):
            self.claims.remove_pod(pod.key)
        if known is None or (pod != known and not only_started(known, pod)):
            self.needs_cycle = True

    def _assumed_pod(self, pod: Pod, known: Pod | None) -> Pod:
        """The pod as it is, ahead of what the event shows."""
        pod = self._assumed.bound(pod)
        if not pod.node:
            return pod
        if known is not None and known.node == pod.node:
            pod = with_since(pod, known.since)
        elif known is None and pod.group is not None and not self._starting.has_run(pod.group):
            pod = with_since(pod, self.now)  # its gang has the whole hold time from the moment it is seen
        return self._assumed.releasing(pod)

    def _remove_pod(self, pod: Pod) -> None:
        self._assumed.forget(pod.key)
        self._reader.forget(pod.key)
        self.view.budgets.release(pod.key)
        self.claims.remove_pod(pod.key)
        self._changes.queues[self.view.gang_of(pod).group.queue] = None
        self.view.remove_pod(pod.key)
        if pod.group is not None:
            self._bind_finished(pod.group, pod.key)
            self._changes.groups[pod.group] = None
        if pod.node or pod.group is not None or pod.state is PodState.PENDING:  # others may stand behind it
            self.needs_cycle = True

    def _bind_finished(self, group: Key, pod: Key) -> None:
        """The pod is not bound, and will not be."""
        self._starting.bind_finished(group, pod)
        self._sync_group(group)
        if group not in self.view.groups:
            self._remove_group(group)

    def reread(self, pods: Iterable[Key], *, quietly: bool = False) -> None:
        """Read pods again from their objects. `quietly`: that is no reason for another plan."""
        for key in pods:
            obj, known = self._pods.get(key), self.view.pods.get(key)
            if obj is not None and known is not None and known.uid == uid_of(obj):
                self.view.set_pod(self._assumed_pod(self._reader.read(obj), None))
                if not quietly:
                    self.needs_cycle = True

    # What became of requests

    def _apply_outcome(self, outcome: Outcome | CycleDue) -> None:
        match outcome:
            case BindFailed():
                self._bind_failed(outcome)
            case EvictionFailed(key, uid):
                if self._assumed.cancel_eviction(key, uid):
                    self._cancel_eviction(key)
            case EvictionRefused(key, uid, nothing_left):
                # No victim until its budget allows more, or the time for a retry has come.
                if key in self._pods and self._assumed.cancel_eviction(key, uid):
                    self._reader.protected[key] = uid
                    self._cancel_eviction(key)
                    if nothing_left and (known := self.view.pods.get(key)) is not None:
                        self.view.budgets.exhaust(known)
            case EvictionRetry(key, uid):
                if self._reader.protected.get(key) == uid:
                    del self._reader.protected[key]
                    self._cancel_eviction(key)
            case QueueUpdated(queue):
                if queue.name in self.view.queues:
                    self.view.set_queue(queue)
                    self.needs_cycle = True
            case ClaimFailed(claim, error):
                self.claims.back_off(claim, error)
            case ClaimRetry(claim):
                self.reread(self.claims.try_again(claim))
            case ClaimsReleased(claims):
                self.claims.end(claims)
            case CycleDue():
                self.needs_cycle = True

    def _bind_failed(self, failed: BindFailed) -> None:
        bind, seen = failed.bind, self._pods.get(failed.bind.pod)
        if not self._assumed.cancel_bind(bind):
            return
        group = self.view.pods[bind.pod].group
        if failed.for_good or seen is None or uid_of(seen) != bind.uid:
            self.view.remove_pod(bind.pod)
            self._reader.selects_namespaces.discard(bind.pod)
            self.needs_cycle = True
        else:
            self.reread([bind.pod])
        if group is not None:
            self._bind_finished(group, bind.pod)

    def _cancel_eviction(self, key: Key) -> None:
        self.view.budgets.release(key)
        self.reread([key])


def validated_group(group: PodGroup) -> PodGroup:
    """The group within what can be counted; ValueError where it makes no sense."""
    if group.min_resources is None:
        return group
    for name, amount in sorted(group.min_resources.items()):
        if amount < 0:
            raise ValueError(f"minResources of {name} is below zero; give zero or more")
    return replace(group, min_resources=bounded(group.min_resources))
