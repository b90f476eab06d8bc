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
from shoal.scheduler.planner.disruption_budgets import Budgets
from shoal.scheduler.planner.equivalence_classes import Shape, Shapes, usual
from shoal.scheduler.planner.fragmentation import Habits
from shoal.scheduler.planner.gang import LONE, Members, lone_group
from shoal.scheduler.planner.gang_types import COMPLETED, PENDING, Group, HyperNode, Queue, Quota, Settings
from shoal.scheduler.planner.gpu_sharing import Devices
from shoal.scheduler.planner.namespace_quota import Quotas
from shoal.scheduler.planner.node_resources import Room
from shoal.scheduler.planner.plan_types import Bind, Plan
from shoal.scheduler.planner.pod_affinity import Neighbourhood, has_rules
from shoal.scheduler.planner.resource_vectors import Tally, Vector
from shoal.scheduler.planner.snapshot_types import BOUND, RELEASING, Node, Pod
from shoal.scheduler.planner.topology import Topology


class Account:
    """What the groups of one queue hold and ask for."""

    def __init__(self) -> None:
        self.held = Tally()
        self.kept = Tally()  # the part of it that no other queue may reclaim: pods outside any group
        self.wanted = Tally()
        self.groups: dict[Key, Members] = {}
        self.charged = 0  # of its groups: those whose pods are counted here
        self.priorities: dict[int, int] = {}  # of its groups, and how many have each

    def hold(self, members: Members, vector: Vector, count: int) -> None:
        self.held.add(vector, count)
        if not members.is_reclaimable:
            self.kept.add(vector, count)

    def merge(self, members: Members, sign: int) -> None:
        self.held.merge(members.held, sign)
        if not members.is_reclaimable:
            self.kept.merge(members.held, sign)
        self.wanted.merge(members.wanted, sign)

    @property
    def allocated(self) -> Amounts:
        return self.held.amounts

    @property
    def asked(self) -> Amounts:
        return self.wanted.amounts


class ClusterView:
    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.room = Room()
        self.devices = Devices(self.room, self.settings.accelerators)
        self.habits = Habits(self.settings.usual_pods)
        self.shapes = Shapes(self.room, self.settings, self.devices, self.habits)
        self.neighbours = Neighbourhood(self.room)
        self.topology = Topology(self.room, self.settings.tiers)
        self.queues: dict[str, Queue] = {"default": Queue("default")}
        self.quotas = Quotas()
        self.budgets = Budgets()
        self.pods: dict[Key, Pod] = {}
        self.groups: dict[Key, Members] = {}
        self._unsettled: dict[Key, Members] = {}
        self._touched: dict[Key, Members] = {}  # looked at again when the next plan is made
        self.accounts: dict[str, Account] = {}
        self.uncharged = Account()  # pods that occupy nodes and count against no queue
        self.reservations: dict[Key, tuple[str, ...]] = {}
        self.nominated: set[Key] = set()  # groups that a node is kept for
        self._pods_on: dict[str, dict[Key, Pod]] = {}
        self._shape_of: dict[Key, Shape] = {}
        self._vector_of: dict[Key, Vector] = {}
        self._sharing = 0  # pods that ask for a part of a device

    # Nodes, queues and the rest

    def set_node(self, node: Node) -> None:
        fresh = node.name not in self.room.rows
        row = self.room.set_node(node)
        if self.devices.are_shared:
            self.devices.reset(row)
        if fresh or self.devices.are_shared:
            for pod in self._pods_on.get(node.name, {}).values():
                self._sit(pod, row, 1, devices_only=not fresh)

    def remove_node(self, name: str) -> None:
        row = self.room.rows.get(name)
        if row is not None:
            self.room.remove_node(name)
            self.neighbours.forget_node(row)
            if self.devices.are_shared:
                self.devices.reset(row)

    def set_queue(self, queue: Queue) -> None:
        self.queues[queue.name] = queue

    def remove_queue(self, name: str) -> None:
        self.queues.pop(name, None)

    def set_quota(self, key: Key, quota: Quota) -> None:
        self.quotas.set(key, quota, ((pod, self._vector_of[each]) for each, pod in self.pods.items()))

    def remove_quota(self, key: Key) -> None:
        self.quotas.remove(key)

    def set_hypernode(self, domain: HyperNode) -> None:
        self.topology.set_hypernode(domain)

    def remove_hypernode(self, name: str) -> None:
        self.topology.remove_hypernode(name)

    # Groups

    def set_group(self, group: Group) -> None:
        members = self.groups.get(group.key)
        if members is None:
            members = self.groups[group.key] = Members(group, known=True)
            self._open_account(members)
        else:
            if (members.group.queue, members.group.priority) == (group.queue, group.priority):
                members.group = group
            else:
                self._close_account(members)
                members.group = group
                self._open_account(members)
            members.known = True
        self._changed(members)

    def remove_group(self, key: Key) -> None:
        """Its pods, if there still are any, wait for a group of that name."""
        members = self.groups.get(key)
        if members is None:
            return
        self._close_account(members)
        members.group, members.known = Group(key), False  # as if it had never been seen
        self._open_account(members)
        self.reservations.pop(key, None)
        self.nominated.discard(key)
        members.nominated.clear()
        self._changed(members)
        self._drop_if_empty(members)

    def _open_account(self, members: Members) -> None:
        account = self.accounts.setdefault(members.group.queue, Account())
        account.groups[members.key] = members
        account.charged += members.group.is_charged
        priority = members.group.priority
        account.priorities[priority] = account.priorities.get(priority, 0) + 1
        self._charged(members).merge(members, 1)

    def _close_account(self, members: Members) -> None:
        account = self.accounts[members.group.queue]
        del account.groups[members.key]
        account.charged -= members.group.is_charged
        account.priorities[members.group.priority] -= 1
        if not account.priorities[members.group.priority]:
            del account.priorities[members.group.priority]
        self._charged(members).merge(members, -1)

    def _charged(self, members: Members) -> Account:
        """Where its pods are counted; its turn it awaits in its queue either way."""
        return self.accounts[members.group.queue] if members.group.is_charged else self.uncharged

    def _drop_if_empty(self, members: Members) -> None:
        if members.is_empty() and not members.known:
            self._close_account(members)
            del self.groups[members.key]
            self._unsettled.pop(members.key, None)
            self._touched.pop(members.key, None)

    def _changed(self, members: Members) -> None:
        members.changed()
        self._touched[members.key] = members

    @property
    def unsettled(self) -> dict[Key, Members]:
        """The groups that a plan has to look at."""
        for members in self._touched.values():
            self._settle(members)
        self._touched.clear()
        return self._unsettled

    def _settle(self, members: Members) -> None:
        """Remember it for the next plan, unless nothing about it is open."""
        if members.waiting:
            self._unsettled[members.key] = members
            return
        if members.lone or not members.known:
            self._unsettled.pop(members.key, None)  # it has no phase that anybody would be told
            return
        group = members.group
        # A Pending group waits for admission even where it needs no pod at once (minMember 0).
        settled = group.phase is not PENDING and group.phase is members.phase(unplaced=False)
        if settled and (members.ready >= group.min_member or group.phase is COMPLETED):
            self._unsettled.pop(members.key, None)
        else:
            self._unsettled[members.key] = members

    # Pods

    def set_pod(self, pod: Pod) -> None:
        known = self.pods.get(pod.key)
        self._meet(pod)
        if known is not None:
            self._forget(known, keep=pod)
            self._part(known)
        self.pods[pod.key] = pod
        members = self.members_of(pod)
        place = members.room_of(pod)
        place[pod.key] = pod
        vector = self._vector_of[pod.key] = self.room.vector(pod.requests)
        if self.quotas.namespaces:
            self.quotas.count(pod, vector, 1)
        account = self._charged(members)
        if pod.holds_node:
            self._pods_on.setdefault(pod.node, {})[pod.key] = pod
            row = self.room.rows.get(pod.node)
            if row is not None:
                self._sit(pod, row, 1)
            if pod.state is not RELEASING:
                members.held.add(vector, 1)
                account.hold(members, vector, 1)
        elif place is members.waiting:
            self._shape_of.pop(pod.key, None)
            members.wanted.add(vector, 1)
            account.wanted.add(vector, 1)
        self._changed(members)

    def vector_of(self, pod: Pod) -> Vector:
        return self._vector_of[pod.key]

    def shape_of(self, pod: Pod) -> Shape:
        """Of a waiting pod."""
        found = self._shape_of.get(pod.key)
        if found is None:
            found = self._shape_of[pod.key] = self.shapes.of(pod, self._vector_of[pod.key])
        return found

    def remove_pod(self, key: Key) -> None:
        pod = self.pods.pop(key, None)
        if pod is not None:
            self._forget(pod, keep=None)
            self._part(pod)
            del self._vector_of[key]

    def pods_on(self, node: str) -> tuple[Pod, ...]:
        return tuple(self._pods_on.get(node, {}).values())

    def members_of(self, pod: Pod) -> Members:
        """The gang of the pod, as it is known; a pod without a group is one by itself."""
        key = pod.group or Key(pod.key.namespace, f"{LONE}{pod.key.name}")
        members = self.groups.get(key)
        if members is None:
            lone = pod.group is None
            group = lone_group(pod) if lone else Group(key)
            members = self.groups[key] = Members(group, known=lone, lone=lone)
            self._open_account(members)
        return members

    def _forget(self, pod: Pod, *, keep: Pod | None) -> None:
        """Take the pod out everywhere; `keep` is what it becomes, whose group then stays."""
        members = self.members_of(pod)
        place = members.room_of(pod)
        del place[pod.key]
        vector = self._vector_of[pod.key]
        if self.quotas.namespaces:
            self.quotas.count(pod, vector, -1)
        account = self._charged(members)
        if pod.holds_node:
            if keep is None and not pod.dismissed:
                members.vanished += 1
            on = self._pods_on[pod.node]
            del on[pod.key]
            if not on:
                del self._pods_on[pod.node]
            row = self.room.rows.get(pod.node)
            if row is not None:
                self._sit(pod, row, -1)
            if pod.state is not RELEASING:
                members.held.add(vector, -1)
                account.hold(members, vector, -1)
        elif place is members.waiting:
            self._shape_of.pop(pod.key, None)
            members.wanted.add(vector, -1)
            account.wanted.add(vector, -1)
        if keep is None or keep.group != pod.group:
            members.nominated.pop(pod.key, None)
            if members.lone:
                members.known = False
            self._changed(members)
            self._drop_if_empty(members)

    def _sit(self, pod: Pod, row: int, sign: int, *, devices_only: bool = False) -> None:
        if self.devices.are_shared:
            self.devices.seat(pod, row, sign)
        if devices_only:
            return
        vector = self._vector_of[pod.key]
        self.room.occupy(row, vector, sign)
        if self.neighbours.has_any:
            self.neighbours.add(pod, row, sign)
        if pod.state is RELEASING:
            self.room.leave(row, vector, sign)
        elif pod.is_critical:
            self.room.fix(row, vector, sign)

    def _meet(self, pod: Pod) -> None:
        """What is to be known of all pods together once this one is among them."""
        if has_rules(pod):
            self.neighbours.learn(pod, (other for on in self._pods_on.values() for other in on.values()))
        if pod.gpu_milli:
            self._sharing += 1
            if not self.devices.are_shared:
                self._share_devices()
        if self.devices.are_shared:
            self.habits.count_in(usual(pod, self.settings.accelerators), 1)

    def _part(self, pod: Pod) -> None:
        if has_rules(pod):
            self.neighbours.unlearn(pod)
        if self.devices.are_shared:
            self.habits.count_in(usual(pod, self.settings.accelerators), -1)
        if pod.gpu_milli:
            self._sharing -= 1
            if not self._sharing:
                self.devices.end()
                self.habits.forget()
                self.room.start_over()

    def _share_devices(self) -> None:
        rows = self.room.rows
        self.devices.begin((rows[name], pod) for name in rows for pod in self._pods_on.get(name, {}).values())
        for pod in self.pods.values():
            self.habits.count_in(usual(pod, self.settings.accelerators), 1)
        self.room.start_over()

    # What was decided

    def assume(self, plan: Plan, now: float) -> None:
        """Write the plan's decisions in, as the cluster will show them soon."""
        for members, binds in groupby(plan.binds, key=lambda bind: self.members_of(self.pods[bind.pod])):
            self._seat(members, binds, now)
        for eviction in plan.evictions:
            self._send_away(self.pods[eviction.pod])
        for shrink in plan.shrinks:
            for key in shrink.pods:
                self._send_away(self.pods[key])
        for key in self.nominated & self.groups.keys():
            self.groups[key].nominated.clear()
        self.nominated.clear()
        for nomination in plan.nominations:
            members = self.members_of(self.pods[nomination.pod])
            members.nominated[nomination.pod] = nomination.node
            self.nominated.add(members.key)
        for verdict in plan.groups:
            gang = self.groups.get(verdict.group)
            if gang is not None and gang.known and verdict.changes(gang.group):
                self.set_group(verdict.applied_to(gang.group))
        self.reservations = dict(plan.reservations)

    def _send_away(self, pod: Pod) -> None:
        if self.budgets:
            self.budgets.spend(pod)
        self.set_pod(replace(pod, state=RELEASING))

    def _seat(self, members: Members, binds: Iterable[Bind], now: float) -> None:
        """What `set_pod` does for waiting pods that now have a node; done for every bind, so by the shortest way."""
        seated: dict[Vector, int] = {}
        rows = self.room.rows
        for bind in binds:
            key, node = bind.pod, bind.node
            pod = members.waiting.pop(key, None)
            if pod is None:
                continue  # the watch was quicker
            pod = pod.moved(node=node, state=BOUND, since=now, devices=bind.devices)
            self.pods[key] = members.sitting[key] = pod
            self._pods_on.setdefault(node, {})[key] = pod
            self._sit(pod, rows[node], 1)
            self._shape_of.pop(key, None)
            vector = self._vector_of[key]
            seated[vector] = seated.get(vector, 0) + 1
        account = self._charged(members)
        for vector, count in seated.items():
            members.wanted.add(vector, -count)
            account.wanted.add(vector, -count)
            members.held.add(vector, count)
            account.hold(members, vector, count)
        self._changed(members)
