"""Informer event handlers: they write watch events into the planner's view as they arrive.

The view is ahead of the watches: a pod that is being bound is on its node already, one that is being evicted leaves. An
event from before that changes neither; one that shows it, or a rejected request, ends the assumption. What was written
to a group (its phase, since when it is in the queue) is ours: watches show it late, and no other component decides it.
An object that cannot be read is kept out with a message instead of blocking all others. Where another scheduler admits
groups, theirs are known here as far as their pods are on nodes, so that their pods are not taken for spare ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from shoal.cluster.clock import Clock
from shoal.cluster.informer import Change
from shoal.kube.errors import ApiError
from shoal.kube.kinds import POD
from shoal.kube.messages import Message
from shoal.kube.objects import Key, Obj, is_terminating, key_of, labels_of, uid_of
from shoal.logs import Logger
from shoal.scheduler.cache.gang_tracker import GangTracker
from shoal.scheduler.cache.volume_claims import VolumeClaims
from shoal.scheduler.planner.from_objects import affinity_terms, group_from, pod_from, queue_from, state_of
from shoal.scheduler.planner.gang_types import PodGroup, PodGroupPhase, Queue
from shoal.scheduler.planner.message_parts import waiting
from shoal.scheduler.planner.plan_types import Bind, Plan
from shoal.scheduler.planner.snapshot_types import Pod, PodState, node_from
from shoal.scheduler.scope import SchedulerScope

if TYPE_CHECKING:
    from shoal.scheduler.planner.cache import ClusterView

log = Logger(__name__)

MAX_AMOUNT = 1 << 60  # thousandths; the planner counts in 64 bits, and no cluster has so much of anything
READ_OF_METADATA = ("uid", "labels", "annotations", "ownerReferences")
UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, ApiError)  # an ApiError of a selector


@dataclass(frozen=True, slots=True)
class Assumed:
    uid: str
    node: str
    since: float
    devices: tuple[int, ...]


class CacheUpdater:
    def __init__(
        self,
        view: ClusterView,
        scope: SchedulerScope,
        clock: Clock,
        *,
        on_news: Callable[[], None],
        on_group: Callable[[Key], None] = lambda _: None,
        on_started: Callable[[Key], None] = lambda _: None,
        on_queue: Callable[[str], None] = lambda _: None,
        on_stale: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_news`: another plan may come out differently. `on_group`: pods of the group look different.
        `on_stale`: pods are to be read again (`read_again`), and then perhaps it may.
        `on_started`: the last of its binds came through. `on_queue`: a queue may hold another amount."""
        self.view = view
        self.claims = VolumeClaims(lambda node: node in view.resources.rows)
        self.unreadable: dict[Key, Message] = {}  # groups, and why
        self._scope = scope
        self._clock = clock
        self._on_news = on_news
        self._on_group = on_group
        self._on_queue = on_queue
        self._on_stale = on_stale
        self._groups: dict[Key, Obj] = {}  # where another scheduler admits those that none of our pods names
        self._named: set[Key] = set()  # by our pods
        self._classes: dict[str, Obj] = {}
        self._namespace_labels: dict[str, Mapping[str, str]] = {}
        self._selects_namespaces: set[Key] = set()  # pods with a rule about namespaces with certain labels
        self._binding: dict[Key, Assumed] = {}
        self._starting = GangTracker(view, on_started)
        self._leaving: dict[Key, str] = {}  # uids of pods that are being evicted, or reclaimed
        self._kept: dict[Key, str] = {}  # of pods that the server would not let go

    @property
    def now(self) -> float:
        return self._clock.now().timestamp()

    # Nodes, queues, priorities

    def node_changed(self, change: Change) -> None:
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
        self._on_news()

    def queue_changed(self, change: Change) -> None:
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
        self._on_news()

    def queue_updated(self, queue: Queue) -> None:
        """Our own update, applied at once: no group is admitted to a closed queue because the watch is late."""
        if queue.name in self.view.queues:
            self.view.set_queue(queue)
            self._on_news()

    def class_changed(self, change: Change, groups: Mapping[Key, Obj]) -> None:
        """A class may come after the groups that name it."""
        if change.new is None:
            self._classes.pop(change.key.name, None)
        else:
            self._classes[change.key.name] = change.new
        for key, obj in groups.items():
            gang = self.view.groups.get(key)
            if gang is not None and gang.known and gang.group.priority != self._priority(obj):
                self._read_group(key, obj)

    def _priority(self, group: Obj) -> int:
        name = (group.get("spec") or {}).get("priorityClassName")
        found = self._classes.get(name or "") or next((c for c in self._classes.values() if c.get("globalDefault")), {})
        return int(found.get("value") or 0)

    def namespace_changed(self, change: Change, pods: Mapping[Key, Obj]) -> None:
        """A namespace may get the labels that a rule of a pod selects after the pod was read."""
        name = change.key.name
        before = self._namespace_labels.pop(name, None)
        labels = labels_of(change.new) if change.new is not None else None
        if labels is not None:
            self._namespace_labels[name] = labels
        if before == labels:
            return
        for key in sorted(self._selects_namespaces & self.view.pods.keys() & pods.keys()):
            pod = self.view.pods[key]
            if uid_of(pods[key]) != pod.uid or not any(
                term.selection_changes(name, labels) for term in (*pod.together, *pod.apart)
            ):
                continue
            together, apart = affinity_terms(pods[key], self._namespace_labels)
            self.view.set_pod(replace(pod, together=together, apart=apart))
            self._on_news()

    # Groups

    def group_changed(self, change: Change) -> None:
        key, obj = change.key, change.new
        if obj is None or is_terminating(obj):
            self._group_deleted(key)
        elif self._scope.all_groups:
            self._read_group(key, obj)
        else:
            self._groups[key] = obj
            self._sync_group(key, fresh=True)

    def _group_deleted(self, key: Key) -> None:
        self._groups.pop(key, None)
        if self.unreadable.pop(key, None) is not None:
            self._on_news()  # its pods report that it cannot be read
        gang = self.view.groups.get(key)
        if gang is not None and gang.known:
            self._on_queue(gang.group.queue)
            self.view.remove_group(key)
            self._on_news()
        self._remove_group(key)

    def _remove_group(self, key: Key) -> None:
        self._starting.group_gone(key)
        if key not in self.view.groups:
            self._named.discard(key)

    def is_ours(self, key: Key) -> bool:
        """Whether this scheduler admits the group and writes its status."""
        return self._scope.all_groups or key in self._named

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
                self._on_news()
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
            self._on_news()

    def _with_history(self, group: PodGroup, known: PodGroup | None) -> PodGroup:
        """With its history. One that was let in by an earlier life of ours has its time in the queue once more."""
        if not self.is_ours(group.key):  # its pods are on nodes, so it has been admitted
            return replace(
                group, ran=True, phase=PodGroupPhase.INQUEUE if group.phase is PodGroupPhase.PENDING else group.phase
            )
        if known is None:
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

    def pod_changed(self, change: Change) -> None:
        obj, known = change.new, self.view.pods.get(change.key)
        if known is not None and (obj is None or known.uid != uid_of(obj)):
            self._remove(known)
            known = None
        if obj is None:
            return
        pod = self._assumed(self._as_before(change, known) or self._read_pod(obj), known)
        if pod.group is not None:
            self._add_to_group(pod.group, obj)
        if pod != known:
            self.view.set_pod(pod)
            self._on_queue(self.view.gang_of(pod).group.queue)
        if known is not None and known.gated and not pod.gated:
            self._gates_removed(pod)
        if pod.group is not None:
            if pod != known:
                self._sync_group(pod.group)
                self._on_group(pod.group)
            if obj["spec"].get("nodeName"):
                self._starting.bind_finished(pod.group, pod.key)
        if obj["spec"].get("nodeName"):
            self.claims.remove_pod(pod.key)
        if known is None or (pod != known and not _is_irrelevant_change(known, pod)):
            self._on_news()

    def _gates_removed(self, pod: Pod) -> None:
        """The group's time in the queue starts now: before, it could not use it."""
        gang = self.view.gang_of(pod)
        if gang.known and not gang.lone and gang.group.inqueue_since is not None:
            self.view.set_group(replace(gang.group, inqueue_since=self.now))

    def _add_to_group(self, group: Key, obj: Obj) -> None:
        if not self._scope.is_responsible_for(obj):
            self._starting.placed_by_other(group)
        elif not self._scope.all_groups:
            self._named.add(group)

    def is_starting(self, key: Key) -> bool:
        """Whether pods of the gang are being bound that never were together before."""
        return key in self._starting

    def is_foreign(self, key: Key) -> bool:
        """Whether another scheduler places pods of the gang."""
        return self._starting.is_foreign(key)

    def claim_changed(self, change: Change) -> None:
        """A claim, a volume or a class of them."""
        self.claims.changed(change)
        if self.claims.is_stale:
            self._on_stale()

    def read_again(self, pods: Mapping[Key, Obj]) -> None:
        """Read pods again that may find other volumes than before.
        A pod that is being bound has its own, or is read again when that fails."""
        for key in self.claims.take_stale():
            if key in pods and key not in self._binding:
                self.pod_changed(Change(POD, key, None, pods[key]))

    def _as_before(self, change: Change, known: Pod | None) -> Pod | None:
        """Nearly every event is about the node or the state of a pod, and reading all of it takes far longer."""
        old, new = change.old, change.new
        if known is None or old is None or new is None or known.blocked or known.gated:
            return None
        if any(old["metadata"].get(part) != new["metadata"].get(part) for part in READ_OF_METADATA):
            return None
        before, after = old["spec"], new["spec"]
        node = after.get("nodeName") or ""
        if {**before, "nodeName": node} != {**after, "nodeName": node}:
            return None
        return known.moved(node=node, state=state_of(new), since=known.since if node else 0.0)

    def _read_pod(self, obj: Obj) -> Pod:
        changes: dict[str, Any] = {}
        try:
            pod = pod_from(obj, self._namespace_labels)
        except UNREADABLE as wrong:
            log.warning("pod cannot be read", pod=str(key_of(obj)), error=str(wrong))
            pod = replace(pod_from(_minimal_pod(obj)), blocked=Message("Pod.Unreadable", {"error": str(wrong)}))
        if any(term.namespace_selector.requirements for term in (*pod.together, *pod.apart)):
            self._selects_namespaces.add(pod.key)
        if pod.group is None and (implicit := self._scope.implicit_group(obj)) is not None:
            changes["group"] = implicit
        if any(amount > MAX_AMOUNT or amount < 0 for amount in pod.requests.values()):
            changes["requests"] = bounded(pod.requests)
        if self._kept and self._kept.get(pod.key) == pod.uid:
            changes["protected"] = True
        if not self._scope.is_responsible_for(obj):
            changes["preemptable"] = False  # another scheduler placed it and would place its successor
        if not pod.node:
            if not self._scope.is_responsible_for(obj):
                changes["gated"] = True
            blocked, terms = self.claims.of(obj)
            if (blocked or terms) and not pod.blocked:
                changes["blocked"], changes["volume_terms"] = blocked, terms
        return replace(pod, **changes) if changes else pod

    def _assumed(self, pod: Pod, known: Pod | None) -> Pod:
        """The pod as it is, ahead of what the event shows."""
        binding = self._binding.get(pod.key)
        if binding is not None and (pod.node or pod.state is not PodState.PENDING or binding.uid != pod.uid):
            del self._binding[pod.key]
        elif binding is not None:
            pod = pod.moved(node=binding.node, state=PodState.BOUND, since=binding.since, devices=binding.devices)
        if not pod.node:
            return pod
        if known is not None and known.node == pod.node:
            pod = _since(pod, known.since)
        elif known is None and not self._has_run(pod):
            pod = _since(pod, self.now)  # its gang has the whole hold time from the moment we see it
        if self._leaving.get(pod.key) == pod.uid and pod.state in (PodState.BOUND, PodState.RUNNING):
            pod = replace(pod, state=PodState.RELEASING)
        return pod

    def _has_run(self, pod: Pod) -> bool:
        return pod.group is None or self._starting.has_run(pod.group)

    def _remove(self, pod: Pod) -> None:
        self._binding.pop(pod.key, None)
        self._leaving.pop(pod.key, None)
        self._kept.pop(pod.key, None)
        self._selects_namespaces.discard(pod.key)
        self.view.budgets.release(pod.key)
        self.claims.remove_pod(pod.key)
        self._on_queue(self.view.gang_of(pod).group.queue)
        self.view.remove_pod(pod.key)
        if pod.group is not None:
            self._bind_failed(pod.group, pod.key)
            self._on_group(pod.group)
        if pod.node or pod.group is not None or pod.state is PodState.PENDING:  # others may stand behind it
            self._on_news()

    # What was decided

    def assume(self, made: Plan) -> None:
        now = self.now
        for bind in made.binds:
            self._binding[bind.pod] = Assumed(bind.uid, bind.node, now, bind.devices)
        for eviction in made.evictions:
            self._leaving[eviction.pod] = eviction.uid
        for shrink in made.shrinks:
            for key in shrink.pods:
                self._leaving[key] = self.view.pods[key].uid
        self._starting.assume(made, now)

    def not_bound(self, bind: Bind, seen: Obj | None, *, for_good: bool) -> None:
        """The request failed. `for_good`: the pod was deleted or placed by another scheduler, as a watch will show."""
        assumed = self._binding.get(bind.pod)
        if assumed is None or assumed.uid != bind.uid:
            return
        del self._binding[bind.pod]
        group = self.view.pods[bind.pod].group
        if for_good or seen is None or uid_of(seen) != bind.uid:
            self.view.remove_pod(bind.pod)
            self._selects_namespaces.discard(bind.pod)
            self._on_news()
        else:
            self.reread(seen)
        if group is not None:
            self._bind_failed(group, bind.pod)

    def _bind_failed(self, group: Key, pod: Key) -> None:
        self._starting.bind_finished(group, pod)
        self._sync_group(group)
        if group not in self.view.groups:
            self._remove_group(group)

    def eviction_failed(self, key: Key, uid: str, seen: Obj | None) -> None:
        """It could not be evicted."""
        if self._leaving.get(key) == uid:
            del self._leaving[key]
            self._cancel_eviction(key, seen)

    def budget_refused(self, key: Key, uid: str, seen: Obj | None, *, nothing_left: bool) -> None:
        """The server keeps it: no victim until its budget allows more, or `budget_released` is called.
        `nothing_left`: nor is any other pod of its budget."""
        if self._leaving.get(key) == uid and seen is not None:
            self._kept[key] = uid
            self.eviction_failed(key, uid, seen)
            if nothing_left and (known := self.view.pods.get(key)) is not None:
                self.view.budgets.exhaust(known)

    def budget_released(self, key: Key, uid: str, seen: Obj | None) -> None:
        """Its eviction may be requested again."""
        if self._kept.get(key) == uid:
            del self._kept[key]
            self._cancel_eviction(key, seen)

    def _cancel_eviction(self, key: Key, seen: Obj | None) -> None:
        self.view.budgets.release(key)
        if seen is not None:
            self.reread(seen)

    def refused_in(self, namespace: str) -> list[tuple[Key, str]]:
        return [(key, uid) for key, uid in self._kept.items() if key.namespace == namespace]

    def reread(self, obj: Obj, *, quietly: bool = False) -> None:
        """`quietly`: that is no reason for another plan."""
        key = key_of(obj)
        known = self.view.pods.get(key)
        if known is not None and known.uid == uid_of(obj):
            self.view.set_pod(self._assumed(self._read_pod(obj), None))
            if not quietly:
                self._on_news()


def bounded(amounts: Mapping[str, int]) -> dict[str, int]:
    return {name: min(max(amount, 0), MAX_AMOUNT) for name, amount in amounts.items()}


def validated_group(group: PodGroup) -> PodGroup:
    """The group within what can be counted; ValueError where it makes no sense."""
    if group.min_resources is None:
        return group
    for name, amount in sorted(group.min_resources.items()):
        if amount < 0:
            raise ValueError(f"minResources of {name} is below zero; give zero or more")
    return replace(group, min_resources=bounded(group.min_resources))


def _minimal_pod(pod: Obj) -> Obj:
    """Who it is and where it sits."""
    meta, spec = pod["metadata"], pod["spec"]
    return {
        "metadata": {name: meta[name] for name in ("name", "namespace", "uid") if name in meta},
        "spec": {"nodeName": spec.get("nodeName"), "containers": []},
        "status": {"phase": (pod.get("status") or {}).get("phase")},
    }


def _since(pod: Pod, since: float) -> Pod:
    return pod.moved(node=pod.node, state=pod.state, since=since, devices=pod.devices)


def _is_irrelevant_change(before: Pod, after: Pod) -> bool:
    """It sits where it sat and is what it was: that its processes have started changes no plan."""
    sits = (PodState.BOUND, PodState.RUNNING)
    if before.state not in sits or after.state not in sits:
        return False
    return before == _since(
        after.moved(node=after.node, state=before.state, since=before.since, devices=before.devices), before.since
    )
