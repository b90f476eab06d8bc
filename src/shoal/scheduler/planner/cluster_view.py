"""The cluster as the planner sees it, kept up to date one change at a time.

`set_*` takes an object as it is now, `remove_*` forgets one; both cost what changed and nothing else. Objects may come
in any order: a pod before its node or its group waits for it here. Planning reads the view and leaves it as it was;
`assume` writes the plan into it before the watch does, so that no hole is given away twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby

from shoal.kube.objects import Key
from shoal.kube.quantity_format import Amounts
from shoal.scheduler.planner.disruption_budgets import DisruptionBudgets
from shoal.scheduler.planner.equivalence_classes import EquivalenceClass, EquivalenceClasses, workload_kind
from shoal.scheduler.planner.fragmentation import TypicalWorkload
from shoal.scheduler.planner.gang import LONE, Gang, lone_group
from shoal.scheduler.planner.gang_types import (
    COMPLETED,
    PENDING,
    HyperNode,
    NamespaceQuota,
    PlannerSettings,
    PodGroup,
    Queue,
)
from shoal.scheduler.planner.gpu_sharing import SharedDevices
from shoal.scheduler.planner.namespace_quota import NamespaceQuotas
from shoal.scheduler.planner.node_and_pod_types import BOUND, RELEASING, Node, Pod
from shoal.scheduler.planner.node_resources import NodeResources
from shoal.scheduler.planner.plan_types import Bind, Plan
from shoal.scheduler.planner.pod_affinity import AffinityIndex, has_rules
from shoal.scheduler.planner.resource_vectors import RequestTally, Vector
from shoal.scheduler.planner.topology import Topology


class QueueAccount:
    """What the groups of one queue hold and request."""

    def __init__(self) -> None:
        self.held = RequestTally()
        self.kept = RequestTally()  # what of it no other queue may reclaim: pods outside any group
        self.wanted = RequestTally()
        self.groups: dict[Key, Gang] = {}
        self.charged = 0  # of its groups: those whose pods are counted here
        self.priorities: dict[int, int] = {}  # of its groups, and how many have each

    def hold(self, gang: Gang, vector: Vector, count: int) -> None:
        self.held.add(vector, count)
        if not gang.is_reclaimable:
            self.kept.add(vector, count)

    def merge(self, gang: Gang, sign: int) -> None:
        self.held.merge(gang.held, sign)
        if not gang.is_reclaimable:
            self.kept.merge(gang.held, sign)
        self.wanted.merge(gang.wanted, sign)

    @property
    def allocated(self) -> Amounts:
        return self.held.amounts

    @property
    def asked(self) -> Amounts:
        return self.wanted.amounts


class ClusterView:
    def __init__(self, settings: PlannerSettings | None = None) -> None:
        self.settings = settings or PlannerSettings()
        self.resources = NodeResources()
        self.devices = SharedDevices(self.resources, self.settings.accelerators)
        self.workload = TypicalWorkload(self.settings.usual_pods)
        self.eq_classes = EquivalenceClasses(self.resources, self.settings, self.devices, self.workload)
        self.affinity = AffinityIndex(self.resources)
        self.topology = Topology(self.resources, self.settings.tiers)
        self.queues: dict[str, Queue] = {"default": Queue("default")}
        self.quotas = NamespaceQuotas()
        self.budgets = DisruptionBudgets()
        self.pods: dict[Key, Pod] = {}
        self.groups: dict[Key, Gang] = {}
        self._unsettled: dict[Key, Gang] = {}
        self._touched: dict[Key, Gang] = {}  # looked at again when the next plan is made
        self.accounts: dict[str, QueueAccount] = {}
        self.uncharged = QueueAccount()  # pods that occupy nodes and count against no queue
        self.reservations: dict[Key, tuple[str, ...]] = {}
        self.nominated: set[Key] = set()  # groups that a node is kept for
        self._pods_on: dict[str, dict[Key, Pod]] = {}
        self._shape_of: dict[Key, EquivalenceClass] = {}
        self._vector_of: dict[Key, Vector] = {}
        self._sharing = 0  # pods that request a share of a device

    # Nodes, queues and the rest

    def set_node(self, node: Node) -> None:
        fresh = node.name not in self.resources.rows
        row = self.resources.set_node(node)
        if self.devices.are_shared:
            self.devices.reset(row)
        if fresh or self.devices.are_shared:
            for pod in self._pods_on.get(node.name, {}).values():
                self._occupy(pod, row, 1, devices_only=not fresh)

    def remove_node(self, name: str) -> None:
        row = self.resources.rows.get(name)
        if row is not None:
            self.resources.remove_node(name)
            self.affinity.remove_node(row)
            if self.devices.are_shared:
                self.devices.reset(row)

    def set_queue(self, queue: Queue) -> None:
        self.queues[queue.name] = queue

    def remove_queue(self, name: str) -> None:
        self.queues.pop(name, None)

    def set_quota(self, key: Key, quota: NamespaceQuota) -> None:
        self.quotas.set(key, quota, ((pod, self._vector_of[each]) for each, pod in self.pods.items()))

    def remove_quota(self, key: Key) -> None:
        self.quotas.remove(key)

    def set_hypernode(self, domain: HyperNode) -> None:
        self.topology.set_hypernode(domain)

    def remove_hypernode(self, name: str) -> None:
        self.topology.remove_hypernode(name)

    # Groups

    def set_group(self, group: PodGroup) -> None:
        gang = self.groups.get(group.key)
        if gang is None:
            gang = self.groups[group.key] = Gang(group, known=True)
            self._open_account(gang)
        else:
            if (gang.group.queue, gang.group.priority) == (group.queue, group.priority):
                gang.group = group
            else:
                self._close_account(gang)
                gang.group = group
                self._open_account(gang)
            gang.known = True
        self._changed(gang)

    def remove_group(self, key: Key) -> None:
        """Its pods, if there still are any, wait for a group of that name."""
        gang = self.groups.get(key)
        if gang is None:
            return
        self._close_account(gang)
        gang.group, gang.known = PodGroup(key), False  # as if it had never been seen
        self._open_account(gang)
        self.reservations.pop(key, None)
        self.nominated.discard(key)
        gang.nominated.clear()
        self._changed(gang)
        self._drop_if_empty(gang)

    def _open_account(self, gang: Gang) -> None:
        account = self.accounts.setdefault(gang.group.queue, QueueAccount())
        account.groups[gang.key] = gang
        account.charged += gang.group.is_charged
        priority = gang.group.priority
        account.priorities[priority] = account.priorities.get(priority, 0) + 1
        self._account_of(gang).merge(gang, 1)

    def _close_account(self, gang: Gang) -> None:
        account = self.accounts[gang.group.queue]
        del account.groups[gang.key]
        account.charged -= gang.group.is_charged
        account.priorities[gang.group.priority] -= 1
        if not account.priorities[gang.group.priority]:
            del account.priorities[gang.group.priority]
        self._account_of(gang).merge(gang, -1)

    def _account_of(self, gang: Gang) -> QueueAccount:
        """Where its pods are counted; its turn it awaits in its queue either way."""
        return self.accounts[gang.group.queue] if gang.group.is_charged else self.uncharged

    def _drop_if_empty(self, gang: Gang) -> None:
        if gang.is_empty() and not gang.known:
            self._close_account(gang)
            del self.groups[gang.key]
            self._unsettled.pop(gang.key, None)
            self._touched.pop(gang.key, None)

    def _changed(self, gang: Gang) -> None:
        gang.changed()
        self._touched[gang.key] = gang

    @property
    def unsettled(self) -> dict[Key, Gang]:
        """The groups that a plan has to look at."""
        for gang in self._touched.values():
            self._settle(gang)
        self._touched.clear()
        return self._unsettled

    def _settle(self, gang: Gang) -> None:
        """Remember it for the next plan, unless nothing about it is open."""
        if gang.waiting:
            self._unsettled[gang.key] = gang
            return
        if gang.lone or not gang.known:
            self._unsettled.pop(gang.key, None)  # it has no phase to report
            return
        group = gang.group
        # A Pending group waits for admission even where it needs no pod at once (minMember 0).
        settled = group.phase is not PENDING and group.phase is gang.phase(unplaced=False)
        if settled and (gang.ready >= group.min_member or group.phase is COMPLETED):
            self._unsettled.pop(gang.key, None)
        else:
            self._unsettled[gang.key] = gang

    # Pods

    def set_pod(self, pod: Pod) -> None:
        known = self.pods.get(pod.key)
        self._index_pod(pod)
        if known is not None:
            self._remove(known, keep=pod)
            self._unindex_pod(known)
        self.pods[pod.key] = pod
        gang = self.gang_of(pod)
        place = gang.pods_in_state(pod)
        place[pod.key] = pod
        vector = self._vector_of[pod.key] = self.resources.vector(pod.requests)
        if self.quotas.namespaces:
            self.quotas.count(pod, vector, 1)
        account = self._account_of(gang)
        if pod.holds_node:
            self._pods_on.setdefault(pod.node, {})[pod.key] = pod
            row = self.resources.rows.get(pod.node)
            if row is not None:
                self._occupy(pod, row, 1)
            if pod.state is not RELEASING:
                gang.held.add(vector, 1)
                account.hold(gang, vector, 1)
        elif place is gang.waiting:
            self._shape_of.pop(pod.key, None)
            gang.wanted.add(vector, 1)
            account.wanted.add(vector, 1)
        self._changed(gang)

    def vector_of(self, pod: Pod) -> Vector:
        return self._vector_of[pod.key]

    def eq_class_of(self, pod: Pod) -> EquivalenceClass:
        """Of a waiting pod."""
        found = self._shape_of.get(pod.key)
        if found is None:
            found = self._shape_of[pod.key] = self.eq_classes.of(pod, self._vector_of[pod.key])
        return found

    def remove_pod(self, key: Key) -> None:
        pod = self.pods.pop(key, None)
        if pod is not None:
            self._remove(pod, keep=None)
            self._unindex_pod(pod)
            del self._vector_of[key]

    def pods_on(self, node: str) -> tuple[Pod, ...]:
        return tuple(self._pods_on.get(node, {}).values())

    def gang_of(self, pod: Pod) -> Gang:
        """The gang of the pod, as it is known; a pod without a group is one by itself."""
        key = pod.group or Key(pod.key.namespace, f"{LONE}{pod.key.name}")
        gang = self.groups.get(key)
        if gang is None:
            lone = pod.group is None
            group = lone_group(pod) if lone else PodGroup(key)
            gang = self.groups[key] = Gang(group, known=lone, lone=lone)
            self._open_account(gang)
        return gang

    def _remove(self, pod: Pod, *, keep: Pod | None) -> None:
        """Take the pod out everywhere; `keep` is what it becomes, whose group then stays."""
        gang = self.gang_of(pod)
        place = gang.pods_in_state(pod)
        del place[pod.key]
        vector = self._vector_of[pod.key]
        if self.quotas.namespaces:
            self.quotas.count(pod, vector, -1)
        account = self._account_of(gang)
        if pod.holds_node:
            if keep is None and not pod.evicted_by_controller:
                gang.deleted_pods += 1
            on = self._pods_on[pod.node]
            del on[pod.key]
            if not on:
                del self._pods_on[pod.node]
            row = self.resources.rows.get(pod.node)
            if row is not None:
                self._occupy(pod, row, -1)
            if pod.state is not RELEASING:
                gang.held.add(vector, -1)
                account.hold(gang, vector, -1)
        elif place is gang.waiting:
            self._shape_of.pop(pod.key, None)
            gang.wanted.add(vector, -1)
            account.wanted.add(vector, -1)
        if keep is None or keep.group != pod.group:
            gang.nominated.pop(pod.key, None)
            if gang.lone:
                gang.known = False
            self._changed(gang)
            self._drop_if_empty(gang)

    def _occupy(self, pod: Pod, row: int, sign: int, *, devices_only: bool = False) -> None:
        if self.devices.are_shared:
            self.devices.seat(pod, row, sign)
        if devices_only:
            return
        vector = self._vector_of[pod.key]
        self.resources.occupy(row, vector, sign)
        if self.affinity.has_any:
            self.affinity.add(pod, row, sign)
        if pod.state is RELEASING:
            self.resources.start_leaving(row, vector, sign)
        elif pod.is_critical:
            self.resources.fix(row, vector, sign)

    def _index_pod(self, pod: Pod) -> None:
        """What is to be known of all pods together once this one is among them."""
        if has_rules(pod):
            self.affinity.add_terms(pod, (other for on in self._pods_on.values() for other in on.values()))
        if pod.gpu_milli:
            self._sharing += 1
            if not self.devices.are_shared:
                self._share_devices()
        if self.devices.are_shared:
            self.workload.count_in(workload_kind(pod, self.settings.accelerators), 1)

    def _unindex_pod(self, pod: Pod) -> None:
        if has_rules(pod):
            self.affinity.remove_terms(pod)
        if self.devices.are_shared:
            self.workload.count_in(workload_kind(pod, self.settings.accelerators), -1)
        if pod.gpu_milli:
            self._sharing -= 1
            if not self._sharing:
                self.devices.end()
                self.workload.clear()
                self.resources.start_over()

    def _share_devices(self) -> None:
        rows = self.resources.rows
        self.devices.begin((rows[name], pod) for name in rows for pod in self._pods_on.get(name, {}).values())
        for pod in self.pods.values():
            self.workload.count_in(workload_kind(pod, self.settings.accelerators), 1)
        self.resources.start_over()

    # What was decided

    def assume(self, plan: Plan, now: float) -> None:
        """Write the plan's decisions in, as the cluster will show them soon."""
        for gang, binds in groupby(plan.binds, key=lambda bind: self.gang_of(self.pods[bind.pod])):
            self._bind_pods(gang, binds, now)
        for eviction in plan.evictions:
            self._start_terminating(self.pods[eviction.pod])
        for shrink in plan.shrinks:
            for eviction in shrink.evictions:
                self._start_terminating(self.pods[eviction.pod])
        for key in self.nominated & self.groups.keys():
            self.groups[key].nominated.clear()
        self.nominated.clear()
        for nomination in plan.nominations:
            gang = self.gang_of(self.pods[nomination.pod])
            gang.nominated[nomination.pod] = nomination.node
            self.nominated.add(gang.key)
        for result in plan.groups:
            known = self.groups.get(result.group)
            if known is not None and known.known and result.changes(known.group):
                self.set_group(result.applied_to(known.group))
        self.reservations = dict(plan.reservations)

    def _start_terminating(self, pod: Pod) -> None:
        if self.budgets:
            self.budgets.spend(pod)
        self.set_pod(replace(pod, state=RELEASING))

    def _bind_pods(self, gang: Gang, binds: Iterable[Bind], now: float) -> None:
        """What `set_pod` does for waiting pods that now have a node; done for every bind, so by the shortest way."""
        seated: dict[Vector, int] = {}
        rows = self.resources.rows
        for bind in binds:
            key, node = bind.pod, bind.node
            pod = gang.waiting.pop(key, None)
            if pod is None:
                continue  # the watch was quicker
            pod = pod.moved(node=node, state=BOUND, since=now, devices=bind.devices)
            self.pods[key] = gang.placed[key] = pod
            self._pods_on.setdefault(node, {})[key] = pod
            self._occupy(pod, rows[node], 1)
            self._shape_of.pop(key, None)
            vector = self._vector_of[key]
            seated[vector] = seated.get(vector, 0) + 1
        account = self._account_of(gang)
        for vector, count in seated.items():
            gang.wanted.add(vector, -count)
            account.wanted.add(vector, -count)
            gang.held.add(vector, count)
            account.hold(gang, vector, count)
        self._changed(gang)
