"""The cluster as the planner sees it, kept up to date one change at a time.

`set_*` takes an object as it is now, `remove_*` forgets one; both cost what changed and nothing else. Objects may come
in any order: a pod before its node or its group waits for it here. Planning reads the view and leaves it as it was;
`assume` writes the plan into it before the watch does, so that no hole is given away twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from shoal.kube.objects import Key
from shoal.scheduling.devices import Devices
from shoal.scheduling.fragmentation import Habits
from shoal.scheduling.groups import Group, HyperNode, Phase, Queue, Quota, Settings
from shoal.scheduling.members import LONE, Members, lone_group
from shoal.scheduling.neighbours import Neighbourhood
from shoal.scheduling.planning import Plan
from shoal.scheduling.requests import Amounts
from shoal.scheduling.room import Room
from shoal.scheduling.shapes import Shape, Shapes
from shoal.scheduling.snapshot import Node, Pod, State
from shoal.scheduling.topology import Topology


class Account:
    """What the groups of one queue hold and ask for."""

    def __init__(self) -> None:
        self.allocated: Amounts = {}
        self.asked: Amounts = {}
        self.groups: dict[Key, Members] = {}


class ClusterView:
    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.room = Room()
        self.devices = Devices(self.room, self.settings.accelerators)
        self.habits = Habits()
        self.shapes = Shapes(self.room, self.settings, self.devices, self.habits)
        self.neighbours = Neighbourhood(self.room)
        self.topology = Topology(self.room, self.settings.tiers)
        self.queues: dict[str, Queue] = {"default": Queue("default")}
        self.quotas: dict[str, Quota] = {}
        self.pods: dict[Key, Pod] = {}
        self.groups: dict[Key, Members] = {}
        self.unsettled: dict[Key, Members] = {}  # those a plan has to look at
        self.accounts: dict[str, Account] = {}
        self.reservations: dict[Key, tuple[str, ...]] = {}
        self.nominated: set[Key] = set()  # groups that a node is kept for
        self._pods_on: dict[str, dict[Key, Pod]] = {}
        self._shape_of: dict[Key, Shape] = {}

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

    def set_quota(self, namespace: str, quota: Quota | None) -> None:
        if quota is None:
            self.quotas.pop(namespace, None)
        else:
            self.quotas[namespace] = quota

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
            if members.group.queue != group.queue:
                self._move(members, group.queue)
            members.group, members.known = group, True
        self._changed(members)

    def remove_group(self, key: Key) -> None:
        """Its pods, if there still are any, wait for a group of that name."""
        members = self.groups.get(key)
        if members is None:
            return
        members.known = False
        self.reservations.pop(key, None)
        self._changed(members)
        self._drop_if_empty(members)

    def _move(self, members: Members, queue: str) -> None:
        self._close_account(members)
        members.group = replace(members.group, queue=queue)
        self._open_account(members)

    def _open_account(self, members: Members) -> None:
        account = self.accounts.setdefault(members.group.queue, Account())
        account.groups[members.key] = members
        _add(account.allocated, members.allocated.items(), 1)
        _add(account.asked, members.asked.items(), 1)

    def _close_account(self, members: Members) -> None:
        account = self.accounts[members.group.queue]
        del account.groups[members.key]
        _add(account.allocated, members.allocated.items(), -1)
        _add(account.asked, members.asked.items(), -1)

    def _drop_if_empty(self, members: Members) -> None:
        if members.is_empty() and not members.known:
            self._close_account(members)
            del self.groups[members.key]
            self.unsettled.pop(members.key, None)

    def _changed(self, members: Members) -> None:
        """Remember it for the next plan, unless nothing about it is open."""
        members.changed()
        group = members.group
        settled = not members.waiting and members.known and group.phase is members.phase(unplaced=False)
        if settled and (members.ready >= group.min_member or group.phase is Phase.COMPLETED):
            self.unsettled.pop(members.key, None)
        else:
            self.unsettled[members.key] = members

    # Pods

    def set_pod(self, pod: Pod) -> None:
        known = self.pods.get(pod.key)
        if known is not None:
            self._forget(known, keep=pod)
        if pod.gpu_milli and not self.devices.are_shared:
            self._share_devices()
        self.pods[pod.key] = pod
        members = self.members_of(pod)
        members.room_of(pod)[pod.key] = pod
        vector = self.room.vector(pod.requests)
        account = self.accounts[members.group.queue]
        if pod.holds_node:
            self._pods_on.setdefault(pod.node, {})[pod.key] = pod
            row = self.room.rows.get(pod.node)
            if row is not None:
                self._sit(pod, row, 1)
            if pod.state is not State.RELEASING:
                _add(members.allocated, vector.counted, 1)
                _add(account.allocated, vector.counted, 1)
        elif pod.key in members.waiting:
            if pod.together or pod.apart or pod.spreads or pod.ports:
                self.neighbours.learn(pod, (other for on in self._pods_on.values() for other in on.values()))
            if known is None:
                self.shapes.see(pod)
            self._shape_of.pop(pod.key, None)
            _add(members.asked, vector.counted, 1)
            _add(account.asked, vector.counted, 1)
        self._changed(members)

    def shape_of(self, pod: Pod) -> Shape:
        """Of a waiting pod."""
        found = self._shape_of.get(pod.key)
        if found is None:
            found = self._shape_of[pod.key] = self.shapes.of(pod)
        return found

    def remove_pod(self, key: Key) -> None:
        pod = self.pods.pop(key, None)
        if pod is not None:
            self._forget(pod, keep=None)

    def pods_on(self, node: str) -> tuple[Pod, ...]:
        return tuple(self._pods_on.get(node, {}).values())

    def members_of(self, pod: Pod) -> Members:
        """The gang of the pod, as it is known; a pod without a group is one by itself."""
        key = pod.group or Key(pod.key.namespace, f"{LONE}{pod.key.name}")
        members = self.groups.get(key)
        if members is None:
            lone = pod.group is None
            group = lone_group(pod) if lone else Group(key, queue=pod.queue, phase=Phase.PENDING)
            members = self.groups[key] = Members(group, known=lone, lone=lone)
            self._open_account(members)
        return members

    def _forget(self, pod: Pod, *, keep: Pod | None) -> None:
        """Take the pod out everywhere; `keep` is what it becomes, whose group then stays."""
        members = self.members_of(pod)
        place = members.room_of(pod)
        del place[pod.key]
        vector = self.room.vector(pod.requests)
        account = self.accounts[members.group.queue]
        if pod.holds_node:
            on = self._pods_on[pod.node]
            del on[pod.key]
            if not on:
                del self._pods_on[pod.node]
            row = self.room.rows.get(pod.node)
            if row is not None:
                self._sit(pod, row, -1)
            if pod.state is not State.RELEASING:
                _add(members.allocated, vector.counted, -1)
                _add(account.allocated, vector.counted, -1)
        elif place is members.waiting:
            self._shape_of.pop(pod.key, None)
            _add(members.asked, vector.counted, -1)
            _add(account.asked, vector.counted, -1)
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
        vector = self.room.vector(pod.requests)
        self.room.occupy(row, vector, sign)
        self.neighbours.add(pod, row, sign)
        if pod.state is State.RELEASING:
            self.room.leave(row, vector, sign)

    def _share_devices(self) -> None:
        self.devices.begin()
        for name, row in self.room.rows.items():
            for pod in self._pods_on.get(name, {}).values():
                self.devices.seat(pod, row, 1)
        self.room.start_over()

    # What was decided

    def assume(self, plan: Plan, now: float) -> None:
        """Write the plan's decisions in, as the cluster will show them soon."""
        for bind in plan.binds:
            pod = self.pods[bind.pod]
            self.set_pod(replace(pod, node=bind.node, state=State.BOUND, since=now, devices=bind.devices))
        for eviction in plan.evictions:
            self.set_pod(replace(self.pods[eviction.pod], state=State.RELEASING))
        for shrink in plan.shrinks:
            for key in shrink.pods:
                self.set_pod(replace(self.pods[key], state=State.RELEASING))
        for key in self.nominated & self.groups.keys():
            self.groups[key].nominated.clear()
        self.nominated.clear()
        for nomination in plan.nominations:
            members = self.members_of(self.pods[nomination.pod])
            members.nominated[nomination.pod] = nomination.node
            self.nominated.add(members.key)
        for verdict in plan.groups:
            gang = self.groups.get(verdict.group)
            if gang is not None and gang.known and not gang.lone:
                self.set_group(verdict.applied_to(gang.group))
        self.reservations = dict(plan.reservations)


def _add(amounts: Amounts, more: Iterable[tuple[str, int]], sign: int) -> None:
    for name, amount in more:
        amounts[name] = amounts.get(name, 0) + sign * amount
